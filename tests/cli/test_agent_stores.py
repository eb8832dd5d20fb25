"""What becomes of an agent's run when its stores fail it, and when several runs use them at once
(docs/reference/agent-run.md#decision)."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest
from support.project import COGCLI, Project

from cogcli.agent.use_cases.compile_context import parse_request
from cogcli.agent.use_cases.invoke_agent import AgentCommandInput, invoke
from cogcli.app.settings import Settings
from cogcli.declarations.envelope import Event
from cogcli.declarations.options import RunOptions
from cogcli.episode.log_reader import EventLog
from cogcli.run.prepare import RunRequest

pytestmark = pytest.mark.sampled(12)

DESK = Path(__file__).parents[2] / "docs/examples/support-desk"
YES = ("resume", "@last", "--approve", "GATE_FINANCE_APPROVAL", "--by", "ann:finance")


def memory(desk: Project) -> Path:
    return desk.root / ".cogcli" / "memory.db"


def proposed(desk: Project) -> list[dict[str, Any]]:
    """The proposals in all logs."""
    logs = [EventLog(file.parent) for file in desk.root.rglob("events.jsonl")]
    return [
        each for log in logs for _, event in log for each in event.payload.get("proposals") or ()
    ]


def stored(desk: Project) -> int:
    """How many proposals of runs are stored, those of several runs once each, without what was learned of them."""
    with closing(sqlite3.connect(memory(desk))) as store:
        count: int = store.execute(
            "SELECT count(*) FROM proposed_in JOIN proposal USING (proposal_id) WHERE class <> 'preference'"
        ).fetchone()[0]
    return count


def _damaged(file: Path) -> None:
    file.write_bytes(b"this is not a database" * 100)


def _directory(file: Path) -> None:
    file.unlink(missing_ok=True)
    file.mkdir()


def _newer(file: Path) -> None:
    with closing(sqlite3.connect(file)) as store:
        store.execute("PRAGMA user_version = 99")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fail", [_damaged, _directory, _newer])
def test_a_memory_that_cannot_be_written_changes_nothing_of_the_run(
    desk: Project, fail: Any
) -> None:
    desk.run("agent", "invoke", "requests/needs-finance.json").assert_exit(5)
    for ending in ("-wal", "-shm"):
        memory(desk).with_name(f"memory.db{ending}").unlink(missing_ok=True)
    fail(memory(desk))
    before = memory(desk).read_bytes() if memory(desk).is_file() else b""
    resumed = desk.run(*YES, "--json").assert_ok()
    (warning,) = resumed.json["warnings"]
    assert warning["message"].startswith("the log has what the run learned, its store does not: ")
    assert f"warning[{warning['code']}]" in resumed.err
    assert [each["class"] for each in proposed(desk)] == [
        "evidence_link",
        "evidence_link",
        "decision_outcome",
    ]
    assert (memory(desk).read_bytes() if memory(desk).is_file() else b"") == before
    decision = json.loads(next(desk.root.rglob("decision.json")).read_text())
    assert (decision["status"], len(decision["memory_proposals"])) == ("completed", 3)
    desk.run("verify", "@last").assert_ok()
    desk.run("replay", "@last").assert_ok()


def test_the_calls_of_a_run_are_counted(desk: Project) -> None:
    made = desk.run("agent", "invoke", "requests/allowed.json", "--json").assert_ok().json
    with closing(sqlite3.connect(memory(desk))) as store:
        (calls,) = store.execute("SELECT calls FROM interaction").fetchone()
    log = EventLog(desk.episode)
    of_root = [event for _, event in log if event.payload.get("capability")]
    ended = [event for event in of_root if event.event_type == "step.completed"]
    assert calls == len(ended) > 0, made


WRITER = """
import sqlite3, sys
store = sqlite3.connect(sys.argv[1], isolation_level=None)
store.execute("BEGIN IMMEDIATE")
print("writing", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(
    not os.environ.get("COGCLI_LONG_TESTS"), reason="waits ten seconds: COGCLI_LONG_TESTS=1"
)
def test_a_memory_that_another_process_writes_to_gets_nothing_of_the_run(desk: Project) -> None:
    """A process of its own holds the lock: one of this process would end when it closes the file anywhere."""
    desk.run("agent", "invoke", "requests/allowed.json").assert_ok()
    desk.run("agent", "invoke", "requests/needs-finance.json").assert_exit(5)
    before = rows(desk)
    assert before["interaction"] == 1
    command = [sys.executable, "-c", WRITER, str(memory(desk))]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as writer:
        assert writer.stdout
        assert writer.stdout.readline() == b"writing\n"
        resumed = desk.run(*YES, "--json").assert_ok()
        writer.communicate(b"")
    (warning,) = resumed.json["warnings"]
    assert warning["code"] == "memory.busy"
    assert rows(desk) == before
    desk.run("verify", "@last").assert_ok()
    desk.run("replay", "@last").assert_ok()


def rows(desk: Project) -> dict[str, int]:
    """How many rows each table of the memory has."""
    with closing(sqlite3.connect(memory(desk))) as store:
        tables = [
            name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        return {
            name: store.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in tables
        }


@pytest.mark.parametrize("in_time", [True, False], ids=["in-time", "too-late"])
def test_the_end_of_a_run_is_stored_only_after_all_its_turns(
    desk: Project, monkeypatch: pytest.MonkeyPatch, in_time: bool
) -> None:
    """A store that cannot be written while a turn ends, and can be again before the run ends or only after it."""
    monkeypatch.chdir(desk.root)

    def listener(event: Event) -> None:
        if event.event_type == "memory.proposed":
            memory(desk).mkdir()
        elif event.event_type == "decision.recorded" and in_time:
            memory(desk).rmdir()

    settings = Settings({}, desk.env, base=str(desk.root))
    request = parse_request(json.loads((desk.root / "requests/allowed.json").read_text()))
    run = RunRequest("", {}, RunOptions(pack="support-desk@4.0.0"))
    result = invoke(
        settings, AgentCommandInput(request, run), lambda prepared, control: nullcontext(listener)
    )
    assert (result.finished.not_stored is None) == in_time
    if in_time:
        assert stored(desk) == len(proposed(desk)) == 3
        assert rows(desk)["interaction"] == 1
    else:
        assert list(memory(desk).iterdir()) == []


@pytest.mark.parametrize("name", ["memory.db", "knowledge.db"])
def test_a_store_that_cannot_be_read_lets_no_run_begin(desk: Project, name: str) -> None:
    _damaged(desk.write(f".cogcli/{name}", ""))
    result = desk.run("agent", "invoke", "requests/allowed.json", "--json").assert_exit(3)
    assert result.json["error"]["code"] == "memory.damaged"
    assert not list(desk.root.rglob("events.jsonl"))


def test_runs_at_once_share_the_stores_of_a_project(desk: Project) -> None:
    words = [COGCLI, "agent", "invoke", "requests/allowed.json", "--json"]
    quiet: Any = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.DEVNULL,
    }
    runs = [subprocess.Popen(words, cwd=desk.root, env=desk.env, **quiet) for _ in range(4)]
    answers = [json.loads(run.communicate(timeout=60)[0]) for run in runs]
    assert [answer["exit_code"] for answer in answers] == [0] * 4
    assert stored(desk) == len(proposed(desk)) == 12
    for answer in answers:
        desk.run("verify", answer["episode_id"]).assert_ok()
        desk.run("replay", answer["episode_id"]).assert_ok()
