"""A value that fits a JSON Schema: the author's own where there is one, else the smallest.

1. In this order: `example`, `examples`, `default`, `const`, `enum`; else made from the keywords.
2. Objects get their required members, lists their least number of elements, texts their least length.
3. Every value is checked by the schema before it is returned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from cogcli.base.json_pointer import NOWHERE, find_at, parse_reference
from cogcli.base.jsonvalue import deep_copy, holds_at_most
from cogcli.base.schema.patterns import refusal
from cogcli.base.schema.regex_parser import (
    LAST,
    Anchor,
    Chars,
    Choice,
    RegexPart,
    Repetition,
    Sequence,
    parse_regex,
)
from cogcli.base.schema.validator import errors, fits

_DEEPEST: Final = 40
_MAX_LENGTH: Final = 100_000
_MOST_LOOKS: Final = 10_000
_MOST_NODES: Final = 20_000
_SPARE: Final[tuple[Any, ...]] = (None, False, 0, "", [], {}, 1, True, "a")
"""Values tried where the keywords alone give none."""


class NoSample(Exception):
    """No value was found that fits the schema."""


def sample(schema: Any) -> Any:
    """Return a value that fits a schema of 2020-12 whose references stay inside it. Raise NoSample."""
    found = next(_Search(schema, 0, [_MOST_LOOKS]).fitting(), _NOTHING)
    if found is _NOTHING:
        raise NoSample("no value was found that fits the schema")
    return deep_copy(found)


_NOTHING: Final = object()


class _Search:
    """The search for a value of `root`, at this depth and with `left` steps of the whole search: a short schema can
    have an endless number of values."""

    def __init__(self, root: Any, depth: int, left: list[int]) -> None:
        self._root = root
        self._depth = depth
        self._left = left

    def fitting(self) -> Iterator[Any]:
        """The values found, the likeliest first."""
        return (value for value in self._candidates(self._root) if fits(self._root, value))

    def _inner(self, part: Any) -> _Search:
        """The search for a part of a schema, as one of its own with the definitions of the root."""
        own = part if isinstance(part, dict) else {} if part else {"not": {}}
        kept = {
            k: v
            for k, v in self._root.items()
            if k in ("$defs", "definitions", "components") and k not in own
        }
        return _Search({**own, **kept}, self._depth + 1, self._left)

    def _is_used_up(self, schema: dict[str, Any]) -> bool:
        """Whether to stop; a schema with many definitions costs more steps."""
        definitions = schema.get("$defs")
        self._left[0] -= 1 + (len(definitions) // 10 if isinstance(definitions, dict) else 0)
        return self._left[0] < 0

    def _candidates(self, schema: Any) -> Iterator[Any]:
        """Values to try, the likeliest to fit first."""
        if not isinstance(schema, dict):
            yield from () if schema is False else (None,)
            return
        if self._depth > _DEEPEST or self._is_used_up(schema):
            return
        yield from _author_values(schema)
        schema = _resolve(schema, self._root)
        yield from _author_values(schema)
        deeper = _Search(self._root, self._depth + 1, self._left)
        for keyword in ("oneOf", "anyOf"):
            for option in schema.get(keyword) or ():
                merged = _merge({k: v for k, v in schema.items() if k != keyword}, option)
                yield from deeper._candidates(merged)
        yield from self._generate(schema)
        yield from _SPARE

    def _generate(self, schema: dict[str, Any]) -> Iterator[Any]:
        declared = schema.get("type")
        # Where a schema names no type, its keywords imply one.
        implied = [
            kind for kind, keywords in _IMPLYING.items() if not schema.keys().isdisjoint(keywords)
        ][:1]
        kinds = declared if isinstance(declared, list) else [declared] if declared else implied
        for kind in sorted(kinds, key=lambda kind: kind == "null"):
            if kind == "object":
                yield from self._object(schema)
            elif kind == "array":
                yield from self._array(schema)
            elif kind == "string":
                yield from _text(schema)
            elif kind in ("integer", "number"):
                yield from _number(schema, whole=kind == "integer")
            elif kind == "boolean":
                yield from (False, True)
            elif kind == "null":
                yield None

    def _object(self, schema: dict[str, Any]) -> Iterator[Any]:
        properties, required = schema.get("properties") or {}, schema.get("required") or []
        additional = schema.get("additionalProperties", True)
        names = list(dict.fromkeys(required))
        wanted = schema.get("minProperties") or 0
        names += [name for name in properties if name not in names][: max(0, wanted - len(names))]
        if wanted > _MOST_NODES:
            return
        names += [f"key{n}" for n in range(wanted - len(names))]
        made = {}
        for name in names:
            made[name] = next(self._inner(properties.get(name, additional)).fitting(), _NOTHING)
            if made[name] is _NOTHING:
                return
        if holds_at_most(made, _MOST_NODES):
            yield made

    def _array(self, schema: dict[str, Any]) -> Iterator[Any]:
        fixed, items = schema.get("prefixItems") or [], schema.get("items", True)
        least = max(
            schema.get("minItems") or 0, schema.get("minContains", 1) if "contains" in schema else 0
        )
        made: list[Any] = []
        for number in range(min(least, 1000)):
            inner = self._inner(
                fixed[number] if number < len(fixed) else schema.get("contains", items)
            )
            found = inner._distinct(made) if schema.get("uniqueItems") else None
            made.append(next(inner.fitting(), _NOTHING) if found is None else found)
            if made[-1] is _NOTHING:
                return
        if holds_at_most(made, _MOST_NODES):
            yield made

    def _distinct(self, taken: list[Any]) -> Any:
        """Return a value that fits and is not taken, None if none is found."""
        first = self._root.get("minimum", 0)
        numbers = range(first, first + len(taken) + 2) if isinstance(first, int) else ()
        texts = (f"a{n}" for n in range(len(taken) + 2))
        for value in (*self._candidates(self._root), *numbers, *texts):
            if value not in taken and not self._is_used_up(self._root) and fits(self._root, value):
                return value
        return None


def _author_values(schema: dict[str, Any]) -> Iterator[Any]:
    """The values that the author wrote into the schema."""
    if "example" in schema:
        yield schema["example"]
    if isinstance(schema.get("examples"), list):
        yield from schema["examples"]
    for keyword in ("default", "const"):
        if keyword in schema:
            yield schema[keyword]
    if isinstance(schema.get("enum"), list):
        yield from schema["enum"]


def _resolve(schema: dict[str, Any], root: Any) -> dict[str, Any]:
    """The schema with its reference and `allOf` folded in; a reference that does not resolve restricts nothing."""
    for _ in range(_DEEPEST):
        if isinstance(schema.get("$ref"), str):
            rest = {k: v for k, v in schema.items() if k != "$ref"}
            target = find_at(root, parse_reference(schema["$ref"]))
            schema = _merge(rest, {} if target is NOWHERE else target)
        elif schema.get("allOf"):
            parts = schema["allOf"]
            schema = {k: v for k, v in schema.items() if k != "allOf"}
            for part in parts:
                schema = _merge(schema, part)
        else:
            break
    return schema


def _merge(first: dict[str, Any], second: Any) -> dict[str, Any]:
    """One schema of two that both apply, as far as their keywords can be merged; the final check decides."""
    if not isinstance(second, dict):
        return first
    merged = {**first, **second}
    for keyword in ("properties", "$defs"):
        if keyword in first and keyword in second:
            merged[keyword] = {**first[keyword], **second[keyword]}
    if "required" in first and "required" in second:
        merged["required"] = list(dict.fromkeys([*first["required"], *second["required"]]))
    if "allOf" in first and "allOf" in second:
        merged["allOf"] = [*first["allOf"], *second["allOf"]]
    return merged


_IMPLYING: Final = {
    "object": (
        "properties",
        "required",
        "additionalProperties",
        "minProperties",
        "patternProperties",
    ),
    "array": ("items", "prefixItems", "minItems", "contains"),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}


def _text(schema: dict[str, Any]) -> Iterator[str]:
    least = min(schema.get("minLength") or 0, _MAX_LENGTH)
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        for extra in range(3):
            made = sample_text(pattern, repeats=extra)
            if made is not None:
                yield made
                yield made + "a" * (least - len(made))
                yield made[-1:] * (least - len(made)) + made
    by_format = _FORMATS.get(str(schema.get("format")))
    if by_format:
        yield by_format
    yield "a" * least


_FORMATS: Final = {
    "date": "2024-01-01",
    "date-time": "2024-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "email": "a@example.org",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "uri": "https://example.org/",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "hostname": "example.org",
    "byte": "",
}
"""A text per format: formats are not asserted here, but a consumer of the value may assert them."""


def _number(schema: dict[str, Any], *, whole: bool) -> Iterator[int | float]:
    """The number nearest to zero within the bounds that is a multiple of `multipleOf`."""
    step = schema.get("multipleOf") or 1
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    yield 0
    for bound, upwards in ((low, True), (above, True), (high, False), (below, False)):
        if not isinstance(bound, int | float) or isinstance(bound, bool):
            continue
        count = math.ceil(bound / step) if upwards else math.floor(bound / step)
        for number in (count, count + 1 if upwards else count - 1):
            value = number * step
            yield int(value) if whole or float(value).is_integer() else value
    if not whole:
        bounds = [b for b in (low, above, high, below) if isinstance(b, int | float)]
        if len(bounds) > 1:
            yield sum(bounds) / len(bounds)


_PRINTABLE: Final = "".join(map(chr, range(33, 127))) + " "


class _NoText(Exception):
    """A construct that no sample is made for, or a sample that would be too long."""


def sample_text(pattern: str, *, repeats: int = 0) -> str | None:
    """Return a text that the pattern matches, each repetition `repeats` times more often than its
    minimum.

    None if none can be made."""
    if refusal(pattern):
        return None
    try:
        text = _sample(parse_regex(pattern), repeats)
    except (_NoText, RecursionError):
        return None
    return None if errors({"pattern": pattern}, text) else text


def _sample(part: RegexPart, repeats: int) -> str:
    match part:
        case Chars(ranges):
            return _sample_character(ranges)
        case Anchor():
            return ""
        case Sequence(parts):
            text = "".join(_sample(each, repeats) for each in parts)
        case Choice(parts):
            text = _sample(parts[0], repeats)
        case Repetition():
            once = _sample(part.part, repeats)
            most = part.least + repeats
            times = most if part.most is None else min(most, part.most)
            if len(once) * times > _MAX_LENGTH:
                raise _NoText
            text = once * times
    if len(text) > _MAX_LENGTH:
        raise _NoText
    return text


def _sample_character(ranges: tuple[tuple[int, int], ...]) -> str:
    found = [
        char for char in _PRINTABLE if any(first <= ord(char) <= last for first, last in ranges)
    ]
    if ranges[-1][1] == LAST and "a" in found:
        return "a"
    return found[0] if found else chr(ranges[0][0])
