"""Coverage of skills: which steps, branches and error paths ran, from the events of runs
(docs/reference/test-case.md#coverage).

1. A step ran if it started in any run. A branch is each outcome of a condition, each case of a router with its default,
   and a loop with rounds and without.
2. An error path is a repeat by the step's `retry`, a fallback to another binding, the `otherwise` output of a skipped
   step, and the refusal of a gate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.step_path import StepPath
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.governance_events import GateAnswer
from cogcli.declarations.reading import read_record
from cogcli.declarations.skill_spec import Step
from cogcli.declarations.spec_types import NESTED
from cogcli.declarations.value_types import Json
from cogcli.episode.history import History
from cogcli.episode.run_history import StepHistory
from cogcli.specs.catalog import Catalog
from cogcli.specs.skill import targets_of

KINDS: Final = ("steps", "branches", "error_paths")


class CoverageTarget(NamedTuple):
    """A step, a branch or an error path of a skill, which runs or does not run. `name` describes
    it."""

    kind: str
    step: str
    name: str


class Coverage:
    """The branches of skills, and whether each ran. `add` adds the runs of one case."""

    def __init__(self) -> None:
        self._find_arms: dict[str, dict[CoverageTarget, bool]] = {}

    def add(self, catalog: Catalog, fold: History, skill_id: str) -> None:
        """Add the runs of an episode of a skill, including nested runs. `fold` may contain no
        run."""
        self._add_skill(catalog, skill_id, ())
        for run in fold.runs.values():
            self._add_skill(catalog, run.skill, tuple(run.steps.values()))

    def _add_skill(self, catalog: Catalog, skill_id: str, views: tuple[StepHistory, ...]) -> None:
        skill = catalog.skills.get(skill_id)
        arms = self._find_arms.setdefault(skill_id, {}) if skill else {}
        for step in skill.steps if skill else ():
            own = [view for view in views if _find_step_id(view) == step.id]
            for arm, ran in _find_arms(catalog, step, own):
                arms[arm] = arms.get(arm, False) or ran

    def to_payload(self) -> list[Json]:
        """Return one entry per skill, sorted: per kind the total, the number that ran, and the missing ones."""
        return [
            {"skill": skill, **{kind: _count_arms(arms, kind) for kind in KINDS}}
            for skill, arms in sorted(self._find_arms.items())
        ]


def _count_arms(arms: dict[CoverageTarget, bool], kind: str) -> Json:
    own = {arm: ran for arm, ran in arms.items() if arm.kind == kind}
    missing = [f"{arm.step} {arm.name}".strip() for arm, ran in own.items() if not ran]
    return {"total": len(own), "ran": sum(own.values()), "missing": missing}


def _find_step_id(view: StepHistory) -> str:
    """Return the step's id within its own run. For an item or a gate, return the id of its step."""
    return StepPath(StepPath(view.id).name).root_step


def _find_arms(
    catalog: Catalog, step: Step, views: list[StepHistory]
) -> Iterator[tuple[CoverageTarget, bool]]:
    """Yield the arms of a step, each with whether one of these histories ran it."""
    own = [view for view in views if StepPath(view.id).is_step]
    parts = [view for view in views if view not in own]
    began = [view for view in own if _has_begun(view)]
    yield CoverageTarget("steps", step.id, ""), bool(began)
    branches = [
        *_condition_branches(step, own),
        *_router_branches(step, [*began, *parts]),
        *_loop_branches(step, own, parts),
    ]
    for name, ran in branches:
        yield CoverageTarget("branches", step.id, name), ran
    for name, ran in _error_paths(catalog, step, own, parts):
        yield CoverageTarget("error_paths", step.id, name), ran


def _has_begun(view: StepHistory) -> bool:
    return view.status not in ("pending", "skipped") or view.reason == "degraded"


def _condition_branches(step: Step, occurrences: list[StepHistory]) -> Iterator[tuple[str, bool]]:
    if step.config.condition is not None:
        yield "condition true", any(map(_has_begun, occurrences))
        yield "condition false", any(view.reason == "condition" for view in occurrences)


def _router_branches(step: Step, calls: list[StepHistory]) -> Iterator[tuple[str, bool]]:
    router = step.config.router
    if router is None:
        return
    called_targets = {view.uses for view in calls}
    for case, target in router.cases.items():
        yield f"case {case}", target in called_targets
    if router.default and router.default not in router.cases.values():
        yield "default", router.default in called_targets


def _loop_branches(
    step: Step, occurrences: list[StepHistory], parts: list[StepHistory]
) -> Iterator[tuple[str, bool]]:
    if step.config.foreach is not None:
        items = any(StepPath(view.id).in_loop for view in parts)
        yield "with items", items
        yield "without items", not items and any(view.status == "done" for view in occurrences)


def _error_paths(
    catalog: Catalog, step: Step, occurrences: list[StepHistory], parts: list[StepHistory]
) -> Iterator[tuple[str, bool]]:
    calls = _select_calls((*occurrences, *parts))
    retry = step.config.retry
    if retry is not None and retry.max_attempts > 1:
        yield "retry", any(len(view.attempts) > 1 for view in calls)
    if step.config.otherwise is not None:
        yield "otherwise", any(view.status == "skipped" for view in occurrences)
    for capability in _called_capabilities(catalog, step):
        if _has_fallback(catalog, capability.id):
            yield "fallback", any(view.fallback for view in calls)
        for gate in capability.gates:
            yield f"{gate.capability} refuses", _has_refused(gate.capability, parts)


def _select_calls(steps: Iterable[StepHistory]) -> list[StepHistory]:
    return [step for step in steps if not StepPath(step.id).is_gate]


def _has_fallback(catalog: Catalog, capability_id: str) -> bool:
    """Return whether a binding of the capability declares a fallback."""
    names = catalog.bindings_of.get(capability_id, ())
    return any(catalog.bindings[name].fallback for name in names)


def _called_capabilities(catalog: Catalog, step: Step) -> Iterator[Capability]:
    """Yield the capabilities that a step may call, if the catalog contains them."""
    for _, name in targets_of(step):
        capability = None if name.startswith(NESTED) else catalog.capability(name)
        if capability is not None:
            yield capability


def _has_refused(gate: str, parts: list[StepHistory]) -> bool:
    """Return whether a call of this gate refused its step."""
    judged = (view for view in parts if StepPath(view.id).is_gate and view.uses == gate)
    return any(read_record(GateAnswer, view.output).allowed is not True for view in judged)


def skill_line(entry: Json) -> str:
    """Return `steps 3/3, branches 1/2, error paths 0/1` for an entry of `to_payload`."""
    return ", ".join(
        f"{kind.replace('_', ' ')} {entry[kind]['ran']}/{entry[kind]['total']}"
        for kind in KINDS
        if entry[kind]["total"]
    )
