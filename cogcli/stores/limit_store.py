"""The counters of cumulative limits in `limits.db` (docs/reference/limits.md#store).

1. A reservation is one row, kept in the same transaction in which the counters are read. So racing processes never
   reserve more than is left.
2. Rows are added, marked as used, or released, and released only for an attempt that did not leave.
3. Each operation opens the file anew, so that a file that was removed or replaced meanwhile is noticed.
4. The file has no write-ahead log, whose index is shared memory: workers on several machines may share the file.
5. Anchors hold the id of the file: one next to it, one in the user's state directory. Without the file that they name,
   the counters are lost, and no limit is known to be kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.files import UnreadableFile, read_regular, write_atomic
from cogcli.policy.limits import CallAttempt, Counter, LimitClaim, decimal_of, sum_exactly
from cogcli.stores.database import Database, UnreadableRow

if TYPE_CHECKING:
    import sqlite3

VERSIONS: Final = (
    (
        "CREATE TABLE ledger (id TEXT NOT NULL)",
        "INSERT INTO ledger VALUES (lower(hex(randomblob(16))))",
        "CREATE TABLE reservation (number INTEGER PRIMARY KEY AUTOINCREMENT, tenant_id TEXT NOT NULL,"
        " pack_id TEXT NOT NULL, limit_id TEXT NOT NULL, owner TEXT NOT NULL, episode_id TEXT NOT NULL,"
        " run_id TEXT NOT NULL, step_id TEXT NOT NULL, attempt INTEGER NOT NULL, amount TEXT NOT NULL,"
        " reserved_at TEXT NOT NULL, state TEXT NOT NULL)",
        "CREATE INDEX reservation_of_counter ON reservation (tenant_id, pack_id, limit_id, owner, reserved_at)",
        "CREATE INDEX reservation_of_episode ON reservation (episode_id, state)",
    ),
)
BUSY_SECONDS: Final = 60.0
"""Seconds that a process waits for others: more of them than of other stores may write at once."""
_LONGEST_ID: Final = 200
_MOST_EXAMINED: Final = 100
"""The most reservations of other episodes that one denied call looks at."""
_AMOUNTS: Final = (
    "SELECT number, amount FROM reservation"
    " WHERE tenant_id = ? AND pack_id = ? AND limit_id = ? AND owner = ? AND reserved_at > ?"
)
_OPEN_OF_EPISODE: Final = (
    "SELECT number, episode_id, run_id, step_id, attempt FROM reservation"
    " WHERE episode_id = ? AND state = 'reserved'"
)
_OPEN_OF_OTHERS: Final = (
    "SELECT number, episode_id, run_id, step_id, attempt FROM reservation"
    " WHERE tenant_id = ? AND pack_id = ? AND limit_id = ? AND owner = ? AND reserved_at > ?"
    " AND state = 'reserved' AND episode_id != ? ORDER BY number LIMIT ?"
)
Choose = Callable[[Mapping[str, Decimal]], Sequence[LimitClaim]]
"""Returns the claims to reserve, given the values of the counters by id of the limit."""


class LimitStore:
    """The limit counters of a project or of the user.

    `Database` documents the errors of opening and using the file. Raise UnusableEnvironment `limits.lost` if the file
    with the counters is missing or was replaced.
    """

    def __init__(
        self,
        path: Path,
        anchors: Sequence[Path],
        is_unsent: Callable[[CallAttempt], bool] = lambda attempt: False,
    ) -> None:
        """`is_unsent` decides about attempts of other episodes, whose process may have died before sending the call."""
        self.path = path
        self._anchors = anchors
        self._is_unsent = is_unsent

    def require_sound(self) -> None:
        """Raise the errors of an unusable file before any call depends on it."""
        with self._open_database_with_anchors():
            pass

    def read_id(self) -> str:
        """Return the id of the file, which no other one has."""
        with self._open_database_with_anchors() as database, database.reading() as connection:
            return _read_id(connection)

    def read(self, counters: Sequence[Counter], now: str) -> list[Decimal]:
        """Return the value of each counter at a time."""
        with self._open_database_with_anchors() as database, database.reading() as connection:
            return [_sum_counter(connection, counter, now) for counter in counters]

    def reserve(
        self,
        attempt: CallAttempt,
        claims: Sequence[LimitClaim],
        now: str,
        choose: Choose,
        *,
        instead_of: Sequence[int] = (),
    ) -> tuple[dict[str, Decimal], tuple[int, ...]]:
        """In one transaction, read the counters of the claims, and reserve the claims that `choose` returns. Return the
        earlier values of the counters, without the reservations `instead_of`, and the numbers of the new reservations.

        If `choose` returns none, other episodes' reservations for unsent calls are released, and `choose` is called
        once more.
        """
        used, numbers = self._try_reserve(attempt, claims, now, choose, instead_of)
        if not numbers and self._release_unsent(claims, now, attempt.episode_id):
            used, numbers = self._try_reserve(attempt, claims, now, choose, instead_of)
        return used, numbers

    def _try_reserve(
        self,
        attempt: CallAttempt,
        claims: Sequence[LimitClaim],
        now: str,
        choose: Choose,
        instead_of: Sequence[int],
    ) -> tuple[dict[str, Decimal], tuple[int, ...]]:
        with self._open_database_with_anchors() as database, database.writing() as connection:
            used = {
                claim.limit.id: _sum_counter(connection, claim.counter, now, instead_of)
                for claim in claims
            }
            chosen = choose(used)
            return used, tuple(
                _insert_reservation(connection, attempt, claim, now) for claim in chosen
            )

    def mark_used(self, numbers: Sequence[int]) -> None:
        """Mark reservations as used: their calls left, or may have."""
        self._update_rows("UPDATE reservation SET state = 'used' WHERE number = ?", numbers)

    def release(self, numbers: Sequence[int]) -> None:
        """Remove reservations of calls that did not leave."""
        self._update_rows(
            "DELETE FROM reservation WHERE number = ? AND state = 'reserved'", numbers
        )

    def _update_rows(self, statement: str, numbers: Sequence[int]) -> None:
        with self._open_database_with_anchors() as database, database.writing() as connection:
            connection.executemany(statement, [(number,) for number in numbers])

    def settle_episode(self, episode_id: str, is_unsent: Callable[[CallAttempt], bool]) -> None:
        """Settle the open reservations of an episode according to its log. The caller holds the lock of the episode."""
        with self._open_database_with_anchors() as database:
            with database.reading() as connection:
                rows = connection.execute(_OPEN_OF_EPISODE, (episode_id,)).fetchall()
            found = [(row[0], is_unsent(_parse_attempt(row[1:]))) for row in rows]
        if released := [number for number, unsent in found if unsent]:
            self.release(released)
        if used := [number for number, unsent in found if not unsent]:
            self.mark_used(used)

    def _release_unsent(self, claims: Sequence[LimitClaim], now: str, episode_id: str) -> bool:
        """Release other episodes' reservations on these counters for calls that did not leave. Return whether any was
        released.
        """
        rows: dict[int, CallAttempt] = {}
        with self._open_database_with_anchors() as database, database.reading() as connection:
            for claim in claims:
                found = connection.execute(
                    _OPEN_OF_OTHERS,
                    (*_counter_key(claim.counter, now), episode_id, _MOST_EXAMINED),
                )
                rows |= {row[0]: _parse_attempt(row[1:]) for row in found}
        unsent = [number for number, attempt in rows.items() if self._is_unsent(attempt)]
        if unsent:
            # By number: what the episode reserves again when it is resumed has another one.
            self.release(unsent)
        return bool(unsent)

    # -- the file ------------------------------------------------------------------------------------------------------

    @contextmanager
    def _open_database_with_anchors(self) -> Iterator[Database]:
        """Open the file after checking that the anchors refer to it."""
        anchored = {anchor: _read_anchor(anchor) for anchor in self._anchors}
        known = [id for id in anchored.values() if id is not None]
        if known and not os.path.lexists(self.path):
            raise self._build_lost_error("is gone", anchored)
        database = Database(
            self.path, VERSIONS, busy_seconds=BUSY_SECONDS, uses_write_ahead_log=False
        )
        try:
            with database.reading() as connection:
                id = _read_id(connection)
            if any(each != id for each in known):
                raise self._build_lost_error("is another file than before", anchored)
            for anchor, each in anchored.items():
                if each is None:
                    self._write_anchor(anchor, id)
            yield database
        finally:
            database.close()

    def _write_anchor(self, anchor: Path, id: str) -> None:
        try:
            anchor.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with suppress(FileExistsError):  # another process wrote the same id
                write_atomic(anchor, f"{id}\n".encode(), replace=False)
        except OSError as error:
            text = f"{anchor}: {error.strerror or error}"
            raise UnusableEnvironment(
                "env.disk", text, hint="limits need a state directory that is writable"
            ) from error

    def _build_lost_error(
        self, what: str, anchored: Mapping[Path, str | None]
    ) -> UnusableEnvironment:
        names = " and ".join(str(path) for path, id in anchored.items() if id is not None)
        return UnusableEnvironment(
            "limits.lost",
            f"{self.path} {what}: what calls added up to is not known",
            hint=f"restore it from a copy; to begin at zero remove {names}",
        )


def _read_anchor(path: Path) -> str | None:
    """Return the id in an anchor file; None if the anchor does not exist. For an unreadable anchor, return an id that
    no file has.
    """
    if not os.path.lexists(path):
        return None
    try:
        return read_regular(path, limit=100).decode("ascii", "replace").strip()
    except (UnreadableFile, OSError):
        return ""


def _read_id(connection: sqlite3.Connection) -> str:
    rows = connection.execute("SELECT id FROM ledger").fetchall()
    if len(rows) != 1 or not isinstance(rows[0][0], str):
        raise UnreadableRow("it has no id, or more than one")
    return str(rows[0][0])


def _counter_key(counter: Counter, now: str) -> tuple[str, ...]:
    """Return the first values of a query for a counter: its identity, and the time after which its calls count."""
    since = ""
    if counter.window_s is not None:
        with suppress(OverflowError):  # before the first year: every call counts
            begin = datetime.fromisoformat(now) - timedelta(seconds=counter.window_s)
            since = begin.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return (counter.tenant_id, counter.pack_id, counter.limit_id, counter.owner, since)


def _sum_counter(
    connection: sqlite3.Connection, counter: Counter, now: str, left_out: Sequence[int] = ()
) -> Decimal:
    rows = connection.execute(_AMOUNTS, _counter_key(counter, now)).fetchall()
    try:
        return sum_exactly(decimal_of(amount) for number, amount in rows if number not in left_out)
    except ValueError as error:
        raise UnreadableRow(str(error)) from error


def _insert_reservation(
    connection: sqlite3.Connection, attempt: CallAttempt, claim: LimitClaim, now: str
) -> int:
    counter = claim.counter
    cursor = connection.execute(
        "INSERT INTO reservation (tenant_id, pack_id, limit_id, owner, episode_id, run_id, step_id, attempt, amount,"
        " reserved_at, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'reserved')",
        (*counter[:4], *attempt, str(claim.amount), now),
    )
    return int(cursor.lastrowid or 0)


def _parse_attempt(row: Sequence[object]) -> CallAttempt:
    """Return the attempt of a row. Raise UnreadableRow for values that no reservation has."""
    *texts, attempt = row
    if type(attempt) is not int or not all(
        isinstance(text, str) and len(text) <= _LONGEST_ID * 20 for text in texts
    ):
        raise UnreadableRow("a reservation names no attempt")
    episode_id, run_id, step_id = map(str, texts)
    return CallAttempt(episode_id, run_id, step_id, attempt)
