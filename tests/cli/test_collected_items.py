"""`foreach.on_error: collect`: failed items are null, the others go on, and the run is partial
(docs/reference/execution.md#collect)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.project import Project

pytestmark = pytest.mark.sampled(8)

SOURCE = """
import os

def send(text: str) -> dict[str, object]:
    if text.startswith("bad"):
        raise ValueError("no luck with " + text)
    with open("sent", "a") as ledger:
        ledger.write(text + "\\n")
    return {"text": text.upper()}
"""
STEPS = """
- id: send
  uses: demo.mail.send
  input: {{text: line}}
  output: {{text: outputs.sent, $errors: outputs.errors}}
  config: {{foreach: {{items: inputs.lines, as: line, max_parallel: {parallel}, on_error: collect}}}}
- {{id: after, uses: demo.count, input: {{items: outputs.errors}}, output: {{text: outputs.count}}}}
"""
OUTPUTS = "{sent: {type: array}, errors: {type: array}, count: {type: string}}"


@pytest.fixture
def mailing(project: Project) -> Project:
    project.services(
        SOURCE
        + "\ndef count(items: list) -> dict[str, object]:\n    return {'text': str(len(items))}\n"
    )
    project.capability("demo.mail.send", "send")
    file = project.root / "capabilities/demo.mail.send.yaml"
    file.write_text(
        file.read_text().replace("side_effects: false", "side_effects: true, idempotent: true")
    )
    project.capability(
        "demo.count", "count", inputs="{items: {type: array}}", request="{items: input.items}"
    )
    _skill(project)
    return project


def _skill(project: Project, parallel: int = 1, steps: str = STEPS) -> None:
    project.skill(
        "demo.mailing", steps.format(parallel=parallel), inputs="{lines: {type: array, required: true}}",
        outputs=OUTPUTS,
    )  # fmt: skip


def _run(project: Project, *lines: str, code: int) -> Any:
    return (
        project.run("run", "demo.mailing", "-p", f"lines:={json.dumps(lines)}", "--json")
        .assert_exit(code)
        .json
    )


def _sent(project: Project) -> list[str]:
    return sorted((project.root / "sent").read_text().split())


@pytest.mark.parametrize("parallel", [1, 3])
def test_a_failed_item_is_null_and_the_run_is_partial(mailing: Project, parallel: int) -> None:
    _skill(mailing, parallel)
    done = _run(mailing, "a", "bad-b", "c", "bad-d", code=1)
    assert (done["status"], done["outputs"]["sent"]) == ("partial", ["A", None, "C", None])
    assert [(each["index"], each["code"]) for each in done["outputs"]["errors"]] == [
        (1, "call.server-error"), (3, "call.server-error"),
    ]  # fmt: skip
    assert "no luck with bad-b" in done["outputs"]["errors"][0]["message"]
    assert done["outputs"]["count"] == "2"
    assert (done["error"]["code"], done["error"]["step"]) == ("call.server-error", "send#1")
    assert any("--failed-items" in line for line in done["error"]["next"])
    for command in ("replay", "verify"):
        mailing.run(command, "@last").assert_ok()
    assert _run(mailing, "x", code=0)["outputs"]["errors"] == []


def test_only_failed_items_run_again_with_their_new_inputs(mailing: Project) -> None:
    _run(mailing, "a", "bad-b", "c", code=1)
    line = ("rerun", "@failed", "--failed-items", "--json")
    again = mailing.run(*line, "-p", 'lines:=["a", "b", "c"]').assert_ok().json
    assert again["outputs"] == {"sent": ["A", "B", "C"], "errors": [], "count": "0"}
    assert _sent(mailing) == ["a", "b", "c"]
    mailing.run("replay", "@last").assert_ok()
    _run(mailing, "d", "bad-e", code=1)
    moved = mailing.run(*line, "-p", 'lines:=["f", "d"]').assert_ok().json
    assert moved["outputs"]["sent"] == ["F", "D"]  # an item at another place is another item


def test_a_partial_result_that_is_reused_is_partial_again(mailing: Project) -> None:
    _run(mailing, "a", "bad-b", code=1)
    again = mailing.run("rerun", "@last", "--from", "after", "--json").assert_exit(1).json
    assert (again["status"], again["outputs"]["sent"]) == ("partial", ["A", None])
    assert _sent(mailing) == ["a"]


def test_a_veto_ends_the_loop_and_an_item_that_waits_is_no_failure(mailing: Project) -> None:
    file = mailing.root / "capabilities/demo.mail.send.yaml"
    plain = file.read_text()
    file.write_text(plain + "safety: {requires_confirmation: true}\n")
    waits = _run(mailing, "bad-a", "b", code=5)
    assert waits["status"] == "pending"
    failed = (
        mailing.run("resume", "@last", "--approve", "demo.mail.send", "--json").assert_exit(5).json
    )
    assert failed["approvals"][0]["step"] == "send#1"
    done = (
        mailing.run("resume", "@last", "--approve", "demo.mail.send", "--json").assert_exit(1).json
    )
    assert done["outputs"]["sent"] == [None, "B"]
    mailing.run("replay", "@last").assert_ok()
    _run(mailing, "c", "d", code=5)
    vetoed = (
        mailing.run("resume", "@last", "--reject", "demo.mail.send", "--json").assert_exit(4).json
    )
    assert vetoed["error"]["code"] == "safety.rejected"
