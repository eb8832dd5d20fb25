"""The two things a run takes from the outside world besides its services: time and identity."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Wall time for records, monotonic time for durations and deadlines."""

    def now(self) -> str:
        """RFC 3339 in UTC with microseconds and `Z`."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...


class IdSource(Protocol):
    """Fresh identifiers in the formats of the product."""

    def ulid(self) -> str:
        """26 characters of Crockford base 32, sortable by time of creation."""
        ...

    def run_id(self) -> str:
        """`run_` and 16 lower-case hex digits."""
        ...

    def trace_id(self) -> str:
        """32 lower-case hex digits."""
        ...
