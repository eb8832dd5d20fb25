"""The stored values of an agent: named tuples as JSON, with checked types and migrated versions. Pure
(docs/reference/agent-state.md#stored)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Protocol, TypeVar

from cogcli.base.jsonvalue import with_lists
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.value_types import Json

Migration = Callable[[Json], Json]


class UnreadableState(ValueError):
    """JSON that is not a state of an agent."""


class NewerStateVersion(UnreadableState):
    """A state of a later version."""


class _StoredKind(NamedTuple):
    """The required type of a stored member."""

    name: str
    base: type
    item: type | None = None
    """The type of the items of a list."""
    nullable: bool = False

    def fits(self, value: object) -> bool:
        """Return whether a value is of this kind."""
        if value is None:
            return self.nullable
        if self.item is not None:
            return type(value) is list and all(type(each) is self.item for each in value)
        return type(value) is self.base


_KINDS: Final = {
    "str": _StoredKind("text", str),
    "str | None": _StoredKind("text", str, nullable=True),
    "int": _StoredKind("number", int),
    "bool": _StoredKind("boolean", bool),
    "Json": _StoredKind("object", dict),
    "dict[str, str]": _StoredKind("object", dict),
    "tuple[str, ...]": _StoredKind("texts", list, str),
    "tuple[Json, ...]": _StoredKind("objects", list, dict),
}
"""The kinds of members by the annotation of their field."""
_Stored = TypeVar("_Stored")


class _NamedTuple(Protocol):
    """Any named tuple."""

    def _asdict(self) -> Json: ...


def to_payload(value: _NamedTuple) -> Json:
    """Return the members of a named tuple as JSON: its tuples become lists."""
    return with_lists(value._asdict())


def from_payload(cls: type[_Stored], payload: object, label: str, lacking: str = "") -> _Stored:
    """Return the named tuple of a stored object, its lists as tuples; a missing member has its default, others
    are ignored. Raise UnreadableState for a value of another type, and, with the text `lacking`, without a
    required member.
    """
    if not isinstance(payload, dict):
        raise UnreadableState(f"{label} is not an object")
    tuple_class: Any = cls
    members: Json = {}
    for name, annotation in cls.__annotations__.items():
        if name not in payload:
            if name not in tuple_class._field_defaults:
                raise UnreadableState(lacking)
            continue
        value, kind = payload[name], _KINDS[annotation]
        if not kind.fits(value):
            raise UnreadableState(f"`{label}.{name}` is no {kind.name}")
        members[name] = tuple(value) if type(value) is list else value
    stored: _Stored = tuple_class(**members)
    return stored


def migrate(payload: object, version: int, migrations: Mapping[int, Migration], label: str) -> Json:
    """Return the payload in this version. Each migration leads from its number to the next; a payload without
    `schema_version` has version 0. Raise NewerStateVersion, UnreadableState.
    """
    if not isinstance(payload, dict):
        raise UnreadableState(f"{label} is not an object")
    found = payload.get("schema_version", 0)
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise UnreadableState(f"{label} has no version that is a number")
    if found > version:
        raise NewerStateVersion(f"{label} has version {found}, known is {version}")
    for step in range(found, version):
        payload = {**migrations[step](payload), "schema_version": step + 1}
    return dict(payload)


def with_zone(time: str) -> str:
    """Return an ISO 8601 time with its zone; UTC if it has none. Raise UnreadableState for another text."""
    try:
        found = datetime.fromisoformat(time)
    except ValueError:
        raise UnreadableState(f"`{time[:40]}` is not a time") from None
    return time if found.tzinfo else found.replace(tzinfo=UTC).isoformat()


def is_zoned(time: str) -> bool:
    """Return whether it is an ISO 8601 time with a zone."""
    try:
        return datetime.fromisoformat(time).tzinfo is not None
    except ValueError:
        return False
