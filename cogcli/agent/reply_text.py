"""The JSON in the text of a model's reply: its first object, or the readable part of an unfinished one. Pure."""

from __future__ import annotations

import re
from typing import Final

import orjson

from cogcli.agent.bounds import Note, note
from cogcli.base.jsonvalue import kind_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.declarations.value_types import Json

MAX_BYTES: Final = 256 * 1024
_START: Final = re.compile(r"(?:\[\s*+)?\{\s*+[\"'“]")
"""The beginning of an object. Braces in prose are not followed by a quoted key."""
_TOKEN: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[{}\[\]:,]', re.DOTALL)
_DEPTHS: Final = {"{": 1, "[": 1, "}": -1, "]": -1}
_LITERAL: Final = re.compile(
    r'"((?:[^"\\\x00-\x1f]++|\\[^u]|\\u(?![dD][89abAB])[0-9a-fA-F]{4}'
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4})*+)"
)
"""The complete characters of a text."""


class ReplyProblem(NamedTuple):
    """The reason why a reply is unusable.

    `code` is not_json, not_object, empty_reply, too_large, bad_type or too_many_calls. `pointer` is a JSON pointer into
    the reply, empty for the whole reply.
    """

    code: str
    pointer: str
    message: str

    def to_payload(self) -> Json:
        """Return the problem as JSON."""
        return self._asdict()


class ReplyObject(NamedTuple):
    """The object in the text of a reply. It is empty if there is a problem."""

    members: Json
    problem: ReplyProblem | None = None


def read_object(text: str | bytes, notes: list[Note]) -> ReplyObject:
    """Return the object of a text, or the first one in it, with a note. A list with one object is
    read as that object. Text after the object is ignored.
    """
    if _byte_size(text) > MAX_BYTES:
        return _no_object("too_large", f"more than {MAX_BYTES} bytes")
    try:
        value = _parse_strictly(text)
    except InvalidJson as refused:
        found = _first_object(text.decode("utf-8", "replace") if isinstance(text, bytes) else text)
        try:
            value = _parse_strictly(found)
        except InvalidJson as inner:
            problem = inner if found else refused
            return _no_object("not_json", str(problem))
        notes.append(note("extracted", "", "there was text around the object"))
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict):
        return ReplyObject(value)
    return _no_object("not_object", f"expected an object, found {kind_of(value)}")


def _no_object(code: str, message: str) -> ReplyObject:
    return ReplyObject({}, ReplyProblem(code, "", message))


def _parse_strictly(text: str | bytes) -> object:
    return loads(text, max_bytes=MAX_BYTES)


def _byte_size(text: str | bytes) -> int:
    return len(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))


def _first_object(text: str) -> str:
    """Return the first object of a text, or the list that begins with it, up to its closing bracket. Empty
    without one. Objects inside a malformed one are not searched, since they would have another meaning.
    """
    start = _START.search(text)
    depth = 0
    for token in _TOKEN.finditer(text, start.start()) if start else ():
        depth += _DEPTHS.get(token[0], 0)
        if start and not depth:
            return text[start.start() : token.end()]
    return text[start.start() :] if start else ""


def partial_response(text: str) -> str:
    """Return the readable part of `response` in an unfinished reply. Empty before it, and after calls, since it
    is not an answer then.
    """
    depth, key, last = 0, "", ""
    for token in _TOKEN.finditer(text):
        shown = token[0]
        place = (depth, key)
        if place == (1, '"response"') and shown[0] == '"':
            return _decode_partial(shown)
        if place == (2, '"tool_calls"') and shown == "{":
            return ""
        if depth == 1 and shown in ":,":
            key = last if shown == ":" else ""
        depth += _DEPTHS.get(shown, 0)
        last = shown
    return ""


def _decode_partial(literal: str) -> str:
    """Return the text of a JSON string whose end may be missing."""
    found = _LITERAL.match(literal)
    try:
        return str(orjson.loads(f'"{found[1]}"')) if found else ""
    except ValueError:
        return ""
