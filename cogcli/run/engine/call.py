"""The governed call: the only way to call a capability (docs/reference/execution.md#governed-call,
docs/reference/execution.md#safety).

1. Trust and confirmation, then pre-gates on a copy of the input.
2. A worker slot, then the write-ahead record: it is on disk before the call leaves.
3. Attempts along the pinned chain. Each attempt after the first has its own `call.retried` event.
4. Post-gates on a copy of the output. A refusal withholds the output, but the log still records it.
5. A gate is a governed call itself. An answer other than `allowed: true` or `allowed: false` blocks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal

from cogcli.base.calls import (
    HARMLESS,
    NOT_BEGUN,
    Answer,
    Attempt,
    BindingChain,
    Cancellation,
    Continuation,
    Member,
)
from cogcli.base.canonical import digest_of
from cogcli.base.errors import (
    CallTimeoutError,
    EffectInDoubtError,
    InputMappingError,
    InputRequiredError,
    RejectedError,
    ResponseMappingError,
    RuntimeErrorBase,
    SafetyConfirmationRequiredError,
)
from cogcli.base.jsonvalue import copy_writable, deep_copy
from cogcli.base.redact import Redactor
from cogcli.base.refs import MISSING
from cogcli.base.step_path import StepPath
from cogcli.declarations.call_records import AttemptMade
from cogcli.declarations.capability_spec import Capability, Gate
from cogcli.declarations.envelope import draft_of
from cogcli.declarations.events import CallRetried
from cogcli.declarations.governance_events import CallEvidence, GateDecided
from cogcli.policy import safety as safety_rules
from cogcli.run.engine.approval import ApprovalRequest
from cogcli.run.engine.context import Engine, Run
from cogcli.run.engine.doubt import find_replacement_answer
from cogcli.run.engine.effects import (
    CallSpeed,
    Cancelled,
    Effects,
    QuickCall,
    Turn,
    WorkerCall,
    WorkerSlot,
)
from cogcli.run.engine.input_request import find_continuation, may_wait, rejection_of
from cogcli.run.engine.outcome import CallSkipped
from cogcli.run.engine.output_masks import mask_answer, withhold_reply
from cogcli.run.engine.policy import (
    learn_facts,
    may_repeat,
    require_permitted,
    reserve_repeat,
    spend_call,
)
from cogcli.run.engine.step_recorder import StepRecord
from cogcli.specs.fields import fit_values
from cogcli.state.namespaces import walk

if TYPE_CHECKING:
    from cogcli.run.engine.step_recorder import IntentMembers

_REPEATED: Final = frozenset(("call.transport", "call.timeout", "call.overloaded"))
"""The error codes after which a binding's `retry_count` repeats the call, next to `_FAULT`."""
_FAULT: Final = "call.server-error"
_STATUSES: Final = {"call.circuit-open": "circuit_open", "input.required": "input_required"}
"""The status of an attempt by its error code. Any other one failed."""
_MAX_WAIT: Final = 60.0
_NO_ANSWER: Final = frozenset(
    ("call.transport", "call.circuit-open", "call.timeout", "step.timeout", "effect.in-doubt")
)
_BY_NAME: Final = Redactor()
_DECISIONS: Final[dict[str, Literal["allow", "audit", "veto"]]] = {"pass": "allow", "warn": "audit"}
"""Recorded decision by gate outcome. Any other outcome blocks the call."""
_DECISION: Final = {"verdict": "allow", "policy": "builtin.default"}


def governed_call(record: StepRecord, capability: Capability, values: dict[str, Any]) -> Effects:
    """Call the capability and return its checked outputs.

    Raise RuntimeErrorBase if the call fails, or CallSkipped if a gate or a person skips it.
    """
    try:
        safety = capability.safety
        output = _find_reused_output(record, capability, values)
        if output is None:
            yield from require_permitted(record, capability, values)
            output = yield from _make_permitted_call(record, capability, values)
            learn_facts(record, capability.id, output)
        if safety is not None and safety.mandatory_post_gates:
            # The output is on disk before a gate sees it: a refusal withholds it, but the call did happen.
            if record.reused_from is None:
                record.append_answer(output)
            given = {"input": values, "output": output}
            yield from _ask_gates(record, capability, "post", safety.mandatory_post_gates, given)
        return output
    except (Cancelled, CallTimeoutError):
        doubts = record.run.engine.doubts
        if doubts is None or not doubts.is_open(record.run_id, record.path):
            raise
        # Cancelled while in doubt: a closing event would hide that the call may have happened.
        record.record_effect()
        raise _doubt_error(capability, "the question for it was cut off") from None


