"""What agents keep of users, from the command line (docs/reference/user-memory.md)."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.project import Project
from support.user_seed import interaction, seed_user

from cogcli.agent.stores.agent_store import AgentStore

pytestmark = pytest.mark.sampled(8)

CANARY = "canary-7f3a9"
UPDATER = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from cogcli.stores import database
from support.user_seed import AT, AUTO, LATER, AgentStore, interaction, learned
database.BUSY_SECONDS = 60
store = AgentStore(Path(sys.argv[1]))
for number in range(8):
    run = f"{{sys.argv[2]}}_{{number}}"
    store.consolidate("local", "cust_7", interaction(run))
    if job := store.lease(now=AT, until=LATER):
        found = learned({{"goals": [f"{{sys.argv[3]}} {{run}}"]}}, run, user="cust_7")
        store.finish(job, found, AUTO, at=AT, transcript={{}})
"""


@pytest.fixture
def project(project: Project) -> Project:
    project.write("cogcli.toml", "")
    return project


def store_of(project: Project) -> Path:
    return project.root / ".cogcli/memory.db"


def profile(project: Project, user: str = "cust_7") -> Any:
    return project.run("agent", "profile", "show", user, "--json").assert_ok().json["profile"]


def traces(project: Project, word: str) -> list[str]:
    files = [path for path in (project.root / ".cogcli").rglob("*") if path.is_file()]
    return [str(path) for path in files if word.encode() in path.read_bytes() or word in path.name]


@pytest.mark.slow
def test_a_profile_is_saved_updated_by_two_processes_exported_and_forgotten(
    project: Project,
) -> None:
    path = store_of(project)
    seed_user(path, word=CANARY)
    workers = [
        subprocess.Popen([sys.executable, "-c", UPDATER, str(path), name, CANARY]) for name in "ab"
    ]
    assert [worker.wait(120) for worker in workers] == [0, 0]
    found = profile(project)
    assert found["interaction_count"] == 18
    assert found["preferences"] == {"tone": CANARY}
    exported = project.run("agent", "profile", "export", "cust_7").assert_ok().json
    assert len(exported["tables"]["interaction"]) == 18
    assert {row["run_id"] for row in exported["tables"]["interaction"]} >= {"a_7", "b_7"}
    assert (
        '    "user_id": "cust_7"'
        in project.run("agent", "profile", "export", "cust_7", "--format", "md").out
    )
    assert traces(project, CANARY)
    project.run("agent", "profile", "forget", "cust_7", "--yes").assert_ok()
    assert traces(project, CANARY) == []
    assert profile(project)["interaction_count"] == 0
    rows = project.run("agent", "profile", "export", "cust_7").assert_ok().json["tables"]
    assert not any(rows.values())


def test_each_entry_is_shown_with_its_episode_and_who_promoted_it(project: Project) -> None:
    seed_user(store_of(project))
    shown = project.run("agent", "profile", "show", "cust_7").assert_ok().out.splitlines()
    assert shown[1:] == [
        'preferences.tone = "short"  (code, from ep_run_short_0)',
        'goals = "short 0"  (code, from ep_run_short_0)',
    ]
    assert shown[0].startswith("cust_7 in local: 2 interactions from 2026-11-01")
    nobody = project.run("agent", "profile", "show", "CUST_7").assert_ok()
    assert (nobody.out, nobody.err) == ("", "nothing is known of CUST_7 in local\n")


