"""What is known of a user: a fold of promoted proposals (docs/reference/agent-state.md#profile). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from cogcli.agent.bounds import Note, bounded_text, newest, plain, with_newest, wrong_type
from cogcli.agent.context.inputs import PromotedMemory
from cogcli.agent.stored import (
    Kinds,
    Migration,
    UnreadableState,
    members_of,
    migrate,
    to_payload,
    zoned,
)
from cogcli.base.jsonvalue import NOTHING

VERSION: Final = 1
MOST: Final = {
    "preferences": 30, "goals": 10, "expertise_areas": 15, "communication_style": 1, "projects": 10, "interests": 15,
    "constraints": 10, "success_patterns": 5, "failure_patterns": 5,
}  # fmt: skip
"""The fields that learning may change, and how many entries each keeps; code alone sets the others."""
CHARACTERS: Final = 200
"""Of each name and text."""
NAMED: Final = ("preferences", "projects")
"""Fields of names and values; the others are lists, but for the style."""
STYLE: Final = "communication_style"
_KINDS: Final[Kinds] = {
    "user_id": "text",
    **{name: "object" if name in NAMED else "text" if name == STYLE else "texts" for name in MOST},
    "created_at": "text",
    "last_updated": "text",
    "interaction_count": "number",
    "synthesis_version": "number",
}


def _with_zones(profile: dict[str, Any]) -> dict[str, Any]:
    """Version 0 had times without a zone."""
    times = ((name, profile[name]) for name in ("created_at", "last_updated") if name in profile)
    return {
        **profile,
        **{name: zoned(time) for name, time in times if isinstance(time, str) and time},
    }


_MIGRATIONS: Final[dict[int, Migration]] = {0: _with_zones}


class UserProfile(NamedTuple):
    """The user as far as is known. Times are ISO 8601 with a zone, empty where there was none."""

    user_id: str
    preferences: dict[str, Any] = NOTHING
    goals: tuple[str, ...] = ()
    expertise_areas: tuple[str, ...] = ()
    communication_style: str = ""
    projects: dict[str, str] = NOTHING
    interests: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    success_patterns: tuple[str, ...] = ()
    failure_patterns: tuple[str, ...] = ()
    created_at: str = ""
    last_updated: str = ""
    interaction_count: int = 0
    synthesis_version: int = 1

    def to_payload(self) -> dict[str, Any]:
        """The profile as JSON, with its `schema_version`."""
        return {"schema_version": VERSION, **to_payload(self)}

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> UserProfile:
        """What `to_payload` gave, of this version or an older one. Raises UnreadableState, NewerState."""
        members = members_of(migrate(payload, VERSION, _MIGRATIONS, "profile"), _KINDS, "profile")
        if "user_id" not in members:
            raise UnreadableState("a profile names its user")
        return cls(**members)


class Statement(NamedTuple):
    """One thing about a user: the value of a name, an entry of a list, or the style. `contradicts`: what the profile
    says of the same name until now."""

    field: str
    value: Any
    name: str = ""
    contradicts: Any = None

    def to_candidate(self, user_id: str) -> dict[str, Any]:
        """The candidate of a proposal; entries of one list have predicates of their own, and contradict no other."""
        key = self.name or ("" if self.field == STYLE else str(self.value))
        predicate = f"{self.field}.{key}" if key else self.field
        return {"entity": entity_of(user_id), "predicate": predicate, "value": self.value}


def entity_of(user_id: str) -> str:
    """The entity that statements about a user are about."""
    return f"user:{user_id}"


def statement_of(predicate: str, value: Any) -> Statement | None:
    """The statement of a candidate; None for one that says nothing for a profile."""
    field, _, name = predicate.partition(".")
    if field not in MOST or (not name and field != STYLE):
        return None
    return Statement(field, value, name if field in NAMED else "")


def compare(profile: UserProfile, statement: Statement) -> Statement:
    """The statement as it is proposed: spelt as what is known already, with what it contradicts."""
    held = getattr(profile, statement.field)
    if statement.field == STYLE:
        other = held if held and _fold(held) != _fold(statement.value) else None
        return statement._replace(
            value=held if held and not other else statement.value, contradicts=other
        )
    if statement.field not in NAMED:
        known = next(
            (text for text in held if _fold(text) == _fold(statement.value)), statement.value
        )
        return statement._replace(value=known)
    name = next((name for name in held if _fold(name) == _fold(statement.name)), statement.name)
    known = held.get(name)
    same = known is not None and _fold(known) == _fold(statement.value)
    return statement._replace(
        name=name, value=known if same else statement.value, contradicts=None if same else known
    )


def clean(statement: Statement, what: str, notes: list[Note]) -> Statement | None:
    """The statement with its texts bounded; None, with a note, for a value of another type, and for an empty one."""
    value = plain(statement.value, what, notes)
    if isinstance(value, str):
        value = bounded_text(value, CHARACTERS, what, notes)
    elif not (statement.field == "preferences" and isinstance(value, bool | int | float)):
        notes.append(wrong_type(what, "text", value))
        return None
    name = bounded_text(statement.name, CHARACTERS, what, notes)
    missing = value == "" or (statement.field in NAMED and not name)
    return None if missing else statement._replace(value=value, name=name)


def apply_statement(profile: UserProfile, statement: Statement, notes: list[Note]) -> UserProfile:
    """The profile with the statement as the newest of its field."""
    found, field = clean(statement, statement.field, notes), statement.field
    if found is None:
        return profile
    held, changes = getattr(profile, field), dict[str, Any]()
    if field == STYLE:
        changes[field] = found.value
    elif field in NAMED:
        kept = [(name, held[name]) for name in held if _fold(name) != _fold(found.name)]
        changes[field] = dict(newest((*kept, (found.name, found.value)), MOST[field], field, notes))
    else:
        changes[field] = newest(with_newest(held, found.value), MOST[field], field, notes)
    return profile._replace(**changes)


def fold_profile(
    user_id: str,
    memories: Iterable[PromotedMemory],
    *,
    interaction_count: int = 0,
    synthesis_version: int = 1,
) -> UserProfile:
    """The profile that promoted memories of a user say, in the order of their promotion. Others say nothing for it."""
    mine = [
        each
        for each in memories
        if each.entity == entity_of(user_id) and each.memory_class == "preference"
    ]
    mine.sort(key=lambda memory: (memory.promoted_at, memory.memory_id))
    profile, notes = UserProfile(user_id), list[Note]()
    for memory in mine:
        statement = statement_of(memory.predicate, memory.value)
        profile = apply_statement(profile, statement, notes) if statement else profile
    return profile._replace(
        created_at=mine[0].promoted_at if mine else "",
        last_updated=mine[-1].promoted_at if mine else "",
        interaction_count=interaction_count,
        synthesis_version=synthesis_version,
    )


def _fold(value: Any) -> Any:
    return value.strip().casefold() if isinstance(value, str) else value
