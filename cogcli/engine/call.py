"""The governed call: the one way to a capability (docs/reference/execution.md#governed-call,
docs/reference/execution.md#safety).

1. Trust and confirmation, then pre-gates on a copy of the input.
2. A worker slot, then the intent event: it is on disk before the call leaves.
3. Attempts along the pinned chain; each attempt after the first leaves its own intent.
4. Post-gates on a copy of the output; a refusal withholds the output, what happened stays recorded.
5. A gate is a governed call itself. Whatever is not exactly `allowed: true` or `false` blocks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from cogcli.core.calls import Answer, Attempt, BindingChain, Cancellation, Member
from cogcli.core.canonical import digest_of
from cogcli.core.errors import (
    CallTimeoutError,
    EffectInDoubtError,
    InputMappingError,
    RejectedError,
    ResponseMappingError,
    RuntimeErrorBase,
    SafetyConfirmationRequiredError,
    TransportError,
)
from cogcli.core.jsonvalue import deep_copy
from cogcli.core.redact import Redactor
from cogcli.core.refs import MISSING
from cogcli.core.step_path import StepPath
from cogcli.core.trace_ids import span_of, trace_of
from cogcli.engine import approval
from cogcli.engine.context import Run
from cogcli.engine.doubt import answer_of
from cogcli.engine.outcome import Degraded as Degraded
from cogcli.engine.step_recorder import StepRecord
from cogcli.engine.tasks import Cancelled, Effects, Sleep, Turn, WorkerCall, WorkerSlot
from cogcli.events import build
from cogcli.governance import safety as safety_rules
from cogcli.mapping.namespaces import walk
from cogcli.specs.capability import Capability, Gate
from cogcli.specs.fields import fit_values

_REPEATED: Final = frozenset(("call.transport", "call.timeout", "call.overloaded"))
"""What a binding's own `retry_count` repeats."""
_MAX_WAIT: Final = 60.0
_NO_ANSWER: Final = frozenset(
    ("call.transport", "call.circuit-open", "call.timeout", "step.timeout", "effect.in-doubt")
)
_BY_NAME: Final = Redactor()
_DECISION: Final = {"verdict": "allow", "policy": "builtin.default"}


def governed_call(run: Run, record: StepRecord, capability: Capability, values: dict[str, Any]) -> Effects:
    """The capability's checked outputs. Raises RuntimeErrorBase, or Degraded where a gate says so."""
    try:
        safety = capability.safety
        output = _reuse_output(run, record, capability, values)
        if output is None:
            yield from _require_allowed(run, record, capability, values)
            output = yield from _call_chain(run, record, capability, values)
        if safety is not None and safety.mandatory_post_gates:
            # What came back is on disk before anybody judges it: a refusal withholds it, but it did happen.
            if record.reused_from is None:
                record.append_answer(output)
            given = {"input": values, "output": output}
            yield from _ask_gates(run, record, capability, "post", safety.mandatory_post_gates, given)
        return output
    except (Cancelled, CallTimeoutError):
        doubts = run.engine.doubts
        if doubts is None or not doubts.open(run.state.run_id, record.path):
            raise
        # Cut off before anybody knew: an end of the step would hide that the call may have happened.
        record.note_effect()
        raise _doubt_error(capability, "the question for it was cut off") from None


def _require_allowed(run: Run, record: StepRecord, capability: Capability, values: dict[str, Any]) -> Effects:
    """Raise the error of trust, a missing confirmation or a pre-gate that refuses this call, or Degraded."""
    safety, options, refusal = capability.safety, run.engine.options, None
    if safety is not None:
        refusal = safety_rules.refusal_before(
            capability.id,
            safety,
            trust_level=options.trust_level,
            confirmed=options.confirmed_capabilities,
        )
    refusal = refusal or safety_rules.refusal_of_asked(capability.id, run.engine.asked.get(record.path))
    _require(run, record, capability, values, refusal, {})
    if safety is not None:
        yield from _ask_gates(run, record, capability, "pre", safety.mandatory_pre_gates, {"input": values})


