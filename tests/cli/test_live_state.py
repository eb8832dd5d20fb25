"""`state.json` while its run is alive, and after it was killed (docs/reference/episode.md#snapshots)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.checkpoints import vouch

from cogcli.episode import snapshot

SOURCE = """
    import glob, json, time

    def state():
        with open(glob.glob(".cogcli/episodes/*/state.json")[0]) as file:
            return json.load(file)

    def look(text):
        return {"text": json.dumps(state()["plan"]["steps"])}

    def wait(text):
        until = time.monotonic() + 60
        while state()["plan"]["steps"][int(text)]["status"] != "running" and time.monotonic() < until:
            time.sleep(0.01)
        return {"text": json.dumps(state()["plan"]["steps"])}
"""
STEPS = """
- {id: a, uses: t.look, input: {text: {$literal: x}}, output: {text: vars.first}}
- {id: b, uses: t.wait, input: {text: {$literal: "1"}}, output: {text: vars.second}}
- {id: c, uses: t.look, input: {text: {$literal: x}}, output: {text: outputs.text}}
"""


@pytest.fixture
def looking(project: Any) -> Any:
    """A project whose functions read the document of their own run."""
    project.services(SOURCE)
    for name in ("look", "wait"):
        project.capability(f"t.{name}", name)
    project.skill("t.looks", STEPS, outputs="{text: {type: string}}")
    return project


def statuses(text: str) -> list[str]:
    return [step["status"] for step in json.loads(text)]


def events(episode: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (episode / "events.jsonl").read_bytes().splitlines()]


def test_the_document_is_there_from_the_start_and_follows_a_long_call(
    looking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "INTERVAL", 0.0)
    monkeypatch.setattr(snapshot, "SHARE", 0)
    looking.run("run", "t.looks", "-q").assert_ok()
    seen = json.loads((looking.episode / "state.json").read_bytes())["x-cognitive"]["vars"]
    first = statuses(seen["first"])
    assert first[1:] == ["pending", "pending"], "written at the start"
    assert first[0] in ("pending", "running"), "and perhaps again as the call began"
    assert statuses(seen["second"]) == ["done", "running", "pending"], (
        "written while `b` was called"
    )
    log = events(looking.episode)
    evidence = [event for event in log if event["event_type"] == "run.state_projection"]
    assert [event["payload"].get("snapshot") for event in evidence][-1] is None
    assert all(event["payload"]["snapshot"] for event in evidence[:-1])
    looking.run("verify").assert_ok()
    looking.run("replay").assert_ok()
    looking.run("state", "show", "--check").assert_ok()


def test_a_short_run_writes_at_the_start_and_at_the_end_only(demo: Any) -> None:
    demo.run("run", "demo.greet", "-p", "text=hi", "-q").assert_ok()
    kinds = [event["event_type"] for event in events(demo.episode)]
    assert kinds[:3] == ["run.started", "plan.created", "run.state_projection"]
    assert kinds.count("run.state_projection") == 2
    assert kinds[-1] == "run.state_projection"


def test_a_killed_run_has_a_document_that_verify_knows(demo: Any) -> None:
    """The log as a kill leaves it, with the snapshot that was written at the start."""
    demo.run("run", "demo.greet", "-p", "text=hi", "-q").assert_ok()
    episode = demo.episode
    lines = (episode / "events.jsonl").read_bytes().splitlines(keepends=True)
    for name in ("manifest.json", "summary.json", "state.json"):
        (episode / name).unlink()
    (episode / "learn.jsonl").write_bytes(b"")
    # The projection of the events before the snapshot is what the snapshot held.
    (episode / "events.jsonl").write_bytes(b"".join(lines[:2]))
    vouch(episode, demo.env["HOME"])
    held = demo.run("state", "show", "--project").assert_ok().out_bytes
    (episode / "state.json").write_bytes(held)
    (episode / "events.jsonl").write_bytes(b"".join(lines[:5]))
    vouch(episode, demo.env["HOME"])
    assert json.loads((episode / "state.json").read_bytes())["outcomes"]["status"] == "pending"
    shown = demo.run("verify").assert_ok()
    assert "state.snapshot: a snapshot: it holds the first 2 events; 2 came later" in shown.out
    assert demo.run("ls").out.split("\t")[1] == "interrupted"
    checked = demo.run("state", "show", "--check").assert_ok().out
    assert (
        checked
        == "state.json is a snapshot: what the first 2 of its 5 events project, byte for byte\n"
    )
    now = demo.run("state", "show", "--json").assert_ok().json["state"]
    assert now["plan"]["steps"][0]["status"] == "done", "state show projects the log anew"
    demo.run("resume", "@last", "-q").assert_ok()
    demo.run("verify").assert_ok()
    demo.run("replay").assert_ok()


def test_a_paused_run_has_its_document(project: Any) -> None:
    project.services("def pay(text):\n    return {'text': text}\n")
    project.capability("t.asked", "pay", extra="safety: {requires_confirmation: true}\n")
    project.skill("t.asks", "- {id: a, uses: t.asked, input: {text: {$literal: x}}, output: {text: outputs.text}}",
                  outputs="{text: {type: string}}")  # fmt: skip
    project.run("run", "t.asks", "-q").assert_exit(5)
    assert project.run("ls").out.split("\t")[1] == "pending"
    assert (
        project.run("state", "show", "--check")
        .assert_ok()
        .out.startswith("state.json is what its ")
    )
    project.run("resume", "@last", "--approve", "t.asked", "-q").assert_ok()
    project.run("verify").assert_ok()
