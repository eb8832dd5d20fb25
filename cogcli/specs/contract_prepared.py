"""A schema as the engines get it: what they would read differently is taken out or written in one way.

1. Patterns mean the same everywhere; one that is refused is not applied.
2. `false` is `{"not": {}}` but where keys are counted: one engine tells the wrong place of it.
3. References lead to a subschema inside, and following them ends.
4. `format` and the names of schemas say nothing.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from cogcli.specs.contract_patterns import pattern_of
from cogcli.specs.schema_refs import reference_faults

_ONE: Final = frozenset(
    (
        "not", "if", "then", "else", "items", "contains", "additionalProperties", "propertyNames",
        "unevaluatedItems", "unevaluatedProperties",
    )
)  # fmt: skip
_LIST: Final = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_MAP: Final = frozenset(("properties", "patternProperties", "dependentSchemas", "$defs", "definitions"))
_COUNTED: Final = frozenset(("additionalProperties", "unevaluatedItems", "unevaluatedProperties"))
_PLAIN: Final = frozenset(
    (
        "$ref", "$dynamicRef", "type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum",
        "exclusiveMinimum", "maxLength", "minLength", "maxItems", "minItems", "uniqueItems", "maxContains",
        "minContains", "maxProperties", "minProperties", "required", "dependentRequired",
    )
)  # fmt: skip
NOTHING: Final[dict[str, Any]] = {"not": {}}


class Prepared(NamedTuple):
    """The schema for Python's engine and for Rust's, there None where it has a pattern that Rust cannot take.

    `dropped` tells whether a pattern is not applied; `written` gives the author's text of a pattern.
    """

    python: Any
    rust: Any
    dropped: bool
    written: dict[str, str]


def prepared(schema: Any) -> Prepared | None:
    """The schema made ready, None if it cannot be applied."""
    walk = _Walk()
    try:
        python = walk.part(schema, (), rust=False)
        faults = reference_faults(walk.parts)
        rust = None if walk.elsewhere else walk.part(schema, (), rust=True)
    except (_Malformed, RecursionError):
        return None
    if faults:
        return None
    return Prepared(python, rust, walk.dropped, walk.written)


class _Malformed(Exception):
    """Something that is no schema."""


class _Walk:
    def __init__(self) -> None:
        self.parts: dict[tuple[str, ...], Any] = {}
        self.written: dict[str, str] = {}
        self.dropped = False
        self.elsewhere = False

    def part(self, schema: Any, place: tuple[str, ...], *, rust: bool) -> Any:
        """One subschema."""
        self.parts[place] = schema
        if isinstance(schema, bool):
            return schema or NOTHING
        if not isinstance(schema, dict):
            raise _Malformed
        result: dict[str, Any] = {}
        for key, value in schema.items():
            if key in _PLAIN:
                result[key] = value
            elif key == "pattern" and isinstance(value, str):
                text = self._pattern(value, rust=rust)
                if text is not None:
                    result[key] = text
            elif key in _ONE:
                inner = self.part(value, (*place, key), rust=rust)
                result[key] = False if value is False and key in _COUNTED else inner
            elif key in _LIST:
                result[key] = self._list(value, (*place, key), rust=rust)
            elif key in _MAP:
                result[key] = self._map(key, value, (*place, key), rust=rust)
        return result

    def _list(self, value: Any, place: tuple[str, ...], *, rust: bool) -> list[Any]:
        if not isinstance(value, list):
            raise _Malformed
        return [self.part(each, (*place, str(index)), rust=rust) for index, each in enumerate(value)]

    def _map(self, key: str, value: Any, place: tuple[str, ...], *, rust: bool) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _Malformed
        result = {}
        for name, each in value.items():
            inner = self.part(each, (*place, name), rust=rust)
            text = self._pattern(name, rust=rust) if key == "patternProperties" else name
            if text is not None:
                result[text] = inner
        return result

    def _pattern(self, text: str, *, rust: bool) -> str | None:
        pattern = pattern_of(text)
        if pattern is None:
            self.dropped = True
            return None
        if pattern.rust is None:
            self.elsewhere = True
        own = pattern.rust if rust else pattern.python
        if own is not None:
            self.written[own] = text
        return own