def test_to_forget_needs_a_yes_and_names_the_episodes_that_stay(desk: Project) -> None:
    desk.run("agent", "invoke", "requests/allowed.json", "-q").assert_ok()
    (episode,) = (path.name for path in (desk.root / ".cogcli/episodes").glob("ep_*"))
    user = json.loads((desk.root / "requests/allowed.json").read_text())["user"]["user_id"]
    seed_user(store_of(desk), user, tenant="acme")
    refused = desk.run("agent", "profile", "forget", user, "--tenant", "acme").assert_exit(2)
    assert "cannot be undone" in refused.err
    count = profile_of(desk, user)["interaction_count"]
    assert count >= 2
    (export, line) = (each for each in refused.err.splitlines() if "cogcli agent" in each)
    desk.run(*shlex.split(export.split("cogcli ", 1)[1])).assert_ok()
    done = (
        desk.run(*shlex.split(line.split("cogcli ", 1)[1]), "--json").assert_ok().json["forgotten"]
    )
    assert done["episodes"] == [episode]
    assert done["deleted"]["interaction"] == count
    assert profile_of(desk, user)["interaction_count"] == 0
    again = desk.run("agent", "profile", "forget", user, "--tenant", "acme", "--yes").assert_ok()
    assert again.out == f"forgot {user} in acme: nothing was held\n"
    assert again.err == f"1 episode of this user stays: {episode}\n"


def profile_of(desk: Project, user: str) -> Any:
    return (
        desk.run("agent", "profile", "show", user, "--tenant", "acme", "--json")
        .assert_ok()
        .json["profile"]
    )


def test_sessions_are_listed_shown_and_forgotten(project: Project) -> None:
    for user in ("cust_7", "cust_8"):
        seed_user(store_of(project), user)
    listed = project.run("agent", "sessions", "ls", "--json").assert_ok().json["sessions"]
    assert [(row["session_id"], row["user_id"], row["messages"]) for row in listed] == [
        ("trip", "cust_7", 2), ("trip", "cust_8", 2),
    ]  # fmt: skip
    assert (
        len(project.run("agent", "sessions", "ls", "--user", "cust_7", "--json").json["sessions"])
        == 1
    )
    assert {row["tenant_id"] for row in listed} == {"local"}
    assert (
        project.run("agent", "sessions", "ls", "--tenant", "acme", "--json").json["sessions"] == []
    )
    shown = (
        project.run("agent", "sessions", "show", "trip", "--user", "cust_7")
        .assert_ok()
        .out.splitlines()
    )
    assert shown[0] == "trip of cust_7: mode deep"
    assert shown[2].endswith(" user (ep_run_short_0): short please")
    unknown = (
        project.run("agent", "sessions", "show", "trip", "--json").assert_exit(2).json["error"]
    )
    assert unknown["code"] == "session.unknown"
    project.run(*shlex.split(unknown["next"][0])[1:]).assert_ok()
    gone = project.run("agent", "sessions", "forget", "trip", "--user", "cust_7").assert_ok()
    assert gone.out == "forgot trip of cust_7: 2 messages\n"
    project.run("agent", "sessions", "forget", "trip", "--user", "cust_7").assert_exit(2)
    (left,) = project.run("agent", "sessions", "ls", "--json").json["sessions"]
    assert left["user_id"] == "cust_8"
    assert profile(project)["goals"] == ["short 0"]


def test_jobs_are_listed_and_done_by_the_next_commands(project: Project) -> None:
    store = AgentStore(store_of(project))
    for number in range(8):
        store.consolidate("local", "cust_7", interaction(f"run_{number}", template="refund"))
    store.close()
    waiting = ("agent", "jobs", "ls", "--json")
    assert len(project.run(*waiting).assert_ok().json["jobs"]) == 10
    profile(project)
    assert len(project.run(*waiting).json["jobs"]) == 7
    project.run("agent", "sessions", "ls").assert_ok()
    assert len(project.run(*waiting).json["jobs"]) == 4
    done = project.run("agent", "jobs", "run", "--limit", "3").assert_ok().out.splitlines()
    assert [line.split()[0] for line in done] == ["done"] * 3
    assert project.run("agent", "jobs", "run").assert_ok().out.count("\n") == 1
    assert project.run("agent", "jobs", "run").assert_ok().err == "there is no job\n"
    every = (
        project.run("agent", "jobs", "ls", "--all", "--format", "jsonl")
        .assert_ok()
        .out.splitlines()
    )
    assert {json.loads(line)["state"] for line in every} == {"done"}
    (waits,) = project.run("memory", "proposals", "--json").json["proposals"]
    assert waits["candidate"]["predicate"] == "success_patterns.refund"


