"""Large values are stored once and referred to, under rules 2: docs/reference/episode.md#blobs. Beyond the page:

1. Below the size of a disk page, 4 KiB, a file of its own would cost more than it saves.
2. As the inner value goes first, a large text in an object leaves the object small, and a blob may hold references.
3. What a blob holds is never a reference as a whole.
4. Blobs of one line that are repeated count each time against the bound.
5. Steps pass a large text on, so lines that follow one another name the same blob: its text is in memory once.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from cogcli.base.strict_json import JsonRefused
from cogcli.episode.blobs import MARK, MAX_BLOB, SPILL, Get, Put, is_reference, parse, reference_to

SMALL: Final = 4096
"""Bytes of JSON up to which a value of a step is left where it is."""
IN_FULL: Final = 1024 * 1024
"""Bytes of JSON up to which an output is in full in `state.json`."""
_VALUES: Final = frozenset(
    ("inputs", "input", "output", "outputs", "value", "frame", "request", "reply", "read")
)
"""Keys under which an event holds what a run or a step was given or produced."""
_KEPT_TEXTS: Final = 2
"""A step names what it was given and what it gave."""
_DEEPEST: Final = 128
"""Levels of a value put together from blobs: above what any writer may nest, below what recursion bears."""


def shorten_values(payload: dict[str, Any], put: Put) -> dict[str, Any]:
    """The payload as it is in the log: large values are handed to `put`, which gives their digest."""
    return {key: _member(key, value, SPILL, put) for key, value in payload.items()}


def refer(value: Any, put: Put, *, limit: int = SMALL) -> Any:
    """The value as it is in a document: what exceeds `limit` bytes of JSON in it, or the whole, is a reference."""
    text = orjson.dumps(value)
    if len(text) <= limit and MARK not in text:
        return value
    short = value
    if type(value) is dict:
        short = {key: refer(member, put, limit=limit) for key, member in value.items()}
    elif type(value) is list:
        short = [refer(member, put, limit=limit) for member in value]
    if short is not value:
        text = orjson.dumps(short)
    if len(text) > limit or is_reference(value):
        return reference_to(text, put)
    return short


def show_in_full(value: Any, put: Put) -> Any:
    """The value as it is where people read it: in full up to 1 MiB; above that in the same blobs as elsewhere."""
    return refer(value, put, limit=IN_FULL if len(orjson.dumps(value)) <= IN_FULL else SMALL)


def _member(key: str, value: Any, limit: int, put: Put) -> Any:
    """Return a member of a payload with its large values replaced by references to blobs, at any depth."""
    if key in _VALUES:
        return refer(value, put)
    text = orjson.dumps(value)
    if len(text) <= SMALL and MARK not in text:
        return value
    if len(text) <= SMALL or type(value) not in (dict, list):
        return refer(value, put, limit=limit)
    if type(value) is dict:
        value = {name: _member(name, member, limit, put) for name, member in value.items()}
    else:
        value = [_member(key, member, limit, put) for member in value]
    text = orjson.dumps(value)
    return value if len(text) <= limit else reference_to(text, put)


class BlobReader:
    """Puts the values of one log or document together from its blobs (rules 4 and 5)."""

    def __init__(self, get: Get) -> None:
        self.get = get
        self._left = 0
        """Bytes that the line or document may still name."""
        self._texts: dict[str, str] = {}
        """By digest the last large texts, the latest last."""

    def expand_payload(self, payload: dict[str, Any]) -> dict[str, Any]:
        """The payload as folds see it. A reference whose blob is missing, altered or beyond the bound stays."""
        self._left = MAX_BLOB
        return {key: self._value(member, 0) for key, member in payload.items()}

    def expand_document(self, value: Any) -> Any:
        """A value of a document with everything that it names put in its place, as far as it is there."""
        self._left = MAX_BLOB
        return self._value(value, 0)

    def _value(self, value: Any, depth: int) -> Any:
        return self._blob(value, depth) if is_reference(value) else self._inside(value, depth)

    def _inside(self, value: Any, depth: int) -> Any:
        if depth > _DEEPEST:
            return value
        if type(value) is dict:
            return {key: self._value(member, depth + 1) for key, member in value.items()}
        if type(value) is list:
            return [self._value(member, depth + 1) for member in value]
        return value

    def _blob(self, reference: dict[str, Any], depth: int) -> Any:
        self._left -= reference["bytes"]
        beyond = self._left < 0 or reference["bytes"] < 0
        # Asking for no blob at all counts it among those that are not there.
        data = self.get("" if beyond else reference["$blob"])
        if data is None or len(data) != reference["bytes"]:
            return reference
        try:
            held = parse(data)
        except JsonRefused:
            return reference
        if type(held) is str:
            return self._shared(reference["$blob"], held)
        return self._inside(held, depth) if MARK in data else held

    def _shared(self, digest: str, text: str) -> str:
        """The object that an earlier line has for the same text, or this one."""
        known = self._texts.pop(digest, text)
        self._texts[digest] = known
        if len(self._texts) > _KEPT_TEXTS:
            del self._texts[next(iter(self._texts))]
        return known
