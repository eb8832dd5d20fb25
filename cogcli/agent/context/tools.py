"""Stages 2 and 3, `policy` and `tools`: the prohibitions of a request, and the tools for the model. Pure.

A capability that fails a check is redacted, not only refused at its call. Rules about arguments wait for the call.
"""

from __future__ import annotations

from collections.abc import Iterable

from cogcli.agent.context.compiled import Redaction
from cogcli.agent.context.inputs import CompileInput
from cogcli.agent.context.intent import IntentResult
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.pack_spec import PackTool
from cogcli.declarations.value_types import Json
from cogcli.policy.guardrails import find_guardrails_for_text
from cogcli.policy.pack_policy import GovernedCall
from cogcli.policy.verdict import Verdict, is_above, mode_under

NOT_USABLE = "not_usable"
"""The reason for a capability without an eligible binding."""
_MISSING = "evidence_missing:"


class PolicyResult(NamedTuple):
    """The guardrails that match the message, and the capabilities that are forbidden for any facts
    and arguments.
    """

    must_refuse: tuple[str, ...]
    must_escalate: tuple[str, ...]
    prohibited: dict[str, str]
    """The reasons by capability."""


class SurfacedTool(NamedTuple):
    """A capability for the model. `deferred` are the facts that another capability must supply before."""

    capability: str
    approval_mode: str
    gate: str = ""
    deferred: tuple[str, ...] = ()


class Surface(NamedTuple):
    """The tools for the model, and the redacted capabilities with their failed checks."""

    tools: tuple[SurfacedTool, ...]
    redactions: tuple[Redaction, ...]


def resolve_policy(compile_input: CompileInput, intent: IntentResult) -> PolicyResult:
    """Return the policy of a request before evidence is known."""
    guardrails, message = compile_input.pack.policy.guardrails, compile_input.request.message
    prohibited = {}
    for id in _list_capabilities(compile_input, intent):
        verdict = _verdict_on(compile_input, intent, id, {})
        if not verdict.allows and verdict.stage != "situation":
            prohibited[id] = verdict.reason
    if compile_input.request.refused_by:
        return PolicyResult(compile_input.request.refused_by, (), prohibited)
    return PolicyResult(
        tuple(
            each.id
            for each in find_guardrails_for_text(
                guardrails.must_refuse, message, compile_input.edition
            )
        ),
        tuple(
            each.id
            for each in find_guardrails_for_text(
                guardrails.must_escalate, message, compile_input.edition
            )
        ),
        prohibited,
    )


def surface_tools(compile_input: CompileInput, intent: IntentResult, facts: Json) -> Surface:
    """Return the tools of an intent: capabilities that every check permits.

    A capability that only lacks facts which another tool can supply is included. The rest are redactions with
    their reasons.
    """
    tools, redactions, waiting = [], [], []
    listed = _list_capabilities(compile_input, intent)
    for id in listed:
        verdict = _verdict_on(compile_input, intent, id, facts)
        if id not in compile_input.capabilities:
            redactions.append(Redaction(id, "permission", NOT_USABLE))
        elif verdict.allows:
            tools.append(SurfacedTool(id, verdict.approval_mode, verdict.gate))
        elif verdict.reason.startswith(_MISSING):
            waiting.append((id, verdict))
        else:
            redactions.append(Redaction(id, verdict.stage, verdict.reason, verdict.rule))
    supplied = _supplied_facts(compile_input, tools)
    for id, verdict in waiting:
        lacking = _unknown_facts(verdict)
        if lacking and supplied.issuperset(lacking):
            tools.append(SurfacedTool(id, verdict.approval_mode, verdict.gate, lacking))
        else:
            redactions.append(Redaction(id, verdict.stage, verdict.reason, verdict.rule))
    tools.sort(key=lambda tool: listed.index(tool.capability))
    return Surface(tuple(tools), tuple(redactions))


def _list_capabilities(compile_input: CompileInput, intent: IntentResult) -> list[str]:
    """Return the capabilities of the intent, or none without an intent."""
    if not intent.intent:
        return []
    return list(compile_input.pack.decisions.intents[intent.intent].capabilities)


def _supplied_facts(compile_input: CompileInput, tools: Iterable[SurfacedTool]) -> set[str]:
    """Return the facts that calls of these tools supply."""
    declared = compile_input.pack.tooling.capabilities
    return {path for tool in tools for path in declared.get(tool.capability, PackTool()).facts}


def _unknown_facts(verdict: Verdict) -> tuple[str, ...]:
    """Return the facts that a rule read although they are unknown."""
    lacking = (path for path, value in verdict.reads.items() if value is None and "." in path)
    return tuple(dict.fromkeys(lacking))


def call_data(
    compile_input: CompileInput, intent: IntentResult, facts: Json, mode: str, capability: str
) -> Json:
    """Return the data of rules for a call before its arguments are known (docs/reference/pack.md#rules)."""
    request, run = compile_input.request, compile_input.run
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
        "state": compile_input.state,
    }


def mode_of(compile_input: CompileInput, id: str) -> str:
    """Return the approval mode of a capability under the pack; the highest for an unknown one."""
    capability: Capability | None = compile_input.capabilities.get(id)
    return (
        mode_under(compile_input.pack.tooling.capabilities, capability)
        if capability
        else "destructive"
    )


def _verdict_on(compile_input: CompileInput, intent: IntentResult, id: str, facts: Json) -> Verdict:
    mode = mode_of(compile_input, id)
    call = GovernedCall(
        id,
        mode,
        compile_input.run.role,
        compile_input.run.safety_mode,
        None,
        named_user=compile_input.request.user.is_named,
    )
    return compile_input.policy.decide(
        intent.intent, call, call_data(compile_input, intent, facts, mode, id)
    )


def max_mode(surface: Surface) -> str:
    """Return the highest approval mode on the surface; `read_only` of an empty one."""
    highest = "read_only"
    for tool in surface.tools:
        highest = tool.approval_mode if is_above(tool.approval_mode, highest) else highest
    return highest
