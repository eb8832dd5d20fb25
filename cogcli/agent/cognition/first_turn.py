"""The attention of a first turn, for a context that is compiled without a run. Pure."""

from __future__ import annotations

from cogcli.agent.cognition.attention import attention_from, list_recalls
from cogcli.agent.cognition.layers import attention, focus, perception
from cogcli.agent.context.inputs import CompileInput
from cogcli.agent.context.intent import resolve_intent
from cogcli.declarations.value_types import Json


def with_first_attention(compile_input: CompileInput) -> CompileInput:
    """Return the input of a compilation with the attention that a run has in its first turn."""
    intent, request = resolve_intent(compile_input), compile_input.request
    recalls = list_recalls(
        compile_input.pack,
        intent.intent,
        intent.slots,
        compile_input.edges,
        compile_input.memories,
        compile_input.run.now,
    )
    known: Json = {
        "request": request.to_payload(),
        "effects": [],
        "approvals": [],
        "waiting": [],
        "goals": [request.message, *intent.slots.values()],
        "recalls": recalls,
        "focus_state": {"mode": "off", "buffered": []},
        "session": dict(compile_input.session_signals),
    }
    known |= perception(known)
    if request.focus == "deep":
        known |= focus(known)
    known |= attention(known)
    return compile_input._replace(attention=attention_from(known))
