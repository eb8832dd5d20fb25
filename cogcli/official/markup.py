"""The body of a text without HTML or Markdown, and the fields that its lines name."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from cogcli.official.sentences import require_size
from cogcli.sdk import Refused

_MAX_TEXT = 1_000_000
_HTML = re.compile(
    r"<(?=[a-z!])(?:!doctype|html|head|body|p|div|span|br|h[1-6]|ul|ol|li|table|tr|td|a|b|i|em|strong|script|style|img|pre|code"
    r"|section|article|header|footer|main|nav|title|blockquote)\b[^<>]*>",
    re.I,
)
# No quadratic way: each part ends at the next `<`.
_TAG = re.compile(r"<!--|<[/!?]?([A-Za-z][A-Za-z0-9:-]*)[^<>]*>")
_HIDDEN = frozenset(
    ("script", "style", "template", "noscript", "svg", "head", "iframe", "object", "textarea")
)
_BLOCK = frozenset(
    """p div br hr h1 h2 h3 h4 h5 h6 ul ol li table tr section article header footer main nav blockquote pre dt dd
    form""".split()
)
_LINK = re.compile(r"!?\[([^\[\]\n]{0,500})\]\([^()\s]{0,2000}(?:\s[^()\n]{0,200})?\)")
_LINE_MARK = re.compile(
    r"^(?:#{1,6}|>|[-*+•]|\d{1,3}[.)])[ \t]+|^[ \t]*(?:[-=*_]{3,}|```.*|~~~.*)$", re.M
)
_EMPHASIS = re.compile(
    r"(?<![\w*])(\*{1,3}|__?)(?=\S)([^*_\n]{1,500})(?<=\S)\1(?![\w*])|`([^`\n]{1,500})`"
)
_MANY_LINES = re.compile(r"\n{3,}")
_FIELD = re.compile(r"^[ \t]*([^\W\d_][^:：\n|]{0,60}?)[ \t]*[:：][ \t]*(\S[^\n]{0,2000})?$", re.M)
_TRUE, _FALSE = ("true", "yes", "y", "on", "1"), ("false", "no", "n", "off", "0")
_NUMBER = re.compile(r"[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")


def extract_body(text: str, extraction_schema: dict[str, Any] | None = None) -> dict[str, object]:
    """Return the text without tags, scripts, hidden parts and Markdown marks.

    With a schema (a JSON Schema with `properties`, or names with types), `fields` holds each name.
    Its value is the rest of the first line `Name: value`, converted to the type; null if no line
    has it or the value does not fit.
    """
    require_size(text, _MAX_TEXT)
    body = _without_markdown(_without_tags(text) if _HTML.search(text) else text)
    if extraction_schema is None:
        return {"text": body, "method": "rules:markup"}
    value_by_key = _fields_by_key(body)
    fields = {
        name: _convert_field(value_by_key.get(_normalize_name(name)), declared)
        for name, declared in _declared_fields(extraction_schema).items()
    }
    return {"text": body, "fields": fields, "method": "rules:markup"}


def _without_tags(text: str) -> str:
    parts: list[str] = []
    hidden_tag, position = "", 0
    while match := _TAG.search(text, position):
        if not hidden_tag:
            parts.append(text[position : match.start()])
        position = match.end()
        name = (match[1] or "").lower()
        if match[0] == "<!--":
            end = text.find("-->", position)
            position = len(text) if end < 0 else end + 3
        elif hidden_tag:
            hidden_tag = "" if name == hidden_tag and match[0].startswith("</") else hidden_tag
        elif name in _HIDDEN and not match[0].startswith("</") and not match[0].endswith("/>"):
            hidden_tag = name
        else:
            parts.append("\n" if name in _BLOCK else " " if name in ("td", "th") else "")
    if not hidden_tag:
        parts.append(text[position:])
    return unescape("".join(parts))


def _without_markdown(text: str) -> str:
    content = _LINK.sub(r"\1", text)
    content = _EMPHASIS.sub(lambda match: match[2] or match[3] or "", content)
    content = _LINE_MARK.sub("", content)
    return _MANY_LINES.sub("\n\n", "\n".join(map(str.rstrip, content.splitlines()))).strip()


def _normalize_name(name: str) -> str:
    return re.sub(r"[\W_]+", " ", name).strip().casefold()


def _fields_by_key(body: str) -> dict[str, str]:
    value_by_key: dict[str, str] = {}
    for match in _FIELD.finditer(body):
        if match[2]:
            value_by_key.setdefault(_normalize_name(match[1]), match[2].strip())
    return value_by_key


def _declared_fields(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    properties = schema.get("properties", schema)
    if not isinstance(properties, dict):
        raise Refused("bad-data", "extraction_schema: `properties` must be an object")
    return {
        str(name): field if isinstance(field, dict) else {"type": field}
        for name, field in properties.items()
        if properties is not schema or not str(name).startswith("$")
    }


def _convert_field(value: str | None, field: dict[str, Any]) -> object:
    """Return a value in the type of a field, or None if it does not fit."""
    if value is None:
        return None
    kind = field.get("type", "string")
    kind = (
        next((one for one in kind if one != "null"), "string") if isinstance(kind, list) else kind
    )
    typed = _READERS[kind](value) if kind in _READERS else value
    return None if "enum" in field and typed not in field["enum"] else typed


def _parse_number(value: str) -> float | None:
    match = _NUMBER.fullmatch(value.strip())
    number = (
        float(match[0].replace(",", "").replace("−", "-")) if match and len(value) < 100 else None
    )
    return (
        int(number)
        if number is not None and number.is_integer() and abs(number) < 2**53
        else number
    )


def _parse_integer(value: str) -> int | None:
    number = _parse_number(value)
    return number if isinstance(number, int) else None


def _parse_boolean(value: str) -> bool | None:
    word = value.strip(" .").lower()
    return True if word in _TRUE else False if word in _FALSE else None


_READERS: dict[Any, Any] = {
    "number": _parse_number,
    "float": _parse_number,
    "integer": _parse_integer,
    "int": _parse_integer,
    "boolean": _parse_boolean,
    "array": lambda value: [part.strip() for part in re.split(r"[,;]", value) if part.strip()],
    "list": lambda value: [part.strip() for part in re.split(r"[,;]", value) if part.strip()],
    "object": lambda value: None,
}
