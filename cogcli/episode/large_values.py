"""The references to large values under rules 2 (docs/reference/episode.md#blobs). Beyond the page:

1. Below the size of a disk page, 4 KiB, a file of its own would cost more than it saves.
2. Inner values are replaced first: a large text in an object leaves the object small, and a blob may hold references.
3. The whole value of a blob is never a reference.
4. A blob that one line names several times counts each time against the bound.
5. Steps pass a large text on, so consecutive lines name the same blob: its text is in memory once.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from cogcli.base.strict_json import InvalidJson
from cogcli.declarations.value_types import Json
from cogcli.episode.blobs import (
    MAX_BLOB,
    SPILL,
    Get,
    Put,
    is_reference,
    may_refer,
    parse,
    reference_to,
)

SMALL: Final = 4096
"""Bytes of JSON up to which a value of a step stays in place."""
_SHORT: Final = SMALL // 8
"""A text of fewer characters never has more bytes of JSON than `SMALL`."""
IN_FULL: Final = 1024 * 1024
"""Bytes of JSON up to which an output is in full in `state.json`."""
_VALUES: Final = frozenset(
    ("inputs", "input", "output", "outputs", "value", "frame", "request", "reply", "read")
)
"""Keys of the inputs and outputs of runs and steps in an event."""
_KEPT_TEXTS: Final = 2
"""A step names its input and its output."""
_DEEPEST: Final = 128
"""Levels of a value assembled from blobs: more than any writer may nest, fewer than the limit of recursion."""


def shorten_values(payload: Json, put: Put) -> Json:
    """Return the payload for the log: `put` stores its large values and returns their digests."""
    return {key: _member(key, value, SPILL, put) for key, value in payload.items()}


def refer(value: object, put: Put, *, limit: int = SMALL) -> object:
    """Return the value for a document. If its JSON exceeds `limit` bytes, references replace its parts or all of it."""
    text = orjson.dumps(value)
    if len(text) <= limit and not may_refer(text):
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


def show_in_full(value: object, put: Put) -> object:
    """Return the value for readers: unchanged up to 1 MiB, above that with references."""
    return refer(value, put, limit=IN_FULL if len(orjson.dumps(value)) <= IN_FULL else SMALL)


def _member(key: str, value: object, limit: int, put: Put) -> object:
    """Return a member of a payload with its large values replaced by references to blobs, at any depth."""
    if key in _VALUES:
        return refer(value, put)
    if type(value) is str and len(value) < _SHORT:
        return value
    text = orjson.dumps(value)
    if len(text) <= SMALL:
        return refer(value, put, limit=limit) if may_refer(text) else value
    short: object
    if type(value) is dict:
        short = {name: _member(name, member, limit, put) for name, member in value.items()}
    elif type(value) is list:
        has_small_items = max(map(len, map(orjson.dumps, value))) <= SMALL
        if has_small_items and not may_refer(text):
            return value if len(text) <= limit else reference_to(text, put)
        short = [_member(key, member, limit, put) for member in value]
    else:
        return refer(value, put, limit=limit)
    text = orjson.dumps(short)
    return short if len(text) <= limit else reference_to(text, put)


class BlobReader:
    """Assembles the values of one log or document from its blobs (rules 4 and 5)."""

    def __init__(self, get: Get) -> None:
        self.get = get
        self._left = 0
        """Bytes that the line or document may still name."""
        self._texts: dict[str, str] = {}
        """The last large texts by digest, the latest last."""

    def expand_payload(self, payload: Json) -> Json:
        """Return the payload with its blobs loaded. A reference is kept if its blob is missing, altered or beyond
        the bound.
        """
        self._left = MAX_BLOB
        return {key: self._value(member, 0) for key, member in payload.items()}

    def expand_document(self, value: object) -> Any:
        """Return a value of a document with its blobs in place, as far as they exist."""
        self._left = MAX_BLOB
        return self._value(value, 0)

    def _value(self, value: object, depth: int) -> object:
        return self._blob(value, depth) if is_reference(value) else self._inside(value, depth)

    def _inside(self, value: object, depth: int) -> object:
        if depth > _DEEPEST:
            return value
        if type(value) is dict:
            return {key: self._value(member, depth + 1) for key, member in value.items()}
        if type(value) is list:
            return [self._value(member, depth + 1) for member in value]
        return value

    def _blob(self, reference: Json, depth: int) -> object:
        self._left -= reference["bytes"]
        beyond = self._left < 0 or reference["bytes"] < 0
        # The empty digest counts as a missing blob.
        data = self.get("" if beyond else reference["$blob"])
        if data is None or len(data) != reference["bytes"]:
            return reference
        try:
            held = parse(data)
        except InvalidJson:
            return reference
        if type(held) is str:
            return self._share_text(reference["$blob"], held)
        return self._inside(held, depth) if may_refer(data) else held

    def _share_text(self, digest: str, text: str) -> str:
        """Return the object that an earlier line has for an equal string, or this string."""
        known = self._texts.pop(digest, text)
        self._texts[digest] = known
        if len(self._texts) > _KEPT_TEXTS:
            del self._texts[next(iter(self._texts))]
        return known
