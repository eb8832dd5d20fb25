"""The stores of a project that is not trusted: neither read nor written, by any run or command. What is of the user
keeps the user's store, as in an empty directory; what is of the project gets none.

A clone brings stores with a memory, a profile, a session, a job, an edge and an entry, each with a word that stands
nowhere else. So does the user's own store, with another word.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from hostile_project import CHECKOUT
from sealed import chained, events
from support.packs_of_clones import CLONE
from support.project import Project
from support.user_seed import seed_user
from trap import Outcome, TrapMachine, trap_machine

from cogcli.agent.stores.knowledge_store import KnowledgeStore
from cogcli.official import memory as entries
from cogcli.stores.database import Database

pytestmark = pytest.mark.sampled(12)

PLANTED: Final = "wagtail-planted7311"
OWN: Final = "wagtail-own2209"
MARKS: Final = (PLANTED.partition("-")[2], OWN.partition("-")[2])
"""What is looked for: the other half of a word is asked for, so that memory is recalled."""
DESK: Final = CHECKOUT / "docs/examples/support-desk"
MESSAGE: Final = "Where is order ord_881, wagtail?"
REQUEST: Final = {
    "message": MESSAGE,
    "user": {
        "user_id": "cust_7",
        "consent": ["evidence_link", "decision_outcome", "preference"],
    },
    "session_id": "trip",
}
REPLIES: Final = {"replies": [{"times": 99, "json": {"response": "It is 12 days old."}}]}


def seed(folder: Path, word: str) -> None:
    """Stores with a row of each kind, for the tenants that the requests below belong to."""
    folder.mkdir(parents=True, exist_ok=True)
    for tenant, user in (("acme", "cust_7"), ("local", "cust_7"), ("local", "default")):
        seed_user(folder / "memory.db", user, word, tenant=tenant)
    graph = KnowledgeStore(folder / "knowledge.db")
    edge = {"subject": "order:ord_881", "predicate": "note", "value": word, "trust": "verified"}
    known = {"observed_at": "2026-11-20T09:00:00Z", "evidence_ref": f"crm/{word}"}
    graph.append([{"tenant_id": tenant, **edge, **known} for tenant in ("acme", "local")])
    graph.close()
    database = Database(folder / "entries.db", entries._VERSIONS)
    with database.writing() as connection:
        row = ("default", "hours", json.dumps(word), time.time(), None)
        connection.execute("REPLACE INTO entry VALUES (?, ?, ?, ?, ?)", row)
    database.close()


def stored(folder: Path) -> dict[str, bytes]:
    """What lies beside the episodes: the stores, their journals, locks and copies."""
    return {path.name: path.read_bytes() for path in folder.glob("*") if path.is_file()}


class Clone(NamedTuple):
    """A cloned project with planted stores, on a machine whose user has stores, too."""

    machine: TrapMachine
    root: Path
    own: Path
    """The directory of the user's stores."""
    desk: Path
    """A registry of the user's."""
    request: Path
    replies: Path

    def run(self, *words: str, trusted: bool = False, json: bool = True) -> Outcome:
        """The installed command in the clone; in a project that is trusted its own services are allowed."""
        environ = {"PYTHONDONTWRITEBYTECODE": "1"}
        environ |= {"COGCLI_TRUST_PROJECT": "1"} if trusted else {}
        return self.machine.run(self.root, *words, *(("--json",) if json else ()), environ=environ)

    def found(self, outcome: Outcome) -> set[str]:
        """The marks that are on a screen, or in a file that is no store: episodes, caches, crash reports."""
        told = (outcome.out + outcome.err).encode()
        places = (self.root, self.machine.home)
        files = [path for place in places for path in place.rglob("*") if path.is_file()]
        files = [path for path in files if path.parent not in (self.root / ".cogcli", self.own)]
        texts = [told, *(path.read_bytes() for path in files)]
        return {mark for mark in MARKS if any(mark.encode() in text for text in texts)}

    def query_own(self, select: str, file: str = "memory.db") -> list[Any]:
        """Rows of a store of the user."""
        connection = sqlite3.connect(f"file:{self.own / file}?mode=ro", uri=True)
        try:
            return connection.execute(select).fetchall()
        finally:
            connection.close()


