"""A SQLite file that several processes use, that survives a kill at any time, and that is never overwritten if damaged.

The rules are in docs/reference/pack.md#stores.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.files import hint_for_write
from cogcli.base.sqlite_file import (
    bound_connection,
    find_schema_fault,
    journal_deletes_file,
    read_schema,
    schema_after,
)
from cogcli.episode.folder import Folder

if TYPE_CHECKING:
    import sqlite3

BUSY_SECONDS: Final = 5.0
"""Seconds that a writer waits for another one."""
RETRY_SECONDS: Final = 0.01
"""Seconds that a connection waits before it tries again to switch the file to a write-ahead log."""
_DAMAGE: Final = frozenset((0, 1, 11, 18, 19, 20, 26))
"""SQLite's codes for a damaged file: malformed, not a database, without the tables, types or keys of a store, or with a
value above the limit. A text that is not UTF-8 has no code."""
_SUFFIXES: Final = ("", "-wal", "-shm", "-journal")
"""The files of a database."""
_INTERRUPTED: Final = 9
"""SQLite's code for a statement that a signal ended."""
_BUSY: Final = frozenset((5, 6))
"""SQLite's codes for a database or table that another connection has locked."""


class UnreadableRow(ValueError):
    """Raised for a row that no store of this version could have written. Its file is damaged."""


class Database:
    """A database with the tables of one store. Every statement runs inside `reading` or `writing`.

    Each entry of `versions` has the statements that upgrade the tables to the next version, the first one to version 1.
    A file of an older version is copied to `NAME.v<N>` next to it, then upgraded to the last version.

    Raise UnusableEnvironment `memory.damaged` for a file that is not a database of this store, or of a newer version;
    `memory.busy` if another process writes for longer than five seconds; `env.disk` if the file cannot be written.
    """

    def __init__(
        self,
        path: Path,
        versions: Sequence[Sequence[str]],
        *,
        busy_seconds: float = BUSY_SECONDS,
        uses_write_ahead_log: bool = True,
    ) -> None:
        """Open the file. `busy_seconds` is how long a writer waits for another one."""
        self.path = path
        self._versions = versions
        self._busy_seconds = busy_seconds
        with contextlib.ExitStack() as opened, _translate_errors(path):
            self._connection = _open_connection(path, busy_seconds)
            opened.callback(self.close)
            with self.reading():
                is_current = self._require_own_schema() == len(versions)
            if uses_write_ahead_log:
                self._use_write_ahead_log()
            if not is_current:
                with self.writing() as connection:
                    self._create_or_upgrade(connection)
            opened.pop_all()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction that reads one consistent state of the file."""
        with _translate_errors(self.path):
            self._connection.execute("BEGIN")
            try:
                yield self._connection
            finally:
                self._connection.execute("ROLLBACK")

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Open a write transaction; only one can be open at a time. An error rolls back all its changes."""
        with _translate_errors(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def rewrite(self) -> None:
        """Rewrite the file without deleted data, and empty its write-ahead log, so that neither contains deleted bytes.

        No transaction of `reading` or `writing` may be open. Raise UnusableEnvironment `memory.busy` if another process
        reads.
        """
        with _translate_errors(self.path):
            self._connection.execute("PRAGMA temp_store = MEMORY")
            self._connection.execute("VACUUM")
            (is_busy, *_) = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if is_busy:
            raise _build_busy_error(self.path, "another process has been reading")

    def _use_write_ahead_log(self) -> None:
        """Switch the file to a write-ahead log.

        While another connection writes, SQLite refuses the switch at once, despite its timeout. So retry until that
        timeout has passed.
        """
        import sqlite3

        give_up_at = time.monotonic() + self._busy_seconds
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in _BUSY or time.monotonic() >= give_up_at:
                    raise
            else:
                return
            time.sleep(RETRY_SECONDS)

    def _require_own_schema(self) -> int:
        """Return the schema version of the file; 0 if it is new.

        Raise UnusableEnvironment for a newer version, and for a schema that no version of this store creates. A foreign
        table, column, index, trigger or view could run code during our statements. The file stays unchanged.
        """
        found, last = (
            self._connection.execute("PRAGMA user_version").fetchone()[0],
            len(self._versions),
        )
        if found > last:
            text = f"{self.path} is of version {found}, this is version {last}"
            raise UnusableEnvironment(
                "memory.damaged", text, hint="use the newer cogcli that wrote it"
            )
        if found < 0:
            raise _build_damage_error(self.path, f"no store has version {found}")
        written = [statement for statements in self._versions[:found] for statement in statements]
        fault = find_schema_fault(read_schema(self._connection), schema_after(tuple(written)))
        if fault:
            raise _build_damage_error(self.path, fault)
        return int(found)

    def _create_or_upgrade(self, connection: sqlite3.Connection) -> None:
        """Create the tables of a new file, or upgrade an older file, unless another process has just done so."""
        found, last = self._require_own_schema(), len(self._versions)
        if 0 < found < last:
            _copy_database(self.path, self.path.with_name(f"{self.path.name}.v{found}"))
        for statements in self._versions[found:]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {last:d}")


def _copy_database(path: Path, target: Path) -> None:
    """Write a complete copy of a database, readable only by its owner."""
    import sqlite3

    unfinished = target.with_name(f"{target.name}.part")
    for suffix in _SUFFIXES:
        unfinished.with_name(unfinished.name + suffix).unlink(missing_ok=True)
    os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with (
        contextlib.closing(sqlite3.connect(path)) as source,
        contextlib.closing(sqlite3.connect(unfinished)) as copy,
    ):
        source.backup(copy)
    unfinished.replace(target)


def _open_connection(path: Path, busy_seconds: float) -> sqlite3.Connection:
    import sqlite3

    with Folder.open(path.parent, make=True) as folder, contextlib.suppress(FileExistsError):
        os.close(folder.create(path.name, os.O_WRONLY))
    _require_plain_files(path)
    with contextlib.ExitStack() as opened:
        connection = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None)
        opened.callback(connection.close)
        _require_opened(connection, path)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")
        bound_connection(connection)  # the file may come with another user's project
        opened.pop_all()
    return connection


