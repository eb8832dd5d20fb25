"""`report ba_...`: one HTML page about a batch, made from its ledgers alone (docs/reference/batch.md#report)."""

from __future__ import annotations

from heapq import heappush, heappushpop, nlargest
from typing import Final

from cogcli import __version__
from cogcli.app.settings import Settings
from cogcli.base.system import rfc3339
from cogcli.declarations.value_types import Json
from cogcli.report.batch_page import BatchPage, CountedLines, SlowLine, draw_latency
from cogcli.report.html import batch_html
from cogcli.report.humanize import duration
from cogcli.scale.batch_folder import BatchFolder, Shard, find_batch, read_header
from cogcli.scale.latency import upper_end
from cogcli.scale.ledger import LedgerEntry, damaged_ledger_error
from cogcli.scale.totals import Totals

_SLOWEST: Final = 20
_MOST_ROWS: Final = 200


def _read_shard(batch: BatchFolder, shard: Shard, totals: Totals, slowest: _SlowestEntries) -> None:
    """Add the lines of a shard's ledger to the totals and the slowest lines. Raise UnusableEnvironment
    `batch.damaged`.
    """
    reading = batch.read_ledger(shard)
    for entry in reading:
        if totals.apply(entry) and entry.is_final:
            slowest.add(entry)
    if reading.fault:
        raise damaged_ledger_error(batch.folder, shard.ledger, reading.fault)


def page_of_batch(settings: Settings, text: str) -> tuple[str, bytes]:
    """Return the id of the batch that a text names, and its page. Raise UsageError `batch.unknown`, or
    UnusableEnvironment `batch.damaged`.
    """
    batch_id = find_batch(settings.runs_dir, text)
    totals, slowest = Totals(), _SlowestEntries()
    with BatchFolder.open(settings.runs_dir, batch_id) as batch:
        header = read_header(batch.folder)
        shards = batch.shards()
        for shard in shards:
            _read_shard(batch, shard, totals, slowest)
    left = header.input.lines - totals.ended
    began = rfc3339(header.created_ms // 1000, 0)[:19].replace("T", " ")
    latency = totals.latencies
    quantiles = {"median": 0.5, "90 %": 0.9, "99 %": 0.99}
    facts = [
        ("lines", f"{header.input.lines:,}"),
        ("began", f"{began} UTC"),
        *(
            (name, duration(round(value)))
            for name, share in quantiles.items()
            if (value := latency.quantile(share)) is not None
        ),
        ("calls", f"{totals.calls:,}"),
        ("retries", f"{totals.retries:,}"),
        ("tokens", f"{totals.tokens:,}"),
        *([("shards", str(len(shards)))] if len(shards) > 1 else []),
    ]
    page = BatchPage(
        batch_id=batch_id,
        skill=header.skill,
        outcome=_batch_outcome(totals, left),
        tone="red" if totals.failed else "yellow" if totals.pending or left else "green",
        facts=facts,
        statuses=[
            *_parse_counts(totals.counts(totals.by_status)),
            *([CountedLines("not run", left, "")] if left else []),
        ],
        codes=_parse_counts(totals.counts(totals.by_code)),
        latency=draw_latency([(upper_end(place), count) for place, count in latency.buckets()]),
        slowest=slowest.rows(),
    )
    return batch_id, batch_html(page, version=__version__)


def _batch_outcome(totals: Totals, left: int) -> str:
    words = [f"{totals.by_status['ok']:,} ok"]
    words += [f"{totals.failed:,} failed"] if totals.failed else []
    words += [f"{len(totals.pending):,} wait"] if totals.pending else []
    words += [f"{left:,} not run"] if left else []
    return ", ".join(words)


def _parse_counts(counts: Json) -> list[CountedLines]:
    rows = [
        CountedLines(name, each["count"], ", ".join(map(str, each["lines"])))
        for name, each in counts.items()
    ]
    return rows[:_MOST_ROWS]


class _SlowestEntries:
    """The slowest ledger entries seen so far."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, LedgerEntry]] = []

    def add(self, entry: LedgerEntry) -> None:
        """Keep an entry if it is one of the slowest."""
        item = (entry.milliseconds, -entry.line, entry)
        if len(self._heap) < _SLOWEST:
            heappush(self._heap, item)
        else:
            heappushpop(self._heap, item)

    def rows(self) -> list[SlowLine]:
        """Return the slowest lines, the slowest first."""
        return [
            SlowLine(
                entry.line, duration(round(entry.milliseconds)), entry.status, entry.episode or ""
            )
            for _, _, entry in nlargest(_SLOWEST, self._heap)
        ]
