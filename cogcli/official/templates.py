"""Texts put together: templates filled with values, and items joined."""

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
    """Return the template with values in the place of `{{a.b}}`, in one pass: no value is read as a template.

    Texts stand as they are, other values as JSON. A path that leads nowhere stays, and is told in `unresolved`.
    """
    text, unresolved = _filled(template, variables, _plain)
    return {"text": text, "unresolved": unresolved}


def fill_prompt(
    template: str, variables: dict[str, object], format: str = "text"
) -> dict[str, object]:
    """Return the same for a prompt. `format` says how values are written: `text`, `json` (quoted), `markdown` (lists as
    bullets, objects as lines), or `xml` (escaped, so that data cannot close a tag of the template).
    """
    if format not in _FORMATS:
        raise Refused(
            "unsupported", f"unknown format {format!r:.40}; known are {', '.join(_FORMATS)}"
        )
    text, unresolved = _filled(template, variables, _FORMATS[format])
    return {"prompt": text, "unresolved": unresolved}


def _filled(
    template: str, variables: dict[str, object], write: Callable[[object], str]
) -> tuple[str, list[str]]:
    unresolved: dict[str, None] = {}
    written: dict[str, str] = {}
    parts: list[str] = []
    size = reached = 0
    for match in _PLACE.finditer(template):
        path = match[1]
        if path not in written and path not in unresolved:
            found, value = at_path(variables, path)
            if found:
                written[path] = write(value)
            else:
                unresolved[path] = None
        piece = written.get(path, match[0])
        parts += [template[reached : match.start()], piece]
        reached = match.end()
        size += len(piece)
        if size > _MAX_TEXT:
            raise Refused(
                "too-large", f"the filled template would have more than {_MAX_TEXT:,} characters"
            )
    return "".join([*parts, template[reached:]]), list(unresolved)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else _as_json(value)


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _as_markdown(value: object) -> str:
    if isinstance(value, list):
        return "\n".join(f"- {_plain(item)}" for item in value)
    return _as_lines(value) if isinstance(value, dict) else _plain(value)


_FORMATS: dict[str, Callable[[object], str]] = {
    "text": _plain,
    "json": _as_json,
    "markdown": _as_markdown,
    "xml": lambda value: escape(_plain(value)),
}


def merge_items(
    items: list[object], separator: str = "\n\n", include_headers: bool = False
) -> dict[str, object]:
    """Return all items as one text: texts as they are, objects as `key: value` lines, a list of objects as a
    Markdown table, other lists as bullets. With `include_headers` each begins with its title, heading, name or id,
    else its number.
    """
    parts = [
        f"## {_header(item, number)}\n\n{_written(item)}" if include_headers else _written(item)
        for number, item in enumerate(items, 1)
    ]
    if sum(map(len, parts)) + len(separator) * len(parts) > _MAX_TEXT:
        raise Refused("too-large", f"the text would have more than {_MAX_TEXT:,} characters")
    return {"text": separator.join(parts), "item_count": len(items)}


def _header(item: object, number: int) -> str:
    named = [item[key] for key in _HEADER_KEYS if item.get(key)] if isinstance(item, dict) else []
    return " ".join(_plain(named[0]).split()) if named else f"Item {number}"


def _written(item: object) -> str:
    if isinstance(item, dict):
        return _as_lines(item)
    if isinstance(item, list) and item and all(isinstance(row, dict) for row in item):
        return _as_table(item)
    return _as_markdown(item)


def _as_lines(item: dict[str, object]) -> str:
    return "\n".join(f"{key}: {_plain(value)}" for key, value in item.items())


def _as_table(rows: list[dict[str, object]]) -> str:
    columns = list(dict.fromkeys(str(key) for row in rows for key in row))
    lines = [columns, ["---"] * len(columns)]
    lines += [[_cell(row[key]) if key in row else "" for key in columns] for row in rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cell(value: object) -> str:
    return " ".join(_plain(value).split()).replace("|", "\\|")
