"""What agents keep of their users: interactions counted once, jobs done once, conversations as they were
(docs/reference/user-memory.md)."""

from __future__ import annotations

import itertools
import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import LONG, examples
from support.user_seed import AT, AUTO, LATER, SAID, interaction, learned, lease

from cogcli.agent.state import ReasoningContext
from cogcli.agent.stores import agent_store, memory_rows
from cogcli.agent.stores.agent_store import AgentStore
from cogcli.agent.stores.memory_store import MemoryStore
from cogcli.agent.stores.sessions import SessionSnapshot
from cogcli.base.errors import UnusableEnvironment, UsageError
from cogcli.declarations.pack_spec import MemoryLayer
from cogcli.policy.proposals import MemoryProposal

pytestmark = pytest.mark.sampled(2)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AgentStore]:
    made = AgentStore(tmp_path / "memory.db")
    yield made
    made.close()


# -- at the end of a run -----------------------------------------------------------------------------------------------


def test_an_interaction_is_counted_once_however_often_its_run_is_resumed(store: AgentStore) -> None:
    first = store.consolidate("t", "u", interaction())
    again = store.consolidate("t", "u", interaction(query="something else"))
    assert (first.n, first.is_new, again.n, again.is_new) == (1, True, 1, False)
    assert [each.query for each in store.interactions("t", "u")] == ["how?"]
    assert store.profile("t", "u")[0].interaction_count == 1
    assert [job.kind for job in store.jobs("t", "u")] == ["extract"]


def test_users_and_tenants_are_apart(store: AgentStore) -> None:
    for who in (("t", "u"), ("t", "U"), ("s", "u")):
        assert store.consolidate(*who, interaction()).n == 1
    assert len(store.jobs("t")) == 2
    assert [job.tenant_id for job in store.jobs("s", "u")] == ["s"]
    assert store.interactions("s", "U") == []
    assert store.export("s", "U") == {
        name: []
        for name in ("profile", "interaction", "session", "message", "job", "capture", "proposal")
    }


def test_a_run_that_does_not_count_leaves_its_conversation_alone(store: AgentStore) -> None:
    session = SessionSnapshot("s", (SAID,))
    for _ in range(2):
        made = store.consolidate("t", "u", interaction(), counts=False, session=session)
    assert (made.n, made.is_new) == (0, False)
    assert store.profile("t", "u")[0].interaction_count == 0
    assert (store.interactions("t", "u"), store.jobs("t")) == ([], [])
    assert store.session("t", "u", "s").messages == (SAID,)


@pytest.mark.parametrize(
    ("iterations", "calls", "threshold", "due"),
    [
        (3, 2, 3, [False, False, True]),
        (4, 0, 3, [True, True, True]),
        (0, 3, 3, [True, True, True]),
        (0, 0, 2, [False, True, False]),
    ],
)
def test_inv_11_through_the_store(
    store: AgentStore, iterations: int, calls: int, threshold: int, due: list[bool]
) -> None:
    """Before the first interaction there is nothing that could be due; a run that does not count brings nothing."""
    assert store.jobs("t") == []
    for number, expected in enumerate(due):
        made = interaction(f"run_{number}", iterations=iterations, calls=calls)
        store.consolidate(
            "t", "u", made._replace(run_id=f"looked_{number}"), counts=False, threshold=1
        )
        assert len(store.consolidate("t", "u", made, threshold=threshold).job_ids) == 1 + expected


def test_a_synthesis_is_of_all_since_the_one_before(store: AgentStore) -> None:
    for number in range(1, 7):
        store.consolidate("t", "u", interaction(f"run_{number}", calls=3 if number == 4 else 0))
    found = [(job.from_n, job.to_n) for job in store.jobs("t", "u") if job.kind == "synthesize"]
    assert found == [(1, 3), (4, 4), (5, 6)]
    assert [job.to_n for job in store.jobs("t") if job.kind == "extract"] == [1, 2, 3, 4, 5, 6]


