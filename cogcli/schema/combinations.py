"""How much there is to multiply out in a schema, before something reasons about it."""

from __future__ import annotations

import math
from typing import Any, Final

from cogcli.core.json_pointer import found_at, parse_reference

_MOST: Final = 10**6
_DEEPEST: Final = 64


def parts_in(schema: Any) -> int:
    """How many subschemas, choices and names a schema has."""
    count, waiting = 0, [schema]
    while waiting:
        part = waiting.pop()
        count += 1
        if isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return count


def ways_in(schema: Any) -> int:
    """In how many ways a value may fit a schema, its alternatives multiplied out; at most a million."""
    return _Ways(schema).of(schema, 0)


class _Ways:
    def __init__(self, root: Any) -> None:
        self._root = root
        self._known: dict[int, int] = {}

    def of(self, schema: Any, depth: int) -> int:
        """Those of one subschema; one that is being looked at, or lies deep, counts as one way."""
        if not isinstance(schema, dict):
            return 1
        known = self._known.get(id(schema))
        if known is not None or depth > _DEEPEST:
            return known or 1
        self._known[id(schema)] = 1
        ways = min(_MOST, self._counted(schema, depth + 1))
        self._known[id(schema)] = ways
        return ways

    def _counted(self, schema: dict[str, Any], depth: int) -> int:
        own = schema.get("type")
        ways = len(own) if isinstance(own, list) else 1
        for key in ("allOf", "prefixItems"):
            ways *= self._product(schema.get(key), depth)
        for key in ("properties", "patternProperties", "dependentSchemas"):
            inner = schema.get(key)
            ways *= self._product(list(inner.values()) if isinstance(inner, dict) else None, depth)
        for key in ("anyOf", "oneOf"):
            ways *= self._sum(schema.get(key), depth, twice=key == "oneOf")
        for key in (
            "not",
            "if",
            "then",
            "else",
            "items",
            "contains",
            "additionalProperties",
            "propertyNames",
        ):
            if key in schema:
                ways *= self.of(schema[key], depth) * (2 if key in ("not", "if") else 1)
        reference = schema.get("$ref")
        if isinstance(reference, str):
            ways *= self.of(found_at(self._root, parse_reference(reference)), depth)
        return ways

    def _product(self, parts: Any, depth: int) -> int:
        return min(_MOST, math.prod(self.of(each, depth) for each in parts)) if isinstance(parts, list) else 1

    def _sum(self, parts: Any, depth: int, *, twice: bool) -> int:
        if not isinstance(parts, list):
            return 1
        ways = sum(self.of(each, depth) for each in parts)
        return min(_MOST, ways * len(parts) if twice else ways)
