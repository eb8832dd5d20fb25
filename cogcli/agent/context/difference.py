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
    def same(self) -> bool:
        """Whether context, pack, snapshot and request are equal byte for byte."""
        return not self.ledger

    def to_payload(self) -> Json:
        """Return the difference as JSON."""
        return {
            "same": self.same,
            "blocks": [each.to_payload() for each in self.blocks],
            "ledger": [each._asdict() for each in self.ledger],
        }


def difference(before: CompiledContext, after: CompiledContext) -> ContextDiff:
    """Return the changes from one context to another. Placements of the first context come first,
    in its order."""
    one, other = _by_identity(before), _by_identity(after)
    pairs = (
        (one.get(key) or _absent(other[key]), other.get(key) or _absent(one[key]))
        for key in one | other
    )
    changes = (_change(*pair) for pair in pairs)
    return ContextDiff(tuple(each for each in changes if each), tuple(_of_ledger(before, after)))


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
        """The size of its block, or None if there is none."""
        return None if self.is_out else self.placed.details["tokens"]


def _by_identity(compiled: CompiledContext) -> dict[bytes, _Side]:
    """Return the placements that may have a block, by identity."""
    contents = {block.block_id: block.content for block in compiled.compilation.assembly.blocks}
    return {
        _identity(placed): _Side(placed, contents.get(placed.block_id, ""))
        for placed in placements(compiled.compilation)
        if placed.kind != "required"
    }


def _identity(placed: Placement) -> bytes:
    stated = (
        [placed.details[name] for name in STATEMENT] if placed.kind == "evidence" else placed.name
    )
    return canonical([placed.kind, stated])


def _absent(known: _Side) -> _Side:
    """Return the side for a context without this placement."""
    kind, name = known.placed.kind, known.placed.name
    stage, reason = _ABSENT.get(kind, ("assembly", "not_in_pack"))
    return _Side(Placement(kind, name, OUT, stage, reason))


def _change(before: _Side, after: _Side) -> BlockChange | None:
    """Return the change of one thing, or None if its block is the same, or on neither side."""
    tokens = before.tokens, after.tokens
    if before.content == after.content:
        return None
    if before.is_out or after.is_out:
        lacking = before.placed if before.is_out else after.placed
        word, stage, reason = "in" if before.is_out else "out", lacking.stage, lacking.reason
    elif CUT in (before.placed.status, after.placed.status):
        word = "shorter" if len(after.content) < len(before.content) else "longer"
        stage, reason = "assembly", "cut"
    else:
        word, stage, reason = "changed", *_why_changed(before.placed, after.placed)
    return BlockChange(word, after.placed.kind, after.placed.name, stage, reason, tokens)


def _why_changed(before: Placement, after: Placement) -> tuple[str, str]:
    """Return why the text of a block changed: a tool waits for facts or no longer waits; else the text is another."""
    if after.kind == "capability":
        return (
            ("evidence", after.reason) if before.reason != after.reason else ("tools", "other_text")
        )
    return "assembly", "other_text"


def _of_ledger(before: CompiledContext, after: CompiledContext) -> Iterator[LedgerChange]:
    """Yield the changed members of the ledger, stages as `stage_hashes.NAME`."""
    sides = [_flat(compiled.payload["context_ledger"]) for compiled in (before, after)]
    for member, value in sides[0].items():
        if value != sides[1][member]:
            yield LedgerChange(member, value, sides[1][member])


def _flat(ledger: Json) -> dict[str, str]:
    stages = {f"stage_hashes.{name}": hash for name, hash in ledger["stage_hashes"].items()}
    return {**{name: value for name, value in ledger.items() if name != "stage_hashes"}, **stages}
