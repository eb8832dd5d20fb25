"""Writes data as YAML that people edit later.

Short mappings are on one line, longer ones and texts of several lines are blocks. Every text that
is not a plain word is quoted, so that nothing in a text is read as YAML.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from cogcli.base.jsonvalue import MAX_INTEGER, Json, inner_values, map_members

_WIDTH: Final = 110
_PLAIN: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*(?:[./-][A-Za-z0-9_$]+)*")
_NAMED: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
_NOT_TEXT: Final = frozenset(("true", "false", "null", "yes", "no", "on", "off"))


def yaml_text(value: Json) -> str:
    """Return the mapping as a block with one key per line.

    A mapping or list inside it is on the line of its key if it fits there. `1.0` is written as `1`,
    because it is the integer 1 in a schema.
    """
    return "".join(f"{line}\n" for line in block(_integers_for_whole_floats(value), ""))


def _integers_for_whole_floats(value: object) -> object:
    """Return the value with each float that is a whole number converted to an integer."""
    match value:
        case float() if value.is_integer() and abs(value) <= MAX_INTEGER:
            return int(value)
        case _:
            return map_members(value, _integers_for_whole_floats)


def block(value: object, indent: str) -> Iterator[str]:
    """Yield the lines of a mapping or list that is not empty."""
    if isinstance(value, dict):
        for key, member in value.items():
            head = f"{indent}{_scalar_text(key)}:"
            first, *rest = below_head(head, member, f"{indent}  ") or [f" {flow(member)}"]
            yield f"{head}{first}"
            yield from rest
        return
    for member in inner_values(value):
        below = below_head(f"{indent}-", member, f"{indent}  ") or [f" {flow(member)}"]
        if not below[0]:  # the first line of a collection follows the dash
            below = [f" {below[1].lstrip()}", *below[2:]]
        yield f"{indent}-{below[0]}"
        yield from below[1:]


def below_head(head: str, value: object, indent: str) -> list[str] | None:
    """Return the rest of the line after a key or dash, and the lines below it.

    Return None if the value fits on that line.
    """
    if isinstance(value, str):
        return _literal_block(value, indent) if is_block_text(value) else None
    if not inner_values(value):
        return None
    if (
        len(f"{head} {flow(value)}") <= _WIDTH
        and _is_shallow(value)
        and not _holds_block_text(value)
    ):
        return None
    return ["", *block(value, indent)]


def is_block_text(value: str) -> bool:
    """Return whether a string has several lines, and a YAML block can hold it verbatim."""
    lines = value.split("\n")
    return (
        len(lines) > 1
        and lines[0][:1] not in ("", " ")
        and all(map(str.isprintable, lines))
        and lines[-2] != ""
    )


def _literal_block(value: str, indent: str) -> list[str]:
    mark = " |" if value.endswith("\n") else " |-"
    return [
        mark,
        *(f"{indent}{line}" if line else "" for line in value.removesuffix("\n").split("\n")),
    ]


def _holds_block_text(value: object) -> bool:
    if isinstance(value, str):
        return is_block_text(value)
    return any(map(_holds_block_text, inner_values(value)))


def _is_shallow(value: object) -> bool:
    """Return whether a value nests mappings and lists at most one level deep."""
    inner = (part for below in inner_values(value) for part in inner_values(below))
    return not any(isinstance(part, dict | list) for part in inner)


def flow(value: object) -> str:
    """Return a value on one line."""
    match value:
        case dict():
            members = (f"{_scalar_text(key)}: {flow(part)}" for key, part in value.items())
            return f"{{{', '.join(members)}}}"
        case list():
            return f"[{', '.join(map(flow, value))}]"
        case _:
            return _scalar_text(value)


def _scalar_text(value: object) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _NOT_TEXT:
        return value
    return f'"{"".join(map(_escape_char, value))}"'


def _escape_char(char: str) -> str:
    if char in _NAMED:
        return _NAMED[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
