"""The run policy's decisions about a call, made before the safety level applies and before the call is sent
(docs/reference/pack.md#governed-calls).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cogcli.base.canonical import digest_of
from cogcli.base.errors import (
    BudgetExceededError,
    PolicyApprovalError,
    PolicyDeniedError,
    RuntimeErrorBase,
)
from cogcli.base.redact import BY_NAME
from cogcli.base.step_path import StepPath
from cogcli.declarations.call_records import ResultOrigin
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.envelope import draft_of
from cogcli.declarations.governance_events import BudgetExceeded, CallEvidence, PolicyDecided
from cogcli.policy.verdict import LiftedGates, Verdict
from cogcli.run.engine.approval import ApprovalRequest
from cogcli.run.engine.effects import Effects, Turn
from cogcli.run.engine.step_recorder import StepRecord
from cogcli.state.execution import RunState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cogcli.policy.approvals import ApprovalAnswer
    from cogcli.policy.limits import LimitClaim
    from cogcli.run.engine.context import Run
    from cogcli.run.engine.limits import CallReservations
    from cogcli.run.engine.ports import CallPolicy

ONE_CALL: Final = {"tool_calls.per_turn": 1, "tool_calls.per_workflow": 1}


def require_permitted(
    record: StepRecord, capability: Capability, values: dict[str, Any]
) -> Effects:
    """Raise an error if the policy denies or refuses the call, or if a required approval is missing. Without a policy,
    return immediately.

    An approval satisfies only the gate that required it. The call is judged again as of the time of the answer, or of
    the resumption after it. Safety gates and probes have no effects and need no entry in a pack. When this returns, the
    call's amounts of cumulative limits are reserved.
    """
    engine = record.run.engine
    policy = engine.policy
    record.masks = ()
    if policy is None or _is_gate_or_probe(record):
        return
    lifted = LiftedGates()
    verdict = _decide_call(policy, record, capability, values, engine.now, lifted)
    while verdict.asks:
        answer = yield from _require_answer(policy, record, capability, values, verdict)
        lifted.add((verdict.outcome, verdict.gate))
        yield from _wait_until(record, answer)
        verdict = _decide_call(
            policy, record, capability, values, answer.judged_at, lifted, answer.event or None
        )
    if not verdict.allows:
        refusal = _refusal_from_verdict(policy, capability, verdict)
        refusal.hint = policy.explain_refusal(verdict.reason)
        raise refusal
    record.masks = verdict.masks


def find_plain_verdict(
    run: Run, path: str, capability: Capability, values: dict[str, Any]
) -> Verdict | None:
    """Return the policy's verdict on a call that is allowed immediately, and charge the call to the budgets.

    Return None, with nothing charged or recorded, if the call is refused, needs an approval or exceeds a budget. Also
    return None if its outputs must be masked, or if a cumulative limit counts it.
    """
    policy = run.engine.policy
    if policy is None:
        return None
    verdict = _judge_call(policy, run, path, capability, values, run.engine.now)
    if verdict.asks or not verdict.allows or verdict.masks:
        return None
    if policy.has_limits and policy.find_claims(capability.id, values):
        return None
    return None if policy.budgets.charge(ONE_CALL) else verdict


def is_recorded(policy: CallPolicy, verdict: Verdict) -> bool:
    """Return whether the policy records this decision about a call."""
    return policy.records_allow or verdict.decision != "allow"


def decision_payload(
    run: Run, path: str, capability: Capability, values: dict[str, Any], verdict: Verdict
) -> PolicyDecided:
    """Return the payload of the event that records a decision about a call."""
    policy = run.engine.policy
    return PolicyDecided(
        **verdict.to_payload(),
        capability=capability.id,
        step_id=path,
        input_hash=hash_input(values),
        **(policy.decision_evidence(values) if policy else {}),
        inside=list(run.enclosing_tools) or None,
    )


def hash_input(values: dict[str, Any]) -> str:
    """Return the digest of an input without the values of secret names."""
    return digest_of(BY_NAME.mask(values))


def recorded_decision(run: Run, verdict: Verdict, event: str) -> dict[str, str]:
    """Return the `decision` member of `step.started` for the decision that this event records."""
    policy = run.engine.policy
    name = policy.name if policy else ""
    return {"verdict": verdict.outcome, "policy": name, "event": event}


def _decide_call(
    policy: CallPolicy,
    record: StepRecord,
    capability: Capability,
    values: dict[str, Any],
    now: str,
    lifted: LiftedGates,
    answer: str | None = None,
) -> Verdict:
    """Record and return the policy's verdict on a call as of the time `now`. `answer` is the event id of the person's
    answer that led to the decision.
    """
    judged = _judge_call(policy, record.run, record.path, capability, values, now)
    claims = policy.find_claims(capability.id, values) if policy.has_limits else ()
    limits = _open_reservations(record, claims)
    record.limits = limits
    verdict = limits.decide(judged, lifted, answer) if limits else lifted.lift(judged)
    record.decision = None
    if is_recorded(policy, verdict):
        record.decision = record_verdict(
            record.run, record.path, capability, values, verdict, answer
        )
    while limits is not None and record.decision is not None:
        cause = record.decision["event"]
        again = limits.decide_again(judged, lifted, verdict, cause)
        if again is None:
            break
        verdict = again
        record.decision = record_verdict(
            record.run, record.path, capability, values, verdict, cause
        )
    return verdict


def _open_reservations(record: StepRecord, claims: Sequence[LimitClaim]) -> CallReservations | None:
    if not claims:
        return None
    from cogcli.run.engine.limits import CallReservations  # for packs with limits alone

    return CallReservations(record, claims, record.limits)


def enter_skill(record: StepRecord, skill_id: str, values: dict[str, Any]) -> Effects:
    """Return the skill tools that contain the calls of a nested run.

    If the skill is a tool itself, it needs a permission first: raises the same errors as `require_permitted`.
    """
    policy, enclosing_tools = record.run.engine.policy, record.run.enclosing_tools
    tool = policy.tool(skill_id) if policy else None
    if tool is None:
        return enclosing_tools
    yield from require_permitted(record, tool, values)
    return (*enclosing_tools, tool.id)


def _judge_call(
    policy: CallPolicy,
    run: Run,
    path: str,
    capability: Capability,
    values: dict[str, Any],
    now: str,
) -> Verdict:
    """Return the policy's verdict on a call as of the time `now`."""
    state, engine = run.state, run.engine
    seen = RunState(state.inputs, state.vars, state.outputs, now, run.enclosing_tools)
    members = () if capability.reaches else engine.runner.chain(capability.id).members
    services = tuple([member.service_id for member in members])
    return policy.judge(capability, values, seen, path, services)


