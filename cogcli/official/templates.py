"""Templates filled with values, and items joined to one text."""

from __future__ import annotations

import json
import re
from html import escape
from typing import TYPE_CHECKING

from cogcli.official.values import at_path
from cogcli.sdk import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

_PLACE = re.compile(r"\{\{[ \t]*+([A-Za-z_][\w-]*+(?:\.[\w-]++)*+)[ \t]*+\}\}")
_MAX_TEXT = 8_000_000
_HEADER_KEYS = ("title", "heading", "name", "id")


def fill_template(template: str, variables: dict[str, object]) -> dict[str, object]:
    """Return the template with values for `{{a.b}}`, in one pass: values are not read as templates.

    Texts are inserted verbatim, other values as JSON. A path without a value stays, and is listed
    in `unresolved`.
    """
    text, unresolved = _fill_paths(template, variables, _as_text)
    return {"text": text, "unresolved": unresolved}


def fill_prompt(
    template: str, variables: dict[str, object], format: str = "text"
) -> dict[str, object]:
    """Return a prompt template filled with values, as `fill_template` does.

    `format` is how values are written: `text`, `json` (quoted), `markdown` (lists as bullets,
    objects as lines), or `xml` (escaped, so that data cannot close a tag of the template).
    """
    if format not in _FORMATS:
        raise Refused(
            "unsupported", f"unknown format {format!r:.40}; known are {', '.join(_FORMATS)}"
        )
    text, unresolved = _fill_paths(template, variables, _FORMATS[format])
    return {"prompt": text, "unresolved": unresolved}


def _fill_paths(
    template: str, variables: dict[str, object], write: Callable[[object], str]
) -> tuple[str, list[str]]:
    """Return the filled template, and the paths without a value."""
    unresolved: dict[str, None] = {}
    text_by_path: dict[str, str] = {}
    parts: list[str] = []
    size = last_end = 0
    for match in _PLACE.finditer(template):
        path = match[1]
        if path not in text_by_path and path not in unresolved:
            exists, value = at_path(variables, path)
            if exists:
                text_by_path[path] = write(value)
            else:
                unresolved[path] = None
        piece = text_by_path.get(path, match[0])
        parts += [template[last_end : match.start()], piece]
        last_end = match.end()
        size += len(piece)
        if size > _MAX_TEXT:
            raise Refused(
                "too-large", f"the filled template would have more than {_MAX_TEXT:,} characters"
            )
    return "".join([*parts, template[last_end:]]), list(unresolved)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else _as_json(value)


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _as_markdown(value: object) -> str:
    if isinstance(value, list):
        return "\n".join(f"- {_as_text(item)}" for item in value)
    return _as_lines(value) if isinstance(value, dict) else _as_text(value)


_FORMATS: dict[str, Callable[[object], str]] = {
    "text": _as_text,
    "json": _as_json,
    "markdown": _as_markdown,
    "xml": lambda value: escape(_as_text(value)),
}


def merge_items(
    items: list[object], separator: str = "\n\n", include_headers: bool = False
) -> dict[str, object]:
    """Return all items as one text: texts verbatim, objects as `key: value` lines, lists as tables
    or bullets.

    A list of objects becomes a Markdown table. With `include_headers` each item begins with its
    title, heading, name or id, else its number.
    """
    parts = [
        f"## {_item_header(item, number)}\n\n{_as_block(item)}"
        if include_headers
        else _as_block(item)
        for number, item in enumerate(items, 1)
    ]
    if sum(map(len, parts)) + len(separator) * len(parts) > _MAX_TEXT:
        raise Refused("too-large", f"the text would have more than {_MAX_TEXT:,} characters")
    return {"text": separator.join(parts), "item_count": len(items)}


def _item_header(item: object, number: int) -> str:
    titles = [item[key] for key in _HEADER_KEYS if item.get(key)] if isinstance(item, dict) else []
    return " ".join(_as_text(titles[0]).split()) if titles else f"Item {number}"


def _as_block(item: object) -> str:
    if isinstance(item, dict):
        return _as_lines(item)
    if isinstance(item, list) and item and all(isinstance(row, dict) for row in item):
        return _as_table(item)
    return _as_markdown(item)


def _as_lines(item: dict[str, object]) -> str:
    return "\n".join(f"{key}: {_as_text(value)}" for key, value in item.items())


def _as_table(rows: list[dict[str, object]]) -> str:
    columns = list(dict.fromkeys(str(key) for row in rows for key in row))
    lines = [columns, ["---"] * len(columns)]
    lines += [[_table_cell(row[key]) if key in row else "" for key in columns] for row in rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _table_cell(value: object) -> str:
    return " ".join(_as_text(value).split()).replace("|", "\\|")