def test_where_one_part_cannot_be_stored_nothing_is(store: AgentStore) -> None:
    bad = SessionSnapshot("s", ({"role": object()},))
    with pytest.raises(TypeError):
        store.consolidate("t", "u", interaction(), session=bad)
    assert store.profile("t", "u")[0].interaction_count == 0
    assert store.session("t", "u", "s") == SessionSnapshot("s")


# -- conversations -----------------------------------------------------------------------------------------------------

TEXTS = st.text(max_size=20)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": TEXTS, "content": TEXTS, "timestamp": TEXTS}), max_size=4
)
REASONING = st.builds(
    ReasoningContext,
    goal=TEXTS,
    facts=st.dictionaries(TEXTS, JSON, max_size=4),
    strategy=TEXTS,
    insights=st.lists(TEXTS, max_size=3).map(tuple),
    thoughts=st.lists(st.dictionaries(TEXTS, JSON, max_size=2), max_size=2).map(tuple),
)
SNAPSHOTS = st.builds(
    SessionSnapshot,
    session_id=st.just("s"),
    messages=MESSAGES.map(tuple),
    mode=st.sampled_from(("fast", "deep", "adapt")),
    reasoning=REASONING,
    last_run_failed=st.booleans(),
    summary=st.none() | st.dictionaries(TEXTS, JSON, max_size=3),
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentStore]:
    """One file for all examples of a property."""
    made = AgentStore(tmp_path_factory.mktemp("shared") / "memory.db")
    yield made
    made.close()


NUMBERS = itertools.count()


@examples(100)
@given(written=st.lists(SNAPSHOTS, min_size=1, max_size=3))
def test_inv_10_what_was_stored_of_a_conversation_is_what_is_read(
    shared: AgentStore, written: list[SessionSnapshot]
) -> None:
    """Over several runs, each of which continues with what the one before left; also the order of facts."""
    store, id = shared, f"s{next(NUMBERS)}"
    expected = SessionSnapshot(id)
    for number, new in enumerate(written):
        read = store.session("t", "u", id)
        assert read == expected
        assert list(read.reasoning.facts) == list(expected.reasoning.facts)
        assert SessionSnapshot.from_payload(read.to_payload()) == read
        messages = (*read.messages, SAID, *new.messages)
        made = new._replace(session_id=id, messages=messages, kept=read.kept, version=read.version)
        store.consolidate("t", "u", interaction(f"run_{id}_{number}"), session=made)
        expected = made._replace(kept=len(messages), version=number + 1)
    assert store.session("t", "u", id) == expected


def test_what_another_run_stored_meanwhile_stays(store: AgentStore) -> None:
    base = store.session("t", "u", "s")
    mine = base._replace(messages=({"content": "mine"},), mode="deep")
    theirs = base._replace(messages=({"content": "theirs"},))
    store.consolidate("t", "u", interaction("run_1"), session=theirs)
    store.consolidate("t", "u", interaction("run_2"), session=mine)
    found = store.session("t", "u", "s")
    assert [each["content"] for each in found.messages] == ["theirs", "mine"]
    assert (found.mode, found.version) == ("deep", 2)


def test_what_was_forgotten_meanwhile_does_not_come_back(store: AgentStore) -> None:
    made = SessionSnapshot("s", (SAID,), reasoning=ReasoningContext("old"), summary={"text": "old"})
    store.consolidate("t", "u", interaction("run_1"), session=made)
    read = store.session("t", "u", "s")
    store.forget_session("t", "u", "s")
    added = read._replace(messages=(*read.messages, {"content": "new"}))
    store.consolidate("t", "u", interaction("run_2"), session=added)
    found = store.session("t", "u", "s")
    assert (found.messages, found.reasoning, found.summary) == (
        ({"content": "new"},),
        ReasoningContext(),
        None,
    )


