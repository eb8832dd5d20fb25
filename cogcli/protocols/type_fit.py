"""Messages about values that do not fit a schema (`wire.type`): none fits, some may not, or the
result is unknown."""

from __future__ import annotations

from typing import Final

import orjson

from cogcli.base.jsonvalue import Json, object_of, preview
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import Severity
from cogcli.base.schema import keywords
from cogcli.base.schema.candidates import TYPES, types_of
from cogcli.base.schema.containment import UNKNOWN, Cover, covers, disjoint
from cogcli.base.schema.lookup import schema_at
from cogcli.base.schema.normalizer import normalize
from cogcli.base.schema.validator import errors
from cogcli.specs.unchecked import text_at

_SCALAR_TEXT: Final = frozenset(("integer", "number", "boolean"))
_NOT_TEXT: Final = frozenset(("object", "array"))
_EVERY: Final = frozenset(TYPES)
_OPTIONAL: Final = frozenset(
    ("anyOf", "default", "examples", "deprecated", "readOnly", "writeOnly")
)
"""The keywords of an optional value in documents of frameworks: a schema, or null."""


class Misfit(NamedTuple):
    """A mismatch of two schemas: a severity and a message."""

    severity: Severity
    said: str


def find_misfit(wide: object, narrow: object, *, who: str) -> Misfit | None:
    """Return the mismatch if some value of `narrow` does not fit `wide`, the schema of `who`; None
    if all fit."""
    cover = covers(wide, narrow)
    if cover.verdict == "yes":
        return None
    if not disjoint(wide, narrow):
        return _possible_misfit(cover, narrow, wide, who)
    why = _misfit_place(wide, cover.example) if cover.verdict == "no" else ""
    if why:
        return Misfit("E", f"never fits {who}: {why}")
    return Misfit("E", f"gives {describe_schema(narrow)}, {who} expects {describe_schema(wide)}")


def find_misfit_as_text(wide: object, narrow: object, *, who: str) -> Misfit | None:
    """Return the mismatch of values in a path, a query or a header: numbers become text, lists are
    repeated."""
    given, taken = types_of(narrow) - {"null"}, types_of(wide)
    if given == {"object"}:
        return Misfit("E", f"gives {describe_schema(narrow)}, which cannot be written there")
    if "array" in taken - given and not taken & given:
        items = schema_at(wide, ("0",))
        return find_misfit_as_text(items.schema, narrow, who=who) if items else None
    if given <= _SCALAR_TEXT and taken == {"string"}:
        return None if _is_any_text(wide) else _possible_misfit(UNKNOWN, narrow, wide, who)
    if given == {"string"} and "string" not in taken and taken & _SCALAR_TEXT:
        return _find_text_misfit(wide, narrow, who)
    return find_misfit(wide, _without_null(narrow), who=who)


def _is_any_text(schema: object) -> bool:
    ready = normalize(schema)
    return ready is not None and ready.schema == {"type": "string"}


def _find_text_misfit(wide: object, narrow: object, who: str) -> Misfit | None:
    """Return the mismatch of a string that is read as a number or a boolean."""
    read = _parse_fixed_text(narrow)
    if read is None:
        return Misfit("W", f"gives text, {who} reads {describe_schema(wide)} out of it")
    return find_misfit(wide, {"const": read}, who=who)


def _without_null(narrow: object) -> object:
    """Return a schema without null; unchanged if it does not restrict the type."""
    types = types_of(narrow)
    return drop_null(narrow) if "null" in types and types != _EVERY else narrow


def _parse_fixed_text(narrow: object) -> object:
    """Return the number or boolean that a constant text is read as, None for any other schema."""
    text = text_at(narrow, "const")
    try:
        return None if text is None else orjson.loads(text)
    except ValueError:
        return text


def drop_null(schema: object) -> object:
    """Return a schema without null."""
    types = sorted(types_of(schema) - {"null"})
    if not isinstance(schema, dict):
        return {"type": types}
    if "type" in schema and "enum" not in schema:
        return {**schema, "type": types[0] if len(types) == 1 else types}
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    definitions = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    optional = _optional_schema(inner)
    if optional is not None:
        return {**optional, **definitions}
    return {"type": types, "allOf": [inner], "$defs": {}, **definitions}


def _optional_schema(schema: Json) -> Json | None:
    """Return the schema of an optional value, written as one schema or null; None for any other."""
    others = [each for each in keywords.items(schema, "anyOf") if each != {"type": "null"}]
    if schema.keys() <= _OPTIONAL and len(others) == 1:
        return others[0] if isinstance(others[0], dict) else None
    return None


def _possible_misfit(cover: Cover, narrow: object, wide: object, who: str) -> Misfit:
    ready = normalize(narrow)
    every_value_fits = ready is not None and ready.schema in (True, {})
    if cover.verdict == "no" and not every_value_fits:
        why = _misfit_place(wide, cover.example)
        text = orjson.dumps(cover.example).decode()
        text = text if len(text) <= 60 else f"{text[:59]}…"
        return Misfit("W", f"may be {text}, which {who} rejects{f': {why}' if why else ''}")
    text = f"gives {describe_schema(narrow)}, {who} expects {describe_schema(wide)}"
    return Misfit("W", f"{text}: whether it fits is not known")


def _misfit_place(wide: object, value: object) -> str:
    """Return the place of the first breach inside a value, for a message; empty for the value
    itself."""
    for place, text in errors(wide, value) if isinstance(value, dict | list) else ():
        return f"`{place}`: {text}" if place else text
    return ""


def describe_schema(schema: object) -> str:
    """Return a schema as a short phrase: its types, or its choices."""
    own = object_of(schema)
    if "const" in own:
        return preview(own["const"])
    if isinstance(own.get("enum"), list):
        choices = ", ".join(map(preview, own["enum"][:5]))
        return f"one of {choices}{', …' if len(own['enum']) > 5 else ''}"
    types = types_of(schema)
    return "anything" if types == _EVERY else _describe_types(schema, types)


def _describe_types(schema: object, types: frozenset[str]) -> str:
    types -= {"integer"} if "number" in types else set()
    named = [name for name in TYPES if name in types]
    ready = normalize(schema)
    bare = ready is not None and ready.is_bare
    return f"{' or '.join(named) or 'nothing'}{'' if bare else ' with conditions'}"