@pytest.fixture(scope="module")
def machine() -> Iterator[TrapMachine]:
    with trap_machine() as made:
        yield made


@pytest.fixture
def clone(machine: TrapMachine, request: pytest.FixtureRequest) -> Iterator[Clone]:
    name = "".join(each if each.isalnum() else "-" for each in request.node.name)
    root, home = machine.project(name), machine.home
    own, desk = home / ".local/state/cogcli", home / "desk"
    (root / "cogcli.toml").write_text("")
    (root / "packs/clone").mkdir(parents=True)
    (root / "packs/clone/1.0.0.yaml").write_text(json.dumps(CLONE))
    if not desk.exists():
        ignore = shutil.ignore_patterns("__pycache__", ".cogcli", "runs", "cogcli.toml")
        shutil.copytree(DESK, desk, ignore=ignore)
    asked, replies = home / "request.json", home / "replies.yaml"
    asked.write_text(json.dumps(REQUEST))
    replies.write_text(json.dumps(REPLIES))
    seed(root / ".cogcli", PLANTED)
    seed(own, OWN)
    yield Clone(machine, root, own, desk, asked, replies)
    shutil.rmtree(own)
    shutil.rmtree(root)


def agent_of_user(clone: Clone) -> tuple[str, ...]:
    """A request to the agent of the user's registry, planned by the user's model."""
    pack = ("--pack", "support-desk@4.0.0", "--registry", str(clone.desk))
    return ("agent", "invoke", str(clone.request), *pack, "--model", f"scripted:{clone.replies}")


def agent_of_clone(clone: Clone) -> tuple[str, ...]:
    """A request to the agent of the clone."""
    return ("agent", "invoke", str(clone.request), "--pack", "clone@1.0.0")


# -- what is of the user ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", ["a pack of the user", "without a pack"])
def test_an_agent_of_the_user_knows_nothing_of_the_stores_of_a_clone(
    clone: Clone, agent: str
) -> None:
    before = stored(clone.root / ".cogcli")
    words = agent_of_user(clone)
    if agent == "without a pack":
        words = (*words[:3], *words[-2:])
    own = stored(clone.own)
    outcome = clone.run(*words)
    outcome.assert_nothing_left()
    assert outcome.code == 0, (outcome.out, outcome.err)
    assert clone.found(outcome) == {MARKS[1]}  # the user's own memory is in the prompt
    assert stored(clone.root / ".cogcli") == before
    assert stored(clone.own) != own


def test_the_prompt_of_a_project_that_is_trusted_has_its_memory(clone: Clone) -> None:
    """The same request, so that the tests around can fail."""
    outcome = clone.run(*agent_of_user(clone), trusted=True)
    assert outcome.code == 0, (outcome.out, outcome.err)
    assert clone.found(outcome) == {MARKS[0]}


def test_the_memory_skills_use_the_store_of_the_user(clone: Clone) -> None:
    before = stored(clone.root / ".cogcli")
    outcome = clone.run("run", "memory.retrieve-summary", "-p", "key=hours").assert_nothing_left()
    assert outcome.json["outputs"]["value"] == OWN
    kept = clone.run(
        "run", "memory.store-summary", "-p", "key=new", "-p", "text=The harbour opens."
    )
    assert kept.code == 0, kept.err
    assert PLANTED.partition("-")[2] not in outcome.out + outcome.err
    assert stored(clone.root / ".cogcli") == before
    keys = clone.query_own("SELECT key FROM entry ORDER BY key", "entries.db")
    assert keys == [("hours",), ("new",)]