def test_a_conversation_that_others_keep_changing_is_busy(
    store: AgentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    read = store.session("t", "u", "s")._replace(messages=(SAID,))
    rebased_on = SessionSnapshot.rebased_on

    def rebased(self: SessionSnapshot, current: SessionSnapshot) -> SessionSnapshot:
        calls.append(current)
        other = current._replace(messages=(*current.messages, SAID))
        store.consolidate("t", "u", interaction(f"other_{len(calls)}"), session=other)
        return rebased_on(self, current)

    store.consolidate("t", "u", interaction("run_1"), session=read)
    monkeypatch.setattr(SessionSnapshot, "rebased_on", rebased)
    with pytest.raises(UnusableEnvironment) as refused:
        store.consolidate("t", "u", interaction("run_2"), session=read)
    assert (refused.value.code, len(calls)) == ("memory.busy", agent_store._TRIES)
    assert "run_2" not in [each.run_id for each in store.interactions("t", "u")]


def test_a_session_that_is_not_there_cannot_be_forgotten(store: AgentStore) -> None:
    with pytest.raises(UsageError) as refused:
        store.forget_session("t", "u", "s")
    assert refused.value.code == "session.unknown"


# -- jobs --------------------------------------------------------------------------------------------------------------


def test_a_job_is_leased_by_one_and_by_another_once_its_time_is_over(store: AgentStore) -> None:
    store.consolidate("t", "u", interaction())
    job = lease(store)
    assert store.lease(now=AT, until=LATER) is None
    again = lease(store, now=LATER, until=LATER + "z")
    assert (again.job_id, again.attempts) == (job.job_id, 2)
    assert store.finish(job, [], MemoryLayer(), at=AT, transcript={}) == "lost"
    assert store.finish(again, [], MemoryLayer(), at=AT, transcript={}) == "done"
    assert store.lease(now="3000", until="3001") is None


def test_the_jobs_of_a_user_are_done_in_order_and_those_of_others_meanwhile(
    store: AgentStore,
) -> None:
    for number in range(1, 4):
        store.consolidate("t", "u", interaction(f"run_{number}"))
    store.consolidate("t", "v", interaction())
    first, other = lease(store), lease(store)
    assert (first.user_id, first.to_n, other.user_id) == ("u", 1, "v")
    assert store.lease(now=AT, until=LATER) is None
    store.finish(first, [], MemoryLayer(), at=AT, transcript={})
    order = []
    while job := store.lease(now=AT, until=LATER):
        order.append((job.kind, job.to_n))
        store.finish(job, [], MemoryLayer(), at=AT, transcript={})
    assert order == [("extract", 2), ("extract", 3), ("synthesize", 3)]
    assert store.profile("t", "u")[0].synthesis_version == 2


def test_five_failures_are_for_good_and_the_next_job_comes(store: AgentStore) -> None:
    for number in (1, 2):
        store.consolidate("t", "u", interaction(f"run_{number}"))
    states = [store.fail(lease(store), "no answer", {"n": number}) for number in range(5)]
    assert states == ["queued"] * 4 + ["failed"]
    (failed,) = store.jobs("t", states=("failed",))
    assert (failed.error, failed.transcript, failed.attempts) == ("no answer", {"n": 4}, 5)
    assert lease(store).to_n == 2


def test_a_job_whose_workers_end_fails_too(store: AgentStore) -> None:
    store.consolidate("t", "u", interaction())
    for number in range(5):
        lease(store, now=f"2026-{number}", until=f"2026-{number}")
    assert store.lease(now="2027", until="2028") is None
    assert [(job.state, job.error) for job in store.jobs("t")] == [("failed", "its workers ended")]


def test_a_job_that_is_given_back_was_not_tried_and_one_that_was_passed_waits(
    store: AgentStore,
) -> None:
    store.consolidate("t", "u", interaction())
    job = lease(store)
    store.requeue(job)
    assert lease(store).attempts == 1
    assert store.lease(now="3000", until="3001", passed=[job.job_id]) is None


def test_what_a_job_found_is_proposed_once_and_the_pack_promotes(store: AgentStore) -> None:
    insights = {"goals": ["ship it"], "preferences": {"tone": "short"}}
    store.consolidate("t", "u", interaction())
    job = lease(store)
    assert store.finish(job, learned(insights), AUTO, at=AT, transcript={"asked": 1}) == "done"
    assert store.finish(job, learned({"goals": ["other"]}), AUTO, at=AT, transcript={}) == "lost"
    profile, entries = store.profile("t", "u")
    assert (profile.goals, profile.preferences) == (("ship it",), {"tone": "short"})
    assert {ref for each in entries for ref in each.stored.proposal.evidence_refs} == {
        "ep_run_1/evt_1"
    }
    assert store.jobs("t")[0].transcript == {"asked": 1}


def test_without_consent_or_rules_proposals_wait(store: AgentStore) -> None:
    for number, (layer, consent) in enumerate([(AUTO, False), (MemoryLayer(), True)], 1):
        store.consolidate("t", "u", interaction(f"run_{number}"))
        found = learned({"goals": [f"goal {number}"]}, consent=consent)
        store.finish(lease(store), found, layer, at=AT, transcript={})
    assert store.profile("t", "u")[1] == []
    assert len(store.export("t", "u")["proposal"]) == 2


def test_a_synthesis_says_nothing_again(store: AgentStore) -> None:
    """What was only summed up is no further evidence."""
    store.consolidate("t", "u", interaction(calls=3))
    for _ in range(2):
        store.finish(
            lease(store), learned({"goals": ["x"]}, run="other"), AUTO, at=AT, transcript={}
        )
    (row,) = store.export("t", "u")["proposal"]
    assert (row["confidence"], row["runs"]) == (0.5, ["other"])


def test_the_result_of_a_job_whose_user_was_forgotten_is_dropped(store: AgentStore) -> None:
    store.consolidate("t", "u", interaction())
    job = lease(store)
    store.forget("t", "u")
    assert store.finish(job, learned({"goals": ["x"]}), AUTO, at=AT, transcript={}) == "forgotten"
    assert store.fail(job, "late", {}) == "lost"
    store.consolidate("t", "u", interaction())  # the same job again, of another life
    assert lease(store, until="3000").job_id == job.job_id
    assert store.finish(job, learned({"goals": ["x"]}), AUTO, at=AT, transcript={}) == "lost"
    assert store.export("t", "u")["proposal"] == []


# -- profiles ----------------------------------------------------------------------------------------------------------

INSIGHTS = {
    "preferences": {
        "tone": "short",
        "goals.x": 1,
        "projects.y": 2,
        "communication_style": 3,
        "preferences.z": 4,
    },
    "projects": {"apollo": "to the moon"},
    "communication_style": "technical",
    "goals": ["a", "b"],
    "interests": ["stars"],
    "failure_patterns": ["call.timeout"],
}


def test_a_profile_is_what_was_promoted_member_by_member(store: AgentStore) -> None:
    store.consolidate("t", "u", interaction())
    store.finish(lease(store), learned(INSIGHTS), AUTO, at=AT, transcript={})
    profile = store.profile("t", "u")[0].to_payload()
    assert profile["preferences"] == INSIGHTS["preferences"]
    assert {name: profile[name] for name in INSIGHTS if name != "goals"} == {
        name: value for name, value in INSIGHTS.items() if name != "goals"
    }
    assert sorted(profile["goals"]) == ["a", "b"]
    assert (profile["interaction_count"], profile["created_at"]) == (1, AT)


def test_of_a_field_the_newest_stay_and_of_two_values_the_last(store: AgentStore) -> None:
    for number in range(12):
        store.consolidate("t", "u", interaction(f"run_{number}"))
        found = learned(
            {"goals": [f"g{number}"], "preferences": {"tone": f"t{number}"}}, f"run_{number}"
        )
        store.finish(lease(store), found, AUTO, at=AT, transcript={})
        if number % 3 == 2:
            store.finish(lease(store), [], AUTO, at=AT, transcript={})
    memory = MemoryStore(store._database.path)
    (old,) = [
        each
        for each in memory.proposals("t", states=("superseded",))
        if each.proposal.value == "t7"
    ]
    memory.promote("t", old.proposal_id, by="ann", at=LATER)
    other = MemoryProposal(
        "preference",
        "durable",
        "user:u",
        "projects.x",
        ["no text"],
        ("e",),
        1.0,
        "r",
        AT,
        True,
        "internal",
    )
    for each in (other, other._replace(entity="user:v"), other._replace(tier="semantic")):
        memory.propose("t", "u", each, AUTO)
    memory.close()
    profile, entries = store.profile("t", "u")
    assert len(profile.goals) == 10
    assert profile.preferences == {"tone": "t7"}
    assert profile.last_updated == LATER
    assert [(each.field, each.value) for each in entries] == [
        ("preferences", "t7"), *(("goals", goal) for goal in profile.goals)
    ]  # fmt: skip
    assert [each.stored.decided_by for each in entries][:2] == ["ann", "code"]


# -- several processes, kills, upgrades --------------------------------------------------------------------------------

WORKER = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from cogcli.stores import database
from support.user_seed import AUTO, AT, LATER, AgentStore, interaction, learned
database.BUSY_SECONDS = 120  # SQLite lets writers wait in no order
store = AgentStore(Path(sys.argv[1]))
for number in range(int(sys.argv[3])):
    run = f"{{sys.argv[2]}}_{{number}}"
    store.consolidate("t", "u", interaction(run))
    store.consolidate("t", "u", interaction(run))
    if job := store.lease(now=AT, until=LATER):
        store.finish(job, learned({{"goals": [run]}}, run), AUTO, at=AT, transcript={{}})
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("processes", "each"),
    [
        (3, 12),
        pytest.param(8, 50, marks=pytest.mark.skipif(not LONG, reason="set COGCLI_LONG_TESTS=1")),
    ],
)
def test_processes_of_one_user_lose_nothing(tmp_path: Path, processes: int, each: int) -> None:
    path, total = tmp_path / "memory.db", processes * each
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(path), f"w{number}", str(each)])
        for number in range(processes)
    ]
    assert [worker.wait(240) for worker in workers] == [0] * processes
    store = AgentStore(path)
    found = store.interactions("t", "u")
    assert store.profile("t", "u")[0].interaction_count == len(found) == total
    assert [each.n for each in found] == list(range(1, total + 1))
    assert len({each.run_id for each in found}) == total
    assert len([job for job in store.jobs("t") if job.kind == "extract"]) == total
    done = store.jobs("t", states=("done",))
    assert len(store.export("t", "u")["proposal"]) == len(done) > 0
    store.close()


