"""Runs that were killed with calls in flight replay equal, whatever a person answered since
(docs/reference/episode.md#replay)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.checkpoints import vouch

SOURCE = """
    def pay(text):
        return {"text": text}
"""
STEPS = """
- {id: asks, uses: t.asked, input: {text: {$literal: q}}, output: {text: vars.q}, config: {depends_on: []}}
- {id: pays, uses: t.paid, input: {text: {$literal: a}}, output: {text: vars.a}, config: {depends_on: []}}
- {id: reads, uses: t.read, input: {text: {$literal: r}}, output: {text: vars.r}, config: {depends_on: []}}
- {id: last, uses: t.read, input: {text: vars.a}, output: {text: outputs.text},
   config: {depends_on: [asks, pays, reads]}}
"""
DOCUMENTS = ("manifest.json", "summary.json", "state.json")


@pytest.fixture
def asking(project: Any) -> Any:
    """A project whose skill waits for a person while it pays and reads."""
    project.services(SOURCE)
    for name in ("asked", "paid", "read"):
        project.capability(f"t.{name}", "pay")
    for name, more in (("asked", "safety: {requires_confirmation: true}\n"), ("paid", "")):
        file = project.root / f"capabilities/t.{name}.yaml"
        properties = "properties: {side_effects: true, idempotent: false}"
        file.write_text(
            file.read_text().replace("properties: {side_effects: false}", properties) + more
        )
    project.skill("t.asks", STEPS, outputs="{text: {type: any}}")
    return project


def cut_before(episode: Path, event_type: str, step: str, home: str) -> None:
    """Leave what a kill leaves that came before this event."""
    lines = (episode / "events.jsonl").read_bytes().splitlines(keepends=True)
    events = [json.loads(line) for line in lines]
    place = next(
        n
        for n, event in enumerate(events)
        if (event["event_type"], event.get("step_id")) == (event_type, step)
    )
    (episode / "events.jsonl").write_bytes(b"".join(lines[:place]))
    for name in DOCUMENTS:
        (episode / name).unlink(missing_ok=True)
    (episode / "learn.jsonl").write_bytes(b"")
    vouch(episode, home)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "answers",
    [(), ("--reject", "t.asked"), ("--abort",), ("--in-doubt", "fail")],
    ids=["paused", "rejected", "aborted", "failed"],
)
@pytest.mark.parametrize(
    ("event", "step"),
    [("step.completed", "pays"), ("step.started", "reads"), ("step.completed", "reads")],
)
def test_a_run_that_was_killed_while_a_person_was_asked_replays_equal(
    asking: Any, answers: tuple[str, ...], event: str, step: str
) -> None:
    asking.run("run", "t.asks", "-q").assert_exit(5)
    cut_before(asking.episode, event, step, asking.env["HOME"])
    ended = asking.run("resume", "@last", *answers, "-q")
    assert ended.code in ((5,) if not answers else (0, 1, 4, 5))
    asking.run("replay", "@last").assert_ok()
    asking.run("resume", "@last", "-q")
    asking.run("replay", "@last").assert_ok()
