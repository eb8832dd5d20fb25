"""The limits of a JSON Schema fragment in a spec file: local references, bounded size, linear-time patterns
(docs/reference/spec-files.md#schemas)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from cogcli.core.problems import KeyPath
from cogcli.schema.normalizer import reference_faults
from cogcli.schema.patterns import refusal
from cogcli.schema.validator import invalid
from cogcli.schema.visitor import subschemas

MAX_SUBSCHEMAS: Final = 500
MAX_DEPTH: Final = 16


def faults(schema: Any) -> list[tuple[KeyPath, str]]:
    """The faults of a fragment as (path from its root, message); empty if it is allowed."""
    found: list[tuple[KeyPath, str]] = []
    parts: dict[tuple[str, ...], Any] = {}
    for path, depth, part in _all_subschemas(schema, (), 1):
        parts[tuple(map(str, path))] = part
        if len(parts) > MAX_SUBSCHEMAS:
            return [*found, ((), f"more than {MAX_SUBSCHEMAS} subschemas")]
        if depth > MAX_DEPTH:
            return [*found, (path, f"subschemas nested deeper than {MAX_DEPTH}")]
        found.extend(_own_faults(part, path))
    return found or invalid(schema) or reference_faults(parts)


def _all_subschemas(schema: Any, path: KeyPath, depth: int) -> Iterator[tuple[KeyPath, int, Any]]:
    yield path, depth, schema
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return
    for below, part in subschemas(schema):
        yield from _all_subschemas(part, (*path, *below), depth + 1)
    if "contentSchema" in schema:  # no engine applies it, but a reference may lead there
        yield from _all_subschemas(schema["contentSchema"], (*path, "contentSchema"), depth + 1)


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


def unsafe_reason(pattern: str) -> str:
    """Why a regular expression is malformed or may take more than linear time; empty if it is allowed."""
    import re._parser as parser  # type: ignore[import-not-found]

    try:
        return _refused_in(parser.parse(pattern), inside=False)
    except (re.error, RecursionError, OverflowError) as error:
        return f"not a regular expression ({error})"


_REPEATS: Final = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_REFUSED: Final = {
    "ASSERT": "look-around",
    "ASSERT_NOT": "look-around",
    "GROUPREF": "back-reference",
    "GROUPREF_EXISTS": "back-reference",
}


def _refused_in(parsed: Any, *, inside: bool) -> str:
    """Why a parsed expression is refused, empty if it is allowed. `inside`: whether it is within a repeated group."""
    for operation, argument in parsed:
        name = str(operation)
        if name in _REFUSED:
            return f"{_REFUSED[name]} is not allowed"
        repeats = name in _REPEATS
        if repeats and inside and argument[0] != argument[1]:
            return "a quantifier inside a repeated group is not allowed"
        within = inside or (repeats and argument[1] > 1)
        for part in _parts(argument):
            reason = _refused_in(part, inside=within)
            if reason:
                return reason
    return ""


def _parts(argument: Any) -> Iterator[Any]:
    """The parsed sequences in the argument of one operation."""
    if hasattr(argument, "getwidth"):
        yield argument
    elif isinstance(argument, list | tuple):
        for item in argument:
            yield from _parts(item)
