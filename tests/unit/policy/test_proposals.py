"""Proposals of memory: ids, repeats, and what a pack promotes by itself (docs/reference/pack.md#proposals)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.memory_seed import AT, payload

from cogcli.declarations.pack_spec import MemoryLayer
from cogcli.policy.proposals import MemoryProposal, proposal_from

LAYER = MemoryLayer(auto_promote=("preference",), confidence_floor=0.7)


def _made(
    value: Any = "email", consent: tuple[str, ...] = ("preference",), **members: Any
) -> MemoryProposal:
    return proposal_from(payload(value, **members), run_id="run_1", at=AT, consent=consent)


def test_the_id_is_made_of_class_tier_candidate_tenant_and_user() -> None:
    made = _made()
    id = made.id_for("local", "cust_7")
    assert id == made._replace(confidence=1.0, run_id="run_2", evidence_refs=("x",)).id_for(
        "local", "cust_7"
    )
    others = [made.id_for("acme", "cust_7"), made.id_for("local", "cust_8")]
    changes = (
        {"memory_class": "correction"},
        {"tier": "semantic"},
        {"entity": "x:1"},
        {"value": ["email"]},
    )
    others += [made._replace(**change).id_for("local", "cust_7") for change in changes]
    assert len({id, *others}) == 7
    assert all(re.fullmatch("mp_[0-9a-f]{16}", each) for each in (id, *others))


@pytest.mark.parametrize(
    ("members", "consent", "verdict", "lacks"),
    [
        ({"confidence": 0.7}, ("preference",), "none", ()),
        ({"confidence": 0.69}, ("preference",), "none", ("confidence_floor",)),
        ({"confidence": 1}, ("correction",), "none", ("consent",)),
        ({"confidence": 1}, ("preference",), "conflicts", ("contradiction",)),
        ({"confidence": 1}, ("preference",), "supersedes", ()),
        ({"confidence": 1, "class": "correction"}, ("correction",), "none", ("auto_promote",)),
        (
            {"confidence": 0, "class": "correction"},
            (),
            "supersedes",
            ("auto_promote", "confidence_floor", "consent", "contradiction"),
        ),
    ],
)
def test_what_is_promoted_by_itself(
    members: dict[str, Any], consent: tuple[str, ...], verdict: str, lacks: tuple[str, ...]
) -> None:
    assert _made(consent=consent, **members).promotion_obstacles(LAYER, verdict) == lacks


EARLIER, LATER = "2026-11-01T09:29:00.000000Z", "2026-11-01T09:31:00.000000Z"


@pytest.mark.parametrize(
    ("members", "others", "at", "verdict"),
    [
        ({}, (), "", "none"),
        ({}, (EARLIER,), "", "supersedes"),
        ({}, (AT,), "", "supersedes"),
        ({}, (EARLIER, LATER), "", "conflicts"),
        ({}, (LATER,), LATER, "supersedes"),
        ({}, (AT,), EARLIER, "conflicts"),
        ({"class": "correction"}, (LATER,), "", "supersedes"),
        ({"class": "decision_outcome"}, (EARLIER,), "", "conflicts"),
        ({"class": "decision_outcome", "tier": "working"}, (EARLIER,), "", "supersedes"),
        ({"class": "decision_outcome", "tier": "working"}, (LATER,), "", "conflicts"),
    ],
)
def test_a_newer_preference_and_a_correction_take_the_place_of_what_is_known(
    members: dict[str, Any], others: tuple[str, ...], at: str, verdict: str
) -> None:
    known = [_made("phone")._replace(at=each) for each in others]
    assert _made(**members).relation_to(known, at) == verdict


def test_a_repeat_adds_evidence_and_confidence_and_takes_the_stricter_class() -> None:
    first = _made(data_class="pii", evidence_refs=["a", "b"])
    later = _made(consent=(), evidence_refs=["b", "c"])._replace(run_id="run_2", at="later")
    both = first.repeated_by(later)
    assert (both.evidence_refs, both.confidence) == (("a", "b", "c"), 0.6)
    assert (both.data_class, both.consent, both.run_id, both.at) == ("pii", False, "run_2", "later")
    assert _made(confidence=0.95).repeated_by(first).confidence == 1.0
    assert _made(confidence=0.734).repeated_by(first).confidence == 0.83


@pytest.mark.parametrize(
    "members",
    [
        {"evidence_refs": []},
        {"confidence": 1.01},
        {"confidence": -0.01},
        {"candidate": {"entity": "", "predicate": "p", "value": 1}},
        {"candidate": {"entity": "e:1", "predicate": "", "value": 1}},
    ],
)
def test_what_is_no_proposal(members: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="a proposal has"):
        _made(**members)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {"class": "gossip"},
            "memory_class `gossip` is none of evidence_link, preference, decision_outcome, correction",
        ),
        ({"tier": "eternal"}, "tier `eternal` is none of working, episodic, semantic, durable"),
        (
            {"data_class": "secret"},
            "data_class `secret` is none of public, internal, pii, confidential, restricted",
        ),
    ],
)
def test_a_word_of_a_proposal_is_one_of_its_choices(members: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        _made(**members)


def test_a_candidate_has_a_size() -> None:
    empty = len('{"entity":"user:cust_7","predicate":"contact_by","value":""}')
    assert not _made("x" * (65_536 - empty)).is_too_large
    assert _made("x" * (65_536 - empty + 1)).is_too_large
