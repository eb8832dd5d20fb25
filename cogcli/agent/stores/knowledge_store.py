"""Knowledge: an append-only graph of statements with their evidence (docs/reference/pack.md#knowledge)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cogcli.agent.context.inputs import Edge
from cogcli.agent.stores.knowledge_lines import KnowledgeLine, faults_of
from cogcli.base.canonical import canonical
from cogcli.base.errors import UnusableEnvironment, UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.declarations.value_types import Json
from cogcli.stores.database import Database, UnreadableRow

if TYPE_CHECKING:
    import sqlite3

PREFIX: Final = "kg_"
_MAX_EDGES: Final = 2**53
_COLUMNS: Final = (
    "tenant_id", "subject", "predicate", "object", "value_json", "observed_at", "valid_from", "valid_until",
    "evidence_ref", "trust", "data_class", "retracts",
)  # fmt: skip
_TABLES: Final = (
    "CREATE TABLE edge (seq INTEGER PRIMARY KEY, tenant_id TEXT NOT NULL, subject TEXT NOT NULL, predicate TEXT NOT"
    " NULL, object TEXT NOT NULL, value_json TEXT, observed_at TEXT NOT NULL, valid_from TEXT NOT NULL, valid_until"
    " TEXT NOT NULL, evidence_ref TEXT NOT NULL, trust TEXT NOT NULL, data_class TEXT NOT NULL, retracts INTEGER)",
    "CREATE INDEX edge_of ON edge (tenant_id, subject, seq)",
    "CREATE INDEX edge_retracts ON edge (retracts) WHERE retracts IS NOT NULL",
    "CREATE TABLE snapshot (seq INTEGER PRIMARY KEY, hash TEXT NOT NULL)",
)
_SELECT: Final = f"SELECT seq, {', '.join(_COLUMNS)} FROM edge WHERE seq <= ?"  # noqa: S608  # names of ours

_AROUND: Final = (
    _SELECT  # noqa: S608
    + " AND tenant_id = ? AND subject = ? AND retracts IS NULL AND NOT EXISTS (SELECT 1 FROM edge AS later WHERE"
    " later.retracts = edge.seq AND later.tenant_id = edge.tenant_id AND later.seq <= ?) ORDER BY seq DESC LIMIT ?"
)


class Snapshot(NamedTuple):
    """A prefix of the graph: `ref` is `kg_` with the hash of all edges up to `seq`."""

    ref: str
    seq: int


def _refusal_at(place: int, text: str) -> UsageError:
    return UsageError("input.json", text, hint="nothing was imported: name an edge that is there")


class KnowledgeStore:
    """The graph in one file. `Database` documents the errors of opening and using it."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path, (_TABLES,))

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def append(
        self,
        lines: Iterable[Json],
        refusal: Callable[[int, str], UsageError] = _refusal_at,
    ) -> Snapshot:
        """Append all checked lines in one transaction, and return the snapshot after them. For a line that retracts a
        later edge, raise the error of `refusal` for its position, from 0, and the reason: UsageError `input.json`."""
        with self._database.writing() as connection:
            before = _compute_snapshot(connection)
            seq, state = before.seq, before.ref.removeprefix(PREFIX)
            for place, line in enumerate(lines):
                seq += 1
                row = _row_from_line(line)
                if (KnowledgeLine.of(line).retracts or 0) >= seq:
                    raise refusal(
                        place,
                        f"`retracts`: {line['retracts']} is not an earlier edge, this one is {seq}",
                    )
                connection.execute(
                    f"INSERT INTO edge (seq, {', '.join(_COLUMNS)}) VALUES (?{', ?' * len(_COLUMNS)})",  # noqa: S608
                    (seq, *row),
                )
                state = _next_hash(state, (seq, *row))
            connection.execute("INSERT OR REPLACE INTO snapshot VALUES (?, ?)", (seq, state))
        return Snapshot(PREFIX + state, seq)

    def snapshot(self) -> Snapshot:
        """Return the snapshot of the whole graph in its current state, even if other tools changed its edges."""
        with self._database.reading() as connection:
            return _compute_snapshot(connection)

    def verified(self, ref: str) -> Snapshot:
        """Return the snapshot of a reference. Raise UnusableEnvironment `snapshot.mismatch` if no prefix of the
        graph has its hash: the edges were changed, or the reference is that of another graph.
        """
        with self._database.reading() as connection:
            for each in _walk_snapshots(connection):
                if each.ref == ref:
                    return each
        text = f"{self._database.path} has no state `{ref}`"
        raise UnusableEnvironment(
            "snapshot.mismatch", text, hint="run anew over what the graph holds now"
        )

    def find_edges_near(
        self, entities: Iterable[str], *, tenant_id: str, seq: int, hops: int, limit: int
    ) -> list[Edge]:
        """Return the edges within `hops` of these entities, in the order of their writing, at most `limit` per
        entity.

        Only edges of the prefix up to `seq` that are not retracted in it are included.
        """
        found: dict[int, Edge] = {}
        seen: set[str] = set()
        frontier = list(dict.fromkeys(entities))
        with self._database.reading() as connection:
            for _ in range(hops):
                seen.update(frontier)
                edges = [
                    edge
                    for entity in frontier
                    for edge in _read_edges(connection, entity, tenant_id, seq, limit)
                ]
                found.update((edge.seq, edge) for edge in edges)
                frontier = [
                    o for o in dict.fromkeys(edge.object for edge in edges) if o and o not in seen
                ]
        return [found[key] for key in sorted(found)]