def _reuse_output(
    run: Run, record: StepRecord, capability: Capability, values: dict[str, Any]
) -> dict[str, Any] | None:
    """On rerun: the recorded output, checked, where a person decided to reuse it; no call is made, so none has to be
    allowed. None where the call is made; an idempotent one keeps its key. Raises RejectedError where it is to fail, or
    the recorded input differs; ResponseMappingError `response.type`."""
    earlier = run.engine.earlier and run.engine.earlier.of(record.path, capability.id, values)
    if not earlier:
        return None
    if earlier.idempotent:
        record.idempotency_key = earlier.idempotency_key
    if earlier.resolution is None or earlier.resolution.choice == "rerun":
        return None
    record.note_effect()
    if earlier.resolution.choice == "done" and not earlier.was_given(values):
        raise RejectedError(
            "call.rejected",
            f"`{capability.id}` has another input than in {earlier.origin['episode']}: that answer is none for it",
            hint="give it the input that it had, or run what is new by itself",
            left=False,
        )
    answer = answer_of(earlier.resolution, capability.id)
    kept, violations = fit_values(capability.outputs, deep_copy(answer.output) if answer else {})
    if violations:
        text = "; ".join(v.message for v in violations)
        raise ResponseMappingError(
            "response.type", f"the result of {earlier.origin['episode']}: {text}", left=False
        )
    record.reused_from = earlier.origin
    return kept


def _require(
    run: Run,
    record: StepRecord,
    capability: Capability,
    values: dict[str, Any],
    refusal: RuntimeErrorBase | None,
    evidence: dict[str, Any],
) -> None:
    """Raise a refusal, unless it asks for a person and that person approved exactly this."""
    if refusal is None:
        return
    if isinstance(refusal, SafetyConfirmationRequiredError):
        if approval.require_approval(run, record, capability, values, evidence):
            return
        approval.ask(run, record, capability, values, evidence, refusal)
    raise refusal


# -- attempts ---------------------------------------------------------------------------------------------------------


def _call_chain(run: Run, record: StepRecord, capability: Capability, values: dict[str, Any]) -> Effects:
    chain = run.engine.runner.chain(capability.id)
    dispatcher = run.engine.dispatcher
    position = dispatcher.starts_at(run.state.run_id, record.path) if dispatcher else None
    if position is not None:
        yield Turn(position)  # without a slot: what the log has before this call needs it
    yield from _acquire_slot(run)
    record.chain, record.member = chain, chain.members[0]
    _record_intent(record, capability, chain)
    answer = yield from _try_chain(run, record, capability, chain, values)
    record.count_answer(answer)
    output: dict[str, Any] = answer.output
    return output


def _acquire_slot(run: Run) -> Effects:
    """Wait for a worker slot. Raises Cancelled after a signal: no call leaves any more."""
    yield WorkerSlot()
    if run.engine.stopping:
        raise Cancelled(outside=True)


def _record_intent(record: StepRecord, capability: Capability, chain: BindingChain) -> None:
    member = chain.members[0]
    effect = capability.effect
    record.begin(
        {
            "capability": capability.id,
            "binding": member.binding_id,
            "service": member.service_id,
            "attempt": 1,
            "idempotency_key": record.idempotency_key,
            "side_effects": effect,
            "decision": _DECISION,
        },
        durable=effect in ("effect", "idempotent"),
    )


