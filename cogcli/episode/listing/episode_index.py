"""The index of a runs directory: `.index.db`, a cache of rows that only readers write and any user may delete.

1. Nothing here fails a command. A damaged or foreign database is removed; one that is locked, read-only or
   inaccessible is not used. After `IndexUnavailable` the other rows come from the directories.
2. A row is valid while its `mark`, the inodes and times of the episode, is unchanged. Unsealed episodes have no mark:
   they are read every time.
3. `whole` names the state of the runs directory at which every episode in it had its row, and the number of episodes.
4. No second file appears next to it, since the runs directory would look changed.
5. Each row carries a MAC with the user's key, so that no other user can make a valid row. The index of another user
   is neither used nor removed.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import orjson

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.sqlite_file import (
    SCHEMA_QUERY,
    bound_connection,
    find_schema_fault,
    journal_deletes_file,
    schema_after,
    schema_from_rows,
)
from cogcli.declarations.value_types import Json
from cogcli.episode.layout import is_episode_id, is_own_id
from cogcli.episode.listing.episode_row import EpisodeFilter, EpisodeRow

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

FILE: Final = ".index.db"
_JOURNAL: Final = f"{FILE}-journal"
_PAGE: Final = 100
_PERSON: Final = b"cogcli/index/1"
_TABLES: Final = (
    "CREATE TABLE episode (own INTEGER NOT NULL, id TEXT NOT NULL, open INTEGER NOT NULL, skill TEXT, status TEXT,"
    " started_at TEXT, duration_ms, trace_id TEXT, run_id TEXT, task TEXT, tags TEXT, log_id TEXT, decision TEXT,"
    " pack TEXT, intent TEXT, user TEXT, fault TEXT, mark TEXT NOT NULL,"
    " sum INTEGER NOT NULL, PRIMARY KEY (own, id)) WITHOUT ROWID",
    "CREATE TABLE whole (at TEXT NOT NULL, episodes INTEGER NOT NULL)",
)
_ID_INDEX: Final = "CREATE INDEX episode_id ON episode (id)"
"""Ids are counted and listed without reading the rows. An index of an older version lacks it."""
_SCHEMA: Final = (*_TABLES, _ID_INDEX)
_FIND: Final = """
SELECT * FROM episode WHERE (own, id) < (:own, :id)
AND (:skill IS NULL OR skill = :skill OR (open AND skill IS NULL))
AND (:outcomes IS NULL OR open OR fault <> '' OR instr(:outcomes, ' ' || status || ' '))
AND (:trace IS NULL OR trace_id = :trace OR (:short AND substr(trace_id, 1, 8) = :trace) OR (open AND trace_id IS NULL))
AND (:since IS NULL OR started_at >= :since OR (open AND started_at IS NULL))
AND (:tag IS NULL OR open OR instr(tags, :tag))
ORDER BY own DESC, id DESC LIMIT :page
"""
_BEGINNING: Final = """
SELECT id FROM episode WHERE substr(id, 1, :size) = :beginning ORDER BY own DESC, id DESC LIMIT :limit OFFSET :skip
"""
_JOURNAL_STAYS: Final = "PRAGMA journal_mode=TRUNCATE"
_DAMAGED: Final = (1, 11, 20, 26)
"""SQLite's codes for: no such table, malformed, type mismatch, no database."""

IndexPosition = tuple[int, str]
"""The place of an episode in the order: ids of our own first, each kind by id."""
FIRST: Final[IndexPosition] = (2, "")


def place_of(episode_id: str) -> IndexPosition:
    """Return the sort position of an episode. Newer episodes have greater positions."""
    return (1 if is_own_id(episode_id) else 0, episode_id)


class IndexUnavailable(Exception):
    """The index can no longer be used in this process."""


class IndexedRow(NamedTuple):
    """A row of the index; `row` is None for a directory that could not be read."""

    id: str
    row: EpisodeRow | None
    mark: str


