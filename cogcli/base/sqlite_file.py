"""Checks SQLite files that may be foreign, before and after opening.

A file decides more than its rows. Its journal may name a file that SQLite deletes. Its schema may
compute: a generated column, a view, a trigger or an index over an expression runs inside the next
statement. So a file is used only if its schema equals one that its store writes
(docs/reference/pack.md#stores).
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import sqlite3

_JOURNAL_MAGIC: Final = bytes.fromhex("d9d505f920a163d7")
_STEPS: Final = 50_000
"""Steps of SQLite's machine between two chances for a signal: some milliseconds."""
_STATISTICS: Final = frozenset(
    (
        "create table sqlite_sequence(name,seq)",
        "create table sqlite_stat1(tbl,idx,stat)",
        "create table sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
    )
)
"""Tables of SQLite itself that a user's own tools may add, such as by ANALYZE."""


SchemaEntry = tuple[str, str, str, str]
"""A row of `sqlite_master`: type, name, table, and the SQL without its layout."""
SCHEMA_QUERY: Final = "SELECT type, name, tbl_name, sql FROM sqlite_master"
_PLAIN: Final = r"CREATE (TABLE|INDEX) (\w+) (?:ON (\w+) )?\("
"""The beginning of a statement that SQLite stores verbatim, as one row."""


def journal_deletes_file(path: str | os.PathLike[str]) -> bool:
    """Return whether the rollback journal of a database references another journal, which SQLite would delete. Stores
    of cogcli have no such journal, since SQLite writes one only for a transaction over several databases.
    """
    try:
        with open(f"{os.fspath(path)}-journal", "rb") as journal:
            size = journal.seek(0, os.SEEK_END)
            journal.seek(max(0, size - len(_JOURNAL_MAGIC)))
            return journal.read() == _JOURNAL_MAGIC
    except FileNotFoundError:
        return False


def bound_connection(connection: sqlite3.Connection) -> None:
    """Limit the possible effects of a file's schema and rows, and let signals interrupt a statement."""
    import sqlite3

    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.set_progress_handler(_handle_signals, _STEPS)
    limits = {
        sqlite3.SQLITE_LIMIT_LENGTH: 256 * 1024 * 1024,
        sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
        sqlite3.SQLITE_LIMIT_COLUMN: 200,
        sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
        sqlite3.SQLITE_LIMIT_ATTACHED: 1,  # VACUUM attaches one
        sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 10,
        sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
    }
    for limit, maximum in limits.items():
        connection.setlimit(limit, maximum)


def _handle_signals() -> int:
    """Return 0, which continues the statement.

    Python handles a pending signal whenever a Python function runs. Without one, SQLite would delay
    it.
    """
    return 0


def read_schema(connection: sqlite3.Connection) -> list[SchemaEntry]:
    """Return the schema of a database in the form of `schema_from_rows`."""
    return schema_from_rows(connection.execute(SCHEMA_QUERY).fetchall())


def schema_from_rows(rows: Iterable[Sequence[object]]) -> list[SchemaEntry]:
    """Return the entries in the rows of `SCHEMA_QUERY`.

    Indexes and statistics that SQLite creates itself are excluded.
    """
    entries = [
        (str(kind), str(name), str(table), _normalize_sql(sql)) for kind, name, table, sql in rows
    ]
    return [entry for entry in entries if not _is_of_sqlite(entry)]


def find_schema_fault(actual: Sequence[SchemaEntry], expected: Sequence[SchemaEntry]) -> str:
    """Return the first difference between a schema and the expected one, as text; empty if equal."""
    if foreign := _first_missing(actual, expected):
        same = any(entry[:2] == foreign[:2] for entry in expected)
        kind = _entry_kind(foreign)
        return (
            f"its {kind} is not the one that cogcli makes"
            if same
            else f"it has the {kind}, which cogcli never makes"
        )
    if missing := _first_missing(expected, actual):
        return f"it lacks the {_entry_kind(missing)}"
    return ""


@cache
def schema_after(statements: tuple[str, ...]) -> tuple[SchemaEntry, ...]:
    """Return the schema that statements create in an empty database, as this SQLite stores it."""
    plain = [_plain_entry(statement) for statement in statements]
    if None not in plain:
        return tuple(entry for entry in plain if entry)
    import sqlite3

    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        for statement in statements:
            connection.execute(statement)
        return tuple(read_schema(connection))
    finally:
        connection.close()


def _plain_entry(statement: str) -> SchemaEntry | None:
    match = re.match(_PLAIN, statement)
    if match is None:
        return None
    kind, name, table = match.groups()
    return (kind.lower(), name, table or name, _normalize_sql(statement))


def _first_missing(
    entries: Iterable[SchemaEntry], others: Iterable[SchemaEntry]
) -> SchemaEntry | None:
    return min(
        Counter(entries) - Counter(others),
        default=None,
        key=lambda entry: (_difference_rank(entry), entry),
    )


def _difference_rank(entry: SchemaEntry) -> int:
    """Return the sort key of a difference, the most helpful first: an index comes after its table."""
    kinds = ("trigger", "view", "table", "index")
    return kinds.index(entry[0]) if entry[0] in kinds else -1


def _entry_kind(entry: SchemaEntry) -> str:
    # The name may hold any character: it is shown as a bounded text, which every screen makes visible.
    return f"{entry[0][:20]} `{entry[1][:80]}`"


def _is_of_sqlite(entry: SchemaEntry) -> bool:
    kind, name, _, sql = entry
    if not name.startswith("sqlite_"):
        return False
    return not sql if kind == "index" else kind == "table" and sql in _STATISTICS


def _normalize_sql(sql: object) -> str:
    """Return a schema statement without its layout. SQLite versions quote and space some statements differently."""
    if not isinstance(sql, str):
        return ""
    text = re.sub(r"\s+", " ", sql.strip().lower())
    return re.sub(
        r" ?([(),]) ?",
        r"\1",
        re.sub(r"^(create (?:virtual )?table )['\"](\w+)['\"]", r"\1\2", text),
    )
