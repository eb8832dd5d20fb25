"""What a JSON Schema fragment may hold: local references, bounded size, linear-time patterns
(docs/reference/spec-files.md#schemas)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cogcli.schema.patterns import refusal
from cogcli.schema.references import reference_faults
from cogcli.schema.regex_safety import unsafe_reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogcli.core.problems import KeyPath

MAX_SUBSCHEMAS: Final = 500
MAX_DEPTH: Final = 16

_ONE: Final = frozenset(
    (
        "not", "if", "then", "else", "items", "contains", "additionalProperties", "propertyNames",
        "unevaluatedItems", "unevaluatedProperties", "contentSchema",
    )
)  # fmt: skip
_LIST: Final = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_MAP: Final = frozenset(("properties", "patternProperties", "dependentSchemas", "$defs", "definitions"))


def faults(schema: Any) -> list[tuple[KeyPath, str]]:
    """Where and why a fragment is refused; empty if it is fine. Paths are relative to the fragment."""
    found: list[tuple[KeyPath, str]] = []
    parts: dict[tuple[str, ...], Any] = {}
    for path, depth, part in _subschemas(schema, (), 1):
        parts[tuple(map(str, path))] = part
        if len(parts) > MAX_SUBSCHEMAS:
            return [*found, ((), f"more than {MAX_SUBSCHEMAS} subschemas")]
        if depth > MAX_DEPTH:
            return [*found, (path, f"subschemas nested deeper than {MAX_DEPTH}")]
        found.extend(_own_faults(part, path))
    return found or _invalid(schema) or reference_faults(parts)


def _subschemas(schema: Any, path: KeyPath, depth: int) -> Iterator[tuple[KeyPath, int, Any]]:
    yield path, depth, schema
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return
    for key, value in schema.items():
        if key in _ONE:
            yield from _subschemas(value, (*path, key), depth + 1)
        elif key in _LIST and isinstance(value, list):
            for index, item in enumerate(value):
                yield from _subschemas(item, (*path, key, index), depth + 1)
        elif key in _MAP and isinstance(value, dict):
            for name, item in value.items():
                yield from _subschemas(item, (*path, key, name), depth + 1)


def _own_faults(schema: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if not isinstance(schema, dict):
        return
    if path and "$id" in schema:
        yield (*path, "$id"), "`$id` inside a fragment changes what `#/...` means"
    patterns: list[tuple[KeyPath, Any]] = [(("pattern",), schema.get("pattern"))]
    properties = schema.get("patternProperties")
    if isinstance(properties, dict):
        patterns += [(("patternProperties", name), name) for name in properties]
    for where, pattern in patterns:
        reason = unsafe_reason(pattern) or refusal(pattern) if isinstance(pattern, str) else ""
        if reason:
            yield (*path, *where), f"pattern `{pattern}`: {reason}"


def _invalid(schema: Any) -> list[tuple[KeyPath, str]]:
    from cogcli.schema.validator import invalid

    return [(tuple(path), message) for path, message in invalid(schema)]
