"""One request and its reply as they were observed, and what is checked of them
(docs/reference/protocols.md#scenarios)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import orjson

from cogcli.core.redact import Redactor
from cogcli.schema.validator import errors

_ONE_LINE: Final = 100
_ABSENT: Final = object()


class Frame(NamedTuple):
    """One line of a reply, and the range in it that a check is about; columns are 1-based."""

    line: int
    text: str
    column: int
    width: int


class Check(NamedTuple):
    """One check. `detail`: what was found; `frame`: its place in the reply."""

    name: str
    passed: bool
    detail: str = ""
    frame: Frame | None = None

    def to_payload(self) -> dict[str, Any]:
        """The check as a JSON object."""
        told: dict[str, Any] = {"name": self.name, "passed": self.passed, "detail": self.detail}
        if self.frame:
            told["frame"] = self.frame._asdict()
        return told


class ObservedExchange(NamedTuple):
    """One request and its reply, unmasked; `status` is 0 without a reply.

    `whole`: whether header values are known; a record holds only their names.
    """

    seen: Seen
    status: int
    media_type: str
    reply: bytes
    whole: bool = True


def exchange_from_mock(seen: Seen, reply: Reply) -> ObservedExchange:
    """The exchange of a request to a mock server."""
    media_type = next((v for n, v in reply.headers.items() if n.lower() == "content-type"), "")
    return ObservedExchange(seen, reply.status, media_type, b"".join(reply.chunks))


def exchange_from_record(record: Mapping[str, Any]) -> ObservedExchange | None:
    """The exchange in the record of an attempt; None where no request was made."""
    url, status = record.get("url"), record.get("status_code")
    if not url:
        return None
    request, reply = record.get("request") or {}, record.get("reply") or {}
    parts = urlsplit(str(url))
    names = {str(name).lower(): "" for name in request.get("headers") or ()}
    names["content-type"] = str(request.get("media_type") or "")
    seen = Seen(str(record.get("method")), parts.path, parts.query, names, _bytes(request.get("body")))
    media_type = str(record.get("media_type") or reply.get("media_type") or "")
    return ObservedExchange(
        seen, status if isinstance(status, int) else 0, media_type, _bytes(reply.get("body")), whole=False
    )


def _bytes(body: Any) -> bytes:
    if body is None:
        return b""
    return body.encode() if isinstance(body, str) else orjson.dumps(body)


Judge = Callable[[ObservedExchange], list[Check]]
"""Gives the checks of one exchange."""


def schema_check(name: str, schema: Any, value: Any) -> Check:
    """The check of a value against its schema, with the place of the first breach."""
    wrong = errors(schema, value)
    if not wrong:
        return Check(name, True)
    place, message = wrong[0]
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    said = f"{place.replace('/', '.')}: {message}{more}" if place else f"{message}{more}"
    return Check(name, False, said, find_in_json(value, place))


def find_in_json(value: Any, place: str) -> Frame | None:
    """The place of a slash path in a JSON value as shown, on one line if it is short; None for a missing path."""
    parts = place.split("/") if place else []
    value = Redactor().mask(value)
    marked, found = _mark_at(value, parts)
    if found is _ABSENT:
        return None
    whole = json.dumps(value, ensure_ascii=False)
    indent = None if len(whole) <= _ONE_LINE else 2
    at = json.dumps(marked, ensure_ascii=False, indent=indent).find(json.dumps(_MARK))
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    start = text.rfind("\n", 0, at) + 1
    line = text[start:].split("\n", 1)[0]
    own = json.dumps(found, ensure_ascii=False, indent=indent).split("\n", 1)[0]
    return Frame(text.count("\n", 0, at) + 1, line, at - start + 1, max(1, len(own)))


_MARK: Final = "\x00here\x00"


def _mark_at(value: Any, parts: list[str]) -> tuple[Any, Any]:
    """The value with a mark at a path, and the value that was there."""
    if not parts:
        return _MARK, value
    key, rest = parts[0], parts[1:]
    if isinstance(value, dict) and key in value:
        inner, found = _mark_at(value[key], rest)
        return {**value, key: inner}, found
    if isinstance(value, list) and key.isdigit() and int(key) < len(value):
        inner, found = _mark_at(value[int(key)], rest)
        return [*value[: int(key)], inner, *value[int(key) + 1 :]], found
    return value, _ABSENT


class Seen(NamedTuple):
    """One request. Header names are lower case; `path` and `query` are not decoded."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


class Reply(NamedTuple):
    """One reply: the body in `chunks`, `pause` seconds before each but the first, `delay` seconds before the reply.

    `length` is the announced length, the true one by default.
    """

    status: int = 200
    headers: Mapping[str, str] = {}
    chunks: tuple[bytes, ...] = ()
    delay: float = 0.0
    pause: float = 0.0
    length: int | None = None


Answering = Callable[[Seen], Reply]
"""A server's answer to a request."""


def json_reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """A value as a JSON reply."""
    import orjson

    given = {"Content-Type": "application/json", **(headers or {})}
    return Reply(status, given, (orjson.dumps(value),))
