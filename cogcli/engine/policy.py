"""What the policy of a run says of a call, before its safety level and before it leaves
(docs/reference/pack.md#governed-calls)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cogcli.core.canonical import digest_of
from cogcli.core.errors import BudgetExceededError, PolicyApprovalError, PolicyDeniedError, RuntimeErrorBase
from cogcli.core.redact import Redactor
from cogcli.core.step_path import StepPath
from cogcli.engine.approval import ApprovalRequest
from cogcli.engine.step_recorder import StepRecord
from cogcli.events import build
from cogcli.specs.capability import Capability

if TYPE_CHECKING:
    from cogcli.governance.verdict import Verdict

ONE_CALL: Final = {"tool_calls.per_turn": 1, "tool_calls.per_workflow": 1}
_BY_NAME: Final = Redactor()


def require_permitted(record: StepRecord, capability: Capability, values: dict[str, Any]) -> None:
    """Raise the error of a call that the policy denies, refuses, or wants a person for; nothing without a policy.

    Safety gates and probes have no effects and need no entry in a pack.
    """
    run, policy = record.run, record.run.engine.policy
    if policy is None or _is_question(record):
        return
    from cogcli.governance.run_policy import RunState

    state = run.state
    seen = RunState(state.inputs, state.vars, state.outputs, 1, run.engine.now)
    services = tuple(member.service_id for member in run.engine.runner.chain(capability.id).members)
    verdict = policy.judge(capability, values, seen, record.path, services)
    if policy.records_allow or verdict.decision != "allow":
        record.decision = _record_verdict(record, capability, values, verdict)
    if verdict.gate and verdict.verdict in ("allow_with_gate", "escalate"):
        _require_gate(record, capability, values, verdict)
    elif not verdict.allows:
        raise _refusal(capability, verdict)


def spend_call(record: StepRecord) -> None:
    """Count an attempt against the budgets of the run. Raises BudgetExceededError where one has nothing left."""
    policy = record.run.engine.policy
    if policy is None or _is_question(record):
        return
    from cogcli.governance.budgets import Exceeded

    reserved = policy.budgets.reserve(ONE_CALL)
    if isinstance(reserved, Exceeded):
        draft = build.budget_exceeded(record.run_id, record.path, **reserved._asdict())
        record.run.emit(draft)
        text = f"{reserved.key}: {reserved.used} of {reserved.limit} are used"
        raise BudgetExceededError(
            "budget.exceeded", text, hint=f"give it more with --budget {reserved.key}=N"
        )
    reserved.commit()


def learn_facts(record: StepRecord, capability: Capability, output: dict[str, Any]) -> None:
    """Take up the facts of an output for the rules of the next call."""
    policy = record.run.engine.policy
    if policy is not None:
        policy.learn(capability.id, output)


def _is_question(record: StepRecord) -> bool:
    path = StepPath(record.path)
    return path.is_gate or path.in_probe


def _record_verdict(
    record: StepRecord, capability: Capability, values: dict[str, Any], verdict: Verdict
) -> dict[str, str]:
    """Append the decision; what `step.started` says of it."""
    payload = {
        **verdict.to_payload(),
        "capability": capability.id,
        "step_id": record.path,
        "input_hash": digest_of(_BY_NAME.mask(values)),
    }
    event = record.run.emit(build.policy_decided(record.run_id, record.path, payload=payload, caused_by=None))
    policy = record.run.engine.policy
    return {"verdict": verdict.verdict, "policy": policy.name if policy else "", "event": event.id}


def _require_gate(
    record: StepRecord, capability: Capability, values: dict[str, Any], verdict: Verdict
) -> None:
    """Raise PolicyApprovalError unless a person approved exactly this call at this gate."""
    policy = record.run.engine.policy
    if policy is None:
        return
    evidence = {
        "gate": verdict.gate,
        "rule": verdict.rule,
        "reads": verdict.reads,
        "verdict": verdict.verdict,
        "policy": policy.name,
    }
    gate = policy.gate(verdict.gate)
    request = ApprovalRequest(record, capability, values, evidence, gate)
    if request.is_approved():
        return
    refusal = _refusal(capability, verdict)
    roles = gate.approver_roles
    refusal.hint = (
        f"somebody of the role {' or '.join(roles)} answers with --by NAME:{roles[0]}" if roles else ""
    )
    request.ask(refusal)
    raise refusal


def _refusal(capability: Capability, verdict: Verdict) -> RuntimeErrorBase:
    """The error of a verdict that is not `allow`."""
    rule = f" by rule `{verdict.rule}`" if verdict.rule else ""
    text = f"`{capability.id}`: {verdict.reason} ({verdict.stage}{rule})"
    if verdict.verdict == "allow_with_gate":
        return PolicyApprovalError(
            "policy.approval", f"`{capability.id}` waits for {verdict.gate}: {verdict.reason}"
        )
    if verdict.verdict == "escalate":
        return PolicyApprovalError("policy.escalated", text)
    code = "policy.refused" if verdict.verdict == "refuse" else "policy.denied"
    return PolicyDeniedError(code, text)
