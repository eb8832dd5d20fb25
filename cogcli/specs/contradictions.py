"""Contradictions between the types that the specs of a lenient root declare (docs/reference/spec-files.md#lenient):
warnings there, which each run records, and what of a run they excuse.

Nothing else is excused: safety, trust, references and permissions are as strict as anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from cogcli.base.problems import Problem
from cogcli.declarations.run_start import RecordedContracts
from cogcli.specs.catalog import Catalog

_CODES: Final = frozenset(("flow.type", "yaml.duplicate-key"))


def weigh(problem: Problem, catalog: Catalog) -> Problem:
    """The problem, a warning where it is of types that a skill of a lenient root declares."""
    if problem.code == "flow.type" and problem.severity == "E" and problem.file in catalog.lenient:
        return problem._replace(severity="W")
    return problem


class Contradictions(NamedTuple):
    """What a run was started with although its specs contradict themselves: the skills and capabilities of lenient
    roots, and what was found there. The `contracts` of `run.started`."""

    lenient: frozenset[str] = frozenset()
    """As `skill:ID`, `capability:ID`."""
    found: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(cls, catalog: Catalog, problems: Iterable[Problem]) -> Contradictions:
        """Those of a catalog with these problems."""
        specs = {f"skill:{id}": skill.file for id, skill in catalog.skills.items()}
        specs |= {f"capability:{id}": each.file for id, each in catalog.capabilities.items()}
        by_file = {file: spec for spec, file in specs.items() if file in catalog.lenient}
        found = [
            _record(problem, by_file[problem.file], catalog)
            for problem in problems
            if problem.code in _CODES and problem.file in by_file
        ]
        return cls(frozenset(by_file.values()), tuple(found))

    @classmethod
    def recorded(cls, contracts: RecordedContracts | None) -> Contradictions:
        """Those that the first event of a run records; none in one without."""
        if contracts is None:
            return NO_CONTRADICTIONS
        return cls(frozenset(contracts.lenient), tuple(contracts.found))

    def to_payload(self) -> dict[str, Any]:
        """The `contracts` of `run.started`; empty for a run without lenient specs."""
        return {"lenient": sorted(self.lenient), "found": list(self.found)} if self.lenient else {}

    def holds_skill(self, skill_id: str) -> bool:
        """Whether a skill is of a lenient root."""
        return f"skill:{skill_id}" in self.lenient

    def excuses(self, skill_id: str, step_id: str, field: str, target: str) -> bool:
        """Whether an input of a step may have another type than its target (`skill:ID`, `capability:ID`) declares: what
        both declare was found to contradict, and both are of lenient roots."""
        place = {"spec": f"skill:{skill_id}", "step": step_id, "input": field}
        return target in self.lenient and any(place.items() <= each.items() for each in self.found)


NO_CONTRADICTIONS: Final = Contradictions()


def _record(problem: Problem, spec: str, catalog: Catalog) -> dict[str, Any]:
    record: dict[str, Any] = {
        "code": problem.code,
        "spec": spec,
        "path": problem.path,
        "message": problem.message,
    }
    kind, _, id = spec.partition(":")
    match problem.path.split("/"):
        case ["", "steps", index, "input", field] if kind == "skill":
            record |= {"step": catalog.skills[id].steps[int(index)].id, "input": field}
    return record