KILLED = f"""
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from cogcli.agent.stores import agent_store
from support.user_seed import AgentStore, SAID, interaction
from cogcli.agent.stores.sessions import SessionSnapshot
agent_store.jobs.enqueue = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)
AgentStore(Path(sys.argv[1])).consolidate("t", "u", interaction(), session=SessionSnapshot("s", (SAID,)))
"""


def test_a_kill_in_the_middle_leaves_nothing_and_the_run_counts_later(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    store = AgentStore(path)
    assert store.session("t", "u", "s") == SessionSnapshot("s")
    assert store.interactions("t", "u") == []
    assert store.consolidate("t", "u", interaction()).n == 1
    store.close()


def old_store(path: Path, version: int) -> None:
    """A file of an older version, with one proposal."""
    with sqlite3.connect(path, isolation_level=None) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        for statements in memory_rows.VERSIONS[:version]:
            for statement in statements:
                connection.execute(statement)
        names = ", ".join(memory_rows.COLUMNS)
        values = ("mp_0123456789abcdef", "t", "u", "preference", "durable", "user:u", "preferences.tone", '"short"',
                  '["e"]', 1.0, 1, '{"existing":[],"verdict":"none"}', "internal", "run_0", AT, "promoted", "ann", AT,
                  "")  # fmt: skip
        connection.execute(
            f"INSERT INTO proposal ({names}, version) VALUES ({'?, ' * len(values)}1)", values
        )
        connection.execute("INSERT INTO words VALUES ('mp_0123456789abcdef', 'tone short')")
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()


@pytest.mark.parametrize("version", range(1, len(memory_rows.VERSIONS)))
def test_a_store_of_an_older_version_is_copied_and_brought_up_to_date(
    tmp_path: Path, version: int
) -> None:
    path = tmp_path / "memory.db"
    old_store(path, version)
    store = AgentStore(path)
    assert store.profile("t", "u")[0].preferences == {"tone": "short"}
    assert store.consolidate("t", "u", interaction()).n == 1
    store.close()
    copy = tmp_path / f"memory.db.v{version}"
    with sqlite3.connect(copy) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (version,)
        assert connection.execute("SELECT value FROM proposal").fetchall() == [('"short"',)]
    connection.close()


@pytest.mark.parametrize("after", range(len(memory_rows.AGENT_TABLES) + 1))
def test_an_upgrade_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    path = tmp_path / "memory.db"
    old_store(path, 2)
    before = path.read_bytes()
    failing = (*memory_rows.AGENT_TABLES[:after], "INSERT INTO nothing VALUES (1)")
    monkeypatch.setattr(agent_store, "VERSIONS", (*memory_rows.VERSIONS[:2], failing))
    with pytest.raises(UnusableEnvironment):
        AgentStore(path)
    assert path.read_bytes() == before
    monkeypatch.undo()
    store = AgentStore(path)
    assert store.consolidate("t", "u", interaction()).n == 1
    store.close()


def test_a_file_of_a_newer_version_is_refused_and_left(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    AgentStore(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {len(memory_rows.VERSIONS) + 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(UnusableEnvironment) as refused:
        AgentStore(path)
    assert refused.value.code == "memory.damaged"
    assert path.read_bytes() == before


# -- forgetting --------------------------------------------------------------------------------------------------------

CANARY = "zqcanary7f3a9"
"""One word without a prefix of others: the index of words holds it in one piece."""


def fill(path: Path, user: str, word: str, times: int) -> None:
    """Everything that a store can hold of a user, with a word in all of it."""
    memory, store = MemoryStore(path), AgentStore(path)
    for number in range(times):
        run = f"run_{word}_{number}"
        said = {"role": "user", "content": f"{word} says", "timestamp": AT}
        session = store.session("t", user, f"s-{word}")
        thought = ReasoningContext(word, {word: word}, word, (word,), ({"thinking": word},))
        new = session._replace(
            messages=(*session.messages, said), reasoning=thought, summary={"text": word}, mode=word
        )
        made = interaction(
            run, query=f"{word} asks" * 9, response=word, intent=word, failure_code=word
        )
        store.consolidate("t", user, made, session=new)
        found = learned(
            {"goals": [f"{word} {number}"], "preferences": {word: word}}, run, user=user
        )
        store.finish(lease(store), found, AUTO, at=AT, transcript={"reply": word})
        memory.capture("t", user, run_id=run, content={"said": word}, at=AT)
    memory.close()
    store.close()


def traces(folder: Path) -> list[str]:
    return [
        path.name
        for path in sorted(folder.iterdir())
        if CANARY.encode() in path.read_bytes() or CANARY in path.name
    ]


@pytest.mark.parametrize("times", [1, 25])
def test_nothing_is_left_of_a_user_who_is_forgotten(tmp_path: Path, times: int) -> None:
    path = tmp_path / "memory.db"
    for number in range(times):
        fill(path, f"other{number}", f"word{number}", 2)
    fill(path, f"u-{CANARY}", CANARY, times)
    for version in (1, 2):  # as upgrades left them
        copy = tmp_path / f"memory.db.v{version}"
        old_store(copy, version)
        with sqlite3.connect(copy) as connection:
            connection.execute(
                "UPDATE proposal SET user_id = ?, value = ?", (f"u-{CANARY}", f'"{CANARY}"')
            )
            connection.execute("UPDATE words SET text = ?", (CANARY,))
        connection.close()
    (tmp_path / "memory.db.v2.part").write_text(CANARY)
    store, reader = AgentStore(path), AgentStore(path)
    assert "memory.db" in traces(tmp_path)
    counts = store.forget("t", f"u-{CANARY}")
    assert {name for name, count in counts.items() if count} == {
        "profile", "interaction", "session", "message", "job", "capture", "proposal",
    }  # fmt: skip
    assert traces(tmp_path) == []
    assert all(not rows for rows in store.export("t", f"u-{CANARY}").values())
    reader.close()
    store.close()
    assert traces(tmp_path) == []
    memory = MemoryStore(path)
    found = memory.proposals("t", states=("promoted",), user_id="other0")
    assert len(found) == 3
    memory.close()
    copy_store = sqlite3.connect(tmp_path / "memory.db.v2")
    assert copy_store.execute("PRAGMA user_version").fetchone() == (2,)
    copy_store.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8) if LONG else [2])
def test_nothing_is_left_in_pages_that_were_split(tmp_path: Path, seed: int) -> None:
    """Users of all kinds of names, in any order, with texts of any length: rows move between pages."""
    dice, path, gone = random.Random(seed), tmp_path / "memory.db", f"m-{CANARY}"
    store = AgentStore(path)
    store._database._connection.execute("PRAGMA synchronous = OFF")
    users = [f"u{number}" for number in range(30)] + [gone] * 12
    for number in range(250):
        user = dice.choice(users)
        word, run = CANARY if user == gone else f"word{dice.randrange(99)}", f"r{number}"
        session = store.session("t", user, "s")
        made = interaction(run, query=word * dice.randrange(1, 60), response=word)
        said = {"content": word * dice.randrange(1, 40)}
        store.consolidate(
            "t", user, made, session=session._replace(messages=(*session.messages, said))
        )
        if job := store.lease(now=AT, until=LATER):
            word = CANARY if job.user_id == gone else "w"
            found = {"goals": [f"{word} {number}"], "preferences": {f"{word}{number}": word * 3}}
            transcript = {"reply": word * dice.randrange(1, 30)}
            store.finish(
                job, learned(found, run, user=job.user_id), AUTO, at=AT, transcript=transcript
            )
    assert traces(tmp_path)
    store.forget("t", gone)
    assert traces(tmp_path) == []
    store.close()


def test_what_others_said_of_a_user_is_forgotten_too(store: AgentStore) -> None:
    memory = MemoryStore(store._database.path)
    for found in learned({"goals": [CANARY]}):
        memory.propose("t", "clerk", found, MemoryLayer())
        memory.propose("s", "clerk", found, MemoryLayer())
    memory.close()
    assert store.forget("t", "u")["proposal"] == 1
    assert len(store.export("s", "clerk")["proposal"]) == 1


def test_as_long_as_somebody_reads_the_forgetting_is_not_called_done(
    store: AgentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.consolidate("t", "u", interaction(query=CANARY))
    reader = sqlite3.connect(store._database.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM profile").fetchone()
    store._database._connection.execute("PRAGMA busy_timeout = 10")
    with pytest.raises(UnusableEnvironment) as refused:
        store.forget("t", "u")
    assert refused.value.code == "memory.busy"
    reader.execute("ROLLBACK")
    reader.close()
    assert sum(store.forget("t", "u").values()) == 0
    assert traces(store._database.path.parent) == []


def test_nothing_is_left_of_a_session_that_is_forgotten(store: AgentStore) -> None:
    made = SessionSnapshot(
        "s", ({"role": "user", "content": CANARY},), reasoning=ReasoningContext(CANARY)
    )
    store.consolidate("t", "u", interaction(), session=made)
    assert store.forget_session("t", "u", "s") == 1
    assert traces(store._database.path.parent) == []
    assert os.listdir(store._database.path.parent)