def _make_permitted_call(
    record: StepRecord, capability: Capability, values: dict[str, Any]
) -> Effects:
    """Make the call, and settle its reservations of cumulative limits. After an unexpected error they are settled
    later, from the log.
    """
    try:
        yield from _require_allowed(record, capability, values)
        spend_call(record)
        return (yield from _call_chain(record, capability, values))
    except (RuntimeErrorBase, CallSkipped, Cancelled):
        if record.limits is not None:
            record.limits.settle_unfinished()
        raise


def _require_allowed(record: StepRecord, capability: Capability, values: dict[str, Any]) -> Effects:
    """Raise an error if the call lacks trust or confirmation, or if a pre-gate refuses it.

    Raise CallSkipped if a pre-gate skips it.
    """
    safety, engine, refusal = capability.safety, record.run.engine, None
    if safety is not None:
        trust, confirmed = engine.options.trust_level, engine.options.confirm
        refusal = safety_rules.refusal_before(
            capability.id, safety, trust_level=trust, confirmed=confirmed
        )
    refusal = refusal or safety_rules.refusal_of_earlier_request(
        capability.id, engine.requested_actions.get(record.path)
    )
    yield from _require_approved(record, capability, values, refusal, CallEvidence())
    if safety is not None:
        yield from _ask_gates(
            record, capability, "pre", safety.mandatory_pre_gates, {"input": values}
        )


def _find_reused_output(
    record: StepRecord, capability: Capability, values: dict[str, Any]
) -> dict[str, Any] | None:
    """Return the recorded output if a person chose to reuse it on rerun, or None if the call must be made.

    A reused output needs no permission, since no call is made. An idempotent call keeps its key. Raise RejectedError if
    the person chose to fail the call or the recorded input differs. Raise ResponseMappingError `response.type` for an
    output that breaks the contract.
    """
    earlier_calls = record.run.engine.earlier_calls
    earlier = earlier_calls and earlier_calls.find(record.path, capability.id, values)
    if not earlier:
        return None
    if earlier.idempotent:
        record.idempotency_key = earlier.idempotency_key
    if earlier.resolution is None or earlier.resolution.choice == "rerun":
        return None
    record.record_effect()
    if earlier.resolution.choice == "done" and not earlier.has_input(values):
        raise RejectedError(
            "call.rejected",
            f"`{capability.id}` has another input than in {earlier.origin['episode']}: that answer is none for it",
            hint="give it the input that it had, or run what is new by itself",
            left=False,
        )
    answer = find_replacement_answer(earlier.resolution, capability.id)
    kept, violations = fit_values(capability.outputs, deep_copy(answer.output) if answer else {})
    if violations:
        text = "; ".join(v.message for v in violations)
        raise ResponseMappingError(
            "response.type", f"the result of {earlier.origin['episode']}: {text}", left=False
        )
    record.reused_from = earlier.origin
    return kept


def _require_approved(
    record: StepRecord,
    capability: Capability,
    values: dict[str, Any],
    refusal: RuntimeErrorBase | None,
    evidence: CallEvidence,
) -> Effects:
    """Raise `refusal` if it is not None, unless it requires a confirmation and a person approved exactly this call."""
    if refusal is None:
        return
    if isinstance(refusal, SafetyConfirmationRequiredError):
        request = ApprovalRequest(record, capability, values, evidence)
        try:
            approved = request.is_approved()
        except RuntimeErrorBase:
            # A rejection cancels other steps: over a log the events recorded before it come first.
            yield from _wait_for_recorded_refusal(record)
            raise
        if approved:
            return
        yield from _wait_for_recorded_refusal(record)
        yield from request.ask_and_wait(refusal)
        return
    raise refusal


