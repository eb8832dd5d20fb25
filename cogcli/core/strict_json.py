"""The one strict JSON parser for everything that comes in.

Rules (docs/reference/spec-files.md#json):

1. UTF-8, one leading byte order mark tolerated; one value; not a character after it but white space.
2. No NaN, no Infinity, no float beyond the range of a double, no integer beyond 2^53-1 either way.
3. No key twice in an object, no lone surrogate.
4. At most `max_bytes` bytes, `max_depth` nested containers, `max_nodes` values (keys not counted).

orjson reads what is plainly in order. Whatever it refuses, and whatever it takes but may have softened
(it lets repeated keys pass and turns long integers into floats), is read again by the parser below, which
alone decides and alone names causes and places.
"""

from __future__ import annotations

import re
from typing import Any, Final, NoReturn

MAX_BYTES: Final = 8 * 1024 * 1024
MAX_DEPTH: Final = 100
MAX_NODES: Final = 50_000
MAX_INT: Final = 2**53 - 1

_BOM = b"\xef\xbb\xbf"
_BLANK = " \t\n\r"
_KEY_END = re.compile(rb'"[ \t\n\r]*+:')
_SPACE = re.compile(r"[ \t\n\r]*+")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(\.[0-9]++)?([eE][-+]?[0-9]++)?")
_TEXT = re.compile(r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+')
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORD = re.compile(r"[^\s,:{}\[\]\"]++")
_BARE_PAIR = re.compile(r"\s*([\w.-]+)\s*:\s*([^,{}\[\]\"]*)")
_FILE_NAME = re.compile(r"[^\s{}\[\]\"]*\.json")
_LITERALS: Final = {"true": True, "false": False, "null": None}
_NOT_NUMBERS = {"nan", "infinity", "-infinity", "+infinity", "inf", "-inf", "+inf"}
_ESCAPED_BLANK = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}
_SMART = "“”„‟‘’‚‛«»＂"


class JsonRefused(Exception):
    """JSON that was not accepted: stable `code`, `message`, 1-based place (0 unknown) and a `hint`. Columns count code
    points. Hints speak to the person who typed the JSON on a command line."""

    def __init__(self, code: str, message: str, *, line: int = 0, column: int = 0, hint: str = "") -> None:
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
) -> Any:
    """The value of one JSON text, in plain dicts, lists and scalars; `3.0` stays a float. Raises `JsonRefused` for
    everything outside the rules above, and nothing else."""
    raw = _encoded(data)
    if len(raw) > max_bytes:
        hint = "send less, or split the input"
        raise JsonRefused("json.size", f"{len(raw):,} bytes, at most {max_bytes:,} are allowed", hint=hint)
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
            if _is_plain(value, raw, max_depth):
                return value
    return _Parser(_decoded(raw), max_depth, max_nodes).document()


def _encoded(data: bytes | str) -> bytes:
    if isinstance(data, bytes):
        return data
    try:
        return data.encode()
    except UnicodeEncodeError as error:
        line, column = _place(data, error.start)
        raise _lone_surrogate(line, column) from error


def _is_plain(value: Any, raw: bytes, max_depth: int) -> bool:
    """Whether orjson's value is beyond doubt. Every key of the text ends in a quote and a colon, so as many distinct
    keys as such endings means that none was repeated; a string that holds such an ending only causes a second look."""
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
            elif (kind is int or kind is float) and not -MAX_INT <= item <= MAX_INT:
                return False
        # Scalars below the deepest container make one level more than there are containers.
        depth += 1
        if depth > max_depth and any(item.__class__ is dict or item.__class__ is list for item in level):
            return False
        level = inner
    return keys == len(_KEY_END.findall(raw))


