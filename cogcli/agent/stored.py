"""Reading values of the agent that were stored as JSON: types are checked, older versions migrated. Pure
(docs/reference/agent-state.md#stored)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

Migration = Callable[[dict[str, Any]], dict[str, Any]]
Kinds = Mapping[str, str]
"""By member its kind: text, text?, number, boolean, object, objects, texts (`?`: or null)."""


class UnreadableState(ValueError):
    """JSON that is not a state of ours."""


class NewerState(UnreadableState):
    """State of a version that is not known here."""


_TYPES: Final[dict[str, type]] = {"text": str, "number": int, "boolean": bool, "object": dict}


def to_payload(value: Any) -> dict[str, Any]:
    """The members of a named tuple as JSON: its tuples become lists."""
    return {
        name: list(item) if isinstance(item, tuple) else item
        for name, item in value._asdict().items()
    }


def members_of(payload: Any, kinds: Kinds, what: str) -> dict[str, Any]:
    """The members of a stored object, its lists as tuples; those that are missing are left out, others ignored.
    Raises UnreadableState for a value of another type."""
    if not isinstance(payload, dict):
        raise UnreadableState(f"{what} is not an object")
    return {
        name: _checked(payload[name], kind, f"{what}.{name}")
        for name, kind in kinds.items()
        if name in payload
    }


def _checked(value: Any, kind: str, what: str) -> Any:
    if value is None and kind.endswith("?"):
        return None
    kind = kind.removesuffix("?")
    if kind in ("texts", "objects"):
        of = "text" if kind == "texts" else "object"
        if isinstance(value, list):
            return tuple(_checked(item, of, what) for item in value)
    elif isinstance(value, _TYPES[kind]) and not (kind == "number" and isinstance(value, bool)):
        return value
    raise UnreadableState(f"`{what}` is no {kind}")


def migrate(
    payload: Any, version: int, migrations: Mapping[int, Migration], what: str
) -> dict[str, Any]:
    """The payload in this version. Each migration leads from its number to the next; a payload without
    `schema_version` has version 0. Raises NewerState, UnreadableState."""
    if not isinstance(payload, dict):
        raise UnreadableState(f"{what} is not an object")
    found = payload.get("schema_version", 0)
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise UnreadableState(f"{what} has no version that is a number")
    if found > version:
        raise NewerState(f"{what} has version {found}, known is {version}")
    for step in range(found, version):
        payload = {**migrations[step](payload), "schema_version": step + 1}
    return dict(payload)


def zoned(time: str) -> str:
    """An ISO 8601 time with its zone; one without is taken as UTC. Raises UnreadableState for what is not a time."""
    try:
        found = datetime.fromisoformat(time)
    except ValueError:
        raise UnreadableState(f"`{time[:40]}` is not a time") from None
    return time if found.tzinfo else found.replace(tzinfo=UTC).isoformat()


def is_zoned(time: str) -> bool:
    """Whether it is an ISO 8601 time with a zone."""
    try:
        return datetime.fromisoformat(time).tzinfo is not None
    except ValueError:
        return False