def _try_chain(
    run: Run, record: StepRecord, capability: Capability, chain: BindingChain, values: dict[str, Any]
) -> Effects:
    """The first Answer along the chain. Raises the error of the last attempt, with the first one in its message."""
    before = number = record.attempts_made
    first: RuntimeErrorBase | None = None
    for place, member in enumerate(chain.members):
        _note_passed_over(record, chain, place)
        record.member = member
        wait = 0.0
        for repeat in range(member.retry_count + 1):
            number += 1
            if number > before + 1:
                yield from _acquire_slot(run)
                _record_repeat(run, record, member, number, "repeat" if repeat else "fallback", wait)
            try:
                answer = yield from _try_once(run, record, capability, member, number, values)
            except RuntimeErrorBase as error:
                _note_attempt(record, member, error)
                first = first or error
                failure = error
            else:
                _note_attempt(record, member, None, answer)
                return answer
            if repeat < member.retry_count and _may_repeat_attempt(capability, failure):
                wait = _backoff_seconds(member, repeat, failure)
                if not record.is_repeat_recorded:
                    yield Sleep(time.monotonic() + wait)
                continue
            break
        if not _may_fall_back(capability, failure):
            break
    else:
        _note_passed_over(record, chain, len(chain.members))
    raise _chain_error(capability, first, failure, number)


def _try_once(
    run: Run, record: StepRecord, capability: Capability, member: Member, number: int, values: dict[str, Any]
) -> Effects:
    """The Answer of one attempt. While an effect may have left, a failure beside it does not cancel the step."""
    if run.engine.doubts is not None:
        run.engine.loop.shield(True)  # a winner beside it does not settle what happened here
        record.idempotency_key = yield from run.engine.doubts.settle(
            run, record.path, record.idempotency_key, capability, number
        )
        run.engine.loop.shield(False)
        if not run.engine.doubts.open(run.state.run_id, record.path):
            yield from _acquire_slot(run)  # a probe has released its own
    shield = run.engine.loop.shield
    cancel = Cancellation()
    call = _worker_call(run, record, capability, member, number, values, cancel)
    shield(capability.effect == "effect" or StepPath(record.path).in_probe)
    try:
        answer = yield call
    except RuntimeErrorBase as error:
        if cancel.stayed:
            error.left = False
        if error.left is False:
            shield(False)
        else:
            _note_unanswered(record, capability, error)
        raise
    except Degraded:
        # Left out by a person because it may have happened: nothing around it may be repeated.
        record.note_effect()
        raise
    except Cancelled:
        if capability.effect != "effect" or cancel.stayed:
            raise
        raise _doubt_error(capability, "it was cut off") from None
    if capability.effect == "effect":
        record.note_effect()
    return answer


def _note_unanswered(record: StepRecord, capability: Capability, error: RuntimeErrorBase) -> None:
    """Note that a failed call that may have left must not be repeated, if its class says so."""
    in_doubt = capability.effect == "unknown" and error.code in _NO_ANSWER
    if in_doubt:
        error.effect = "unknown"
    if in_doubt or capability.effect == "effect":
        record.note_effect()


def _worker_call(
    run: Run, record: StepRecord, capability: Capability, member: Member, number: int, values: dict[str, Any],
    cancel: Cancellation,
) -> WorkerCall:  # fmt: skip
    limit = member.limit
    deadline = time.monotonic() + limit
    place = record.siblings.announce() if record.siblings else None
    attempt = Attempt(
        capability_id=capability.id,
        member=member,
        input=deep_copy(values),
        effect=capability.effect,
        idempotency_key=record.idempotency_key,
        run_id=run.state.run_id,
        step_id=record.path,
        number=number,
        deadline=deadline,
        cancel=cancel,
        traceparent=_traceparent(run, record, number),
        place=place,
    )
    runner, dispatcher = run.engine.runner, run.engine.dispatcher
    recorded = dispatcher.recorded(attempt) if dispatcher else None
    perform = recorded.answer if recorded else lambda: runner.attempt(attempt)
    return WorkerCall(
        lambda: _perform_attempt(attempt, perform),
        deadline,
        _late_error(limit, cancel),
        cancel.set,
        recorded.position if recorded else None,
    )


def _perform_attempt(attempt: Attempt, perform: Callable[[], Answer]) -> Answer:
    """Make an attempt; whether it succeeds or fails, its batch no longer waits for it."""
    try:
        return perform()
    finally:
        if attempt.place is not None:
            attempt.place.settle()


def _traceparent(run: Run, record: StepRecord, number: int) -> str:
    """The W3C header of an attempt: its span is known before it leaves (docs/reference/protocols.md#export)."""
    if record.intent is None:
        return ""
    return f"00-{trace_of(run.state.trace_id)}-{span_of(record.intent, number)}-01"