def _decoded(raw: bytes) -> str:
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff") or (len(raw) > 3 and 0 in (max(raw[:8:2]), max(raw[1:8:2]))):
        raise JsonRefused("json.encoding", "the text is UTF-16, expected UTF-8", hint="save it as UTF-8")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        line, column = _place(raw[: error.start].decode(), error.start)
        found = f"byte 0x{raw[error.start]:02X} is not UTF-8"
        raise JsonRefused(
            "json.encoding", found, line=line, column=column, hint="save it as UTF-8"
        ) from error
    if not text.strip(_BLANK):
        raise JsonRefused("json.empty", "the text is empty, expected a JSON value", hint="write {}")
    return text


def _place(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def _lone_surrogate(line: int, column: int) -> JsonRefused:
    hint = "write a whole pair, or the character itself"
    return JsonRefused("json.surrogate", "half of a surrogate pair", line=line, column=column, hint=hint)


class _Parser:
    """Recursive descent over one text; recursion is bounded by `max_depth`."""

    __slots__ = ("_at", "_left", "_max_depth", "_max_nodes", "_text")

    def __init__(self, text: str, max_depth: int, max_nodes: int) -> None:
        self._text = text
        self._at = 0
        self._max_depth = max_depth
        self._max_nodes = self._left = max_nodes

    def document(self) -> Any:
        self._skip()
        value = self._value(0)
        self._skip()
        if self._at < len(self._text):
            char = self._text[self._at]
            if char in "{[":
                self._fail("a second JSON value after the first", "send one value, or a list of them")
            word = _WORD.match(self._text, self._at)
            self._fail(f"`{_short(word[0] if word else char)}` after the end of the JSON value", "remove it")
        return value

    def _skip(self) -> str:
        """The next character that is no white space, or the empty string at the end; it is not consumed."""
        match = _SPACE.match(self._text, self._at)
        self._at = match.end() if match else self._at
        return self._text[self._at : self._at + 1]

    def _value(self, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            self._fail(f"more than {self._max_nodes:,} values", "send less, or split the input", "json.nodes")
        char = self._text[self._at : self._at + 1]
        if char == '"':
            return self._string()
        if char and char in "{[":
            if depth == self._max_depth:
                self._fail(f"nesting deeper than {self._max_depth}", "flatten the value", "json.depth")
            self._at += 1
            return self._object(depth + 1) if char == "{" else self._array(depth + 1)
        word = _WORD.match(self._text, self._at)
        if word and word[0] in _LITERALS:
            self._at = word.end()
            return _LITERALS[word[0]]
        number = _NUMBER.fullmatch(word[0]) if word else None
        return self._number(number) if number else self._no_value(char, word[0] if word else "")

    def _array(self, depth: int) -> list[Any]:
        values: list[Any] = []
        if self._skip() == "]":
            self._at += 1
            return values
        while True:
            values.append(self._value(depth))
            if self._separator("]", "list"):
                return values
            if self._skip() == "]":
                self._trailing_comma()

    def _object(self, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        if self._skip() == "}":
            self._at += 1
            return values
        while True:
            start = self._at
            char = self._text[self._at : self._at + 1]
            key = self._string() if char == '"' else self._no_key(char)
            if key in values:
                self._at = start
                self._fail(f"key `{_short(key)}` repeated", "keep one of them", "json.duplicate-key")
            if self._skip() != ":":
                self._fail(f"`:` expected after key `{_short(key)}`", "write `:` and a value")
            self._at += 1
            self._skip()
            values[key] = self._value(depth)
            if self._separator("}", "object"):
                return values
            if self._skip() == "}":
                self._trailing_comma()

    def _separator(self, close: str, where: str) -> bool:
        """Whether the container ends here; otherwise its comma is consumed."""
        char = self._skip()
        if char not in (close, ","):
            self._quotes(char)
            if not char:
                self._fail(
                    f"the text ends inside {'an' if where == 'object' else 'a'} {where}",
                    f"close it with {close}",
                )
            self._fail(f"`,` or `{close}` expected, found `{_short(char)}`", "add a comma, or close it")
        self._at += 1
        return char == close

    def _string(self) -> str:
        match = _TEXT.match(self._text, self._at)
        end = match.end() if match else self._at
        if self._text[end : end + 1] != '"':
            self._open_string(end)
        raw = self._text[self._at : end + 1]
        if "\\" not in raw:
            self._at = end + 1
            return raw[1:-1]
        import json

        text: str = json.loads(raw)
        if _SURROGATE.search(text):
            raise _lone_surrogate(*_place(self._text, self._at))
        self._at = end + 1
        return text

    def _number(self, match: re.Match[str]) -> int | float:
        literal = match[0]
        if match[1] is None and match[2] is None:
            # Length first: int() of thousands of digits is slow, or refused by Python itself.
            if len(literal) > 17 or not -MAX_INT <= int(literal) <= MAX_INT:
                self._fail(f"{_short(literal)} is beyond 2^53-1", "send it as a string", "json.number")
            self._at += len(literal)
            return int(literal)
        value = float(literal)
        if value in (float("inf"), float("-inf")):
            self._fail(f"{_short(literal)} is beyond every float", "send it as a string", "json.number")
        self._at += len(literal)
        return value

    # What follows only explains.

    def _fail(self, message: str, hint: str, code: str = "json.syntax") -> NoReturn:
        line, column = _place(self._text, self._at)
        raise JsonRefused(code, message, line=line, column=column, hint=hint)

    def _trailing_comma(self) -> NoReturn:
        self._at = self._text.rindex(",", 0, self._at)
        self._fail("trailing comma", "remove the comma before the closing bracket")

    def _quotes(self, char: str) -> None:
        if char and char in "'`":
            self._fail("single quotes, JSON has only double quotes", 'write "text" in double quotes')
        if char and char in _SMART:
            self._fail(f"smart quote {char}, JSON has only straight ones", 'write "text" in straight quotes')
        if char in ("#", "/"):
            self._fail("JSON has no comments", "remove it")

    def _no_value(self, char: str, word: str) -> NoReturn:
        self._quotes(char)
        if not char:
            self._fail("the text ends where a value is expected", "complete it")
        if not word:
            self._fail(f"`{_short(char)}` where a value is expected", "write a value, or remove it")
        if word in ("True", "False", "None"):
            right = {"True": "true", "False": "false", "None": "null"}[word]
            self._fail(f"`{word}` is Python, not JSON", f"write {right}")
        if word.lower() in _NOT_NUMBERS:
            self._fail(f"`{word}` is no JSON number", "send null or a string", "json.number")
        if self._text.strip() == word and _FILE_NAME.fullmatch(word):
            self._fail("a file name, not JSON", f"use --input-file {word}")
        if char in "+-.0123456789":
            self._fail(f"`{_short(word)}` is no JSON number", "write a plain decimal, or quote it")
        self._fail(f"text `{_short(word)}` without double quotes", f'write "{_short(word)}"')

    def _no_key(self, char: str) -> NoReturn:
        self._quotes(char)
        if not char:
            self._fail("the text ends inside an object", "close it with }")
        pair = _BARE_PAIR.match(self._text, self._at)
        if pair and '"' not in self._text:
            given = f"{pair[1]}={pair[2].strip() or 'VALUE'}"
            option = f'-p "{given}"' if re.search(r"[^\w=.,:@%+-]", given) else f"-p {given}"
            self._fail("your shell removed the double quotes (PowerShell does)", f"use {option}")
        if pair:
            self._fail(f"key `{pair[1]}` without double quotes", f'write "{pair[1]}"')
        self._fail(f"`{_short(char)}` where a key is expected", "write keys in double quotes")

    def _open_string(self, end: int) -> NoReturn:
        start, self._at = self._at, end
        char = self._text[end : end + 1]
        if not char:
            self._at = start
            self._fail("text is never closed", "add the closing double quote")
        if char == "\\":
            shown = self._text[end : end + 2]
            self._fail(f"unknown escape `{_short(shown)}` in text", r"write \\ for a backslash")
        name = _ESCAPED_BLANK.get(char, f"\\u{ord(char):04x}")
        self._fail("control character in text", f"write {name}")


def _short(text: str) -> str:
    shown = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text[:40])
    return shown if len(text) <= 40 else f"{shown}…"
