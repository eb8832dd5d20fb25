"""Coverage of skills: which steps, branches and error paths ran, from the events of runs
(docs/reference/test-case.md#coverage).

1. A step ran if it started in any run. A branch is each outcome of a condition, each case of a router with its default,
   and a loop with rounds and without.
2. An error path is a repeat by the step's `retry`, a fallback to another binding, the `otherwise` output of a skipped
   step, and the refusal of a gate.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from cogcli.base.jsonvalue import object_of
from cogcli.base.step_path import StepPath
from cogcli.declarations.skill_spec import Step
from cogcli.declarations.spec_types import NESTED
from cogcli.declarations.value_types import Json
from cogcli.episode.history import History
from cogcli.episode.run_history import StepHistory
from cogcli.specs.catalog import Catalog
from cogcli.specs.skill import targets_of

KINDS: Final = ("steps", "branches", "error_paths")


class Arm(NamedTuple):
    """A part of a skill that runs or does not: a step, a branch or an error path. `name` describes it."""

    kind: str
    step: str
    name: str


class Coverage:
    """The arms of skills, and which of them ran. `add` takes the runs of one case."""

    def __init__(self) -> None:
        self._find_arms: dict[str, dict[Arm, bool]] = {}

    def add(self, catalog: Catalog, fold: History, skill_id: str) -> None:
        """Add the runs of an episode of a skill, nested runs included. `fold` may hold no run."""
        self._add(catalog, skill_id, ())
        for run in fold.runs.values():
            self._add(catalog, run.skill, tuple(run.steps.values()))

    def _add(self, catalog: Catalog, skill_id: str, views: tuple[StepHistory, ...]) -> None:
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


def _count_arms(arms: dict[Arm, bool], kind: str) -> Json:
    own = {arm: ran for arm, ran in arms.items() if arm.kind == kind}
    missing = [f"{arm.step} {arm.name}".strip() for arm, ran in own.items() if not ran]
    return {"total": len(own), "ran": sum(own.values()), "missing": missing}


def _find_step_id(view: StepHistory) -> str:
    """Return the id of the step that a step history is of, within its own run. Items and gates belong to their step."""
    return StepPath(StepPath(view.id).name).root_step


def _find_arms(
    catalog: Catalog, step: Step, views: list[StepHistory]
) -> Iterator[tuple[Arm, bool]]:
    """Yield the arms of a step, each with whether one of these histories took it."""
    own = [view for view in views if StepPath(view.id).is_step]
    parts = [view for view in views if view not in own]
    began = [
        view
        for view in own
        if view.status not in ("pending", "skipped") or view.reason == "degraded"
    ]
    yield Arm("steps", step.id, ""), bool(began)
    config = step.config
    if config.condition is not None:
        yield Arm("branches", step.id, "condition true"), bool(began)
        yield (
            Arm("branches", step.id, "condition false"),
            any(view.reason == "condition" for view in own),
        )
    if config.router:
        taken = {view.uses for view in (*began, *parts)}
        for case, target in config.router.cases.items():
            yield Arm("branches", step.id, f"case {case}"), target in taken
        if config.router.default and config.router.default not in config.router.cases.values():
            yield Arm("branches", step.id, "default"), config.router.default in taken
    if config.foreach:
        items = any(StepPath(view.id).in_loop for view in parts)
        yield Arm("branches", step.id, "with items"), items
        yield (
            Arm("branches", step.id, "without items"),
            not items and any(v.status == "done" for v in own),
        )
    yield from _find_error_arms(catalog, step, own, parts)


def _find_error_arms(
    catalog: Catalog, step: Step, own: list[StepHistory], parts: list[StepHistory]
) -> Iterator[tuple[Arm, bool]]:
    calls = [view for view in (*own, *parts) if not StepPath(view.id).is_gate]
    if step.config.retry and step.config.retry.max_attempts > 1:
        yield Arm("error_paths", step.id, "retry"), any(len(view.attempts) > 1 for view in calls)
    if step.config.otherwise is not None:
        yield (
            Arm("error_paths", step.id, "otherwise"),
            any(view.status == "skipped" for view in own),
        )
    called = [
        catalog.capability(name) for _, name in targets_of(step) if not name.startswith(NESTED)
    ]
    for capability in filter(None, called):
        if any(
            catalog.bindings[name].fallback for name in catalog.bindings_of.get(capability.id, ())
        ):
            yield Arm("error_paths", step.id, "fallback"), any(view.fallback for view in calls)
        for gate in capability.gates:
            asked = [
                view for view in parts if StepPath(view.id).is_gate and view.uses == gate.capability
            ]
            refused = any(object_of(view.output).get("allowed") is not True for view in asked)
            yield Arm("error_paths", step.id, f"{gate.capability} refuses"), refused


def skill_line(entry: Json) -> str:
    """Return `steps 3/3, branches 1/2, error paths 0/1` for an entry of `to_payload`."""
    return ", ".join(
        f"{kind.replace('_', ' ')} {entry[kind]['ran']}/{entry[kind]['total']}"
        for kind in KINDS
        if entry[kind]["total"]
    )
