"""One call without effect on the fast path: its intent, the call, and its closing event
(docs/adr/0028-plain-steps.md).

1. The first call of a capability in a run takes the general path (`run.engine.invocation`). Later ones take this path
   if nothing but the call can happen: `PlannedStep.plain_key` or `part_key`, a policy that allows the call at once or
   none, and no log that the run still follows (`Engine.leave_log`).
2. Their two events share constants, which are built once, as events of the general path.
3. An invocation that proves unusual before an event of it is recorded restarts on the general path. After the decision
   of a policy, an event that the journal refuses is appended as on the general path.
4. An invocation whose call fails continues on the general path, which tries again or ends it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import orjson

from cogcli.base.calls import NOT_BEGUN, Answer, Attempt, Cancellation, Member
from cogcli.base.errors import InternalError, RuntimeErrorBase
from cogcli.base.json_text import first_characters
from cogcli.base.named_tuple import new_tuple
from cogcli.declarations.envelope import Draft, draft_of
from cogcli.declarations.event_line import EventLine
from cogcli.declarations.governance_events import PolicyDecided
from cogcli.declarations.value_types import Json
from cogcli.policy.verdict import Verdict
from cogcli.run.engine.call import (
    LiveCall,
    attempt_from_answer,
    decision_member,
    intent_members,
)
from cogcli.run.engine.context import Run
from cogcli.run.engine.plain_call import FIRST, DecisionLine, PlainCall
from cogcli.run.engine.plan import PlainKey, PlannedStep
from cogcli.run.engine.policy import (
    decision_payload,
    find_plain_verdict,
    hash_input,
    is_recorded,
    record_verdict,
    recorded_decision,
)
from cogcli.run.engine.step_recorder import EXCERPT, StepRecord, action_of
from cogcli.run.engine.step_times import ClockReading, StepTimes, milliseconds_since
from cogcli.specs.fields import are_plain, find_plain_types, fit_values
from cogcli.state.inputs import Scope

if TYPE_CHECKING:
    from cogcli.run.engine.ports import CallPolicy, LineSink

_INTENT: Final = ("step_id", "idempotency_key", "input", "reads")
_END: Final = ("step_id", "action_id", "input_excerpt", "attempts", "output", "reads", "latency_ms")
"""The members of the payloads that differ from call to call."""


def find_plain_call(run: Run, planned: PlannedStep, key: PlainKey | None) -> PlainCall | None:
    """Return the shared constants if a call of the step may be plain; None if it needs the general path. `key` is the
    step's `plain_key`, or its `part_key` for an item or a round.
    """
    calls = run.plain_calls
    if calls is None or key is None:
        return None
    call = calls.get(key)
    if type(call) is PlainCall and call.secrets is call.lines.secrets_version:
        return call
    lines = run.engine.lines
    if lines is None:
        return None
    if key not in calls:
        calls[key] = FIRST  # most runs call a capability once
    elif call is not None:
        calls[key] = call = _build_call(run, planned, key, lines)
        return call
    return None


def _build_call(run: Run, planned: PlannedStep, key: PlainKey, lines: LineSink) -> PlainCall | None:
    """Return the constants of these calls, copied from events of the general path. Return None if bindings were
    skipped.
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
        run, "step", target.uses, target.capability, planned.kind, ClockReading("", 0.0)
    )
    record.input, record.chain, record.member = {}, chain, member
    record.round = 0 if key.part == "round" else None
    intent = record.intent_draft(**intent_members(record, target.capability, member))
    record.record_begun("ev_")
    record.attempts.append(attempt_from_answer(member, Answer({})))
    record.count_call(None)
    end = record.closing_draft("done", output={}, times=StepTimes("", "", 0))
    is_decided = run.engine.policy is not None
    intent_differs = (
        *_INTENT,
        *(("decision",) if is_decided else ()),
        *(("round",) if key.part == "round" else ()),
    )
    intent_line = _line_of(lines, intent, intent_differs)
    end_line = _line_of(lines, end, _END if key.part else (*_END, "writes"))
    decided_line = _decision_line(run, lines)
    if intent_line is None or end_line is None or (is_decided and decided_line is None):
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
        decided=decided_line,
        attempts=_attempts_of(member, Answer({})),
        usage=record.usage,
        tool=record.tool,
        input_types=find_plain_types(target.inputs),
        speed=run.engine.find_call_speed(target.capability.id),
        repeats=len(chain.members) > 1 or member.retry_count > 0,
    )


def _line_of(lines: LineSink, draft: Draft, differing: tuple[str, ...]) -> EventLine | None:
    """Return the line of a draft whose payload has these members. Raise InternalError if it lacks one."""
    if missing := [name for name in differing if name not in draft.payload]:
        raise InternalError("internal", f"{draft.event_type} lacks {', '.join(missing)}")
    return lines.line_of(draft)