def _require_plain_files(path: Path) -> None:
    """Raise UnusableEnvironment if a file of the database is a link, a special file, or a dangerous journal.

    A link could lead out of the project, SQLite would block on a special file, and the journal would delete another
    file.
    """
    for suffix in _SUFFIXES:
        each = path.with_name(path.name + suffix)
        if os.path.lexists(each) and not stat.S_ISREG(each.lstat().st_mode):
            raise _build_damage_error(each, "it is not a plain file")
    if journal_deletes_file(path):
        raise _build_damage_error(
            path.with_name(f"{path.name}-journal"),
            "it names another file, which SQLite would delete",
        )


def _require_opened(connection: sqlite3.Connection, path: Path) -> None:
    """Raise UnusableEnvironment if SQLite opened a file other than `path`.

    This happens if a link was created after `path` was resolved.
    """
    (_, _, opened) = connection.execute("PRAGMA database_list").fetchone()
    if opened and opened != str(path):
        raise _build_damage_error(path, "a link leads elsewhere")


@contextlib.contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    """Raise UnusableEnvironment for errors of SQLite and of the disk in the `with` block."""
    import sqlite3

    try:
        yield
    except sqlite3.Error as error:
        code: Any = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        if code == _INTERRUPTED:
            raise KeyboardInterrupt from error
        if code in _BUSY:
            raise _build_busy_error(path, "another process has been writing") from error
        if code in _DAMAGE:
            raise _build_damage_error(path, str(error)) from error
        raise UnusableEnvironment(
            "env.disk", f"{path}: {error}", hint="make room, or the directory writable"
        ) from error
    except (UnreadableRow, orjson.JSONDecodeError, UnicodeDecodeError) as error:
        # UnicodeDecodeError comes from Python's sqlite3 module; its message holds a name from the file.
        raise _build_damage_error(path, str(error)) from error
    except OSError as error:
        text = f"{path}: {error.strerror or error}"
        raise UnusableEnvironment("env.disk", text, hint=hint_for_write(error)) from error


def _build_busy_error(path: Path, what: str) -> UnusableEnvironment:
    return UnusableEnvironment("memory.busy", f"{path}: {what} for too long", hint="try again")


def _build_damage_error(path: Path, why: str) -> UnusableEnvironment:
    hint = "move it away, or restore a copy; it is never overwritten"
    return UnusableEnvironment("memory.damaged", f"{path} cannot be read: {why}", hint=hint)
