"""An event that no log of ours has is refused with its line before anything of it is used."""

from __future__ import annotations

from typing import Any

import pytest
from sealed import chained, events

FORGED: dict[str, tuple[str, tuple[str | int, ...], Any]] = {
    "a payload that is a text": ("step.completed", (), "text"),
    "a payload that is another object": ("step.completed", (), {"a": 1}),
    "writes": ("step.completed", ("writes",), "text"),
    "a write": ("step.completed", ("writes", 0), "../../x"),
    "attempts": ("step.completed", ("attempts",), [None]),
    "usage": ("step.completed", ("usage",), True),
    "a step": ("step.started", ("step_id",), ["a"]),
    "an option": ("run.started", ("options", "step_timeout_seconds"), "text"),
    "a binding": (
        "run.started",
        ("selection", "demo.text.upper", "members", 0, "binding_id"),
        None,
    ),
    "a pin": ("run.started", ("pins", "specs"), [{}]),
    "a plan": ("plan.created", ("step_records",), "text"),
}
"""By name the type of an event, the place in its payload, and what stands there."""


@pytest.fixture
def run(demo: Any) -> Any:
    demo.run("run", "demo.greet", "-p", "text=hi").assert_ok()
    return demo


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FORGED)
def test_a_forged_event_is_refused_with_its_line(run: Any, name: str) -> None:
    folder = run.episode
    kind, place, value = FORGED[name]
    log = events(folder)
    number = next(n for n, event in enumerate(log) if event["event_type"] == kind)
    around: Any = log[number]
    for part in ("payload", *place)[:-1]:
        around = around[part]
    around[("payload", *place)[-1]] = value
    refused = {}
    for command in ("replay", "rerun", "resume"):
        if command == "resume":
            for document in ("state.json", "summary.json", "manifest.json", "checkpoint.jsonl"):
                (folder / document).unlink()
            log = log[:-2]
        chained(folder, log)
        refused[command] = run.run("--json", command, "@last").assert_exit(3).json["error"]
    for command, error in refused.items():
        assert error["code"] == "episode.unreadable", (command, error)
        assert error["line"] == number + 1, (command, error)
