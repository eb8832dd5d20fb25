"""Durations, times, sizes and ids as short text for screens."""

from __future__ import annotations

import time

from cogcli.declarations.call_records import RunError, StepError

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def duration(ms: int | None) -> str:
    """Return a duration such as `18ms`, `1.84s`, `2m05s` or `3h12m`. Empty for None."""
    if ms is None:
        return ""
    if ms < 1000:
        return f"{ms}ms"
    seconds = ms / 1000
    if seconds < _MINUTE - 0.005:
        return f"{seconds:.2f}s" if seconds < 10 else f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < _HOUR:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // _HOUR}h{whole % _HOUR // 60:02d}m"


def short_episode(id: str) -> str:
    """Return `ep_` and twelve characters of an episode id; the whole id for a line of a batch.

    The ids of a batch have the same time, and then the number of the line in eight digits, from 1 on.
    """
    if not id.startswith("ep_"):
        return id[:20]
    line = id[13:21]
    return id if line.startswith("00") and line.strip("0") else id[:15]


def short_trace(id: str) -> str:
    """Return the first eight characters of a generated trace id. A trace id that the user chose is
    unchanged."""
    generated = len(id) == 32 and not set(id) - set("0123456789abcdef")
    return id[:8] if generated else id


def seconds_of(timestamp: str) -> float | None:
    """Return the Unix time of an RFC 3339 timestamp in UTC, or None for any other string."""
    from calendar import timegm

    try:
        whole = timegm(time.strptime(timestamp[:19], "%Y-%m-%dT%H:%M:%S"))
        fraction = timestamp[19:].rstrip("Z")
        return whole + (float(fraction) if fraction[:1] == "." else 0.0)
    except ValueError:
        return None


def milliseconds_between(start: str, end: str) -> int | None:
    """Return the milliseconds from one timestamp to another, at least 0. None if one is invalid."""
    first, last = seconds_of(start), seconds_of(end)
    return None if first is None or last is None else max(0, round((last - first) * 1000))


def fuzzy_time(timestamp: str, now: str) -> str:
    """Return a time such as `today 22:58`, `yesterday 09:12`, `14 Nov 09:12` or `2025-11-14`, in
    the user's time zone."""
    at, current = seconds_of(timestamp), seconds_of(now)
    if at is None or current is None:
        return timestamp
    then, today = time.localtime(at), time.localtime(current)
    clock = time.strftime("%H:%M", then)
    if then[:3] == today[:3]:
        return f"today {clock}"
    if time.localtime(current - _DAY)[:3] == then[:3]:
        return f"yesterday {clock}"
    if then.tm_year == today.tm_year:
        return f"{then.tm_mday} {_MONTHS[then.tm_mon - 1]} {clock}"
    return time.strftime("%Y-%m-%d", then)


_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def size(count: int) -> str:
    """Return a number of bytes as `512 B`, `61 kB` or `12 MB`."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.0f} {unit}" if value >= 10 or unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return ""


def error_text(error: StepError | RunError | None) -> str:
    """Return `code: message` of an error. A missing part is omitted. Empty for None."""
    return ": ".join(text for text in (error.code, error.message) if text) if error else ""


def count_of(count: int, word: str, plural: str = "") -> str:
    """Return a count with its noun: `1 step`, `2 steps`."""
    return f"{count} {word if count == 1 else plural or word + 's'}"
