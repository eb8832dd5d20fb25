"""How many lines a task has, so that it takes about a tenth of a second: a task costs scheduler and worker some
milliseconds, whatever it does.
"""

from __future__ import annotations

from typing import Final

SECONDS: Final = 0.1
"""The intended duration of a task in seconds."""
LONGEST: Final = 0.5
"""Seconds after which a worker returns the unbegun lines of a task, because other workers may be idle."""
MOST: Final = 256
"""The most lines of one task."""
_WEIGHT: Final = 0.3
"""The weight of the newest task in the mean."""


class GroupSize:
    """The number of lines of the next task, adapted to the time that earlier lines took. The first tasks have one line
    each.
    """

    def __init__(self) -> None:
        self._seconds = SECONDS
        """The mean time of a line."""

    @property
    def lines(self) -> int:
        """The number of lines."""
        return max(1, min(MOST, int(SECONDS / self._seconds)))

    def note(self, lines: int, seconds: float) -> None:
        """Record how many seconds the lines of a task took."""
        if lines > 0:
            new = max(seconds / lines, SECONDS / MOST)
            self._seconds += _WEIGHT * (new - self._seconds)
