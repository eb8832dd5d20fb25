"""The placement of each item of a compilation: in its context, truncated, or omitted, with the reason
(docs/reference/pack.md#placements). Pure.

An item is a capability, an edge, required evidence, a memory, or a text of the pack or the session. The stage is the
first one that removed the item, or else `assembly`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from cogcli.agent.context.blocks import SUMMARY
from cogcli.agent.context.compiled import STATE, Redaction
from cogcli.agent.context.compiler import Compilation
from cogcli.agent.context.evidence import explain_hidden, fault_of
from cogcli.agent.context.inputs import Edge, edge_ref
from cogcli.agent.context.tools import NOT_USABLE, SurfacedTool
from cogcli.base.jsonvalue import NOTHING
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.reading import read_record
from cogcli.declarations.run_start import Attachment
from cogcli.declarations.value_types import Json

IN, CUT, OUT = "in", "cut", "out"
STATEMENT: Final = ("subject", "predicate", "value", "ref", "observed_at")
"""The details that identify a statement of the graph."""
_STAGE_OF_CHECK: Final = {"permission": "policy", "rule": "policy", "situation": "evidence"}
"""The stage with the result of a check."""


class Placement(NamedTuple):
    """The placement of one thing, and the reason. `names` are its further names."""

    kind: str
    """capability, evidence, required, memory, state, attachment, or the bucket of a text: policy, business, session."""
    name: str
    status: str
    stage: str
    reason: str
    block_id: str = ""
    names: tuple[str, ...] = ()
    details: Json = NOTHING

    def to_payload(self) -> Json:
        """Return the placement as JSON."""
        members = ("kind", "name", "status", "stage", "reason", "block_id")
        return {**{name: getattr(self, name) for name in members}, **self.details}

    def answers_to(self, word: str) -> bool:
        """Return whether a word is one of its names."""
        return word in (self.name, self.block_id, *self.names)


def placements(compilation: Compilation) -> tuple[Placement, ...]:
    """Return the placement of each thing, in the order of the stages."""
    blocks = _BlockPlacements(compilation)
    return (
        *_capability_placements(compilation, blocks),
        *_gate_placements(compilation),
        *_edge_placements(compilation, blocks),
        *_memory_placements(compilation, blocks),
        *blocks.texts(),
        *_attachment_placements(compilation),
        *_state_lines(compilation),
    )


def list_names(placements: Iterable[Placement]) -> list[str]:
    """Return all names of these placements."""
    return list(
        dict.fromkeys(
            word for each in placements for word in (each.name, each.block_id, *each.names) if word
        )
    )


class _BlockPlacements:
    """The placements of blocks in the assembly."""

    def __init__(self, compilation: Compilation) -> None:
        known = (*compilation.candidates, *compilation.unfocused)
        self._candidates = {block.block_id: block for block in known}
        self._kept = {block.block_id: block for block in compilation.assembly.blocks}

    def placement_of(
        self, kind: str, name: str, block_id: str, why: str, **details: object
    ) -> Placement:
        """Return the placement of one item. `why` is the reason if its whole block is in the prompt."""
        candidate, kept = self._candidates[block_id], self._kept.get(block_id)
        sizes = {
            "tokens": kept.tokens if kept else candidate.tokens,
            "priority": candidate.priority,
        }
        if not candidate.in_focus:
            return Placement(
                kind, name, OUT, "attention", "not_in_focus", block_id, details={**sizes, **details}
            )
        if kept is None:
            status, reason = OUT, "no_room"
        elif kept.truncated:
            status, reason = CUT, "cut"
            sizes["of_tokens"] = candidate.tokens
        else:
            status, reason = IN, why
        return Placement(
            kind, name, status, "assembly", reason, block_id, details={**sizes, **details}
        )

    def texts(self) -> Iterator[Placement]:
        """Yield the placements of the texts of the pack and the session."""
        for block in self._candidates.values():
            if block.bucket in ("policy", "business", "session"):
                why = "said" if block.bucket == "session" else "of_pack"
                placement = self.placement_of(block.bucket, block.block_id, block.block_id, why)
                if block.block_id == SUMMARY and placement.status != OUT:
                    refs = {"messages": list(block.provenance_refs)}
                    reason, details = "summarized", {**placement.details, **refs}
                    placement = placement._replace(status=CUT, reason=reason, details=details)
                yield placement


def _state_lines(compilation: Compilation) -> Iterator[Placement]:
    """Yield the lines of the agent's state that the prompt lacks or shows in part."""
    for each in compilation.compile_input.state_omissions:
        status = OUT if each.reason == "no_room" else CUT
        details = {"missing_tokens": each.tokens}
        yield Placement(
            STATE, each.block_id, status, "assembly", each.reason, each.block_id, details=details
        )


