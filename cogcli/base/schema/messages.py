"""Messages about breaches of a schema, identical for both engines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from cogcli.base.jsonvalue import Json, preview
from cogcli.base.named_tuple import NamedTuple

_MAX_LENGTH: Final = 300
_MAX_NAMES: Final = 10


class SchemaViolation(NamedTuple):
    """One breach of a schema: the place in the value, the keyword, and its value or the affected
    keys.
    """

    place: tuple[str | int, ...]
    keyword: str
    limit: Any


def describe_violation(breach: SchemaViolation, value: object) -> str:
    """Return one sentence about a breach, at most 300 characters. `value` is the value at its
    place.
    """
    write = _TEXTS.get(breach.keyword)
    text = write(breach.limit, value) if write else f"does not fit `{breach.keyword}`"
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"


_Write = Callable[[Any, Any], str]
"""A function of a keyword's value, of the kind that the keyword has, and the value that breaks it."""


def _type_text(limit: str | list[str], value: object) -> str:
    types = [limit] if isinstance(limit, str) else sorted(limit)
    return f"expected {' or '.join(types)}, found {preview(value)}"


def _enum_text(limit: list[object], value: object) -> str:
    more = ", …" if len(limit) > _MAX_NAMES else ""
    return f"expected one of {', '.join(map(preview, limit[:_MAX_NAMES]))}{more}, found {preview(value)}"


def _number_text(limit: float) -> str:
    is_whole = isinstance(limit, float) and limit.is_integer() and abs(limit) < 1e15
    return f"{limit:g}" if is_whole else str(limit)


def _bound_writer(words: str) -> _Write:
    return lambda limit, value: f"expected {words} {_number_text(limit)}, found {preview(value)}"


def _count_writer(words: str, unit: str) -> _Write:
    return lambda limit, value: f"expected {words} {_number_text(limit)} {unit}, found {len(value)}"


def _unknown_keys_text(limit: list[str] | None, value: Json) -> str:
    """Return the message for unknown keys: the keys in `limit`, or all keys if it is None."""
    names = sorted(value if limit is None else limit)
    more = ", …" if len(names) > _MAX_NAMES else ""
    return f"unknown: {', '.join(f'`{name}`' for name in names[:_MAX_NAMES])}{more}"


_TEXTS: Final[dict[str, _Write]] = {
    "type": _type_text,
    "enum": _enum_text,
    "const": lambda limit, value: f"expected {preview(limit)}, found {preview(value)}",
    "minimum": _bound_writer("at least"),
    "maximum": _bound_writer("at most"),
    "exclusiveMinimum": _bound_writer("more than"),
    "exclusiveMaximum": _bound_writer("less than"),
    "multipleOf": _bound_writer("a multiple of"),
    "minLength": _count_writer("at least", "characters"),
    "maxLength": _count_writer("at most", "characters"),
    "minItems": _count_writer("at least", "items"),
    "maxItems": _count_writer("at most", "items"),
    "minProperties": _count_writer("at least", "keys"),
    "maxProperties": _count_writer("at most", "keys"),
    "pattern": lambda limit, value: f"expected text matching `{limit}`, found {preview(value)}",
    "required": lambda limit, value: f"`{limit}` is missing",
    "additionalProperties": _unknown_keys_text,
    "propertyNames": lambda limit, value: f"key `{limit}` is not allowed",
    "unevaluatedProperties": lambda limit, value: "has keys that nothing allows",
    "unevaluatedItems": lambda limit, value: "has items that nothing allows",
    "uniqueItems": lambda limit, value: "holds an item twice",
    "contains": lambda limit, value: "holds too few or too many of the items that are asked for",
    "not": lambda limit, value: f"{preview(value)} is excluded",
    "anyOf": lambda limit, value: f"{preview(value)} fits none of the alternatives",
    "oneOf": lambda limit, value: (
        f"{preview(value)} fits {'more than one' if limit else 'none'} of the alternatives"
    ),
}