def _wait_for_recorded_refusal(record: StepRecord) -> Effects:
    """On resume and replay, wait for the log position at which this step was refused or requested its approval."""
    if (dispatcher := record.run.engine.dispatcher) is not None:
        yield Turn(dispatcher.judged_at(record.run_id, record.path))


def _wait_for_earlier_events(record: StepRecord) -> Effects:
    """On resume and replay, wait until all events recorded before the start or the end of this step are processed."""
    dispatcher = record.run.engine.dispatcher
    position = dispatcher.starts_at(record.run_id, record.path) if dispatcher else None
    if position is not None:
        yield Turn(position)


# -- attempts ---------------------------------------------------------------------------------------------------------


def _call_chain(record: StepRecord, capability: Capability, values: dict[str, Any]) -> Effects:
    engine = record.run.engine
    chain = engine.runner.chain(capability.id)
    yield from _wait_for_earlier_events(
        record
    )  # before a slot is taken: calls earlier in the log may need it
    yield from _acquire_slot(record.run)
    record.chain, record.member = chain, chain.members[0]
    _record_intent(record, capability, record.member)
    answer = yield from _try_chain(record, capability, chain, values)
    record.count_call(answer.usage)
    output: dict[str, Any] = answer.output
    return output


def continue_call(
    record: StepRecord, capability: Capability, values: dict[str, Any], failure: RuntimeErrorBase
) -> Effects:
    """Continue a call without effect whose first attempt failed on the plain path, and return its checked outputs.

    Raise RuntimeErrorBase if the call fails.
    """
    chain = record.run.engine.runner.chain(capability.id)
    answer = yield from _try_chain(record, capability, chain, values, failure)
    record.count_call(answer.usage)
    learn_facts(record, capability.id, answer.output)
    output: dict[str, Any] = answer.output
    return output


def _acquire_slot(run: Run) -> Effects:
    """Wait for a worker slot. Raise Cancelled after a signal, since no further call may be sent."""
    yield WorkerSlot()
    if run.engine.stopping:
        raise Cancelled(external=True)


def _record_intent(record: StepRecord, capability: Capability, member: Member) -> None:
    # After a power failure, a log without this intent means that the call did not leave: a limit's reservation is
    # then released. So the intent is synced before the call.
    durable = capability.effect in ("effect", "idempotent") or record.limits is not None
    record.begin(durable=durable, **intent_members(record, capability, member))


def intent_members(record: StepRecord, capability: Capability, member: Member) -> IntentMembers:
    """Return the members of `step.started` for the first attempt of a call."""
    return {
        "capability": capability.id,
        "binding": member.binding_id,
        "service": member.service_id,
        "attempt": 1,
        "idempotency_key": record.idempotency_key,
        "side_effects": capability.effect,
        "decision": decision_member(record.decision),
    }


def decision_member(recorded: dict[str, str] | None) -> dict[str, str]:
    """Return the member `decision` of `step.started` for a recorded decision, or for an unrecorded permission."""
    return recorded or _DECISION


def _try_chain(
    record: StepRecord, capability: Capability, chain: BindingChain, values: dict[str, Any],
    first_failure: RuntimeErrorBase | None = None,
) -> Effects:  # fmt: skip
    """Try the bindings of the chain in order and return the first Answer. With `first_failure` the first attempt was
    made already.

    If all fail, raise the error of the last attempt. Its message includes the first error.
    """
    attempts = _ChainAttempts(record, capability, values, first_failure)
    for position, member in enumerate(chain.members):
        _note_skipped_bindings(record, chain, position)
        record.member = member
        answer = yield from attempts.try_member(member)
        if answer is not None:
            return answer
        if not attempts.may_fall_back(member):
            break
    else:
        _note_skipped_bindings(record, chain, len(chain.members))
    raise chain_error(capability, attempts.first, attempts.failure, attempts.number)


