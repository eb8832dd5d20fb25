"""Reads strict YAML, and the JSON of the one file that people edit, as plain values with positions.

1. Problems are values. All problems that can be found are reported together, and then there is no
value.

2. Lines and columns are 1-based and count code points.

3. If the C parser is too lenient, `strictness` decides: the result is the same with and without the
C parser.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from cogcli.base.files import UnreadableFile, read_regular
from cogcli.base.jsonvalue import Json, preview
from cogcli.base.problems import Problem, sort_problems
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.base.text_places import line_column
from cogcli.base.yaml.builder import ValueBuilder
from cogcli.base.yaml.limits import MAX_BYTES, MAX_DEPTH, SPEC, Limits
from cogcli.base.yaml.parsers import event_streams
from cogcli.base.yaml.positions import YamlPositions
from cogcli.base.yaml.strictness import SUSPECT, find_first_breach
from cogcli.base.yaml.text_faults import LONE_RETURN, clean_text, syntax_problem

REPEATED_KEY: Final = "yaml.duplicate-key"
_SAVE: Final = "save the file as UTF-8"


@dataclass(frozen=True, slots=True)
class ParsedYaml:
    """The parsed content of one file: its mapping, positions and problems.

    `value` is None if a problem is an error.
    """

    value: Json | None
    places: YamlPositions
    problems: list[Problem]


def read_file(
    path: str | os.PathLike[str], *, file: str, limits: Limits = SPEC
) -> tuple[bytes, ParsedYaml]:
    """Return the bytes of a file and their parsed content; `file` is its name in problems.

    A file that cannot be read yields no bytes and a problem `yaml.io` or `yaml.size`.
    """
    try:
        data = read_regular(path, limit=limits.bytes)
    except UnreadableFile as refused:
        if refused.reason == "too-large":
            return b"", _refuse_file(
                "yaml.size", file, refused.message, limits.hint("split the file", "bytes")
            )
        return b"", _refuse_file(
            "yaml.io", file, refused.message, "name a regular file that you may read"
        )
    return data, parse(data, file=file, limits=limits)


def parse(
    data: bytes,
    *,
    file: str,
    limits: Limits = SPEC,
    tolerate: Callable[[Problem], bool] = lambda problem: False,
) -> ParsedYaml:
    """Return the mapping in a YAML file (docs/reference/spec-files.md#yaml). Never raise.

    The result contains the problems. If `tolerate` accepts a repeated key, the problem is a warning
    and the first value is used.
    """
    if len(data) > limits.bytes:
        found = f"has {len(data):,} bytes, at most {limits.bytes:,} are allowed"
        return _refuse_file("yaml.size", file, found, limits.hint("split the file", "bytes"))
    if _is_utf16(data):
        return _refuse_file(
            "yaml.encoding", file, "the file is UTF-16, expected UTF-8", _SAVE, (1, 1)
        )
    try:
        text = data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode().removeprefix("\ufeff")
        at = line_column(before, len(before))
        return _refuse_file(
            "yaml.encoding", file, f"byte 0x{data[error.start]:02X} is not UTF-8", _SAVE, at
        )
    if text.startswith("\ufeff"):
        return _refuse_file(
            "yaml.encoding", file, "more than one byte order mark", "keep one at most", (1, 1)
        )
    lone_return = LONE_RETURN.search(text)
    if lone_return:  # parsers count lines by it, editors do not: no other place would be right
        at, found = line_column(text, lone_return.start()), "carriage return without a line feed"
        return _refuse_file("yaml.characters", file, found, "end lines with a line feed", at)
    problems, text = clean_text(text, file)
    value, found_inside = _build_value(text, file, limits)
    problems = [
        _set_severity(problem, tolerate) for problem in sort_problems(problems + found_inside)
    ]
    refused = any(problem.severity == "E" for problem in problems)
    return ParsedYaml(None if refused else value, YamlPositions(text, limits.nodes), problems)


def _set_severity(problem: Problem, tolerate: Callable[[Problem], bool]) -> Problem:
    """Return the problem, as a warning if it is a repeated key that `tolerate` accepts."""
    tolerated = problem.code == REPEATED_KEY and tolerate(problem)
    return problem._replace(severity="W") if tolerated else problem


def parse_json(data: bytes, *, file: str) -> ParsedYaml:
    """Return the object in a JSON file, by the rules of `base.strict_json`. Never raise.

    The result contains the problems.
    """
    try:
        value = loads(data, max_bytes=MAX_BYTES, max_depth=MAX_DEPTH)
    except InvalidJson as refused:
        at = (refused.line, refused.column)
        return _refuse_file(refused.code, file, refused.message, refused.hint, at)
    # Strict JSON is YAML, too: the reader of YAML finds the place of each value.
    places = YamlPositions(data.decode().removeprefix("\ufeff"))
    if isinstance(value, dict):
        return ParsedYaml(value, places, [])
    message = f"found {preview(value)}, expected object"
    return ParsedYaml(
        None, places, [Problem("json.type", "E", file, 1, 1, "", message, "write {}")]
    )


def _refuse_file(
    code: str, file: str, message: str, hint: str, at: tuple[int, int] = (0, 0)
) -> ParsedYaml:
    """Return a result without a value and with one problem."""
    return ParsedYaml(None, YamlPositions(""), [Problem(code, "E", file, *at, "", message, hint)])


def _is_utf16(data: bytes) -> bool:
    every_other_nul = len(data) > 3 and not (any(data[:8:2]) and any(data[1:8:2]))
    return every_other_nul or data[:2] in (b"\xff\xfe", b"\xfe\xff")


def _build_value(text: str, file: str, limits: Limits) -> tuple[Any, list[Problem]]:
    from ruamel.yaml.error import YAMLError

    stopped: YAMLError | None = None
    problems: list[Problem] = []
    for begin in event_streams(text):
        builder = ValueBuilder(begin(), text, file, limits)
        problems = builder.problems
        try:
            value = builder.document()
            if builder.whole and (builder.spans or SUSPECT.search(text)):
                slip = find_first_breach(text, begin())
                if slip is not None:
                    at = line_column(text, slip.offset)
                    problems.append(
                        Problem("yaml.syntax", "E", file, *at, "", slip.message, slip.hint)
                    )
            return value, problems
        except YAMLError as error:
            stopped = error
    return None, [*problems, syntax_problem(stopped, text, file)]
