"""Memory: captured, proposed, promoted or rejected, recalled (docs/reference/pack.md#memory)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from cogcli.agent.context.inputs import PromotedMemory, User
from cogcli.agent.context.memory import fault_of
from cogcli.agent.stores.memory_rows import (
    CODE,
    COLUMNS,
    VERSIONS,
    StoredProposal,
    index_text_from,
    row_from,
    stored_from,
)
from cogcli.base.canonical import canonical
from cogcli.base.errors import UnusableEnvironment, UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.pack_spec import MemoryLayer
from cogcli.declarations.value_types import Json
from cogcli.policy.proposals import MemoryProposal, proposal_from
from cogcli.stores.database import Database

if TYPE_CHECKING:
    import sqlite3

_NAMES: Final = ", ".join(f"proposal.{name}" for name in COLUMNS)
_SELECT: Final = f"SELECT {_NAMES} FROM proposal WHERE tenant_id = ?"  # noqa: S608  # names of ours
_MATCHING: Final = (
    f"SELECT {_NAMES}, bm25(words) FROM words JOIN proposal USING (proposal_id) WHERE words MATCH ? AND"  # noqa: S608
    " tenant_id = ? AND user_id = ? AND state = 'promoted' AND value <> 'null' ORDER BY bm25(words), proposal_id"
)
_REJECTED: Final = ("rejected", "rejected_before")


class ProposalOutcome(NamedTuple):
    """The result for a proposal of a run. `outcome`: promoted, waits, rejected_before, no_consent (its class may be
    neither stored nor recalled), or too_large (it was not stored). `payload` is the stored proposal."""

    proposal_id: str
    outcome: str
    payload: Json


class Decision(NamedTuple):
    """A proposal after a person's decision, whether that changed it, and the promoted memory that contradicts it."""

    stored: StoredProposal
    is_new: bool
    existing: tuple[StoredProposal, ...] = ()