class _ChainAttempts:
    """The attempts of one call at the bindings of its chain."""

    __slots__ = (
        "_before",
        "_capability",
        "_made_already",
        "_may_call_again",
        "_record",
        "_values",
        "failure",
        "first",
        "number",
    )

    def __init__(
        self,
        record: StepRecord,
        capability: Capability,
        values: dict[str, Any],
        made_already: RuntimeErrorBase | None,
    ) -> None:
        self._record = record
        self._capability = capability
        self._values = values
        self._made_already = made_already
        """The failure of the first attempt, if it was made before."""
        self._before = self.number = record.attempts_made
        self.first: RuntimeErrorBase | None = None
        """The error of the first attempt."""
        self.failure: RuntimeErrorBase
        """The error of the last attempt."""
        self._may_call_again = True

    def try_member(self, member: Member) -> Effects:
        """Try one binding, and repeat it at most `retry_count` times. Return its Answer, or None if no attempt
        succeeded.
        """
        wait = 0.0
        for repeat in range(member.retry_count + 1):
            self.number += 1
            if self.number > self._before + 1:
                yield from self._begin_next(member, "repeat" if repeat else "fallback", wait)
            answer = yield from self._complete_attempt(member)
            if answer is not None:
                return answer
            is_last = repeat == member.retry_count
            if is_last or not self._may_call_again or not _is_repeated(member, self.failure):
                return None
            wait = _backoff_seconds(member, repeat, self.failure)
            yield from self._record.wait(wait)
        return None

    def _begin_next(self, member: Member, reason: str, wait: float) -> Effects:
        """Spend, reserve and record an attempt after the first."""
        record = self._record
        spend_call(record)
        reserve_repeat(record, self._capability, self._values, self.number)
        yield from _acquire_slot(record.run)
        _record_repeat(record, member, self.number, reason, wait)

    def _complete_attempt(self, member: Member) -> Effects:
        """Make an attempt, and the next ones for as long as the service asks for input that a person has given.

        Return the Answer, or None after a failure. Raise InputRequiredError if an answer is missing: the run waits.
        """
        record, continuation = self._record, None
        while True:
            try:
                answer = yield from self._make_attempt(member, continuation)
                answer = mask_answer(answer, record.masks)
            except InputRequiredError as demand:
                if not may_wait(record):
                    self._note_failure(member, rejection_of(demand))
                    return None
                withhold_reply(demand, record.masks)
                record_failure(record, member, demand)
                _settle_limits(record, left=False)
                continuation = find_continuation(record, self._capability, self.number, demand)
            except RuntimeErrorBase as error:
                self._note_failure(member, error)
                return None
            else:
                record.attempts.append(attempt_from_answer(member, answer))
                _settle_limits(record, left=True)
                return answer
            self.number += 1
            yield from self._begin_next(member, "answered", 0.0)

    def _make_attempt(self, member: Member, continuation: Continuation | None) -> Effects:
        """Make one attempt and return its Answer, unless the first was made already."""
        if self._made_already is not None and self.number == 1:
            raise self._made_already
        record, values = self._record, self._values
        return (
            yield from _try_once(
                record, self._capability, member, self.number, values, continuation
            )
        )

    def _note_failure(self, member: Member, error: RuntimeErrorBase) -> None:
        """Record a failed attempt. A call that must not be repeated is final as soon as it may have left."""
        record = self._record
        withhold_reply(error, record.masks)
        record_failure(record, member, error)
        _settle_limits(record, left=error.left is not False)
        self.first = self.first or error
        self.failure = error
        is_repeatable = self._capability.effect in HARMLESS or error.left is False
        self._may_call_again = is_repeatable and may_repeat(record)

    def may_fall_back(self, member: Member) -> bool:
        """Return whether the next binding may be tried after the last failure."""
        is_answered = isinstance(self.failure, ResponseMappingError)
        if is_answered and member.fallback_on == "unanswered":
            return False
        return self.failure.falls_back and self._may_call_again


def _is_repeated(member: Member, failure: RuntimeErrorBase) -> bool:
    """Return whether the binding's `retry_count` applies to a failure."""
    return failure.code in _REPEATED or (failure.code == _FAULT and member.repeats_faults)


def _settle_limits(record: StepRecord, *, left: bool) -> None:
    if record.limits is not None:
        record.limits.settle(left=left)


