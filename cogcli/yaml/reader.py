"""Strict YAML to plain values with positions. The only module that uses the YAML library.

1. Values are built from the parser's events, not by its composer: limits apply before anything is built, and repeated
   keys, aliases and tags are still visible.
2. Problems are values. All that can be found are reported together, and then there is no value.
3. Lines and columns are 1-based and count code points.
4. The C parser reads an older YAML than 1.2 (`{url: http://host/?a=b}` stops it). Where it stops, the pure parser
   decides; where it is too lenient, `strictness` does. So the result is the same with the C parser and without.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from cogcli.core.files import FileRefused, read_regular
from cogcli.core.problems import Problem, sort_problems
from cogcli.yaml.strictness import SUSPECT, first_slip

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

MAX_BYTES: Final = 256 * 1024
MAX_DEPTH: Final = 32
MAX_NODES: Final = 50_000
MAX_KEY: Final = 256
MAX_INT: Final = 2**53 - 1
MAX_PROBLEMS: Final = 100

Path = tuple[str | int, ...]


class Limits(NamedTuple):
    """The limits of one file."""

    bytes: int
    depth: int
    nodes: int


SPEC: Final = Limits(MAX_BYTES, MAX_DEPTH, MAX_NODES)
DOCUMENT: Final = Limits(4 * 1024 * 1024, 100, 500_000)
"""The limits of API documents (docs/reference/spec-files.md#yaml)."""

_CONTROL = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
_BIDI_CONTROL = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_LONE_RETURN = re.compile(r"\r(?!\n)")
_SAVE = "save the file as UTF-8"
# In a file, what only some programs take for the end of a line could hide a key behind a comment.
_UNSEEN = re.compile(f"[{_CONTROL}{_BIDI_CONTROL}\u2028\u2029\ufeff\ufffe\uffff]")
# In text that was written with escapes.
_UNSAFE = re.compile(f"[{_CONTROL}{_BIDI_CONTROL}\r\ud800-\udfff]")
_HARMLESS = bytes((9, 10, *range(32, 127)))
_DIRECTIVES = re.compile(r"(?:[ \t]*(?:#[^\n]*|\r)?\n|%[^\n]*\n?)*+")
_DIRECTIVE = re.compile(r"^%[^\r\n]*", re.MULTILINE)

_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
}
_OTHER_WORDS: Final = frozenset(("yes", "no", "on", "off"))
_LONGEST_WORD: Final = 5
_QUOTES: Final = "'\""
_NUMERIC: Final = frozenset("0123456789+-.")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_LOOK_ALIKE = re.compile(
    r"""[-+]?\.(?:inf|nan)
    |[-+]?0(?:x[0-9a-f_]+|o[0-7_]+|b[01_]+)
    |[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?
    |[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:e[-+]?[0-9]+)?""",
    re.VERBOSE | re.IGNORECASE,
)
# Plain text that is no key: code, message, hint.
_NO_KEYS: Final = {
    "<<": ("yaml.alias", "merge key `<<` is not allowed", "write the keys out"),
    "": ("yaml.key", "a key is missing before `:`", "write the key, or quote the text"),
}


class _Explanation(NamedTuple):
    """Part of a parser's message, our message, our hint, and whether the problem is at the start of the construct."""

    part: str
    message: str
    hint: str
    at_start: bool = False


_BAD_TAG: Final = _Explanation("", "a tag is not allowed", "remove it, or quote text that starts with `!`")
_BAD_ALIAS: Final = _Explanation(
    "", "an anchor or alias is not allowed", "quote text that starts with `*` or `&`"
)
_LONG_KEY: Final = _Explanation("", f"key longer than {MAX_KEY} characters", "shorten it")
_MANY: Final = _Explanation(
    "", f"more than {MAX_PROBLEMS} problems, the rest is not told", "mend these first"
)

