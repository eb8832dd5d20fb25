"""Markdown reports composed of typed parts. Every value is escaped, so that data cannot become
markup.
"""

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
    """Return a Markdown report of a title, an optional note and sections, each with a `heading` and
    up to four parts.

    `text` is a paragraph, `facts` an object shown as two columns, `items` a list shown as bullets,
    `rows` a list of objects shown as a table. Empty parts are left out, and an empty section prints
    `Nothing to report.` Lists stop after 50 entries and print how many follow.
    """
    unknown = {key for section in sections for key in section} - {"heading", *_PARTS}
    if unknown:
        raise Refused(
            "bad-data", f"unknown part {min(unknown)!r:.40}; known are heading, {', '.join(_PARTS)}"
        )
    headings = [_as_line(section.get("heading")) for section in sections]
    blocks = [f"# {_escape_markdown(title)}"]
    if note:
        blocks.append(f"> {_escape_markdown(note)}")
    for heading, section in zip(headings, sections, strict=True):
        blocks += [
            f"## {_escape_markdown(heading)}",
            *(_section_blocks(section) or ["Nothing to report."]),
        ]
    return {"text": "\n\n".join(blocks) + "\n", "headings": headings, "media_type": "text/markdown"}


def _section_blocks(section: dict[str, object]) -> list[str]:
    return [
        _render_part(name, section[name])
        for name in _PARTS
        if section.get(name) not in (None, "", [], {})
    ]


def _render_part(name: str, value: object) -> str:
    expected, render = _PARTS[name]
    if not isinstance(value, expected):
        raise Refused(
            "bad-data", f"part {name!r}: expected {expected.__name__}, found {type(value).__name__}"
        )
    return render(value)


def _render_facts(facts: dict[str, object]) -> str:
    return _render_table(
        ["Fact", "Value"],
        [[_as_line(name.replace("_", " ")), _as_line(facts[name])] for name in facts],
    )


def _render_items(items: list[object]) -> str:
    return "\n".join(
        [f"- {_escape_markdown(_as_line(item))}" for item in items[:_MAX_ENTRIES]]
        + _omitted_note(len(items), "- ")
    )


def _render_rows(rows: list[object]) -> str:
    objects = [row if isinstance(row, dict) else {"value": row} for row in rows[:_MAX_ENTRIES]]
    columns = list(dict.fromkeys(str(name) for row in objects for name in row))
    table = _render_table(
        columns, [[_as_line(row.get(name)) for name in columns] for row in objects]
    )
    return "\n\n".join([table, *_omitted_note(len(rows), "")])


def _omitted_note(count: int, mark: str) -> list[str]:
    return [f"{mark}… and {count - _MAX_ENTRIES} more"] if count > _MAX_ENTRIES else []


def _render_table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    rule = lines[1]
    return "\n".join(
        f"| {' | '.join(cells if cells is rule else map(_escape_cell, cells))} |" for cells in lines
    )


def _escape_cell(text: str) -> str:
    return _escape_markdown(text).replace("|", "\\|")


def _escape_markdown(text: str) -> str:
    inline = _INLINE.sub(r"\\\g<0>", " ".join(text.split()))
    block = _BLOCK.match(inline)
    return f"{inline[: block.end()]}\\{inline[block.end() :]}" if block else inline


def _as_line(value: object) -> str:
    """Return a value as one line of at most 300 characters."""
    if value is None:
        return "–"
    if isinstance(value, dict):
        value = "; ".join(f"{name}: {_as_line(inner)}" for name, inner in value.items())
    elif isinstance(value, list):
        value = ", ".join(map(_as_line, value[:_MAX_ENTRIES]))
    text = " ".join((value if isinstance(value, str) else json.dumps(value)).split())
    return text if len(text) <= _MAX_CELL else f"{text[:_MAX_CELL]}…"


_PARTS: dict[str, tuple[type, Callable[..., str]]] = {
    "text": (str, _escape_markdown),
    "facts": (dict, _render_facts),
    "items": (list, _render_items),
    "rows": (list, _render_rows),
}
