"""The interactions of users as rows, each counted once (docs/reference/user-memory.md#learning)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import orjson

from cogcli.base.canonical import canonical
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.pack_spec import DATA_CLASSES, MemoryLayer
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json, Number
from cogcli.stores.database import UnreadableRow

if TYPE_CHECKING:
    import sqlite3


class Interaction(NamedTuple):
    """One run of an agent as its user saw it. `episode_id` and `event_id` are the evidence of statements from it;
    `consent` are the classes of memory that the user allowed at that time."""

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
    """The classes that its pack promotes automatically from this confidence on."""
    confidence_floor: float = 0.7
    data_class: str = "internal"
    """The highest data class that its run could read."""
    withheld: str = ""
    """The reason why `query` is a notice and a hash instead of the message. Empty if it is the message."""
    n: int = 0
    """Its number among those of the user, from 1, which the store assigns."""

    @property
    def evidence_ref(self) -> str:
        """The reference in the evidence of a proposal."""
        return f"{self.episode_id}/{self.event_id}"

    @property
    def may_be_learned_from(self) -> bool:
        """Whether a model may read the interaction. Older versions stored refused messages with their text."""
        return not self.withheld and self.failure_code not in _REFUSALS

    @property
    def rules(self) -> MemoryLayer:
        """The rules of its pack for promotion."""
        return MemoryLayer(auto_promote=self.auto_promote, confidence_floor=self.confidence_floor)

    def to_payload(self) -> Json:
        """Return the interaction as JSON."""
        return {
            **self._asdict(),
            "consent": list(self.consent),
            "auto_promote": list(self.auto_promote),
        }


class ProfileCounters(NamedTuple):
    """The counters of a user, next to learned statements; empty for an unknown user."""

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
    """Count an interaction, and store it under its number."""
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
    """Return the counters of a user."""
    row = connection.execute(
        "SELECT created_at, last_updated, interaction_count, synthesis_version FROM profile WHERE tenant_id = ? AND"
        " user_id = ?",
        (tenant_id, user_id),
    ).fetchone()
    return ProfileCounters(*row) if row else ProfileCounters()


def read_interactions(
    connection: sqlite3.Connection, tenant_id: str, user_id: str, from_n: int = 1, to_n: int = 2**53
) -> Iterator[Interaction]:
    """Yield the interactions with these numbers, in order. Raise UnreadableRow, JSONDecodeError."""
    rows = connection.execute(
        f"SELECT {', '.join(_COLUMNS)}, rules FROM interaction WHERE tenant_id = ? AND user_id = ? AND n"  # noqa: S608
        " BETWEEN ? AND ? ORDER BY n",
        (tenant_id, user_id, from_n, to_n),
    )
    for *values, rules in rows:
        stored = read_record(_StoredRules, orjson.loads(rules))
        yield _parse_interaction(dict(zip(_COLUMNS, values, strict=True)), stored)


class _StoredRules(Record):
    """The column `rules` of an interaction."""

    consent: list[str]
    auto_promote: list[str]
    confidence_floor: Number | None = None
    data_class: str
    withheld: str


def _parse_interaction(members: Json, rules: _StoredRules) -> Interaction:
    if not all(
        isinstance(value, int if name in _NUMBERS else str) for name, value in members.items()
    ):
        raise UnreadableRow("a member of an interaction is of another type")
    if rules.confidence_floor is None or rules.data_class not in DATA_CLASSES:
        raise UnreadableRow("the rules of an interaction are none")
    return Interaction(
        **{**members, "success": bool(members["success"])},
        consent=tuple(rules.consent),
        auto_promote=tuple(rules.auto_promote),
        confidence_floor=rules.confidence_floor,
        data_class=rules.data_class,
        withheld=rules.withheld,
    )
