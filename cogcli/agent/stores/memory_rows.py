"""The tables of `memory.db`, and a proposal as a row of them (docs/reference/pack.md#memory)."""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from cogcli.agent.context.inputs import PromotedMemory
from cogcli.agent.stores.agent_tables import AGENT_TABLES
from cogcli.base.canonical import canonical
from cogcli.base.jsonvalue import is_list_of, walk_scalars
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.pack_spec import DATA_CLASSES, PROPOSAL_CLASSES, TIERS
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.policy.freshness import seconds_of
from cogcli.policy.proposals import MemoryProposal
from cogcli.stores.database import UnreadableRow

CODE: Final = "code"
"""The `decided_by` of automatic decisions."""
STATES: Final = ("proposed", "promoted", "rejected", "rejected_before", "superseded")
VERDICTS: Final = ("none", "conflicts", "supersedes")
VERSIONS: Final = (
    (
        "CREATE TABLE capture (seq INTEGER PRIMARY KEY, tenant_id TEXT NOT NULL, user_id TEXT NOT NULL, run_id TEXT NOT"
        " NULL, content TEXT NOT NULL, at TEXT NOT NULL, UNIQUE (run_id, content))",
        "CREATE TABLE proposal (proposal_id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, user_id TEXT NOT NULL, class"
        " TEXT NOT NULL, tier TEXT NOT NULL, entity TEXT NOT NULL, predicate TEXT NOT NULL, value TEXT NOT NULL,"
        " evidence TEXT NOT NULL, confidence REAL NOT NULL, consent INTEGER NOT NULL, contradiction TEXT NOT NULL,"
        " data_class TEXT NOT NULL, run_id TEXT NOT NULL, at TEXT NOT NULL, state TEXT NOT NULL, decided_by TEXT NOT"
        " NULL, decided_at TEXT NOT NULL, reason TEXT NOT NULL, version INTEGER NOT NULL)",
        "CREATE INDEX proposal_about ON proposal (tenant_id, user_id, entity, predicate, state)",
        "CREATE VIRTUAL TABLE words USING fts5 (proposal_id UNINDEXED, text)",
    ),
    (
        "CREATE TABLE proposed_in (proposal_id TEXT NOT NULL, run_id TEXT NOT NULL, PRIMARY KEY (proposal_id, run_id))",
        "INSERT INTO proposed_in SELECT proposal_id, run_id FROM proposal",
    ),
    AGENT_TABLES,
)
"""The statements that create each version. `proposed_in` has the runs that made a proposal."""
COLUMNS: Final = (
    "proposal_id", "tenant_id", "user_id", "class", "tier", "entity", "predicate", "value", "evidence", "confidence",
    "consent", "contradiction", "data_class", "run_id", "at", "state", "decided_by", "decided_at", "reason",
)  # fmt: skip
"""The columns of a proposal; after them its `version`."""
_ID: Final = re.compile(r"mp_[0-9a-f]{16}")
_CHOICES: Final = {
    "class": PROPOSAL_CLASSES,
    "tier": TIERS,
    "data_class": DATA_CLASSES,
    "state": STATES,
}


NO_CONTRADICTION: Final[Json] = {"existing": [], "verdict": "none"}


