"""`rerun`: a new episode; what stands before a step is taken over, the rest runs again."""

from __future__ import annotations

import json
from typing import Any

import pytest

SOURCE = """
def add(text: str) -> dict[str, object]:
    with open("ledger", "a") as ledger:
        ledger.write(text + "\\n")
    return {"text": text + "+"}
"""
STEPS = """
- {id: a, uses: demo.text.add, input: {text: inputs.text}, output: {text: vars.a}}
- {id: b, uses: demo.text.add, input: {text: vars.a}, output: {text: vars.b}}
- {id: side, uses: demo.text.add, input: {text: {$literal: s}}, output: {text: vars.s}, config: {depends_on: [a]}}
- {id: c, uses: demo.text.add, input: {text: vars.b}, output: {text: outputs.text}, config: {depends_on: [b, side]}}
"""


@pytest.fixture
def ran(project: Any) -> Any:
    """A project whose newest episode ran four steps."""
    project.services(SOURCE)
    project.capability("demo.text.add", "add")
    project.skill(
        "demo.four", STEPS, inputs="{text: {type: string, required: true}}",
        outputs="{text: {type: string, required: true}}",
    )  # fmt: skip
    project.run("run", "demo.four", "-p", "text=x", "-q").assert_ok()
    (project.root / "ledger").unlink()
    return project


def _calls(project: Any) -> list[str]:
    file = project.root / "ledger"
    return file.read_text().split() if file.exists() else []


def test_only_the_step_and_what_needs_it_run_again(ran: Any) -> None:
    result = ran.run("rerun", "@last", "--from", "b").assert_ok()
    assert result.json == {"text": "x+++"}
    assert _calls(ran) == ["x+", "x++"]
    assert "reused from ep_" in result.err
    assert "needs b" in result.err


def test_taken_over_steps_say_where_their_result_comes_from(ran: Any) -> None:
    earlier = ran.run("ls", "--json").json["episodes"][0]["episode_id"]
    for _ in range(2):
        ran.run("rerun", "@last", "--from", "c", "-q").assert_ok()
    events = [json.loads(line) for line in (ran.episode / "events.jsonl").read_text().splitlines()]
    reused = {e["step_id"]: e["payload"]["reused_from"] for e in events if "reused_from" in e["payload"]}
    assert set(reused) == {"a", "b", "side"}
    assert all(origin["episode"] == earlier for origin in reused.values())
    assert not any(e["event_type"] == "step.started" and e["step_id"] in reused for e in events)


def test_a_rerun_is_an_episode_like_any_other(ran: Any) -> None:
    ran.run("rerun", "@last", "--from", "c", "-q").assert_ok()
    ran.run("verify", "@last").assert_ok()
    ran.run("replay", "@last").assert_ok()
    ran.run("state", "show", "@last", "--check").assert_ok()


def test_without_a_step_everything_runs_again(ran: Any) -> None:
    ran.run("rerun", "@last", "-q").assert_ok()
    assert sorted(_calls(ran)) == ["s", "x", "x+", "x++"]


def test_an_unknown_step_is_told_with_the_steps_there_are(ran: Any) -> None:
    error = ran.run("rerun", "@last", "--from", "bb", "--json").assert_exit(2).json["error"]
    assert error["code"] == "step.unknown"
    assert _calls(ran) == []


def test_no_call_is_handed_what_the_log_holds_masked_only(demo: Any) -> None:
    demo.services(
        """
        def note(text: str, api_key: str) -> dict[str, object]:
            with open("given", "a") as file:
                file.write(api_key + "\\n")
            return {"text": text}
        """
    )
    inputs = "{text: {type: string, required: true}, api_key: {type: string, required: true}}"
    demo.capability(
        "demo.text.note", "note", inputs=inputs, request="{text: input.text, api_key: input.api_key}"
    )
    demo.skill(
        "demo.secret",
        "- {id: note, uses: demo.text.note, input: {text: inputs.text, api_key: inputs.api_key}}",
        inputs=inputs,
    )
    demo.run("run", "demo.secret", "-p", "text=x", "-p", "api_key=k-123456789", "-q").assert_ok()
    error = demo.run("rerun", "@last", "--json").assert_exit(3).json["error"]
    assert error["code"] == "resume.masked"
    assert (demo.root / "given").read_text() == "k-123456789\n"
