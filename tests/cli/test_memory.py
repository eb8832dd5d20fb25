"""Memory from the command line: what is kept, what waits, who decided, what a request is given
(docs/reference/pack.md#memory-commands)."""

from __future__ import annotations

import json
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.memory_seed import payload, propose
from support.project import COGCLI, Project, Result

from cogcli.declarations.pack_spec import MemoryLayer

pytestmark = pytest.mark.sampled(4)

DESK = Path(__file__).parents[2] / "docs/examples/support-desk"
PACK = "support-desk@4.0.0"
TERMINAL = {"COGCLI_FORCE_TTY": "120", "NO_COLOR": "1"}


@pytest.fixture
def project(project: Project) -> Project:
    project.write("cogcli.toml", "")
    return project


def _proposed(project: Project, value: Any = "email", **given: Any) -> str:
    members = {
        name: given.pop(name) for name in ("class", "data_class", "candidate") if name in given
    }
    (made,) = propose(project.root, payload(value, **members), **given)
    return made.proposal_id


def _promote(project: Project, id: str, *more: str) -> Result:
    return project.run("memory", "promote", id, "--by", "ann", "--json", *more)


def _values(result: Result, key: str = "memories") -> list[Any]:
    return [row["candidate"]["value"] for row in result.assert_ok().json[key]]


def test_a_proposal_waits_is_promoted_and_recalled_by_its_user_with_consent(
    project: Project,
) -> None:
    id = _proposed(project)
    assert _values(project.run("memory", "proposals", "--json"), "proposals") == ["email"]
    assert _values(project.run("memory", "ls", "--json")) == []
    (made,) = _promote(project, id).assert_ok().json["proposals"]
    assert (made["state"], made["decided_by"], bool(made["decided_at"])) == (
        "promoted",
        "ann",
        True,
    )
    assert _values(project.run("memory", "proposals", "--json"), "proposals") == []
    assert _values(project.run("memory", "ls", "--user", "cust_7", "--json")) == ["email"]
    assert _values(project.run("memory", "ls", "--user", "cust_8", "--json")) == []
    recall = ("memory", "recall", "contact by email", "--user", "cust_7", "--json")
    assert _values(project.run(*recall, "--consent", "preference")) == ["email"]
    without = project.run(*recall).assert_ok()
    assert (without.json["memories"], without.json["omitted"]) == (
        [],
        [{"memory_id": id, "reason": "consent"}],
    )
    assert "left out: 1 memory (consent)" in project.run(*recall[:-1]).assert_ok().err
    nobody = project.run("memory", "recall", "contact", "--consent", "preference", "--json")
    assert _values(nobody) == []


def test_nothing_is_promoted_without_consent_and_the_next_command_says_why(
    project: Project,
) -> None:
    id = _proposed(project, tenant="big corp", consent=())
    refused = _promote(project, id, "--tenant", "big corp").assert_exit(3)
    assert refused.json["error"]["code"] == "memory.consent"
    (line,) = refused.json["error"]["next"]
    why = project.run(*shlex.split(line)[1:]).assert_ok().out
    assert "consent     not given" in why
    assert (
        "waits for   a person: no pack promotes its class by itself, its confidence is below" in why
    )
    _promote(project, id, "--tenant", "big corp", "--consent", "correction").assert_exit(3)
    assert _values(
        _promote(project, id, "--tenant", "big corp", "--consent", "preference"), "proposals"
    ) == ["email"]


def test_what_is_rejected_closes_when_it_is_proposed_again(project: Project) -> None:
    id = _proposed(project)
    rejected = project.run(
        "memory", "reject", id, "--by", "ann", "--reason", "moved", "--json"
    ).assert_ok()
    assert rejected.json["proposals"][0]["state"] == "rejected"
    assert propose(project.root, payload("email"), run_id="run_2")[0].outcome == "rejected_before"
    assert project.run("memory", "proposals").assert_ok().out == ""
    (row,) = project.run("memory", "proposals", "--all", "--json").json["proposals"]
    assert (row["state"], row["decided_by"], row["reason"]) == ("rejected_before", "ann", "moved")
    again = project.run("memory", "reject", id, "--by", "bob").assert_ok()
    assert "nothing changed: rejected_before by ann at " in again.err


def test_a_newer_preference_takes_the_place_of_the_older_one_and_both_are_in_the_history(
    project: Project,
) -> None:
    """With consent, and where the pack promotes preferences by itself."""
    layer = MemoryLayer(auto_promote=("preference",), confidence_floor=0.5)
    ids = []
    for hour, value in enumerate(("email", "phone", "email")):
        at = f"2026-11-01T1{hour}:00:00.000000Z"
        (made,) = propose(project.root, payload(value), run_id=f"run_{hour}", at=at, layer=layer)
        assert made.outcome == "promoted"
        ids.append(made.proposal_id)
    assert _values(project.run("memory", "ls", "--json")) == ["email"]
    (old,) = project.run("memory", "proposals", "--all", "--json").json["proposals"]
    assert (old["candidate"]["value"], old["state"]) == ("phone", "superseded")
    assert (old["decided_by"], old["reason"]) == ("code", f"superseded by {ids[0]}")
    why = project.run("memory", "ls", "--why", ids[0]).assert_ok().out
    assert f"superseded by {ids[0]}" in why
    (made,) = propose(project.root, payload("fax"), run_id="run_9", consent=(), layer=layer)
    assert made.outcome == "no_consent"
    assert _values(project.run("memory", "ls", "--json")) == ["email"]


