"""The fast path for plain steps: an input, one call without effect, and writes (docs/adr/0028-plain-steps.md).

1. The first step of a run that calls a capability takes the general path (`run.engine.step`). Later ones take this path
   if nothing but the call can happen: `PlannedStep.plain_key`, a policy that allows the call at once or none, and no
   log that the run still follows (`Engine.leave_log`).
2. Their two events share constants, which are encoded once, from events of the general path.
3. A step that proves unusual before an event of it is recorded restarts on the general path. After the decision of a
   policy, an event that the journal refuses is appended as on the general path.
4. A step whose call fails continues on the general path, which tries again or ends it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import orjson

from cogcli.base.calls import NOT_BEGUN, Answer, Attempt, Cancellation, Member
from cogcli.base.errors import InternalError, RuntimeErrorBase
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.envelope import Draft
from cogcli.declarations.event_line import EventLine, hole
from cogcli.run.engine.call import (
    LiveCall,
    attempt_from_answer,
    decision_member,
    intent_members,
)
from cogcli.run.engine.context import Run
from cogcli.run.engine.ending import end_early, ending_from_event
from cogcli.run.engine.outcome import Ending
from cogcli.run.engine.plain_call import FIRST, PlainCall
from cogcli.run.engine.plan import PlannedStep
from cogcli.run.engine.policy import find_plain_verdict, record_if_due
from cogcli.run.engine.ports import LineSink
from cogcli.run.engine.step_recorder import StepRecord, action_of, excerpt
from cogcli.run.engine.step_times import ClockReading, StepTimes
from cogcli.run.engine.tasks import BegunCall, Cancelled, Effects, WorkerCall, WorkerSlot
from cogcli.specs.fields import fit_values
from cogcli.state.execution import TraceStep
from cogcli.state.expressions import holds
from cogcli.state.outputs import writes_of
from cogcli.state.reducer import Write, begin_step, end_step

_DONE: Final = Ending("done")
_INTENT_MEMBERS: Final = ("step_id", "step_id", "idempotency_key", "input", "reads")
_DECIDED_INTENT_MEMBERS: Final = (*_INTENT_MEMBERS[:3], "decision", *_INTENT_MEMBERS[3:])
"""The same under a policy."""
_END_MEMBERS: Final = (
    "step_id", "caused_by",
    "step_id", "action_id", "input_excerpt", "attempts", "output", "writes", "reads", "latency_ms",
    "started_at", "completed_at", "duration_ms",
)  # fmt: skip
"""The members that differ from step to step, in their order in the line: of the envelope, the payload, the metrics."""


def plain_call(run: Run, planned: PlannedStep) -> PlainCall | None:
    """Return the shared constants if the step may run as a plain step, or None if it takes the general path."""
    calls = run.plain_calls
    if calls is None:
        return None
    call = calls.get(planned.plain_key)
    if type(call) is PlainCall and call.secrets is call.lines.secrets_version:
        return call
    lines, key = run.engine.lines, planned.plain_key
    if lines is None or key is None:
        return None
    if key not in calls:
        calls[key] = FIRST  # most runs call a capability once
    elif call is not None:
        calls[key] = call = _build_call(run, planned, lines)
        return call
    return None


def _build_call(run: Run, planned: PlannedStep, lines: LineSink) -> PlainCall | None:
    """Return the constants of these steps, taken from events of the general path. Return None if bindings are passed
    over.
    """
    target, secrets = planned.target, lines.secrets_version
    if target is None or target.capability is None:
        return None
    try:
        chain = run.engine.runner.chain(target.capability.id)
    except RuntimeErrorBase:
        return None
    if chain.passed_over:
        return None
    member = chain.members[0]
    record = StepRecord(
        run, hole("step_id"), target.uses, target.capability, planned.kind, ClockReading("", 0.0)
    )
    record.input, record.chain, record.member = {}, chain, member
    intent = record.intent_draft(**intent_members(record, target.capability, member))
    record.note_begun(hole("caused_by"))
    record.attempts.append(attempt_from_answer(member, Answer({})))
    record.count_call(None)
    times = StepTimes("", "", 0)
    end = record.closing_draft("done", output={}, times=times)
    end = end._replace(metrics={name: hole(name) for name in times._fields})
    is_decided = run.engine.policy is not None
    holes = _DECIDED_INTENT_MEMBERS if is_decided else _INTENT_MEMBERS
    intent_line = _line_with_holes(lines, intent, holes)
    end_line = _line_with_holes(lines, end, _END_MEMBERS)
    if intent_line is None or end_line is None:
        return None
    return PlainCall(
        lines=lines,
        secrets=secrets,
        target=target,
        capability=target.capability,
        capability_id=target.capability.id,
        effect=target.capability.effect,
        chain=chain,
        member=member,
        limit=member.limit,
        intent=intent_line,
        end=end_line,
        attempts_json=_attempts_json(member, Answer({})),
        usage=record.usage,
        speed=run.engine.find_call_speed(target.capability.id),
        repeats=len(chain.members) > 1 or member.retry_count > 0,
    )


def _line_with_holes(lines: LineSink, draft: Draft, members: tuple[str, ...]) -> EventLine | None:
    """Return the line of a draft with holes for these members. Raise InternalError if their order differs."""
    payload = {
        name: hole(name) if name in members else value for name, value in draft.payload.items()
    }
    line = lines.line_of(draft._replace(payload=payload))
    if line is not None and line.members != members:
        raise InternalError("internal", f"{draft.event_type} has other members: {line.members}")
    return line


def _attempts_json(member: Member, answer: Answer) -> bytes:
    return orjson.dumps([attempt_from_answer(member, answer).json])


class FailedCall(NamedTuple):
    """A plain step whose call failed, with the record that it would have on the general path, and the error."""

    record: StepRecord
    error: RuntimeErrorBase


class BegunStep(NamedTuple):
    """A plain step that waits for its call."""

    step: PlainStep
    effect: WorkerCall | BegunCall


StepStart = PlainCall | BegunStep | ClockReading | FailedCall | None
"""What there is of a step that a task runs: its constants or its begun call if it is a plain step; for the general path
the time when it started, or its failed call. None for a step that starts now on the general path."""
GeneralPath = Callable[[ClockReading | FailedCall], Effects]
"""Runs a step on the general path from there on."""


def run_plain_step(
    run: Run, planned: PlannedStep, call: PlainCall, run_general_path: GeneralPath
) -> Effects:
    """Run a plain step as a task and return its Ending. Raises only what the sink raises, and bugs.

    If the step proves unusual, or its call fails, continue with `run_general_path`.
    """
    step = PlainStep(run, planned, call)
    loop = run.engine.loop
    if loop.signal is not None or not loop.take_slot() or not step.begin():
        return (yield from run_general_path(step.started))
    return (yield from step.wait_for(step.live_call().build_effect(), run_general_path))


class PlainStep:
    """The state of one plain step while it runs."""

    __slots__ = (
        "_attempt",
        "_idempotency_key",
        "_input",
        "_input_json",
        "_intent",
        "_intent_refused",
        "_path",
        "_path_json",
        "_planned",
        "_reads",
        "_reads_json",
        "_run",
        "call",
        "started",
    )

    def __init__(self, run: Run, planned: PlannedStep, call: PlainCall) -> None:
        self._run = run
        self._planned = planned
        self.call = call
        self._path = run.path(planned.step.id)
        self._idempotency_key = f"{run.state.run_id}:{self._path}"
        self._reads: dict[str, None] = {}
        self._path_json: bytes
        self._input: dict[str, Any]
        self._input_json: bytes
        self._reads_json: bytes
        self._intent = ""
        self._intent_refused = False
        self._attempt: Attempt
        clock = run.engine.clock
        self.started = ClockReading(clock.now(), clock.monotonic())

    def begin(self) -> bool:
        """Append the intent. Return False, without an event, if the step must take the general path."""
        run, call = self._run, self.call
        condition_reads: dict[str, None] = {}
        try:
            if self._planned.expressions and not self._meets_condition(condition_reads):
                return False
            values = self._planned.input(run.scope, self._reads)
        except RuntimeErrorBase:
            return False
        if None in values.values():  # it may be left out
            return False
        self._input, violations = fit_values(call.target.inputs, values)
        if violations:
            return False
        self._input_json = orjson.dumps(self._input)
        self._path_json = orjson.dumps(self._path)
        self._reads_json = orjson.dumps([*self._reads])
        names = (self._path, *self._reads, *condition_reads, *self._planned.written)
        if run.engine.policy is None:
            is_begun = self._append_intent((), (self._input,), names)
        else:
            is_begun = self._begin_if_permitted(names)
        if is_begun and condition_reads:  # the closing event lists them after those of the input
            self._reads |= condition_reads
            self._reads_json = orjson.dumps([*self._reads])
        return is_begun

    def _begin_if_permitted(self, names: tuple[str, ...]) -> bool:
        """Append the decision of the policy and the intent. Return False, without an event, if the step must take the
        general path.

        `names` are the names of the skill that the two events contain.
        """
        run, capability = self._run, self.call.capability
        try:
            verdict = find_plain_verdict(run, self._path, capability, self._input)
        except RuntimeErrorBase:
            return False
        if verdict is None:
            return False
        decision = decision_member(record_if_due(run, self._path, capability, self._input, verdict))
        member = (orjson.dumps(decision),)
        if not self._append_intent(member, (self._input, decision), names):
            record = self.record()
            record.decision = decision
            record.begin(**intent_members(record, capability, self.call.member))
            self._intent = record.intent or ""
            self._intent_refused = True
        return True

    def _append_intent(
        self, decision: tuple[bytes, ...], values: tuple[object, ...], names: tuple[str, ...]
    ) -> bool:
        """Append the intent as a line, and return whether the journal accepted it."""
        run, call = self._run, self.call
        members = (
            self._path_json,
            self._path_json,
            orjson.dumps(self._idempotency_key),
            *decision,
            self._input_json,
            self._reads_json,
        )
        placed = run.engine.append_line(
            call.lines, run.state.run_id, call.intent, members, values, names
        )
        if placed is None:
            return False
        begin_step(run.state, self._path)
        self._intent, run.state.updated_at, _ = placed
        return True

    def _meets_condition(self, reads: dict[str, None]) -> bool:
        """Return whether the step has no condition, or one that holds. Raise ExpressionError."""
        condition = self._planned.expressions.get("condition")
        inputs = self._run.plan.skill.inputs
        return condition is None or holds(condition, self._run.scope, inputs, reads)

    def live_call(self) -> LiveCall:
        """Return the call which the recorded intent announces."""
        run, call = self._run, self.call
        number, deadline = 1, time.monotonic() + call.limit
        attempt = self._attempt = Attempt(
            call.capability_id,
            call.member,
            orjson.loads(self._input_json),
            call.effect,
            self._idempotency_key,
            run.state.run_id,
            self._path,
            number,
            deadline,
            Cancellation(NOT_BEGUN),
            run.state.trace_id,
            self._intent,
        )
        return LiveCall(run.engine, attempt, call.speed)

    def wait_for(self, effect: WorkerCall | BegunCall, run_general_path: GeneralPath) -> Effects:
        """Wait for the call in the task of the step, and return the ending."""
        try:
            if type(effect) is WorkerCall and not self._run.engine.loop.take_slot():
                yield WorkerSlot()
            answer: Answer = yield effect
        except Cancelled as error:
            return self.cancel(error)
        except RuntimeErrorBase as error:
            failed = self.fail(error)
        else:
            return self.end(answer)
        return (yield from run_general_path(failed))

    def cancel(self, cause: Cancelled) -> Ending:
        """Append the closing event of a step whose call was cancelled, and return the ending."""
        return end_early(self.record(), cause)

    def fail(self, error: RuntimeErrorBase) -> FailedCall:
        """Return the step for the general path, after its call failed."""
        if self._attempt.cancel.unsent_reason:
            error.left = False
        return FailedCall(self.record(), error)

    def record(self, answer: Answer | None = None) -> StepRecord:
        """Return the record that this step would have on the general path, before or after its intent, or after
        `answer`.
        """
        call = self.call
        record = StepRecord.of_step(self._run, self._planned, self.started)
        record.reads |= self._reads
        record.set_target(call.target.uses, call.capability, self._input)
        record.chain, record.member = call.chain, call.member
        if self._intent:
            record.note_begun(self._intent)
        if answer is not None:
            record.attempts.append(attempt_from_answer(call.member, answer))
            record.count_call(answer.usage)
        return record

    def end(self, answer: Answer) -> Ending:
        """Append the closing event of a step whose call was answered, apply the writes, and return the ending."""
        run, engine = self._run, self._run.engine
        if engine.policy is not None:
            engine.policy.learn(self.call.capability_id, answer.output, engine.now)
        try:
            writes = writes_of(self._planned.rules, answer.output, run.state)
        except RuntimeErrorBase as error:
            record = self.record(answer)
            record.append_answer(answer.output)
            return end_early(record, error)
        times = StepTimes.until_now(self.started, engine.clock)
        if self._is_unusual(answer) or not self._append_end(answer, writes, times):
            ended = self.record(answer).finish(
                "done", output=answer.output, writes=writes, times=times
            )
            return ending_from_event(ended, _DONE)
        state, written = run.state, self._planned.written
        if len(writes) < len(self._planned.rules):  # an optional output is absent
            written = tuple(dict.fromkeys([write.target.text for write in writes]))
        entry = TraceStep(
            self._path,
            self.call.capability_id,
            "done",
            times.started_at,
            times.completed_at,
            tuple(self._reads),
            written,
            times.duration_ms,
        )
        end_step(state, entry, writes, self.call.usage)
        state.updated_at = engine.now
        return _DONE

    def _is_unusual(self, answer: Answer) -> bool:
        """Return whether the closing event needs members that its encoded line does not have, or repeats values that
        the journal refused in the intent.
        """
        if self._intent_refused or self._run.engine.deferred or answer.usage:
            return True
        return answer.record is not None and "files" in answer.record

    def _append_end(self, answer: Answer, writes: list[Write], times: StepTimes) -> bool:
        call = self.call
        if call.lines.secrets_version is not call.secrets:
            return False
        text = excerpt(self._input_json)
        intent_json = orjson.dumps(self._intent)
        duration_json = b"%d" % times.duration_ms
        try:
            members = (
                self._path_json,
                intent_json,
                self._path_json,
                orjson.dumps(action_of(self._intent)),
                orjson.dumps(text),
                _attempts_json(call.member, answer) if answer.record else call.attempts_json,
                orjson.dumps(answer.output),
                orjson.dumps([write.to_written().json for write in writes]),
                self._reads_json,
                duration_json,
                orjson.dumps(times.started_at),
                orjson.dumps(times.completed_at),
                duration_json,
            )
        except TypeError:  # not JSON, which the general path reports
            return False
        # The intent was judged, and a plain step writes only parts of its output. A truncated excerpt may end within
        # a value that was not masked whole.
        judged: tuple[object, ...] = (answer.output,)
        if answer.record or len(text) < len(self._input_json):
            judged = (text, answer.record, answer.output)
        run = self._run
        placed = run.engine.append_line(call.lines, run.state.run_id, call.end, members, judged)
        return placed is not None