class StoredProposal(NamedTuple):
    """A stored proposal. `state` is one of STATES; `decided_by` and `decided_at` are empty before a decision."""

    proposal_id: str
    tenant_id: str
    user_id: str
    proposal: MemoryProposal
    state: str = "proposed"
    contradiction: Json = NO_CONTRADICTION
    decided_by: str = ""
    decided_at: str = ""
    reason: str = ""

    @property
    def verdict(self) -> str:
        """Its relation to promoted memory with the same predicate: one of VERDICTS."""
        return str(self.contradiction["verdict"])

    @property
    def stands_since(self) -> str:
        """The time of the proposal, or of a person's decision about it. A newer value may replace it."""
        by_person = self.decided_by not in ("", CODE)
        return max(self.proposal.at, self.decided_at) if by_person else self.proposal.at

    def to_payload(self) -> Json:
        """Return the proposal as JSON (docs/reference/pack.md#proposals)."""
        made = self.proposal
        return {
            "proposal_id": self.proposal_id,
            "class": made.memory_class,
            "tier": made.tier,
            "candidate": made.candidate,
            "evidence_refs": list(made.evidence_refs),
            "confidence": made.confidence,
            "consent": made.consent,
            "contradiction": self.contradiction,
            "run_id": made.run_id,
            "at": made.at,
            "state": self.state,
        }

    def to_memory(self, rank: float = 0.0) -> PromotedMemory:
        """Return the proposal as memory."""
        made = self.proposal
        return PromotedMemory(
            self.proposal_id, made.tier, made.memory_class, made.entity, made.predicate, made.value, self.decided_at,
            self.user_id, self.tenant_id, made.data_class, made.evidence_refs, rank,
        )  # fmt: skip


def row_from(stored: StoredProposal) -> tuple[object, ...]:
    """Return the values of COLUMNS."""
    made = stored.proposal
    return (
        stored.proposal_id, stored.tenant_id, stored.user_id, made.memory_class, made.tier, made.entity,
        made.predicate, canonical(made.value).decode(), canonical(list(made.evidence_refs)).decode(), made.confidence,
        made.consent, canonical(stored.contradiction).decode(), made.data_class, made.run_id, made.at, stored.state,
        stored.decided_by, stored.decided_at, stored.reason,
    )  # fmt: skip


def stored_from(row: tuple[Any, ...]) -> StoredProposal:
    """Return the proposal in the values of COLUMNS. Raise UnreadableRow or JSONDecodeError for an altered row."""
    members = dict(zip(COLUMNS, row, strict=True))
    _require_readable(members)
    names = ("tier", "entity", "predicate", "confidence", "run_id", "at", "data_class")
    proposal = MemoryProposal(
        members["class"],
        value=orjson.loads(members["value"]),
        evidence_refs=_parse_texts(orjson.loads(members["evidence"]), "evidence"),
        consent=bool(members["consent"]),
        **{name: members[name] for name in names},
    )
    contradiction = read_record(_Contradiction, orjson.loads(members["contradiction"]))
    _parse_texts(contradiction.existing, "contradiction")
    if contradiction.verdict not in VERDICTS:
        raise UnreadableRow("the contradiction of a proposal is none")
    kept = (proposal, members["state"], contradiction.json)
    decided = (members["decided_by"], members["decided_at"], members["reason"])
    return StoredProposal(
        members["proposal_id"], members["tenant_id"], members["user_id"], *kept, *decided
    )


class _Contradiction(Record):
    """The relation of a stored proposal to the promoted memory."""

    existing: object = None
    verdict: object = None


def _parse_texts(value: object, name: str) -> tuple[str, ...]:
    if is_list_of(value, str):
        return tuple(value)
    raise UnreadableRow(f"`{name}` of a proposal is not a list of texts")


def _require_readable(members: Json) -> None:
    """Raise UnreadableRow for a value of another type, or an unknown word."""
    for name, value in members.items():
        if not isinstance(value, int | float if name in ("confidence", "consent") else str):
            raise UnreadableRow(f"`{name}` of a proposal is of another type")
    if not _ID.fullmatch(members["proposal_id"]):
        raise UnreadableRow("an id of a proposal is none")
    for name, choices in _CHOICES.items():
        if members[name] not in choices:
            raise UnreadableRow(f"no `{name}` of proposals is `{members[name][:40]}`")
    try:
        if members["decided_at"]:
            seconds_of(members["decided_at"])
    except ValueError as error:
        raise UnreadableRow("the time of a decision is none") from error


def index_text_from(proposal: MemoryProposal) -> str:
    """Return the text in the index of a memory."""
    scalars = (scalar for scalar in walk_scalars(proposal.value) if scalar is not None)
    text = " ".join((proposal.entity, proposal.predicate, *map(str, scalars)))
    return text.replace("_", " ").casefold()
