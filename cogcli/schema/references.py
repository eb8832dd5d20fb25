"""References inside a JSON Schema fragment: they lead to a subschema, and following them ends
(docs/reference/spec-files.md#schemas)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cogcli.core.problems import KeyPath

MAX_COST: Final = 10_000
"""Subschemas that one value may be held against without going into it: references can double them at each level."""
_SAME_VALUE: Final = frozenset(("not", "if", "then", "else", "allOf", "anyOf", "oneOf", "dependentSchemas"))

SubschemaMap = dict[tuple[str, ...], Any]
"""All subschemas by their path as text."""


def reference_faults(parts: SubschemaMap) -> list[tuple[KeyPath, str]]:
    """References that lead nowhere, elsewhere, or in circles."""
    found: list[tuple[KeyPath, str]] = []
    for path, part in parts.items():
        for key in ("$ref", "$dynamicRef"):
            target = part.get(key) if isinstance(part, dict) else None
            if not isinstance(target, str):
                continue
            if target != "#" and not target.startswith("#/"):
                found.append(((*path, key), f"`{key}` to `{target}`, expected `#/...` inside the fragment"))
            elif _pointed(target) not in parts:
                found.append(((*path, key), f"`{key}` to `{target}`: there is no such subschema"))
    return found or _endless(parts)


def _pointed(target: str) -> tuple[str, ...]:
    from urllib.parse import unquote

    parts = unquote(target[1:]).split("/")[1:]
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


def most_at_once(parts: SubschemaMap, own: Callable[[Any], int]) -> int:
    """The most that one value meets without going into it, `own` telling of one subschema; without faults alone."""
    costs: dict[tuple[str, ...], int] = {}
    return max((_cost(path, parts, costs, own, 10**9) for path in parts), default=0)


def _endless(parts: SubschemaMap) -> list[tuple[KeyPath, str]]:
    costs: dict[tuple[str, ...], int] = {}
    for path in parts:
        cost = _cost(path, parts, costs, lambda part: 1, MAX_COST)
        if cost == 0:
            return [(path, "a reference leads back here without going into the value")]
        if cost > MAX_COST:
            return [(path, f"more than {MAX_COST:,} subschemas apply to one value")]
    return []


def _cost(
    start: tuple[str, ...],
    parts: SubschemaMap,
    costs: dict[tuple[str, ...], int],
    own: Callable[[Any], int],
    most: int,
) -> int:
    """What a value is held against before going into it, `own` telling of one subschema; 0 where that never ends."""
    stack = [start]
    under_way: set[tuple[str, ...]] = set()
    while stack:
        path = stack[-1]
        following = list(_following(path, parts[path]))
        if path not in costs and path not in under_way:
            under_way.add(path)
            if any(below in under_way for below in following):
                return 0
            stack += [below for below in following if below not in costs]
            continue
        stack.pop()
        under_way.discard(path)
        costs[path] = min(own(parts[path]) + sum(costs[below] for below in following), most + 1)
    return costs[start]


def _following(path: tuple[str, ...], part: Any) -> Iterator[tuple[str, ...]]:
    """The subschemas that apply to the same value."""
    if not isinstance(part, dict):
        return
    for key in ("$ref", "$dynamicRef"):
        if isinstance(part.get(key), str):
            yield _pointed(part[key])
    for key in _SAME_VALUE & part.keys():
        value = part[key]
        if isinstance(value, list):
            yield from ((*path, key, str(n)) for n in range(len(value)))
        elif key == "dependentSchemas":
            yield from ((*path, key, name) for name in _names(value))
        else:
            yield (*path, key)


def _names(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
