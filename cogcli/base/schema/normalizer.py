"""Normalizes a schema for the engines: parts that they would read differently are removed or
rewritten.

1. Patterns have the same meaning in both engines. A pattern that cannot run in linear time is not
applied.

2. `false` becomes `{"not": {}}` except in `unevaluatedItems` and similar keywords: one engine
reports a wrong place for it.

3. References resolve inside the schema, and every chain of references ends.

4. `format`, `$id`, `$anchor` and unknown keywords are removed: they assert nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from cogcli.base.json_pointer import parse_reference
from cogcli.base.jsonvalue import Json
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import KeyPath
from cogcli.base.schema import keywords
from cogcli.base.schema.keywords import Schema
from cogcli.base.schema.patterns import pattern_of
from cogcli.base.schema.visitor import ASSERTIONS, LISTS, MAPS, REFERENCES, SAME_VALUE, SINGLE

_COUNTED: Final = frozenset(("additionalProperties", "unevaluatedItems", "unevaluatedProperties"))
_COPIED: Final = (ASSERTIONS - {"pattern"}).union(REFERENCES)
NOTHING: Final[Json] = {"not": {}}


def asserts_only_type(schema: object) -> bool:
    """Return whether a schema asserts nothing, or only a type."""
    return schema is True or (isinstance(schema, dict) and schema.keys() <= {"type"})


class NormalizedSchema(NamedTuple):
    """A schema for the engine in use.

    `refused_patterns`: the patterns that are not applied. `original_patterns`: the author's pattern
    by rewritten pattern. `work_per_node`: the maximum number of comparisons for one node of a
    value. `steps_per_character`: the maximum number of steps that the patterns take for one
    character.
    """

    schema: Schema
    refused_patterns: tuple[str, ...]
    original_patterns: dict[str, str]
    work_per_node: int
    steps_per_character: int

    @property
    def is_bare(self) -> bool:
        """Whether the schema asserts nothing, or only a type."""
        return asserts_only_type(self.schema)


def normalize(schema: object) -> NormalizedSchema | None:
    """Return the schema for the engine in use, None if it cannot be applied."""
    normalizer = _Normalizer()
    try:
        normalized = normalizer.part(schema, ())
        if reference_faults(normalizer.parts):
            return None
        work = _max_work_per_node(normalizer.parts, _work_of)
        steps = _max_work_per_node(normalizer.parts, _own_pattern_steps)
    except (_Malformed, RecursionError):
        return None
    refused = tuple(dict.fromkeys(normalizer.refused_patterns))
    return NormalizedSchema(normalized, refused, normalizer.original_patterns, work, steps)


_SIZED_KEYWORDS: Final = ("required", "properties", "dependentRequired", "dependentSchemas")


def _work_of(part: object) -> int:
    """Return the number of comparisons that a subschema itself makes for one node."""
    if not isinstance(part, dict):
        return 1
    named = sum(_count_members(part[key], scalar=0) for key in _SIZED_KEYWORDS if key in part)
    choices = sum(_count_members(each, factor=10) for each in keywords.items(part, "enum"))
    return 1 + named // 8 + choices // 8


def _count_members(value: object, *, factor: int = 1, scalar: int = 1) -> int:
    """Return the number of members of an object or list times `factor`; `scalar` for other values."""
    return factor * len(value) if isinstance(value, dict | list) else scalar


def _own_pattern_steps(part: object) -> int:
    """Return the maximum number of steps that a subschema's own patterns take for one character."""
    if not isinstance(part, dict):
        return 0
    found = [pattern_of(text) for _, text in keywords.patterns(part)]
    return sum(each.steps for each in found if each is not None)


class _Malformed(Exception):
    """A part is not a schema."""


