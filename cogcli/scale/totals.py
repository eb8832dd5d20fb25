"""The totals of a batch: a fold over the entries of its ledger, for progress, exit code and summary."""

from __future__ import annotations

from collections import Counter
from typing import Final

from cogcli.base.errors import NO, OK, PENDING
from cogcli.declarations.value_types import Json
from cogcli.scale.latency import LatencyBuckets
from cogcli.scale.ledger import LedgerEntry
from cogcli.scale.line_set import LineSet

FIRST_LINES: Final = 3
"""Lines that the summary names of each status and code."""


class Totals:
    """The counts of the lines of one shard. Each line is counted once, with its last try."""

    def __init__(self) -> None:
        self.done = LineSet()
        """The lines with a final result."""
        self.by_status: Counter[str] = Counter()
        self.by_code: Counter[str] = Counter()
        self.pending: dict[int, LedgerEntry] = {}
        self.latencies = LatencyBuckets()
        self.calls = self.retries = self.tokens = 0
        self._first: dict[str, list[int]] = {}

    def apply(self, entry: LedgerEntry) -> bool:
        """Count an entry. If its line already has a final result, return False without counting."""
        line = entry.line
        if line in self.done:
            return False
        before = self.pending.pop(line, None)
        if before is not None:
            self._count_status(before, -1)
        if entry.is_final:
            self.done.add(line)
            self._add_work(entry)
        else:
            self.pending[line] = entry
        self._count_status(entry, 1)
        return True

    def _count_status(self, entry: LedgerEntry, number: int) -> None:
        self.by_status[entry.status] += number
        if entry.code:
            self.by_code[entry.code] += number
        for name in filter(None, (entry.status, entry.code)):
            first = self._first.setdefault(name, [])
            if number < 0 and entry.line in first:
                first.remove(entry.line)
            elif number > 0 and len(first) < FIRST_LINES:
                first.append(entry.line)

    def _add_work(self, entry: LedgerEntry) -> None:
        self.calls += entry.calls
        self.retries += entry.retries
        self.tokens += entry.tokens
        if entry.episode is not None:
            self.latencies.add(entry.milliseconds)

    @property
    def ended(self) -> int:
        """The number of lines with a result, including those that wait for an answer."""
        return self.done.count + len(self.pending)

    @property
    def failed(self) -> int:
        """The number of lines that did not succeed."""
        return self.done.count - self.by_status["ok"]

    @property
    def exit_code(self) -> int:
        """The exit code of a batch, once all its lines have ended."""
        if self.failed:
            return NO
        return PENDING if self.pending else OK

    def counts(self, counter: Counter[str]) -> dict[str, Json]:
        """Return the counts of statuses or codes, the most frequent first, each with its first lines."""
        found = sorted((+counter).items(), key=lambda pair: (-pair[1], pair[0]))
        return {name: {"count": count, "lines": self._first.get(name, [])} for name, count in found}