def _try_once(
    record: StepRecord, capability: Capability, member: Member, number: int, values: dict[str, Any],
    continuation: Continuation | None,
) -> Effects:  # fmt: skip
    """Make one attempt and return its Answer. While an effect may be in flight, a failed sibling does not cancel the
    step.
    """
    shield = record.run.engine.loop.shield
    if record.limits is not None:
        record.limits.record_begun()
    yield from _settle_doubt(record, capability, number)
    has_effect = capability.effect == "effect"
    cancel = Cancellation(NOT_BEGUN)
    call = _build_worker_call(record, capability, member, number, values, cancel, continuation)
    shield(has_effect or StepPath(record.path).in_probe)
    try:
        answer = yield call
    except RuntimeErrorBase as error:
        if cancel.unsent_reason:
            error.left = False
        if error.left is False:
            shield(False)
        else:
            _note_possible_effect(record, capability, error)
        raise
    except CallSkipped:
        # A person skipped the call because it may have happened: no enclosing step may be retried.
        record.record_effect()
        raise
    except Cancelled:
        if not has_effect or cancel.unsent_reason:
            raise
        raise _doubt_error(capability, "it was cut off") from None
    if has_effect:
        record.record_effect()
    return answer


def _settle_doubt(record: StepRecord, capability: Capability, number: int) -> Effects:
    """Settle whether an earlier process made this attempt, and set the idempotency key of the call."""
    run, doubts = record.run, record.run.engine.doubts
    if doubts is None:
        return
    shield = run.engine.loop.shield
    shield(True)  # the success of a sibling does not settle the doubt
    key = record.idempotency_key
    record.idempotency_key = yield from doubts.settle(run, record.path, key, capability, number)
    shield(False)
    if not doubts.is_open(record.run_id, record.path):
        yield from _acquire_slot(run)  # the probe has released the slot


def _note_possible_effect(
    record: StepRecord, capability: Capability, error: RuntimeErrorBase
) -> None:
    """Record that a call that failed after it may have been sent may have had an effect."""
    if capability.effect == "unknown" and error.code in _NO_ANSWER:
        error.effect = "unknown"
        record.record_effect()
    elif capability.effect == "effect":
        record.record_effect()


def _build_worker_call(
    record: StepRecord, capability: Capability, member: Member, number: int, values: dict[str, Any],
    cancel: Cancellation, continuation: Continuation | None,
) -> WorkerCall:  # fmt: skip
    attempt = Attempt(
        capability_id=capability.id,
        member=member,
        input=copy_writable(values),
        effect=capability.effect,
        idempotency_key=record.idempotency_key,
        run_id=record.run_id,
        step_id=record.path,
        number=number,
        deadline=time.monotonic() + member.limit,
        cancel=cancel,
        trace_id=record.run.state.trace_id,
        intent=record.intent or "",
        continuation=continuation,
    )
    dispatcher = record.run.engine.dispatcher
    recorded = dispatcher.recorded(attempt) if dispatcher else None
    if recorded is None:
        engine = record.run.engine
        return LiveCall(engine, attempt, engine.find_call_speed(capability.id)).build_effect()
    return WorkerCall(
        recorded.answer,
        attempt.deadline,
        _bind_timeout_error(attempt),
        cancel.set,
        recorded.position,
    )


class LiveCall(QuickCall):
    """A call that makes one attempt and delays the request until the call begins. Its duration is added to `speed`.
    Every live call is a LiveCall.
    """

    __slots__ = ("_attempt", "_runner", "_speed")

    def __init__(self, engine: Engine, attempt: Attempt, speed: CallSpeed) -> None:
        self.deadline = attempt.deadline
        self._runner = engine.runner
        self._attempt = attempt
        self._speed = speed

    def perform(self) -> Answer:
        """Make the attempt on this thread."""
        attempt = self._attempt
        attempt.cancel.release()
        started = time.monotonic()
        try:
            return self._runner.attempt(attempt)
        finally:
            self._speed.note(time.monotonic() - started)

    def build_effect(self) -> WorkerCall:
        """Return the effect that makes the call off the coordinator."""
        attempt = self._attempt
        return WorkerCall(
            self.perform,
            self.deadline,
            _bind_timeout_error(attempt),
            attempt.cancel.set,
            is_quick=self._speed.is_quick,
        )