def _capability_placements(
    compilation: Compilation, blocks: _BlockPlacements
) -> Iterator[Placement]:
    tools = {tool.capability: tool for tool in compilation.surface.tools}
    redactions = {each.capability: each for each in compilation.surface.redactions}
    for id, aliases in _find_known_capabilities(compilation).items():
        if id in tools:
            placement = _tool_placement(tools[id], blocks)
        elif id in redactions:
            placement = _redaction_placement(redactions[id])
        elif not compilation.intent.intent:
            placement = Placement("capability", id, OUT, "intent", compilation.intent.refused)
        else:
            placement = Placement("capability", id, OUT, "tools", "not_in_intent")
        yield placement._replace(names=aliases)


def _find_known_capabilities(compilation: Compilation) -> dict[str, tuple[str, ...]]:
    """Return the capabilities of the pack and the usable ones, with their other names."""
    pack, usable = compilation.compile_input.pack, compilation.compile_input.capabilities
    listed = [id for intent in pack.decisions.intents.values() for id in intent.capabilities]
    permitted = [id for each in pack.policy.permissions.values() for id in each.allow]
    known = dict.fromkeys(
        (*listed, *permitted, *pack.tooling.capabilities, *(each.id for each in usable.values()))
    )
    return {id: tuple(n for n, each in usable.items() if each.id == id and n != id) for id in known}


def _tool_placement(tool: SurfacedTool, blocks: _BlockPlacements) -> Placement:
    why = "deferred" if tool.deferred else "gated" if tool.gate else "allowed"
    details: Json = {"approval_mode": tool.approval_mode}
    details |= {"gate": tool.gate} if tool.gate else {}
    details |= {"deferred": list(tool.deferred)} if tool.deferred else {}
    return blocks.placement_of(
        "capability", tool.capability, f"tool:{tool.capability}", why, **details
    )


def _redaction_placement(redaction: Redaction) -> Placement:
    stage = "tools" if redaction.reason == NOT_USABLE else _STAGE_OF_CHECK[redaction.check]
    details = {"check": redaction.check} | (
        {"rule_id": redaction.rule_id} if redaction.rule_id else {}
    )
    return Placement(
        "capability", redaction.capability, OUT, stage, redaction.reason, details=details
    )


def _gate_placements(compilation: Compilation) -> Iterator[Placement]:
    for gate in compilation.evidence.gates:
        status = IN if gate.status == "satisfied" else OUT
        yield Placement(
            "required",
            gate.name,
            status,
            "evidence",
            gate.status,
            details={"refs": list(gate.refs)},
        )


def _edge_placements(compilation: Compilation, blocks: _BlockPlacements) -> Iterator[Placement]:
    numbers = {
        id(each.edge): (number, each.hops) for number, each in enumerate(compilation.evidence.found)
    }
    slots = {entity: slot for slot, entity in compilation.query.slots.items()}
    crowded = {each["subject"] for each in compilation.evidence.omitted}
    for edge in compilation.compile_input.edges:
        name = f"{slots.get(edge.subject, edge.subject)}.{edge.predicate}"
        if id(edge) in numbers:
            number, hops = numbers[id(edge)]
            scored = _salience_of(compilation, edge_ref(edge))
            placement = blocks.placement_of(
                "evidence", name, f"evidence:{number:04}", f"hops:{hops}", hops=hops, **scored
            )
        else:
            reason = explain_hidden(edge, compilation.query) or fault_of(edge, compilation.query)
            reason = reason or ("max_edges" if edge.subject in crowded else "unreached")
            placement = Placement("evidence", name, OUT, "evidence", reason)
        names = (edge.subject, f"{edge.subject}.{edge.predicate}", edge.evidence_ref)
        yield placement._replace(names=names, details={**placement.details, **_statement_of(edge)})


def _salience_of(compilation: Compilation, ref: str) -> Json:
    """Return the salience of a reference, if the attention of the turn ranked it."""
    attention = compilation.compile_input.attention
    scored = attention is not None and ref in attention.salience
    return {"salience": attention.salience[ref]} if attention is not None and scored else {}


def _attachment_placements(compilation: Compilation) -> Iterator[Placement]:
    held = compilation.compile_input.held_attachments
    for place, each in enumerate(compilation.compile_input.request.attachments):
        id, name = f"attachment:{place}", read_record(Attachment, each).name
        where = (OUT, "attention", "held") if place in held else (IN, "assembly", "said")
        yield Placement("attachment", id, *where, names=(name,), details={"file": name})


def _statement_of(edge: Edge) -> Json:
    stated = (edge.subject, edge.predicate, edge.stated, edge.evidence_ref, edge.observed_at)
    return dict(zip(STATEMENT, stated, strict=True))


def _memory_placements(compilation: Compilation, blocks: _BlockPlacements) -> Iterator[Placement]:
    reasons = {each["memory_id"]: each["reason"] for each in compilation.memory.omitted}
    for memory in compilation.compile_input.memories:
        id = memory.memory_id
        if id in reasons:
            placement = Placement("memory", id, OUT, "memory", reasons[id])
        else:
            scored = _salience_of(compilation, id)
            placement = blocks.placement_of("memory", id, f"memory:{id}", "recalled", **scored)
        about = {
            "entity": memory.entity,
            "predicate": memory.predicate,
            "class": memory.memory_class,
        }
        yield placement._replace(names=(memory.entity,), details={**placement.details, **about})
