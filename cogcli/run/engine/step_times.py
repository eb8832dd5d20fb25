"""The times of one step, read from both clocks."""

from __future__ import annotations

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.system import Clock


class ClockReading(NamedTuple):
    """Both clocks at one moment: the time for records, and monotonic seconds."""

    timestamp: str
    seconds: float

    @classmethod
    def now(cls, clock: Clock) -> ClockReading:
        """Read both clocks once."""
        return cls(clock.now(), clock.monotonic())


class StepTimes(NamedTuple):
    """The times of an ended step, with the names that the `metrics` of its closing event use."""

    started_at: str
    completed_at: str
    duration_ms: int

    @classmethod
    def until_now(cls, started: ClockReading, clock: Clock) -> StepTimes:
        """Return the times of a step that ends now."""
        took = milliseconds_since(started.seconds, clock)
        return cls(started.timestamp, clock.now(), took)


def milliseconds_since(seconds: float, clock: Clock) -> int:
    """Return the whole milliseconds since a reading of the monotonic clock."""
    took = round((clock.monotonic() - seconds) * 1000)
    return took if took > 0 else 0
