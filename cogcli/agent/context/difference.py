"""The difference between two contexts: blocks in, out and cut, each with the reason, and the members of the ledger
(docs/reference/pack.md#placements). Pure.

The content identifies a block, not its number, so that a moved block is the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cogcli.agent.context.compiler import CompiledContext
from cogcli.agent.context.placements import CUT, OUT, STATEMENT, Placement, placements
from cogcli.base.canonical import canonical
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.value_types import Json

_ABSENT: Final = {
    "capability": ("tools", "unknown"),
    "evidence": ("evidence", "not_fetched"),
    "memory": ("memory", "not_fetched"),
    "session": ("assembly", "not_said"),
}
"""The stage and the reason for a thing that a compilation did not know, by kind; else it is `not_in_pack`."""


class BlockChange(NamedTuple):
    """An added or removed block, a shorter or longer one, or one with another text. Stage and reason are those of the
    context without it, or of the one that cut it."""

    change: str
    kind: str
    name: str
    stage: str
    reason: str
    tokens: tuple[int | None, int | None]
    """Before and after, or None if it is out."""

    def to_payload(self) -> Json:
        """Return the change as JSON."""
        return {**self._asdict(), "tokens": list(self.tokens)}


class LedgerChange(NamedTuple):
    """A member of the ledger with two values."""

    member: str
    before: str
    after: str


class ContextDiff(NamedTuple):
    """All that differs between two contexts."""

    blocks: tuple[BlockChange, ...]
    ledger: tuple[LedgerChange, ...]

    @property
    def is_identical(self) -> bool:
        """Whether context, pack, snapshot and request are equal byte for byte."""
        return not self.ledger

    def to_payload(self) -> Json:
        """Return the difference as JSON."""
        return {
            "same": self.is_identical,
            "blocks": [each.to_payload() for each in self.blocks],
            "ledger": [each._asdict() for each in self.ledger],
        }


def difference(old: CompiledContext, new: CompiledContext) -> ContextDiff:
    """Return the changes from one context to another. Placements of the first context are listed first, in their
    order.
    """
    old_sides, new_sides = _sides_by_identity(old), _sides_by_identity(new)
    pairs = (
        (
            old_sides.get(key) or _absent_side(new_sides[key]),
            new_sides.get(key) or _absent_side(old_sides[key]),
        )
        for key in old_sides | new_sides
    )
    changes = (_block_change(*pair) for pair in pairs)
    return ContextDiff(tuple(each for each in changes if each), tuple(_ledger_changes(old, new)))


class _Side(NamedTuple):
    """A placement in one of the two compared contexts, and its text there."""

    placed: Placement
    content: str = ""

    @property
    def is_out(self) -> bool:
        """Whether it has no block."""
        return self.placed.status == OUT

    @property
    def tokens(self) -> int | None:
        """The size of the side's block in tokens, or None without a block."""
        return None if self.is_out else self.placed.details["tokens"]


def _sides_by_identity(context: CompiledContext) -> dict[bytes, _Side]:
    """Return the placements that may have a block, by identity."""
    contents = {block.block_id: block.content for block in context.compilation.assembly.blocks}
    return {
        _placement_key(placed): _Side(placed, contents.get(placed.block_id, ""))
        for placed in placements(context.compilation)
        if placed.kind != "required"
    }


def _placement_key(placement: Placement) -> bytes:
    stated = (
        [placement.details[name] for name in STATEMENT]
        if placement.kind == "evidence"
        else placement.name
    )
    return canonical([placement.kind, stated])


def _absent_side(other_side: _Side) -> _Side:
    """Return the side for a context without this placement."""
    kind, name = other_side.placed.kind, other_side.placed.name
    stage, reason = _ABSENT.get(kind, ("assembly", "not_in_pack"))
    return _Side(Placement(kind, name, OUT, stage, reason))


def _block_change(old: _Side, new: _Side) -> BlockChange | None:
    """Return the change of one placement. None if its block is equal on both sides, or missing on both."""
    tokens = old.tokens, new.tokens
    if old.content == new.content:
        return None
    if old.is_out or new.is_out:
        lacking = old.placed if old.is_out else new.placed
        word, stage, reason = "in" if old.is_out else "out", lacking.stage, lacking.reason
    elif CUT in (old.placed.status, new.placed.status):
        word = "shorter" if len(new.content) < len(old.content) else "longer"
        stage, reason = "assembly", "cut"
    else:
        word, stage, reason = "changed", *_find_reason(old.placed, new.placed)
    return BlockChange(word, new.placed.kind, new.placed.name, stage, reason, tokens)


def _find_reason(old: Placement, new: Placement) -> tuple[str, str]:
    """Return why the text of a block changed: a tool waits for facts or no longer waits; else the text is another."""
    if new.kind == "capability":
        return ("evidence", new.reason) if old.reason != new.reason else ("tools", "other_text")
    return "assembly", "other_text"


def _ledger_changes(old: CompiledContext, new: CompiledContext) -> Iterator[LedgerChange]:
    """Yield the changed members of the ledger, stages as `stage_hashes.NAME`."""
    sides = [_flatten(compiled.payload["context_ledger"]) for compiled in (old, new)]
    for member, value in sides[0].items():
        if value != sides[1][member]:
            yield LedgerChange(member, value, sides[1][member])


def _flatten(ledger: Json) -> dict[str, str]:
    stages = {f"stage_hashes.{name}": hash for name, hash in ledger["stage_hashes"].items()}
    return {**{name: value for name, value in ledger.items() if name != "stage_hashes"}, **stages}
