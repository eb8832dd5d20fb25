"""The one place that applies JSON Schema (docs/reference/spec-files.md#schemas): one answer, whichever engine
is in use, in bounded time."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from cogcli.schema.engine_choice import PYTHON, RUST, engine
from cogcli.schema.messages import text_of
from cogcli.schema.patterns import refusal

if TYPE_CHECKING:
    from cogcli.schema.engines import CompiledSchema
    from cogcli.schema.normalizer import Prepared

MAX_ERRORS: Final = 20
_ENOUGH: Final = 1000
"""Breaches looked at before the first are told in order."""
UNUSABLE: Final = "the schema itself cannot be applied"
TOO_MUCH: Final = "too large to be checked: the value times the schema"
MAX_WORK: Final = {RUST: 30_000_000, PYTHON: 6_000_000}
"""Nodes of a value times what each is held against, and its characters times the steps of the patterns: seconds.

Nothing can interrupt a check, so what may take longer is refused before it begins.
"""
_LONGEST: Final = 100
_MANY: Final = 50_000
"""Beyond so much work only the first breach is told: each takes the engine a hundred times as long as a check."""


def errors(schema: Any, value: Any) -> list[tuple[str, str]]:
    """Where and how a value breaks a schema, as (slash path, message); at most 20, empty if it fits.

    A schema that is none, or whose references lead outside or in circles, is broken by every value. So is one that
    would take too long for this value: `TOO_MUCH`.
    """
    return _told(_judge(orjson.dumps(schema), engine()), value)


def refused_patterns(schema: Any) -> tuple[str, ...]:
    """The patterns of a schema that cannot be run in bounded time, which no check applies; each with the reason."""
    ready = _prepared(orjson.dumps(schema), engine())
    return tuple(map(_refused, ready.dropped)) if ready is not None else ()


def is_usable(schema: Any) -> bool:
    """Whether a schema can be applied, its patterns aside."""
    return _judge(orjson.dumps(schema), engine()) is not None


def _refused(pattern: str) -> str:
    shown = pattern if len(pattern) <= _LONGEST else f"{pattern[: _LONGEST - 1]}…"
    return f"the pattern `{shown}`, which cannot be run: {refusal(pattern)}"


def fits(schema: Any, value: Any) -> bool:
    """Whether a value breaks nothing of a schema, told without the ways in which it does."""
    ready = _judge(orjson.dumps(schema), engine())
    if ready is None or _too_much(ready, value):
        return False
    return ready.judge.fits(value)


def invalid(schema: Any) -> list[tuple[list[str | int], str]]:
    """Where and how a schema is itself no JSON Schema of 2020-12; at most 20, empty if it is one."""
    found = _meta_judge(engine()).breaches(schema, False)
    told = {(tuple(b.place), text_of(b, _at(schema, b.place))) for b in islice(found, _ENOUGH)}
    return [(list(place), text) for place, text in sorted(told, key=_order)[:MAX_ERRORS]]


class _Ready(NamedTuple):
    """A schema that can be applied: what gives the breaches of a value, what tells whether there are any."""

    judge: CompiledSchema
    prepared: Prepared
    most: int


@lru_cache(maxsize=512)
def _judge(schema: bytes, engine: str) -> _Ready | None:
    """What applies a schema, None if it cannot be applied."""
    from cogcli.schema.engines import Unusable, python_judge, rust_judge

    ready = _prepared(schema, engine)
    if ready is None:
        return None
    try:
        judge = rust_judge(ready.rust) if engine == RUST else python_judge(ready.python)
    except Unusable:
        return None
    return _Ready(judge, ready, MAX_WORK[engine])


@lru_cache(maxsize=512)
def _prepared(schema: bytes, engine: str) -> Prepared | None:
    """The schema as that engine gets it, None if it cannot be applied."""
    from cogcli.schema.normalizer import normalize

    return normalize(orjson.loads(schema))


@lru_cache(maxsize=2)
def _meta_judge(engine: str) -> CompiledSchema:
    from cogcli.schema.engines import meta_python_judge, meta_rust_judge

    return meta_rust_judge() if engine == RUST else meta_python_judge()


def _told(ready: _Ready | None, value: Any) -> list[tuple[str, str]]:
    if ready is None:
        return [("", UNUSABLE)]
    if _too_much(ready, value):
        return [("", TOO_MUCH)]
    few = _size(value, _MANY)[0] * ready.prepared.at_once <= _MANY
    told = set()
    for breach in islice(ready.judge.breaches(value, not few), _ENOUGH):
        if breach.keyword == "pattern":
            breach = breach._replace(limit=ready.prepared.written.get(breach.limit, breach.limit))
        told.add((breach.place, text_of(breach, _at(value, breach.place))))
    found = sorted(told, key=_order)[:MAX_ERRORS]
    return [("/".join(map(str, place)), text) for place, text in found]


def _too_much(ready: _Ready, value: Any) -> bool:
    nodes, characters = _size(value, ready.most)
    return nodes * ready.prepared.at_once + characters * ready.prepared.steps > ready.most


def _size(value: Any, most: int) -> tuple[int, int]:
    """How many nodes a value has, and how many characters; not counted on once there are more nodes than `most`."""
    nodes = characters = 0
    waiting = [value]
    while waiting and nodes <= most:
        part = waiting.pop()
        nodes += 1
        if isinstance(part, str):
            characters += len(part)
        elif isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            characters += sum(map(len, part))
            waiting += part.values()
    return nodes, characters


def _order(told: tuple[tuple[str | int, ...], str]) -> Any:
    """By place, list items by number; then by text."""
    place, text = told
    return [(isinstance(part, str), part) for part in place], text


def _at(value: Any, place: tuple[str | int, ...]) -> Any:
    for part in place:
        value = value[part]
    return value