class MemoryStore:
    """The memory of all users of a project. `Database` documents the errors of opening and using it."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path, VERSIONS)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def capture(
        self, tenant_id: str, user_id: str, *, run_id: str, content: object, at: str
    ) -> None:
        """Store raw content of a run, which is never compiled. Equal content of a run is stored once."""
        with self._database.writing() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO capture (tenant_id, user_id, run_id, content, at) VALUES (?, ?, ?, ?, ?)",
                (tenant_id, user_id, run_id, canonical(content).decode(), at),
            )

    def propose_all(
        self,
        tenant_id: str,
        user_id: str,
        payloads: Iterable[Json],
        layer: MemoryLayer,
        *,
        consent: Collection[str],
        run_id: str,
        at: str,
    ) -> list[ProposalOutcome]:
        """Store the proposals of a run in one transaction, and return the outcome of each. A repeated proposal of the
        same run changes nothing. Raise ValueError for a malformed proposal."""
        made = [
            proposal_from(payload, run_id=run_id, at=at, consent=consent) for payload in payloads
        ]
        outcomes = []
        with self._database.writing() as connection:
            for proposal in made:
                stored = StoredProposal(
                    proposal.id_for(tenant_id, user_id), tenant_id, user_id, proposal
                )
                kept = (
                    stored if proposal.is_too_large else store_proposal(connection, stored, layer)
                )
                word = _outcome_word(kept, proposal)
                outcomes.append(ProposalOutcome(kept.proposal_id, word, kept.to_payload()))
        return outcomes

    def propose(
        self, tenant_id: str, user_id: str, proposal: MemoryProposal, layer: MemoryLayer
    ) -> StoredProposal:
        """Store a proposal. Promote it if class, confidence and consent allow it, and nothing contradicts it."""
        stored = StoredProposal(proposal.id_for(tenant_id, user_id), tenant_id, user_id, proposal)
        with self._database.writing() as connection:
            return store_proposal(connection, stored, layer)

    def promote(
        self,
        tenant_id: str,
        id: str,
        *,
        by: str,
        at: str,
        user_id: str = "",
        consent: Collection[str] = (),
    ) -> Decision:
        """Promote a proposal by a person's decision, despite contradictions. A promoted one does not change.

        Raise UsageError `memory.unknown`. Raise UnusableEnvironment `memory.consent` if its user consented to its
        class neither when it was made nor now.
        """
        with self._database.writing() as connection:
            stored = _require_proposal(connection, tenant_id, id, user_id)
            if stored.state == "promoted":
                return Decision(stored, False, _find_differing_memory(connection, stored))
            made = stored.proposal
            if not (made.consent or made.memory_class in consent):
                raise _no_consent(stored)
            stored = _compare_with_memory(
                connection, stored._replace(proposal=made._replace(consent=True)), at
            )
            existing = _find_differing_memory(connection, stored)
            return Decision(_write_decision(connection, stored, "promoted", by, at), True, existing)

    def reject(
        self, tenant_id: str, id: str, *, by: str, at: str, reason: str = "", user_id: str = ""
    ) -> Decision:
        """Reject a proposal. A promoted one is then no longer recalled. Raise UsageError `memory.unknown`."""
        with self._database.writing() as connection:
            stored = _require_proposal(connection, tenant_id, id, user_id)
            if stored.state in _REJECTED:
                return Decision(stored, False)
            return Decision(_write_decision(connection, stored, "rejected", by, at, reason), True)

    def proposals(
        self, tenant_id: str, *, states: Collection[str], user_id: str | None = None
    ) -> list[StoredProposal]:
        """Return the proposals in these states, the oldest first."""
        with self._database.reading() as connection:
            return read_proposals(connection, tenant_id, states=states, user_id=user_id)

    def explain(
        self, tenant_id: str, id: str, *, user_id: str = ""
    ) -> tuple[Decision, tuple[str, ...]]:
        """Return a proposal in any state, the promoted memory that contradicts it now, and the runs that made it.
        Raise UsageError `memory.unknown`.
        """
        with self._database.reading() as connection:
            stored = _require_proposal(connection, tenant_id, id, user_id)
            runs = connection.execute(
                "SELECT run_id FROM proposed_in WHERE proposal_id = ? ORDER BY rowid", (id,)
            ).fetchall()
            return Decision(stored, False, _find_differing_memory(connection, stored)), tuple(
                str(run) for (run,) in runs
            )

    def recall(
        self, tenant_id: str, user: User, query: str, layer: MemoryLayer, *, now: str, limit: int,
        session_id: str = "",
    ) -> list[PromotedMemory]:  # fmt: skip
        """Return promoted memory of a user that shares a word with the query, the nearest first.

        The name of the session counts as a word, so that the topics of the session are found. The list has at most
        `limit` memories that may be recalled, and at most `limit` that may not, whose values are None.
        """
        named = re.findall(r"\w+", f"{query} {session_id}".replace("_", " ").casefold())
        words = " OR ".join(f'"{word}"' for word in dict.fromkeys(named))
        found: list[PromotedMemory] = []
        counts: Counter[bool] = Counter()
        with self._database.reading() as connection:
            rows = connection.execute(_MATCHING, (words, tenant_id, user.user_id)) if words else ()
            for *row, rank in rows:
                memory = stored_from(tuple(row)).to_memory(rank)
                is_out = bool(fault_of(memory, layer, user, tenant_id, now, session_id))
                counts[is_out] += 1
                if counts[is_out] <= limit:
                    found.append(memory._replace(value=None) if is_out else memory)
                if counts[False] == limit:
                    break
        return found


def tenant_flag(tenant_id: str) -> str:
    """Return the flag of a tenant in a suggested command. Empty for the default one."""
    return "" if tenant_id == "local" else f" {quote(f'--tenant={tenant_id}')}"


def _outcome_word(kept: StoredProposal, made: MemoryProposal) -> str:
    """Return the outcome of a proposal that one run made."""
    if made.is_too_large:
        return "too_large"
    if kept.state in _REJECTED:
        return "rejected_before"
    if not made.consent:
        return "no_consent"
    return "promoted" if kept.state == "promoted" else "waits"


def _no_consent(stored: StoredProposal) -> UnusableEnvironment:
    made = stored.proposal.memory_class
    return UnusableEnvironment(
        "memory.consent",
        f"`{stored.user_id}` gave no consent to `{made}`",
        hint=f"once the user consents, say so with --consent {made}",
        next=(f"cogcli memory ls --why {stored.proposal_id}{tenant_flag(stored.tenant_id)}",),
    )


def _require_proposal(
    connection: sqlite3.Connection, tenant_id: str, id: str, user_id: str = ""
) -> StoredProposal:
    row = connection.execute(f"{_SELECT} AND proposal_id = ?", (tenant_id, id)).fetchone()
    stored = None if row is None else stored_from(row)
    if stored is None or (user_id and stored.user_id != user_id):
        of = f" and user `{user_id}`" if user_id else ""
        raise UsageError(
            "memory.unknown",
            f"no proposal `{id[:60]}` of tenant `{tenant_id[:60]}`{of}",
            hint="ids begin with mp_",
            next=(f"cogcli memory proposals --all{tenant_flag(tenant_id)}",),
        )
    return stored


def _find_differing_memory(
    connection: sqlite3.Connection, stored: StoredProposal
) -> tuple[StoredProposal, ...]:
    """Return the promoted memory with another value of the same predicate."""
    made = stored.proposal
    rows = connection.execute(
        f"{_SELECT} AND user_id = ? AND entity = ? AND predicate = ? AND state = 'promoted' AND value <> ?"
        " ORDER BY proposal_id",
        (
            stored.tenant_id,
            stored.user_id,
            made.entity,
            made.predicate,
            canonical(made.value).decode(),
        ),
    )
    return tuple(stored_from(row) for row in rows)


def _compare_with_memory(
    connection: sqlite3.Connection, stored: StoredProposal, at: str = ""
) -> StoredProposal:
    """Return the proposal with its contradictions now, and whether it supersedes them."""
    others = _find_differing_memory(connection, stored)
    existing = [other.proposal_id for other in others]
    known = (other.proposal._replace(at=other.stands_since) for other in others)
    verdict = stored.proposal.relation_to(known, at)
    return stored._replace(contradiction={"existing": existing, "verdict": verdict})


def read_proposals(
    connection: sqlite3.Connection,
    tenant_id: str,
    *,
    states: Collection[str],
    user_id: str | None = None,
) -> list[StoredProposal]:
    """Return the proposals in these states, the oldest first."""
    marks = ", ".join("?" * len(states))
    rows = connection.execute(
        f"{_SELECT} AND (? IS NULL OR user_id = ?) AND state IN ({marks}) ORDER BY at, proposal_id",
        (tenant_id, user_id, user_id, *states),
    )
    return [stored_from(row) for row in rows]


def store_proposal(
    connection: sqlite3.Connection, fresh: StoredProposal, layer: MemoryLayer, *, again: bool = True
) -> StoredProposal:
    """Write a proposal, and promote it if the pack allows it. An existing one gets the new evidence if `again`: a
    synthesis is not new evidence."""
    row = connection.execute(
        f"{_SELECT} AND proposal_id = ?", (fresh.tenant_id, fresh.proposal_id)
    ).fetchone()
    earlier = None if row is None else stored_from(row)
    if earlier is not None and not again:
        return earlier
    added = connection.execute(
        "INSERT OR IGNORE INTO proposed_in VALUES (?, ?)",
        (fresh.proposal_id, fresh.proposal.run_id),
    )
    if earlier is not None:
        return (
            _repeat_proposal(connection, earlier, fresh.proposal, layer)
            if added.rowcount
            else earlier
        )
    words = (fresh.proposal_id, index_text_from(fresh.proposal))
    connection.execute("INSERT INTO words VALUES (?, ?)", words)
    return _write_row(
        connection, _promote_if_due(connection, _compare_with_memory(connection, fresh), layer)
    )


def _repeat_proposal(
    connection: sqlite3.Connection,
    earlier: StoredProposal,
    proposal: MemoryProposal,
    layer: MemoryLayer,
) -> StoredProposal:
    """Return a proposal that another run repeats, with the new evidence. A rejected one becomes `rejected_before`."""
    if earlier.state in _REJECTED:
        return _write_row(connection, earlier._replace(state="rejected_before"))
    stored = earlier._replace(proposal=earlier.proposal.repeated_by(proposal))
    if stored.state == "promoted":
        return _write_row(connection, stored)
    waiting = stored._replace(state="proposed", decided_by="", decided_at="", reason="")
    return _write_row(
        connection, _promote_if_due(connection, _compare_with_memory(connection, waiting), layer)
    )


def _promote_if_due(
    connection: sqlite3.Connection, stored: StoredProposal, layer: MemoryLayer
) -> StoredProposal:
    if stored.proposal.promotion_obstacles(layer, stored.verdict):
        return stored
    at = stored.proposal.at
    if stored.verdict == "supersedes":
        _supersede_contradicted(connection, stored, CODE, at)
    return stored._replace(state="promoted", decided_by=CODE, decided_at=at)


def _write_decision(
    connection: sqlite3.Connection,
    stored: StoredProposal,
    state: str,
    by: str,
    at: str,
    reason: str = "",
) -> StoredProposal:
    """Write a person's decision. A promoted proposal may supersede the memory that it contradicts."""
    if state == "promoted" and stored.verdict == "supersedes":
        _supersede_contradicted(connection, stored, by, at)
    return _write_row(
        connection, stored._replace(state=state, decided_by=by, decided_at=at, reason=reason)
    )


def _supersede_contradicted(
    connection: sqlite3.Connection, stored: StoredProposal, by: str, at: str
) -> None:
    """Replace the contradicted memory by a proposal. The old memory stays in the history."""
    why = f"superseded by {stored.proposal_id}"
    for other in _find_differing_memory(connection, stored):
        person = "" if other.decided_by == CODE else f"; promoted by {other.decided_by} before"
        gone = other._replace(state="superseded", decided_by=by, decided_at=at, reason=why + person)
        _write_row(connection, gone)


def _write_row(connection: sqlite3.Connection, stored: StoredProposal) -> StoredProposal:
    """Write the row of a proposal, new or changed."""
    changed = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS[1:])
    connection.execute(  # names of ours
        f"INSERT INTO proposal ({', '.join(COLUMNS)}, version) VALUES ({'?, ' * len(COLUMNS)}1)"  # noqa: S608
        f" ON CONFLICT (proposal_id) DO UPDATE SET {changed}, version = version + 1",
        row_from(stored),
    )
    return stored
