"""The bytes of the JSON documents of an episode, and the arithmetic on their timestamps."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

import orjson

from cogcli.base.files import UnreadableFile
from cogcli.base.jsonvalue import object_of
from cogcli.base.strict_json import InvalidJson
from cogcli.declarations.envelope import Event
from cogcli.declarations.value_types import Json
from cogcli.episode.blobs import parse
from cogcli.episode.folder import Folder
from cogcli.episode.layout import DECISION

SUMMARY_MEMBERS: Final = ("decision_id", "decision_key", "status", "status_reason", "record_hash")
"""The members of a decision that `state.json` has."""
_LARGEST: Final = 1 << 28


def to_bytes(document: Json) -> bytes:
    """Return a document as JSON with indent 2, keys in their given order, and a final newline. Equal documents give
    equal bytes.
    """
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def read_document(folder: Folder, name: str) -> object:
    """Return the JSON value of a document of at most 256 MiB. Raise UnreadableFile, InvalidJson."""
    return parse(folder.read(name, limit=_LARGEST))


def read_object(folder: Folder, name: str) -> Json:
    """Return the object of a document. Empty if it is not an object or cannot be read."""
    with suppress(UnreadableFile, InvalidJson):
        return object_of(read_document(folder, name))
    return {}


def read_decision_summary(directory: str) -> Json | None:
    """Return the `x-decision` of a newly written episode, or None for the run of a skill."""
    try:
        with open(f"{directory}/{DECISION}", "rb") as file:
            record = orjson.loads(file.read())
    except FileNotFoundError:
        return None
    return {name: record[name] for name in SUMMARY_MEMBERS}


def measured_ms(event: Event) -> int | float | None:
    """Return the duration in the metrics of an event; None if it is not a number."""
    return duration_in(event.metrics)


def duration_in(metrics: Json | None) -> int | float | None:
    """Return the `duration_ms` of metrics; None if it is not a number."""
    measured = (metrics or {}).get("duration_ms")
    return measured if type(measured) in (int, float) else None


def milliseconds_between(earlier: str, later: str, *, whole: bool = False) -> int | None:
    """Return the milliseconds from one RFC 3339 time to another, or None for an invalid time.

    They are rounded, or rounded down if `whole`.
    """
    a, b = _parse_time(earlier), _parse_time(later)
    if a is None or b is None:
        return None
    return (b - a) // timedelta(milliseconds=1) if whole else round((b - a).total_seconds() * 1000)


def earlier(timestamp: str, milliseconds: float) -> str:
    """Return the RFC 3339 time `milliseconds` before a time. An invalid time is returned unchanged."""
    with suppress(OverflowError, ValueError):
        if moment := _parse_time(timestamp):
            begun = moment - timedelta(milliseconds=milliseconds)
            return begun.isoformat(timespec="microseconds").replace("+00:00", "Z")
    return timestamp


def _parse_time(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