def _wait_until(record: StepRecord, answer: ApprovalAnswer) -> Effects:
    """On resume and replay, wait until all events that were recorded before the use of this answer are processed."""
    dispatcher = record.run.engine.dispatcher
    position = dispatcher.redeemed_at(answer.event) if dispatcher else None
    if position is not None:
        yield Turn(position)


def spend_call(record: StepRecord) -> None:
    """Charge one attempt to the budgets of the run. Raise BudgetExceededError if a budget is exhausted."""
    policy = record.run.engine.policy
    if policy is None or _is_gate_or_probe(record):
        return
    from cogcli.policy.budgets import budget_hint

    overrun = policy.budgets.charge(ONE_CALL)
    if overrun is not None:
        payload = BudgetExceeded(key=overrun.key, used=overrun.used, limit=overrun.limit)
        record.run.emit(draft_of(payload, record.run_id, step_id=record.path))
        text = f"{overrun.key}: {overrun.used} of {overrun.limit} are used"
        hint = budget_hint(overrun.key, pack=policy.records_allow)
        raise BudgetExceededError("budget.exceeded", text, hint=hint)


def reserve_repeat(
    record: StepRecord, capability: Capability, values: dict[str, Any], number: int
) -> None:
    """Reserve for another attempt of a call. Raise PolicyDeniedError if a limit leaves no room for it."""
    policy, limits, decision = record.run.engine.policy, record.limits, record.decision
    if policy is None or limits is None or decision is None:
        return
    denied = limits.repeat(number, decision["event"])
    if denied is not None:
        record_verdict(record.run, record.path, capability, values, denied, decision["event"])
        raise _refusal_from_verdict(policy, capability, denied)


