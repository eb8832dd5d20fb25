"""What is looked for in texts and must not be shown, as answers tell of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cogcli.sdk import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable

_MAX_FINDINGS = 10_000


class TextSpan(NamedTuple):
    """What was found, from `start` to before `end`; `detail` is a country or a kind of card."""

    start: int
    end: int
    kind: str
    detail: str = ""


def apart(found: Iterable[TextSpan]) -> list[TextSpan]:
    """Those that overlap no earlier one, in the order of the text. Raises Refused for more than 10,000."""
    kept: list[TextSpan] = []
    taken: set[int] = set()
    for one in found:
        places = range(one.start, one.end)
        if taken.isdisjoint(places):
            taken.update(places)
            kept.append(one)
            if len(kept) > _MAX_FINDINGS:
                raise Refused("too-large", f"more than {_MAX_FINDINGS:,} findings")
    return sorted(kept)


def placed(text: str, found: list[TextSpan]) -> list[dict[str, object]]:
    """`kind`, `start`, `end` and `line` of each."""
    lines = 1
    reached = 0
    told: list[dict[str, object]] = []
    for one in found:
        lines += text.count("\n", reached, one.start)
        reached = one.start
        told.append({"kind": one.kind, "start": one.start, "end": one.end, "line": lines})
    return told
