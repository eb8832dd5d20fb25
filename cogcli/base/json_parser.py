"""A slow JSON parser that follows the rules of `base/strict_json` and explains each error with its
cause and place.

It reads only texts that the fast parser refused or may have read too leniently.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NoReturn

from cogcli.base.jsonvalue import MAX_INTEGER, Json, nearest_float
from cogcli.base.text_places import excerpt

Refuse = Callable[[str, str, str, str, int], Exception]

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


class JsonParser:
    """A recursive descent parser for one text; `max_depth` limits the recursion.

    `refuse` creates the error from a code, a message, a hint, the text and a place in it.
    """

    __slots__ = ("_at", "_left", "_max_depth", "_max_nodes", "_refuse", "_text", "_wide_integers")

    def __init__(
        self,
        text: str,
        max_depth: int,
        max_nodes: int,
        refuse: Refuse,
        *,
        wide_integers: bool = False,
    ) -> None:
        self._text = text
        self._wide_integers = wide_integers
        self._at = 0
        self._refuse = refuse
        self._max_depth = max_depth
        self._max_nodes = self._left = max_nodes

    def document(self) -> object:
        """Return the value of the text. Raise the error that `refuse` creates."""
        self._skip_space()
        value = self._parse_value(0)
        self._skip_space()
        if self._at < len(self._text):
            char = self._text[self._at]
            if char in "{[":
                self._raise_fault(
                    "a second JSON value after the first", "send one value, or a list of them"
                )
            word = _WORD.match(self._text, self._at)
            self._raise_fault(
                f"`{excerpt(word[0] if word else char)}` after the end of the JSON value",
                "remove it",
            )
        return value

    def _skip_space(self) -> str:
        """Skip white space. Return the next character without consuming it, or "" at the end."""
        match = _SPACE.match(self._text, self._at)
        self._at = match.end() if match else self._at
        return self._text[self._at : self._at + 1]

    def _parse_value(self, depth: int) -> object:
        self._left -= 1
        if self._left < 0:
            self._raise_fault(
                f"more than {self._max_nodes:,} values",
                "send less, or split the input",
                "json.nodes",
            )
        char = self._text[self._at : self._at + 1]
        if char == '"':
            return self._parse_string()
        if char and char in "{[":
            if depth == self._max_depth:
                self._raise_fault(
                    f"nesting deeper than {self._max_depth}", "flatten the value", "json.depth"
                )
            self._at += 1
            return self._parse_object(depth + 1) if char == "{" else self._parse_array(depth + 1)
        word = _WORD.match(self._text, self._at)
        if word and word[0] in _LITERALS:
            self._at = word.end()
            return _LITERALS[word[0]]
        number = _NUMBER.fullmatch(word[0]) if word else None
        return (
            self._parse_number(number)
            if number
            else self._fail_missing_value(char, word[0] if word else "")
        )

    def _parse_array(self, depth: int) -> list[object]:
        values: list[object] = []
        if self._skip_space() == "]":
            self._at += 1
            return values
        while True:
            values.append(self._parse_value(depth))
            if self._consume_separator("]", "a list"):
                return values
            if self._skip_space() == "]":
                self._fail_trailing_comma()

    def _parse_object(self, depth: int) -> Json:
        values: Json = {}
        if self._skip_space() == "}":
            self._at += 1
            return values
        while True:
            start = self._at
            char = self._text[self._at : self._at + 1]
            key = self._parse_string() if char == '"' else self._fail_missing_key(char)
            if key in values:
                self._at = start
                self._raise_fault(
                    f"key `{excerpt(key)}` repeated", "keep one of them", "json.duplicate-key"
                )
            if self._skip_space() != ":":
                self._raise_fault(
                    f"`:` expected after key `{excerpt(key)}`", "write `:` and a value"
                )
            self._at += 1
            self._skip_space()
            values[key] = self._parse_value(depth)
            if self._consume_separator("}", "an object"):
                return values
            if self._skip_space() == "}":
                self._fail_trailing_comma()

    def _consume_separator(self, close: str, where: str) -> bool:
        """Return whether the container ends here. If it does not, consume its comma."""
        char = self._skip_space()
        if char not in (close, ","):
            self._reject_quotes_and_comments(char)
            if not char:
                self._raise_fault(f"the text ends inside {where}", f"close it with {close}")
            self._raise_fault(
                f"`,` or `{close}` expected, found `{excerpt(char)}`", "add a comma, or close it"
            )
        self._at += 1
        return char == close

    def _parse_string(self) -> str:
        match = _TEXT.match(self._text, self._at)
        end = match.end() if match else self._at
        if self._text[end : end + 1] != '"':
            self._fail_open_string(end)
        raw = self._text[self._at : end + 1]
        if "\\" not in raw:
            self._at = end + 1
            return raw[1:-1]
        import json

        text: str = json.loads(raw)
        if _SURROGATE.search(text):
            hint = "write a whole pair, or the character itself"
            self._raise_fault("half of a surrogate pair", hint, "json.surrogate")
        self._at = end + 1
        return text

    def _parse_number(self, match: re.Match[str]) -> int | float:
        literal = match[0]
        if match[1] is None and match[2] is None:
            # Length first: int() of thousands of digits is slow, or refused by Python itself.
            value: int | float = int(literal) if len(literal) <= 17 else MAX_INTEGER + 1
            beyond = "2^53-1" if abs(value) > MAX_INTEGER else ""
            if beyond and self._wide_integers:
                value, beyond = nearest_float(literal), ""
        else:
            value = float(literal)
            beyond = "every float" if abs(value) == float("inf") else ""
        if beyond:
            self._raise_fault(
                f"{excerpt(literal)} is beyond {beyond}", "send it as a string", "json.number"
            )
        self._at += len(literal)
        return value

    # The methods below only explain errors.

    def _raise_fault(self, message: str, hint: str, code: str = "json.syntax") -> NoReturn:
        raise self._refuse(code, message, hint, self._text, self._at)

    def _fail_trailing_comma(self) -> NoReturn:
        self._at = self._text.rindex(",", 0, self._at)
        self._raise_fault("trailing comma", "remove the comma before the closing bracket")

    def _reject_quotes_and_comments(self, char: str) -> None:
        if char and char in "'`":
            self._raise_fault(
                "single quotes, JSON has only double quotes", 'write "text" in double quotes'
            )
        if char and char in _SMART:
            self._raise_fault(
                f"smart quote {char}, JSON has only straight ones",
                'write "text" in straight quotes',
            )
        if char in ("#", "/"):
            self._raise_fault("JSON has no comments", "remove it")

    def _fail_missing_value(self, char: str, word: str) -> NoReturn:
        self._reject_quotes_and_comments(char)
        if not char:
            self._raise_fault("the text ends where a value is expected", "complete it")
        if not word:
            self._raise_fault(
                f"`{excerpt(char)}` where a value is expected", "write a value, or remove it"
            )
        if word in ("True", "False", "None"):
            right = {"True": "true", "False": "false", "None": "null"}[word]
            self._raise_fault(f"`{word}` is Python, not JSON", f"write {right}")
        if word.lower() in _NOT_NUMBERS:
            self._raise_fault(
                f"`{word}` is not a JSON number", "send null or a string", "json.number"
            )
        if self._text.strip() == word and _FILE_NAME.fullmatch(word):
            self._raise_fault("a file name, not JSON", f"use --input-file {word}")
        if char in "+-.0123456789":
            self._raise_fault(
                f"`{excerpt(word)}` is not a JSON number", "write a plain decimal, or quote it"
            )
        self._raise_fault(
            f"text `{excerpt(word)}` without double quotes", f'write "{excerpt(word)}"'
        )

    def _fail_missing_key(self, char: str) -> NoReturn:
        self._reject_quotes_and_comments(char)
        if not char:
            self._raise_fault("the text ends inside an object", "close it with }")
        pair = _BARE_PAIR.match(self._text, self._at)
        if pair and '"' not in self._text:
            given = f"{pair[1]}={pair[2].strip() or 'VALUE'}"
            option = f'-p "{given}"' if re.search(r"[^\w=.,:@%+-]", given) else f"-p {given}"
            self._raise_fault(
                "your shell removed the double quotes (PowerShell does)", f"use {option}"
            )
        if pair:
            self._raise_fault(f"key `{pair[1]}` without double quotes", f'write "{pair[1]}"')
        self._raise_fault(
            f"`{excerpt(char)}` where a key is expected", "write keys in double quotes"
        )

    def _fail_open_string(self, end: int) -> NoReturn:
        start, self._at = self._at, end
        char = self._text[end : end + 1]
        if not char:
            self._at = start
            self._raise_fault("text is never closed", "add the closing double quote")
        if char == "\\":
            shown = self._text[end : end + 2]
            self._raise_fault(
                f"unknown escape `{excerpt(shown)}` in text", r"write \\ for a backslash"
            )
        name = _ESCAPED_BLANK.get(char, f"\\u{ord(char):04x}")
        self._raise_fault("control character in text", f"write {name}")
