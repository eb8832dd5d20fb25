"""Contradictions between types that the specs of a lenient root declare (docs/reference/spec-files.md#lenient).

They are warnings, and each run records them. At run time they excuse type errors, and nothing else: safety, trust,
references and permissions are as strict as in other roots.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from cogcli.base.jsonvalue import Json
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import Problem
from cogcli.declarations.run_start import RecordedContracts
from cogcli.specs.catalog import Catalog

_CODES: Final = frozenset(("flow.type", "yaml.duplicate-key"))


def soften_contradiction(problem: Problem, catalog: Catalog) -> Problem:
    """Return a problem unchanged, or as a warning if it concerns types that a skill of a lenient root declares."""
    if problem.code == "flow.type" and problem.severity == "E" and problem.file in catalog.lenient:
        return problem._replace(severity="W")
    return problem


class Contradictions(NamedTuple):
    """The contradictions at the start of a run: lenient skills and capabilities, and the problems found in them.

    `contracts` of `run.started` records them.
    """

    lenient: frozenset[str] = frozenset()
    """Specs of lenient roots, as `skill:ID`, `capability:ID`."""
    found: tuple[Mapping[str, object], ...] = ()

    @classmethod
    def of(cls, catalog: Catalog, problems: Iterable[Problem]) -> Contradictions:
        """Return the contradictions among these problems of a catalog."""
        specs = {f"skill:{id}": skill.file for id, skill in catalog.skills.items()}
        specs |= {f"capability:{id}": each.file for id, each in catalog.capabilities.items()}
        by_file = {file: spec for spec, file in specs.items() if file in catalog.lenient}
        found = [
            _record_contradiction(problem, by_file[problem.file], catalog)
            for problem in problems
            if problem.code in _CODES and problem.file in by_file
        ]
        return cls(frozenset(by_file.values()), tuple(found))

    @classmethod
    def from_log(cls, contracts: RecordedContracts | None) -> Contradictions:
        """Return the contradictions that the first event of a run records."""
        if contracts is None:
            return NO_CONTRADICTIONS
        return cls(frozenset(contracts.lenient), tuple(contracts.found))

    def to_payload(self) -> Json:
        """Return the `contracts` of `run.started`. Empty if the run has no lenient specs."""
        return {"lenient": sorted(self.lenient), "found": list(self.found)} if self.lenient else {}

    def holds_skill(self, skill_id: str) -> bool:
        """Return whether a skill is in a lenient root."""
        return f"skill:{skill_id}" in self.lenient

    def excuses(self, skill_id: str, step_id: str, field: str, target: str) -> bool:
        """Return whether the type of a step's input may differ from the declaration of its target.

        The target is `skill:ID` or `capability:ID`. A contradiction must be recorded for this input, and both specs
        must be in lenient roots.
        """
        place = {"spec": f"skill:{skill_id}", "step": step_id, "input": field}
        return target in self.lenient and any(place.items() <= each.items() for each in self.found)


NO_CONTRADICTIONS: Final = Contradictions()


def _record_contradiction(problem: Problem, spec: str, catalog: Catalog) -> Json:
    record: Json = {
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