def _late_error(limit: float, cancel: Cancellation | None = None) -> Callable[[], Exception]:
    """Makes the error of a call past its limit: CallTimeoutError, or TransportError where nothing had left."""

    def error() -> Exception:
        if cancel is not None and cancel.stayed:
            return TransportError("call.transport", cancel.stayed, left=False)
        return CallTimeoutError("call.timeout", f"no answer within {limit:g} s", left=True)

    return error


def _note_attempt(
    record: StepRecord,
    member: Member,
    error: RuntimeErrorBase | None,
    answer: Answer | None = None,
) -> None:
    """Add an attempt's entry to those of the closing event."""
    entry: dict[str, Any] = {"binding_id": member.binding_id, "service_id": member.service_id}
    if error is None:
        entry["status"] = "success"
        if answer and answer.usage:
            entry["usage"] = dict(answer.usage)
        entry.update((answer and answer.record) or {})
    else:
        error.binding_id, error.service_id = member.binding_id, member.service_id
        status = "circuit_open" if error.code == "call.circuit-open" else "failed"
        entry.update(status=status, code=error.code, message=error.message, left=error.left)
        entry.update(error.record or {})
        if error.code not in _NO_ANSWER and error.left:
            record.usage["tool_calls"] += 1
    record.attempts.append(entry)


def _note_passed_over(record: StepRecord, chain: BindingChain, place: int) -> None:
    """Add the bindings at this place of the chain that could not be called, as `skipped` attempts."""
    for each in chain.passed_over:
        if each.before == place:
            told = {"binding_id": each.binding_id, "service_id": each.service_id, "status": "skipped"}
            record.attempts.append({**told, "code": each.code, "message": each.message})


def _record_repeat(
    run: Run, record: StepRecord, member: Member, number: int, reason: str, wait: float
) -> None:
    payload = {
        "attempt": number,
        "binding": member.binding_id,
        "service": member.service_id,
        "reason": reason,
        "wait_ms": round(wait * 1000),
        "error": {
            k: v for k, v in record.last_made.items() if k not in ("binding_id", "service_id", "status")
        },
    }
    draft = build.call_retried(run.state.run_id, record.path, payload=payload, speaker=member.binding_id)
    run.emit(draft, durable=record.durable)


def _may_repeat_attempt(capability: Capability, error: RuntimeErrorBase) -> bool:
    """Whether the binding's `retry_count` applies: never once a call that must not be repeated may have left."""
    return error.code in _REPEATED and (capability.effect in ("none", "idempotent") or error.left is False)


def _may_fall_back(capability: Capability, error: RuntimeErrorBase) -> bool:
    return error.falls_back and (capability.effect in ("none", "idempotent") or error.left is False)


def _backoff_seconds(member: Member, repeat: int, failure: RuntimeErrorBase) -> float:
    """Seconds until the next attempt: the service's `retry_after`, else the binding's backoff; at most 60."""
    wait = failure.retry_after
    if wait is None:
        wait = member.retry_backoff_base * member.retry_backoff_factor**repeat
    return max(0.0, min(wait, _MAX_WAIT))


def _chain_error(
    capability: Capability, first: RuntimeErrorBase | None, last: RuntimeErrorBase, number: int
) -> RuntimeErrorBase:
    """The error of a chain without an answer: the last one, or EffectInDoubtError where an effect may have happened."""
    if last.code == "effect.in-doubt":
        return last
    if capability.effect == "effect" and last.code in _NO_ANSWER and last.left is not False:
        return _doubt_error(capability, last.message)
    if first is not None and first is not last:
        last.message = (
            f"{last.message} (attempt {number}, through `{last.binding_id}`;"
            f" first through `{first.binding_id}`: {first.message})"
        )
    return last


def _doubt_error(capability: Capability, why: str) -> EffectInDoubtError:
    return EffectInDoubtError("effect.in-doubt", f"`{capability.id}` may have happened: {why}", left=True)


