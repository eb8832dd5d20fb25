"""One step: input, the call or nested skill, output, and exactly one closing event."""

from __future__ import annotations

from typing import Any

from cogcli.core.errors import (
    PENDING,
    VETOED,
    EffectInDoubtError,
    ResponseMappingError,
    RuntimeErrorBase,
    error_from_payload,
)
from cogcli.engine import call
from cogcli.engine.context import Run
from cogcli.engine.control_flow import Performed, run_controlled
from cogcli.engine.outcome import Ending
from cogcli.engine.plan import PlannedStep
from cogcli.engine.step_recorder import StepRecord
from cogcli.engine.tasks import Cancelled, Effects, Park
from cogcli.engine.write_order import WriteOrder
from cogcli.events.envelope import Event
from cogcli.mapping.apply import Write
from cogcli.mapping.expressions import holds
from cogcli.mapping.inputs import Scope, resolve_input
from cogcli.mapping.outputs import require_applicable, writes_of
from cogcli.specs.fields import fit_values


def run_step(run: Run, planned: PlannedStep, blackboard: WriteOrder) -> Effects:
    """Run a step and give its Ending. Raises only what the sink raises, and bugs."""
    step = planned.step
    record = StepRecord(run, run.path(step.id), step.uses, planned.capability, planned.kind)
    done: Performed | None = None
    try:
        done = yield from _perform(run, planned, record)
        yield from _wait_for_plan_order(planned, record, done.output, blackboard)
        writes = _writes(run, planned, done)
        blackboard.require_no_conflict(planned.position, writes)
    except (Cancelled, RuntimeErrorBase) as cut:
        if done is not None:
            record.append_answer(done.output)  # it cannot be written, but it was given: nobody need ask again
        # What may have happened outweighs why the rest of the step was given up.
        return _end_early(record, record.in_doubt or cut)
    blackboard.remember(planned.position, writes)
    return _finish(record, done, writes)


def _perform(run: Run, planned: PlannedStep, record: StepRecord) -> Effects:
    """What the step produced; its `otherwise` output where a condition or a gate skips it. Raises RuntimeErrorBase."""
    taken = run.engine.taken_over.get(record.path)
    if taken is not None:
        record.reused_from = taken.origin
        return Performed(taken.output, list(taken.writes))
    if not _condition_holds(run, planned, record):
        return _otherwise_output(run, planned, record)._replace(skipped="condition")
    try:
        done = yield from run_controlled(run, planned, record, run_step)
    except call.Degraded as degraded:
        done = _otherwise_output(run, planned, record)._replace(skipped="degraded", detail=str(degraded))
    if record.in_doubt is not None:
        raise record.in_doubt
    return done


def _finish(record: StepRecord, done: Performed, writes: list[Write]) -> Ending:
    if done.skipped:
        word = "degraded" if done.skipped == "degraded" else "skipped"
        event = record.finish(word, reason=done.skipped, detail=done.detail, writes=writes)
        return _recorded_ending(event, Ending("skipped", done.skipped))
    return _recorded_ending(record.finish("done", output=done.output, writes=writes), Ending("done"))


def _recorded_ending(event: Event, ending: Ending) -> Ending:
    """How a step ended by its closing event: on resume that is the recorded one, whatever came of the step now."""
    recorded = event.payload
    if (recorded["step_status"], recorded.get("reason")) == (ending.status, ending.reason):
        return ending
    error = error_from_payload(recorded["error"]) if recorded.get("error") else None
    return Ending(recorded["step_status"], recorded.get("reason"), error)


def _condition_holds(run: Run, planned: PlannedStep, record: StepRecord) -> bool:
    """Whether the step's condition holds; True without one."""
    condition = planned.expressions.get("condition")
    if condition is None:
        return True
    return holds(condition, Scope(run.state), run.plan.skill.inputs, record.expression_reads)


def _otherwise_output(run: Run, planned: PlannedStep, record: StepRecord) -> Performed:
    """Output of a skipped step: its `otherwise` block, checked against the declared outputs; empty without one.

    Raises ResponseMappingError `response.type`.
    """
    mapping = planned.expressions.get("otherwise")
    if mapping is None:
        return Performed({}, [])
    values = resolve_input(mapping, Scope(run.state), record.reads)
    known = {name: field for name, field in planned.produces.items() if name in values}
    kept, violations = fit_values(known, values)
    if violations:
        text = "; ".join(violation.message for violation in violations)
        raise ResponseMappingError("response.type", f"otherwise: {text}", left=False)
    return Performed(kept)


def _writes(run: Run, planned: PlannedStep, done: Performed) -> list[Write]:
    if done.writes is None:
        return writes_of(planned.rules_for(done.by), done.output, run.state)
    require_applicable(run.state, done.writes)
    return done.writes


def _wait_for_plan_order(
    planned: PlannedStep, record: StepRecord, produced: dict[str, Any], blackboard: WriteOrder
) -> Effects:
    """Let overlapping steps that are earlier in plan order write first; the result is on disk meanwhile."""
    if not blackboard.must_wait(planned.position):
        return
    record.append_answer(produced)
    while blackboard.must_wait(planned.position):
        yield Park()


def _end_early(record: StepRecord, cut: Cancelled | RuntimeErrorBase) -> Ending:
    if not isinstance(cut, Cancelled):
        return _end_with_error(record, cut)
    event, ending = record.cut_off(cut), Ending("skipped", "cancelled")
    return ending if event is None else _recorded_ending(event, ending)


def _end_with_error(record: StepRecord, error: RuntimeErrorBase) -> Ending:
    record.locate(error)
    if isinstance(error, EffectInDoubtError):
        record.run.in_doubt = error
        record.run.engine.in_doubt = record.run.engine.in_doubt or error
    if error.exit_code == PENDING:
        return Ending("pending", error.code, error)
    status = "vetoed" if error.exit_code == VETOED else "failed"
    event = record.finish(status, reason=error.code, error=error)
    return _recorded_ending(event, Ending(status, error.code, error))
