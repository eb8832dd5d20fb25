"""The data of the page about a batch: counts, failures, latencies and the slowest lines."""

from __future__ import annotations

from collections.abc import Sequence

from cogcli.base.named_tuple import NamedTuple
from cogcli.report.humanize import duration
from cogcli.report.svg import ShareBar, shares_svg


class CountedLines(NamedTuple):
    """The number of lines with the same status or code. `first` lists the first of them."""

    name: str
    total: int
    first: str


class SlowLine(NamedTuple):
    """One of the slowest lines."""

    line: int
    took: str
    status: str
    episode: str


class BatchPage(NamedTuple):
    """The page about a batch."""

    batch_id: str
    skill: str
    outcome: str
    tone: str
    facts: list[tuple[str, str]]
    statuses: list[CountedLines]
    codes: list[CountedLines]
    latency: str
    """A drawing as SVG. Empty without lines that ran."""
    slowest: list[SlowLine]


def draw_latency(buckets: Sequence[tuple[float, int]]) -> str:
    """Return a bar for each doubling of milliseconds, given the upper end and the lines of each bucket."""
    doubled: dict[int, int] = {}
    for upper, count in buckets:
        end = max(1, 1 << (int(upper) - 1).bit_length()) if upper > 1 else 1
        doubled[end] = doubled.get(end, 0) + count
    if not doubled:
        return ""
    ends = [1 << power for power in range(min(doubled).bit_length() - 1, max(doubled).bit_length())]
    bars = [ShareBar(f"up to {duration(end)}", doubled.get(end, 0)) for end in ends]
    total = sum(doubled.values())
    return shares_svg(bars, name="latency", title="Latency", description=f"of {total:,} lines")
