"""What is learnt of a user from interactions, by a model or by a fold (docs/reference/agent-state.md#learning). Pure.

Nothing here changes a profile: statements become proposals, and a profile is what of these was promoted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from cogcli.agent.bounds import Note, bounded_notes, note, wrong_type
from cogcli.agent.profile import (
    MOST,
    NAMED,
    STYLE,
    Statement,
    UserProfile,
    apply_statement,
    clean,
    compare,
)
from cogcli.agent.reply_text import ReplyProblem, read_object
from cogcli.agent.stored import is_zoned
from cogcli.agent.update import Updated
from cogcli.base.jsonvalue import text_of

EXTRACT: Final = {
    "preferences": "preferences",
    "goals": "goals",
    "expertise": "expertise_areas",
    "communication_style": STYLE,
    "project_context": "projects",
    "success_pattern": "success_patterns",
    "failure_pattern": "failure_patterns",
}
"""The keys that are asked for after one interaction, and the fields that they feed."""
SYNTHESIZE: Final = {name: name for name in MOST}
KEYS: Final[dict[str, Mapping[str, str]]] = {"extract": EXTRACT, "synthesize": SYNTHESIZE}
"""By kind of job."""
THRESHOLD: Final = 3
_MANY_ITERATIONS: Final = 3
_MANY_CALLS: Final = 2
_FREQUENT: Final = 2
"""How often an intent is met before it counts as an interest."""
_SINGLE: Final = ("success_pattern", "failure_pattern")


class Learned(NamedTuple):
    """What a reply, or a fold, says of a user; and what of it was dropped."""

    statements: tuple[Statement, ...]
    notes: tuple[Note, ...] = ()


def is_synthesis_due(
    count: int, iterations: int, calls: int, *, read_only: bool, threshold: int = THRESHOLD
) -> bool:
    """Whether a profile is synthesized after a run, the user's interaction number `count`; never before the first."""
    if read_only or count < 1:
        return False
    return count % threshold == 0 or iterations > _MANY_ITERATIONS or calls > _MANY_CALLS


def parse_learned(text: str | bytes, kind: str, profile: UserProfile) -> Learned | ReplyProblem:
    """What a model's reply to a job of this kind says, compared with the profile."""
    notes: list[Note] = []
    found = read_object(text, notes)
    if isinstance(found, ReplyProblem):
        return found
    statements = tuple(compare(profile, each) for each in statements_of(found, kind, notes))
    return Learned(statements, bounded_notes(notes))


def update_from_interaction(
    profile: UserProfile, insights: Mapping[str, Any], now: str
) -> Updated[UserProfile]:
    """The profile after an interaction that said this, under the keys of EXTRACT: one more is counted."""
    if not is_zoned(now):
        raise ValueError(f"`{now}` is not a time with a zone")
    notes: list[Note] = []
    for statement in statements_of(insights, "extract", notes):
        profile = apply_statement(profile, statement, notes)
    counted = profile._replace(interaction_count=profile.interaction_count + 1, last_updated=now)
    return Updated(counted._replace(created_at=profile.created_at or now), bounded_notes(notes))


def statements_of(found: Mapping[str, Any], kind: str, notes: list[Note]) -> list[Statement]:
    """The statements of a reply's members. A member that is not asked for, or of a wrong type, is dropped with a note,
    its neighbours count."""
    keys, statements = KEYS[kind], list[Statement | None]()
    for key, value in found.items():
        if key in keys:
            entries = _entries(key, keys[key], value, notes)
            statements += [
                clean(Statement(keys[key], item, name), key, notes) for name, item in entries
            ]
        else:
            notes.append(note("not_allowed", key))
    return [each for each in statements if each]


def _entries(key: str, field: str, value: Any, notes: list[Note]) -> list[tuple[str, Any]]:
    """The entries of a member, each with its name, which those of lists have none of."""
    single = key in _SINGLE or field == STYLE
    if field in NAMED and isinstance(value, dict):
        return list(value.items())
    if single and isinstance(value, str):
        return [("", value)]
    if field not in NAMED and not single and isinstance(value, list):
        return [("", item) for item in value]
    if value is not None:
        notes.append(
            wrong_type(
                key, "an object" if field in NAMED else "text" if single else "a list", value
            )
        )
    return []


def fold_interactions(profile: UserProfile, interactions: Iterable[Mapping[str, Any]]) -> Learned:
    """What interactions `{intent?, template?, success, code?}` say without a model: frequent intents are interests,
    finished templates patterns of success, codes of errors those of failure."""
    rows = list(interactions)
    intents = Counter(text_of(row.get("intent")) for row in rows)
    found = [("interests", intent) for intent, times in intents.items() if times >= _FREQUENT]
    found += [
        ("success_patterns", text_of(row.get("template")))
        for row in rows
        if row.get("success") is True
    ]
    found += [
        ("failure_patterns", text_of(row.get("code")))
        for row in rows
        if row.get("success") is not True
    ]
    notes: list[Note] = []
    statements = [
        clean(Statement(field, text), field, notes) for field, text in dict.fromkeys(found)
    ]
    return Learned(
        tuple(compare(profile, each) for each in statements if each), bounded_notes(notes)
    )
