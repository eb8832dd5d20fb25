"""The merge strategies (docs/reference/execution.md#merge): whether one applies, and the merged
value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from cogcli.base.errors import OutputMappingError
from cogcli.base.jsonvalue import Json, equal
from cogcli.base.named_tuple import NamedTuple


def require_mergeable(strategy: str, target: str, present: str | None, value: str) -> None:
    """Raise OutputMappingError `output.merge` unless the kinds can be merged.

    `present` is the kind of the target's value, None if the target does not exist.
    """
    wanted = STRATEGIES[strategy].needs
    if not wanted:
        return
    for side, kind in (("target holds", present), ("value is", value)):
        if kind is not None and kind != wanted:
            article = "an" if wanted == "object" else "a"
            found = kind if kind == "null" else f"{'an' if kind == 'object' else 'a'} {kind}"
            raise OutputMappingError(
                "output.merge",
                f"`{target}`: {strategy} needs {article} {wanted}, the {side} {found}",
            )


def merge(strategy: str, present: object, value: object) -> object:
    """Return the new value of the target. `present` is its existing value; None if the target has no value. The result
    may share parts with `value`.
    """
    return value if present is None else STRATEGIES[strategy].combine(present, value)


def replaces_present(strategy: str) -> bool:
    """Return whether a write with this strategy replaces the existing value entirely.

    False for an unknown strategy.
    """
    row = STRATEGIES.get(strategy)
    return row is not None and not row.keeps_present


def _replace_value(present: object, value: object) -> object:
    return value


def _append_items(present: list[object], value: list[object]) -> list[object]:
    # The list belongs to the state alone: every reader got a copy.
    present.extend(value)
    return present


def _deep_merge(present: object, written: object) -> object:
    """Return `present` with `written` merged in, recursively through objects.

    If either is not an object, return `written`.
    """
    if type(present) is dict and type(written) is dict:
        return _merge_objects(present, written)
    return written


def _merge_objects(present: Json, written: Json) -> Json:
    for key, value in written.items():
        present_value = present.get(key)
        if type(present_value) is dict and type(value) is dict:
            _merge_objects(present_value, value)
        else:
            present[key] = value
    return present


def find_conflict(a: object, b: object, path: str = "") -> str | None:
    """Return the first leaf that two concurrent deep merges set differently, as a dotted path.

    Return None if they agree. An empty path means the whole value.
    """
    if type(a) is not dict or type(b) is not dict:
        return None if equal(a, b) else path
    for key, value in a.items():  # in the order of `a`, so that a replay finds the same leaf
        if key in b:
            inner = find_conflict(value, b[key], f"{path}.{key}" if path else key)
            if inner is not None:
                return inner
    return None


class Strategy(NamedTuple):
    """A way to write a value to a target that already has one."""

    combine: Callable[[Any, Any], object]
    """Returns the new value of the target from the state's own value, which it may change, and the
    written value."""
    needs: str = ""
    """The kind that both values must have; empty if any kind is allowed."""
    of_any_kind: bool = False
    """Whether it combines values although it requires no kind."""
    find_conflict: Callable[[object, object], str | None] | None = None
    """Returns the first leaf that two concurrent writes set differently; None if no two can differ.
    """

    @property
    def keeps_present(self) -> bool:
        """Whether the new value may contain parts of the existing value."""
        return bool(self.needs) or self.of_any_kind


STRATEGIES: Final[dict[str, Strategy]] = {
    "overwrite": Strategy(_replace_value),
    "append": Strategy(_append_items, "list"),
    "deep_merge": Strategy(_deep_merge, of_any_kind=True, find_conflict=find_conflict),
    "replace": Strategy(_replace_value),
}
"""Every strategy of `merge_strategy`, in the order of messages and schemas. A new one is a row here."""
