"""The strict JSON parser for all input.

Rules (docs/reference/spec-files.md#json):

1. The text is UTF-8 with at most one leading byte order mark. It contains one value, followed by
nothing but white space.

2. There is no NaN, no Infinity, no float beyond the range of a double, no integer beyond ±(2^53-1).

3. No object has a repeated key. There is no lone surrogate.

4. There are at most `max_bytes` bytes, `max_depth` nested containers, `max_nodes` values (not
counting keys).

orjson reads clearly valid texts. Texts that it refuses, or may have read too leniently (it accepts
repeated keys and turns long integers into floats), are read again by `base/json_parser`. That
parser decides, and reports causes and places.
"""

from __future__ import annotations

import re
from typing import Any, Final

from cogcli.base.jsonvalue import MAX_DEPTH, MAX_INTEGER, map_members, nearest_float
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.text_places import line_column

MAX_BYTES: Final = 8 * 1024 * 1024
MAX_NODES: Final = 50_000

_BOM = b"\xef\xbb\xbf"
_BLANK = " \t\n\r"
_KEY_END = re.compile(rb'"[ \t\n\r]*+:')
_ESCAPED_END = re.compile(rb'(\\++)"[ \t\n\r]*+:')


class InvalidJson(Exception):
    """A JSON text was refused: stable `code`, `message`, 1-based place (0 if unknown) and a `hint`.

    Columns count code points. Hints address the person who typed the JSON on a command line.
    """

    def __init__(
        self, code: str, message: str, *, line: int = 0, column: int = 0, hint: str = ""
    ) -> None:
        super().__init__(f"{message} (line {line}, column {column})" if line else message)
        self.code = code
        self.message = message
        self.line = line
        self.column = column
        self.hint = hint


def loads(
    data: bytes | str,
    *,
    max_bytes: int = MAX_BYTES,
    max_depth: int = MAX_DEPTH,
    max_nodes: int = MAX_NODES,
    wide_integers: bool = False,
) -> Any:
    """Return the value of one JSON text as plain dicts, lists and scalars; `3.0` stays a float.

    With `wide_integers` an integer beyond 2^53-1 is the nearest float instead of a fault.

    Raise `InvalidJson` for everything outside the rules above, and nothing else.
    """
    raw = _to_utf8(data)
    if len(raw) > max_bytes:
        hint = "send less, or split the input"
        raise InvalidJson(
            "json.size", f"{len(raw):,} bytes, at most {max_bytes:,} are allowed", hint=hint
        )
    raw = raw.removeprefix(_BOM)
    # No value lacks a comma or an opening bracket of its own, but for the first: a cheap upper bound, taken
    # before anything is built, so that no text makes millions of objects.
    if raw.count(b",") + raw.count(b"[") + raw.count(b"{") < max_nodes:
        import orjson

        try:
            value = orjson.loads(raw)
        except ValueError:
            pass
        else:
            found = _check_exactness(value, raw, max_depth)
            if found.plain and found.wide and wide_integers:
                return _with_floats(value)
            if found.plain and not found.wide:
                return value
    # Rarely needed, and its patterns take time to compile.
    from cogcli.base.json_parser import JsonParser

    parser = JsonParser(
        _decode_utf8(raw), max_depth, max_nodes, _build_fault, wide_integers=wide_integers
    )
    return parser.document()


def _to_utf8(data: bytes | str) -> bytes:
    """Return the text as UTF-8 bytes. Raise InvalidJson for lone surrogates."""
    if isinstance(data, bytes):
        return data
    try:
        return data.encode()
    except UnicodeEncodeError as error:
        hint = "write a whole pair, or the character itself"
        raise _build_fault(
            "json.surrogate", "half of a surrogate pair", hint, data, error.start
        ) from error


class _ExactnessCheck(NamedTuple):
    """Whether a parsed value is certainly exact, apart from integers beyond 2^53-1, and whether it contains such
    integers.
    """

    plain: bool
    wide: bool


def _with_floats(value: Any) -> Any:
    """Return a value with floats instead of integers beyond 2^53-1."""
    is_number = type(value) is int or type(value) is float
    if is_number and not -MAX_INTEGER <= value <= MAX_INTEGER:
        return nearest_float(value)
    return map_members(value, _with_floats)


def _count_key_ends(raw: bytes) -> int:
    """Return the number of quotes before a colon, without those that a backslash escapes."""
    ends = sum(1 for _ in _KEY_END.finditer(raw))
    return ends - sum(len(match[1]) % 2 for match in _ESCAPED_END.finditer(raw))


def _check_exactness(value: object, raw: bytes, max_depth: int) -> _ExactnessCheck:
    """Return whether orjson's value is certainly exact.

    Every key of the text ends in a quote and a colon. If there are as many distinct keys as such
    endings, no key was repeated. A string that begins with a colon only causes a second parse.
    """
    wide = False
    keys = depth = 0
    level: list[Any] = [value]
    while level:
        inner: list[Any] = []
        for item in level:
            kind = item.__class__
            if kind is dict:
                keys += len(item)
                inner += item.values()
            elif kind is list:
                inner += item
            elif (kind is int or kind is float) and not -MAX_INTEGER <= item <= MAX_INTEGER:
                wide = True
        # Scalars below the deepest container make one level more than there are containers.
        depth += 1
        if depth > max_depth and any(
            item.__class__ is dict or item.__class__ is list for item in level
        ):
            return _ExactnessCheck(False, wide)
        level = inner
    return _ExactnessCheck(keys == _count_key_ends(raw), wide)


def _decode_utf8(raw: bytes) -> str:
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff") or (
        len(raw) > 3 and 0 in (max(raw[:8:2]), max(raw[1:8:2]))
    ):
        raise InvalidJson(
            "json.encoding", "the text is UTF-16, expected UTF-8", hint="save it as UTF-8"
        )
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode()
        found = f"byte 0x{raw[error.start]:02X} is not UTF-8"
        raise _build_fault(
            "json.encoding", found, "save it as UTF-8", before, len(before)
        ) from error
    if not text.strip(_BLANK):
        raise InvalidJson("json.empty", "the text is empty, expected a JSON value", hint="write {}")
    return text


def _build_fault(code: str, message: str, hint: str, text: str, offset: int) -> InvalidJson:
    line, column = line_column(text, offset)
    return InvalidJson(code, message, line=line, column=column, hint=hint)
