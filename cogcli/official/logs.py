"""Log lines as events: syslog, ISO timestamps, JSON lines, web servers, tracebacks. Levels and times as stated."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from cogcli.official.sentences import require_size
from cogcli.sdk import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_LOG_CHARACTERS = 8 * 1024 * 1024
_MAX_DETAIL = 2_000
_MAX_MESSAGE = 4_000
_MAX_WINDOWS = 2_000
_MAX_FAULTS = 200
_BURST = 3
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
_LEVELS = {
    "debug": "trace debug",
    "info": "info notice information",
    "warning": "warn warning",
    "error": "error err severe failure",
    "critical": "critical crit fatal alert emerg emergency panic",
}
_LEVEL = {word: level for level, words in _LEVELS.items() for word in words.split()}
_SEVERITIES = {"critical": "high", "error": "medium", "warning": "low"}
_PRIORITY = ("critical", "critical", "critical", "error", "warning", "info", "info", "debug")
_ISO = (
    r"(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?: ?(?:Z|[+-]\d\d:?\d\d))?)"
)
_SYSLOG_5424 = re.compile(
    rf"<(?P<pri>\d{{1,3}})>\d{{1,2}} {_ISO} (?P<host>\S+) (?P<source>\S+) \S+ \S+ (?:-|(?:\[[^\]]*\])+) ?(?P<rest>.*)",
    re.S,
)
_SYSLOG = re.compile(
    r"(?:<(?P<pri>\d{1,3})>)?(?P<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) (?P<host>\S+) "
    r"(?P<source>[^\s:\[]{1,80})(?:\[(?P<pid>\d{1,10})\])?: ?(?P<rest>.*)",
    re.S,
)
_DATED = re.compile(rf"\[?{_ISO}\]?[ \t]*(?P<rest>.*)", re.S)
_WEB = re.compile(
    r"(?P<host>\S+) \S+ (?P<user>\S+) \[(?P<time>\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\] "
    r"\"(?P<rest>[^\"]{0,4000})\" (?P<status>\d{3}) (?P<bytes>\d{1,15}|-)"
)
_OTHER_FORMS = (("web", _WEB),)
_FORMS: dict[str, tuple[tuple[str, re.Pattern[str]], ...]] = {
    "<": (("syslog", _SYSLOG_5424), ("syslog", _SYSLOG)),
    "[": (("iso", _DATED),),
    **dict.fromkeys("0123456789", (("iso", _DATED), ("web", _WEB))),
    **dict.fromkeys("ADFJMNOS", (("syslog", _SYSLOG), ("web", _WEB))),
}
"""The forms that a line may have, by its first character."""
_STATED = re.compile(
    rf"[\[(<]?(?<![\w./-])({'|'.join(_LEVEL)})(?![./-]?\w)(?:[\])>:]+|[ \t][|-](?=[ \t]))?",
    re.IGNORECASE,
)
_SOURCE = re.compile(r"[\s|:-]*[\[(]?([A-Za-z_][\w.$/-]{1,80})[\])]?(?::|\s+-)\s+")
_TRACEBACK = "Traceback (most recent call last):"
_RAISED = re.compile(
    r"([A-Za-z_][\w.]{0,120}(?:Error|Exception|Exit|Interrupt|Warning|Iteration|Group|Fault))(?:: (.*))?$"
)
_MORE = re.compile(r"\s|Caused by: |\.\.\. \d+ more|The above exception|During handling")
_VARIES = re.compile(r"0x[0-9a-fA-F]+|[0-9a-fA-F]{8,}|\d+")
_KEYS = {
    "time": ("time", "timestamp", "ts", "@timestamp", "datetime"),
    "level": ("level", "severity", "lvl", "levelname"),
    "message": ("message", "msg", "event", "text"),
    "source": ("logger", "service", "source", "name", "component"),
}

Event = dict[str, object]


def parse_log(text: str, window_minutes: float = 5, max_events: int = 10_000) -> dict[str, object]:
    """Return the events of a log in the order of its lines, and summaries of them.

    An event has `line`, `format`, `message`, and if stated `time`, `level` (debug, info, warning,
    error, critical), `source`, `host`, `fields`, `exception`. Indented lines and tracebacks belong
    to the event before. `skipped` counts lines in an unknown form. `timeline` counts per window;
    `burst` marks three or more errors at over twice the mean. `first_fault` is the earliest error;
    `faults` groups similar messages, worst first. A time without a year stays as written. Raise
    Refused `too-large` over 8 Mi characters.
    """
    require_size(text, MAX_LOG_CHARACTERS)
    if not 0 < window_minutes <= 525_600:
        raise Refused(
            "bad-data", f"window_minutes must be over 0 and at most 525600, found {window_minutes}"
        )
    events: list[tuple[Event, datetime | None]] = []
    skipped = 0
    in_traceback = False
    for number, line in enumerate(text.split("\n"), 1):
        content = line.rstrip()
        if not content:
            continue
        if (
            content.lstrip().startswith(_TRACEBACK)
            or in_traceback
            or (events and _MORE.match(content))
        ):
            in_traceback = _add_to_last_event(events, number, content, in_traceback)
        elif (parsed := _parse_line(number, content)) is not None:
            events.append(parsed)
        else:
            skipped += 1
    listed = [event for event, _ in events[: max(0, max_events)]]
    faults = _group_faults(event for event, _ in events)
    answer: dict[str, object] = {
        "events": listed,
        "skipped": skipped,
        "truncated": len(listed) < len(events),
    }
    answer |= {
        "counts": _count_events(events),
        "timeline": _build_timeline(events, window_minutes),
        "faults": faults,
    }
    in_order = [*(event for _, event in _events_by_time(events)), *(event for event, _ in events)]
    return answer | {"first_fault": next(filter(_is_fault, in_order), {})}


def _add_to_last_event(
    events: list[tuple[Event, datetime | None]], number: int, line: str, inside: bool
) -> bool:
    """Add a line to the last event. Return whether a traceback is still open after it."""
    if not events:
        events.append(
            ({"line": number, "format": "traceback", "message": line.strip()[:_MAX_MESSAGE]}, None)
        )
    event = events[-1][0]
    detail = str(event.get("detail", ""))
    if len(detail) < _MAX_DETAIL:
        event["detail"] = f"{detail}\n{line}"[:_MAX_DETAIL].lstrip("\n")
    if line.lstrip().startswith(_TRACEBACK):
        event.setdefault("level", "error")
        return True
    raised = _RAISED.match(line)
    if inside and not line[:1].isspace():
        if raised:
            event["exception"] = raised[1]
            event["exception_message"] = (raised[2] or "")[:_MAX_MESSAGE]
        return False
    return inside


def _parse_line(number: int, line: str) -> tuple[Event, datetime | None] | None:
    """Return the event that a line begins, and its time; None for a line in an unknown form."""
    if line.startswith("{"):
        return _parse_json_line(number, line)
    for name, pattern in _FORMS.get(line[0], _OTHER_FORMS):
        match = pattern.match(line)
        when = _parse_time(match["time"]) if match else None
        if match and when:
            return _build_event(number, name, match.groupdict(), when), when
    return None


def _build_event(number: int, name: str, parts: Mapping[str, str | None], time: datetime) -> Event:
    event: Event = {"line": number, "format": name, "time": _format_time(parts["time"] or "", time)}
    event |= {key: value for key in ("host", "source") if (value := parts.get(key))}
    message = parts["rest"] or ""
    if name == "web":
        status = int(parts["status"] or 0)
        fields = {
            "status": status,
            "bytes": int(parts["bytes"] or 0) if parts["bytes"] != "-" else None,
        }
        level = "error" if status >= 500 else "warning" if status >= 400 else "info"
        return event | {"level": level, "fields": fields, "message": message}
    level_word = next(
        (match for match in _STATED.finditer(message, 0, 60) if _is_level(match, message, name)),
        None,
    )
    if parts.get("pri"):
        event["level"] = _PRIORITY[int(parts["pri"] or 0) % 8]
    elif level_word:
        event["level"] = _LEVEL[level_word[1].lower()]
    if name == "iso" and level_word:
        source = _SOURCE.match(message, level_word.end())
        event |= {"source": source[1]} if source else {}
        message = message[source.end() if source else level_word.end() :].lstrip(" \t|:-")
    return event | {"message": message[:_MAX_MESSAGE]}


def _is_level(word: re.Match[str], message: str, form: str) -> bool:
    """Return whether a word states the level: set apart, in capitals or first after the date, not
    within a sentence.
    """
    is_apart = word[1].isupper() or not word[0][-1].isalpha()
    return is_apart or (form == "iso" and not message[: word.start()].strip(" \t|:-"))


def _parse_json_line(number: int, line: str) -> tuple[Event, datetime | None] | None:
    try:
        members = json.loads(line, parse_constant=_parse_finite, parse_float=_parse_finite)
    except (ValueError, RecursionError):
        return None
    if not isinstance(members, dict):
        return None
    keys = {
        name: next((key for key in among if key in members), None) for name, among in _KEYS.items()
    }
    event: Event = {"line": number, "format": "json"}
    time_text = members.get(keys["time"] or "")
    time = _parse_time(time_text) if isinstance(time_text, str) else None
    if time_text is not None:
        event["time"] = _format_time(time_text, time) if isinstance(time_text, str) else time_text
    level = _LEVEL.get(str(members.get(keys["level"] or "", "")).lower())
    event |= {"level": level} if level else {}
    event |= {"source": members[keys["source"]]} if keys["source"] else {}
    event["message"] = str(members.get(keys["message"] or "", ""))[:_MAX_MESSAGE]
    return event | {
        "fields": {key: value for key, value in members.items() if key not in keys.values()}
    }, time


def _parse_finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"no JSON: {text:.20}")
    return number


def _parse_time(written: str) -> datetime | None:
    """Return the time in UTC if a zone is stated, else as written; None if it is not a time.

    A time without a year gets the leap year 1904.
    """
    try:
        if written[:1].isdigit() and written[4:5] == "-":
            parsed = datetime.fromisoformat(
                written.replace(",", ".").replace(" +", "+").replace(" Z", "Z")
            )
        elif "/" in written:
            day, month, year = written[:11].split("/")
            parsed = datetime.fromisoformat(
                f"{year}-{_MONTHS.index(month) + 1:02}-{day}T{written[12:20]}{written[21:]}"
            )
        else:
            month, day, clock = written.split()
            parsed = datetime.fromisoformat(
                f"1904-{_MONTHS.index(month) + 1:02}-{int(day):02}T{clock}"
            )
        offset = parsed.utcoffset() or timedelta()
        return parsed.replace(tzinfo=None) - offset
    except (ValueError, OverflowError):
        return None


def _format_time(written: str, time: datetime | None) -> str:
    if time is None or time.year == 1904:
        return written
    zone = "Z" if re.search(r"(?:Z|[+-]\d\d:?\d\d)$", written[10:]) else ""
    return time.isoformat() + zone


def _count_events(events: list[tuple[Event, datetime | None]]) -> dict[str, object]:
    levels = sorted(Counter(str(event.get("level", "unstated")) for event, _ in events).items())
    formats = sorted(Counter(str(event["format"]) for event, _ in events).items())
    return {"events": len(events), "levels": dict(levels), "formats": dict(formats)}


def _is_fault(event: Event) -> bool:
    return event.get("level") in ("error", "critical")


def _events_by_time(events: list[tuple[Event, datetime | None]]) -> list[tuple[datetime, Event]]:
    """Return the events that have a time, earliest first. If any has a year, only those with a
    year.
    """
    timed = [(time, event) for event, time in events if time is not None]
    dated = [pair for pair in timed if pair[0].year != 1904]
    return sorted(dated or timed, key=lambda pair: pair[0])


def _build_timeline(events: list[tuple[Event, datetime | None]], minutes: float) -> list[Event]:
    events_by_time = _events_by_time(events)
    if not events_by_time:
        return []
    start, width = events_by_time[0][0].replace(second=0, microsecond=0), timedelta(minutes=minutes)
    windows: dict[int, list[int]] = {}
    for time, event in events_by_time:
        window = windows.setdefault((time - start) // width, [0, 0])
        window[0] += 1
        window[1] += _is_fault(event)
    mean = sum(errors for _, errors in windows.values()) / (max(windows) + 1)
    shape = "%b %d %H:%M" if start.year == 1904 else "%Y-%m-%dT%H:%M"
    return [
        {
            "start": (start + index * width).strftime(shape),
            "events": count,
            "errors": errors,
            "burst": errors >= _BURST and (errors > 2 * mean or len(windows) == 1),
        }
        for index, (count, errors) in sorted(windows.items())[:_MAX_WINDOWS]
    ]


def _group_faults(events: Iterable[Event]) -> list[Event]:
    """Return one entry for warnings and errors whose messages differ in numbers only, worst first."""
    groups: dict[tuple[object, str], Event] = {}
    for event in events:
        level = event.get("level")
        if level in _SEVERITIES:
            text = str(event.get("exception") or "") or str(event["message"])
            new: Event = {
                "kind": level,
                "severity": _SEVERITIES[str(level)],
                "text": str(event["message"])[:300],
            }
            new |= {"count": 0, "line": event["line"], "first_time": event.get("time")}
            entry = groups.setdefault((level, _VARIES.sub("#", text[:300])), new)
            entry["count"] = int(str(entry["count"])) + 1
            entry["last_time"] = event.get("time")
    order = list(_SEVERITIES)
    groups_ranked = sorted(
        groups.values(), key=lambda one: (order.index(str(one["kind"])), -int(str(one["count"])))
    )
    return groups_ranked[:_MAX_FAULTS]
