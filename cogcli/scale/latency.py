"""Milliseconds of many lines in buckets of 2 %, which shards add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import ceil, log
from typing import Final

from cogcli.declarations.batch_records import LatencySummary

_WIDTH: Final = log(1.02)


def upper_end(bucket: int) -> float:
    """Return the milliseconds at which a bucket ends."""
    return float(round(1.02**bucket, 3))


class LatencyBuckets:
    """Counts of lines by bucket: bucket n ends at 1.02 to the power of n milliseconds."""

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()
        self._count = 0
        self._most: float | None = None

    def add(self, milliseconds: float) -> None:
        """Count one line."""
        self._add_bucket(ceil(log(max(milliseconds, 1)) / _WIDTH), 1)
        self._raise_most(milliseconds)

    def merge(self, other: LatencySummary) -> None:
        """Count the lines of another summary."""
        buckets: Mapping[str, int] = other.buckets
        for name, count in buckets.items():
            if name.isdigit():
                self._add_bucket(int(name), count)
        if other.max is not None:
            self._raise_most(other.max)

    def _add_bucket(self, bucket: int, count: int) -> None:
        self._buckets[bucket] += count
        self._count += count

    def _raise_most(self, milliseconds: float) -> None:
        self._most = milliseconds if self._most is None else max(self._most, milliseconds)

    def quantile(self, share: float) -> float | None:
        """Return the upper end of the bucket with this share of the lines up to it; None without lines."""
        wanted, seen = ceil(share * self._count), 0
        for bucket in sorted(self._buckets):
            seen += self._buckets[bucket]
            if seen >= wanted:
                return min(upper_end(bucket), self._most or 0)
        return None

    def buckets(self) -> list[tuple[int, int]]:
        """Return the buckets that have lines, with their counts, in order."""
        return sorted(self._buckets.items())

    def summary(self) -> LatencySummary:
        """Return the quantiles and the buckets."""
        return LatencySummary(
            p50=self.quantile(0.5),
            p90=self.quantile(0.9),
            p99=self.quantile(0.99),
            max=self._most,
            buckets={str(bucket): count for bucket, count in self.buckets()},
        )
