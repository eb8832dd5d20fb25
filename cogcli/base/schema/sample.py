"""Finds a value that fits a JSON Schema: the author's own value if there is one, else the smallest.

1. The sources in order: `example`, `examples`, `default`, `const`, `enum`, then values built from
the keywords.

2. Objects get their required members, lists their minimum number of elements, texts their minimum
length.

3. Every value is checked against the schema before it is returned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import reduce
from typing import Any, Final

from cogcli.base.json_pointer import NOWHERE, find_at, parse_reference
from cogcli.base.jsonvalue import Json, deep_copy, has_at_most_values, object_of
from cogcli.base.schema import keywords
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
_MAX_LOOKS: Final = 10_000
_MAX_NODES: Final = 20_000
_MAX_ITEMS: Final = 1000
_SPARE: Final[tuple[object, ...]] = (None, False, 0, "", [], {}, 1, True, "a")
"""Values to try if the keywords lead to none."""


class NoSample(Exception):
    """No value was found that fits the schema."""


def sample(schema: object) -> Any:
    """Return a value that fits a schema of 2020-12 whose references stay inside it. Raise NoSample."""
    found = next(_SampleSearch(schema, 0, [_MAX_LOOKS]).fitting(), _NOTHING)
    if found is _NOTHING:
        raise NoSample("no value was found that fits the schema")
    return deep_copy(found)


_NOTHING: Final = object()


class _SampleSearch:
    """Searches for a value of `root` at one depth.

    All searches share `steps_left`, because a short schema can have an endless number of values.
    """

    def __init__(self, root: object, depth: int, steps_left: list[int]) -> None:
        self._schema = root
        self._root = object_of(root)
        self._depth = depth
        self._steps_left = steps_left

    def fitting(self) -> Iterator[object]:
        """Yield values that fit, the likeliest first."""
        return (
            value for value in self._iterate_candidates(self._schema) if fits(self._schema, value)
        )

    def _search_part(self, part: object) -> _SampleSearch:
        """Return the search for a part of a schema, with the definitions of the root."""
        own: Json = part if isinstance(part, dict) else {} if part else {"not": {}}
        kept = {
            key: value for key, value in self._root.items() if key in _SHARED and key not in own
        }
        return _SampleSearch({**own, **kept}, self._depth + 1, self._steps_left)

    def _first_fitting(self, part: object) -> object:
        """Return the first value that fits a part of a schema; `_NOTHING` if none is found."""
        return next(self._search_part(part).fitting(), _NOTHING)

    def _is_used_up(self, schema: Json) -> bool:
        """Subtract one step, and return whether no step remains. More definitions cost more steps."""
        self._steps_left[0] -= 1 + len(keywords.mapping(schema, "$defs")) // 10
        return self._steps_left[0] < 0

    def _iterate_candidates(self, schema: object) -> Iterator[object]:
        """Yield values to try, the likeliest to fit first."""
        if not isinstance(schema, dict):
            yield from () if schema is False else (None,)
            return
        if self._depth > _DEEPEST or self._is_used_up(schema):
            return
        yield from _author_values(schema)
        schema = _merge_references(schema, self._root)
        yield from _author_values(schema)
        deeper = _SampleSearch(self._root, self._depth + 1, self._steps_left)
        for keyword in ("oneOf", "anyOf"):
            for option in keywords.items(schema, keyword):
                yield from deeper._iterate_candidates(
                    _merge_schemas(_drop_keyword(schema, keyword), option)
                )
        for kind in _types_to_try(schema):
            yield from self._values_of_type(kind, schema)
        yield from _SPARE

    def _values_of_type(self, kind: str, schema: Json) -> Iterator[object]:
        match kind:
            case "object":
                yield from self._object_candidates(schema)
            case "array":
                yield from self._array_candidates(schema)
            case "string":
                yield from _text_candidates(schema)
            case "integer" | "number":
                yield from _number_candidates(schema, whole=kind == "integer")
            case "boolean":
                yield from (False, True)
            case "null":
                yield None

    def _object_candidates(self, schema: Json) -> Iterator[Json]:
        properties = keywords.mapping(schema, "properties")
        additional = schema.get("additionalProperties", True)
        if (keywords.count(schema, "minProperties") or 0) > _MAX_NODES:
            return
        made: Json = {}
        for name in _member_names(schema):
            made[name] = self._first_fitting(properties.get(name, additional))
            if made[name] is _NOTHING:
                return
        if has_at_most_values(made, _MAX_NODES):
            yield made

    def _array_candidates(self, schema: Json) -> Iterator[list[object]]:
        fixed = keywords.items(schema, "prefixItems")
        more = schema.get("contains", schema.get("items", True))
        made: list[object] = []
        for number in range(min(_min_items(schema), _MAX_ITEMS)):
            part = fixed[number] if number < len(fixed) else more
            found = (
                self._search_part(part)._find_distinct(made) if schema.get("uniqueItems") else None
            )
            made.append(self._first_fitting(part) if found is None else found)
            if made[-1] is _NOTHING:
                return
        if has_at_most_values(made, _MAX_NODES):
            yield made

    def _find_distinct(self, excluded: list[object]) -> object:
        """Return a fitting value that is not in `excluded`, or None if none is found."""
        first = keywords.count(self._root, "minimum") or 0
        numbers = range(first, first + len(excluded) + 2)
        texts = (f"a{n}" for n in range(len(excluded) + 2))
        for value in (*self._iterate_candidates(self._root), *numbers, *texts):
            if value in excluded or self._is_used_up(self._root):
                continue
            if fits(self._root, value):
                return value
        return None


def _types_to_try(schema: Json) -> list[str]:
    """Return the types to try, null last. If a schema names no type, its keywords imply one."""
    one = keywords.text(schema, "type")
    named = keywords.names(schema, "type") if one is None else [one]
    implied = (kind for kind, words in _IMPLYING.items() if not schema.keys().isdisjoint(words))
    return sorted(named or [*implied][:1], key=lambda kind: kind == "null")


def _member_names(schema: Json) -> list[str]:
    """Return the required members of an object, then as many others as `minProperties` demands."""
    wanted = keywords.count(schema, "minProperties") or 0
    required = dict.fromkeys(keywords.names(schema, "required"))
    others = [name for name in keywords.mapping(schema, "properties") if name not in required]
    names = [*required, *others[: max(0, wanted - len(required))]]
    return [*names, *(f"key{n}" for n in range(wanted - len(names)))]


def _min_items(schema: Json) -> int:
    minimum = keywords.count(schema, "minItems") or 0
    if "contains" not in schema:
        return minimum
    matches = keywords.count(schema, "minContains")
    return max(minimum, 1 if matches is None else matches)


def _author_values(schema: Json) -> Iterator[object]:
    """Yield the values that the author wrote into the schema."""
    if "example" in schema:
        yield schema["example"]
    yield from keywords.items(schema, "examples")
    for keyword in ("default", "const"):
        if keyword in schema:
            yield schema[keyword]
    yield from keywords.items(schema, "enum")


def _merge_references(schema: Json, root: object) -> Json:
    """Return the schema with its reference and `allOf` merged in.

    A reference that does not resolve restricts nothing.
    """
    for _ in range(_DEEPEST):
        reference, parts = keywords.text(schema, "$ref"), keywords.items(schema, "allOf")
        if reference is not None:
            target = find_at(root, parse_reference(reference))
            schema = _merge_schemas(
                _drop_keyword(schema, "$ref"), {} if target is NOWHERE else target
            )
        elif parts:
            schema = reduce(_merge_schemas, parts, _drop_keyword(schema, "allOf"))
        else:
            break
    return schema


def _drop_keyword(schema: Json, keyword: str) -> Json:
    return {key: value for key, value in schema.items() if key != keyword}


def _merge_schemas(first: Json, second: object) -> Json:
    """Return one schema from two schemas that both apply, as far as their keywords can be merged.

    The final check decides whether a value fits.
    """
    if not isinstance(second, dict):
        return first
    merged = {**first, **second}
    for keyword in ("properties", "$defs"):
        if keyword in first and keyword in second:
            inner = keywords.mapping(first, keyword), keywords.mapping(second, keyword)
            merged[keyword] = {**inner[0], **inner[1]}
    if "required" in first and "required" in second:
        names = keywords.names(first, "required") + keywords.names(second, "required")
        merged["required"] = list(dict.fromkeys(names))
    if "allOf" in first and "allOf" in second:
        merged["allOf"] = keywords.items(first, "allOf") + keywords.items(second, "allOf")
    return merged


_SHARED: Final = ("$defs", "definitions", "components")
"""Keywords with schemas that references lead to."""


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


def _text_candidates(schema: Json) -> Iterator[str]:
    minimum = min(keywords.count(schema, "minLength") or 0, _MAX_LENGTH)
    pattern = keywords.text(schema, "pattern")
    if pattern is not None:
        for extra in range(3):
            made = sample_text(pattern, repeats=extra)
            if made is not None:
                yield made
                yield made + "a" * (minimum - len(made))
                yield made[-1:] * (minimum - len(made)) + made
    by_format = _FORMATS.get(keywords.text(schema, "format") or "")
    if by_format:
        yield by_format
    yield "a" * minimum


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


def _number_candidates(schema: Json, *, whole: bool) -> Iterator[int | float]:
    """Yield the number nearest to zero within the bounds that is a multiple of `multipleOf`."""
    step = keywords.number(schema, "multipleOf") or 1
    bounds = [(keywords.number(schema, keyword), upwards) for keyword, upwards in _BOUNDS]
    known = [(bound, upwards) for bound, upwards in bounds if bound is not None]
    yield 0
    for bound, upwards in known:
        for value in _multiples_at(bound, step, upwards=upwards):
            yield int(value) if whole or float(value).is_integer() else value
    if len(known) > 1 and not whole:
        yield sum(bound for bound, _ in known) / len(known)


_BOUNDS: Final = (
    ("minimum", True),
    ("exclusiveMinimum", True),
    ("maximum", False),
    ("exclusiveMaximum", False),
)
"""Keywords that bound a number, and whether it has to be greater."""


def _multiples_at(bound: float, step: float, *, upwards: bool) -> Iterator[float]:
    """Yield the first two finite multiples of `step` from a bound."""
    quotient = bound / step
    if math.isfinite(quotient):
        count = math.ceil(quotient) if upwards else math.floor(quotient)
        next_count = count + 1 if upwards else count - 1
        yield from filter(math.isfinite, (count * step, next_count * step))


_PRINTABLE: Final = "".join(map(chr, range(33, 127))) + " "


class _NoText(Exception):
    """No sample can be built for a construct, or the sample would be too long."""


def sample_text(pattern: str, *, repeats: int = 0) -> str | None:
    """Return a string that the pattern matches; None if no such text can be built.

    Each repetition occurs `repeats` times more often than its minimum.
    """
    if refusal(pattern):
        return None
    try:
        text = _sample_part(parse_regex(pattern), repeats)
    except (_NoText, RecursionError):
        return None
    return None if errors({"pattern": pattern}, text) else text


def _sample_part(part: RegexPart, repeats: int) -> str:
    match part:
        case Chars(ranges):
            return _sample_character(ranges)
        case Anchor():
            return ""
        case Sequence(parts):
            text = "".join(_sample_part(each, repeats) for each in parts)
        case Choice(parts):
            text = _sample_part(parts[0], repeats)
        case Repetition():
            once = _sample_part(part.part, repeats)
            maximum = part.minimum + repeats
            times = maximum if part.maximum is None else min(maximum, part.maximum)
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