def may_repeat(record: StepRecord) -> bool:
    """Return whether the policy allows another attempt of the call."""
    policy = record.run.engine.policy
    return policy is None or policy.retries is None or record.attempts_made <= policy.retries


def learn_facts(record: StepRecord, called: str, output: dict[str, Any]) -> None:
    """Add the facts in the output of a capability or of `skill:ID`. The rules for the next call read them."""
    policy = record.run.engine.policy
    if policy is not None:
        policy.learn(called, output, record.run.engine.now)


def learn_reused_facts(record: StepRecord, called: str | None, output: dict[str, Any]) -> None:
    """Add the facts in a reused output, as of the time when the output was recorded.

    So rules decide as after the call itself, and evidence that is too old stays too old. An output without its time
    gives no facts.
    """
    policy = record.run.engine.policy
    at = ResultOrigin.of(dict(record.reused_from)).at if record.reused_from else ""
    if policy is not None and called and at:
        policy.learn(called, output, at)


def _is_gate_or_probe(record: StepRecord) -> bool:
    path = StepPath(record.path)
    return path.in_call and (path.is_gate or path.in_probe)


def record_verdict(
    run: Run,
    path: str,
    capability: Capability,
    values: dict[str, Any],
    verdict: Verdict,
    answer: str | None = None,
) -> dict[str, str]:
    """Append the decision and return the `decision` member of `step.started`. `answer` is the event id of the cause: a
    person's answer, or an earlier decision.
    """
    payload = decision_payload(run, path, capability, values, verdict)
    draft = draft_of(payload, run.state.run_id, step_id=path, caused_by=answer)
    return recorded_decision(run, verdict, run.emit(draft).id)


def _require_answer(
    policy: CallPolicy,
    record: StepRecord,
    capability: Capability,
    values: dict[str, Any],
    verdict: Verdict,
) -> Effects:
    """Return a person's approval of exactly this call at this gate. Without one, append a request. Raise
    PolicyApprovalError unless the run continues during the wait.
    """
    evidence = CallEvidence.of(
        {
            "gate": verdict.gate,
            "rule": verdict.rule,
            "reads": verdict.reads,
            "verdict": verdict.outcome,
            "policy": policy.name,
        }
    )
    gate = policy.gate(verdict.gate)
    request = ApprovalRequest(record, capability, values, evidence, gate)
    answer = request.use_answer()
    if answer is not None:
        return answer
    refusal = _refusal_from_verdict(policy, capability, verdict)
    roles = gate.approver_roles
    refusal.hint = (
        f"a person of the role {' or '.join(roles)} answers with --by NAME:{roles[0]}"
        if roles
        else ""
    )
    return (yield from request.ask_and_wait(refusal))


def _refusal_from_verdict(
    policy: CallPolicy, capability: Capability, verdict: Verdict
) -> RuntimeErrorBase:
    """Return the error for a verdict other than `allow`, with the text that the pack has for its reason."""
    refusal = _error_from_verdict(capability, verdict)
    refusal.say = policy.find_say(verdict.reason, verdict.reads)
    return refusal


def _error_from_verdict(capability: Capability, verdict: Verdict) -> RuntimeErrorBase:
    rule = f" by rule `{verdict.rule}`" if verdict.rule else ""
    text = f"`{capability.id}`: {verdict.reason} ({verdict.stage}{rule})"
    if verdict.outcome == "allow_with_gate":
        return PolicyApprovalError(
            "policy.approval", f"`{capability.id}` waits for {verdict.gate}: {verdict.reason}"
        )
    if verdict.outcome == "escalate":
        return PolicyApprovalError("policy.escalated", text)
    code = "policy.refused" if verdict.outcome == "refuse" else "policy.denied"
    return PolicyDeniedError(code, text)
