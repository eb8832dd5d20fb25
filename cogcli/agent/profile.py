"""The profile of a user: a fold of promoted proposals (docs/reference/agent-state.md#profile). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from cogcli.agent.bounds import Note, append_newest, newest, plain_json, truncate_text, wrong_type
from cogcli.agent.context.inputs import PromotedMemory
from cogcli.agent.stored import Migration, from_payload, migrate, to_payload, with_zone
from cogcli.base.jsonvalue import NOTHING
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.value_types import Json

VERSION: Final = 1
MAX_PROFILE_ITEMS: Final = {
    "preferences": 30, "goals": 10, "expertise_areas": 15, "communication_style": 1, "projects": 10, "interests": 15,
    "constraints": 10, "success_patterns": 5, "failure_patterns": 5,
}  # fmt: skip
"""The fields that learning may change, and their maximal numbers of entries. Only code sets the others."""
CHARACTERS: Final = 200
"""The maximal length of each name and text."""
NAMED: Final = ("preferences", "projects")
"""Fields of names and values. The others are lists, except the style."""
STYLE: Final = "communication_style"


def _with_zones(profile: Json) -> Json:
    """Add the zone to the times of version 0."""
    times = ((name, profile[name]) for name in ("created_at", "last_updated") if name in profile)
    return {
        **profile,
        **{name: with_zone(time) for name, time in times if isinstance(time, str) and time},
    }


_MIGRATIONS: Final[dict[int, Migration]] = {0: _with_zones}


class UserProfile(NamedTuple):
    """The known members of a user. Times are ISO 8601 with a zone, empty before the first."""

    user_id: str
    preferences: Json = NOTHING
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

    def to_payload(self) -> Json:
        """Return the profile as JSON, with its `schema_version`."""
        return {"schema_version": VERSION, **to_payload(self)}

    @classmethod
    def from_payload(cls, payload: Json) -> UserProfile:
        """Return the inverse of `to_payload`, also for older versions. Raise UnreadableState, NewerStateVersion."""
        found = migrate(payload, VERSION, _MIGRATIONS, "profile")
        return from_payload(cls, found, "profile", "a profile names its user")


class Statement(NamedTuple):
    """One statement about a user: the value of a name, an entry of a list, or the style. `contradicts` is the value
    of the same name in the profile."""

    field: str
    value: Any
    name: str = ""
    contradicts: object = None

    def to_candidate(self, user_id: str) -> Json:
        """Return the candidate of a proposal. Entries of one list have different predicates, and contradict no
        other.
        """
        key = self.name or ("" if self.field == STYLE else str(self.value))
        predicate = f"{self.field}.{key}" if key else self.field
        return {"entity": entity_of(user_id), "predicate": predicate, "value": self.value}


def entity_of(user_id: str) -> str:
    """Return the entity of a user."""
    return f"user:{user_id}"


def statement_from(predicate: str, value: object) -> Statement | None:
    """Return the statement of a candidate, or None if it is not about a profile."""
    field, _, name = predicate.partition(".")
    if field not in MAX_PROFILE_ITEMS or (not name and field != STYLE):
        return None
    return Statement(field, value, name if field in NAMED else "")


def compare(profile: UserProfile, statement: Statement) -> Statement:
    """Return the statement with the spelling used in the profile, and the profile's value if it contradicts the
    statement.
    """
    held = getattr(profile, statement.field)
    if statement.field == STYLE:
        return _compare_value(statement, held or None)
    if statement.field in NAMED:
        name = _match_spelling(statement.name, held)
        return _compare_value(statement._replace(name=name), held.get(name))
    return statement._replace(value=_match_spelling(statement.value, held))


def find_removed_entries(profile: UserProfile, statements: Sequence[Statement]) -> list[Statement]:
    """Return a statement without a value for each entry of a profile that a synthesis leaves out: of each field that
    the statements are about, and only of those.
    """
    removed = []
    for field in dict.fromkeys(each.field for each in statements if each.field != STYLE):
        given = [each for each in statements if each.field == field]
        kept = {_fold_case(each.name if field in NAMED else each.value) for each in given}
        held = getattr(profile, field)
        gone = (name for name in held if _fold_case(name) not in kept)
        values = held if field in NAMED else {name: name for name in held}
        removed += [Statement(field, None, name, values[name]) for name in gone]
    return removed


def _match_spelling(text: str, known_texts: Iterable[str]) -> str:
    """Return the known text that is equal but for case and white space, else this one."""
    return next((each for each in known_texts if _fold_case(each) == _fold_case(text)), text)


def _compare_value(statement: Statement, known_value: object) -> Statement:
    """Return the statement with the known value if that is equal, else with it as a contradiction."""
    if known_value is not None and _fold_case(known_value) == _fold_case(statement.value):
        return statement._replace(value=known_value, contradicts=None)
    return statement._replace(contradicts=known_value)


def bound_statement(statement: Statement, subject: str, notes: list[Note]) -> Statement | None:
    """Return the statement with bounded texts, or None for an empty value. For another type, return None and add
    a note.
    """
    value = plain_json(statement.value, subject, notes)
    if isinstance(value, str):
        value = truncate_text(value, CHARACTERS, subject, notes)
    elif not (statement.field == "preferences" and isinstance(value, bool | int | float)):
        notes.append(wrong_type(subject, "text", value))
        return None
    name = truncate_text(statement.name, CHARACTERS, subject, notes)
    missing = value == "" or (statement.field in NAMED and not name)
    return None if missing else statement._replace(value=value, name=name)


def apply_statement(profile: UserProfile, statement: Statement, notes: list[Note]) -> UserProfile:
    """Return the profile with the statement as the newest entry of its field."""
    found, field = bound_statement(statement, statement.field, notes), statement.field
    if found is None:
        return profile
    held, changes = getattr(profile, field), Json()
    if field == STYLE:
        changes[field] = found.value
    elif field in NAMED:
        kept = [(name, held[name]) for name in held if _fold_case(name) != _fold_case(found.name)]
        changes[field] = dict(
            newest((*kept, (found.name, found.value)), MAX_PROFILE_ITEMS[field], field, notes)
        )
    else:
        changes[field] = newest(
            append_newest(held, found.value), MAX_PROFILE_ITEMS[field], field, notes
        )
    return profile._replace(**changes)


def fold_profile(
    user_id: str,
    memories: Iterable[PromotedMemory],
    *,
    interaction_count: int = 0,
    synthesis_version: int = 1,
) -> UserProfile:
    """Return the profile from the promoted preferences of a user, in the order of their promotion."""
    mine = [
        each
        for each in memories
        if each.entity == entity_of(user_id) and each.memory_class == "preference"
    ]
    mine.sort(key=lambda memory: (memory.promoted_at, memory.memory_id))
    profile, notes = UserProfile(user_id), list[Note]()
    for memory in mine:
        statement = statement_from(memory.predicate, memory.value)
        profile = apply_statement(profile, statement, notes) if statement else profile
    return profile._replace(
        created_at=mine[0].promoted_at if mine else "",
        last_updated=mine[-1].promoted_at if mine else "",
        interaction_count=interaction_count,
        synthesis_version=synthesis_version,
    )


def _fold_case(value: object) -> object:
    return value.strip().casefold() if isinstance(value, str) else value