# -- gates ------------------------------------------------------------------------------------------------------------


def _ask_gates(
    run: Run,
    record: StepRecord,
    capability: Capability,
    when: str,
    gates: tuple[Gate, ...],
    given: dict[str, dict[str, Any]],
) -> Effects:
    """Ask gates in order until one blocks; else the strictest answer counts. Raises its refusal, or Degraded."""
    worst = safety_rules.GateVerdict("pass", "")
    worst_gate = ""
    for number, gate in enumerate(gates):
        path = StepPath(record.path).gate(when, number)
        verdict, asked = yield from _ask_gate(run, record, gate, path, given)
        _record_gate_decision(run, gate, path, verdict, asked)
        if safety_rules.stricter(worst, verdict) is verdict:
            worst, worst_gate = verdict, gate.capability
        if verdict.outcome in ("block", "error"):
            break
    refusal = safety_rules.refusal_of(worst_gate, worst)
    evidence = {"gate": worst_gate, "when": when, "output": given.get("output")}
    _require(run, record, capability, given["input"], refusal, evidence)
    if worst.outcome == "degrade":
        raise Degraded(f"gate `{worst_gate}`: {worst.reason}")


def _ask_gate(
    run: Run, record: StepRecord, gate: Gate, path: str, given: dict[str, dict[str, Any]]
) -> Effects:
    """A gate's verdict, and its input (None where it was not called). Any error of it is the verdict `error`."""
    capability = run.engine.capabilities.get(gate.capability)
    if capability is None:
        return safety_rules.GateVerdict("error", "unknown capability"), None
    inner = StepRecord(run, path, gate.capability, capability, "verify")
    try:
        reply = yield from consult(run, inner, capability, _gate_input(gate, given))
    except (RuntimeErrorBase, Degraded) as error:
        verdict = safety_rules.GateVerdict("error", str(error))
    else:
        verdict = safety_rules.judge_gate(gate, reply)
    record.add_usage(inner.usage)
    return verdict, inner.input


def _gate_input(gate: Gate, given: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A gate's input: its own mapping, else the output if there is one, else the input."""
    if gate.input is None:
        return given.get("output", given["input"])
    found = {name: walk(given, tuple(path.split("."))) for name, path in gate.input.items()}
    return {name: value for name, value in found.items() if value is not MISSING}


def consult(run: Run, inner: StepRecord, capability: Capability, values: dict[str, Any]) -> Effects:
    """The reply of a call inside a step, a gate's or a probe's: governed like any other, with events of its own. It is
    given the equally named fields of these values. Raises its error, after its closing event."""
    try:
        kept, violations = fit_values(capability.inputs, deep_copy(values))
        if violations:
            raise InputMappingError("input.contract", "; ".join(v.message for v in violations))
        inner.input = kept
        reply = yield from governed_call(run, inner, capability, kept)
    except (RuntimeErrorBase, Degraded) as error:
        failure = error if isinstance(error, RuntimeErrorBase) else None
        inner.finish("failed", reason=failure.code if failure else "degraded", error=failure)
        raise
    except Cancelled as cut:
        inner.cut_off(cut)
        raise
    inner.finish("done", output=reply)
    return reply


def _record_gate_decision(
    run: Run, gate: Gate, path: str, verdict: safety_rules.GateVerdict, asked: dict[str, Any] | None
) -> None:
    decision = {"pass": "allow", "warn": "audit"}.get(verdict.outcome, "veto")
    payload = {
        "decision": decision,
        "verdict": verdict.outcome,
        "gate": gate.capability,
        "on_fail": gate.on_fail,
        "reason": verdict.reason,
        "enforced": verdict.outcome != "warn",
    }
    if asked is not None:
        # Of what the log has: whoever reads it can compute the same, and learns nothing of what it masks.
        payload["input_hash"] = digest_of(_BY_NAME.mask(asked))
    draft = build.gate_decided(run.state.run_id, path, payload=payload, speaker=f"policy:{gate.capability}")
    run.emit(draft)