class _Normalizer:
    """Normalizes one schema and collects its subschemas and patterns."""

    def __init__(self) -> None:
        self.parts: SubschemaMap = {}
        self.original_patterns: dict[str, str] = {}
        self.refused_patterns: list[str] = []

    def part(self, schema: object, place: tuple[str, ...]) -> Schema:
        """Return one subschema, normalized. Raise _Malformed."""
        self.parts[place] = schema
        if isinstance(schema, bool):
            return schema or NOTHING
        if not isinstance(schema, dict):
            raise _Malformed
        result: Json = {}
        for key, value in schema.items():
            if key in _COPIED:
                result[key] = value
            elif key in SINGLE or key in LISTS or key in MAPS:
                result[key] = self._normalize_subschemas(key, value, (*place, key))
            elif key == "pattern" and isinstance(value, str):
                text = self._rewrite_pattern(value)
                if text is not None:
                    result[key] = text
        return result

    def _normalize_subschemas(self, key: str, value: object, place: tuple[str, ...]) -> object:
        if key in LISTS:
            return self._normalize_list(value, place)
        if key in MAPS:
            return self._normalize_map(key, value, place)
        inner = self.part(value, place)
        return False if value is False and key in _COUNTED else inner

    def _normalize_list(self, value: object, place: tuple[str, ...]) -> list[Schema]:
        if not isinstance(value, list):
            raise _Malformed
        return [self.part(each, (*place, str(n))) for n, each in enumerate(value)]

    def _normalize_map(self, key: str, value: object, place: tuple[str, ...]) -> Json:
        if not isinstance(value, dict):
            raise _Malformed
        result: Json = {}
        for name, each in value.items():
            inner = self.part(each, (*place, name))
            text = self._rewrite_pattern(name) if key == "patternProperties" else name
            if text is not None:
                result[text] = inner
        return result

    def _rewrite_pattern(self, text: str) -> str | None:
        """Return the rewritten pattern; None for a pattern that cannot run in linear time."""
        pattern = pattern_of(text)
        if pattern is None:
            self.refused_patterns.append(text)
            return None
        own = pattern.text
        # A different pattern may have the same rewritten text.
        while self.original_patterns.setdefault(own, text) != text:
            own = f"(?:{own})"
        return own


# -- references: each resolves to a subschema, and following them ends -----------------------------------------------

MAX_APPLIED: Final = 10_000
"""The limit subschemas that apply to one node of a value: references can double them at each level."""

SubschemaMap = dict[tuple[str, ...], object]
"""All subschemas of a schema by path, list indices as text."""


def reference_faults(parts: SubschemaMap) -> list[tuple[KeyPath, str]]:
    """Return (path, message) for each reference that does not resolve, leaves the fragment, or
    forms a cycle.
    """
    found: list[tuple[KeyPath, str]] = []
    for path, part in parts.items():
        for key, target in _iterate_references(part):
            if target != "#" and not target.startswith("#/"):
                text = f"`{key}` to `{target}`, expected `#/...` inside the fragment"
                found.append(((*path, key), text))
            elif parse_reference(target) not in parts:
                found.append(((*path, key), f"`{key}` to `{target}`: there is no such subschema"))
    return found or _applied_faults(parts)


def _iterate_references(part: object) -> Iterator[tuple[str, str]]:
    """Yield the references of a subschema as (keyword, target)."""
    if isinstance(part, dict):
        for key in REFERENCES:
            target = keywords.text(part, key)
            if target is not None:
                yield key, target


def _applied_faults(parts: SubschemaMap) -> list[tuple[KeyPath, str]]:
    """Return (path, message) for the first subschema that applies to a value endlessly, or to which too many others
    apply. Empty without such a fault.
    """
    totals: dict[tuple[str, ...], int] = {}
    for path in parts:
        total = _total_work(path, parts, totals, lambda part: 1, MAX_APPLIED)
        if total == 0:
            return [(path, "a reference leads back here without going into the value")]
        if total > MAX_APPLIED:
            return [(path, f"more than {MAX_APPLIED:,} subschemas apply to one value")]
    return []


def _max_work_per_node(parts: SubschemaMap, work_of: Callable[[object], int]) -> int:
    """Return the maximum work for one node of a value. `work_of` returns the work of one subschema.

    `parts` must have no faults.
    """
    totals: dict[tuple[str, ...], int] = {}
    return max((_total_work(path, parts, totals, work_of, 10**9) for path in parts), default=0)


def _total_work(
    start: tuple[str, ...],
    parts: SubschemaMap,
    totals: dict[tuple[str, ...], int],
    work_of: Callable[[object], int],
    limit: int,
) -> int:
    """Return the work for one node of a value from `start` on, at most `limit + 1`.

    0 means an endless cycle. `work_of` returns the work of one subschema.
    """
    stack = [start]
    in_progress: set[tuple[str, ...]] = set()
    while stack:
        path = stack[-1]
        next_paths = list(_same_value_parts(path, parts[path]))
        if path not in totals and path not in in_progress:
            in_progress.add(path)
            if any(below in in_progress for below in next_paths):
                return 0
            stack += [below for below in next_paths if below not in totals]
            continue
        stack.pop()
        in_progress.discard(path)
        totals[path] = min(
            work_of(parts[path]) + sum(totals[below] for below in next_paths), limit + 1
        )
    return totals[start]


def _same_value_parts(path: tuple[str, ...], part: object) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the subschemas that apply to the same value as this one."""
    if not isinstance(part, dict):
        return
    yield from (parse_reference(target) for _, target in _iterate_references(part))
    for key in SAME_VALUE & part.keys():
        value = part[key]
        if isinstance(value, list):
            yield from ((*path, key, str(n)) for n in range(len(value)))
        elif key == "dependentSchemas":
            yield from ((*path, key, name) for name in keywords.mapping(part, key))
        else:
            yield (*path, key)
