"""PromotedMemory on disk: proposals and what becomes of them (docs/reference/pack.md#memory)."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.memory_seed import payload

from cogcli.agent.context.inputs import User
from cogcli.agent.stores.memory_rows import STATES, VERSIONS, StoredProposal, row_from
from cogcli.agent.stores.memory_store import MemoryStore
from cogcli.base.errors import UnusableEnvironment, UsageError
from cogcli.declarations.pack_spec import PROPOSAL_CLASSES, MemoryLayer
from cogcli.policy.proposals import MemoryProposal

pytestmark = pytest.mark.sampled(2)

FIRST, EARLIER = "2026-05-02T09:30:00Z", "2026-05-03T09:30:00Z"
NOW, LATER = "2026-05-04T09:30:00Z", "2026-05-05T09:30:00Z"
LAYER = MemoryLayer(auto_promote=("evidence_link",), confidence_floor=0.7)


def _proposal(**members: Any) -> MemoryProposal:
    given: dict[str, Any] = {"value": "email", **members}
    return MemoryProposal(
        "preference",
        "durable",
        "user:cust_7",
        "contact_by",
        "",
        ("ev/1",),
        0.5,
        "run_1",
        NOW,
        True,
        "internal",
    )._replace(**given)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    opened = MemoryStore(tmp_path / "memory.db")
    yield opened
    opened.close()


def _propose(store: MemoryStore, user: str = "cust_7", **members: Any) -> StoredProposal:
    return store.propose("acme", user, _proposal(**members), LAYER)


def _recalled(store: MemoryStore, query: str = "contact email", user: str = "cust_7") -> list[Any]:
    consents = User(user, consent=PROPOSAL_CLASSES)
    return [
        memory.value for memory in store.recall("acme", consents, query, LAYER, now=LATER, limit=8)
    ]


def test_what_is_promoted_by_hand_is_recalled_and_what_is_rejected_is_not(
    store: MemoryStore,
) -> None:
    made = _propose(store)
    assert (made.state, _recalled(store)) == ("proposed", [])
    assert store.promote("acme", made.proposal_id, by="ann", at=LATER).stored.decided_by == "ann"
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
def test_what_the_pack_promotes_by_itself(
    store: MemoryStore, members: dict[str, Any], state: str
) -> None:
    made = _propose(store, **{"memory_class": "evidence_link", "confidence": 1.0, **members})
    assert made.state == state


def test_what_contradicts_waits_for_a_person_and_a_correction_supersedes(
    store: MemoryStore,
) -> None:
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
    with pytest.raises(UnusableEnvironment) as refused:
        store.promote("acme", made.proposal_id, by="ann", at=LATER)
    assert refused.value.code == "memory.consent"
    assert store.proposals("acme", states=("promoted",)) == []


def test_tenants_do_not_see_each_other(store: MemoryStore) -> None:
    made = _propose(store)
    with pytest.raises(UsageError) as refused:
        store.promote("other", made.proposal_id, by="ann", at=LATER)
    assert refused.value.code == "memory.unknown"
    assert store.proposals("other", states=("proposed",)) == []


def test_captures_are_kept_and_never_recalled(store: MemoryStore) -> None:
    for _ in range(2):
        store.capture("acme", "cust_7", run_id="run_1", content={"text": "email me"}, at=NOW)
    assert _recalled(store) == []


def _outcomes(
    store: MemoryStore, *payloads: dict[str, Any], run_id: str = "run_1", **given: Any
) -> list[str]:
    layer = given.pop("layer", LAYER)
    members: dict[str, Any] = {"consent": PROPOSAL_CLASSES, "run_id": run_id, "at": NOW, **given}
    return [
        made.outcome for made in store.propose_all("acme", "cust_7", payloads, layer, **members)
    ]


def _sure(value: Any, **members: Any) -> dict[str, Any]:
    return payload(value, **{"class": "evidence_link", "confidence": 1.0, **members})


def test_what_becomes_of_the_proposals_of_a_run(store: MemoryStore) -> None:
    other = {"entity": "order:1", "predicate": "paid", "value": True}
    given = (
        _sure("email"),
        _sure("phone"),
        _sure("email"),
        payload("x"),
        _sure(True, candidate=other),
    )
    assert _outcomes(store, *given) == ["promoted", "waits", "promoted", "waits", "promoted"]
    assert _outcomes(store, payload("y"), _sure("z"), consent=("preference",), run_id="run_2") == [
        "waits",
        "no_consent",
    ]
    assert _outcomes(store, _sure("x" * 70_000), run_id="run_3") == ["too_large"]
    assert len(store.proposals("acme", states=STATES)) == 6


def test_a_run_that_proposes_again_changes_nothing(store: MemoryStore) -> None:
    _outcomes(store, payload("email"))
    _outcomes(store, payload("email"), run_id="run_2")
    before = store.proposals("acme", states=STATES)
    for run_id in ("run_1", "run_2", "run_1"):
        assert _outcomes(store, payload("email"), run_id=run_id, at=LATER, consent=()) == [
            "no_consent"
        ]
        lenient = MemoryLayer(auto_promote=("preference",), confidence_floor=0.1)
        assert _outcomes(store, payload("email"), run_id=run_id, layer=lenient) == ["waits"]
    assert store.proposals("acme", states=STATES) == before
    assert store.explain("acme", before[0].proposal_id)[1] == ("run_1", "run_2")


def test_all_proposals_of_a_run_are_kept_or_none(store: MemoryStore) -> None:
    with pytest.raises(ValueError, match="evidence"):
        _outcomes(store, payload("email"), payload("phone", evidence_refs=[]))
    assert store.proposals("acme", states=STATES) == []


def test_enough_repeats_promote_what_nothing_contradicts(store: MemoryStore) -> None:
    layer = MemoryLayer(auto_promote=("preference",), confidence_floor=0.7)
    words = [
        _outcomes(store, payload("email"), run_id=f"run_{n}", layer=layer)[0] for n in range(3)
    ]
    assert words == ["waits", "waits", "promoted"]
    others = [
        _outcomes(store, payload("phone"), run_id=f"run_{n}", layer=layer)[0] for n in range(4)
    ]
    assert others == ["waits", "waits", "promoted", "promoted"]
    (old,) = store.proposals("acme", states=("superseded",))
    assert (old.proposal.value, old.decided_by) == ("email", "code")


def test_what_was_promoted_meanwhile_is_a_contradiction_when_it_is_decided(
    store: MemoryStore,
) -> None:
    first, second = _propose(store), _propose(store, value="phone")
    assert second.verdict == "none"
    assert store.promote("acme", first.proposal_id, by="ann", at=LATER).existing == ()
    decision = store.promote("acme", second.proposal_id, by="ann", at=LATER)
    assert [other.proposal_id for other in decision.existing] == [first.proposal_id]
    assert decision.stored.contradiction == {
        "existing": [first.proposal_id],
        "verdict": "supersedes",
    }
    assert _recalled(store) == ["phone"]
    third, fourth = [
        _propose(store, memory_class="decision_outcome", predicate="contact", value=value)
        for value in ("a", "b")
    ]
    for each in (third, fourth):
        decision = store.promote("acme", each.proposal_id, by="ann", at=LATER)
    assert decision.stored.verdict == "conflicts"
    assert sorted(_recalled(store, "contact")) == ["a", "b", "phone"]


def test_an_older_preference_does_not_take_the_place_of_a_newer_one(store: MemoryStore) -> None:
    layer = MemoryLayer(auto_promote=("preference",), confidence_floor=0.5)
    for value, at, run_id in (("new", LATER, "run_2"), ("old", NOW, "run_1")):
        proposal = _proposal(value=value, at=at, run_id=run_id)
        made = store.propose("acme", "cust_7", proposal, layer)
    assert (made.state, made.verdict) == ("proposed", "conflicts")
    assert _recalled(store, "contact") == ["new"]


@pytest.mark.parametrize(
    ("said_at", "state", "recalled"),
    [(EARLIER, "proposed", ["tea"]), (LATER, "promoted", ["coffee"])],
)
def test_a_newer_preference_replaces_one_that_a_person_promoted(
    store: MemoryStore, said_at: str, state: str, recalled: list[str]
) -> None:
    by_hand, alone = MemoryLayer(), MemoryLayer(auto_promote=("preference",), confidence_floor=0.5)
    tea = store.propose("acme", "cust_7", _proposal(value="tea", at=FIRST, run_id="run_1"), by_hand)
    store.promote("acme", tea.proposal_id, by="ann", at=NOW)
    coffee = _proposal(value="coffee", at=said_at, run_id="run_2")
    assert store.propose("acme", "cust_7", coffee, alone).state == state
    assert _recalled(store, "contact") == recalled
    older = store.explain("acme", tea.proposal_id)[0].stored
    assert older.reason.endswith("; promoted by ann before") == (state == "promoted")


def test_working_memory_is_recalled_in_its_session_and_the_newer_value_counts(
    store: MemoryStore,
) -> None:
    layer = MemoryLayer(auto_promote=("evidence_link",))
    for value, session in (("order:a", "s_1"), ("order:b", "s_2"), ("order:c", "s_1")):
        _ = store.propose(
            "acme",
            "cust_7",
            _proposal(
                memory_class="evidence_link", tier="working", entity=f"session:{session}",
                predicate="order", value=value, confidence=1.0, run_id=value,
            ),
            layer,
        )  # fmt: skip
    user = User("cust_7", consent=PROPOSAL_CLASSES)
    found = {
        session: [
            each.value
            for each in store.recall(
                "acme", user, "and then?", layer, now=LATER, limit=8, session_id=session
            )
        ]
        for session in ("s_1", "s_2", "s_3")
    }
    assert found == {"s_1": ["order:c", None], "s_2": ["order:b", None], "s_3": [None, None]}


def test_superseded_memory_may_be_proposed_anew_but_waits(store: MemoryStore) -> None:
    first = _propose(store, memory_class="evidence_link", confidence=1.0)
    right = _propose(store, memory_class="correction", value="letter")
    store.promote("acme", right.proposal_id, by="ann", at=LATER)
    (old,) = store.proposals("acme", states=("superseded",))
    assert (old.proposal_id, old.decided_by) == (first.proposal_id, "ann")
    assert old.reason == f"superseded by {right.proposal_id}"
    again = _propose(store, memory_class="evidence_link", confidence=1.0, run_id="run_2")
    assert (again.state, again.verdict, again.decided_by) == ("proposed", "conflicts", "")


def test_another_run_adds_evidence_to_what_is_promoted_and_its_consent_counts_for_what_it_says(
    store: MemoryStore,
) -> None:
    _outcomes(store, _sure("email"))
    (before,) = store.proposals("acme", states=("promoted",))
    later = _sure("email", evidence_refs=["ev/2"])
    assert _outcomes(store, later, run_id="run_2", at=LATER) == ["promoted"]
    assert _outcomes(store, later, run_id="run_3", at=LATER, consent=()) == ["no_consent"]
    (after,) = store.proposals("acme", states=("promoted",))
    assert after.proposal.evidence_refs == ("run_1/order", "ev/2")
    assert (
        (after.decided_by, after.decided_at)
        == (before.decided_by, before.decided_at)
        == ("code", NOW)
    )


def test_the_first_decision_stands(store: MemoryStore) -> None:
    made = _propose(store)
    first = store.promote("acme", made.proposal_id, by="ann", at=LATER)
    second = store.promote("acme", made.proposal_id, by="bob", at="2026-06-01T00:00:00Z")
    assert (first.is_new, second.is_new, second.stored) == (True, False, first.stored)
    taken = store.reject("acme", made.proposal_id, by="bob", at=LATER, reason="moved")
    again = store.reject("acme", made.proposal_id, by="eve", at=LATER)
    assert (taken.is_new, again.is_new, again.stored) == (True, False, taken.stored)
    closed = _propose(store, run_id="run_9")
    assert (closed.state, closed.decided_by, closed.reason) == ("rejected_before", "bob", "moved")
    assert store.promote("acme", made.proposal_id, by="ann", at=LATER).is_new


def test_consent_that_is_given_later_counts_for_its_class_alone(store: MemoryStore) -> None:
    made = _propose(store, consent=False)
    with pytest.raises(UnusableEnvironment):
        store.promote("acme", made.proposal_id, by="ann", at=LATER, consent=("correction",))
    given = store.promote("acme", made.proposal_id, by="ann", at=LATER, consent=("preference",))
    assert given.stored.proposal.consent


def test_another_users_proposal_is_unknown(store: MemoryStore) -> None:
    made = _propose(store)
    for act in (store.promote, store.reject):
        with pytest.raises(UsageError, match="of tenant `acme` and user `cust_8`"):
            act("acme", made.proposal_id, by="ann", at=LATER, user_id="cust_8")


def test_what_may_not_be_recalled_takes_no_place_and_gives_no_value(store: MemoryStore) -> None:
    for number in range(5):
        _propose_promoted(store, f"old {number}", "decision_outcome")
    wanted = _propose_promoted(store, "other words after words", "evidence_link")
    asked = User("cust_7", consent=("evidence_link",))
    found = store.recall("acme", asked, "contact", LAYER, now=LATER, limit=2)
    assert [memory.value for memory in found] == [None, None, wanted]
    expiring = MemoryLayer(ttl_s={"durable": 60})
    more = [_propose_promoted(store, f"words {number}", "evidence_link") for number in range(3)]
    few = store.recall("acme", asked, "words", LAYER, now=LATER, limit=2)
    assert len(few) == 2
    assert {memory.value for memory in few} < {wanted, *more}
    late = store.recall("acme", asked, "contact", expiring, now=LATER, limit=2)
    assert [memory.value for memory in late] == [None, None]


def _propose_promoted(store: MemoryStore, value: str, memory_class: str) -> str:
    made = _propose(store, value=value, memory_class=memory_class)
    store.promote("acme", made.proposal_id, by="ann", at=NOW)
    return value


@pytest.mark.parametrize(
    "value",
    [
        "'; DROP TABLE proposal; --",
        "a\x00b",
        "\x1b[2J",
        "😀" * 100,
        {"a": [None, True, 1.5]},
        "",
        2**62,
    ],
)
def test_any_value_comes_back_as_it_was(store: MemoryStore, value: Any) -> None:
    made = _propose(store, value=value, entity=f"user:{value}", predicate=f"{value} x")
    assert store.promote("acme", made.proposal_id, by=str(value), at=LATER).is_new
    (kept,) = store.proposals("acme", states=("promoted",))
    assert (kept.proposal.value, kept.proposal.entity, kept.decided_by) == (
        value,
        f"user:{value}",
        str(value),
    )
    assert _recalled(store, "x") == [value]
    for query in ('" OR "', "NEAR(x y)", "text:x*", "x AND NOT x", "\x00", "*", "x" * 100_000):
        _recalled(store, query)


@pytest.mark.parametrize(
    "change",
    [
        "class = 'gossip'",
        "tier = 7",
        "state = X'00'",
        "value = '{'",
        "evidence = 'x'",
        "data_class = 'secret'",
        "decided_at = 'soon'",
        "confidence = 'much'",
        "proposal_id = '$(reboot)'",
        "contradiction = '[]'",
        'contradiction = \'{"existing": [], "verdict": "maybe"}\'',
        'contradiction = \'{"existing": [1], "verdict": "none"}\'',
        "evidence = '[1]'",
        "value = CAST(X'22FF22' AS TEXT)",
    ],
)
def test_a_row_that_no_store_wrote_is_damage(
    store: MemoryStore, tmp_path: Path, change: str
) -> None:
    made = _propose(store)
    store.promote("acme", made.proposal_id, by="ann", at=NOW)
    with sqlite3.connect(tmp_path / "memory.db") as connection:
        connection.execute(f"UPDATE proposal SET {change}")
    connection.close()
    with pytest.raises(UnusableEnvironment) as refused:
        store.explain("acme", "$(reboot)" if "reboot" in change else made.proposal_id)
    assert refused.value.code == "memory.damaged"


def test_a_file_of_the_first_version_is_copied_and_brought_up(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in VERSIONS[0]:
            connection.execute(statement)
        connection.execute("PRAGMA user_version = 1")
        row = row_from(StoredProposal("mp_" + "0" * 16, "acme", "cust_7", _proposal()))
        connection.execute(f"INSERT INTO proposal VALUES ({'?, ' * len(row)}1)", row)
    store = MemoryStore(path)
    assert store.explain("acme", "mp_" + "0" * 16)[1] == ("run_1",)
    store.close()
    MemoryStore(path).close()
    copy = tmp_path / "memory.db.v1"
    assert copy.stat().st_mode & 0o777 == 0o600
    with contextlib.closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM proposal").fetchone() == (1,)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["memory.db", "memory.db.v1"]


PROMOTER = """
import sys
from pathlib import Path
from cogcli.agent.stores.memory_store import MemoryStore
store = MemoryStore(Path(sys.argv[1]))
sys.stdin.read()
made = store.promote("acme", sys.argv[2], by=sys.argv[3], at="2026-05-05T09:30:00Z")
print(made.is_new, made.stored.decided_by)
"""


def test_of_processes_that_promote_at_once_one_decides(store: MemoryStore, tmp_path: Path) -> None:
    made = _propose(store)
    command = [sys.executable, "-c", PROMOTER, str(tmp_path / "memory.db"), made.proposal_id]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    promoters = [subprocess.Popen([*command, name], **pipes) for name in ("ann", "bob", "eve")]
    for promoter in promoters:
        promoter.stdin.close()  # type: ignore[union-attr]
    said = [promoter.stdout.read().split() for promoter in promoters]  # type: ignore[union-attr]
    for promoter in promoters:
        assert promoter.wait(60) == 0
        promoter.stdout.close()  # type: ignore[union-attr]
    assert sorted(is_new for is_new, _ in said) == ["False", "False", "True"]
    assert len({by for _, by in said}) == 1


PROPOSER = """
import sys
from pathlib import Path
from cogcli.declarations.pack_spec import MemoryLayer
from cogcli.agent.stores.memory_store import MemoryStore
candidate = {"entity": "user:c", "predicate": "contact_by", "value": "email"}
made = {"class": "preference", "tier": "durable", "candidate": candidate, "confidence": 0.5}
store = MemoryStore(Path(sys.argv[1]))
for number in range(10):
    run = f"{sys.argv[2]}_{number}"
    for _ in range(2):
        store.propose_all("acme", "c", [{**made, "evidence_refs": [run]}], MemoryLayer(),
                          consent=("preference",), run_id=run, at="2026-05-05T09:30:00Z")
"""


def test_processes_that_propose_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    proposers = [
        subprocess.Popen([sys.executable, "-c", PROPOSER, str(path), name]) for name in "abc"
    ]
    assert [proposer.wait(60) for proposer in proposers] == [0, 0, 0]
    with contextlib.closing(MemoryStore(path)) as store:
        (made,) = store.proposals("acme", states=STATES)
        refs, runs = made.proposal.evidence_refs, store.explain("acme", made.proposal_id)[1]
    assert (
        sorted(refs) == sorted(runs) == sorted(f"{name}_{n}" for name in "abc" for n in range(10))
    )
    assert made.proposal.confidence == 1.0
