"""Changes of one pin in the text of a configuration file (docs/reference/pack.md#pins). Pure.

Everything else in the file is unchanged: comments, order, spaces and line ends."""

from __future__ import annotations

import re
import tomllib
from typing import Final

from cogcli.base.toml_bounds import find_excess
from cogcli.declarations.value_types import Json

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_MARK: Final = "\ufeff"


class InvalidPin(Exception):
    """The file is not TOML, or its pins are not lines of a table."""


def with_pin(text: str, environment: str, id: str, version: str | None) -> str:
    """Return the text of a file with a pin set in an environment, or removed if `version` is None.

    The empty environment is the default one. Raise InvalidPin."""
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    first, last = _find_table(lines, environment)
    place = next((n for n in range(first, last) if _find_key(lines[n]) == id), None)
    if place is not None and version is not None:
        lines[place] = _with_version(lines[place], version)
    elif place is not None:
        del lines[place]
    elif version is not None:
        line = f"{_format_key(id)} = {_quote_text(version)}{end}"
        if first:
            at = next((n for n in range(last, first, -1) if lines[n - 1].strip()), first)
            lines = [*_with_final_newline(lines[:at], end), line, *lines[at:]]
        else:
            lines = [*_before_new_table(lines, end), f"[{_table_name(environment)}]{end}", line]
    changed = "".join(lines)
    if _parse_config(changed) != _expected_document(_parse_config(text), environment, id, version):
        raise InvalidPin
    return changed


def _before_new_table(lines: list[str], end: str) -> list[str]:
    """Return the lines followed by a blank line, or unchanged if they are empty."""
    has_text = bool("".join(lines).strip(f"{_MARK} \r\n"))
    return [*_with_final_newline(lines, end), *([end] if has_text else [])]


def _find_table(lines: list[str], environment: str) -> tuple[int, int]:
    """Return the index of the first line in the body of a table, and the index after its last line.

    Both are 0 if the table does not exist."""
    wanted = _table_name(environment).replace('"', "")
    first = 0
    for number, line in enumerate(lines, 1):
        if line.strip().startswith("["):
            if first:
                return first, number - 1
            header = line.partition("]")[0].strip().lstrip("[")
            if re.sub(r"[\s\"']", "", header) == wanted:
                first = number
    return first, len(lines) if first else 0


def _table_name(environment: str) -> str:
    """Return the name of the table of an environment."""
    return f"packs.env.{_format_key(environment)}" if environment else "packs.pins"


def _find_key(line: str) -> str:
    """Return the key that a line sets; empty if it sets none."""
    match = re.match(r"""\s*(?:"([^"\\]*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*=""", line)
    return next(filter(None, match.groups()), "") if match else ""


def _with_version(line: str, version: str) -> str:
    """Return the line with another version. Its comment is unchanged."""
    match = re.match(r"""([^=]*=\s*)("[^"\\]*"|'[^']*')(.*)""", line, re.S)
    if match is None:
        raise InvalidPin
    return line if match[2][1:-1] == version else f"{match[1]}{_quote_text(version)}{match[3]}"


def _with_final_newline(lines: list[str], end: str) -> list[str]:
    """Return the lines with a line end after the last line."""
    if not lines or lines[-1].endswith(("\n", _MARK)):
        return lines
    return [*lines[:-1], lines[-1] + end]


def _format_key(name: str) -> str:
    """Return a name as a TOML key, quoted if necessary."""
    return name if _BARE.fullmatch(name) else _quote_text(name)


def _quote_text(text: str) -> str:
    return f'"{text}"'


def _parse_config(text: str) -> Json:
    """Parse the text of a configuration file. Raise InvalidPin."""
    if find_excess(text):
        raise InvalidPin
    try:
        return tomllib.loads(text.removeprefix(_MARK).replace("\r\n", "\n"))
    except ValueError as error:
        raise InvalidPin from error


def _expected_document(document: Json, environment: str, id: str, version: str | None) -> Json:
    """Return the document after setting a pin in it, or removing the pin if `version` is None.

    The edited file is compared with this document."""
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
