"""Reports: Markdown composed of typed parts, every value escaped so that data cannot pose as markup."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from cogcli.sdk import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_ENTRIES = 50
_MAX_CELL = 300
_INLINE = re.compile(r"[\\`*\[<]|(?<!\w)_|_(?!\w)")
# What Markdown would read as a block at the start of a line; the escape goes where the match ends.
_BLOCK = re.compile(r"\d{1,9}(?=[.)]\s)|(?=[#>]|[-+]\s|-{3}|~{3})")


def compose_sections(
    title: str, sections: list[dict[str, object]], note: str | None = None
) -> dict[str, object]:
    """Return a Markdown report of a title, an optional note and sections, each a `heading` and any of four parts.

    `text` is a paragraph, `facts` an object shown as two columns, `items` a list shown as bullets, `rows` a list
    of objects shown as a table. Absent, null and empty parts are left out; a section without any says so. Lists
    stop after 50 entries and tell how many follow.
    """
    unknown = {key for section in sections for key in section} - {"heading", *_PARTS}
    if unknown:
        raise Refused(
            "bad-data", f"unknown part {min(unknown)!r:.40}; known are heading, {', '.join(_PARTS)}"
        )
    headings = [_line(section.get("heading")) for section in sections]
    blocks = [f"# {_escaped(title)}"]
    if note:
        blocks.append(f"> {_escaped(note)}")
    for heading, section in zip(headings, sections, strict=True):
        blocks += [f"## {_escaped(heading)}", *(_body(section) or ["Nothing to report."])]
    return {"text": "\n\n".join(blocks) + "\n", "headings": headings, "media_type": "text/markdown"}


def _body(section: dict[str, object]) -> list[str]:
    return [
        _part(name, section[name]) for name in _PARTS if section.get(name) not in (None, "", [], {})
    ]


def _part(name: str, value: object) -> str:
    expected, render = _PARTS[name]
    if not isinstance(value, expected):
        raise Refused(
            "bad-data", f"part {name!r}: expected {expected.__name__}, found {type(value).__name__}"
        )
    return render(value)


def _facts(facts: dict[str, object]) -> str:
    return _table(
        ["Fact", "Value"], [[_line(name.replace("_", " ")), _line(facts[name])] for name in facts]
    )


def _items(items: list[object]) -> str:
    return "\n".join(
        [f"- {_escaped(_line(item))}" for item in items[:_MAX_ENTRIES]] + _more(len(items), "- ")
    )


def _rows(rows: list[object]) -> str:
    objects = [row if isinstance(row, dict) else {"value": row} for row in rows[:_MAX_ENTRIES]]
    columns = list(dict.fromkeys(str(name) for row in objects for name in row))
    table = _table(columns, [[_line(row.get(name)) for name in columns] for row in objects])
    return "\n\n".join([table, *_more(len(rows), "")])


def _more(count: int, mark: str) -> list[str]:
    return [f"{mark}… and {count - _MAX_ENTRIES} more"] if count > _MAX_ENTRIES else []


def _table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    rule = lines[1]
    return "\n".join(
        f"| {' | '.join(cells if cells is rule else map(_in_cell, cells))} |" for cells in lines
    )


def _in_cell(text: str) -> str:
    return _escaped(text).replace("|", "\\|")


def _escaped(text: str) -> str:
    inline = _INLINE.sub(r"\\\g<0>", " ".join(text.split()))
    block = _BLOCK.match(inline)
    return f"{inline[: block.end()]}\\{inline[block.end() :]}" if block else inline


def _line(value: object) -> str:
    """Return a value in one line of at most 300 characters."""
    if value is None:
        return "–"
    if isinstance(value, dict):
        value = "; ".join(f"{name}: {_line(inner)}" for name, inner in value.items())
    elif isinstance(value, list):
        value = ", ".join(map(_line, value[:_MAX_ENTRIES]))
    text = " ".join((value if isinstance(value, str) else json.dumps(value)).split())
    return text if len(text) <= _MAX_CELL else f"{text[:_MAX_CELL]}…"


_PARTS: dict[str, tuple[type, Callable[..., str]]] = {
    "text": (str, _escaped),
    "facts": (dict, _facts),
    "items": (list, _items),
    "rows": (list, _rows),
}
