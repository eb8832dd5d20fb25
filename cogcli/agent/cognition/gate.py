"""The policy gate: guardrails and policy judge the candidate before any effect (docs/reference/agent-run.md#gate)."""

from __future__ import annotations

from cogcli.agent.cognition.critic import FailedCheck, Verification
from cogcli.agent.cognition.ends import Denial, denied_call
from cogcli.agent.cognition.plan_limits import limit_plan
from cogcli.agent.cognition.plan_policy import (
    PlannedCall,
    check_planned_calls,
    find_known_arguments,
)
from cogcli.agent.cognition.progress import Progress
from cogcli.agent.context.compiler import CompiledContext
from cogcli.declarations.run_start import LATEST_EDITION
from cogcli.declarations.value_types import Json
from cogcli.policy.guardrails import find_guardrails_for_text, find_guardrails_for_value
from cogcli.policy.verdict import Verdict

_DENIED = "policy.denied"


def apply_policy_gate(
    loop: Progress, context: CompiledContext, verification: Verification
) -> tuple[Verification, bool]:
    """Apply the policy to a plan. Return the critic's verdict, with a fail for each denied call, and whether the plan
    may run.

    The governed call decides each call again, with all its arguments. Raise PolicyApprovalError if a person must
    decide about the plan.
    """
    calls, counters = limit_plan(loop.policy, loop.root, _decide_calls(loop, verification))
    denial = _find_denial(loop, verification)
    if not denial and (fails := _deny_calls(loop, calls)):
        verification, denial = Verification(fails), "deny"
    if not denial and not loop.skips_action:
        denial = _escalate_plan(loop)
    gates = _find_gates(loop, context, calls) if not denial else []
    verdict = denial or ("allow_with_gate" if gates else "allow")
    writes: Json = {"verdict": verdict, "obligations": gates}
    if calls:
        writes["calls"] = [call.to_payload() for call in calls]
    if counters:
        writes["counters"] = counters
    loop.record.complete("policy_gate", writes)
    return verification, not denial and not loop.skips_action


def _decide_calls(loop: Progress, verification: Verification) -> list[PlannedCall]:
    """Return the calls of a plan that the critic lets pass, each with the verdict on it."""
    if loop.plan is None or loop.ending is not None or verification.verdict != "ok":
        return []
    if loop.skips_action or loop.policy.edition < LATEST_EDITION:
        return []
    return check_planned_calls(loop.policy, loop.root, loop.plan)


def _find_denial(loop: Progress, verification: Verification) -> str:
    """Return the verdict on a candidate that guardrails refuse, or that the critic does not let pass. Empty for any
    other candidate.
    """
    if loop.ending is not None:
        return "refuse" if loop.ending.status == "refused" else "deny"
    must_refuse = loop.invocation.pack.policy.guardrails.must_refuse
    if loop.refuse(find_guardrails_for_text(must_refuse, loop.response, loop.policy.edition)):
        return "refuse"
    if loop.refuse(find_guardrails_for_value(must_refuse, _candidate_values(loop))):
        return "refuse"
    return "" if verification.verdict == "ok" else "deny"


def _candidate_values(loop: Progress) -> list[object]:
    """Return the values of a candidate that guardrails check: the arguments of its calls, the parameters of its
    template, and the arguments derived from them.
    """
    if loop.policy.edition < LATEST_EDITION:
        return []
    proposed: list[object] = [call.arguments for call in loop.candidate.calls]
    plan, state = loop.plan, loop.root.run.state
    if plan is None or plan.template is None:
        return proposed
    proposed += [state.inputs[name] for name in plan.skill.inputs if name in state.inputs]
    return [*proposed, *(find_known_arguments(step, state) for step in plan.skill.steps)]


def _deny_calls(loop: Progress, calls: list[PlannedCall]) -> tuple[FailedCheck, ...]:
    """Return a fail for each denied call, after they were recorded. The planner replans, or the run ends."""
    refused = [(call, verdict) for call in calls if (verdict := call.denial)]
    if not refused:
        return ()
    for call, verdict in refused:
        loop.root.run.emit(call.draft_decision(verdict, loop.policy, loop.root.run.state.run_id))
        loop.record_denial(
            call.uses, Denial(verdict.rule or verdict.reason, _find_say(loop, verdict))
        )
    details: list[Json] = [{**call.to_payload(), "code": _DENIED} for call, _ in refused]
    if loop.planner.replans and loop.policy.budgets.allows_replan:
        loop.replan(_DENIED, details)
        loop.denied_gap = refused[0][0].uses
    else:
        call, verdict = refused[0]
        hint = loop.policy.explain_refusal(verdict.reason)
        loop.ending = denied_call(call.uses, verdict, hint, _find_say(loop, verdict))
    return tuple(FailedCheck(_DENIED, call.step_id, verdict.reason) for call, verdict in refused)


def _find_say(loop: Progress, verdict: Verdict) -> str:
    return loop.policy.find_say(verdict.reason, verdict.reads)


def _escalate_plan(loop: Progress) -> str:
    """Request a person's decision about a plan if a guardrail requires it. Return `deny` after a rejection."""
    plan = loop.plan
    if plan is None:
        return ""
    guardrails = loop.invocation.pack.policy.guardrails.must_escalate
    for guardrail in find_guardrails_for_value(guardrails, _candidate_values(loop))[:1]:
        about = {"plan_id": plan.plan_id, "plan_hash": plan.plan_hash}
        loop.ask(guardrail.gate, f"must_escalate:{guardrail.id}", about)
    return "deny" if loop.ending is not None else ""


def _find_gates(loop: Progress, context: CompiledContext, calls: list[PlannedCall]) -> list[str]:
    """Return the gates of the calls of the plan: by the verdict on a call if no rule waits, else by its capability."""
    uses = loop.plan.capabilities if loop.plan else {}
    tools = {tool.capability: tool.gate for tool in context.compilation.surface.tools}
    judged = _list_decided_gates(calls)
    gates = [judged.get(step) or tools.get(id, "") for step, id in uses.items()]
    gates += [gate for step, gate in judged.items() if step not in uses]
    return list(dict.fromkeys(filter(None, gates)))


def _list_decided_gates(calls: list[PlannedCall]) -> dict[str, str]:
    """Return the gate of each call, by step. Calls whose verdict still waits for a rule are excluded."""
    return {
        call.step_id: call.verdict.gate
        for call in calls
        if call.verdict and not call.verdict.waiting
    }
