"""The size of a schema for a proof, whose time grows with the product of all alternatives."""

from __future__ import annotations

from typing import Any, Final

from cogcli.core.json_pointer import found_at, parse_reference
from cogcli.schema.visitor import CHOICES, DEFINITIONS, subschemas

_MAX_COUNT: Final = 10**6
_MAX_DEPTH: Final = 64
_NOT_MULTIPLIED: Final = DEFINITIONS | {*CHOICES, "unevaluatedItems", "unevaluatedProperties"}
"""Keywords that are counted in another way, or that a proof does not open."""


def count_parts(schema: Any) -> int:
    """The number of JSON nodes of a schema."""
    count, pending = 0, [schema]
    while pending:
        part = pending.pop()
        count += 1
        if isinstance(part, dict):
            pending += part.values()
        elif isinstance(part, list):
            pending += part
    return count


def count_alternatives(schema: Any) -> int:
    """The number of ways in which a value may fit a schema, its alternatives multiplied; at most a million."""
    return _AlternativeCounter(schema).count(schema, 0)


class _AlternativeCounter:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._counts: dict[int, int] = {}

    def count(self, schema: Any, depth: int) -> int:
        """The ways of one subschema; one in progress or nested deeper than 64 counts as one."""
        if not isinstance(schema, dict):
            return 1
        counted = self._counts.get(id(schema))
        if counted is not None or depth > _MAX_DEPTH:
            return counted or 1
        self._counts[id(schema)] = 1
        total = min(_MAX_COUNT, self._count_own(schema, depth + 1))
        self._counts[id(schema)] = total
        return total

    def _count_own(self, schema: dict[str, Any], depth: int) -> int:
        own = schema.get("type")
        total = len(own) if isinstance(own, list) else 1
        for key in CHOICES:
            total *= self._sum(schema.get(key), depth, twice=key == "oneOf")
        for (keyword, *_), part in subschemas(schema):
            if keyword not in _NOT_MULTIPLIED:
                total *= self.count(part, depth) * (2 if keyword in ("not", "if") else 1)
                total = min(_MAX_COUNT, total)
        reference = schema.get("$ref")
        if isinstance(reference, str):
            total *= self.count(found_at(self._root, parse_reference(reference)), depth)
        return total

    def _sum(self, parts: Any, depth: int, *, twice: bool) -> int:
        if not isinstance(parts, list):
            return 1
        total = sum(self.count(each, depth) for each in parts)
        return min(_MAX_COUNT, total * len(parts) if twice else total)
