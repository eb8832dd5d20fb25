"""Reads the keywords of one subschema by their types in JSON Schema.

A keyword whose value has another type reads as absent.
"""

from __future__ import annotations

from collections.abc import Iterator

from cogcli.base.jsonvalue import Json, list_of, object_of, only_texts

Schema = Json | bool
"""A schema whose form was checked. One that was not is an `object`."""


def mapping(schema: Json, keyword: str) -> Json:
    """Return the mapping of a keyword, such as `properties`; empty if it is absent."""
    return object_of(schema.get(keyword))


def items(schema: Json, keyword: str) -> list[object]:
    """Return the list of a keyword, such as `allOf` or `enum`; empty if it is absent."""
    return list_of(schema.get(keyword))


def names(schema: Json, keyword: str) -> list[str]:
    """Return the strings in the list of a keyword, such as `required`; empty if it is absent."""
    return only_texts(items(schema, keyword))


def text(schema: Json, keyword: str) -> str | None:
    """Return the text of a keyword, such as `$ref` or `pattern`; None if it is absent."""
    value = schema.get(keyword)
    return value if isinstance(value, str) else None


def number(schema: Json, keyword: str) -> int | float | None:
    """Return the number of a keyword, such as `minimum`; None if it is absent."""
    value = schema.get(keyword)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def count(schema: Json, keyword: str) -> int | None:
    """Return the whole number of a keyword, such as `minItems`; None if it is absent."""
    value = number(schema, keyword)
    return int(value) if value is not None and value == value // 1 else None


def types(schema: Json) -> frozenset[str]:
    """Return the names in `type`, one or several; empty if it is absent."""
    one = text(schema, "type")
    return frozenset(names(schema, "type") if one is None else (one,))


def patterns(schema: Json) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the patterns of `pattern` and `patternProperties`, each with its path from the schema."""
    own = text(schema, "pattern")
    if own is not None:
        yield ("pattern",), own
    for name in mapping(schema, "patternProperties"):
        yield ("patternProperties", name), name
