"""PromotedMemory on disk: proposals and what becomes of them (docs/reference/pack.md#memory)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cogcli.core.errors import EnvironmentRefusal
from cogcli.specs.pack import MemoryLayer
from cogcli.stores.memory_store import MemoryProposal, MemoryStore, StoredProposal

NOW, LATER = "2026-05-04T09:30:00Z", "2026-05-05T09:30:00Z"
LAYER = MemoryLayer(auto_promote=("evidence_link",), confidence_floor=0.7)


def _proposal(**members: Any) -> MemoryProposal:
    given: dict[str, Any] = {"value": "email", "consent": True, **members}
    return MemoryProposal(
        "preference", "durable", "user:cust_7", "contact_by", "", ("ev/1",), 0.5, "run_1", NOW
    )._replace(**given)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    opened = MemoryStore(tmp_path / "memory.db")
    yield opened
    opened.close()


def _propose(store: MemoryStore, user: str = "cust_7", **members: Any) -> StoredProposal:
    return store.propose("acme", user, _proposal(**members), LAYER)


def _recalled(store: MemoryStore, query: str = "contact email", user: str = "cust_7") -> list[Any]:
    return [memory.value for memory in store.recall("acme", user, query, most=8)]


def test_what_is_promoted_by_hand_is_recalled_and_what_is_rejected_is_not(store: MemoryStore) -> None:
    made = _propose(store)
    assert (made.state, _recalled(store)) == ("proposed", [])
    assert store.promote("acme", made.proposal_id, by="ann", at=LATER).decided_by == "ann"
    assert _recalled(store) == ["email"]
    assert _recalled(store, user="cust_8") == []
    assert _recalled(store, query="parcel") == []
    assert _recalled(store, query='"; DROP TABLE') == []
    store.reject("acme", made.proposal_id, by="ann", at=LATER, reason="moved")
    assert _recalled(store) == []


def test_a_repeat_adds_evidence_and_no_row(store: MemoryStore) -> None:
    _propose(store)
    again = _propose(store, evidence_refs=("ev/2",), run_id="run_2")
    assert again.proposal.evidence_refs == ("ev/1", "ev/2")
    assert again.proposal.confidence == 0.6
    assert _propose(store, evidence_refs=("ev/2",), run_id="run_2").proposal.confidence == 0.6
    assert len(store.proposals("acme", states=("proposed",))) == 1


@pytest.mark.parametrize(
    ("members", "state"),
    [
        ({}, "promoted"),
        ({"confidence": 0.69}, "proposed"),
        ({"consent": False}, "proposed"),
        ({"memory_class": "preference"}, "proposed"),
    ],
)
def test_what_the_pack_promotes_by_itself(store: MemoryStore, members: dict[str, Any], state: str) -> None:
    made = _propose(store, **{"memory_class": "evidence_link", "confidence": 1.0, **members})
    assert made.state == state


def test_what_contradicts_waits_for_a_person_and_a_correction_supersedes(store: MemoryStore) -> None:
    first = _propose(store, memory_class="evidence_link", confidence=1.0)
    other = _propose(store, memory_class="evidence_link", confidence=1.0, value="phone")
    assert (other.state, other.contradiction) == (
        "proposed",
        {"existing": [first.proposal_id], "verdict": "conflicts"},
    )
    right = _propose(store, memory_class="correction", value="letter")
    assert right.contradiction["verdict"] == "supersedes"
    store.promote("acme", right.proposal_id, by="ann", at=LATER)
    assert _recalled(store, "contact") == ["letter"]


def test_a_rejected_candidate_closes_when_it_comes_again(store: MemoryStore) -> None:
    made = _propose(store)
    store.reject("acme", made.proposal_id, by="ann", at=LATER)
    assert _propose(store, run_id="run_9").state == "rejected_before"


def test_nothing_is_promoted_without_consent_by_hand_neither(store: MemoryStore) -> None:
    made = _propose(store, consent=False)
    with pytest.raises(EnvironmentRefusal) as refused:
        store.promote("acme", made.proposal_id, by="ann", at=LATER)
    assert refused.value.code == "memory.consent"
    assert store.proposals("acme", states=("promoted",)) == []


def test_tenants_do_not_see_each_other(store: MemoryStore) -> None:
    made = _propose(store)
    with pytest.raises(EnvironmentRefusal) as refused:
        store.promote("other", made.proposal_id, by="ann", at=LATER)
    assert refused.value.code == "memory.unknown"
    assert store.proposals("other", states=("proposed",)) == []


def test_captures_are_kept_and_never_recalled(store: MemoryStore) -> None:
    for _ in range(2):
        store.capture("acme", "cust_7", run_id="run_1", content={"text": "email me"}, at=NOW)
    assert _recalled(store) == []