LOOKS: Final = {
    "memory ls": ("memory", "ls", "--tenant", "acme"),
    "memory proposals": ("memory", "proposals", "--all", "--tenant", "acme"),
    "memory recall": ("memory", "recall", "wagtail", "--tenant", "acme", "--user", "cust_7"),
    "knowledge query": ("knowledge", "query", "order:ord_881", "--tenant", "acme"),
    "agent sessions ls": ("agent", "sessions", "ls"),
    "agent sessions show": ("agent", "sessions", "show", "trip", "--user", "cust_7"),
    "agent sessions forget": ("agent", "sessions", "forget", "trip", "--user", "cust_7"),
    "agent jobs ls": ("agent", "jobs", "ls", "--all"),
    "agent jobs run": ("agent", "jobs", "run"),
    "agent profile show": ("agent", "profile", "show", "cust_7"),
    "agent profile export": ("agent", "profile", "export", "cust_7"),
    "agent profile forget": ("agent", "profile", "forget", "cust_7", "--yes"),
}


@pytest.mark.parametrize("command", LOOKS)
def test_a_command_about_a_store_is_about_that_of_the_user(clone: Clone, command: str) -> None:
    before = stored(clone.root / ".cogcli")
    more = ("--model", f"scripted:{clone.replies}") if command == "agent jobs run" else ()
    outcome = clone.run(*LOOKS[command], *more).assert_nothing_left()
    assert outcome.code in (0, 1), (outcome.out, outcome.err)
    assert MARKS[0] not in outcome.out + outcome.err
    assert stored(clone.root / ".cogcli") == before
    (warning,) = outcome.json["warnings"]
    assert warning["code"] == "service.untrusted"
    assert "your own store" in warning["message"]


def test_doctor_says_nothing_of_the_jobs_of_a_clone(clone: Clone) -> None:
    before = stored(clone.root / ".cogcli")
    outcome = clone.run("doctor")
    assert "jobs" not in {check["name"] for check in outcome.json["checks"]}
    assert stored(clone.root / ".cogcli") == before
    assert "jobs" in {check["name"] for check in clone.run("doctor", trusted=True).json["checks"]}


# -- what is of the project ------------------------------------------------------------------------------------------


def test_an_agent_of_a_clone_has_no_store(clone: Clone) -> None:
    before, own = stored(clone.root / ".cogcli"), stored(clone.own)
    outcome = clone.run(*agent_of_clone(clone)).assert_nothing_left()
    assert outcome.code == 0, (outcome.out, outcome.err)
    assert clone.found(outcome) == set()
    assert (stored(clone.root / ".cogcli"), stored(clone.own)) == (before, own)
    (warning,) = outcome.json["warnings"]
    assert "without memory, knowledge, sessions" in warning["message"]
    trusted = clone.run(*agent_of_clone(clone), trusted=True)
    assert trusted.code == 0, (trusted.out, trusted.err)
    assert clone.found(trusted) == {MARKS[0]}
    assert stored(clone.root / ".cogcli") != before


@pytest.mark.parametrize("pack", ["clone@1.0.0", "packs/clone/1.0.0.yaml"])
def test_the_context_of_a_pack_of_a_clone_has_nothing_of_a_store(clone: Clone, pack: str) -> None:
    before, own = stored(clone.root / ".cogcli"), stored(clone.own)
    words = ("context", "compile", str(clone.request), "--pack", pack)
    dry = ("agent", "invoke", str(clone.request), "--pack", "clone@1.0.0", "--dry-run")
    for outcome in (clone.run(*words), clone.run(*dry)):
        outcome.assert_nothing_left()
        assert outcome.code == 0, (outcome.out, outcome.err)
        assert clone.found(outcome) == set()
    assert (stored(clone.root / ".cogcli"), stored(clone.own)) == (before, own)
    assert clone.found(clone.run(*words, trusted=True)) == {MARKS[0]}


REFUSED: Final = {
    "a pack of the clone recalls": ("memory", "recall", "wagtail", "--pack", "clone@1.0.0"),
    "a file of a pack recalls": ("memory", "recall", "wagtail", "--pack", "packs/clone/1.0.0.yaml"),
    "facts of the clone are imported": ("knowledge", "import", "facts.jsonl"),
    "a skill of the clone reads": ("run", "clone.read"),
    "a skill of the clone writes": ("run", "clone.write", "--confirm", "memory.entry.store"),
}


