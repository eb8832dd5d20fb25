"""Events that were forged onto the end of an own log use no permission that the user gave to the run."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from sealed import chained, events
from support.checkpoints import vouch
from support.project import Project

PAY = "demo.money.send"


@pytest.fixture
def paying(tmp_path: Path) -> Project:
    """A project whose skill pays what a step before says, once its capability is confirmed."""
    project = Project(tmp_path)
    project.services(f"""
        import os, signal

        def upper(text):
            return {{"text": text.upper()}}

        def stop(text):
            if os.environ.get("STOP"):
                os.kill(os.getpid(), signal.SIGKILL)
            return {{"text": text}}

        def pay(text):
            with open({str(tmp_path / "paid")!r}, "a") as file:
                file.write(text + "\\n")
            return {{"text": text}}
    """)
    project.capability("demo.text.upper", "upper")
    project.capability("demo.text.keep", "stop")
    project.capability(PAY, "pay", extra="safety: {requires_confirmation: true}\n")
    project.skill(
        "demo.pays",
        f"""
        - {{id: find, uses: demo.text.upper, input: {{text: inputs.text}}, output: {{text: vars.account}}}}
        - {{id: keep, uses: demo.text.keep, input: {{text: vars.account}}, output: {{text: vars.kept}}}}
        - {{id: pay, uses: {PAY}, input: {{text: vars.kept}}, output: {{text: outputs.text}}}}
        """,
        inputs="{text: {type: string, required: true}}",
        outputs="{text: {type: string}}",
    )
    return project


def paid(project: Project) -> list[str]:
    """What was paid since the last call."""
    file = project.root.parent / "paid"
    lines = file.read_text().splitlines() if file.exists() else []
    file.unlink(missing_ok=True)
    return lines


def killed(project: Project, before: str) -> list[dict[str, Any]]:
    """Leave the newest episode as a run that was killed before the first event of a step."""
    folder = project.episode
    log = events(folder)
    kept = log[: next(n for n, event in enumerate(log) if event.get("step_id") == before)]
    for name in ("state.json", "summary.json", "manifest.json"):
        (folder / name).unlink(missing_ok=True)
    (folder / "learn.jsonl").write_bytes(b"")
    chained(folder, kept)
    vouch(folder, project.home)
    return kept


def test_an_own_run_that_was_killed_needs_no_word(paying: Project) -> None:
    paying.run("run", "demo.pays", "-p", "text=a", "--confirm", PAY).assert_ok()
    killed(paying, "pay")
    assert paid(paying) == ["A"]
    paying.run("resume", "@last").assert_ok()
    assert paid(paying) == ["A"]


def test_a_result_that_was_forged_onto_the_end_is_not_paid(paying: Project) -> None:
    paying.run("run", "demo.pays", "-p", "text=a", "--confirm", PAY).assert_ok()
    assert paid(paying) == ["A"]
    forged = json.loads(json.dumps(killed(paying, "pay")).replace('"A"', '"EVIL"'))
    chained(paying.episode, forged)
    vouch(paying.episode, paying.home, events=2)
    error = paying.run("--json", "resume", "@last").assert_exit(3).json["error"]
    assert error["code"] == "resume.untrusted"
    assert f"`{PAY}` confirmed" in error["message"]
    assert paid(paying) == []
    paying.run(*error["next"][1].split()[1:]).assert_ok()
    assert paid(paying) == ["EVIL"], "the user named the head of this log"


def test_a_run_with_permissions_that_was_really_killed_goes_on(paying: Project) -> None:
    """Each of its events is vouched for, also those of steps without effects."""
    command = ("run", "demo.pays", "-p", "text=a", "--confirm", PAY)
    assert paying.installed(*command, env={"STOP": "1"}).code == -signal.SIGKILL
    log = events(paying.episode)
    assert [event["step_id"] for event in log if event["event_type"] == "step.completed"] == [
        "find"
    ]
    paying.run("resume", "@last").assert_ok()
    assert paid(paying) == ["A"]
