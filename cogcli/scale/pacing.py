"""When sending stops or pauses: too many failures, or a service that does not answer
(docs/reference/batch.md#failures)."""

from __future__ import annotations

from typing import Final

from cogcli.base.errors import TRANSIENT
from cogcli.base.named_tuple import NamedTuple
from cogcli.scale.line_result import LineResult

_IN_A_ROW: Final = 5
FIRST_PAUSE: Final = 30.0
LONGEST_PAUSE: Final = 600.0
_JUDGED_FROM: Final = 100
"""The minimum number of ended lines for evaluating a percentage."""


class FailureLimit(NamedTuple):
    """`--max-failures`: a number of lines, or a percentage of the ended ones."""

    number: int
    is_percentage: bool = False

    def is_exceeded(self, failed: int, ended: int) -> bool:
        """Return whether no further line should be sent."""
        if not self.is_percentage:
            return failed > self.number
        return ended >= _JUDGED_FROM and failed * 100 > self.number * ended


class ServicePause:
    """Pauses sending after five lines in a row that ended with exit code 6 at one service. The pause doubles until a
    line ends otherwise."""

    def __init__(self, first: float = FIRST_PAUSE) -> None:
        self._first = first
        self._service = ""
        self._in_a_row = 0
        self._length = 0.0
        self._until = 0.0

    def apply(self, result: LineResult, now: float) -> str:
        """Count a result. Return the service if a pause begins now; empty otherwise."""
        if result.entry.exit_code != TRANSIENT or not result.service:
            self._in_a_row, self._length, self._service = 0, 0.0, ""
            return ""
        if result.service != self._service:
            self._service, self._in_a_row = result.service, 0
        self._in_a_row += 1
        if now < self._until or (self._in_a_row < _IN_A_ROW and not self._length):
            return ""
        self._length = min(2 * self._length or self._first, LONGEST_PAUSE)
        self._until = now + self._length
        return self._service

    def seconds_left(self, now: float) -> float:
        """Return the remaining seconds of the pause; 0 without a pause."""
        return max(0.0, self._until - now)
