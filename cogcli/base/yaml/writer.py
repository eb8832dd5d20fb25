"""Data as YAML that people go on editing: short mappings on one line, longer ones and texts of several lines as blocks,
and every text that is not a plain word in quotes, so that nothing in a text is read as YAML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from cogcli.base.jsonvalue import MAX_INTEGER

_WIDTH: Final = 110
_PLAIN: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*(?:[./-][A-Za-z0-9_$]+)*")
_NAMED: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
_NOT_TEXT: Final = frozenset(("true", "false", "null", "yes", "no", "on", "off"))


def yaml_text(value: dict[str, Any]) -> str:
    """The mapping as a block, a key a line. A mapping or list in it is on its key's line where it fits there. `1.0`, in
    a schema the integer 1, is written as that."""
    return "".join(f"{line}\n" for line in block(_whole(value), ""))


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _whole(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_whole(part) for part in value]
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) <= MAX_INTEGER
    return int(value) if is_whole else value


def block(value: Any, indent: str) -> Iterator[str]:
    """The lines of a mapping or list that is not empty."""
    is_list = isinstance(value, list)
    for key, member in enumerate(value) if is_list else value.items():
        head = f"{indent}-" if is_list else f"{indent}{_scalar(key)}:"
        below = below_head(head, member, f"{indent}  ")
        if below is None:
            yield f"{head} {flow(member)}"
        elif is_list and not isinstance(member, str):  # the first line stands behind the dash
            yield f"{head} {below[1].lstrip()}"
            yield from below[2:]
        else:
            yield f"{head}{below[0]}"
            yield from below[1:]


def below_head(head: str, value: Any, indent: str) -> list[str] | None:
    """Return the rest of the line after a key or dash, and the lines below it; None for a value in
    that line."""
    if isinstance(value, str):
        return _literal(value, indent) if is_block_text(value) else None
    if not value or not isinstance(value, dict | list):
        return None
    if len(f"{head} {flow(value)}") <= _WIDTH and _is_short(value) and not _holds_block_text(value):
        return None
    return ["", *block(value, indent)]


def is_block_text(value: str) -> bool:
    """Whether a text has several lines, and a YAML block can hold it verbatim."""
    lines = value.split("\n")
    return (
        len(lines) > 1
        and lines[0][:1] not in ("", " ")
        and all(map(str.isprintable, lines))
        and lines[-2] != ""
    )


def _literal(value: str, indent: str) -> list[str]:
    mark = " |" if value.endswith("\n") else " |-"
    return [
        mark,
        *(f"{indent}{line}" if line else "" for line in value.removesuffix("\n").split("\n")),
    ]


def _holds_block_text(value: Any) -> bool:
    if isinstance(value, dict | list):
        return any(map(_holds_block_text, value.values() if isinstance(value, dict) else value))
    return isinstance(value, str) and is_block_text(value)


def _is_short(value: dict[str, Any] | list[Any]) -> bool:
    """Whether at most one level of mappings and lists is inside."""
    inner = value.values() if isinstance(value, dict) else value
    below = [part for part in inner if isinstance(part, dict | list)]
    return not any(
        isinstance(e, dict | list)
        for b in below
        for e in (b.values() if isinstance(b, dict) else b)
    )


def flow(value: Any) -> str:
    """A value in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(key)}: {flow(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _NOT_TEXT:
        return value
    return f'"{"".join(map(_escaped, value))}"'


def _escaped(char: str) -> str:
    if char in _NAMED:
        return _NAMED[char]
    code = ord(char)
    if char.isprintable():
        return char
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )
