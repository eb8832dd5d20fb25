"""The four merge strategies (docs/reference/execution.md#merge): whether one applies, and the merged value."""

from __future__ import annotations

from typing import Any, Final

from cogcli.core.errors import OutputMappingError
from cogcli.core.jsonvalue import equal, kind_of

_MERGEABLE: Final = {"append": "list", "deep_merge": "object"}
"""Strategies that combine, and the kind that both sides must have."""


def require_mergeable(strategy: str, target: str, present: str | None, value: str) -> None:
    """Raises OutputMappingError `output.merge` unless the kinds fit. `present` None means the target is absent."""
    wanted = _MERGEABLE.get(strategy)
    if wanted is None:
        return
    for side, kind in (("target holds", present), ("value is", value)):
        if kind is not None and kind != wanted:
            article = "an" if wanted == "object" else "a"
            found = kind if kind == "null" else f"{'an' if kind == 'object' else 'a'} {kind}"
            raise OutputMappingError(
                "output.merge", f"`{target}`: {strategy} needs {article} {wanted}, the {side} {found}"
            )


def merge(strategy: str, present: Any, value: Any) -> Any:
    """The new value of the target. `present` is the state's own value or None when absent; `value` is kept."""
    if present is None:
        return value
    if strategy == "append":
        # The list belongs to the state alone: every reader got a copy.
        present.extend(value)
        return present
    if strategy == "deep_merge":
        return _merge_objects(present, value)
    return value


def _merge_objects(present: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """`present` with `over` laid over it, recursively through objects; everything else is replaced."""
    for key, value in over.items():
        below = present.get(key)
        if type(below) is dict and type(value) is dict:
            _merge_objects(below, value)
        else:
            present[key] = value
    return present


def conflict(a: Any, b: Any, path: str = "") -> str | None:
    """The first leaf that two concurrent deep merges set differently, as a dotted path, else None."""
    for key in a.keys() & b.keys():
        left, right = a[key], b[key]
        here = f"{path}.{key}" if path else key
        if kind_of(left) == "object" and kind_of(right) == "object":
            inner = conflict(left, right, here)
            if inner:
                return inner
        elif not equal(left, right):
            return here
    return None