def _bind_timeout_error(attempt: Attempt) -> Callable[[], RuntimeErrorBase]:
    """Return a function that creates the error of an attempt that exceeded its time limit."""

    def timeout_error() -> RuntimeErrorBase:
        if attempt.cancel.unsent_reason:
            return CallTimeoutError("call.timeout", attempt.cancel.unsent_reason, left=False)
        seconds = attempt.member.limit
        return CallTimeoutError("call.timeout", f"no answer within {seconds:g} s", left=True)

    return timeout_error


def attempt_from_answer(member: Member, answer: Answer) -> AttemptMade:
    """Return the entry of a successful attempt for the `attempts` of the closing event."""
    entry: dict[str, Any] = {"binding_id": member.binding_id, "service_id": member.service_id}
    entry["status"] = "success"
    if answer.usage:
        entry["usage"] = dict(answer.usage)
    entry.update(answer.record or {})
    return AttemptMade.of(entry)


def record_failure(record: StepRecord, member: Member, error: RuntimeErrorBase) -> None:
    """Add a failed attempt to the `attempts` of the closing event."""
    error.binding_id, error.service_id = member.binding_id, member.service_id
    entry: dict[str, Any] = {"binding_id": member.binding_id, "service_id": member.service_id}
    status = _STATUSES.get(error.code, "failed")
    entry.update(status=status, code=error.code, message=error.message, left=error.left)
    if error.usage:
        entry["usage"] = dict(error.usage)
    entry.update(error.record or {})
    if error.code not in _NO_ANSWER and error.left:
        record.count_call(error.usage)
    record.attempts.append(AttemptMade.of(entry))


def _note_skipped_bindings(record: StepRecord, chain: BindingChain, position: int) -> None:
    """Add the bindings that were skipped at this position of the chain as `skipped` attempts."""
    for each in chain.passed_over:
        if each.before == position:
            passed_over = AttemptMade(
                binding_id=each.binding_id,
                service_id=each.service_id,
                status="skipped",
                code=each.code,
                message=each.message,
            )
            record.attempts.append(passed_over)


def _record_repeat(
    record: StepRecord, member: Member, number: int, reason: str, wait: float
) -> None:
    error = {
        k: v
        for k, v in record.last_made.json.items()
        if k not in ("binding_id", "service_id", "status")
    }
    payload = CallRetried(
        step_id=record.path,
        attempt=number,
        binding=member.binding_id,
        service=member.service_id,
        reason=reason,
        wait_ms=round(wait * 1000),
        error=error,
    )
    draft = draft_of(payload, record.run_id, step_id=record.path, speaker=member.binding_id)
    record.run.emit(draft, durable=record.durable)
    if record.limits is not None:
        record.limits.release_unsent()  # the event shows that the attempt before did not leave


def _backoff_seconds(member: Member, repeat: int, failure: RuntimeErrorBase) -> float:
    """Return the seconds to wait before the next attempt: the service's `retry_after`, or else the binding's backoff.
    The limit is 60.
    """
    wait = failure.retry_after
    if wait is None:
        wait = member.retry_backoff_base * member.retry_backoff_factor**repeat
    return max(0.0, min(wait, _MAX_WAIT))


def chain_error(
    capability: Capability, first: RuntimeErrorBase | None, last: RuntimeErrorBase, number: int
) -> RuntimeErrorBase:
    """Return the error of a chain in which no attempt succeeded.

    This is the last error, or EffectInDoubtError if an effect may have happened.
    """
    if last.code == "effect.in-doubt":
        return last
    if capability.effect == "effect" and last.code in _NO_ANSWER and last.left is not False:
        return _doubt_error(capability, last.message)
    if first is not None and first is not last:
        began = (first.binding_id, first.message)
        same = began == (last.binding_id, last.message)
        details = (
            "" if same else f", through `{last.binding_id}`; first through `{began[0]}`: {began[1]}"
        )
        last.message = f"{last.message} (attempt {number}{details})"
    return last


