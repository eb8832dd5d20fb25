"""What a Python function refuses, from the function to the screen and the log (docs/reference/sdk.md#refused)."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytestmark = pytest.mark.sampled(8)

SOURCE = """
    from pathlib import Path
    from cogcli.sdk import Refused

    def upper(text):
        with open("calls", "a") as file:
            file.write("1")
        raise Refused("bad-data", "row 3 has no date", "write dates as 2024-05-01")

    def other(text):
        return {"text": "from another binding"}
"""
RUN = ("run", "t.refuse", "-p", "text=x")


@pytest.fixture(params=["thread", "process"])
def refusing(project: Any, request: pytest.FixtureRequest) -> Any:
    """A skill whose binding and step repeat, with a fallback that would answer."""
    project.services(SOURCE)
    service = project.root / "services/local/demo.yaml"
    service.write_text(service.read_text().replace("thread", request.param))
    project.capability("t.row.read", "upper")
    first = project.root / "bindings/local/t.row.read/t_row_read.yaml"
    second = first.read_text().replace("id: t_row_read", "id: second").replace("upper", "other")
    project.write("bindings/local/t.row.read/second.yaml", second.encode())
    first.write_text(
        first.read_text() + "metadata: {fallback_binding_id: second, retry_count: 2}\n"
    )
    project.write(
        "policies/official_default_selection.yaml", "defaults: {t.row.read: t_row_read}\n"
    )
    steps = """
        - id: read
          uses: t.row.read
          config: {retry: {max_attempts: 3, backoff_seconds: 0}}
          input: {text: inputs.text}
          output: {text: outputs.text}
    """
    project.skill(
        "t.refuse",
        steps,
        inputs="{text: {type: string, required: true}}",
        outputs="{text: {type: string}}",
    )
    return project


def test_it_is_asked_once_and_its_words_are_on_the_screen(refusing: Any) -> None:
    shown = refusing.run(*RUN).assert_exit(1).err
    assert "error[call.rejected]: step `read`: row 3 has no date" in shown
    assert "write dates as 2024-05-01" in shown
    assert "t_row_read.yaml" not in shown  # the input is wrong, not the binding
    assert (refusing.root / "calls").read_text() == "1"


def test_reason_message_and_hint_are_in_the_envelope_and_in_the_log_and_replay(
    refusing: Any,
) -> None:
    error = refusing.run(*RUN, "--json").assert_exit(1).json["error"]
    assert (error["code"], error["reason"], error["retryable"]) == (
        "call.rejected",
        "bad-data",
        False,
    )
    assert error["hint"] == "write dates as 2024-05-01"
    log = refusing.episode / "events.jsonl"
    events = [json.loads(line) for line in log.read_text().splitlines()]
    failed = next(
        each["payload"]["error"] for each in events if each["event_type"] == "step.failed"
    )
    assert failed == {
        "code": "call.rejected", "message": "row 3 has no date", "retryable": False,
        "hint": "write dates as 2024-05-01", "reason": "bad-data",
    }  # fmt: skip
    refusing.run("replay", "@last").assert_ok()


def test_refusals_open_no_circuit(refusing: Any) -> None:
    for _ in range(6):
        refusing.run(*RUN).assert_exit(1)
    assert (refusing.root / "calls").read_text() == "1" * 6
