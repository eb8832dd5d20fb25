"""Conversations as rows: their messages, and the state for the next message
(docs/reference/user-memory.md#sessions)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from cogcli.agent.state import VERSION, AgentState, ReasoningContext
from cogcli.agent.stored import UnreadableState
from cogcli.base.canonical import compact
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.value_types import Json
from cogcli.stores.database import UnreadableRow

if TYPE_CHECKING:
    import sqlite3

_OF_SESSION: Final = "tenant_id = ? AND user_id = ? AND session_id = ?"
_STATE: Final = ("mode", "reasoning", "last_run_failed", "summary", "last_updated")
_UPDATE: Final = f"UPDATE session SET {' = ?, '.join(_STATE)} = ?, version = version + 1"  # noqa: S608  # names of ours
_INSERT: Final = (
    f"INSERT OR IGNORE INTO session ({', '.join(_STATE)}, tenant_id, user_id, session_id, created_at, version)"  # noqa: S608
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 1)"
)
_LIST: Final = (
    "SELECT session_id, tenant_id, user_id, mode, last_run_failed, created_at, last_updated, (SELECT count(*) FROM"
    " message WHERE message.tenant_id = session.tenant_id AND message.user_id = session.user_id AND"
    " message.session_id = session.session_id) FROM session WHERE (? IS NULL OR tenant_id = ?)"
    " AND (? IS NULL OR user_id = ?) ORDER BY last_updated DESC, tenant_id, user_id, session_id"
)


class VersionChanged(Exception):
    """A row has another version than the one that was read."""


class SessionSnapshot(NamedTuple):
    """A conversation when it was read. Messages are `{role, content, timestamp}`, all of them, the oldest first;
    `summary` replaces the oldest of them in a context. `mode` is empty before the first run."""

    session_id: str
    messages: tuple[Json, ...] = ()
    mode: str = ""
    reasoning: ReasoningContext = ReasoningContext()
    last_run_failed: bool = False
    summary: Json | None = None
    kept: int = 0
    """The number of stored messages."""
    version: int = 0
    """The version of the stored row; 0 without one."""

    def to_payload(self) -> Json:
        """Return the conversation as JSON; `from_payload` is its inverse."""
        return {
            **self._asdict(),
            "schema_version": VERSION,
            "messages": list(self.messages),
            "reasoning": self.reasoning.to_payload(),
        }

    @classmethod
    def from_payload(cls, payload: Json) -> SessionSnapshot:
        """Return the inverse of `to_payload`, also for older versions. Raise UnreadableState, NewerStateVersion."""
        members = {name: payload[name] for name in cls._fields if name in payload}
        reasoning = _reasoning_from(
            {name: payload.get(name) for name in ("schema_version", "reasoning")}
        )
        return cls(**{**members, "messages": tuple(payload["messages"]), "reasoning": reasoning})

    def rebased_on(self, current: SessionSnapshot) -> SessionSnapshot:
        """Return the messages of this run after the ones that are stored now. A forgotten conversation is not
        restored.
        """
        fresh = current.messages + self.messages[self.kept :]
        made = self._replace(messages=fresh, kept=current.kept, version=current.version)
        return (
            made if current.version else made._replace(reasoning=ReasoningContext(), summary=None)
        )


def read_session(
    connection: sqlite3.Connection, tenant_id: str, user_id: str, session_id: str
) -> SessionSnapshot:
    """Return a conversation; an empty one if none is stored. Raise UnreadableRow, JSONDecodeError."""
    key = (tenant_id, user_id, session_id)
    row = connection.execute(
        f"SELECT mode, reasoning, last_run_failed, summary, version FROM session WHERE {_OF_SESSION}",  # noqa: S608
        key,
    ).fetchone()
    if row is None:
        return SessionSnapshot(session_id)
    bodies = connection.execute(f"SELECT body FROM message WHERE {_OF_SESSION} ORDER BY n", key)  # noqa: S608
    messages = tuple(_parse_object(body) for (body,) in bodies)
    mode, reasoning, failed, summary, version = row
    try:
        thought = _reasoning_from(_parse_object(reasoning))
    except UnreadableState as error:
        raise UnreadableRow(f"a session: {error}") from error
    kept = _parse_object(summary) if summary else None
    return SessionSnapshot(
        session_id, messages, mode, thought, bool(failed), kept, len(messages), version
    )


def read_messages(
    connection: sqlite3.Connection, tenant_id: str, user_id: str, session_id: str
) -> list[Json]:
    """Return the messages of a conversation with their numbers, runs and episodes."""
    rows = connection.execute(
        f"SELECT n, run_id, episode_id, body FROM message WHERE {_OF_SESSION} ORDER BY n",  # noqa: S608
        (tenant_id, user_id, session_id),
    )
    return [
        {**_parse_object(body), "n": n, "run_id": run, "episode_id": episode}
        for n, run, episode, body in rows
    ]


def write_session(
    connection: sqlite3.Connection,
    tenant_id: str,
    user_id: str,
    session: SessionSnapshot,
    *,
    run_id: str,
    episode_id: str,
    at: str,
) -> None:
    """Store a conversation with the new messages of a run. Raise VersionChanged if the stored version
    is not the one that was read."""
    key = (tenant_id, user_id, session.session_id)
    reasoning = {"schema_version": VERSION, "reasoning": session.reasoning.to_payload()}
    summary = "" if session.summary is None else compact(session.summary).decode()
    values = (session.mode, compact(reasoning).decode(), session.last_run_failed, summary, at)
    if session.version:
        done = connection.execute(
            f"{_UPDATE} WHERE {_OF_SESSION} AND version = ?",
            (*values, *key, session.version),
        )
    else:
        done = connection.execute(
            _INSERT,
            (*values, *key, at),
        )
    if not done.rowcount:
        raise VersionChanged
    for number, message in enumerate(session.messages[session.kept :], session.kept + 1):
        connection.execute(
            "INSERT INTO message VALUES (?, ?, ?, ?, ?, ?, ?, 1)",
            (*key, number, run_id, episode_id, compact(message).decode()),
        )


def list_sessions(
    connection: sqlite3.Connection, tenant_id: str | None = None, user_id: str | None = None
) -> list[Json]:
    """Return the conversations of one tenant and user, or of all, the last used first."""
    rows = connection.execute(_LIST, (tenant_id, tenant_id, user_id, user_id))
    names = (
        "session_id",
        "tenant_id",
        "user_id",
        "mode",
        "last_run_failed",
        "created_at",
        "last_updated",
        "messages",
    )
    found = [dict(zip(names, row, strict=True)) for row in rows]
    return [{**row, "last_run_failed": bool(row["last_run_failed"])} for row in found]


def delete_session(
    connection: sqlite3.Connection, tenant_id: str, user_id: str, session_id: str
) -> int:
    """Delete a conversation, and return the number of its messages; -1 if it does not exist."""
    key = (tenant_id, user_id, session_id)
    messages = connection.execute(f"DELETE FROM message WHERE {_OF_SESSION}", key).rowcount  # noqa: S608
    found = connection.execute(f"DELETE FROM session WHERE {_OF_SESSION}", key).rowcount  # noqa: S608
    return messages if found else -1


def _reasoning_from(stored: Json) -> ReasoningContext:
    """Return the reasoning of a stored conversation. Raise UnreadableState, NewerStateVersion."""
    state = {**stored, "execution": {"query": ""}, "user_profile": None}
    return AgentState.from_payload(state).reasoning


def _parse_object(text: object) -> Json:
    value = orjson.loads(text) if isinstance(text, str) else None
    if not isinstance(value, dict):
        raise UnreadableRow("a member of a session is not an object")
    return value