class Index:
    """The index of one runs directory. One instance belongs to one thread; close it."""

    def __init__(
        self, runs_dir: Path | str, owner: bytes | None = None, *, shared: bool = False
    ) -> None:
        """Prepare the index of a runs directory. `owner` is the user's key. `shared`: its group may see the index."""
        self._runs_dir = runs_dir
        self._mode = 0o660 if shared else 0o600
        self._owner = owner or b""
        self._database: sqlite3.Connection | None = None
        self._kept: dict[str, tuple[object, ...]] = {}

    def _path_of(self, name: str) -> str:
        return os.path.join(self._runs_dir, name)

    def open(self) -> bool:
        """Return whether the index exists and can be read."""
        # Both must be regular files: a link would lead out of the runs directory.
        if _is_own_file(self._path_of(FILE)) and _is_file(self._path_of(_JOURNAL)) is not False:
            self._open_database()
        if self._database is None:
            return False
        with contextlib.suppress(IndexUnavailable):
            found = schema_from_rows(self._fetch_rows(SCHEMA_QUERY))
            if not find_schema_fault(found, schema_after(_SCHEMA)):
                return True
            if not find_schema_fault(found, schema_after(_TABLES)):
                return self._add_id_index()
            self._remove_files()
        return False

    def _add_id_index(self) -> bool:
        """Add the index of ids, and return whether the database can still be read. Without permission to write, every
        row is read instead.
        """
        try:
            for sql in (_JOURNAL_STAYS, _ID_INDEX):
                self._fetch_rows(sql)
        except IndexUnavailable:
            if _is_file(self._path_of(FILE)):
                self._open_database()
        return self._database is not None

    def create(self) -> bool:
        """Create an empty index, unless one is in use. Return whether there is one now."""
        if self._database is not None:
            return True
        path = self._path_of(FILE)
        with contextlib.suppress(OSError):
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                if self._mode != 0o600:
                    os.fchmod(handle, self._mode)
            finally:
                os.close(handle)
            self._open_database()
        with contextlib.suppress(IndexUnavailable):
            for sql in (_JOURNAL_STAYS, "BEGIN IMMEDIATE", *_SCHEMA, "COMMIT"):
                self._fetch_rows(sql)
            return True
        return False

    def _open_database(self) -> None:
        with contextlib.suppress(Exception):  # no such module, no permission
            import sqlite3

            if journal_deletes_file(self._path_of(FILE)):
                self._remove_files()
                return
            self._database = sqlite3.connect(
                self._path_of(FILE), timeout=0.25, isolation_level=None
            )
            bound_connection(self._database)
            # Losing a cache in a power cut is fine, waiting for the disk is not.
            self._database.execute("PRAGMA synchronous=OFF")

    def all_ids(self) -> set[str]:
        """Return the ids of all episodes that have a row. Raise IndexUnavailable."""
        # One text is read in a ninth of the time of as many rows. No id has a line break.
        ((ids,),) = self._fetch_rows("SELECT group_concat(id, char(10)) FROM episode")
        return set((ids or "").split("\n")) - {""}

    def ids(self, beginning: str, skip: int, limit: int) -> list[str]:
        """Return the ids with this prefix, in order. Raise IndexUnavailable."""
        values = {"beginning": beginning, "size": len(beginning), "skip": skip, "limit": limit}
        return [id for (id,) in self._fetch_rows(_BEGINNING, values)]

    def is_whole(self, at: str) -> bool:
        """Return whether the directory is unchanged since every episode had its row. Raise IndexUnavailable."""
        rows = self._fetch_rows("SELECT at, episodes FROM whole") if at else []
        return bool(rows) and rows[0] == (at, self.count())

    def count(self) -> int:
        """Return the number of episodes that have a row. Raise IndexUnavailable."""
        count: int = self._fetch_rows("SELECT count(*) FROM episode")[0][0]
        return count

    def rows(self, wanted: EpisodeFilter) -> Iterator[IndexedRow]:
        """Yield the rows that may pass the filter, newest first, a page at a time. Raise IndexUnavailable."""
        tag = orjson.dumps(wanted.tags[0][1]).decode()[1:-1] if wanted.tags else None
        values = {
            "skill": wanted.skill, "trace": wanted.trace_id, "short": wanted.may_be_short_trace_id,
            "since": wanted.since, "tag": tag, "page": _PAGE,
            "outcomes": f" {' '.join(wanted.outcomes)} " if wanted.outcomes else None,
        }  # fmt: skip
        place = FIRST
        while found := self._fetch_rows(_FIND, {**values, "own": place[0], "id": place[1]}):
            try:
                page = [_decode_row(self._runs_dir, row, self._owner) for row in found]
            except (ValueError, TypeError) as error:
                self._give_up(error)
                raise IndexUnavailable from error
            yield from page
            place = place_of(page[-1].id)

    def _fetch_rows(self, sql: str, values: Json | None = None) -> list[Any]:
        if self._database is None:
            raise IndexUnavailable
        try:
            return self._database.execute(sql, values or {}).fetchall()
        except Exception as error:
            self._give_up(error)
            raise IndexUnavailable from error

    def keep(self, seen: IndexedRow, before: IndexedRow | None) -> None:
        """Add a row to those that `write` stores, unless it is unchanged."""
        if seen == before:
            return
        try:
            self._kept[seen.id] = _encode_row(seen, self._owner)
        except (
            ValueError,
            TypeError,
        ):  # values that no database takes: read the episode every time
            self._kept[seen.id] = _encode_row(IndexedRow(seen.id, None, ""), self._owner)

    @property
    def waiting(self) -> int:
        """The number of unwritten rows."""
        return len(self._kept)

    def write(self, *, gone: Iterable[str] = (), whole: str = "") -> None:
        """Write the kept rows in one transaction, if that is possible now. `whole` as for `is_whole`."""
        rows, self._kept = list(self._kept.values()), {}
        database = self._database
        if database is None:
            return
        try:
            database.execute(_JOURNAL_STAYS)
            database.execute("BEGIN IMMEDIATE")
            database.executemany(
                "INSERT OR REPLACE INTO episode VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                rows,
            )
            database.executemany(
                "DELETE FROM episode WHERE own = ? AND id = ?", map(place_of, gone)
            )
            database.execute("DELETE FROM whole")
            if whole:
                database.execute("INSERT INTO whole VALUES (?, ?)", (whole, self.count()))
            database.commit()
        except Exception as error:  # a full disk, another writer: next time
            with contextlib.suppress(Exception):
                database.rollback()
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        """Stop using the database. If it is damaged, and not only locked, it is removed."""
        code = getattr(error, "sqlite_errorcode", _DAMAGED[0])
        if code & 0xFF in _DAMAGED:
            self._remove_files()
        else:
            self.close()

    def _remove_files(self) -> None:
        self.close()
        # The journal first: left alone, it would be applied to the next database.
        for name in (_JOURNAL, FILE):
            with contextlib.suppress(OSError):
                os.unlink(self._path_of(name))

    def close(self) -> None:
        """Close the database. A second call does nothing."""
        database, self._database = self._database, None
        if database is not None:
            with contextlib.suppress(Exception):
                database.close()


