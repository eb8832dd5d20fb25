"""What users asked and how it ended, as rows, counted once (docs/reference/user-memory.md#learning)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from cogcli.base.canonical import canonical
from cogcli.base.jsonvalue import list_of, object_of, text_of
from cogcli.declarations.pack_spec import DATA_CLASSES, MemoryLayer
from cogcli.declarations.value_types import Json
from cogcli.stores.database import UnreadableRow

if TYPE_CHECKING:
    import sqlite3


class Interaction(NamedTuple):
    """One run of an agent as its user saw it. `episode_id` and `event_id` are the evidence of what is learned of it;
    `consent`: the classes of memory that the user allowed then."""

    run_id: str
    episode_id: str
    event_id: str
    query: str
    response: str
    success: bool
    mode_used: str
    iterations: int
    calls: int
    at: str
    session_id: str = ""
    intent: str = ""
    template: str = ""
    failure_code: str = ""
    """The code of the error that ended the run."""
    consent: tuple[str, ...] = ()
    auto_promote: tuple[str, ...] = ()
    """The classes that its pack promotes by itself, from this confidence on."""
    confidence_floor: float = 0.7
    data_class: str = "internal"
    """The highest class of what its run could see."""
    withheld: str = ""
    """Why `query` holds a notice and a hash instead of the message; empty if it holds the message."""
    n: int = 0
    """Its number among those of the user, from 1; the store gives it."""

    @property
    def evidence_ref(self) -> str:
        """What a proposal names as its evidence."""
        return f"{self.episode_id}/{self.event_id}"

    @property
    def may_be_learned_from(self) -> bool:
        """Whether a model may read the interaction. Older versions stored refused messages with their text."""
        return not self.withheld and self.failure_code not in _REFUSALS

    @property
    def rules(self) -> MemoryLayer:
        """What its pack said of promoting."""
        return MemoryLayer(auto_promote=self.auto_promote, confidence_floor=self.confidence_floor)

    def to_payload(self) -> Json:
        """The interaction as JSON."""
        return {
            **self._asdict(),
            "consent": list(self.consent),
            "auto_promote": list(self.auto_promote),
        }


class ProfileCounters(NamedTuple):
    """What code counts of a user, beside what was learned. All is empty of a user who is not known."""

    created_at: str = ""
    last_updated: str = ""
    interaction_count: int = 0
    synthesis_version: int = 1


_REFUSALS: Final = ("policy.refused", "context.overpacked")
"""The codes of runs that ended before a model could read the message, or whose response a guardrail refused."""
_OF_RULES: Final = ("consent", "auto_promote", "confidence_floor", "data_class", "withheld")
_NUMBERS: Final = ("n", "success", "iterations", "calls")
_COLUMNS: Final = tuple(name for name in Interaction._fields if name not in _OF_RULES)


def insert_interaction(
    connection: sqlite3.Connection, tenant_id: str, user_id: str, made: Interaction
) -> Interaction:
    """Count an interaction, and keep it under its number."""
    connection.execute(
        "INSERT INTO profile VALUES (?, ?, ?, ?, 1, 1, 1) ON CONFLICT (tenant_id, user_id) DO UPDATE SET"
        " interaction_count = interaction_count + 1, last_updated = excluded.last_updated, version = version + 1",
        (tenant_id, user_id, made.at, made.at),
    )
    counted = made._replace(n=read_counters(connection, tenant_id, user_id).interaction_count)
    rules = canonical({name: getattr(counted, name) for name in _OF_RULES}).decode()
    values = [getattr(counted, name) for name in _COLUMNS]
    connection.execute(
        f"INSERT INTO interaction (tenant_id, user_id, {', '.join(_COLUMNS)}, rules, version)"  # noqa: S608
        f" VALUES (?, ?, {'?, ' * len(_COLUMNS)}?, 1)",
        (tenant_id, user_id, *values, rules),
    )
    return counted


def read_counters(connection: sqlite3.Connection, tenant_id: str, user_id: str) -> ProfileCounters:
    """The counters of a user."""
    row = connection.execute(
        "SELECT created_at, last_updated, interaction_count, synthesis_version FROM profile WHERE tenant_id = ? AND"
        " user_id = ?",
        (tenant_id, user_id),
    ).fetchone()
    return ProfileCounters(*row) if row else ProfileCounters()


def read_interactions(
    connection: sqlite3.Connection, tenant_id: str, user_id: str, from_n: int = 1, to_n: int = 2**53
) -> Iterator[Interaction]:
    """The interactions with these numbers, in order. Raises UnreadableRow, JSONDecodeError."""
    rows = connection.execute(
        f"SELECT {', '.join(_COLUMNS)}, rules FROM interaction WHERE tenant_id = ? AND user_id = ? AND n"  # noqa: S608
        " BETWEEN ? AND ? ORDER BY n",
        (tenant_id, user_id, from_n, to_n),
    )
    for *values, rules in rows:
        yield _interaction(dict(zip(_COLUMNS, values, strict=True)), object_of(orjson.loads(rules)))


def _interaction(members: Json, rules: Json) -> Interaction:
    if not all(
        isinstance(value, int if name in _NUMBERS else str) for name, value in members.items()
    ):
        raise UnreadableRow("a member of an interaction is of another type")
    floor = rules.get("confidence_floor")
    if not isinstance(floor, int | float) or rules.get("data_class") not in DATA_CLASSES:
        raise UnreadableRow("the rules of an interaction are none")
    return Interaction(
        **{**members, "success": bool(members["success"])},
        consent=tuple(list_of(rules.get("consent"))),
        auto_promote=tuple(list_of(rules.get("auto_promote"))),
        confidence_floor=floor,
        data_class=rules["data_class"],
        withheld=text_of(rules.get("withheld")),
    )
