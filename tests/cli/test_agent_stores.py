"""What becomes of an agent's run when its stores fail it, and when several runs use them at once
(docs/reference/agent-run.md#decision)."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.project import COGCLI, Project

from cogcli.episode.log_reader import EventLog

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


def _busy(file: Path) -> None:
    store = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    store.execute("BEGIN IMMEDIATE")
    _HELD.append(store)


_HELD: list[sqlite3.Connection] = []
long = pytest.mark.skipif(
    not os.environ.get("COGCLI_LONG_TESTS"), reason="waits five seconds: COGCLI_LONG_TESTS=1"
)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fail", [_damaged, _directory, _newer, pytest.param(_busy, marks=long)])
def test_a_memory_that_cannot_be_written_changes_nothing_of_the_run(
    desk: Project, fail: Any
) -> None:
    desk.run("agent", "invoke", "requests/needs-finance.json").assert_exit(5)
    for ending in ("-wal", "-shm"):
        memory(desk).with_name(f"memory.db{ending}").unlink(missing_ok=True)
    fail(memory(desk))
    before = memory(desk).read_bytes() if memory(desk).is_file() else b""
    resumed = (desk.installed if _HELD else desk.run)(*YES, "--json").assert_ok()
    (warning,) = resumed.json["warnings"]
    assert warning["message"].startswith("the log has what the run learned, its store does not: ")
    assert f"warning[{warning['code']}]" in resumed.err
    while _HELD:
        _HELD.pop().close()
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
