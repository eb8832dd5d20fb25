"""The data of one user in `memory.db`: its export, and its deletion without a trace
(docs/reference/user-memory.md#forget)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

from cogcli.agent.stores.memory_rows import VERSIONS
from cogcli.declarations.value_types import Json
from cogcli.stores.database import Database

if TYPE_CHECKING:
    import sqlite3

_TABLES: Final = ("profile", "interaction", "session", "message", "job", "capture")
_JSON: Final = {
    "reasoning",
    "summary",
    "body",
    "transcript",
    "rules",
    "content",
    "value",
    "evidence",
    "contradiction",
}
_OF_USER: Final = "WHERE tenant_id = ? AND user_id = ?"
_PROPOSALS: Final = "FROM proposal WHERE tenant_id = ? AND (user_id = ? OR entity = 'user:' || ?)"
"""The proposals of a user, and those of other users of the tenant about that user."""


def all_rows(connection: sqlite3.Connection, tenant_id: str, user_id: str) -> dict[str, list[Json]]:
    """Return all rows of a user by table. Columns of JSON are returned as parsed values."""
    who = (tenant_id, user_id)
    found = {}
    for table in _TABLES:
        query = f"SELECT * FROM {table} {_OF_USER}"  # noqa: S608
        found[table] = _fetch_rows(connection, query, *who)
    proposals = _fetch_rows(connection, f"SELECT * {_PROPOSALS} ORDER BY at", *who, user_id)
    for row in proposals:
        runs = connection.execute(
            "SELECT run_id FROM proposed_in WHERE proposal_id = ? ORDER BY rowid",
            (row["proposal_id"],),
        )
        row["runs"] = [run for (run,) in runs]
    return {**found, "proposal": proposals}


def _fetch_rows(connection: sqlite3.Connection, query: str, *values: str) -> list[Json]:
    cursor = connection.execute(query, values)
    names = [column[0] for column in cursor.description]
    return [
        {
            name: _plain_value(name, value)
            for name, value in zip(names, row, strict=True)
            if name != "version"
        }
        for row in cursor
    ]


def _plain_value(name: str, value: object) -> object:
    return orjson.loads(value) if name in _JSON and isinstance(value, str) and value else value


def forget_in(database: Database, tenant_id: str, user_id: str) -> dict[str, int]:
    """Delete all rows of a user in one transaction, then rewrite the file, so that no byte of them is left in it or in
    its log. Return the numbers of rows by table. A repetition changes nothing."""
    counts = {}
    with database.writing() as connection:
        present = {
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        who = (tenant_id, user_id, user_id)
        for table in ("proposed_in", "words"):
            if table in present:
                connection.execute(
                    f"DELETE FROM {table} WHERE proposal_id IN (SELECT proposal_id {_PROPOSALS})",  # noqa: S608
                    who,
                )
        counts["proposal"] = connection.execute(f"DELETE {_PROPOSALS}", who).rowcount
        # Rows of an index of words are only marked as deleted.
        connection.execute("INSERT INTO words (words) VALUES ('rebuild')")
        for table in (name for name in _TABLES if name in present):
            done = connection.execute(f"DELETE FROM {table} {_OF_USER}", (tenant_id, user_id))  # noqa: S608
            counts[table] = done.rowcount
    database.rewrite()
    return counts


def forget_about(connection: sqlite3.Connection, tenant_id: str, user_id: str, entity: str) -> None:
    """Delete the proposals of a user about an entity."""
    found = "FROM proposal WHERE tenant_id = ? AND user_id = ? AND entity = ?"
    who = (tenant_id, user_id, entity)
    for table in ("proposed_in", "words"):
        query = f"DELETE FROM {table} WHERE proposal_id IN (SELECT proposal_id {found})"  # noqa: S608
        connection.execute(query, who)
    connection.execute(f"DELETE {found}", who)
    connection.execute("INSERT INTO words (words) VALUES ('rebuild')")


def forget_in_copies(path: Path, tenant_id: str, user_id: str) -> list[str]:
    """Delete a user from the copies of the file that upgrades created, and return their names. Remove unfinished
    copies.
    """
    names = []
    for copy in sorted(path.parent.glob(f"{path.name}.v*")):
        if re.fullmatch(r".*\.part(-\w+)?", copy.name):
            copy.unlink(missing_ok=True)
        elif found := re.fullmatch(r".*\.v(\d+)", copy.name):
            database = Database(copy, VERSIONS[: int(found[1])])
            try:
                forget_in(database, tenant_id, user_id)
            finally:
                database.close()
            names.append(copy.name)
    return names
