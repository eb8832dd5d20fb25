"""An episode that came with a project allows nothing: no trust level, confirmation, approval or gate."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sealed import chained
from support.project import Project

CAPABILITY, SKILL = "demo.text.guarded", "demo.guarded"


@pytest.fixture
def untrusted(tmp_path: Path) -> Project:
    """A project whose capability needs a trust level and a confirmation; what it calls comes with cogcli."""
    project = Project(tmp_path)
    del project.env["COGCLI_TRUST_PROJECT"]
    project.capability(
        CAPABILITY, "normalize", extra="safety: {trust_level: elevated, requires_confirmation: true}\n"
    )
    binding = project.root / f"bindings/local/{CAPABILITY}/demo_text_guarded.yaml"
    binding.write_text(binding.read_text().replace("service: demo", "service: official_text"))
    project.skill(
        SKILL,
        f"- {{id: ask, uses: {CAPABILITY}, input: {{text: \"'x'\"}}, output: {{text: outputs.text}}}}",
        outputs="{text: {type: string}}",
    )
    project.run("run", SKILL, "--trust-level", "elevated").assert_exit(5)
    return project


def _level(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return events[:2]


def _confirmation(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    events[0]["payload"]["options"].update(confirmed_capabilities=[CAPABILITY])
    return events[:2]


def _forged(project: Project, forge: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> bytes:
    folder = project.episode
    events = [json.loads(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]
    chained(folder, forge(events))
    for name in ("state.json", "summary.json", "manifest.json"):
        (folder / name).unlink(missing_ok=True)
    return (folder / "events.jsonl").read_bytes()


@pytest.mark.parametrize("forge", [_level, _confirmation])
def test_what_a_log_says_was_allowed_does_not_count_in_an_untrusted_project(
    untrusted: Project, forge: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
) -> None:
    log = _forged(untrusted, forge)
    refused = untrusted.run("--json", "resume", "@last").assert_exit(3)
    assert refused.json["error"]["code"] == "resume.untrusted"
    assert refused.json["error"]["next"] == ["cogcli config trust"]
    assert (untrusted.episode / "events.jsonl").read_bytes() == log
    untrusted.run("config", "trust").assert_ok()
    resumed = untrusted.run("--json", "resume", "@last")
    assert "resume.untrusted" not in resumed.out


def test_an_approval_in_the_log_does_not_count_either(untrusted: Project) -> None:
    own = {"COGCLI_TRUST_LEVEL": "elevated"}
    untrusted.run("resume", "@last", "--approve", CAPABILITY, env=own).assert_ok()
    cut = lambda events: events[: 1 + [e["event_type"] for e in events].index("approval.granted")]  # noqa: E731
    _forged(untrusted, cut)
    refused = untrusted.run("--json", "resume", "@last", env=own).assert_exit(3)
    assert f"`{CAPABILITY}` approved" in refused.json["error"]["message"]


GATED, GATED_SKILL = "demo.text.gated", "demo.gated"


def _gated(project: Project, text: str, when: str = "pre", also: str = "") -> Project:
    """A capability with a gate that looks at its text as at a path; what it calls comes with cogcli."""
    gate = f"{{capability: doc.path.check, input: {{path: {'input' if when == 'pre' else 'output'}.text}}}}"
    project.capability(GATED, "normalize", extra=f"safety: {{mandatory_{when}_gates: [{gate}{also}]}}\n")
    binding = project.root / f"bindings/local/{GATED}/demo_text_gated.yaml"
    binding.write_text(binding.read_text().replace("service: demo", "service: official_text"))
    project.skill(
        GATED_SKILL,
        f"- {{id: ask, uses: {GATED}, input: {{text: {text}}}, output: {{text: outputs.text}}}}",
        outputs="{text: {type: any}}",
    )
    return project


def _let_pass(
    events: list[dict[str, Any]], *, decided: bool, until: str = "gate.decided"
) -> list[dict[str, Any]]:
    """The log as if the gate had let the call go, broken off there."""
    for event in events:
        if event.get("step_id", "").startswith("ask@") and "output" in event["payload"]:
            event["payload"]["output"].update(allowed=True, reason="fine")
        if event["event_type"] == "gate.decided":
            event["payload"].update(decision="allow", verdict="pass", reason="")
    end = [event["event_type"] for event in events].index(until)
    return events[: end + decided]


@pytest.mark.parametrize("decided", [True, False])
@pytest.mark.parametrize("when", ["pre", "post"])
def test_a_gate_that_a_log_says_has_passed_does_not_count_either(
    untrusted: Project, when: str, decided: bool
) -> None:
    _gated(untrusted, "/proc/version", when).run("run", GATED_SKILL).assert_exit(4)
    log = _forged(untrusted, lambda events: _let_pass(events, decided=decided))
    refused = untrusted.run("--json", "resume", "@last").assert_exit(3)
    assert refused.json["error"]["code"] == "resume.untrusted"
    assert f"a gate passed (ask@{when}0)" in refused.json["error"]["message"]
    assert (untrusted.episode / "events.jsonl").read_bytes() == log
    untrusted.run("config", "trust").assert_ok()
    untrusted.run("resume", "@last").assert_ok()


def test_a_gate_that_lets_nothing_go_any_more_is_no_consent(untrusted: Project) -> None:
    """It refused, or its call was answered already: an honest run that waits is gone on with."""
    ask = ", {capability: doc.path.check, input: {path: input.text}, on_fail: require_human}"
    _gated(untrusted, "/proc/version", "pre", "").run("run", GATED_SKILL).assert_exit(4)
    _forged(untrusted, lambda events: events[: 1 + [e["event_type"] for e in events].index("gate.decided")])
    untrusted.run("resume", "@last").assert_exit(4)
    project = _gated(untrusted, "/proc/version")
    capability = project.root / f"capabilities/{GATED}.yaml"
    text = capability.read_text()
    capability.write_text(text[: text.index("safety:")] + f"safety: {{mandatory_pre_gates: [{ask[2:]}]}}\n")
    project.run("run", GATED_SKILL).assert_exit(5)
    project.run("resume", "@last", "--approve", GATED).assert_ok()


def test_closing_such_a_run_needs_no_trust(untrusted: Project) -> None:
    _forged(untrusted, _confirmation)
    untrusted.run("resume", "@last", "--abort").assert_ok()


def test_a_rerun_takes_no_trust_level_over_but_one_that_is_given_now(untrusted: Project) -> None:
    _forged(untrusted, _level)
    refused = untrusted.run("--json", "rerun", "@last").assert_exit(3)
    assert refused.json["error"]["code"] == "resume.untrusted"
    untrusted.run("rerun", "@last", "--trust-level", "elevated").assert_exit(5)


def test_an_episode_elsewhere_counts_once_its_directory_is_named(untrusted: Project, tmp_path: Path) -> None:
    _forged(untrusted, _confirmation)
    mailed = tmp_path / "mailed"
    shutil.copytree(untrusted.episode, mailed / untrusted.episode.name)
    refused = untrusted.run("--json", "resume", str(mailed / untrusted.episode.name)).assert_exit(3)
    (command,) = refused.json["error"]["next"]
    assert command == f"cogcli resume {untrusted.episode.name} --runs-dir {mailed}"
    resumed = untrusted.run("--json", *command.split()[1:])
    assert "resume.untrusted" not in resumed.out
