"""Checkpoints and requests that nobody of ours wrote: each is passed over or refused in words, never with a bug."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from sealed import events, line_of, lines
from support.project import Project

SLOT = 2048
GUARDED = "demo.text.guarded"


def _paused(project: Project) -> Path:
    project.capability(GUARDED, "upper", extra="safety: {requires_confirmation: true}\n")
    call = f'- {{id: ask, uses: {GUARDED}, input: {{text: "x"}}, output: {{text: outputs.text}}}}'
    project.skill("demo.waits", call, outputs="{text: {type: string}}")
    project.run("run", "demo.waits").assert_exit(5)
    return project.episode


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "change",
    [
        {"mac": "é"},
        {"mac": "\ud800"},
        {"mac": ""},
        {"mac": None, "signature": {"alg": "é"}},
        {"episode_id": "é"},
    ],
    ids=json.dumps,
)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_record_of_another_beside_the_own_one_changes_nothing(
    demo: Any, change: dict[str, Any], is_first: bool
) -> None:
    file = _paused(demo) / "checkpoint.jsonl"
    own = file.read_bytes()[:SLOT]
    other = json.dumps({**json.loads(own), **change}).encode().ljust(SLOT - 1) + b"\n"
    file.write_bytes(other + own if is_first else own + other)
    assert "nothing altered, not sealed" in demo.run("verify", "--all").assert_ok().out
    demo.run("resume", "@last", "--approve", GUARDED).assert_ok()
    assert "nothing altered\n" in demo.run("verify", "@last").assert_ok().out


def test_a_call_that_was_planted_as_lost_is_not_vouched_for(demo: Any) -> None:
    folder = _paused(demo)
    demo.run("run", "demo.greet", "-p", "text=hi").assert_ok()
    call = next(event for event in events(demo.episode) if event["event_type"] == "step.started")
    last = events(folder)[-1]
    planted = {
        **call, "seq": last["seq"] + 1, "step_id": "ask", "payload": {**call["payload"], "step_id": "ask"},
        "prev": f"sha256:{sha256(lines(folder)[-1]).hexdigest()}", "caused_by": last["id"],
        **{name: last[name] for name in ("timestamp", "episode_id", "run_id", "trace_id")},
    }  # fmt: skip
    (folder / "events.torn").write_bytes(line_of(planted) + b"\n")
    demo.run("resume", folder.name).assert_exit(5)
    told = [event["seq"] for event in events(folder) if event["event_type"] == "step.started"]
    assert told == [planted["seq"]]
    shown = demo.run("verify", folder.name).out
    assert "nothing altered" not in shown
    assert f"your key does not vouch for event {planted['seq']}" in shown
