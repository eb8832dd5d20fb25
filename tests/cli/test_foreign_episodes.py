"""The commands on episodes of another tool, whole, altered and in parts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import foreign_tool as tool

from cogcli.cli.main import run
from cogcli.episode.log_reader import EventLog
from cogcli.episode.projection import project

Cli = Callable[..., tuple[int, str, str]]
RELEASE, LABELS, PAUSED, ALONE = "ep_2024_abc123_s0", "ep_labels", "ep_paused", "ep_alone"


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with an episode that ended well, one that failed, one that waits, and a `state.json` alone."""
    for name in ("COGCLI_RUNS_DIR", "COGCLI_REGISTRY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cogcli.toml").write_text("")
    runs = tmp_path / ".cogcli" / "episodes"
    tool.write(runs / RELEASE, tool.release_notes())
    tool.write(runs / LABELS, tool.labelled(), status="error")
    tool.write(runs / PAUSED, tool.paused(), status="pending", sealed=False)
    (runs / ALONE).mkdir()
    state = tool.state_of(tool.release_notes(ALONE))
    (runs / ALONE / "state.json").write_text(json.dumps({**state, "x-more": 1}))
    return runs


@pytest.fixture
def cli(runs: Path, capfd: pytest.CaptureFixture[str]) -> Cli:
    """A command in this process: its exit code, stdout and stderr."""

    def command(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = run(list(arguments))
        captured = capfd.readouterr()
        assert "Traceback" not in captured.err
        return code, captured.out, captured.err

    return command


def projected(directory: Path) -> dict[str, Any]:
    return project(event for _, event in EventLog(directory))


@pytest.mark.parametrize("name", [RELEASE, LABELS, PAUSED])
def test_trace_has_the_steps_actions_and_outcome_of_the_projection(
    cli: Cli, runs: Path, name: str
) -> None:
    code, out, _ = cli("trace", name, "--json")
    shown, document = json.loads(out)["trace"], projected(runs / name)
    assert code == 0
    assert [(row["step_id"], row["status"]) for row in shown["steps"]] == [
        (step["id"], step["status"]) for step in document["plan"]["steps"]
    ]
    assert shown["actions"] == document["outcomes"]["actions"]
    assert shown["status"] == document["outcomes"]["status"]
    assert shown["next"] == []


@pytest.mark.sampled(3)
@pytest.mark.parametrize("view", ["tree", "table", "timeline", "lineage", "events"])
@pytest.mark.parametrize("name", [RELEASE, LABELS, PAUSED, ALONE])
def test_every_view_shows_every_episode(cli: Cli, name: str, view: str) -> None:
    code, out, _ = cli("trace", name, "--view", view)
    assert code == 0
    assert "None" not in out
    assert out or view == "timeline"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("format", ["mermaid", "dot", "otlp", "chrome"])
@pytest.mark.parametrize("name", [LABELS, ALONE])
def test_every_drawing_and_export_is_made(cli: Cli, name: str, format: str) -> None:
    code, out, _ = cli("trace", name, "--format", format)
    assert code == 0
    if name == LABELS:
        assert "step-4" in out
    elif format in ("mermaid", "dot"):  # a state tells no times, and a trace is made of times
        assert "step_2" in out


def test_a_step_can_be_asked_for(cli: Cli) -> None:
    code, out, _ = cli("trace", LABELS, "--step", "step-4", "--view", "events")
    assert (code, out.count("\n")) == (0, 1)
    assert 'status=failed tool=writer message="no room"' in out


def test_ls_has_status_and_duration_of_the_projection(cli: Cli) -> None:
    rows = {row["episode_id"]: row for row in json.loads(cli("ls", "--json")[1])["episodes"]}
    assert {name: (row["status"], row["duration_ms"]) for name, row in rows.items()} == {
        RELEASE: ("ok", 4500),
        LABELS: ("error", 10_000),
        PAUSED: ("pending", 1500),
        ALONE: ("ok", None),
    }
    assert [rows[name]["sealed"] for name in (RELEASE, PAUSED)] == [True, False]


def test_diff_of_two_tells_their_steps(cli: Cli) -> None:
    code, out, _ = cli("diff", RELEASE, PAUSED, "--json")
    steps = {
        change["name"]: (change["before"], change["after"])
        for change in json.loads(out)["diff"]["steps"]
    }
    assert code == 0
    assert steps["step_2"] == ("done", "pending")


def test_verify_ends_with_0_1_or_3(cli: Cli, runs: Path) -> None:
    assert [cli("verify", name)[0] for name in (RELEASE, LABELS, PAUSED, ALONE)] == [0, 0, 0, 3]
    (runs / RELEASE / "notes").write_text("")
    code, out, _ = cli("verify", RELEASE)
    assert (code, "file.extra" in out) == (0, True)
    (runs / RELEASE / "state.json").write_bytes(
        (runs / RELEASE / "state.json").read_bytes() + b"\n"
    )
    code, out, _ = cli("verify", RELEASE, "--json")
    assert code == 1
    assert [f["file"] for f in json.loads(out)["findings"] if f["severity"] == "error"] == [
        "state.json"
    ]


def test_an_episode_of_another_tool_is_not_ours_to_seal(cli: Cli, runs: Path) -> None:
    (runs / LABELS / "manifest.json").unlink()
    before = sorted((path.name, path.stat().st_mtime_ns) for path in (runs / LABELS).iterdir())
    code, out, _ = cli("verify", LABELS, "--repair")
    assert (code, "nothing vouches for it" in out, "sealed now" in out) == (0, True, False)
    assert (
        sorted((path.name, path.stat().st_mtime_ns) for path in (runs / LABELS).iterdir()) == before
    )


def test_why_leads_from_what_was_made_to_its_step(cli: Cli) -> None:
    assert "step_2" in cli("trace", RELEASE, "--why", "working.artifacts.release_notes.md")[1]
    code, _, err = cli("trace", LABELS, "--why", "outputs.x")
    assert (code, "this log does not record reads and writes" in err) == (2, True)


@pytest.mark.parametrize("name", [RELEASE, PAUSED])
@pytest.mark.parametrize(
    "command", [("resume",), ("rerun",), ("rerun", "--from", "step_2"), ("replay",)]
)
def test_what_a_log_lacks_to_be_gone_on_with_is_said(
    cli: Cli, name: str, command: tuple[str, ...]
) -> None:
    code, out, _ = cli(*command, name, "--json")
    error = json.loads(out)["error"]
    assert (code, error["code"]) == (3, "episode.foreign")
    assert all(
        word in error["found"] for word in ("seq", "prev", "skill", "inputs", "pinned specs")
    )
    assert [cli(*next.split()[1:])[0] for next in error["next"]] == [0]


@pytest.mark.parametrize("command", ["resume", "rerun", "replay", "verify"])
def test_without_a_log_nothing_is_gone_on_with(cli: Cli, runs: Path, command: str) -> None:
    for name in (ALONE, str(runs / ALONE)):
        code, out, _ = cli(command, name, "--json")
        assert (code, json.loads(out)["error"]["code"]) == (3, "episode.unreadable")


def test_a_state_alone_is_shown_and_its_missing_log_told(cli: Cli, runs: Path) -> None:
    for name in (ALONE, str(runs / ALONE)):
        code, out, err = cli("trace", name)
        assert code == 0
        assert "step_2" in out
        assert "writer" in out
        assert "events.jsonl: does not exist" in err
        assert json.loads(cli("state", "show", name)[1])["x-more"] == 1
        assert cli("state", "show", name, "--path", "outcomes.status")[1] == "ok\n"
        assert cli("state", "show", name, "--project")[0] == 3
        assert cli("graph", name)[0] == 0
        assert cli("diff", name, RELEASE)[0] == 0


@pytest.mark.parametrize("text", ["", "{", "[]", '{"plan": 7}'])
def test_a_state_alone_that_is_none_is_refused_or_shown_as_far_as_it_goes(
    cli: Cli, runs: Path, text: str
) -> None:
    (runs / ALONE / "state.json").write_text(text)
    for command in ("trace", "graph"):
        code, _, _ = cli(command, ALONE, "--json")
        assert code == (0 if "plan" in text else 3)
    assert cli("ls")[0] == 0


def test_a_folder_with_neither_is_refused(cli: Cli, runs: Path) -> None:
    (runs / "ep_none").mkdir()
    (runs / "ep_none" / "other.txt").write_text("")
    for command in ("trace", "verify", "graph", "resume"):
        assert cli(command, str(runs / "ep_none"))[0] == 3


@pytest.mark.parametrize("name", [RELEASE, LABELS, PAUSED])
def test_a_check_of_the_document_says_what_verify_says(cli: Cli, runs: Path, name: str) -> None:
    """The tool writes on one line, and adds members of its own: the shared format's promises are kept all the same."""
    assert cli("state", "show", name, "--check")[0] == cli("verify", name)[0] == 0


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"outcomes": {"status": "wonderful"}}, "state.fields"),
        (
            {"outcomes": {"status": "ok", "actions": [], "metrics": {}, "artifacts": []}},
            "state.evidence",
        ),
        ({"episode": {"id": "ep_another"}}, "episode.other"),
        ({"links": {"events": "../events.jsonl"}}, "link.unsafe"),
    ],
)
def test_what_is_wrong_with_the_document_is_told_by_both(
    cli: Cli, runs: Path, changed: dict[str, Any], code: str
) -> None:
    file = runs / RELEASE / "state.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changed))
    ended, out, _ = cli("state", "show", RELEASE, "--check", "--json")
    shown = json.loads(out)
    verified = json.loads(cli("verify", RELEASE, "--json")[1])
    of_state = [each["code"] for each in verified["findings"] if each["file"] == "state.json"]
    assert ended == 1
    assert [each["code"] for each in shown["findings"]] == of_state
    assert {code, "file.altered"} <= set(of_state)
    assert shown["error"]["code"] == of_state[0]