def test_a_contradiction_is_shown_beside_what_it_contradicts(project: Project) -> None:
    said = {"class": "evidence_link"}
    ids = [_proposed(project, value, run_id=value, **said) for value in ("email", "phone")]
    _promote(project, ids[0]).assert_ok()
    shown = project.run("memory", "promote", ids[1], "--by", "ann").assert_ok()
    assert shown.out.splitlines() == [
        f'promoted {ids[1]}: user:cust_7 contact_by = "phone"',
        f'contradicts {ids[0]}: user:cust_7 contact_by = "email"',
    ]
    line = shown.err.strip().removeprefix("next: ")
    assert line == f"cogcli memory reject {ids[0]}"
    project.run(*shlex.split(line)[1:]).assert_ok()
    assert _values(project.run("memory", "ls", "--json")) == ["phone"]
    _promote(project, ids[0]).assert_ok()
    letter = _proposed(project, "letter", **{"class": "correction"})
    right = project.run("memory", "promote", letter, "--by", "bob").assert_ok()
    assert [line.split()[0] for line in right.out.splitlines()] == [
        "promoted",
        "supersedes",
        "supersedes",
    ]
    assert _values(project.run("memory", "ls", "--json")) == ["letter"]
    why = project.run("memory", "ls", "--why", letter).assert_ok().out
    assert (
        why.count(f"(superseded by bob at {_decided_at(project, letter)}: superseded by {letter};")
        == 2
    )


def _decided_at(project: Project, id: str) -> str:
    (row,) = project.run("memory", "ls", "--why", id, "--json").json["memories"]
    return str(row["decided_at"])


def test_why_names_evidence_runs_state_and_whether_it_is_recalled(desk: Project) -> None:
    id = _proposed(desk, tenant="acme")
    propose(
        desk.root, payload("email", evidence_refs=["run_2/mail"]), tenant="acme", run_id="run_2"
    )
    why = ("memory", "ls", "--why", id, "--pack", PACK)
    (waiting,) = desk.run(*why, "--json").assert_ok().json["memories"]
    assert (waiting["evidence_refs"], waiting["runs"]) == (
        ["run_1/order", "run_2/mail"],
        ["run_1", "run_2"],
    )
    assert waiting["recall"] == {"recalled": False, "reason": "proposed"}
    assert waiting["waits_for"] == ["auto_promote", "confidence_floor"]
    _promote(desk, id, "--tenant", "acme").assert_ok()
    assert (
        "recalled    no: the request gives no consent to `preference`"
        in desk.run(*why).assert_ok().out
    )
    consent = (*why, "--consent", "preference")
    assert desk.run(*consent, "--json").json["memories"][0]["recall"] == {
        "recalled": True,
        "reason": None,
    }
    desk.run(*consent, "--user", "cust_8").assert_exit(2)


def test_long_evidence_is_counted(project: Project) -> None:
    id = _proposed(project)
    refs = [f"run_2/{number}" for number in range(30)]
    propose(project.root, payload("email", evidence_refs=refs), run_id="run_2")
    assert "  evidence    … 11 more\n" in project.run("memory", "ls", "--why", id).assert_ok().out


def test_where_no_store_can_be(project: Project) -> None:
    project.write(".cogcli", "a file")
    refused = project.run("memory", "ls", "--json").assert_exit(3)
    assert refused.json["error"]["code"] == "env.disk"


