"""The interfaces for time and identifiers, real and fake: the only inputs of a run apart from its
services.
"""

from __future__ import annotations

import os
import time
from functools import lru_cache
from typing import Final, Protocol

from cogcli.base.named_tuple import NamedTuple

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [a + b for a in _CROCKFORD for b in _CROCKFORD]
_MOST: Final = (1 << 20) - 1
"""The most that four digits in base 32 count up to."""


class Clock(Protocol):
    """Wall-clock time for records, monotonic time for durations and deadlines."""

    def now(self) -> str:
        """Return the current time as RFC 3339 in UTC with microseconds and `Z`."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never decrease."""
        ...


class IdSource(Protocol):
    """Creates identifiers in the formats of the product."""

    def ulid(self) -> str:
        """Return 26 characters of Crockford base 32 that sort by time of creation."""
        ...

    def run_id(self) -> str:
        """Return a new id: `run_` and 16 lower-case hex digits."""
        ...

    def trace_id(self) -> str:
        """Return a new id: 32 lower-case hex digits."""
        ...


def rfc3339(seconds: int, microseconds: int) -> str:
    """Return a Unix time as RFC 3339 in UTC with microseconds and `Z`."""
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{microseconds:06d}Z"


_SECOND: Final = 1_000_000
"""In microseconds."""


class _TimestampEnds(dict[int, str]):
    """The ends of timestamps: numbers below 1000 as three digits and `Z`. Each is formatted when it is first needed."""

    def __missing__(self, number: int) -> str:
        end = self[number] = f"{number:03d}Z"
        return end


_ends: Final = _TimestampEnds()


class SystemClock:
    """The clock of the machine. The text of the current millisecond is formatted once."""

    def __init__(self) -> None:
        self._millisecond = 1 << 63, ""
        """The beginning of the current millisecond, and its text. Initially a time before any clock. Threads
        replace both together.
        """
        self._second = -1, ""

    def now(self) -> str:
        now = time.time_ns() // 1000
        begin, text = self._millisecond
        passed = now - begin
        if 0 <= passed < 1000:
            return text + _ends[passed]
        seconds, microseconds = divmod(now, _SECOND)
        known, text = self._second
        if seconds != known:
            text = time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(seconds))
            self._second = seconds, text
        milliseconds, passed = divmod(microseconds, 1000)
        text = f"{text}{milliseconds:03d}"
        self._millisecond = now - passed, text
        return text + _ends[passed]

    monotonic = staticmethod(time.monotonic)


def encode_ulid(milliseconds: int, entropy: int) -> str:
    """Return a ULID of 48 bits of time and 80 bits of entropy."""
    high, low = divmod(entropy & (1 << 80) - 1, 1 << 20)
    return (
        _base32(milliseconds & (1 << 48) - 1, 10)
        + _base32(high, 12)
        + _PAIRS[low >> 10]
        + _PAIRS[low & 1023]
    )


@lru_cache(maxsize=16)
def _base32(value: int, digits: int) -> str:
    """Return an even number of base 32 digits.

    The result is cached, because within a millisecond only the last four digits of an id change.
    """
    return "".join([_PAIRS[value >> shift & 1023] for shift in range(5 * digits - 10, -1, -10)])


class SystemIds:
    """Creates random identifiers. ULIDs of one source increase even within a millisecond."""

    def __init__(self) -> None:
        self._millisecond = -1
        self._high = 0
        self._low = _MOST
        """The entropy of the last id: 60 bits and the last 20."""
        self._start = ""
        """The first 22 characters of the last id. Within a millisecond only the last four change."""

    def ulid(self) -> str:
        now = time.time_ns() // 1_000_000
        if now > self._millisecond or self._low == _MOST:
            return self._begin_millisecond(now)
        low = self._low = self._low + 1
        return f"{self._start}{_PAIRS[low >> 10]}{_PAIRS[low & 1023]}"

    def _begin_millisecond(self, now: int) -> str:
        """Return the first id of a millisecond. If the last 20 bits of that millisecond are used up, return the first
        id of the next one.
        """
        if now > self._millisecond:
            self._millisecond = now
            # The top bit stays free, so counting up within a millisecond cannot overflow.
            self._high, self._low = divmod(int.from_bytes(os.urandom(10), "big") >> 1, 1 << 20)
        else:
            self._high, self._low = self._high + 1, 0
        identifier = encode_ulid(self._millisecond, self._high << 20 | self._low)
        self._start = identifier[:-4]
        return identifier

    def run_id(self) -> str:
        return f"run_{os.urandom(8).hex()}"

    def trace_id(self) -> str:
        return os.urandom(16).hex()


class FakeClock:
    """A clock for tests and goldens: each reading is one millisecond after the previous one.

    `start` is a Unix time in whole seconds.
    """

    def __init__(self, start: int) -> None:
        self._start = start
        self._readings = 0
        self._ticks = 0

    def now(self) -> str:
        self._readings += 1
        seconds, milliseconds = divmod(self._readings, 1000)
        return rfc3339(self._start + seconds, milliseconds * 1000)

    def monotonic(self) -> float:
        self._ticks += 1
        return self._ticks / 1000


class FakeIds:
    """Creates identifiers that count up from a seed, for tests and goldens."""

    def __init__(self, seed: int) -> None:
        self._next = seed

    def _next_number(self) -> int:
        self._next += 1
        return self._next

    def ulid(self) -> str:
        return encode_ulid(1_700_000_000_000, self._next_number())

    def run_id(self) -> str:
        return f"run_{self._next_number():016x}"

    def trace_id(self) -> str:
        return f"{self._next_number():032x}"


class SystemUser(NamedTuple):
    """A user of the operating system. The number is None on Windows; an unknown name is empty."""

    uid: int | None
    name: str

    @property
    def text(self) -> str:
        """The name, otherwise the number, for messages."""
        return self.name or ("another user" if self.uid is None else f"user {self.uid}")


def current_user() -> SystemUser:
    """Return the user whose rights this process has."""
    if hasattr(os, "geteuid"):
        return user_of(os.geteuid())
    from getpass import getuser

    try:
        return SystemUser(None, getuser())
    except (OSError, KeyError):
        return SystemUser(None, "")


def user_of(uid: int) -> SystemUser:
    """Return the user with this number."""
    try:
        from pwd import getpwuid

        return SystemUser(uid, getpwuid(uid).pw_name)
    except (ImportError, KeyError):
        return SystemUser(uid, "")


def owner_of(path: str | os.PathLike[str]) -> SystemUser:
    """Return the owner of a file or directory, links not followed. It has no name if that is not known."""
    try:
        return user_of(os.lstat(path).st_uid)
    except OSError:
        return SystemUser(None, "")
