"""Lines and table rows for proposals and memory (docs/reference/pack.md#memory-commands)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cogcli.base.terminal_text import LONGEST_SHOWN, truncate_bytes, visible
from cogcli.cli.envelope import dumps
from cogcli.cli.listing import Column
from cogcli.declarations.value_types import Json

COLUMNS: Final = (
    Column("proposal_id", "id"),
    Column("about"),
    Column("value"),
    Column("class"),
    Column("state"),
    Column("user_id", "user"),
    Column("confidence", right=True),
    Column("decided_by", "by"),
    Column("at", "proposed at"),
    Column("decided_at"),
)
_LACKS: Final = {
    "auto_promote": "no pack promotes its class by itself",
    "confidence_floor": "its confidence is below the floor",
    "consent": "the user has not consented",
    "contradiction": "it contradicts what is kept",
}
"""The reasons why a pack does not promote a proposal."""
_REASONS: Final = {
    "user": "it is another user's",
    "consent": "the request gives no consent to `{class}`",
    "class": "the pack recalls nothing that is `{data_class}`",
    "expired": "its time under the pack is over",
}
"""The reasons why memory is not recalled; any other reason is its state."""


def cells_of(row: Json) -> Json:
    """Return a proposal or memory as the row of a table."""
    candidate = row["candidate"]
    about = f"{candidate['entity']} {candidate['predicate']}"
    return {**row, "about": about, "value": dumps(candidate["value"])}


def decision_lines(row: Json, others: list[Json]) -> list[str]:
    """Return the lines of a decision, and of the promoted memory that contradicts it."""
    word = "supersedes" if row["contradiction"]["verdict"] == "supersedes" else "contradicts"
    return [_statement_line(row["state"], row), *(_statement_line(word, other) for other in others)]


def decided_text(row: Json) -> str:
    """Return the state of a proposal, with approver, time and reason."""
    if not row["decided_by"]:
        return str(row["state"])
    reason = f": {row['reason']}" if row["reason"] else ""
    return f"{row['state']} by {row['decided_by']} at {row['decided_at']}{reason}"


def why_lines(entry: Json) -> list[str]:
    """Return the lines that explain a proposal or memory."""
    lines = [_statement_line(entry["proposal_id"], entry, id=False)]
    return lines + [f"  {name:<11} {visible(text)}" for name, text in _fact_rows(entry)]


def _fact_rows(entry: Json) -> Iterator[tuple[str, str]]:
    """Yield name and text of each fact about a proposal or memory."""
    yield "kind", f"{entry['class']}, {entry['tier']}, {entry['data_class']}"
    yield "of", f"{entry['user_id']} in {entry['tenant_id']}"
    yield from _limited_rows("evidence", entry["evidence_refs"])
    yield from _limited_rows("run", entry["runs"])
    yield "confidence", f"{entry['confidence']:g}, last proposed at {entry['at']}"
    yield "consent", "given" if entry["consent"] else "not given"
    yield "state", decided_text(entry)
    if entry["waits_for"]:
        yield "waits for", f"a person: {', '.join(_LACKS[each] for each in entry['waits_for'])}"
    for word in ("contradicts", "supersedes"):
        yield from (
            (word, f"{_statement_with_id(other)} ({decided_text(other)})") for other in entry[word]
        )
    reason = entry["recall"]["reason"]
    because = _REASONS.get(reason or "", f"it is {reason}").format_map(entry)
    yield "recalled", f"no: {because}" if reason else "yes, by a request that shares a word with it"


_MAX_ROWS: Final = 20
"""The most pieces of evidence and runs that are shown."""


def _limited_rows(name: str, texts: list[str]) -> Iterator[tuple[str, str]]:
    """Yield strings under one name. The last row counts the omitted ones."""
    yield from ((name, text) for text in texts[:_MAX_ROWS])
    if len(texts) > _MAX_ROWS:
        yield name, f"… {len(texts) - _MAX_ROWS} more"


def _statement_line(word: str, row: Json, *, id: bool = True) -> str:
    return visible(f"{word} {_statement_with_id(row) if id else _statement_text(row)}")


def _statement_with_id(row: Json) -> str:
    return f"{row['proposal_id']}: {_statement_text(row)}"


def _statement_text(row: Json) -> str:
    cells = cells_of(row)
    value, more = truncate_bytes(cells["value"], LONGEST_SHOWN)
    return f"{cells['about']} = {value}{more}"
