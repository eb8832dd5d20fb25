"""Messages about values that do not fit a schema (`wire.type`): none fits, some may not, or the
result is unknown."""

from __future__ import annotations

from typing import Final

import orjson

from cogcli.base.json_pointer import find_at, parse_reference
from cogcli.base.jsonvalue import Json, object_of, preview
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import Severity
from cogcli.base.schema import keywords
from cogcli.base.schema.candidates import TYPES, types_of
from cogcli.base.schema.containment import UNKNOWN, CoverResult, covers, disjoint
from cogcli.base.schema.lookup import schema_at
from cogcli.base.schema.normalizer import normalize
from cogcli.base.schema.validator import errors
from cogcli.specs.unchecked import text_at

_SCALAR_TEXT: Final = frozenset(("integer", "number", "boolean"))
_NOT_TEXT: Final = frozenset(("object", "array"))
_EVERY: Final = frozenset(TYPES)
_REMARKS: Final = frozenset(("default", "examples", "deprecated", "readOnly", "writeOnly"))
"""Keywords that assert nothing of a value."""
_MAX_REFERENCES: Final = 20


class SchemaMismatch(NamedTuple):
    """A mismatch of two schemas: a severity and a message."""

    severity: Severity
    said: str


def find_misfit(wide: object, narrow: object, *, who: str) -> SchemaMismatch | None:
    """Return the mismatch if some value of `narrow` does not fit `wide`, the schema of `who`; None
    if all fit."""
    # The service may allow null where the value is never null.
    cover = covers(wide if "null" in types_of(narrow) else _without_null(wide), narrow)
    if cover.verdict == "yes":
        return None
    if not disjoint(wide, narrow):
        return _possible_misfit(cover, narrow, wide, who)
    why = _misfit_place(wide, cover.example) if cover.verdict == "no" else ""
    if why:
        return SchemaMismatch("E", f"never fits {who}: {why}")
    return SchemaMismatch(
        "E", f"gives {describe_schema(narrow)}, {who} expects {describe_schema(wide)}"
    )


def find_misfit_as_text(wide: object, narrow: object, *, who: str) -> SchemaMismatch | None:
    """Return the mismatch of values in a path, a query or a header: numbers become text, lists are
    repeated."""
    given, taken = types_of(narrow) - {"null"}, types_of(wide)
    if given == {"object"}:
        return SchemaMismatch(
            "E", f"gives {describe_schema(narrow)}, which cannot be written there"
        )
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


def _find_text_misfit(wide: object, narrow: object, who: str) -> SchemaMismatch | None:
    """Return the mismatch of a string that is read as a number or a boolean."""
    read = _parse_fixed_text(narrow)
    if read is None:
        return SchemaMismatch("W", f"gives text, {who} reads {describe_schema(wide)} out of it")
    return find_misfit(wide, {"const": read}, who=who)


def _without_null(schema: object) -> object:
    """Return a schema without null; unchanged if it does not restrict the type."""
    types = types_of(schema)
    return drop_null(schema) if "null" in types and types not in (_EVERY, {"null"}) else schema


def _parse_fixed_text(narrow: object) -> object:
    """Return the number or boolean that a constant text is read as, None for any other schema."""
    text = text_at(narrow, "const")
    try:
        return None if text is None else orjson.loads(text)
    except ValueError:
        return text


def drop_null(schema: object) -> object:
    """Return a schema without null. References and optional values are opened first."""
    schema = _open_optional(schema)
    types = sorted(types_of(schema) - {"null"})
    own: object = types[0] if len(types) == 1 else types
    if not isinstance(schema, dict):
        return {"type": own}
    if "type" in schema and isinstance(schema.get("enum"), list):
        choices = [value for value in schema["enum"] if value is not None]
        return {**schema, "type": own, "enum": choices}
    if "type" in schema:
        return {**schema, "type": own}
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    definitions = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    return {"type": own, "allOf": [inner], **definitions}


def _open_optional(schema: object) -> object:
    """Return the schema that a reference, or a choice between it and null, consists of."""
    for _ in range(_MAX_REFERENCES):
        schema = inline_reference(schema)
        inner = _only_choice(object_of(schema))
        if inner is None:
            break
        schema = inner
    return schema


def _only_choice(schema: Json) -> Json | None:
    """Return the schema that is written as the only choice next to null; None for any other."""
    own = schema.keys() - _REMARKS - {"$defs"}
    if len(own) != 1 or not own <= {"anyOf", "oneOf", "allOf"}:
        return None
    parts = keywords.items(schema, *own)
    choices = parts if "allOf" in own else [each for each in parts if each != {"type": "null"}]
    if len(choices) != 1 or not isinstance(choices[0], dict):
        return None
    return {**choices[0], "$defs": schema["$defs"]} if "$defs" in schema else choices[0]


def inline_reference(schema: object) -> object:
    """Return the target of a schema that only refers to another one; any other schema unchanged."""
    for _ in range(_MAX_REFERENCES):
        if not isinstance(schema, dict) or schema.keys() - _REMARKS != {"$ref", "$defs"}:
            break
        target = find_at(schema, parse_reference(schema["$ref"]))
        schema = {**target, "$defs": schema["$defs"]} if isinstance(target, dict) else target
    return schema


def _possible_misfit(cover: CoverResult, narrow: object, wide: object, who: str) -> SchemaMismatch:
    ready = normalize(narrow)
    every_value_fits = ready is not None and ready.schema in (True, {})
    if cover.verdict == "no" and not every_value_fits:
        why = _misfit_place(wide, cover.example)
        text = orjson.dumps(cover.example).decode()
        text = text if len(text) <= 60 else f"{text[:59]}…"
        return SchemaMismatch("W", f"may be {text}, which {who} rejects{f': {why}' if why else ''}")
    text = f"gives {describe_schema(narrow)}, {who} expects {describe_schema(wide)}"
    return SchemaMismatch("W", f"{text}: whether it fits is not known")


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
