"""A schema as the engines get it: what they would read differently is taken out or written in one way.

1. Patterns mean the same everywhere; one that cannot be run in linear time is not applied.
2. `false` is `{"not": {}}` but where keys are counted: one engine tells the wrong place of it.
3. References lead to a subschema inside, and following them ends.
4. `format` and the names of schemas say nothing.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from cogcli.schema.patterns import pattern_of
from cogcli.schema.references import most_at_once, reference_faults

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
    """The schema for Python's engine and for Rust's.

    `dropped` names the patterns that are not applied; `written` gives the author's text of a pattern. `at_once` says
    how much one value is held against without going into it, `steps` how many steps that takes for one character.
    """

    python: Any
    rust: Any
    dropped: tuple[str, ...]
    written: dict[str, str]
    at_once: int
    steps: int


def normalize(schema: Any) -> Prepared | None:
    """The schema made ready, None if it cannot be applied."""
    walk = _Normalizer()
    try:
        python = walk.part(schema, (), rust=False)
        faults = reference_faults(walk.parts)
        if faults:
            return None
        rust = walk.part(schema, (), rust=True)
        at_once, steps = most_at_once(walk.parts, _own_work), most_at_once(walk.parts, _own_steps)
    except (_Malformed, RecursionError):
        return None
    return Prepared(python, rust, tuple(dict.fromkeys(walk.dropped)), walk.written, at_once, steps)


_COUNTS: Final = ("required", "properties", "dependentRequired", "dependentSchemas")


def _own_work(part: Any) -> int:
    """What a subschema alone holds a value against."""
    if not isinstance(part, dict):
        return 1
    named = sum(len(part[key]) for key in _COUNTS if isinstance(part.get(key), dict | list))
    choices = part.get("enum")
    return 1 + named // 8 + (_sized(choices) if isinstance(choices, list) else 0)


def _sized(choices: list[Any]) -> int:
    """Comparing with an object or a list costs ten times as much."""
    return sum(10 * len(each) if isinstance(each, dict | list) else 1 for each in choices) // 8


def _own_steps(part: Any) -> int:
    """The steps that the patterns of a subschema alone take for one character."""
    if not isinstance(part, dict):
        return 0
    own, names = part.get("pattern"), part.get("patternProperties")
    texts = [own, *(names if isinstance(names, dict) else ())]
    found = [pattern_of(text) for text in texts if isinstance(text, str)]
    return sum(each.steps for each in found if each is not None)


class _Malformed(Exception):
    """Something that is no schema."""


class _Normalizer:
    def __init__(self) -> None:
        self.parts: dict[tuple[str, ...], Any] = {}
        self.written: dict[str, str] = {}
        self.dropped: list[str] = []

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
            self.dropped.append(text)
            return None
        own = pattern.rust if rust else pattern.python
        while self.written.setdefault(own, text) != text:  # another pattern that means the same
            own = f"(?:{own})"
        return own