def _is_own_file(path: str) -> bool:
    """Return whether this is a regular file of this user."""
    if not hasattr(os, "geteuid"):
        return bool(_is_file(path))
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def _is_file(path: str) -> bool | None:
    """Return whether this is a regular file, or None if it does not exist."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError as error:
        return None if isinstance(error, FileNotFoundError) else False


def _row_mac(values: Sequence[object], owner: bytes) -> int:
    """Return the message authentication code of a row: 7 bytes, as an integer for SQLite."""
    mac = blake2b(orjson.dumps(values), key=owner, digest_size=7, person=_PERSON)
    return int.from_bytes(mac.digest(), "big")


def _encode_row(seen: IndexedRow, owner: bytes) -> tuple[object, ...]:
    """Return the row of an episode. Raise ValueError or TypeError for values that no row takes."""
    row = seen.row
    facts: tuple[object, ...] = (1, *[None] * 14)
    if row is not None:
        if type(row.duration_ms) is int and abs(row.duration_ms) >= 2**53:
            raise ValueError("no such duration")
        _, _, *plain, tags, sealed, log_id, decision, pack, intent, user, _, _, fault = row
        facts = (
            int(not sealed), *plain, orjson.dumps(tags).decode(), log_id, decision, pack, intent, user, fault,
        )  # fmt: skip
    values = (*place_of(seen.id), *facts, seen.mark)
    return (*values, _row_mac(values, owner))


def _decode_row(runs_dir: Path | str, values: tuple[Any, ...], owner: bytes) -> IndexedRow:
    """Decode a row. Raise ValueError or TypeError for an altered row."""
    *written, sum = values
    if _row_mac(written, owner) != sum or not is_episode_id(written[1]):
        raise ValueError("the row is not what was written")
    (
        _,
        id,
        is_open,
        skill,
        status,
        *facts,
        tags,
        log_id,
        decision,
        pack,
        intent,
        user,
        fault,
        mark,
    ) = written
    if status is None:
        return IndexedRow(id, None, mark)
    members = (
        id,
        os.path.join(runs_dir, id),
        skill,
        status,
        *facts,
        orjson.loads(tags),
        not is_open,
        log_id,
    )
    return IndexedRow(
        id, EpisodeRow._make((*members, decision, pack, intent, user, None, None, fault)), mark
    )