def test_a_pack_gives_tenant_classification_lifetime_and_number(desk: Project) -> None:
    secret = _proposed(desk, "secret", tenant="acme", data_class="pii")
    about = {"entity": "user:cust_7", "value": "contact"}
    kept = [
        _proposed(desk, tenant="acme", run_id=str(n), candidate={**about, "predicate": f"by.{n}"})
        for n in range(9)
    ]
    for id in (secret, *kept):
        _promote(desk, id, "--tenant", "acme").assert_ok()
    recall = (
        "memory",
        "recall",
        "contact",
        "--user",
        "cust_7",
        "--consent",
        "preference",
        "--json",
    )
    body = desk.run(*recall, "--pack", PACK).assert_ok().json
    assert len(body["memories"]) == 8
    assert sorted(each["reason"] for each in body["omitted"]) == ["class", "top_k"]
    assert desk.run(*recall).assert_ok().json["memories"] == []
    desk.run(*recall, "--pack", PACK, "--tenant", "other").assert_exit(2)
    pack = desk.root / "packs/support-desk/4.0.0.yaml"
    pack.write_text(pack.read_text().replace("94608000", "0.000001"))
    late = desk.run(*recall, "--pack", PACK).assert_ok().json
    assert {each["reason"] for each in late["omitted"]} == {"class", "expired"}


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (("promote", "mp_0123456789abcdef"), 2, "memory.unknown"),
        (("reject", "'; DROP TABLE proposal; --", "--by", "ann"), 2, "memory.unknown"),
        (("ls", "--why", "\x1b[2J"), 2, "memory.unknown"),
        *(
            (("promote", "x", "--by", by), 2, "usage.value")
            for by in ("", " ", "ann ", "code", "CODE", "a\x1bb", "\u200bann")
        ),
        (("promote", "x", "--by", "a" * 101), 2, "usage.value"),
        (("recall", "x", "--user", "../x"), 2, "usage.value"),
        (("recall", "x", "--user", ""), 2, "usage.value"),
        (("recall", "x", "--consent", "everything"), 2, "usage.value"),
        (("recall", "x", "--tenant", "\udcff"), 2, "input.encoding"),
        (("recall", "\udcff"), 2, "input.encoding"),
        (("recall", "x", "--pack", "nothing@1.0.0"), 3, "pack.unknown"),
    ],
)
def test_what_is_refused(project: Project, words: tuple[str, ...], code: int, error: str) -> None:
    refused = project.run("memory", *words, "--json").assert_exit(code)
    assert refused.json["error"]["code"] == error
    assert "\x1b" not in refused.out + refused.err


def test_hostile_texts_are_data_and_are_shown_escaped(project: Project) -> None:
    evil = "\x1b]0;pwn\x07\x00\u202e'; DROP TABLE proposal; --\n$(reboot)"
    candidate = {"entity": f"user:{evil}", "predicate": evil, "value": {evil: ["x" * 50_000, evil]}}
    id = _proposed(project, tenant="a'b", candidate=candidate)
    propose(project.root, payload(1, evidence_refs=[evil]), tenant="a'b", run_id=evil)
    tenant = ("--tenant", "a'b")
    for words in (("proposals",), ("promote", id, "--by", "ann"), ("ls",), ("ls", "--why", id),
                  ("recall", "DROP", "--user", "cust_7", "--consent", "preference"), ("reject", id)):  # fmt: skip
        for format in ((), ("--format", "jsonl"), ("--format", "csv"), ("--json",)):
            if words[0] in ("promote", "reject") and format:
                continue
            shown = project.run("memory", *words, *format, *tenant, env=TERMINAL).assert_ok()
            assert not set("\x1b\x07\x00\u202e") & set(shown.out + shown.err), words
    why = project.run("memory", "ls", "--why", id, *tenant).assert_ok().out
    assert len(why) < 20_000
    assert "bytes more" in why


@pytest.mark.parametrize(
    "words", [("ls",), ("proposals",), ("promote", "x"), ("reject", "x"), ("recall", "x")]
)
def test_a_damaged_or_newer_file_is_refused_and_left(
    project: Project, words: tuple[str, ...]
) -> None:
    file = project.root / ".cogcli/memory.db"
    for content in (b"not a database" * 100, _newer(project)):
        file.write_bytes(content)
        refused = project.run("memory", *words, "--json").assert_exit(3)
        assert refused.json["error"]["code"] == "memory.damaged"
        assert file.read_bytes() == content


def _newer(project: Project) -> bytes:
    file = project.root / ".cogcli/memory.db"
    file.parent.mkdir(exist_ok=True)
    with sqlite3.connect(project.root / "newer.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    return (project.root / "newer.db").read_bytes()


def test_a_file_that_somebody_else_writes_to_is_busy(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cogcli.stores.database.BUSY_SECONDS", 0.05)
    id = _proposed(project)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(project.root / ".cogcli/memory.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert _values(project.run("memory", "proposals", "--json"), "proposals") == ["email"]
        assert _promote(project, id).assert_exit(3).json["error"]["code"] == "memory.busy"
    _promote(project, id).assert_ok()


HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


def test_of_two_commands_that_promote_at_once_one_decides(project: Project) -> None:
    """Two processes at once are processes."""
    id = _proposed(project)
    promoters = [
        subprocess.Popen(
            [COGCLI, "memory", "promote", id, "--by", name, "--json"],
            cwd=project.root,
            env=project.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for name in ("ann", "bob")
    ]
    said = [promoter.communicate(timeout=60) for promoter in promoters]
    assert [promoter.returncode for promoter in promoters] == [0, 0]
    assert len({json.loads(out)["proposals"][0]["decided_by"] for out, _ in said}) == 1
    assert sorted(b"nothing changed" in err for _, err in said) == [False, True]
