"""Spans of personal data and credentials in a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cogcli.sdk import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable

_MAX_FINDINGS = 10_000


class TextSpan(NamedTuple):
    """A match from `start` to before `end`. `detail` is a country or a kind of card."""

    start: int
    end: int
    kind: str
    detail: str = ""


def without_overlaps(spans: Iterable[TextSpan]) -> list[TextSpan]:
    """Return the spans that overlap no earlier one, in text order. Raise Refused above 10,000."""
    kept: list[TextSpan] = []
    taken: set[int] = set()
    for span in spans:
        places = range(span.start, span.end)
        if taken.isdisjoint(places):
            taken.update(places)
            kept.append(span)
            if len(kept) > _MAX_FINDINGS:
                raise Refused("too-large", f"more than {_MAX_FINDINGS:,} findings")
    return sorted(kept)


def finding_entries(text: str, spans: list[TextSpan]) -> list[dict[str, object]]:
    """Return `kind`, `start`, `end` and `line` of each span. The spans are in text order."""
    line = 1
    last_start = 0
    entries: list[dict[str, object]] = []
    for span in spans:
        line += text.count("\n", last_start, span.start)
        last_start = span.start
        entries.append({"kind": span.kind, "start": span.start, "end": span.end, "line": line})
    return entries
