"""Stages 2 and 3, `policy` and `tools`: what a request may not do, and what the model is shown. Pure.

A capability that fails a check is kept from the model, not only refused at its call. Rules on arguments wait for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cogcli.agent.context.compiled import Redaction
from cogcli.agent.context.inputs import CompileInput
from cogcli.agent.context.intent import IntentResult
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.pack_spec import PackTool
from cogcli.policy.guardrails import matching
from cogcli.policy.pack_policy import GovernedCall
from cogcli.policy.verdict import Verdict, is_above, mode_under

NOT_USABLE = "not_usable"
"""The reason for a capability that no binding can be chosen for."""
_MISSING = "evidence_missing:"


class PolicyResult(NamedTuple):
    """The guardrails that the message meets, and the capabilities that rules without facts or arguments forbid."""

    must_refuse: tuple[str, ...]
    must_escalate: tuple[str, ...]
    prohibited: dict[str, str]
    """The capability, and the reason."""


class SurfacedTool(NamedTuple):
    """A capability that the model is shown. `deferred`: the facts that another capability has to supply before."""

    capability: str
    approval_mode: str
    gate: str = ""
    deferred: tuple[str, ...] = ()


class Surface(NamedTuple):
    """What the model is shown, and what is kept from it, each with the check that failed."""

    tools: tuple[SurfacedTool, ...]
    redactions: tuple[Redaction, ...]


def resolve_policy(given: CompileInput, intent: IntentResult) -> PolicyResult:
    """What holds of the request whatever the evidence is."""
    policy, message = given.pack.policy, given.request.message
    listed = given.pack.decisions.intents
    prohibited = {}
    for id in listed[intent.intent].capabilities if intent.intent else ():
        verdict = _verdict(given, intent, id, {})
        if not verdict.allows and verdict.stage != "situation":
            prohibited[id] = verdict.reason
    if given.request.refused_by:
        return PolicyResult(given.request.refused_by, (), prohibited)
    return PolicyResult(
        tuple(each.id for each in matching(policy.guardrails.must_refuse, message)),
        tuple(each.id for each in matching(policy.guardrails.must_escalate, message)),
        prohibited,
    )


def surface_tools(given: CompileInput, intent: IntentResult, facts: Mapping[str, Any]) -> Surface:
    """The capabilities of the intent that every check permits, with those that only wait for facts of another one."""
    tools, redactions, waiting = [], [], []
    listed = given.pack.decisions.intents
    for id in listed[intent.intent].capabilities if intent.intent else ():
        verdict = _verdict(given, intent, id, facts)
        if id not in given.capabilities:
            redactions.append(Redaction(id, "permission", NOT_USABLE))
        elif verdict.allows:
            tools.append(SurfacedTool(id, verdict.approval_mode, verdict.gate))
        elif verdict.reason.startswith(_MISSING):
            waiting.append((id, verdict))
        else:
            redactions.append(Redaction(id, verdict.stage, verdict.reason, verdict.rule))
    supplied = {
        path
        for tool in tools
        for path in given.pack.tooling.capabilities.get(tool.capability, PackTool()).facts
    }
    for id, verdict in waiting:
        lacking = tuple(
            dict.fromkeys(
                path for path, value in verdict.reads.items() if value is None and "." in path
            )
        )
        if lacking and supplied.issuperset(lacking):
            tools.append(SurfacedTool(id, verdict.approval_mode, verdict.gate, lacking))
        else:
            redactions.append(Redaction(id, verdict.stage, verdict.reason, verdict.rule))
    order = (
        {id: place for place, id in enumerate(listed[intent.intent].capabilities)}
        if intent.intent
        else {}
    )
    tools.sort(key=lambda tool: order[tool.capability])
    return Surface(tuple(tools), tuple(redactions))


def call_data(
    given: CompileInput, intent: IntentResult, facts: Mapping[str, Any], mode: str, capability: str
) -> dict[str, Any]:
    """What rules see of a call before its arguments are known (docs/reference/pack.md#rules)."""
    request, run = given.request, given.run
    return {
        **facts,
        "request": {
            "intent": intent.intent,
            "message": request.message,
            "channel": request.channel,
            "locale": request.locale,
            "params": intent.params,
        },
        "user": {
            "id": request.user.user_id,
            "role": request.user.role,
            "consent": list(request.user.consent),
        },
        "agent": {"role": run.role, "voice": run.voice},
        "run": {"safety_mode": run.safety_mode, "turn": run.turn, "now": run.now},
        "call": {"capability": capability, "approval_mode": mode, "step": ""},
        "inputs": intent.params,
        "vars": {},
        "outputs": {},
        "state": given.state,
    }


def mode_of(given: CompileInput, id: str) -> str:
    """The approval mode of a capability under the pack; the highest for one that is not here."""
    capability: Capability | None = given.capabilities.get(id)
    return mode_under(given.pack.tooling.capabilities, capability) if capability else "destructive"


def _verdict(
    given: CompileInput, intent: IntentResult, id: str, facts: Mapping[str, Any]
) -> Verdict:
    mode = mode_of(given, id)
    call = GovernedCall(
        id,
        mode,
        given.run.role,
        given.run.safety_mode,
        None,
        named_user=given.request.user.is_named,
    )
    return given.policy.decide(intent.intent, call, call_data(given, intent, facts, mode, id))


def max_mode(surface: Surface) -> str:
    """The highest approval mode on the surface; `read_only` of an empty one."""
    highest = "read_only"
    for tool in surface.tools:
        highest = tool.approval_mode if is_above(tool.approval_mode, highest) else highest
    return highest
