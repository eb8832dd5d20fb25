"""`--timeout` over the sittings of a run: what was used before counts, unless `resume` gives a new limit
(docs/reference/execution.md#limits)."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytestmark = pytest.mark.slow

SOURCE = """
import time

def quick(text: str) -> dict[str, object]:
    time.sleep(0.3)
    return {"text": text + "1"}

def slow(text: str) -> dict[str, object]:
    time.sleep(0.8)
    return {"text": text + "2"}
"""
STEPS = """
- {id: a, uses: demo.text.quick, input: {text: inputs.text}, output: {text: vars.a}}
- {id: b, uses: demo.text.slow, input: {text: vars.a}, output: {text: outputs.text}}
"""


@pytest.fixture
def late(project: Any) -> Any:
    """A run with a limit of 1 s that ran into it in its second step."""
    project.services(SOURCE)
    for name in ("quick", "slow"):
        project.capability(f"demo.text.{name}", name)
    text = "{text: {type: string, required: true}}"
    project.skill("demo.two", STEPS, inputs=text, outputs=text)
    result = project.run("run", "demo.two", "-p", "text=x", "--timeout", "1", "--json").assert_exit(
        6
    )
    assert result.json["error"]["code"] == "run.timeout"
    return project


def error_of(result: Any) -> tuple[str, str]:
    error = result.json["error"]
    return error["code"], error["message"]


def test_what_the_sittings_before_took_counts(late: Any) -> None:
    late.cut_after("step.completed")  # 0.3 s, and the step that is left takes 0.8 s
    resumed = late.run("resume", "@last", "--json").assert_exit(6)
    assert error_of(resumed) == ("run.timeout", "exceeded 1 s")
    late.run("replay", "@last").assert_ok()
    late.run("verify", "@last").assert_ok()


def test_a_new_limit_counts_from_where_it_is_given(late: Any) -> None:
    late.cut_after("step.completed")
    short = late.run("resume", "@last", "--timeout", "0.4", "--json").assert_exit(6)
    assert error_of(short) == ("run.timeout", "exceeded 0.4 s")
    late.run("replay", "@last").assert_ok()
    late.cut_after("run.resumed")
    assert error_of(late.run("resume", "@last", "--json").assert_exit(6)) == (
        "run.timeout",
        "exceeded 0.4 s",
    )
    late.cut_after("run.resumed")
    assert late.run("resume", "@last", "--timeout", "9").assert_ok().json == {"text": "x12"}
    late.run("replay", "@last").assert_ok()
    lines = (late.episode / "events.jsonl").read_bytes().splitlines()
    resumptions = [each for each in map(json.loads, lines) if each["event_type"] == "run.resumed"]
    assert [each["payload"].get("timeout_seconds") for each in resumptions] == [0.4, None, 9.0]


def test_a_run_whose_time_is_used_up_is_left_as_it_is(late: Any) -> None:
    late.cut_after("step.skipped")
    log = late.episode / "events.jsonl"
    before = log.read_bytes()
    refused = late.run("resume", "@last", "--json").assert_exit(6)
    code, message = error_of(refused)
    assert (code, message[:34]) == ("run.timeout", "the 1 s of this run are used up: i")
    name = late.episode.name
    assert refused.json["error"]["next"] == [
        f"cogcli resume {name} --timeout 1",
        f"cogcli resume {name} --abort",
    ]
    assert log.read_bytes() == before
    late.run("resume", "@last", "--abort", "--timeout", "1").assert_exit(2)
    late.run("resume", "@last", "--abort").assert_ok()


@pytest.mark.parametrize("flags", [(), ("--keep-going",)])
def test_a_call_in_doubt_is_decided_after_the_time_and_nothing_new_is_called(
    project: Any, flags: tuple[str, ...]
) -> None:
    project.services(SOURCE)
    for name in ("quick", "slow"):
        project.capability(f"demo.text.{name}", name)
    effect = project.root / "capabilities/demo.text.slow.yaml"
    effect.write_text(
        effect.read_text().replace("side_effects: false", "side_effects: true, idempotent: false")
    )
    text = "{text: {type: string, required: true}}"
    steps = STEPS.replace("slow", "?").replace("quick", "slow").replace("?", "quick")
    project.skill("demo.two", steps, inputs=text, outputs=text)
    project.run("run", "demo.two", "-p", "text=x", "--timeout", "0.5", *flags).assert_exit(5)
    done = ("resume", "@last", "--in-doubt", "done", "--output", '{"text": "y"}', "--json")
    ended = project.run(*done).assert_exit(6)
    assert error_of(ended) == ("run.timeout", "step `b`: exceeded 0.5 s")
    assert ended.json["status"] == "error"
    project.run("replay", "@last").assert_ok()
