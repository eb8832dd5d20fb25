"""Applies JSON Schema, with the same result in both engines and in bounded time
(docs/reference/spec-files.md#schemas). No other module applies one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, Final

import orjson

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.schema.engine_choice import PYTHON, RUST, engine
from cogcli.base.schema.engines import (
    DIALECT,
    CompiledSchema,
    SchemaRejected,
    compile_python,
    compile_rust,
)
from cogcli.base.schema.messages import SchemaViolation, describe_violation
from cogcli.base.schema.normalizer import NormalizedSchema, normalize
from cogcli.base.schema.patterns import refusal

MAX_ERRORS: Final = 20
_MAX_BREACHES: Final = 1000
"""The most breaches read; the first 20 of them in order are given."""
UNUSABLE: Final = "the schema itself cannot be applied"
TOO_MUCH: Final = "too large to be checked: the value times the schema"
MAX_WORK: Final = {RUST: 30_000_000, PYTHON: 6_000_000}
"""The maximum work of a check by engine: nodes times work per node, plus characters times steps per character.
This takes seconds. A check cannot be interrupted, so a check with more work is refused before it begins."""
_MAX_PATTERN: Final = 100
_MAX_WORK_FOR_ALL: Final = 50_000
"""Above this work only the first violation is reported, because finding all takes a hundred times as long as a
check.
"""


def errors(schema: object, value: object) -> list[tuple[str, str]]:
    """Return the breaches of a schema by a value as (slash path, message), at most 20; empty if it
    fits.

    A schema that cannot be applied yields `UNUSABLE` for every value. A check that would take too
    long yields `TOO_MUCH`.
    """
    ready = _compile_schema(orjson.dumps(schema), engine())
    if ready is None:
        return [("", UNUSABLE)]
    if _exceeds_max_work(ready, value):
        return [("", TOO_MUCH)]
    few = (
        _count_nodes(value, _MAX_WORK_FOR_ALL)[0] * ready.normalized.work_per_node
        <= _MAX_WORK_FOR_ALL
    )
    original = ready.normalized.original_patterns
    breaches = (
        breach._replace(limit=original.get(breach.limit, breach.limit))
        if breach.keyword == "pattern"
        else breach
        for breach in ready.compiled.breaches(value, not few)
    )
    found = _first_messages(breaches, value)
    return [("/".join(map(str, place)), text) for place, text in found]


def refused_patterns(schema: object) -> tuple[str, ...]:
    """Return a message for each pattern that cannot run in bounded time. Checks do not apply these
    patterns.
    """
    ready = normalized(schema)
    return tuple(map(_refusal_text, ready.refused_patterns)) if ready is not None else ()


def is_usable(schema: object) -> bool:
    """Return whether a schema can be applied, apart from its patterns."""
    return _compile_schema(orjson.dumps(schema), engine()) is not None


def _refusal_text(pattern: str) -> str:
    shown = pattern if len(pattern) <= _MAX_PATTERN else f"{pattern[: _MAX_PATTERN - 1]}…"
    return f"the pattern `{shown}`, which cannot be run: {refusal(pattern)}"


def fits(schema: object, value: object) -> bool:
    """Return whether a value fits a schema; False if that cannot be checked."""
    ready = _compile_schema(orjson.dumps(schema), engine())
    if ready is None or _exceeds_max_work(ready, value):
        return False
    return ready.compiled.fits(value)


def invalid(schema: object) -> list[_Message]:
    """Return the breaches of the 2020-12 meta-schema by a schema as (path, message).

    At most 20 breaches are returned; empty if the schema is valid.
    """
    return _first_messages(_compile_meta_schema(engine()).breaches(schema, False), schema)


_Message = tuple[tuple[str | int, ...], str]


def _first_messages(breaches: Iterator[SchemaViolation], value: object) -> list[_Message]:
    """Return the places and messages of at most 20 breaches, with list items in numerical order."""
    messages = {
        (breach.place, describe_violation(breach, _value_at(value, breach.place)))
        for breach in islice(breaches, _MAX_BREACHES)
    }
    return sorted(messages, key=_sort_key)[:MAX_ERRORS]


class _CompiledSchema(NamedTuple):
    """A schema compiled for the engine in use, with the maximum work of one check."""

    compiled: CompiledSchema
    normalized: NormalizedSchema
    max_work: int


@lru_cache(maxsize=512)
def _compile_schema(schema: bytes, engine: str) -> _CompiledSchema | None:
    """Return the schema compiled for an engine; None if it cannot be applied."""
    ready = _normalize_schema(schema, engine)
    if ready is None:
        return None
    try:
        compiled = compile_rust(ready.schema) if engine == RUST else compile_python(ready.schema)
    except SchemaRejected:
        return None
    return _CompiledSchema(compiled, ready, MAX_WORK[engine])


def normalized(schema: object) -> NormalizedSchema | None:
    """Return the schema normalized for the engine in use; None if it cannot be applied."""
    return _normalize_schema(orjson.dumps(schema), engine())


@lru_cache(maxsize=512)
def _normalize_schema(schema: bytes, engine: str) -> NormalizedSchema | None:
    """Return the normalized schema; None if it cannot be applied.

    The engine is part of the cache key, because patterns depend on it.
    """
    return normalize(orjson.loads(schema))


@lru_cache(maxsize=2)
def _compile_meta_schema(engine: str) -> CompiledSchema:
    return compile_rust(DIALECT) if engine == RUST else compile_python(DIALECT)


def _exceeds_max_work(ready: _CompiledSchema, value: object) -> bool:
    (nodes, characters), schema = _count_nodes(value, ready.max_work), ready.normalized
    return nodes * schema.work_per_node + characters * schema.steps_per_character > ready.max_work


def _count_nodes(value: object, max_work: int) -> tuple[int, int]:
    """Return the numbers of nodes and characters in a value. Counting stops above `max_work` nodes."""
    nodes = characters = 0
    pending = [value]
    while pending and nodes <= max_work:
        part = pending.pop()
        nodes += 1
        # Each check begins with this count, so that it calls nothing for a scalar.
        if isinstance(part, str):
            characters += len(part)
        elif isinstance(part, list):
            pending += part
        elif isinstance(part, dict):
            characters += sum(map(len, part))
            pending += part.values()
    return nodes, characters


def _sort_key(message: _Message) -> tuple[list[tuple[bool, str | int]], str]:
    """Return a key that sorts by place, list items by number, then by text."""
    place, text = message
    return [(isinstance(part, str), part) for part in place], text


def _value_at(value: Any, place: tuple[str | int, ...]) -> object:
    for part in place:
        value = value[part]
    return value