@pytest.mark.parametrize("attack", REFUSED)
def test_what_would_bring_a_clone_and_a_store_together_is_refused(
    clone: Clone, attack: str
) -> None:
    (clone.root / "facts.jsonl").write_text('{"subject": "a:b", "predicate": "p", "value": "v"}\n')
    for slug, uses, output in (("read", "retrieve", "found"), ("write", "store", "stored")):
        step = {
            "id": "only",
            "uses": f"memory.entry.{uses}",
            "input": {"key": {"$literal": "hours"}},
            "output": {output: "outputs.text"},
        }
        if uses == "store":
            step["input"] = {**step["input"], "value": {"$literal": "forged"}}  # type: ignore[dict-item]
        skill = {
            "id": f"clone.{slug}",
            "version": "1.0.0",
            "name": slug,
            "description": f"Tries to {slug}.",
            "inputs": {},
            "outputs": {"text": {"type": "any"}},
            "steps": [step],
        }
        folder = clone.root / f"skills/local/clone/{slug}"
        folder.mkdir(parents=True)
        (folder / "skill.yaml").write_text(json.dumps(skill))
    before, own = stored(clone.root / ".cogcli"), stored(clone.own)
    outcome = clone.run(*REFUSED[attack]).assert_nothing_left()
    assert outcome.code == 3, (outcome.out, outcome.err)
    error = outcome.json["error"]
    assert error["code"] == "service.untrusted", error
    assert any("cogcli config trust" in line for line in (error["hint"], *error["next"])), error
    assert clone.found(outcome) == set()
    assert (stored(clone.root / ".cogcli"), stored(clone.own)) == (before, own)


def test_an_episode_that_a_clone_brings_writes_into_no_store(clone: Clone) -> None:
    """A run that was planned by the rules, cut before its end: whoever resumes it would keep it. The user vouches for
    its permissions, and not for the project."""
    assert clone.run(*agent_of_clone(clone), trusted=True).code == 0
    (folder,) = (clone.root / ".cogcli/episodes").glob("ep_*")
    log = events(folder)
    chained(folder, log[:-2])
    for name in ("state.json", "summary.json", "manifest.json", "checkpoint.jsonl"):
        (folder / name).unlink()
    before, own = stored(clone.root / ".cogcli"), stored(clone.own)
    refused = clone.run("resume", folder.name)
    assert (refused.code, refused.json["error"]["code"]) == (3, "resume.untrusted")
    head = refused.err.rpartition("--head ")[2].split()[0]
    outcome = clone.run("resume", folder.name, "--head", head)
    assert outcome.code == 0, (outcome.out, outcome.err)
    assert (stored(clone.root / ".cogcli"), stored(clone.own)) == (before, own)


def test_a_link_of_a_clone_leads_to_no_store_of_another(clone: Clone) -> None:
    for name in stored(clone.root / ".cogcli"):
        (clone.root / ".cogcli" / name).unlink()
        (clone.root / ".cogcli" / name).symlink_to(clone.machine.outside / "canary.txt")
    outcome = clone.run("memory", "ls", "--tenant", "acme").assert_nothing_left()
    assert outcome.code == 0, (outcome.out, outcome.err)


def test_once_it_is_trusted_a_project_has_its_own_store_again(project: Project) -> None:
    del project.env["COGCLI_TRUST_PROJECT"]
    project.write("cogcli.toml", "")
    words = ("run", "memory.store-summary", "-p", "key=k", "-p", "text=The harbour opens at six.")
    project.run(*words).assert_ok()
    assert not (project.root / ".cogcli/entries.db").exists()
    assert (project.home / ".local/state/cogcli/entries.db").exists()
    project.run("config", "trust", "--yes").assert_ok()
    project.run(*words).assert_ok()
    assert (project.root / ".cogcli/entries.db").exists()
