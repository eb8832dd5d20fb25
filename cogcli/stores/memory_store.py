"""PromotedMemory: captured, proposed, promoted or rejected, recalled (docs/reference/pack.md#memory)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from cogcli.context.inputs import PromotedMemory
from cogcli.core.canonical import canonical, digest_of
from cogcli.core.errors import EnvironmentRefusal
from cogcli.specs.pack import MemoryLayer
from cogcli.stores.database import Database

if TYPE_CHECKING:
    import sqlite3

FILE: Final = "memory.db"
_TABLES: Final = (
    "CREATE TABLE capture (seq INTEGER PRIMARY KEY, tenant_id TEXT NOT NULL, user_id TEXT NOT NULL, run_id TEXT NOT"
    " NULL, content TEXT NOT NULL, at TEXT NOT NULL, UNIQUE (run_id, content))",
    "CREATE TABLE proposal (proposal_id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, user_id TEXT NOT NULL, class TEXT"
    " NOT NULL, tier TEXT NOT NULL, entity TEXT NOT NULL, predicate TEXT NOT NULL, value TEXT NOT NULL, evidence TEXT"
    " NOT NULL, confidence REAL NOT NULL, consent INTEGER NOT NULL, contradiction TEXT NOT NULL, data_class TEXT NOT"
    " NULL, run_id TEXT NOT NULL, at TEXT NOT NULL, state TEXT NOT NULL, decided_by TEXT NOT NULL, decided_at TEXT NOT"
    " NULL, reason TEXT NOT NULL, version INTEGER NOT NULL)",
    "CREATE INDEX proposal_about ON proposal (tenant_id, user_id, entity, predicate, state)",
    "CREATE VIRTUAL TABLE words USING fts5 (proposal_id UNINDEXED, text)",
)
_COLUMNS: Final = (
    "proposal_id", "tenant_id", "user_id", "class", "tier", "entity", "predicate", "value", "evidence", "confidence",
    "consent", "contradiction", "data_class", "run_id", "at", "state", "decided_by", "decided_at", "reason", "version",
)  # fmt: skip
"""The columns of a proposal, in the order of its table."""
_REPEAT: Final = 0.1
"""What each repeat adds to the confidence of a proposal that a model made."""
_CODE: Final = "code"
"""Who decided what no person did."""


class MemoryProposal(NamedTuple):
    """What may be kept. `memory_class` is one of the proposal classes, `evidence_refs` are never empty."""

    memory_class: str
    tier: str
    entity: str
    predicate: str
    value: Any
    evidence_refs: tuple[str, ...]
    confidence: float
    run_id: str
    at: str
    consent: bool = False
    data_class: str = "internal"

    def id_for(self, tenant_id: str, user_id: str) -> str:
        """The id: equal for an equal class, tier, candidate and user, so that a repeat is no second row."""
        candidate = {"entity": self.entity, "predicate": self.predicate, "value": self.value}
        named = [self.memory_class, self.tier, candidate, tenant_id, user_id]
        return f"mp_{digest_of(named).removeprefix('sha256:')[:16]}"


class StoredProposal(NamedTuple):
    """A proposal as it is kept. `state`: proposed, promoted, rejected or rejected_before."""

    proposal_id: str
    tenant_id: str
    user_id: str
    proposal: MemoryProposal
    state: str
    contradiction: dict[str, Any]
    decided_by: str = ""
    decided_at: str = ""
    reason: str = ""

    def to_payload(self) -> dict[str, Any]:
        """The proposal as JSON (docs/reference/pack.md#proposals)."""
        made = self.proposal
        return {
            "proposal_id": self.proposal_id,
            "class": made.memory_class,
            "tier": made.tier,
            "candidate": {"entity": made.entity, "predicate": made.predicate, "value": made.value},
            "evidence_refs": list(made.evidence_refs),
            "confidence": made.confidence,
            "consent": made.consent,
            "contradiction": self.contradiction,
            "run_id": made.run_id,
            "at": made.at,
            "state": self.state,
        }


class MemoryStore:
    """The memory of all users of a project. See `Database` for what opening and using it raises."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path, _TABLES, version=1)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def capture(self, tenant_id: str, user_id: str, *, run_id: str, content: Any, at: str) -> None:
        """Keep raw content of a run, which is never compiled; the same content of a run once."""
        with self._database.writing() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO capture (tenant_id, user_id, run_id, content, at) VALUES (?, ?, ?, ?, ?)",
                (tenant_id, user_id, run_id, canonical(content).decode(), at),
            )

    def propose(
        self, tenant_id: str, user_id: str, proposal: MemoryProposal, layer: MemoryLayer
    ) -> StoredProposal:
        """Keep a proposal, and promote it where the pack says so: its class, confidence, consent, no contradiction."""
        id = proposal.id_for(tenant_id, user_id)
        with self._database.writing() as connection:
            earlier = _find(connection, tenant_id, id)
            if earlier is not None:
                return _repeat(connection, earlier, proposal, layer)
            contradiction = _contradiction(connection, tenant_id, user_id, proposal)
            stored = StoredProposal(id, tenant_id, user_id, proposal, "proposed", contradiction)
            _insert(connection, stored)
            return _promote_if_due(connection, stored, layer)

    def promote(self, tenant_id: str, id: str, *, by: str, at: str) -> StoredProposal:
        """Promote a proposal by hand. Raises EnvironmentRefusal `memory.consent` without its user's consent, and
        `memory.unknown`."""
        with self._database.writing() as connection:
            stored = _require(connection, tenant_id, id)
            if not stored.proposal.consent:
                text = f"`{stored.user_id}` gave no consent to `{stored.proposal.memory_class}`"
                raise EnvironmentRefusal("memory.consent", text, hint="it can be kept once the user consents")
            return _decide(connection, stored, "promoted", by, at)

    def reject(self, tenant_id: str, id: str, *, by: str, at: str, reason: str = "") -> StoredProposal:
        """Reject a proposal, or take back what was promoted: it is not recalled any more. Raises EnvironmentRefusal
        `memory.unknown`."""
        with self._database.writing() as connection:
            return _decide(connection, _require(connection, tenant_id, id), "rejected", by, at, reason)

    def proposals(
        self, tenant_id: str, *, states: tuple[str, ...], user_id: str | None = None
    ) -> list[StoredProposal]:
        """The proposals in these states, the oldest first."""
        with self._database.reading() as connection:
            marks = ", ".join("?" * len(states))
            rows = connection.execute(
                f"SELECT * FROM proposal WHERE tenant_id = ? AND (? IS NULL OR user_id = ?) AND state IN ({marks})"  # noqa: S608
                " ORDER BY at, proposal_id",
                (tenant_id, user_id, user_id, *states),
            )
            return [_stored_from(row) for row in rows]

    def recall(self, tenant_id: str, user_id: str, query: str, *, most: int) -> list[PromotedMemory]:
        """Promoted memory of a user that shares a word with the query, the nearest first."""
        words = " OR ".join(f'"{word}"' for word in dict.fromkeys(re.findall(r"\w+", query.casefold())))
        if not words:
            return []
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT proposal.*, bm25(words) FROM words JOIN proposal USING (proposal_id) WHERE words MATCH ?"
                " AND tenant_id = ? AND user_id = ? AND state = 'promoted' ORDER BY bm25(words), proposal_id LIMIT ?",
                (words, tenant_id, user_id, most),
            )
            return [_memory_from(_stored_from(row[:-1]), row[-1]) for row in rows]


def _find(connection: sqlite3.Connection, tenant_id: str, id: str) -> StoredProposal | None:
    query = "SELECT * FROM proposal WHERE tenant_id = ? AND proposal_id = ?"
    row = connection.execute(query, (tenant_id, id)).fetchone()
    return None if row is None else _stored_from(row)


def _require(connection: sqlite3.Connection, tenant_id: str, id: str) -> StoredProposal:
    stored = _find(connection, tenant_id, id)
    if stored is None:
        raise EnvironmentRefusal(
            "memory.unknown", f"no proposal `{id}`", hint="cogcli memory proposals lists them"
        )
    return stored


def _stored_from(row: tuple[Any, ...]) -> StoredProposal:
    members = dict(zip(_COLUMNS, row, strict=True))
    names = ("tier", "entity", "predicate", "confidence", "run_id", "at", "data_class")
    proposal = MemoryProposal(
        members["class"],
        value=orjson.loads(members["value"]),
        evidence_refs=tuple(orjson.loads(members["evidence"])),
        consent=bool(members["consent"]),
        **{name: members[name] for name in names},
    )
    return StoredProposal(
        members["proposal_id"],
        members["tenant_id"],
        members["user_id"],
        proposal,
        members["state"],
        orjson.loads(members["contradiction"]),
        members["decided_by"],
        members["decided_at"],
        members["reason"],
    )


def _memory_from(stored: StoredProposal, rank: float) -> PromotedMemory:
    made = stored.proposal
    return PromotedMemory(
        stored.proposal_id, made.tier, made.memory_class, made.entity, made.predicate, made.value, stored.decided_at,
        stored.user_id, stored.tenant_id, made.data_class, made.evidence_refs, rank,
    )  # fmt: skip


def _insert(connection: sqlite3.Connection, stored: StoredProposal) -> None:
    made = stored.proposal
    connection.execute(
        f"INSERT INTO proposal VALUES (?{', ?' * 19})",  # noqa: S608
        (
            stored.proposal_id, stored.tenant_id, stored.user_id, made.memory_class, made.tier, made.entity,
            made.predicate, canonical(made.value).decode(), canonical(list(made.evidence_refs)).decode(),
            made.confidence, made.consent, canonical(stored.contradiction).decode(), made.data_class, made.run_id,
            made.at, stored.state, "", "", "", 1,
        ),
    )  # fmt: skip
    text = " ".join((made.entity, made.predicate, *_texts_of(made.value)))
    connection.execute(
        "INSERT INTO words VALUES (?, ?)", (stored.proposal_id, text.replace("_", " ").casefold())
    )


def _texts_of(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _texts_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts_of(item)
    elif value is not None:
        yield str(value)


def _contradiction(
    connection: sqlite3.Connection, tenant_id: str, user_id: str, proposal: MemoryProposal
) -> dict[str, Any]:
    """Which promoted memory says something else of the same; a correction supersedes it."""
    rows = connection.execute(
        "SELECT proposal_id FROM proposal WHERE tenant_id = ? AND user_id = ? AND entity = ? AND predicate = ?"
        " AND state = 'promoted' AND value <> ? ORDER BY proposal_id",
        (tenant_id, user_id, proposal.entity, proposal.predicate, canonical(proposal.value).decode()),
    )
    existing = [id for (id,) in rows]
    if not existing:
        return {"existing": [], "verdict": "none"}
    return {
        "existing": existing,
        "verdict": "supersedes" if proposal.memory_class == "correction" else "conflicts",
    }


def _repeat(
    connection: sqlite3.Connection, earlier: StoredProposal, proposal: MemoryProposal, layer: MemoryLayer
) -> StoredProposal:
    """A proposal that was made before, with the new evidence. One that was rejected stays so."""
    if earlier.state in ("rejected", "rejected_before"):
        return _decide(
            connection, earlier, "rejected_before", earlier.decided_by, proposal.at, earlier.reason
        )
    refs = tuple(dict.fromkeys((*earlier.proposal.evidence_refs, *proposal.evidence_refs)))
    fresh = proposal.run_id != earlier.proposal.run_id
    confidence = max(proposal.confidence, earlier.proposal.confidence)
    confidence = min(1.0, round(confidence + _REPEAT, 2)) if fresh else confidence
    made = earlier.proposal._replace(
        evidence_refs=refs,
        confidence=confidence,
        consent=proposal.consent,
        run_id=proposal.run_id,
        at=proposal.at,
    )
    connection.execute(
        "UPDATE proposal SET evidence = ?, confidence = ?, consent = ?, run_id = ?, at = ?, version = version + 1"
        " WHERE proposal_id = ?",
        (canonical(list(refs)).decode(), confidence, made.consent, made.run_id, made.at, earlier.proposal_id),
    )
    return _promote_if_due(connection, earlier._replace(proposal=made), layer)


def _promote_if_due(
    connection: sqlite3.Connection, stored: StoredProposal, layer: MemoryLayer
) -> StoredProposal:
    made = stored.proposal
    due = (
        stored.state == "proposed"
        and made.memory_class in layer.auto_promote
        and made.confidence >= layer.confidence_floor
        and made.consent
        and stored.contradiction["verdict"] == "none"
    )
    return _decide(connection, stored, "promoted", _CODE, made.at) if due else stored


def _decide(
    connection: sqlite3.Connection, stored: StoredProposal, state: str, by: str, at: str, reason: str = ""
) -> StoredProposal:
    connection.execute(
        "UPDATE proposal SET state = ?, decided_by = ?, decided_at = ?, reason = ?, version = version + 1"
        " WHERE proposal_id = ?",
        (state, by, at, reason, stored.proposal_id),
    )
    if state == "promoted":
        for id in stored.contradiction["existing"] if stored.contradiction["verdict"] == "supersedes" else ():
            connection.execute(
                "UPDATE proposal SET state = 'rejected', decided_by = ?, decided_at = ?, reason = 'superseded'"
                " WHERE proposal_id = ? AND state = 'promoted'",
                (by, at, id),
            )
    return stored._replace(state=state, decided_by=by, decided_at=at, reason=reason)
