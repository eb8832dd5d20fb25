"""One pin of a configuration file, changed as a line of its table (docs/reference/pack.md#pins).
Pure.

Everything else in the file stays unchanged: comments, order, spaces, line ends."""

from __future__ import annotations

import re
import tomllib
from typing import Final

from cogcli.base.toml_bounds import find_excess
from cogcli.declarations.value_types import Json

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_MARK: Final = "\ufeff"


class PinRefused(Exception):
    """The file has its pins in another form than lines of a table, or is not TOML."""


def with_pin(text: str, environment: str, id: str, version: str | None) -> str:
    """Return the text of a file after a pack is pinned, or unpinned, in an environment.

    The empty environment is the default one. Raise PinRefused."""
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    first, last = _find_table(lines, environment)
    place = next((n for n in range(first, last) if _key(lines[n]) == id), None)
    if place is not None:
        lines[place : place + 1] = (
            [_with_version(lines[place], version)] if version is not None else []
        )
    elif version is not None:
        line = f"{_word(id)} = {_quoted(version)}{end}"
        if first:
            at = next((n for n in range(last, first, -1) if lines[n - 1].strip()), first)
            lines[:at] = _with_final_newline(lines[:at], end)
            lines.insert(at, line)
        else:
            blank = [end] if text.strip(f"{_MARK} \r\n") else []
            lines = [
                *_with_final_newline(lines, end),
                *blank,
                f"[{_header(environment)}]{end}",
                line,
            ]
    changed = "".join(lines)
    if _read(changed) != _expected_document(_read(text), environment, id, version):
        raise PinRefused
    return changed


def _find_table(lines: list[str], environment: str) -> tuple[int, int]:
    """Return the lines of the table, from after its header on; (0, 0) if it does not exist."""
    wanted = _header(environment).replace('"', "")
    first = 0
    for number, line in enumerate(lines, 1):
        if line.strip().startswith("["):
            if first:
                return first, number - 1
            header = line.partition("]")[0].strip().lstrip("[")
            if re.sub(r"[\s\"']", "", header) == wanted:
                first = number
    return first, len(lines) if first else 0


def _header(environment: str) -> str:
    return f"packs.env.{_word(environment)}" if environment else "packs.pins"


def _key(line: str) -> str:
    """Return the key of a line; empty if it has none."""
    match = re.match(r"""\s*(?:"([^"\\]*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*=""", line)
    return next(filter(None, match.groups()), "") if match else ""


def _with_version(line: str, version: str) -> str:
    """Return the line with another version and its old comment."""
    match = re.match(r"""([^=]*=\s*)("[^"\\]*"|'[^']*')(.*)""", line, re.S)
    if match is None:
        raise PinRefused
    return line if match[2][1:-1] == version else f"{match[1]}{_quoted(version)}{match[3]}"


def _with_final_newline(lines: list[str], end: str) -> list[str]:
    """Return the lines with a line end after the last one."""
    if not lines or lines[-1].endswith(("\n", _MARK)):
        return lines
    return [*lines[:-1], lines[-1] + end]


def _word(name: str) -> str:
    return name if _BARE.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    return f'"{text}"'


def _read(text: str) -> Json:
    if find_excess(text):
        raise PinRefused
    try:
        return tomllib.loads(text.removeprefix(_MARK).replace("\r\n", "\n"))
    except ValueError as error:
        raise PinRefused from error


def _expected_document(document: Json, environment: str, id: str, version: str | None) -> Json:
    """Set a pin in the document, or remove it without a version, and return the document.

    The changed text must parse to the same value.
    """
    table = document
    for name in ("packs", "env", environment) if environment else ("packs", "pins"):
        if version is None and name not in table:
            return document
        table = table.setdefault(name, {})
    if version is None:
        table.pop(id, None)
    else:
        table[id] = version
    return document