def _read_edges(
    connection: sqlite3.Connection, entity: str, tenant_id: str, seq: int, limit: int
) -> Iterator[Edge]:
    rows = connection.execute(_AROUND, (seq, tenant_id, entity, seq, limit))
    for number, *row in rows:
        members = dict(zip(_COLUMNS, row, strict=True))
        value, _ = members.pop("value_json"), members.pop("retracts")
        members["value"] = None if value is None else _value_from(value)
        for fault in faults_of(members):
            raise UnreadableRow(f"edge {number}: {fault}")
        yield Edge(**members, seq=number)


def _value_from(text: object) -> object:
    try:
        return loads(text if isinstance(text, bytes) else str(text))
    except InvalidJson as error:
        raise UnreadableRow(f"a value that is none: {error}") from error


def _compute_snapshot(connection: sqlite3.Connection) -> Snapshot:
    """Return the snapshot of all imported edges, with the hash of their current state."""
    found = Snapshot(PREFIX, 0)
    for each in _walk_snapshots(connection):
        found = each
    return found


def _walk_snapshots(connection: sqlite3.Connection) -> Iterator[Snapshot]:
    """Yield the snapshot after each edge, up to the last one that an import wrote."""
    state = ""
    for row in connection.execute(f"{_SELECT} ORDER BY seq", (_read_last_seq(connection),)):
        state = _next_hash(state, row)
        yield Snapshot(PREFIX + state, row[0])


def _read_last_seq(connection: sqlite3.Connection) -> int:
    """Return the number of the last edge that an import wrote."""
    found = connection.execute(
        "SELECT seq, hash FROM snapshot ORDER BY seq DESC LIMIT 1"
    ).fetchone()
    if found is None:
        return 0
    seq: object = found[0]
    if not (isinstance(seq, int) and 0 < seq < _MAX_EDGES and isinstance(found[1], str)):
        raise UnreadableRow("a snapshot that is none")
    return seq


def _next_hash(state: str, row: tuple[object, ...]) -> str:
    try:
        return sha256(state.encode() + canonical(list(row))).hexdigest()
    except TypeError as error:
        raise UnreadableRow("an edge with what is not text") from error


def _row_from_line(line: Json) -> tuple[object, ...]:
    value = KnowledgeLine.of(line).value
    defaults = {
        "object": "",
        "valid_from": "",
        "valid_until": "",
        "tenant_id": "local",
        "data_class": "internal",
    }
    members = {**defaults, "trust": "untrusted", "retracts": None, **line}
    members["value_json"] = None if value is None else canonical(value).decode()
    return tuple(members[column] for column in _COLUMNS)
