"""One step: its input, its call or nested skill, its output, and its single closing event."""

from __future__ import annotations

from typing import Any

from cogcli.base.errors import (
    InternalError,
    ResponseMappingError,
    RuntimeErrorBase,
)
from cogcli.declarations.call_records import error_from_payload
from cogcli.run.engine.context import Run
from cogcli.run.engine.control_flow import CompletedOutput, run_controlled
from cogcli.run.engine.effects import AwaitWake, Cancelled, Effects, Spawn
from cogcli.run.engine.ending import end_early, ending_from_event
from cogcli.run.engine.invocation import call_repeatedly
from cogcli.run.engine.outcome import CallSkipped, Ending
from cogcli.run.engine.plain_call import PlainCall
from cogcli.run.engine.plain_step import FailedCall, StartedStep, StepStart, run_plain_step
from cogcli.run.engine.plan import ERRORS, PlannedStep
from cogcli.run.engine.policy import learn_reused_facts
from cogcli.run.engine.step_recorder import StepRecord
from cogcli.run.engine.step_times import ClockReading
from cogcli.run.engine.write_order import WriteOrder
from cogcli.specs.fields import fit_values
from cogcli.state.expressions import holds
from cogcli.state.inputs import resolve_input
from cogcli.state.outputs import OutputRule, require_applicable, writes_of


def spawn_step(run: Run, planned: PlannedStep, blackboard: WriteOrder, start: StepStart) -> Spawn:
    """Return the effect that runs a step as a task, beginning from `start`. The result of the task is the Ending. The
    task raises only the errors of the sink, and bugs.
    """

    def run_general_path(start: ClockReading | FailedCall | None) -> Effects:
        return _run_any_step(run, planned, blackboard, start)

    if isinstance(start, PlainCall):
        steps = run_plain_step(run, planned, start, run_general_path)
        limit = _find_plain_limit(run, planned, start)
        return run.spawn(steps, label=planned.position, limit=limit)
    if isinstance(start, StartedStep):
        steps = start.step.wait_for(start.effect, run_general_path)
        limit = _find_plain_limit(run, planned, start.step.call)
        return run.spawn(steps, label=planned.position, limit=limit, at_once=True)
    steps = run_general_path(start)
    limit, has_begun = _find_limit(run, planned), isinstance(start, FailedCall)
    return run.spawn(steps, label=planned.position, limit=limit, at_once=has_begun)


def _find_plain_limit(run: Run, planned: PlannedStep, call: PlainCall) -> float | None:
    """Return the time limit in seconds of a plain step, or None if the limit of its only call is never longer."""
    return _find_limit(run, planned) if call.repeats or planned.step.config.retry else None


def _find_limit(run: Run, planned: PlannedStep) -> float | None:
    """Return the time limit in seconds of a step, or None. A loop has no limit, since each of its invocations has
    one.
    """
    if planned.step.config.is_loop:
        return None
    return run.step_limit(planned, run.path(planned.step.id))


def _run_any_step(
    run: Run, planned: PlannedStep, blackboard: WriteOrder, start: ClockReading | FailedCall | None
) -> Effects:
    """Run a step on the general path and return its Ending. `start` is the step's start time (default: now), or the
    completed part of a plain step.
    """
    done: CompletedOutput | None = None
    if isinstance(start, FailedCall):
        record, product = start.record, _call_again(planned, start)
    else:
        record = StepRecord.of_step(run, planned, start)
        product = _perform_step(planned, record)
    try:
        done = yield from product
        while blackboard.must_wait(
            planned.position
        ):  # overlapping steps earlier in plan order write first
            record.append_answer(done.output)  # on disk while it waits
            yield AwaitWake()
        if done.writes is None:
            rules = planned.rules_for(done.producer_id)
            writes = writes_of(rules, _output_to_write(run, planned, done, rules), run.state)
        else:
            writes = done.writes
            require_applicable(run.state, writes)
        blackboard.require_no_conflict(planned.position, writes)
    except (Cancelled, RuntimeErrorBase) as error:
        if done is not None:
            record.append_answer(
                done.output
            )  # the output cannot be written, but a resume need not call again
        # An effect in doubt takes precedence over the reason why the step ended.
        return end_early(record, record.in_doubt or error)
    blackboard.remember(planned.position, writes)
    if not done.skipped:
        return ending_from_event(
            record.finish("done", output=done.output, writes=writes),
            Ending("done", error=_collected_error(planned, record, done.output)),
        )
    word = "degraded" if done.skipped == "degraded" else "skipped"
    event = record.finish(word, reason=done.skipped, detail=done.detail, writes=writes)
    return ending_from_event(event, Ending("skipped", done.skipped))


def _collected_error(
    planned: PlannedStep, record: StepRecord, output: dict[str, Any]
) -> RuntimeErrorBase | None:
    """Return the error of a completed loop that collected the errors of its items. None without any."""
    foreach = planned.step.config.foreach
    errors = output.get(ERRORS) if foreach is not None and foreach.collects else None
    if not errors:
        return None
    first = errors[0]
    error = error_from_payload(first)
    error.step_id = f"{record.path}#{first['index']}"
    error.skill_id, error.run_id = record.run.state.skill_id, record.run_id
    count = len(errors)
    items = "1 item" if count == 1 else f"{count} items"
    error.message = f"{items} failed; item {first['index']}: {first['message']}"
    return error


def _call_again(planned: PlannedStep, failed: FailedCall) -> Effects:
    """Return the product of a plain step whose first attempt failed. Raise RuntimeErrorBase."""
    record = failed.record
    if planned.target is None or record.input is None:
        raise InternalError("internal", "a plain step without a target was called")
    output = yield from call_repeatedly(planned, record, planned.target, record.input, failed.error)
    return CompletedOutput(output, producer_id=record.called_id)


def _perform_step(planned: PlannedStep, record: StepRecord) -> Effects:
    """Return the product of the step, or its `otherwise` output if a condition or a gate skips it.

    Raise RuntimeErrorBase.
    """
    run = record.run
    taken = run.engine.taken_over.get(record.path)
    if taken is not None:
        record.reused_from = taken.origin
        _learn_taken(planned, record, taken.output)
        return CompletedOutput(taken.output, list(taken.writes))
    condition = planned.expressions.condition
    if condition is not None and not holds(
        condition, run.scope, run.plan.skill.inputs, record.expression_reads
    ):
        return _otherwise_output(planned, record)._replace(skipped="condition")
    try:
        done = yield from run_controlled(planned, record)
    except CallSkipped as degraded:
        done = _otherwise_output(planned, record)._replace(skipped="degraded", detail=str(degraded))
    if record.in_doubt is not None:
        raise record.in_doubt
    return done


def _learn_taken(planned: PlannedStep, record: StepRecord, output: dict[str, Any]) -> None:
    """Add the facts of a reused step, of a `foreach` those of its items in order."""
    called = planned.step.uses
    if planned.step.config.foreach is None:
        learn_reused_facts(record, called, output)
        return
    columns = {
        name: values
        for name, values in output.items()
        if name in planned.produces and name != ERRORS
    }
    for row in zip(*columns.values(), strict=True):
        learn_reused_facts(record, called, dict(zip(columns, row, strict=True)))


def _output_to_write(
    run: Run, planned: PlannedStep, done: CompletedOutput, rules: tuple[OutputRule, ...]
) -> dict[str, Any]:
    """Return the step's output. In a lenient skill, add null for each absent optional output that is set as a
    whole (docs/reference/spec-files.md#lenient).
    """
    if not run.is_lenient or done.skipped:
        return done.output
    absent = [
        rule.left
        for rule in rules
        if rule.left in planned.produces and rule.left not in done.output
        if rule.target.namespace in ("vars", "outputs")
        and rule.strategy in ("overwrite", "replace")
    ]
    return done.output | dict.fromkeys(absent) if absent else done.output


def _otherwise_output(planned: PlannedStep, record: StepRecord) -> CompletedOutput:
    """Return the `otherwise` output of a skipped step, checked against the declared outputs, or an empty product
    without one.

    Raise ResponseMappingError `response.type`.
    """
    mapping = planned.expressions.otherwise
    if mapping is None:
        return CompletedOutput({}, [])
    values = resolve_input(mapping, record.run.scope, record.reads)
    known = {name: field for name, field in planned.produces.items() if name in values}
    kept, violations = fit_values(known, values)
    if violations:
        text = "; ".join(violation.message for violation in violations)
        raise ResponseMappingError("response.type", f"otherwise: {text}", left=False)
    return CompletedOutput(kept)