def test_a_job_that_fails_for_good_is_named_by_doctor(project: Project) -> None:
    project.write("replies.yaml", "replies: [{text: never, times: 9}]\n")
    store = AgentStore(store_of(project))
    store.consolidate("local", "cust_7", interaction())
    store.close()
    for _ in range(5):
        run = project.run(
            "agent", "jobs", "run", "--model", "scripted:replies.yaml", "--json"
        ).assert_exit(1)
    (row,) = run.json["jobs"]
    assert (row["outcome"], row["error"].split(":")[0]) == ("failed", "not_json")
    checks = project.run("doctor", "--json").json["checks"]
    (jobs,) = [check for check in checks if check["name"] == "jobs"]
    assert (jobs["status"], jobs["message"]) == ("warning", "1 failed for good")
    project.run(*shlex.split(jobs["fix"])[1:]).assert_ok()


@pytest.mark.parametrize(
    "command",
    [
        "profile show u",
        "profile export u",
        "profile forget u --yes",
        "sessions ls",
        "jobs ls",
        "jobs run",
    ],
)
def test_looking_makes_no_store_and_a_damaged_one_is_refused(
    project: Project, command: str
) -> None:
    words = ("agent", *command.split())
    project.run(*words).assert_ok()
    assert not store_of(project).exists()
    project.write(".cogcli/memory.db", b"no database" * 99)
    assert project.run(*words, "--json").assert_exit(3).json["error"]["code"] == "memory.damaged"
    assert store_of(project).read_bytes() == b"no database" * 99


@pytest.mark.parametrize("user", ["-x", "a b", "ü", "x" * 65, "../u"])
def test_users_of_another_form_are_asked_wrongly(project: Project, user: str) -> None:
    for words in (("profile", "show", "--", user), ("sessions", "show", "s", f"--user={user}")):
        project.run("agent", *words).assert_exit(2)


def test_what_a_user_said_breaks_no_line(project: Project) -> None:
    word = "a\x1b[31m\nb"
    seed_user(store_of(project), word=word)
    for words in (("profile", "show", "cust_7"), ("profile", "export", "cust_7", "--format", "md"),
                  ("sessions", "show", "trip", "--user", "cust_7"), ("jobs", "ls", "--all")):  # fmt: skip
        out = project.run("agent", *words).assert_ok().out
        assert "\x1b" not in out
        assert "\nb" not in out


def test_after_its_answer_a_run_learns_and_without_a_grace_it_does_not(desk: Project) -> None:
    every = ("agent", "jobs", "ls", "--all", "--json")
    desk.run(
        "agent", "invoke", "requests/allowed.json", env={"COGCLI_AGENT_SYNTHESIS_GRACE_S": "0"}
    ).assert_ok()
    assert {job["state"] for job in desk.run(*every).assert_ok().json["jobs"]} == {"queued"}
    desk.run("agent", "invoke", "requests/allowed.json", "--no-memory").assert_ok()
    assert {job["state"] for job in desk.run(*every).json["jobs"]} == {"queued"}
    desk.run("agent", "invoke", "requests/allowed.json").assert_ok()
    assert {job["state"] for job in desk.run(*every).json["jobs"]} == {"done"}
    found = desk.run("memory", "proposals", "--tenant", "acme", "--json").json["proposals"]
    assert "success_patterns.order_status" in [each["candidate"]["predicate"] for each in found]


def test_what_cannot_be_learned_changes_no_exit_code(desk: Project) -> None:
    answer = {"response": "Nothing to do.", "thinking": "x"}
    desk.write("replies.yaml", json.dumps({"replies": [{"json": answer}]}))
    model = ("--model", "scripted:replies.yaml")
    desk.write("jobs.yaml", json.dumps({"replies": [{"when": ["nobody says this"], "text": "x"}]}))
    env = {"COGCLI_AGENT_SYNTHESIS_GRACE_S": "0"}
    code = desk.run("agent", "invoke", "requests/allowed.json", *model, env=env).code
    run = desk.run(
        "agent",
        "invoke",
        "requests/allowed.json",
        *model,
        env={"COGCLI_MODEL": "scripted:jobs.yaml"},
    )
    assert run.code == code
    assert "internal" not in run.err
