"""Files of a shape at random, and faulty ones made of them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from random import Random
from typing import Any, Final

from cogcli.specs.shape import (
    Boolean,
    Data,
    ListOf,
    MapOf,
    NumberShape,
    RecordShape,
    Shape,
    Text,
    UnionShape,
)

TEXTS: Final = (
    "a",
    "a.b",
    "skill:a.b",
    "1.0.0",
    "A_B",
    "https://a.example/b",
    "2026-01-31T09:00:00Z",
    "5/s",
    "response.a",
)
ODD: Final[tuple[Any, ...]] = (
    None, True, False, 0, 1, -1, 3.0, 0.5, 1e9, 99_999_999_999, "", " ", "A.b", "x" * 70, "x" * 200, "true", *TEXTS,
    [], ["a"], [1], [None], [["a"]], {}, {"a": 1}, {"a": None}, {"x-a": 1}, {"x-a": None, "b": "c"},
)  # fmt: skip
"""Values that stand where others are expected."""
_DEEP: Final = 8


def draw_value(shape: Shape, random: Random, depth: int = 0) -> Any:
    """A value that fits a shape, with most of its optional keys as long as it is not deep."""
    match shape:
        case UnionShape():
            return draw_value(random.choice(shape.options), random, depth)
        case Text():
            return random.choice(sorted(shape.choices) or [t for t in TEXTS if _fits(shape, t)])
        case NumberShape():
            return random.choice([each for each in (1, 1.5, 2, 250, 2000) if _within(shape, each)])
        case Boolean():
            return random.random() < 0.5
        case Data():
            return copy.deepcopy(random.choice(ODD))
        case ListOf():
            return [
                draw_value(shape.item, random, depth + 1) for _ in range(random.randint(1, 2))
            ] + [draw_value(shape.item, random, depth + 1) for _ in range(shape.minimum - 1)]
        case MapOf():
            names = (
                {draw_value(shape.name, random), "x-own"}
                if shape.filled
                else {draw_value(shape.name, random)}
            )
            return {name: draw_value(shape.value, random, depth + 1) for name in sorted(names)}
    return {
        name: draw_value(key.shape, random, depth + 1)
        for name, key in shape.keys.items()
        if key.required or (depth < _DEEP and random.random() < 0.7)
    }


def _fits(shape: Text, text: str) -> bool:
    return shape.pattern is None or shape.pattern.fullmatch(text) is not None


def _within(shape: NumberShape, number: float) -> bool:
    low = shape.minimum is None or number >= shape.minimum
    high = shape.maximum is None or number <= shape.maximum
    return low and high and (not shape.whole or type(number) is int)


def find_keys(shape: Shape, seen: set[int]) -> Iterator[str]:
    """The names of all keys in a shape."""
    if id(shape) in seen:
        return
    seen.add(id(shape))
    match shape:
        case UnionShape():
            for option in shape.options:
                yield from find_keys(option, seen)
        case ListOf():
            yield from find_keys(shape.item, seen)
        case MapOf():
            yield from find_keys(shape.value, seen)
        case RecordShape():
            for name, key in shape.keys.items():
                yield name
                yield from find_keys(key.shape, seen)


def change(value: dict[str, Any], random: Random, keys: list[str]) -> dict[str, Any]:
    """A copy with one to three changes: a value, a name, a member more or less."""
    changed = copy.deepcopy(value)
    for _ in range(random.randint(1, 3)):
        holders = [each for each in _holders(changed) if each]
        if holders:
            _change_member(random.choice(holders), random, keys)
    return changed


def _change_member(holder: Any, random: Random, keys: list[str]) -> None:
    odd = copy.deepcopy(random.choice(ODD))
    place: Any = (
        random.randrange(len(holder)) if isinstance(holder, list) else random.choice([*holder])
    )
    match random.randrange(4):
        case 0:
            del holder[place]
        case 1 if isinstance(holder, dict):
            holder[random.choice(keys)] = odd
        case 2 if isinstance(holder, dict):
            name = random.choice((f"{place}s", f"x-{place}", place.upper(), random.choice(keys)))
            holder[name] = holder.pop(place)
        case _:
            holder[place] = odd


def _holders(value: Any) -> Iterator[Any]:
    """Every mapping and list in a value."""
    if isinstance(value, dict | list):
        yield value
        for each in value.values() if isinstance(value, dict) else value:
            yield from _holders(each)
