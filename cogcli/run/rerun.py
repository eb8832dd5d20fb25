"""Rerun: a new episode that reuses results of an earlier one and runs the other steps
(docs/reference/episode.md#rerun)."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from pathlib import Path

from cogcli.base.canonical import canonical
from cogcli.base.errors import ExpressionError, UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import suggestion
from cogcli.base.step_path import StepPath
from cogcli.declarations.envelope import Event
from cogcli.declarations.options import options_from_log
from cogcli.declarations.run_start import EarlierApproval, start_of
from cogcli.declarations.value_types import Json
from cogcli.episode.log_reader import Warn
from cogcli.run.effects import find_effects
from cogcli.run.engine.plan import PlannedStep, StepPlan
from cogcli.run.log_index import LogIndex
from cogcli.run.log_index_reading import read_log_index
from cogcli.run.prepare import RunRequest
from cogcli.run.rerun_effects import RerunEffects, path_prefixes, select_effects
from cogcli.run.rerun_point import has_collected_errors
from cogcli.state.expressions import value_of
from cogcli.state.inputs import Scope
from cogcli.state.reducer import ReusedResult, initial_state


class ReusedSteps(NamedTuple):
    """The steps of an earlier episode whose results are reused, and the reason why each other step runs."""

    episode_id: str
    steps: Mapping[str, ReusedResult]
    why: dict[str, str]
    """By step id in plan order: `reused`, or the reason why the step runs."""
    effects: RerunEffects
    approvals: Sequence[EarlierApproval] = ()
    """The unused approvals that the new run may take over."""

    def to_payload(self) -> Json:
        """Return `plan` of the envelope, which lists the steps that are reused, are called, or need a choice."""
        questions = self.effects.questions
        steps = []
        for step, why in self.why.items():
            asked = [
                question.to_payload()
                for question in questions
                if step in path_prefixes(question.step)
            ]
            what = (
                "asked"
                if asked
                else "reused"
                if why == "reused" or self.effects.reuses(step)
                else "called"
            )
            steps.append({"id": step, "what": what, "why": why, "effects": asked})
        return {"from": self.episode_id, "steps": steps, "effects": dict(self.effects.choices)}


def read_source_request(
    directory: Path, overrides: Mapping[str, object], warn: Warn | None = None
) -> tuple[RunRequest, LogIndex]:
    """Return the request of an earlier run with options replaced by `overrides`, and the index of its log.

    Raise UnusableEnvironment `episode.unreadable`.
    """
    events, log = read_log_index(directory, warn)
    start = start_of(events[0])
    frame = {name: value for name, value in start.frame.items() if value}
    # A confirmation and a trial without rules hold only for the run they were given for.
    options = options_from_log(start.json).replace(frame=frame, confirm=[], shadow=False)
    options = options.replace(**overrides)
    return RunRequest(start.skill.id, start.inputs, options), log


def find_first_step(plan: StepPlan, from_step: str | None) -> dict[str, str]:
    """Return the step that `--from` names, by default the first, mapped to the reason to run it. Raise UsageError
    `step.unknown`.
    """
    ids = [planned.step.id for planned in plan.steps]
    if from_step is not None and from_step not in ids:
        hint = suggestion(from_step, ids) or f"steps are {', '.join(ids[:20])}"
        raise UsageError("step.unknown", f"no step `{from_step}` in this skill", hint=hint)
    return {from_step or ids[0]: "asked for"}


def find_failed_loops(log: LogIndex, plan: StepPlan) -> dict[str, str]:
    """Return the loops over items that did not complete, mapped to the reason to run them again. Raise UsageError
    `usage.flag` if every loop completed.
    """
    loops = [planned.step.id for planned in plan.steps if planned.step.config.foreach is not None]
    found = {
        step: "items are left"
        for step in loops
        if step not in log.results or has_collected_errors(log.results[step])
    }
    if not found:
        raise UsageError(
            "usage.flag",
            "`--failed-items`: no loop over items of that run failed",
            hint="`rerun --from STEP` repeats a step and what follows it",
        )
    return found


def find_open_loops(log: LogIndex, plan: StepPlan) -> set[str]:
    """Return the loops that did not complete, whose finished items and rounds can be reused."""
    return {
        planned.step.id
        for planned in plan.steps
        if planned.step.id not in log.results and planned.step.config.is_loop
    }


def plan_reuse(
    log: LogIndex, plan: StepPlan, roots: Mapping[str, str], *, loops: Container[str] = ()
) -> ReusedSteps:
    """Return a Reuse of all steps that are done in the log, except those in `roots` and downstream of them.

    `roots` maps a step id to the reason why it runs. The completed items and rounds of `loops` are reused too.
    """
    why = _explain_steps(log, plan, roots)
    whole = {step for step, reason in why.items() if reason == "reused"}
    kept = _find_unchanged_loops(plan, loops, whole)
    taken = {
        path: result
        for path, result in log.results.items()
        if path in whole or _is_item_of(StepPath(path), kept)
    }
    return _reuse_of(log, why, taken)


def _reuse_of(log: LogIndex, why: dict[str, str], taken: Mapping[str, ReusedResult]) -> ReusedSteps:
    called = [step for step, reason in why.items() if reason != "reused"]
    effects = select_effects(find_effects(log), called, taken)
    return ReusedSteps(log.started.episode_id if log.started else "", taken, why, effects)


def keep_equal_items(
    reuse: ReusedSteps, log: LogIndex, plan: StepPlan, inputs: Mapping[str, object]
) -> ReusedSteps:
    """Return the reuse without the results of items that differ under the inputs of the new run.

    Only a loop whose items come from the inputs can have different items, because the steps before it are reused.
    """
    started = log.started
    if started is None:
        return reuse
    renewed = started._replace(payload={**started.payload, "inputs": dict(inputs)})
    dropped: set[str] = set()
    for planned in plan.steps:
        paths = [path for path in reuse.steps if _is_item_of(StepPath(path), (planned.step.id,))]
        if not paths:
            continue
        before, after = _loop_items(planned, plan, started), _loop_items(planned, plan, renewed)
        dropped |= {
            path for path in paths if _canonical_item(before, path) != _canonical_item(after, path)
        }
    taken = {path: result for path, result in reuse.steps.items() if path not in dropped}
    return _reuse_of(log, reuse.why, taken)


def _loop_items(planned: PlannedStep, plan: StepPlan, started: Event) -> list[object]:
    """Return the items of a loop for the inputs of a first event. Empty if the items come from another step."""
    try:
        found = value_of(
            planned.expressions.foreach, Scope(initial_state(started)), plan.skill.inputs, {}
        )
    except ExpressionError:
        return []
    return found if isinstance(found, list) else []


def _canonical_item(items: list[object], path: str) -> bytes | None:
    """Return the item of a path as canonical JSON, in which `1` and `true` differ. None if the list has no such
    item.
    """
    number = path.rpartition("#")[2]
    is_there = number.isdecimal() and int(number) < len(items)
    return canonical(items[int(number)]) if is_there else None


def _explain_steps(log: LogIndex, plan: StepPlan, roots: Mapping[str, str]) -> dict[str, str]:
    """Return for each step, in plan order, why it runs again, or `reused`."""
    again = dict(roots)
    why = {}
    for planned in plan.steps:
        id = planned.step.id
        needed = next((name for name in planned.depends_on if name in again), None)
        if needed is not None:
            again.setdefault(id, f"needs {needed}")
        closing = log.closings.get((log.root, id))
        is_done = closing is not None and closing.event_type == "step.completed"
        why[id] = again.get(id) or ("reused" if is_done else "was not done")
    return why


def _find_unchanged_loops(
    plan: StepPlan, loops: Container[str], reused: Container[str]
) -> set[str]:
    """Return the loops that still have the items of the earlier run, because all their earlier steps are reused."""
    settled: set[str] = set()
    found = set()
    for planned in plan.steps:
        if settled.issuperset(planned.depends_on):
            if planned.step.id in reused:
                settled.add(planned.step.id)
            elif planned.step.id in loops:
                found.add(planned.step.id)
    return found


def _is_item_of(path: StepPath, loops: Container[str]) -> bool:
    return path.in_loop and not path.in_call and path.parent in loops