def _decision_line(run: Run, lines: LineSink) -> DecisionLine | None:
    """Return the line of a policy's decision, whose payload differs as a whole. None without a policy."""
    if run.engine.policy is None:
        return None
    draft = draft_of(PolicyDecided(decision="allow"), run.state.run_id, step_id="step")
    line = lines.line_of(draft)
    return DecisionLine(line) if line else None


def _attempts_of(member: Member, answer: Answer) -> list[Json]:
    return [attempt_from_answer(member, answer).json]


class PlainInvocation:
    """The state of one call on the fast path, from its start to its closing event."""

    __slots__ = (
        "_attempt",
        "_idempotency_key",
        "_input",
        "_input_json",
        "_intent",
        "_intent_refused",
        "_path",
        "_planned",
        "_reads",
        "_run",
        "_scope",
        "_started_at",
        "_started_seconds",
        "call",
    )

    def __init__(
        self, run: Run, planned: PlannedStep, call: PlainCall, path: str, scope: Scope
    ) -> None:
        self._run = run
        self._planned = planned
        self.call = call
        self._path = path
        self._scope = scope
        self._idempotency_key = f"{run.state.run_id}:{path}"
        self._reads: dict[str, None] = {}
        self._input: Json
        self._input_json: bytes
        self._intent = ""
        self._intent_refused = False
        self._attempt: Attempt
        clock = run.engine.clock
        self._started_at = clock.now()
        self._started_seconds = clock.monotonic()

    @property
    def started(self) -> ClockReading:
        """The time when it started."""
        return ClockReading(self._started_at, self._started_seconds)

    def _begin_call(self, names: tuple[str, ...], number: int | None = None) -> bool:
        """Append the intent. Return False, without an event, if the call must use the general path. `names` are names
        of the skill that the two events contain in addition to those of the input. `number` is the number of a round.
        """
        run, call = self._run, self.call
        try:
            values = self._planned.input(self._scope, self._reads)
        except RuntimeErrorBase:
            return False
        if not are_plain(values, call.input_types):
            if None in values.values():  # it may be left out
                return False
            values, violations = fit_values(call.target.inputs, values)
            if violations:
                return False
        self._input = values
        self._input_json = orjson.dumps(values)
        names = (self._path, *self._reads, *names)
        if number is not None:
            call.intent.payload["round"] = number
        if run.engine.policy is None:
            return self._append_intent((values,), names)
        return self._begin_if_permitted(names)

    def _begin_if_permitted(self, names: tuple[str, ...]) -> bool:
        """Append the decision of the policy and the intent. Return False, without an event, if the call must take the
        general path.
        """
        run, capability = self._run, self.call.capability
        try:
            verdict = find_plain_verdict(run, self._path, capability, self._input)
        except RuntimeErrorBase:
            return False
        if verdict is None:
            return False
        decision = decision_member(self._record_decision(verdict))
        self.call.intent.payload["decision"] = decision
        if not self._append_intent((self._input, decision), names):
            record = self.record()
            record.decision = decision
            record.begin(**intent_members(record, capability, self.call.member))
            self._intent = record.intent or ""
            self._intent_refused = True
        return True

    def _record_decision(self, verdict: Verdict) -> dict[str, str] | None:
        """Append the decision of the policy if it is recorded, and return the `decision` member of the intent."""
        run, call = self._run, self.call
        policy, decided = run.engine.policy, call.decided
        if policy is None or decided is None or not is_recorded(policy, verdict):
            return None
        capability, values = call.capability, self._input
        line, judged = decided.line, self._fill_decision(policy, decided, verdict)
        line.members.update(step_id=self._path, payload=line.payload)
        event = run.engine.append_line(call.lines, run, line, judged, (self._path,))
        if event is None:
            return record_verdict(run, self._path, capability, values, verdict)
        decided.verdict = verdict.without_reads
        return recorded_decision(run, verdict, event)

    def _fill_decision(
        self, policy: CallPolicy, decided: DecisionLine, verdict: Verdict
    ) -> tuple[object, ...]:
        """Set the payload of a decision, and return its values that may contain a secret. An unchanged verdict is not
        checked again: a new secret leads to a call with other lines.
        """
        line, values, known = decided.line, self._input, decided.verdict
        decided.verdict = None
        if known is None or known != verdict.without_reads:
            payload = decision_payload(self._run, self._path, self.call.capability, values, verdict)
            line.payload = payload.json
            return (line.payload,)
        evidence, reads = policy.decision_evidence(values), verdict.reads
        changed = {"step_id": self._path, "input_hash": hash_input(values), "reads": reads}
        line.payload = {**line.payload, **changed, **evidence}
        return (evidence, reads)

    def _append_intent(self, values: tuple[object, ...], names: tuple[str, ...]) -> bool:
        """Append the intent as a line, and return whether the journal accepted it."""
        call = self.call
        line, payload = call.intent, call.intent.payload
        line.members["step_id"] = payload["step_id"] = self._path
        payload["idempotency_key"] = self._idempotency_key
        payload["input"] = self._input
        payload["reads"] = [*self._reads]
        event = self._run.engine.append_line(call.lines, self._run, line, values, names)
        if event is None:
            return False
        self._note_begun()
        self._intent = event
        return True

    def add_reads(self, reads: dict[str, None]) -> None:
        """Add references that the closing event lists after those of the input."""
        if reads:
            self._reads |= reads

    def _note_begun(self) -> None:
        """Apply the intent to the state."""
        raise NotImplementedError

    def live_call(self) -> LiveCall:
        """Return the call which the recorded intent announces."""
        run, call = self._run, self.call
        number, deadline = 1, time.monotonic() + call.limit
        state = run.state
        attempt = self._attempt = new_tuple(
            Attempt,
            (
                call.capability_id,
                call.member,
                orjson.loads(self._input_json),
                call.effect,
                self._idempotency_key,
                state.run_id,
                self._path,
                number,
                deadline,
                Cancellation(NOT_BEGUN),
                state.trace_id,
                self._intent,
                None,
            ),
        )
        return LiveCall(run.engine, attempt, call.speed)

    def record_failure(self, error: RuntimeErrorBase) -> RuntimeErrorBase:
        """Return the error with which the general path continues after the call failed."""
        if self._attempt.cancel.unsent_reason:
            error.left = False
        return error

    def new_record(self) -> StepRecord:
        """Return the record with which this invocation starts on the general path."""
        raise NotImplementedError

    def record(self, answer: Answer | None = None) -> StepRecord:
        """Return the record that this invocation would have on the general path, before or after its intent, or after
        `answer`.
        """
        call = self.call
        record = self.new_record()
        record.reads |= self._reads
        record.set_target(call.target.uses, call.capability, self._input)
        record.chain, record.member = call.chain, call.member
        if self._intent:
            record.record_begun(self._intent)
        if answer is not None:
            self._note_answer(record, answer)
        return record

    def _note_answer(self, record: StepRecord, answer: Answer) -> None:
        record.attempts.append(attempt_from_answer(self.call.member, answer))
        record.count_call(answer.usage)

    def learn(self, answer: Answer) -> None:
        """Add the facts in the output, for the policy's decision about the next call."""
        engine = self._run.engine
        if engine.policy is not None:
            engine.policy.learn(self.call.capability_id, answer.output, engine.now)

    def measure(self) -> StepTimes:
        """Return the times of the invocation, which ends now."""
        clock = self._run.engine.clock
        took = milliseconds_since(self._started_seconds, clock)
        return new_tuple(StepTimes, (self._started_at, clock.now(), took))

    def _append_end(self, answer: Answer, times: StepTimes, writes: list[Json] | None) -> bool:
        """Append the closing event as a line, and return whether the journal accepted it. `writes` are those of a
        step. An item or a round has none.
        """
        run, call = self._run, self.call
        if self._intent_refused or call.lines.secrets_version is not call.secrets:
            return False
        if run.engine.deferred or answer.usage or (answer.record and "files" in answer.record):
            return False  # other events come first, or the closing event has members that the line lacks
        text = first_characters(self._input_json, EXCERPT)
        line, payload, metrics = call.end, call.end.payload, call.end.metrics
        line.members["step_id"] = payload["step_id"] = self._path
        line.members["caused_by"] = self._intent
        payload["action_id"] = action_of(self._intent)
        payload["input_excerpt"] = text
        payload["attempts"] = _attempts_of(call.member, answer) if answer.record else call.attempts
        payload["output"] = answer.output
        if writes is not None:
            payload["writes"] = writes
        payload["reads"] = [*self._reads]
        metrics["started_at"], metrics["completed_at"], metrics["duration_ms"] = times
        payload["latency_ms"] = times.duration_ms
        # The intent was judged, and a plain step writes only parts of its output. A truncated excerpt may end within
        # a value that was not masked whole.
        judged: tuple[object, ...] = (answer.output,)
        if answer.record or len(text) < len(self._input_json):
            judged = (text, answer.record, answer.output)
        return run.engine.append_line(call.lines, run, line, judged) is not None