# The first that fits.
_SYNTAX: Final = (
    _Explanation(
        "values are not allowed",
        "`: ` is not expected here",
        "quote text that holds `: `, or fix the line above",
    ),
    _Explanation(
        "could not find expected ':'",
        "a line that is no `key: value`",
        "write `key: value`, or indent it",
        True,
    ),
    _Explanation(r"'\t'", "a tab where only spaces may stand", "indent and separate with spaces"),
    _Explanation("cannot start any token", "text cannot start with this character", "quote the text"),
    _Explanation("unexpected end of stream", "quoted text is never closed", "add the closing quote", True),
    _Explanation(
        "unexpected document separator", "quoted text is never closed", "add the closing quote", True
    ),
    _Explanation(
        "entries are not allowed", "`- ` is not expected here", "start the list on a line of its own"
    ),
    _Explanation("got '<stream end>'", "a bracket or brace is never closed", "close it", True),
    _Explanation("expected ',' or", "a comma or the closing bracket is missing", "add it"),
    _Explanation(
        "found '<scalar>'", "text after the end of a value", "quote the whole text, or line up the keys"
    ),
    _Explanation(
        "expected <block end>", "this does not fit the lines above", "line up keys and `- ` of one level"
    ),
    _Explanation("block scalar", "`|` or `>` must end its line", "put the text on the next line, indented"),
    _Explanation("chr()", "no such character", "write a character that exists"),
    _Explanation(
        "escape", "unknown escape in double quotes", r"write \\ for a backslash, or use single quotes"
    ),
    _Explanation("the node content", "a value is missing here", "write it, or remove what announces it"),
    _Explanation("document", "text after the end of the document", "remove it"),
)


@dataclass(frozen=True, slots=True)
class Span:
    """A range in a text: 1-based line and column of its first character, and of the one after its last."""

    line: int
    column: int
    end_line: int
    end_column: int

    def column_of(self, text: str, offset: int) -> int:
        """The column of an offset in a value; the start of a value that the file does not write literally."""
        if self.line != self.end_line:
            return self.column
        around = self.end_column - self.column - len(text)
        return self.column + offset + around // 2 if around in (0, 2) else self.column


_START: Final = Span(1, 1, 1, 1)


@dataclass(frozen=True, slots=True)
class Parsed:
    """The result of one file: its mapping, its positions, and its problems. `value` is None if there are problems."""

    value: dict[str, Any] | None
    places: Places
    problems: list[Problem]


