"""Cycles among names that refer to each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def shortest_cycle(
    start: str, following: Callable[[str], Iterable[str]], *, first: Iterable[str] | None = None
) -> list[str]:
    """Return a shortest path from a name back to itself, or an empty list. `first` are the first names to follow."""
    came: dict[str, str] = {}
    waiting = [(start, name) for name in (following(start) if first is None else first)]
    for before, name in waiting:
        if name in came:
            continue
        came[name] = before
        if name == start:
            path = [start]
            while len(path) == 1 or path[-1] != start:
                path.append(came[path[-1]])
            return path[::-1]
        waiting += [(name, after) for after in following(name)]
    return []
