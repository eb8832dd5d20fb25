"""Builds plain values from the events of a parser.

Values are built from events, not by the library's composer. So limits apply before anything is
built, and repeated keys, aliases and tags are still visible. All problems that can be found are
collected.
"""

from __future__ import annotations

import math
import re
from typing import Final, NoReturn

from cogcli.base.json_pointer import pointer_of
from cogcli.base.jsonvalue import Json, nearest_float
from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.base.problems import Problem
from cogcli.base.text_places import excerpt
from cogcli.base.yaml.limits import Limits
from cogcli.base.yaml.parsers import ParserEvent, Take
from cogcli.base.yaml.text_faults import (
    LONG_KEY,
    MAX_KEY,
    MAX_PROBLEMS,
    UNSAFE,
    character_fault,
)

MAX_INT: Final = 2**53 - 1


_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
}
_OTHER_WORDS: Final = frozenset(("yes", "no", "on", "off"))
_LONGEST_WORD: Final = 5
_QUOTES: Final = "'\""
_NUMERIC: Final = frozenset("0123456789+-.")
_NUMBER = lazy_pattern(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_LOOK_ALIKE = lazy_pattern(
    r"""[-+]?\.(?:inf|nan)
    |[-+]?0(?:x[0-9a-f_]+|o[0-7_]+|b[01_]+)
    |[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?
    |[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:e[-+]?[0-9]+)?""",
    re.VERBOSE | re.IGNORECASE,
)
# Plain text that is not a key: code, message, hint.
_NO_KEYS: Final = {
    "<<": ("yaml.alias", "merge key `<<` is not allowed", "write the keys out"),
    "": ("yaml.key", "a key is missing before `:`", "write the key, or quote the text"),
}


class _StopReading(Exception):
    """Ends reading because no further problem of this file can be found."""


class ValueBuilder:
    """Builds the value of one event stream and collects its problems."""

    def __init__(self, take: Take, text: str, file: str, limits: Limits) -> None:
        from ruamel.yaml import events as kinds

        self._take = take
        self._alias: type = kinds.AliasEvent
        self._map: type = kinds.MappingStartEvent
        self._map_end: type = kinds.MappingEndEvent
        self._scalar: type = kinds.ScalarEvent
        self._seq_end: type = kinds.SequenceEndEvent
        self._file = file
        # Hardly two nodes fit in one character: a short text needs no counting.
        self._counts = len(text) > limits.nodes // 4
        self._limits = limits
        self._left = limits.nodes - 1  # the root
        self._path: list[str | int] = []
        self._end: ParserEvent | None = None
        self.problems: list[Problem] = []
        self.spans = False  # whether quoted text, or a collection in brackets, has several lines
        self.whole = False  # whether all was read

    def document(self) -> object:
        """Return the value of the only document. Raise the parser's exceptions for syntax errors."""
        try:
            return self._build_document()
        except _StopReading:
            return None

    def _build_document(self) -> object:
        self._take()  # the stream starts
        if not hasattr(self._take(), "explicit"):
            self._stop_for_empty_file()
        root = self._take()
        value: object = None
        is_text = root.__class__ is self._scalar
        if is_text and not root.value and not root.style:
            self._stop_for_empty_file()
        if not is_text:
            if root.__class__ not in (self._map, self._alias):
                self._report_root(root, "a list")
            value = self._build_value(root)
        self._take()  # the document ends
        if is_text:
            # Only now: text before a syntax error was meant to be something else.
            self._report_root(root, "text")
        after = self._take()
        if hasattr(after, "explicit"):
            hint = "keep one document in a file"
            self._stop_reading("yaml.documents", after, "a second document starts here", hint)
        self.whole = True
        return value

    def _report_root(self, root: ParserEvent, actual: str) -> None:
        self._add_problem(
            "yaml.root", root, f"found {actual}, expected a mapping", "start with `key: value`"
        )

    def _build_mapping(self) -> Json:
        values: Json = {}
        seen: dict[str, ParserEvent] = {}
        take, end, scalar = self._take, self._map_end, self._scalar
        while (event := take()).__class__ is not end:
            # Most keys are plain words: judged here, for a call each would cost a tenth of the time.
            plain = (
                event.__class__ is scalar and not event.style and event.ctag is event.anchor is None
            )
            key: str | None = event.value if plain else None
            if key is None or key in _NO_KEYS or len(key) > MAX_KEY:
                key = self._build_key(event)
            if self._counts:
                self._count_nodes(event, 2)
            after = take()
            step = getattr(event, "value", "?") if key is None else key
            value = (
                self._build_text(after, step)
                if after.__class__ is scalar
                else self._build_value(after, step)
            )
            if key is None:
                continue
            if seen.setdefault(key, event) is event:
                values[key] = value
            else:
                self._report_repeated_key(event, key, seen[key])
        self._end = event
        return values

    def _report_repeated_key(self, event: ParserEvent, key: str, first: ParserEvent) -> None:
        message = f"key `{excerpt(key)}` repeated, first at line {first.start_mark.line + 1}"
        self._add_problem("yaml.duplicate-key", event, message, "keep one of them", key)

    def _build_sequence(self) -> list[object]:
        values: list[object] = []
        take, end, scalar = self._take, self._seq_end, self._scalar
        while (event := take()).__class__ is not end:
            if self._counts:
                self._count_nodes(event, 1)
            step = len(values)
            values.append(
                self._build_text(event, step)
                if event.__class__ is scalar
                else self._build_value(event, step)
            )
        self._end = event
        return values

    def _build_value(self, event: ParserEvent, *step: str | int) -> object:
        if event.__class__ is self._alias:
            self._report_alias(event, *step)
            return None
        self._path += step
        depth = self._limits.depth
        if len(self._path) >= depth:
            self._stop_reading(
                "yaml.limit", event, f"nesting deeper than {depth}", "flatten the value"
            )
        self._refuse_decoration(event)
        value: object = (
            self._build_mapping() if event.__class__ is self._map else self._build_sequence()
        )
        end = self._end or event
        if event.flow_style and end.end_mark.line != event.start_mark.line:
            self.spans = True
        del self._path[len(self._path) - len(step) :]
        return value

    def _build_text(self, event: ParserEvent, step: str | int) -> str | int | float | bool | None:
        text = event.value
        if event.ctag is not None or event.anchor is not None:
            self._refuse_decoration(event, step)
        elif not event.style:
            if text[:1] in _NUMERIC:
                return self._build_number(event, text, step)
            if len(text) <= _LONGEST_WORD:
                return self._build_word(event, text, step)
        elif event.style == '"':
            self._reject_unsafe(event, text, step)
        if event.style and event.style in _QUOTES and event.start_mark.line != event.end_mark.line:
            self.spans = True
        return text

    def _build_word(self, event: ParserEvent, text: str, step: str | int) -> str | bool | None:
        """Return the value of a short unquoted text."""
        if text in _WORDS:
            return _WORDS[text]
        if text.lower() in _OTHER_WORDS:
            self._report_ambiguous(event, text, step)
        return text

    def _build_number(
        self, event: ParserEvent, text: str, step: str | int
    ) -> str | int | float | None:
        match = _NUMBER.fullmatch(text)
        if match is None:
            if _LOOK_ALIKE.fullmatch(text):
                self._report_ambiguous(event, text, step)
            return text
        value = _exact_number(match)
        if value is None and self._limits.wide_integers and match[1] is match[2] is None:
            return nearest_float(text)
        if value is None:
            kind = (
                "an integer beyond 2^53-1" if match[1] is match[2] is None else "beyond every float"
            )
            self._add_problem(
                "yaml.number", event, f"{excerpt(text)} is {kind}", "write it in quotes", step
            )
        return value

    def _report_ambiguous(self, event: ParserEvent, text: str, step: str | int) -> None:
        found = f"`{excerpt(text)}` is read differently by different programs"
        hint = "write true/false, a decimal number, or quote it"
        self._add_problem("yaml.ambiguous", event, found, hint, step)

    def _build_key(self, event: ParserEvent) -> str | None:
        """Return the text of a key as written. Report a problem and return None if it is not text."""
        if event.__class__ is self._alias:
            self._report_alias(event)
            return None
        if event.__class__ is not self._scalar:
            found = "a mapping" if event.__class__ is self._map else "a list"
            hint = "write the key as text; quote text that starts with a bracket or brace"
            if found == "a mapping":
                hint += "; {{ x }} reads no value: write its path alone"
            self._add_problem("yaml.key", event, f"the key is {found}, expected text", hint)
            self._build_value(event, "?")
            return None
        key = event.value
        before = len(self.problems)
        self._refuse_decoration(event, key)
        if len(key) > MAX_KEY:
            self._add_problem("yaml.limit", event, *LONG_KEY)
        if event.style == '"':
            self._reject_unsafe(event, key, key)
        elif not event.style and key in _NO_KEYS:
            code, message, hint = _NO_KEYS[key]
            self._add_problem(code, event, message, hint)
        return key if len(self.problems) == before else None

    def _report_alias(self, event: ParserEvent, *step: str | int) -> None:
        hint = "write the value out, or quote text that starts with `*`"
        message = f"alias `*{excerpt(event.anchor or '')}` is not allowed"
        self._add_problem("yaml.alias", event, message, hint, *step)

    def _refuse_decoration(self, event: ParserEvent, *step: str | int) -> None:
        """Report the anchor and the tag of a node as problems."""
        if event.anchor is not None:
            hint = "remove it and write the value out where it is needed"
            message = f"anchor `&{excerpt(event.anchor)}` is not allowed"
            self._add_problem("yaml.alias", event, message, hint, *step)
        if event.ctag is not None:
            hint = "remove it, or quote text that starts with `!`"
            self._add_problem(
                "yaml.tag", event, f"tag `{excerpt(str(event.ctag))}` is not allowed", hint, *step
            )

    def _reject_unsafe(self, event: ParserEvent, text: str, step: str | int) -> None:
        """Report a problem if quoted text contains a forbidden character."""
        unsafe = UNSAFE.search(text)
        if unsafe:
            self._add_problem("yaml.characters", event, *character_fault(unsafe[0]), step)

    def _count_nodes(self, event: ParserEvent, nodes: int) -> None:
        """Count nodes against the limit, and stop reading beyond it."""
        self._left -= nodes
        if self._left < 0:
            hint = self._limits.hint("split the file", "nodes")
            self._stop_reading("yaml.limit", event, f"more than {self._limits.nodes:,} nodes", hint)

    def _stop_for_empty_file(self) -> NoReturn:
        self._stop_reading(
            "yaml.empty", None, "the file is empty, expected a mapping", "write `key: value`"
        )

    def _stop_reading(
        self, code: str, event: ParserEvent | None, message: str, hint: str
    ) -> NoReturn:
        self._add_problem(code, event, message, hint)
        raise _StopReading

    def _add_problem(
        self, code: str, event: ParserEvent | None, message: str, hint: str, *step: str | int
    ) -> None:
        mark = event.start_mark if event is not None else None
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        path = pointer_of((*self._path, *step))
        self.problems.append(Problem(code, "E", self._file, line, column, path, message, hint))
        if len(self.problems) == MAX_PROBLEMS:
            message = f"more than {MAX_PROBLEMS} problems, the rest is not told"
            many = Problem(
                "yaml.limit", "E", self._file, line, column, "", message, "mend these first"
            )
            self.problems.append(many)
            raise _StopReading


def _exact_number(match: re.Match[str]) -> int | float | None:
    """Return the number; None if some readers would not read it exactly."""
    if match[1] is None and match[2] is None:
        # Length first: int() of thousands of digits is slow, or refused by Python itself.
        integer = int(match[0]) if len(match[0]) <= 17 else MAX_INT + 1
        return integer if abs(integer) <= MAX_INT else None
    decimal = float(match[0])
    return decimal if math.isfinite(decimal) else None