def pointer(path: Path) -> str:
    """The JSON pointer of a path: `/steps/0/uses`, with `~0` for `~` and `~1` for `/`."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)


def has_c_parser() -> bool:
    """Whether the C parser is installed; without it reading takes about ten times as long."""
    return _c_parser() is not None


def read_file(path: str | os.PathLike[str], *, file: str) -> tuple[bytes, Parsed]:
    """The bytes of a file and their parsed content; `file` is the name used in problems.

    A file that cannot be read gives no bytes and a problem `yaml.io` or `yaml.size`.
    """
    try:
        data = read_regular(path, limit=MAX_BYTES)
    except FileRefused as refused:
        if refused.reason == "too-large":
            return b"", _no_value("yaml.size", file, refused.message, "split the file")
        return b"", _no_value("yaml.io", file, refused.message, "name a regular file that you may read")
    return data, parse(data, file=file)


def parse(data: bytes, *, file: str, limits: Limits = SPEC) -> Parsed:
    """The mapping in a YAML file, by the rules of docs/reference/spec-files.md#yaml; problems are in the result. Raises
    nothing."""
    if len(data) > limits.bytes:
        found = f"has {len(data):,} bytes, at most {limits.bytes:,} are allowed"
        return _no_value("yaml.size", file, found, "split the file")
    if _is_utf16(data):
        return _no_value("yaml.encoding", file, "the file is UTF-16, expected UTF-8", _SAVE, (1, 1))
    try:
        text = data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        at = _place(data[: error.start].decode().removeprefix("\ufeff"), None)
        return _no_value("yaml.encoding", file, f"byte 0x{data[error.start]:02X} is not UTF-8", _SAVE, at)
    if text.startswith("\ufeff"):
        return _no_value("yaml.encoding", file, "more than one byte order mark", "keep one at most", (1, 1))
    lone_return = _LONE_RETURN.search(text)
    if lone_return:  # parsers count lines by it, editors do not: no other place would be right
        at, found = _place(text, lone_return.start()), "carriage return without a line feed"
        return _no_value("yaml.characters", file, found, "end lines with a line feed", at)
    problems, text = _clean_text(text, file)
    value, found_inside = _build(text, file, limits)
    problems = sort_problems(problems + found_inside)
    return Parsed(None if problems else value, Places(text), problems)


def _no_value(code: str, file: str, message: str, hint: str, at: tuple[int, int] = (0, 0)) -> Parsed:
    return Parsed(None, Places(""), [Problem(code, "E", file, *at, "", message, hint)])


def _is_utf16(data: bytes) -> bool:
    every_other_nul = len(data) > 3 and not (any(data[:8:2]) and any(data[1:8:2]))
    return every_other_nul or data[:2] in (b"\xff\xfe", b"\xfe\xff")


def _place(text: str, offset: int | None) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def _clean_text(text: str, file: str) -> tuple[list[Problem], str]:
    """The problems of single characters and directives, and the text without them, its lines unchanged in number."""
    problems: list[Problem] = []
    suspect = text.encode().translate(None, _HARMLESS)
    for match in islice(_UNSEEN.finditer(text), MAX_PROBLEMS) if suspect else ():
        found, hint = _character(match[0])
        problems.append(Problem("yaml.characters", "E", file, *_place(text, match.start()), "", found, hint))
    if problems:
        # For private characters, each its own: distinct keys stay distinct.
        text = _UNSEEN.sub(lambda match: chr(0xF0000 + ord(match[0])), text)
    head = _DIRECTIVES.match(text)
    end = head.end() if head else 0
    for match in islice(_DIRECTIVE.finditer(text, 0, end), MAX_PROBLEMS):
        found = f"directive `{_short(match[0])}` is not allowed"
        at = _place(text, match.start())
        problems.append(Problem("yaml.directive", "E", file, *at, "", found, "remove the line"))
    return problems, _DIRECTIVE.sub("#", text[:end]) + text[end:] if problems else text


def _character(char: str) -> tuple[str, str]:
    kind = "invisible character"
    if char < "\xa0":
        kind = "control character"
    elif char in _BIDI_CONTROL:
        kind = "bidi control character"
    elif "\ud800" <= char <= "\udfff":
        kind = "half of a surrogate pair,"
    return f"{kind} U+{ord(char):04X} is not allowed", "remove it"


def _short(text: str) -> str:
    shown = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text[:40])
    return shown if len(text) <= 40 else f"{shown}…"


def _c_parser() -> Any:
    """The class of the C parser, or None where it is not installed."""
    try:
        from ruamel.yaml.cyaml import CParser  # type: ignore[attr-defined]
    except ImportError:
        return None
    return CParser


def _pure_events(text: str) -> Iterator[Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    yaml = YAML(typ="safe", pure=True)
    yaml.Scanner = _pure_scanner()
    _, parser = yaml.get_constructor_parser(text)
    try:
        while parser.check_event():
            yield parser.get_event()
    except YAMLError:
        raise
    except Exception as error:
        # The parser's own slips, such as chr() of an escape beyond U+10FFFF.
        raise MarkedYAMLError(problem=str(error), problem_mark=yaml.reader.get_mark()) from error


@cache
def _pure_scanner() -> Any:
    """The pure parser's scanner without a check of blank lines before a block's text, which refuses valid blocks."""
    from ruamel.yaml.scanner import Scanner

    class BlockScanner(Scanner):
        def scan_block_scalar_indentation(self) -> Any:
            breaks, deepest, end = [], 0, self.reader.get_mark()
            while (char := self.reader.peek()) in " \r\n":
                if char == " ":
                    self.reader.forward()
                    deepest = max(deepest, self.reader.column)
                else:
                    breaks.append(self.scan_line_break())
                    end = self.reader.get_mark()
            return breaks, deepest, end

    return BlockScanner


def _readers(text: str) -> Iterator[Callable[[], Callable[[], Any]]]:
    """The parsers to try in order. Calling one starts it on the text and gives a function for the next event."""
    fast = _c_parser()
    if fast is not None:
        yield lambda: fast(text).get_event
    yield lambda: _pure_events(text).__next__


def _build(text: str, file: str, limits: Limits) -> tuple[Any, list[Problem]]:
    from ruamel.yaml.error import YAMLError

    stopped: Any = None
    problems: list[Problem] = []
    for begin in _readers(text):
        builder = _Builder(begin(), text, file, limits)
        problems = builder.problems
        try:
            value = builder.document()
            if builder.whole and (builder.spans or SUSPECT.search(text)):
                problems += _strictness_problems(text, begin, file)
            return value, problems
        except YAMLError as error:
            stopped = error
    return None, [*problems, _syntax(stopped, text, file)]


def _strictness_problems(text: str, begin: Callable[[], Callable[[], Any]], file: str) -> Iterator[Problem]:
    slip = first_slip(text, begin())
    if slip is not None:
        at = _place(text, slip.offset)
        yield Problem("yaml.syntax", "E", file, *at, "", slip.message, slip.hint)


def _syntax(error: Any, text: str, file: str) -> Problem:
    code, said = _explain_syntax(error, text)
    mark = (said.at_start and getattr(error, "context_mark", None)) or getattr(error, "problem_mark", None)
    line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
    return Problem(code, "E", file, line, column, "", said.message, said.hint)


def _explain_syntax(error: Any, text: str) -> tuple[str, _Explanation]:
    said = f"{getattr(error, 'context', None)}: {getattr(error, 'problem', None)}"
    if "a tag" in said or "tag handle" in said:
        return "yaml.tag", _BAD_TAG
    if "an anchor" in said or "an alias" in said:
        return "yaml.alias", _BAD_ALIAS
    if _ends_long_key(error, text):
        return "yaml.limit", _LONG_KEY
    for known in _SYNTAX:
        if known.part in said:
            return "yaml.syntax", known
    return "yaml.syntax", _Explanation("", f"not YAML: {_short(said)}", "see the line before as well")


def _ends_long_key(error: Any, text: str) -> bool:
    """Whether the error follows a key of over 1,024 characters, which no parser reads as a key."""
    mark, problem = getattr(error, "problem_mark", None), str(getattr(error, "problem", None))
    if mark is None or not ("':'" in problem or "values are not allowed" in problem):
        return False
    before = "".join(text.split("\n")[mark.line : mark.line + 1])[: mark.column]
    return len(before) > 1024 and ": " not in before[-1024:]


class _StopReading(Exception):
    """Ends reading: no further problem of this file can be found."""


class _Builder:
    """Builds the value of one event stream, and collects its problems."""

    __slots__ = (
        "_alias",
        "_counts",
        "_end",
        "_file",
        "_left",
        "_limits",
        "_map",
        "_map_end",
        "_path",
        "_scalar",
        "_seq_end",
        "_take",
        "problems",
        "spans",
        "whole",
    )

    def __init__(self, take: Callable[[], Any], text: str, file: str, limits: Limits) -> None:
        from ruamel.yaml import events as kinds

        self._take = take
        self._alias = kinds.AliasEvent
        self._map = kinds.MappingStartEvent
        self._map_end = kinds.MappingEndEvent
        self._scalar = kinds.ScalarEvent
        self._seq_end = kinds.SequenceEndEvent
        self._file = file
        # Hardly two nodes fit in one character: a short text needs no counting.
        self._counts = len(text) > limits.nodes // 4
        self._limits = limits
        self._left = limits.nodes - 1  # the root
        self._path: list[str | int] = []
        self._end: Any = None
        self.problems: list[Problem] = []
        self.spans = False  # whether quoted text, or what stands in brackets, has several lines
        self.whole = False  # whether all was read

    def document(self) -> Any:
        """The value of the only document. Syntax errors are the parser's exceptions."""
        try:
            return self._document()
        except _StopReading:
            return None

    def _document(self) -> Any:
        self._take()  # the stream starts
        if not hasattr(self._take(), "explicit"):
            self._stop_empty()
        root = self._take()
        value = self._root(root)
        self._take()  # the document ends
        if root.__class__ is self._scalar:
            # Only now: text before a syntax error was meant to be something else.
            self._report_root(root, "text")
        after = self._take()
        if hasattr(after, "explicit"):
            self._stop(
                "yaml.documents", after, "a second document starts here", "keep one document in a file"
            )
        self.whole = True
        return value

    def _root(self, root: Any) -> Any:
        if root.__class__ is self._scalar:
            if not root.value and not root.style:
                self._stop_empty()
            return None
        if root.__class__ not in (self._map, self._alias):
            self._report_root(root, "a list")
        return self._value(root)

    def _report_root(self, root: Any, found: str) -> None:
        self._report("yaml.root", root, f"found {found}, expected a mapping", "start with `key: value`")

    def _mapping(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        seen: dict[str, Any] = {}
        take, end, scalar = self._take, self._map_end, self._scalar
        while (event := take()).__class__ is not end:
            # Most keys are plain words: judged here, for a call each would cost a tenth of the time.
            plain = event.__class__ is scalar and not event.style and event.ctag is event.anchor is None
            key: str | None = event.value if plain else None
            if key is None or key in _NO_KEYS or len(key) > MAX_KEY:
                key = self._key(event)
            if self._counts:
                self._count(event, 2)
            after = take()
            step = getattr(event, "value", "?") if key is None else key
            value = self._text(after, step) if after.__class__ is scalar else self._value(after, step)
            if key is not None and seen.setdefault(key, event) is event:
                values[key] = value
            elif key is not None:
                self._report_repeated(key, event, seen[key])
        self._end = event
        return values

    def _sequence(self) -> list[Any]:
        values: list[Any] = []
        take, end, scalar = self._take, self._seq_end, self._scalar
        while (event := take()).__class__ is not end:
            if self._counts:
                self._count(event, 1)
            step = len(values)
            values.append(self._text(event, step) if event.__class__ is scalar else self._value(event, step))
        self._end = event
        return values

    def _value(self, event: Any, *step: str | int) -> Any:
        if event.__class__ is self._alias:
            self._report_alias(event, *step)
            return None
        self._path += step
        depth = self._limits.depth
        if len(self._path) >= depth:
            self._stop("yaml.limit", event, f"nesting deeper than {depth}", "flatten the value")
        self._refuse_decoration(event)
        value = self._mapping() if event.__class__ is self._map else self._sequence()
        if event.flow_style and self._end.end_mark.line != event.start_mark.line:
            self.spans = True
        del self._path[len(self._path) - len(step) :]
        return value

    def _text(self, event: Any, step: str | int) -> Any:
        text: str = event.value
        if event.ctag is not None or event.anchor is not None:
            self._refuse_decoration(event, step)
        elif not event.style:
            if text[:1] in _NUMERIC:
                return self._number(event, text, step)
            if len(text) <= _LONGEST_WORD:
                return self._word(event, text, step)
        elif event.style == '"':
            self._safe(event, text, step)
        if event.style and event.style in _QUOTES and event.start_mark.line != event.end_mark.line:
            self.spans = True
        return text

    def _word(self, event: Any, text: str, step: str | int) -> str | bool | None:
        if text in _WORDS:
            return _WORDS[text]
        if text.lower() in _OTHER_WORDS:
            self._ambiguous(event, text, step)
        return text

    def _number(self, event: Any, text: str, step: str | int) -> str | int | float | None:
        match = _NUMBER.fullmatch(text)
        if match is None:
            if _LOOK_ALIKE.fullmatch(text):
                self._ambiguous(event, text, step)
            return text
        value = _number(match)
        if value is None:
            kind = "an integer beyond 2^53-1" if match[1] is match[2] is None else "beyond every float"
            self._report("yaml.number", event, f"{_short(text)} is {kind}", "write it in quotes", step)
        return value

    def _ambiguous(self, event: Any, text: str, step: str | int) -> None:
        found = f"`{_short(text)}` is read differently by different programs"
        hint = "write true/false, a decimal number, or quote it"
        self._report("yaml.ambiguous", event, found, hint, step)

    def _key(self, event: Any) -> str | None:
        """The text of a key as written; None, with a problem, for one that is no text."""
        if event.__class__ is not self._scalar:
            self._no_text_key(event)
            return None
        key: str = event.value
        before = len(self.problems)
        self._refuse_decoration(event, key)
        if len(key) > MAX_KEY:
            self._report("yaml.limit", event, _LONG_KEY.message, _LONG_KEY.hint)
        if event.style == '"':
            self._safe(event, key, key)
        elif not event.style and key in _NO_KEYS:
            code, message, hint = _NO_KEYS[key]
            self._report(code, event, message, hint)
        return key if len(self.problems) == before else None

    def _no_text_key(self, event: Any) -> None:
        if event.__class__ is self._alias:
            self._report_alias(event)
            return
        found = "a mapping" if event.__class__ is self._map else "a list"
        hint = "write the key as text; quote text that starts with a bracket or brace"
        self._report("yaml.key", event, f"the key is {found}, expected text", hint)
        self._value(event, "?")

    def _report_repeated(self, key: str, event: Any, first: Any) -> None:
        message = f"key `{_short(key)}` repeated, first at line {first.start_mark.line + 1}"
        self._report("yaml.duplicate-key", event, message, "keep one of them", key)

    def _report_alias(self, event: Any, *step: str | int) -> None:
        hint = "write the value out, or quote text that starts with `*`"
        self._report("yaml.alias", event, f"alias `*{_short(event.anchor)}` is not allowed", hint, *step)

    def _refuse_decoration(self, event: Any, *step: str | int) -> None:
        if event.anchor is not None:
            hint = "remove it and write the value out where it is needed"
            self._report("yaml.alias", event, f"anchor `&{_short(event.anchor)}` is not allowed", hint, *step)
        if event.ctag is not None:
            hint = "remove it, or quote text that starts with `!`"
            self._report("yaml.tag", event, f"tag `{_short(str(event.ctag))}` is not allowed", hint, *step)

    def _safe(self, event: Any, text: str, step: str | int) -> None:
        unsafe = _UNSAFE.search(text)
        if unsafe:
            self._report("yaml.characters", event, *_character(unsafe[0]), step)

    def _count(self, event: Any, nodes: int) -> None:
        self._left -= nodes
        if self._left < 0:
            self._stop("yaml.limit", event, f"more than {self._limits.nodes:,} nodes", "split the file")

    def _stop_empty(self) -> NoReturn:
        self._stop("yaml.empty", None, "the file is empty, expected a mapping", "write `key: value`")

    def _stop(self, code: str, event: Any, message: str, hint: str) -> NoReturn:
        self._report(code, event, message, hint)
        raise _StopReading

    def _report(self, code: str, event: Any, message: str, hint: str, *step: str | int) -> None:
        mark = event and event.start_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        path = pointer((*self._path, *step))
        self.problems.append(Problem(code, "E", self._file, line, column, path, message, hint))
        if len(self.problems) == MAX_PROBLEMS:
            many = Problem("yaml.limit", "E", self._file, line, column, "", _MANY.message, _MANY.hint)
            self.problems.append(many)
            raise _StopReading


def _number(match: re.Match[str]) -> int | float | None:
    """The number, or None for one that not every reader keeps exactly."""
    if match[1] is None and match[2] is None:
        # Length first: int() of thousands of digits is slow, or refused by Python itself.
        integer = int(match[0]) if len(match[0]) <= 17 else MAX_INT + 1
        return integer if abs(integer) <= MAX_INT else None
    decimal = float(match[0])
    return decimal if math.isfinite(decimal) else None


class Places:
    """The positions of the keys and values of one text by path: `("steps", 0, "uses")`.

    A missing path has the position of its nearest existing ancestor, so that a missing key is reported there. An empty
    value (`key:`) has that of its key. The text is parsed for positions at the first lookup, which most files never
    get.
    """

    __slots__ = ("_root", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._root: _Place | None = None

    def value(self, path: Path) -> Span:
        """The position of the value at `path`."""
        return self._nearest(path)[0].value

    def key(self, path: Path) -> Span:
        """The position of the last key of `path`; for a list item and the root that of the value."""
        place, found = self._nearest(path)
        return place.key if found and place.key else place.value

    def at_pointer(self, pointer: Sequence[str]) -> Span:
        """The position of the value at the parts of a JSON pointer, or of its nearest existing ancestor."""
        place = self._nearest(())[0]
        for part in pointer:
            inner = place.children.get(part) or place.children.get(int(part) if part.isdecimal() else -1)
            if inner is None:
                break
            place = inner
        return place.value

    def _nearest(self, path: Path) -> tuple[_Place, bool]:
        if self._root is None:
            self._root = _read_places(self._text)
        place = self._root
        for step in path:
            inner = place.children.get(step)
            if inner is None:
                return place, False
            place = inner
        return place, True


@dataclass(slots=True)
class _Place:
    key: Span | None
    value: Span
    children: dict[str | int, _Place] = field(default_factory=dict)


def _read_places(text: str) -> _Place:
    """The positions in a text, as far as it can be parsed within the limits."""
    from ruamel.yaml.error import YAMLError

    root = _Place(None, _START)
    for begin in _readers(text):
        take = begin()
        try:
            for event in iter(take, None):
                if hasattr(event, "anchor"):
                    root = _place_of(event, None)
                    _fill_places(root, event, take, [MAX_NODES], 1)
                    break
        except YAMLError:
            continue
        except _StopReading:
            pass
        break
    return root


def _fill_places(place: _Place, start: Any, take: Callable[[], Any], left: list[int], depth: int) -> None:
    """Add the positions inside the node of the event `start`, and its end."""
    left[0] -= 1
    if left[0] < 0 or depth > MAX_DEPTH + 1:
        raise _StopReading
    if not hasattr(start, "flow_style"):
        return
    last = place.value
    keyed = start.__class__.__name__ == "MappingStartEvent"
    while hasattr(event := take(), "anchor"):
        step: Any = len(place.children)
        key: Span | None = None
        if keyed:
            step, key = getattr(event, "value", None), _span(event)
            _fill_places(
                _Place(key, key), event, take, left, depth + 1
            )  # a key that is a collection leads nowhere
            event = take()
        inner = _place_of(event, key)
        if step is not None:
            place.children.setdefault(step, inner)
        _fill_places(inner, event, take, left, depth + 1)
        last = inner.value
    # The end of an indented block has no width: it is found where the next thing starts.
    if event.start_mark.column != event.end_mark.column:
        last = _span(event)
    place.value = Span(place.value.line, place.value.column, last.end_line, last.end_column)


def _place_of(event: Any, key: Span | None) -> _Place:
    unwritten = getattr(event, "value", None) == "" and not event.style
    return _Place(key, key if key and unwritten else _span(event))


def _span(event: Any) -> Span:
    start, end = event.start_mark, event.end_mark
    return Span(start.line + 1, start.column + 1, end.line + 1, end.column + 1)
