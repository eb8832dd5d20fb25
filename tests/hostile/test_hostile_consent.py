"""An episode that is not known to be the user's allows nothing: no trust level, confirmation, approval or gate."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sealed import chained
from support.project import Project

pytestmark = pytest.mark.sampled(8)

CAPABILITY, SKILL = "demo.text.guarded", "demo.guarded"


@pytest.fixture
def untrusted(tmp_path: Path) -> Project:
    """A project whose capability needs a trust level and a confirmation; what it calls comes with cogcli."""
    project = Project(tmp_path)
    del project.env["COGCLI_TRUST_PROJECT"]
    project.capability(
        CAPABILITY,
        "normalize",
        extra="safety: {trust_level: elevated, requires_confirmation: true}\n",
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


def _forged(
    project: Project, forge: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
) -> bytes:
    """Rewrite the log of the newest episode, as its sender would: without a checkpoint of this user."""
    folder = project.episode
    events = [json.loads(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]
    chained(folder, forge(events))
    for name in ("state.json", "summary.json", "manifest.json", "checkpoint.jsonl"):
        (folder / name).unlink(missing_ok=True)
    return (folder / "events.jsonl").read_bytes()


def _refused(project: Project, *arguments: str, **options: Any) -> dict[str, Any]:
    """The error of a resume that is refused; nothing in the log has changed."""
    log = (project.episode / "events.jsonl").read_bytes()
    refused = project.run("--json", "resume", *arguments, **options).assert_exit(3)
    error: dict[str, Any] = refused.json["error"]
    assert error["code"] == "resume.untrusted", error
    assert (project.episode / "events.jsonl").read_bytes() == log
    return error


def _given_again(error: dict[str, Any]) -> list[str]:
    """The arguments of the command that the error proposes, which gives the permissions."""
    look, give = error["next"]
    assert look.startswith("cogcli trace ")
    words = [word for word in give.split()[1:] if word != "--json"]
    assert words[-2] == "--head"
    return words


@pytest.mark.sampled(3)
@pytest.mark.parametrize("trust", ["none", "accepted", "folder", "environment", "runs-dir"])
@pytest.mark.parametrize("forge", [_level, _confirmation])
def test_what_a_log_says_was_allowed_does_not_count_in_any_project(
    untrusted: Project, forge: Callable[[list[dict[str, Any]]], list[dict[str, Any]]], trust: str
) -> None:
    _forged(untrusted, forge)
    env, flags = {}, ["@last"]
    if trust == "environment":
        env = {"COGCLI_TRUST_PROJECT": "1"}
    elif trust == "runs-dir":
        flags += ["--runs-dir", str(untrusted.episode.parent)]
    elif trust != "none":
        untrusted.run("config", "trust", *(["--folder"] if trust == "folder" else [])).assert_ok()
    error = _refused(untrusted, *flags, env=env)
    resumed = untrusted.run("--json", *_given_again(error), env=env)
    assert "resume.untrusted" not in resumed.out
    again = untrusted.run("--json", "resume", "@last", env=env)
    assert "resume.untrusted" not in again.out, "what was given again is known from then on"


def test_permissions_are_given_for_one_log_only(untrusted: Project) -> None:
    _forged(untrusted, _level)
    seen = _given_again(_refused(untrusted, "@last"))
    _forged(untrusted, _confirmation)
    refused = untrusted.run("--json", *seen).assert_exit(3)
    assert "the log ends with sha256:" in refused.json["error"]["message"]


def test_a_checkpoint_of_another_episode_or_of_a_beginning_vouches_for_no_forged_line(
    untrusted: Project,
) -> None:
    """The genuine checkpoint of the paused run lies next to a rewritten log, and next to a longer one."""
    genuine = (untrusted.episode / "checkpoint.jsonl").read_bytes()
    first = (untrusted.episode / "events.jsonl").read_bytes()
    _forged(untrusted, _confirmation)
    (untrusted.episode / "checkpoint.jsonl").write_bytes(genuine)
    assert "was cut or altered" in _refused(untrusted, "@last")["message"]
    untrusted.run("run", SKILL, "--trust-level", "elevated").assert_exit(5)
    foreign = untrusted.episode
    _forged(untrusted, _confirmation)
    (foreign / "checkpoint.jsonl").write_bytes(genuine)
    _refused(untrusted, "@last")
    assert first


def test_an_approval_after_the_last_checkpoint_does_not_count(untrusted: Project) -> None:
    """An own paused run, to whose log somebody appended an approval that fits its chain."""
    own = {"COGCLI_TRUST_LEVEL": "elevated"}
    folder = untrusted.episode
    paused = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    untrusted.run("resume", "@last", "--approve", CAPABILITY, env=own).assert_ok()
    events = [json.loads(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]
    end = 1 + [event["event_type"] for event in events].index("approval.granted")
    for path in folder.iterdir():
        if path.is_file():
            path.unlink()
    for name, data in paused.items():
        (folder / name).write_bytes(data)
    chained(folder, events[:end])
    assert (folder / "events.jsonl").read_bytes().startswith(paused["events.jsonl"])
    error = _refused(untrusted, "@last", env=own)
    assert f"`{CAPABILITY}` approved" in error["message"]
    assert "trust level" not in error["message"], "the checkpoint vouches for the beginning"


def test_an_own_run_needs_no_word_again(untrusted: Project, tmp_path: Path) -> None:
    """Its trust level and its confirmation count, where it lies and in a copy, in a project that is not trusted."""
    untrusted.run("resume", "@last", "--approve", CAPABILITY).assert_ok()
    untrusted.run("run", SKILL, "--trust-level", "elevated").assert_exit(5)
    copy = tmp_path / "copied" / untrusted.episode.name
    shutil.copytree(untrusted.episode, copy)
    untrusted.run("resume", str(copy), "--approve", CAPABILITY).assert_ok()
    other = {"XDG_CONFIG_HOME": str(tmp_path / "another-user")}
    assert "trust level elevated" in _refused(untrusted, "@last", env=other)["message"]


@pytest.mark.parametrize("damage", ["damaged", "readable", "gone"])
def test_a_key_that_cannot_be_used_is_left_alone_and_makes_own_runs_unknown(
    untrusted: Project, damage: str
) -> None:
    key = untrusted.home / ".config/cogcli/episodes.key"
    assert key.stat().st_mode & 0o777 == 0o600
    if damage == "damaged":
        key.write_text("not a key\n")
    elif damage == "readable":
        key.chmod(0o644)
    else:
        key.unlink()
    before = key.read_bytes() if key.exists() else None
    _refused(untrusted, "@last")
    assert "consistent, unsigned" in untrusted.run("verify", "@last").assert_ok().out
    untrusted.run("run", SKILL, "--trust-level", "elevated").assert_exit(5)
    if before is not None:
        assert key.read_bytes() == before
        _refused(untrusted, "@last")


def test_an_approval_in_the_log_does_not_count_either(untrusted: Project) -> None:
    own = {"COGCLI_TRUST_LEVEL": "elevated"}
    untrusted.run("resume", "@last", "--approve", CAPABILITY, env=own).assert_ok()
    cut = lambda events: events[: 1 + [e["event_type"] for e in events].index("approval.granted")]  # noqa: E731
    _forged(untrusted, cut)
    assert f"`{CAPABILITY}` approved" in _refused(untrusted, "@last", env=own)["message"]


GATED, GATED_SKILL = "demo.text.gated", "demo.gated"


def _gated(project: Project, text: str, when: str = "pre", also: str = "") -> Project:
    """A capability with a gate that looks at its text as at a path; what it calls comes with cogcli."""
    gate = f"{{capability: doc.path.check, input: {{path: {'input' if when == 'pre' else 'output'}.text}}}}"
    project.capability(
        GATED, "normalize", extra=f"safety: {{mandatory_{when}_gates: [{gate}{also}]}}\n"
    )
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
    _forged(untrusted, lambda events: _let_pass(events, decided=decided))
    error = _refused(untrusted, "@last")
    assert f"a gate passed (ask@{when}0)" in error["message"]
    untrusted.run("config", "trust").assert_ok()
    error = _refused(untrusted, "@last")
    untrusted.run(*_given_again(error)).assert_ok()


def test_a_gate_that_lets_nothing_go_any_more_is_no_consent(untrusted: Project) -> None:
    """It refused, or its call was answered already: an honest run that waits is continued with."""
    ask = ", {capability: doc.path.check, input: {path: input.text}, on_fail: require_human}"
    _gated(untrusted, "/proc/version", "pre", "").run("run", GATED_SKILL).assert_exit(4)
    _forged(
        untrusted,
        lambda events: events[: 1 + [e["event_type"] for e in events].index("gate.decided")],
    )
    untrusted.run("resume", "@last").assert_exit(4)
    project = _gated(untrusted, "/proc/version")
    capability = project.root / f"capabilities/{GATED}.yaml"
    text = capability.read_text()
    capability.write_text(
        text[: text.index("safety:")] + f"safety: {{mandatory_pre_gates: [{ask[2:]}]}}\n"
    )
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


def test_looking_at_an_unknown_episode_is_free(untrusted: Project) -> None:
    _forged(untrusted, _confirmation)
    untrusted.run("trace", "@last").assert_ok()
    untrusted.run("replay", "@last")
    untrusted.run("report", "@last", "-o", "page.html").assert_ok()
    assert "consistent, unsigned" in untrusted.run("verify", "@last").assert_ok().out


def test_the_variables_that_a_log_records_do_not_count_either(
    untrusted: Project, tmp_path: Path
) -> None:
    """A variable may be a program: resuming a log that came with a mail would start it."""
    mark = tmp_path / "started"
    words = ["-p", "text=The quay is closed.", "-p", "target_language=fr"]
    bind = ["--bind", "text.content.translate=python_text_content_translate"]
    env = {"COGCLI_TRANSLATE_COMMAND": "cat"}
    untrusted.run("config", "trust").assert_ok()
    untrusted.run("run", "text.translate-summary", *words, *bind, env=env).assert_ok()
    before_the_call = lambda events: events[:2]  # noqa: E731
    _forged(untrusted, before_the_call)
    error = _refused(untrusted, "@last", env=env)
    assert "variables" not in error["message"]
    untrusted.run(*_given_again(error), env=env).assert_ok()

    def start_program(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        variables = events[0]["payload"]["pins"]["variables"]
        variables["official_commands"]["translate"] = f"touch {mark}"
        return events[:2]

    _forged(untrusted, start_program)
    error = _refused(untrusted, "@last", env=env)
    assert (
        f"other variables of service `official_commands`: translate=touch {mark}"
        in error["message"]
    )
    assert not mark.exists()
