"""The texts of a context: a block for each rule, tool, piece of evidence and memory, and the prompt. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cogcli.agent.context.buckets import Assembly
from cogcli.agent.context.compiled import REQUEST, ContextBlock, Omission
from cogcli.agent.context.evidence import Evidence
from cogcli.agent.context.inputs import CompileInput, Edge, edge_ref
from cogcli.agent.context.intent import IntentResult
from cogcli.agent.context.memory import Recall
from cogcli.agent.context.tools import Surface
from cogcli.base.canonical import canonical
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.run_start import LATEST_EDITION
from cogcli.declarations.value_types import Json

_POLICY: Final = 90
_TOOL: Final = 80
_EVIDENCE: Final = 70
_MEMORY: Final = 50
_SESSION: Final = 40
SUMMARY: Final = "session:summary"
"""The id of the block that summarizes the oldest messages of a conversation."""
_NEARER: Final = 5
"""The priority of a piece of evidence for each hop that it is nearer."""
ATTACHMENT: Final = ("name", "media_type", "sha256", "uri")
"""The members of an attachment in a prompt. Only a call reads its content."""


def candidates(
    compile_input: CompileInput, surface: Surface, evidence: Evidence, memory: Recall
) -> Iterator[ContextBlock]:
    """Yield all candidates for the context, bucket by bucket, with unique ids."""
    yield from _policy_blocks(compile_input, surface)
    for tool in surface.tools:
        text = tool_text(compile_input.capabilities[tool.capability], tool.gate, tool.deferred)
        yield _build_block(compile_input, f"tool:{tool.capability}", "tool", text, _TOOL)
    for number, found in enumerate(evidence.found):
        edge = found.edge
        value = {"object": edge.object} if edge.object else {"value": edge.value}
        text = _json_text(
            {"subject": edge.subject, "predicate": edge.predicate, **value, "at": edge.observed_at}
        )
        priority = _EVIDENCE - _NEARER * (found.hops - 1) + _salience_priority(compile_input, edge)
        block = _build_block(
            compile_input,
            f"evidence:{number:04}",
            "evidence",
            text,
            priority,
            (edge.evidence_ref,),
            edge.trust,
        )
        yield block._replace(in_focus=_is_in_focus(compile_input, edge))
    for each in compile_input.pack.business.blocks:
        block = _build_block(
            compile_input, f"business:{each.id}", "business", each.text, each.priority
        )
        yield block._replace(cuttable=each.cuttable)
    for number, kept in enumerate(memory.memories):
        text = _json_text({"entity": kept.entity, "predicate": kept.predicate, "value": kept.value})
        refs = (kept.memory_id, *kept.evidence_refs)
        block = _build_block(
            compile_input,
            f"memory:{kept.memory_id}",
            "memory",
            text,
            _MEMORY - number,
            refs,
            "verified",
        )
        attention = compile_input.attention
        yield block._replace(in_focus=not attention or attention.includes(kept.memory_id))
    if compile_input.summary is not None:
        yield _summary_block(compile_input, compile_input.summary)
    for number, text in enumerate(compile_input.session, 1 if compile_input.summary else 0):
        block = _build_block(
            compile_input,
            f"session:{number:04}",
            "session",
            _json_text(text),
            _SESSION + number,
            (),
            "untrusted",
        )
        yield block


def _summary_block(compile_input: CompileInput, summary: ContextBlock) -> ContextBlock:
    count = len(summary.provenance_refs)
    text = f"summary of the messages 1 to {count}: {summary.content}"
    refs = summary.provenance_refs
    block = _build_block(
        compile_input, SUMMARY, "session", _json_text(text), _SESSION, refs, "untrusted"
    )
    return block._replace(truncated=True)


def session_line(role: str, content: str) -> str:
    """Return the content of the block of a message."""
    return _json_text(f"{role}: {content}")


def _is_in_focus(compile_input: CompileInput, edge: Edge) -> bool:
    """Return whether an edge is in the prompt. A fact of a call of this run always is."""
    if compile_input.attention is None or edge.evidence_ref.startswith(
        f"{compile_input.run.run_id}/"
    ):
        return True
    return compile_input.attention.includes(edge_ref(edge))


def _salience_priority(compile_input: CompileInput, edge: Edge) -> int:
    """Return the priority that a piece of evidence has for its salience, less than that of a hop."""
    if compile_input.attention is None:
        return 0
    return round((_NEARER - 1) * compile_input.attention.salience.get(edge_ref(edge), 0.0))


def _policy_blocks(compile_input: CompileInput, surface: Surface) -> Iterator[ContextBlock]:
    for number, text in enumerate(compile_input.pack.tone.non_negotiables):
        yield _build_block(compile_input, f"policy:never:{number:02}", "policy", text, _POLICY)
    gated = [f"{tool.capability} waits for {tool.gate}" for tool in surface.tools if tool.gate]
    if gated:
        yield _build_block(
            compile_input,
            "policy:gates",
            "policy",
            f"A person decides: {'; '.join(gated)}.",
            _POLICY,
        )


def tool_text(capability: Capability, gate: str = "", deferred: tuple[str, ...] = ()) -> str:
    """Return a capability for a model: its id, description and arguments."""
    arguments = {
        name: {"type": field.type, "required": field.required}
        for name, field in capability.inputs.items()
    }
    after = f" Needs first: {', '.join(deferred)}." if deferred else ""
    return f"{capability.id}: {capability.description}{after} Arguments: {_json_text(arguments)}"


def prompt(compile_input: CompileInput, intent: IntentResult, assembly: Assembly) -> Json:
    """Return the compiled prompt: instructions in `system` and `developer`, foreign texts in separate blocks."""
    blocks, voice = assembly.blocks, compile_input.run.voice or compile_input.pack.tone.agent.voice
    identity = [f"You are {compile_input.run.role or 'an agent'}."]
    if voice:
        identity.append(f"Voice: {voice}.")
    instructions = [block.content for block in blocks if block.bucket in ("policy", "tool")]
    return {
        "system": "\n".join(identity),
        "developer": "\n".join(instructions),
        "task": _task_members(compile_input, intent),
        "context_blocks": [block.to_payload() for block in blocks],
    }


def _task_members(compile_input: CompileInput, intent: IntentResult) -> Json:
    objectives = [
        each.text
        for each in compile_input.pack.decisions.objectives
        if not each.intents or intent.intent in each.intents
    ]
    task: Json = {
        "intent": intent.intent,
        "objectives": objectives,
        "message": compile_input.request.message,
        "params": intent.params,
    }
    if compile_input.edition >= LATEST_EDITION:
        task |= _origin_members(compile_input)
    attachments = [
        _select_shown_members(each)
        for place, each in enumerate(compile_input.request.attachments)
        if place not in compile_input.held_attachments
    ]
    if attachments:
        task["attachments"] = attachments
    return task


def omit_held(compile_input: CompileInput) -> Iterator[Omission]:
    """Yield an omission for each deferred attachment."""
    for place in compile_input.held_attachments:
        shown = _select_shown_members(compile_input.request.attachments[place])
        yield Omission(
            f"attachment:{place}",
            REQUEST,
            0,
            compile_input.tokenizer.count(_json_text(shown)),
            "held",
        )


def _select_shown_members(attachment: Json) -> Json:
    """Return the members of an attachment that a model is shown."""
    return {key: attachment[key] for key in ATTACHMENT if key in attachment}


def _origin_members(compile_input: CompileInput) -> Json:
    """Return the origin of a request: its channel and locale, and the signals of its session."""
    request = compile_input.request
    found = {
        "channel": request.channel,
        "locale": request.locale,
        "session": dict(compile_input.session_signals),
    }
    return {name: value for name, value in found.items() if value}


def _build_block(
    compile_input: CompileInput,
    block_id: str,
    bucket: str,
    content: str,
    priority: int,
    refs: tuple[str, ...] = (),
    trust: str = "authoritative",
) -> ContextBlock:
    foreign = bucket in ("evidence", "memory", "session")
    treatment = "data_only" if foreign else "instruction"
    tokens = compile_input.tokenizer.count(content)
    return ContextBlock(block_id, bucket, content, priority, tokens, refs, trust, treatment)


def _json_text(value: object) -> str:
    return canonical(value).decode()
