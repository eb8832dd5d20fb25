"""Decides whether every value that fits one schema fits another: proved, disproved by an example,
or unknown (docs/reference/spec-files.md#schemas).

1. YES is a proof. NO has a value that fits the narrow schema and breaks the wide one.

2. Without jsonschema-rs only simple cases are decided: equal schemas, bare types, finite choices,
disjoint types. Schemas are equal if they read the same after their references are followed. That
includes recursive schemas.

3. UNKNOWN: a pattern or schema cannot be applied, the library fails, or a proof would take too
long.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import Final, Literal

import orjson

from cogcli.base.json_pointer import find_at, parse_reference
from cogcli.base.jsonvalue import Json, items_of, walk_values
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.schema import keywords
from cogcli.base.schema.candidates import MAX_NODES, TYPES, candidates, types_of
from cogcli.base.schema.engine_choice import RUST, engine
from cogcli.base.schema.engines import rust_options
from cogcli.base.schema.equality import are_equal_schemas
from cogcli.base.schema.keywords import Schema
from cogcli.base.schema.normalizer import NormalizedSchema, asserts_only_type
from cogcli.base.schema.validator import UNUSABLE, errors, fits, normalized
from cogcli.base.schema.visitor import CHOICES, DEFINITIONS, subschemas

_MAX_BYTES: Final = 64 * 1024
"""Of larger schemas nothing is known but their types."""
_MAX_PARTS: Final = 400
_MAX_WAYS: Final = 64
_MAX_WORK: Final = 5_000_000


class CoverResult(NamedTuple):
    """The answer of `covers`. If it is `no`, `example` fits the narrow schema and breaks the wide
    one.
    """

    verdict: Literal["yes", "no", "unknown"]
    example: object = None


YES: Final = CoverResult("yes")
UNKNOWN: Final = CoverResult("unknown")


def covers(wide: object, narrow: object) -> CoverResult:
    """Return whether every value that fits `narrow` fits `wide`, with a counterexample if known."""
    if _are_equivalent(wide, narrow):
        return YES
    pair = _normalized_pair(wide, narrow)
    if pair is None:
        is_bare = _is_too_large(narrow) and asserts_only_type(wide)
        return YES if is_bare and types_of(narrow) <= types_of(wide) else UNKNOWN
    plain = _simple_cover(pair, wide, narrow)
    if plain is not None:
        return plain
    if not types_of(wide).isdisjoint(types_of(narrow)):
        if engine() != RUST:
            return UNKNOWN
        if _is_proved(pair, disjoint=False):
            return YES
    return _search_counterexample(pair, wide, narrow)


def disjoint(wide: object, narrow: object) -> bool:
    """Return whether it is proved that no value fits both schemas."""
    pair = _normalized_pair(wide, narrow)
    if pair is None:
        return False
    choices = _finite_values(narrow)
    if choices is not None and len(choices) * _work_per_node(pair) <= _MAX_WORK:
        return not any(fits(narrow, value) and fits(wide, value) for value in choices)
    if types_of(wide).isdisjoint(types_of(narrow)):
        return True
    return engine() == RUST and _is_proved(pair, disjoint=True)


def _are_equivalent(wide: object, narrow: object) -> bool:
    """Return whether both schemas are equal apart from names, or `wide` only adds the type that
    `narrow` implies.
    """
    first, second = normalized(wide), normalized(narrow)
    if first is None or second is None or first.refused_patterns or second.refused_patterns:
        return False
    wider = [first.schema, *_alternatives(first.schema)]
    if types_of(narrow) <= types_of({"type": _type_of(first.schema)}):
        wider.append(_without_type(first.schema))
    # Without its type a schema allows more values, all of which fit if it then reads the same.
    narrower = [second.schema, _without_type(second.schema)]
    found = any(are_equal_schemas(one, other) for one in wider for other in narrower)
    return found and not _is_unusable(wide) and not _is_unusable(narrow)


def _type_of(schema: Schema) -> object:
    return schema["type"] if isinstance(schema, dict) and "type" in schema else list(TYPES)


def _without_type(schema: Schema) -> Schema:
    if not isinstance(schema, dict):
        return schema
    return {key: value for key, value in schema.items() if key != "type"}


def _is_too_large(schema: object) -> bool:
    return len(orjson.dumps(schema)) > _MAX_BYTES


_Pair = tuple[NormalizedSchema, NormalizedSchema]


def _normalized_pair(wide: object, narrow: object) -> _Pair | None:
    """Return both schemas normalized, or None if nothing can be proved about them."""
    if _is_too_large(wide) or _is_too_large(narrow):
        return None
    first, second = normalized(wide), normalized(narrow)
    if first is None or second is None or first.refused_patterns or second.refused_patterns:
        return None
    return None if _is_unusable(wide) or _is_unusable(narrow) else (first, second)


def _is_unusable(schema: object) -> bool:
    """Return whether no value fits a schema because no engine can apply it: that would prove anything."""
    return ("", UNUSABLE) in errors(schema, None)


def _work_per_node(pair: _Pair) -> int:
    """Return the work of checking one node of a value against both schemas."""
    return pair[0].work_per_node + pair[1].work_per_node


def _simple_cover(pair: _Pair, wide: object, narrow: object) -> CoverResult | None:
    """Return the answer in a simple case, None otherwise. `pair` is `wide` and `narrow`,
    normalized.
    """
    first = pair[0].schema
    if first is True or first == {}:
        return YES
    choices = _finite_values(narrow)
    if choices is not None:
        return _cover_choices(pair, wide, narrow, choices)
    return YES if pair[0].is_bare and types_of(narrow) <= types_of(wide) else None


def _cover_choices(pair: _Pair, wide: object, narrow: object, choices: list[object]) -> CoverResult:
    if len(choices) * _work_per_node(pair) > _MAX_WORK:
        return UNKNOWN
    for value in choices:
        if fits(narrow, value) and not fits(wide, value):
            return CoverResult("no", value)
    return YES


def _alternatives(schema: Schema) -> list[Schema]:
    """Return the alternatives of a schema that is only an `anyOf`; empty for any other schema."""
    if not isinstance(schema, dict) or schema.keys() - DEFINITIONS != {"anyOf"}:
        return []
    shared = {key: value for key, value in schema.items() if key in DEFINITIONS}
    return [{**each, **shared} for each in schema["anyOf"] if isinstance(each, dict)]


def _finite_values(schema: object) -> list[object] | None:
    """Return the values that `const` or `enum` lists; None if the schema has neither."""
    match schema:
        case {"const": value}:
            return [value]
        case {"enum": list(values)}:
            return values
        case _:
            return None


def _search_counterexample(pair: _Pair, wide: object, narrow: object) -> CoverResult:
    # Values at the bounds of the wide schema are the likeliest counterexamples.
    maximum = max(10, _MAX_WORK // (MAX_NODES * _work_per_node(pair)))
    for value in islice(chain(candidates(wide), candidates(narrow)), maximum):
        if fits(narrow, value) and not fits(wide, value):
            return CoverResult("no", value)
    return UNKNOWN


def _is_proved(pair: _Pair, *, disjoint: bool) -> bool:
    """Return whether the library proves that the first schema covers the second, or that they are
    disjoint.
    """
    import jsonschema_rs

    schemas = [each.schema for each in pair]
    # The time of a proof grows with the product of all alternatives.
    if any(count_parts(s) > _MAX_PARTS or count_alternatives(s) > _MAX_WAYS for s in schemas):
        return False
    try:
        first, second = (jsonschema_rs.canonicalize(each, **rust_options()) for each in schemas)
        if disjoint:
            return first.intersect(second).kind is jsonschema_rs.canonical.CanonicalKind.FALSE
        return first.covers(second) is jsonschema_rs.canonical.Containment.YES
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a panic of the library derives from BaseException
        return False


_MAX_COUNT: Final = 10**6
_MAX_DEPTH: Final = 64
_NOT_MULTIPLIED: Final = DEFINITIONS | {*CHOICES, "unevaluatedItems", "unevaluatedProperties"}
"""Keywords that are counted in another way, or that a proof does not open."""


def count_parts(schema: object) -> int:
    """Return the number of JSON nodes in a schema."""
    return sum(1 for _ in walk_values(schema))


def count_alternatives(schema: object) -> int:
    """Return the number of ways in which a value may fit a schema, at most a million.

    The counts of independent alternatives are multiplied.
    """
    return _AlternativeCounter(schema).count(schema, 0)


class _AlternativeCounter:
    """Counts the ways in which a value may fit each subschema of a root."""

    def __init__(self, root: object) -> None:
        self._root = root
        self._counts: dict[int, int] = {}

    def count(self, schema: object, depth: int) -> int:
        """Return the number of ways to fit one subschema.

        A subschema that is already being counted, or nested deeper than 64 levels, counts as 1.
        """
        if not isinstance(schema, dict):
            return 1
        counted = self._counts.get(id(schema))
        if counted is not None or depth > _MAX_DEPTH:
            return counted or 1
        self._counts[id(schema)] = 1
        total = min(_MAX_COUNT, self._count_own_choices(schema, depth + 1))
        self._counts[id(schema)] = total
        return total

    def _count_own_choices(self, schema: Json, depth: int) -> int:
        total = len(items_of(schema.get("type")))
        for key in CHOICES:
            if key in schema:
                parts = keywords.items(schema, key)
                ways = sum(self.count(each, depth) for each in parts)
                total *= min(_MAX_COUNT, ways * len(parts) if key == "oneOf" else ways)
        for (keyword, *_), part in subschemas(schema):
            if keyword not in _NOT_MULTIPLIED:
                total *= self.count(part, depth) * (2 if keyword in ("not", "if") else 1)
                total = min(_MAX_COUNT, total)
        reference = keywords.text(schema, "$ref")
        if reference is not None:
            total *= self.count(find_at(self._root, parse_reference(reference)), depth)
        return total