def _doubt_error(capability: Capability, why: str) -> EffectInDoubtError:
    return EffectInDoubtError(
        "effect.in-doubt", f"`{capability.id}` may have happened: {why}", left=True
    )


# -- gates ------------------------------------------------------------------------------------------------------------


def _ask_gates(
    record: StepRecord,
    capability: Capability,
    when: str,
    gates: tuple[Gate, ...],
    given: dict[str, dict[str, Any]],
) -> Effects:
    """Call the gates in order until one blocks. The strictest verdict decides: raise its refusal, or CallSkipped."""
    worst = safety_rules.GateVerdict("pass", "")
    worst_gate = ""
    for number, gate in enumerate(gates):
        path = StepPath(record.path).gate(when, number)
        verdict, asked = yield from _ask_gate(record, gate, path, given)
        _record_gate_decision(record.run, gate, path, verdict, asked)
        if safety_rules.stricter(worst, verdict) is verdict:
            worst, worst_gate = verdict, gate.capability
        if verdict.outcome in ("block", "error"):
            break
    refusal = safety_rules.refusal_of(worst_gate, worst)
    evidence = CallEvidence.of({"gate": worst_gate, "when": when, "output": given.get("output")})
    yield from _require_approved(record, capability, given["input"], refusal, evidence)
    if worst.outcome == "degrade":
        raise CallSkipped(f"gate `{worst_gate}`: {worst.reason}")


def _ask_gate(
    record: StepRecord, gate: Gate, path: str, given: dict[str, dict[str, Any]]
) -> Effects:
    """Call a gate, and return its verdict and its input. The input is None if the gate was not called. An error of the
    gate becomes the verdict `error`.
    """
    run = record.run
    capability = run.engine.capabilities.get(gate.capability)
    if capability is None:
        return safety_rules.GateVerdict("error", "unknown capability"), None
    inner = StepRecord(run, path, gate.capability, capability, "verify")
    try:
        values = given.get("output", given["input"])
        if gate.input is not None:
            found = {name: walk(given, tuple(path.split("."))) for name, path in gate.input.items()}
            values = {name: value for name, value in found.items() if value is not MISSING}
        reply = yield from consult(inner, capability, values)
    except (RuntimeErrorBase, CallSkipped) as error:
        verdict = safety_rules.GateVerdict("error", str(error))
    else:
        verdict = safety_rules.judge_gate(gate, reply)
    record.add_usage(inner.usage)
    return verdict, inner.input


def consult(inner: StepRecord, capability: Capability, values: dict[str, Any]) -> Effects:
    """Call a gate or a probe on behalf of a step, and return its reply.

    The call is governed like any other and has its own events. Its input consists of the members of `values` that the
    capability declares. If the call fails, append its closing event before raising the error.
    """
    try:
        kept, violations = fit_values(capability.inputs, deep_copy(values))
        if violations:
            raise InputMappingError("input.contract", "; ".join(v.message for v in violations))
        inner.input = kept
        reply = yield from governed_call(inner, capability, kept)
    except (RuntimeErrorBase, CallSkipped) as error:
        failure = error if isinstance(error, RuntimeErrorBase) else None
        inner.finish("failed", reason=failure.code if failure else "degraded", error=failure)
        raise
    except Cancelled as cancelled:
        inner.close_cancelled(cancelled)
        raise
    inner.finish("done", output=reply)
    return reply


def _record_gate_decision(
    run: Run, gate: Gate, path: str, verdict: safety_rules.GateVerdict, asked: dict[str, Any] | None
) -> None:
    warns = verdict.outcome == "warn"
    payload = GateDecided(
        decision=_DECISIONS.get(verdict.outcome, "veto"),
        verdict=verdict.outcome,
        gate=gate.capability,
        on_fail=gate.on_fail,
        reason=verdict.reason,
        enforced=not warns,
        warning="safety_gate_warning" if warns else None,
        # The hash is of the masked input: a reader of the log can recompute it, and it reveals no secret.
        input_hash=None if asked is None else digest_of(_BY_NAME.mask(asked)),
    )
    speaker = f"policy:{gate.capability}"
    run.emit(draft_of(payload, run.state.run_id, step_id=path, speaker=speaker))
