"""The compiled cache: a SQLite database of checked spec mappings, by the digest of the file's bytes.

A failure of the cache never fails a command: a damaged cache is rebuilt, an unusable one is ignored. Rows are JSON with
their own checksum, never pickled objects.
"""

from __future__ import annotations

import contextlib
import os
from functools import cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import orjson

from cogcli import __version__
from cogcli.base.jsonvalue import Json
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.schema.engine_choice import engine_key
from cogcli.declarations.spec_ceilings import DEFAULT_CEILINGS, SpecCeilings

if TYPE_CHECKING:
    import sqlite3

MAX_ROWS: Final = 20_000
"""The cache is emptied when it has more rows. Nothing else removes the entries of edited files."""
_SUM: Final = 16
_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS spec (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"
)


def cached_kind(kind: str, ceilings: SpecCeilings) -> str:
    """Return the name of a kind of file in the cache.

    A file that was parsed under another limit may have more nodes than are allowed now.
    """
    nodes = ceilings.yaml_nodes
    return kind if nodes == DEFAULT_CEILINGS.yaml_nodes else f"{kind}/{nodes}"


class CompiledFile(NamedTuple):
    """The cached result of reading a valid file: its mapping, and its warnings `[code, severity, line, ...]`."""

    raw: Json
    warnings: list[list[Any]]


class CompiledCache:
    """Reads and stores compiled files in the SQLite database at `file`, which may not exist yet.

    `flush` writes new entries in one transaction. An instance must be used by one thread only.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        # A change in the modules that read and check specs invalidates old entries.
        # The schema engine determines which patterns of a file may be run.
        self._stamp = f"{__version__}/{newest_change()}/{engine_key()}"
        self._database: sqlite3.Connection | None = None
        self._usable = True
        self._kept: dict[str, bytes] = {}

    def get(self, kind: str, digest: str) -> CompiledFile | None:
        """Return the compiled file of this kind and digest, or None if it is not cached."""
        database = self._open_database()
        if database is None:
            return None
        try:
            row = database.execute(
                "SELECT value FROM spec WHERE key = ?", (self._cache_key(kind, digest),)
            ).fetchone()
        except Exception:  # an unreadable cache is no reason to stop
            self._replace_damaged()
            return None
        return _decode_row(row[0]) if row else None

    def keep(self, kind: str, digest: str, file: CompiledFile) -> None:
        """Add a compiled file. It is written by the next `flush`."""
        value = orjson.dumps([*file])
        self._kept[self._cache_key(kind, digest)] = _value_checksum(value) + value

    def flush(self) -> None:
        """Write the new entries. Do nothing if the cache is not writable."""
        if not self._kept:
            return
        database = self._open_database(create=True)
        if database is not None:
            try:
                database.execute("BEGIN IMMEDIATE")
                database.execute(_TABLE)
                if database.execute("SELECT COUNT(*) FROM spec").fetchone()[0] > MAX_ROWS:
                    database.execute("DELETE FROM spec")
                database.executemany(
                    "INSERT OR REPLACE INTO spec VALUES (?, ?)", self._kept.items()
                )
                database.commit()
            except Exception:  # a full disk or another writer: the next command tries again
                with contextlib.suppress(Exception):
                    database.rollback()
        self._kept.clear()

    def close(self) -> None:
        """Flush and close the file."""
        self.flush()
        if self._database is not None:
            self._database.close()
            self._database = None

    def _cache_key(self, kind: str, digest: str) -> str:
        return f"{kind}:{digest}:{self._stamp}"

    def _open_database(self, *, create: bool = False) -> sqlite3.Connection | None:
        if self._database is None and self._usable and (create or os.path.exists(self._file)):
            try:
                self._database = _open_connection(self._file)
            except Exception:  # no database, no permission, no folder
                self._replace_damaged()
        return self._database

    def _replace_damaged(self) -> None:
        """Replace a damaged file with an empty one. If the file is locked, it stays unchanged."""
        if self._database is not None:
            with contextlib.suppress(Exception):
                self._database.close()
        self._database = None
        self._usable = False
        with contextlib.suppress(Exception):
            if _is_damaged(self._file):
                os.unlink(self._file)
                self._usable = True


def _open_connection(file: str) -> sqlite3.Connection:
    import sqlite3

    folder = os.path.dirname(file)
    if folder:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    os.close(os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600))
    database = sqlite3.connect(file, timeout=0.05, isolation_level=None)
    # Losing the cache in a power cut is fine, waiting for the disk is not.
    database.execute("PRAGMA synchronous=OFF")
    return database


def _is_damaged(file: str) -> bool:
    """Return whether a file is not a valid cache. A locked or unreadable file is not damaged."""
    import sqlite3

    if not os.path.isfile(file):
        return False
    probe = sqlite3.connect(file, timeout=0.05)
    try:
        sound = probe.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
        probe.execute("SELECT key, value FROM spec LIMIT 1")
    except sqlite3.OperationalError as error:
        return "no such" in str(error)
    except sqlite3.DatabaseError:
        return True
    finally:
        probe.close()
    return not sound


def _value_checksum(value: bytes) -> bytes:
    return blake2b(value, digest_size=_SUM).digest()


def _decode_row(row_value: object) -> CompiledFile | None:
    if not isinstance(row_value, bytes) or _value_checksum(row_value[_SUM:]) != row_value[:_SUM]:
        return None
    raw, warnings = orjson.loads(row_value[_SUM:])
    return CompiledFile(raw, warnings)


_RULES: Final = ("specs", "protocols", "base/yaml", "base/schema", "base/api_documents")
"""The rooms of the package whose modules decide what a file means, and what a check of it finds."""
_RULES_OF_BASE: Final = ("problems", "refs", "merge", "expressions", "expression_functions")
"""The modules of `base` that do so."""


@cache  # the imported code does not change during a process
def newest_change() -> int:
    """Return the newest modification time, in nanoseconds, of the modules that read and check specs."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    newest = max(os.stat(f"{package}/base/{name}.py").st_mtime_ns for name in _RULES_OF_BASE)
    folders = [f"{package}/{room}" for room in _RULES]
    for folder in folders:  # it grows
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    newest = max(newest, entry.stat().st_mtime_ns)
                elif entry.name != "__pycache__" and entry.is_dir():
                    folders.append(entry.path)
    return newest
