"""References inside a JSON Schema fragment: each resolves to a subschema, and following them ends
(docs/reference/spec-files.md#schemas)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from cogcli.core.json_pointer import parse_reference
from cogcli.core.problems import KeyPath
from cogcli.schema.visitor import REFERENCES, SAME_VALUE

MAX_APPLIED: Final = 10_000
"""The most subschemas that apply to one node of a value: references can double them at each level."""

SubschemaMap = dict[tuple[str, ...], Any]
"""All subschemas of a schema by path, list indices as text."""


def reference_faults(parts: SubschemaMap) -> list[tuple[KeyPath, str]]:
    """References that do not resolve, leave the fragment, or form a cycle: (path, message)."""
    found: list[tuple[KeyPath, str]] = []
    for path, part in parts.items():
        for key in REFERENCES:
            target = part.get(key) if isinstance(part, dict) else None
            if not isinstance(target, str):
                continue
            if target != "#" and not target.startswith("#/"):
                found.append(((*path, key), f"`{key}` to `{target}`, expected `#/...` inside the fragment"))
            elif parse_reference(target) not in parts:
                found.append(((*path, key), f"`{key}` to `{target}`: there is no such subschema"))
    totals: dict[tuple[str, ...], int] = {}
    for path in () if found else parts:
        total = _total_work(path, parts, totals, lambda part: 1, MAX_APPLIED)
        if total == 0:
            return [(path, "a reference leads back here without going into the value")]
        if total > MAX_APPLIED:
            return [(path, f"more than {MAX_APPLIED:,} subschemas apply to one value")]
    return found


def most_work_per_node(parts: SubschemaMap, work_of: Callable[[Any], int]) -> int:
    """The most work for one node of a value; `work_of` gives that of one subschema. Only for parts without faults."""
    totals: dict[tuple[str, ...], int] = {}
    return max((_total_work(path, parts, totals, work_of, 10**9) for path in parts), default=0)


def _total_work(
    start: tuple[str, ...],
    parts: SubschemaMap,
    totals: dict[tuple[str, ...], int],
    work_of: Callable[[Any], int],
    most: int,
) -> int:
    """The work for one node of a value from `start` on, at most `most + 1`; 0 for an endless cycle. `work_of` gives the
    work of one subschema."""
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
        totals[path] = min(work_of(parts[path]) + sum(totals[below] for below in next_paths), most + 1)
    return totals[start]


def _same_value_parts(path: tuple[str, ...], part: Any) -> Iterator[tuple[str, ...]]:
    """The paths of the subschemas that apply to the same value as this one."""
    if not isinstance(part, dict):
        return
    for key in REFERENCES:
        if isinstance(part.get(key), str):
            yield parse_reference(part[key])
    for key in SAME_VALUE & part.keys():
        value = part[key]
        if isinstance(value, list):
            yield from ((*path, key, str(n)) for n in range(len(value)))
        elif key == "dependentSchemas":
            yield from ((*path, key, name) for name in (value if isinstance(value, dict) else ()))
        else:
            yield (*path, key)
