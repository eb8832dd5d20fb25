"""Learning statements about a user from interactions, by a model or by a fold
(docs/reference/agent-state.md#learning). Pure.

No function here changes a stored profile: statements become proposals, and a profile consists of promoted ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from cogcli.agent.bounds import Note, limit_notes, note, wrong_type
from cogcli.agent.profile import (
    MAX_PROFILE_ITEMS,
    NAMED,
    STYLE,
    Statement,
    UserProfile,
    apply_statement,
    bound_statement,
    compare,
    find_removed_entries,
)
from cogcli.agent.records import LearnableInteraction
from cogcli.agent.reply_text import ReplyProblem, read_object
from cogcli.agent.stored import is_zoned
from cogcli.agent.update import UpdateResult
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json

EXTRACT: Final = {
    "preferences": "preferences",
    "goals": "goals",
    "expertise": "expertise_areas",
    "communication_style": STYLE,
    "project_context": "projects",
    "success_pattern": "success_patterns",
    "failure_pattern": "failure_patterns",
}
"""The keys of an `extract` reply, and the fields of a profile that they change."""
SYNTHESIZE: Final = {name: name for name in MAX_PROFILE_ITEMS}
KEYS: Final[dict[str, Mapping[str, str]]] = {"extract": EXTRACT, "synthesize": SYNTHESIZE}
"""The keys of replies by kind of job."""
THRESHOLD: Final = 3
_MANY_ITERATIONS: Final = 3
_MANY_CALLS: Final = 2
_FREQUENT: Final = 2
"""The number of runs with an intent that make it an interest."""
_TYPES: Final[dict[str, type]] = {"an object": dict, "text": str, "a list": list}
_SINGLE: Final = ("success_pattern", "failure_pattern")


class LearnedStatements(NamedTuple):
    """The statements of a reply or a fold, and notes about dropped ones."""

    statements: tuple[Statement, ...]
    notes: tuple[Note, ...] = ()


def is_synthesis_due(
    count: int, iterations: int, calls: int, *, read_only: bool, threshold: int = THRESHOLD
) -> bool:
    """Return whether a profile is synthesized after a run, the user's interaction number `count`."""
    if read_only or count < 1:
        return False
    return count % threshold == 0 or iterations > _MANY_ITERATIONS or calls > _MANY_CALLS


def parse_learned(
    text: str | bytes, kind: str, profile: UserProfile, *, sees_all: bool = True
) -> LearnedStatements | ReplyProblem:
    """Return the statements of a model's reply to a job of this kind, compared with the profile.

    A synthesis contains each field completely, so entries missing in it are removed. Nothing is removed if the model
    did not see the whole profile (`sees_all`).
    """
    notes: list[Note] = []
    members, problem = read_object(text, notes)
    if problem is not None:
        return problem
    statements = [compare(profile, each) for each in statements_of(members, kind, notes)]
    if kind == "synthesize" and sees_all:
        statements += find_removed_entries(profile, statements)
    return LearnedStatements(tuple(statements), limit_notes(notes))


def update_from_interaction(
    profile: UserProfile, insights: Json, now: str
) -> UpdateResult[UserProfile]:
    """Return the profile after one more interaction with these insights, under the keys of EXTRACT."""
    if not is_zoned(now):
        raise ValueError(f"`{now}` is not a time with a zone")
    notes: list[Note] = []
    for statement in statements_of(insights, "extract", notes):
        profile = apply_statement(profile, statement, notes)
    counted = profile._replace(interaction_count=profile.interaction_count + 1, last_updated=now)
    return UpdateResult(counted._replace(created_at=profile.created_at or now), limit_notes(notes))


def statements_of(members: Json, kind: str, notes: list[Note]) -> list[Statement]:
    """Return the statements of a reply's members. An unknown member, or one of a wrong type, is dropped with a note."""
    keys, statements = KEYS[kind], list[Statement | None]()
    for key, value in members.items():
        if key in keys:
            entries = _named_entries(key, keys[key], value, notes)
            statements += [
                bound_statement(Statement(keys[key], item, name), key, notes)
                for name, item in entries
            ]
        else:
            notes.append(note("not_allowed", key))
    return [each for each in statements if each]


def _named_entries(
    key: str, field: str, value: object, notes: list[Note]
) -> list[tuple[str, object]]:
    """Return the entries of a member as (name, value). The name is empty for entries of lists and single texts."""
    expected = "a list"
    if field in NAMED:
        expected = "an object"
    elif key in _SINGLE or field == STYLE:
        expected = "text"
    if value is None:
        return []
    if type(value) is not _TYPES[expected]:
        notes.append(wrong_type(key, expected, value))
        return []
    match value:
        case dict():
            return list(value.items())
        case list():
            return [("", item) for item in value]
        case _:
            return [("", value)]


def fold_interactions(profile: UserProfile, interactions: Iterable[Json]) -> LearnedStatements:
    """Learn from interactions `{intent?, template?, success, code?}` without a model.

    Frequent intents become interests, finished templates patterns of success, and error codes patterns of
    failure.
    """
    rows = [read_record(LearnableInteraction, each) for each in interactions]
    intents = Counter(row.intent for row in rows)
    found = [("interests", intent) for intent, times in intents.items() if times >= _FREQUENT]
    found += [("success_patterns", row.template) for row in rows if row.success]
    found += [("failure_patterns", row.code) for row in rows if not row.success]
    notes: list[Note] = []
    statements = [
        bound_statement(Statement(field, text), field, notes)
        for field, text in dict.fromkeys(found)
    ]
    return LearnedStatements(
        tuple(compare(profile, each) for each in statements if each), limit_notes(notes)
    )
