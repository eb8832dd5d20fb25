"""The limits of a JSON Schema fragment in a spec file: local references, bounded size, linear-time
patterns (docs/reference/spec-files.md#schemas).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cogcli.base.problems import KeyPath
from cogcli.base.schema import keywords
from cogcli.base.schema.normalizer import SubschemaMap, reference_faults
from cogcli.base.schema.patterns import parse_pattern, refusal
from cogcli.base.schema.regex_parser import (
    Choice,
    RegexPart,
    Repetition,
    Sequence,
    UnsupportedRegex,
)
from cogcli.base.schema.validator import invalid
from cogcli.base.schema.visitor import subschemas

MAX_SUBSCHEMAS: Final = 500
MAX_DEPTH: Final = 16


def faults(schema: object) -> list[tuple[KeyPath, str]]:
    """Return the faults of a fragment as (path from its root, message); empty if it is allowed."""
    found: list[tuple[KeyPath, str]] = []
    parts: SubschemaMap = {}
    for path, depth, part in _all_subschemas(schema, (), 1):
        parts[tuple(map(str, path))] = part
        if len(parts) > MAX_SUBSCHEMAS:
            return [*found, ((), f"more than {MAX_SUBSCHEMAS} subschemas")]
        if depth > MAX_DEPTH:
            return [*found, (path, f"subschemas nested deeper than {MAX_DEPTH}")]
        found.extend(_own_faults(part, path))
    return found or invalid(schema) or reference_faults(parts)


def _all_subschemas(
    schema: object, path: KeyPath, depth: int
) -> Iterator[tuple[KeyPath, int, object]]:
    """Yield every subschema with its path and depth."""
    yield path, depth, schema
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return
    for below, part in subschemas(schema):
        yield from _all_subschemas(part, (*path, *below), depth + 1)
    if "contentSchema" in schema:  # no engine applies it, but a reference may lead there
        yield from _all_subschemas(schema["contentSchema"], (*path, "contentSchema"), depth + 1)


def _own_faults(schema: object, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if not isinstance(schema, dict):
        return
    if path and "$id" in schema:
        yield (*path, "$id"), "`$id` inside a fragment changes what `#/...` means"
    for where, pattern in keywords.patterns(schema):
        reason = unsafe_reason(pattern) or refusal(pattern)
        if reason:
            yield (*path, *where), f"pattern `{pattern}`: {reason}"


def unsafe_reason(pattern: str) -> str:
    """Return why no engine may run a regular expression in a spec file; empty if it is allowed.

    A quantifier inside a repeated group is refused, so that a spec has the same meaning without
    jsonschema-rs.
    """
    try:
        nested = _has_nested_quantifier(parse_pattern(pattern), repeated=False)
    except UnsupportedRegex as error:
        return str(error)
    except RecursionError:
        return "nested too deeply"
    return "a quantifier inside a repeated group is not allowed" if nested else ""


def _has_nested_quantifier(part: RegexPart, *, repeated: bool) -> bool:
    """Return whether a repeated group contains a quantifier. `repeated`: the part is in such a group."""
    match part:
        case Repetition():
            if repeated and part.minimum != part.maximum:
                return True
            is_group = part.maximum is None or part.maximum > 1
            return _has_nested_quantifier(part.part, repeated=repeated or is_group)
        case Sequence(parts) | Choice(parts):
            return any(_has_nested_quantifier(each, repeated=repeated) for each in parts)
        case _:
            return False
