"""An agent without a pack: what can be read here, and nothing else (docs/reference/agent-run.md#without-pack)."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from support.project import Project, Result

from cogcli.agent.use_cases.builtin_pack import find_skill, read_only_pack
from cogcli.app.registry import selection_options
from cogcli.app.settings import Settings
from cogcli.declarations.pack_spec import Pack
from cogcli.specs.shapes import check_file

pytestmark = pytest.mark.sampled(16)

WRITES = """
id: demo.write
version: "1.0.0"
name: Write
description: Has an effect.
inputs: {}
outputs: {}
steps: [{id: a, uses: demo.text.write, input: {text: {$literal: x}}, output: {}}]
"""


@pytest.fixture
def project(project: Project) -> Project:
    """An empty one, so that there are the shipped skills alone."""
    project.write("cogcli.toml", "")
    return project


def _ask(project: Project, message: str, *more: str) -> Result:
    return project.run("agent", "invoke", "--message", message, *more, "--json")


def _settings(project: Project) -> Settings:
    return Settings({}, project.env, base=str(project.root))


def _pack(project: Project, message: str = "hello", **budget: int) -> dict[str, Any]:
    settings = _settings(project)
    return read_only_pack(settings, selection_options(settings), message, budget)


def _names(raw: dict[str, Any]) -> list[str]:
    names: list[str] = raw["decision_layer"]["intents"][0]["capabilities"]
    return names


@pytest.mark.sampled(32)
def test_a_message_is_answered_with_the_skill_that_it_means(project: Project) -> None:
    found = _ask(project, "Summarize this text").assert_exit(1).json
    assert (found["status"], found["decision"]["status"], found["decision"]["status_reason"]) == (
        "partial",
        "completed",
        "input_missing",
    )
    answer = found["outputs"]["response"]
    assert answer.startswith("text.summarize: ")
    assert "It needs text." in answer
    assert answer.endswith("\n  cogcli run text.summarize -p text=@FILE")
    assert find_skill(_settings(project), "Summarize this text").text == answer


def test_the_line_of_the_answer_runs_as_printed(project: Project) -> None:
    given = (
        _ask(project, "What language is this?", "--param", "text=It's a short text.")
        .assert_exit(1)
        .json
    )
    line = given["outputs"]["response"].splitlines()[-1].strip()
    assert "It needs" not in given["outputs"]["response"]
    project.run(*shlex.split(line)[1:]).assert_ok()


def test_else_the_three_nearest_are_named(project: Project) -> None:
    answer = _ask(project, "hello").assert_exit(1).json["outputs"]["response"]
    assert answer.startswith("No skill is clearly meant. The nearest:\n")
    assert answer.count("\n  cogcli run ") == 3


def test_the_records_need_no_registry(project: Project) -> None:
    episode = _ask(project, "Summarize this text").json["episode_id"]
    decision = json.loads((next(project.root.rglob(episode)) / "decision.json").read_text())
    assert decision["lineage"]["pack_ref"].startswith("builtin.read-only@1.0.0#sha256:")
    for command in (
        ("verify",),
        ("replay",),
        ("policy", "explain"),
        ("context", "explain"),
        ("trace",),
    ):
        project.run(*command, episode).assert_ok()
    shown = project.run(
        "context", "explain", episode, "--why", "skill:text.summarize", "--json"
    ).assert_ok()
    assert shown.json["context"]["placements"][0]["reason"] == "allowed"
    project.run("metrics", "--pack", "builtin.read-only").assert_ok()
    again = project.run("rerun", episode).assert_exit(2).err
    assert "cogcli agent invoke --message 'Summarize this text' --user default" in again
    assert "--pack" not in again


@pytest.mark.sampled(32)
def test_an_interrupted_run_goes_on_under_its_own_pack(project: Project) -> None:
    answer = _ask(project, "Summarize this text").json["outputs"]["response"]
    project.cut_after("context.compiled")
    project.demo()  # skills that its pack does not have
    resumed = project.run("resume", "@last", "--json").assert_exit(1).json
    assert resumed["outputs"]["response"] == answer
    project.run("verify", "@last").assert_ok()
    project.run("replay", "@last").assert_ok()


@pytest.mark.sampled(32)
def test_a_dry_run_shows_the_tools(project: Project) -> None:
    shown = (
        project.run("agent", "invoke", "--message", "Summarize this", "--dry-run").assert_ok().out
    )
    assert "cogcli run text.summarize" in shown
    assert "skill:text.summarize: A summary" in shown
    assert project.episodes == []


def test_the_pack_is_one_that_a_file_could_hold(project: Project) -> None:
    raw = _pack(project)
    checked = check_file("pack", raw, None, "p.yaml", {})
    assert (checked.raw, list(checked.problems)) == (raw, [])
    made = Pack.of(raw)
    assert made.meta.defaults.safety_mode == "read_only"
    assert made.policy.read_only_actions
    assert set(made.permitted) == {name for name in _names(raw) if name.startswith("skill:")}


@pytest.mark.sampled(32)
def test_its_tools_are_the_skills_that_can_run_and_have_no_effects(project: Project) -> None:
    before = set(_names(_pack(project)))
    assert "skill:text.summarize" in before
    project.demo()
    project.capability("demo.text.read", "upper")
    project.capability("demo.text.deep", "upper", extra="safety: {trust_level: elevated}")
    project.capability("demo.text.write", "upper")
    written = project.root / "capabilities/demo.text.write.yaml"
    written.write_text(written.read_text().replace("side_effects: false", "side_effects: true"))
    for name in ("write", "deep", "gone", "read"):
        uses = f"demo.text.{name}"
        text = WRITES.replace("demo.write", f"demo.{name}").replace("demo.text.write", uses)
        project.write(f"skills/local/demo/{name}/skill.yaml", text)
    project.write("skills/local/demo/torn/skill.yaml", "id: demo.torn\nsteps: 1\n")
    found = {name.removeprefix("skill:") for name in set(_names(_pack(project))) - before}
    assert found == {"demo.read", "demo.greet", "demo.review"}
    _ask(project, "Summarize this text").assert_exit(1)
    project.env["COGCLI_TRUST_PROJECT"] = "0"
    assert set(_names(_pack(project))) == before, (
        "functions of a project that is not trusted are not called"
    )


def test_the_best_of_many_tools_find_room(project: Project) -> None:
    everything, few = (
        _names(_pack(project, "summarize")),
        _names(_pack(project, "summarize", **{"tokens.context": 400})),
    )
    assert few == everything[: len(few)]
    assert few[0] == "skill:text.summarize"
    assert 0 < len(few) < len(everything)
    capped = _names(_pack(project, "summarize", **{"buckets.tool": 100}))
    assert capped == everything[:1]
    found = _ask(project, "summarize", "--budget", "tokens.context=400").assert_exit(1)
    assert found.json["decision"]["status"] == "completed", "nothing is overpacked"
    assert _pack(project, "summarize") == _pack(project, "summarize")


def _planned(project: Project, name: str, args: dict[str, Any]) -> Result:
    """What comes of a model that calls this, and answers then."""
    call = {"tool_calls": [{"name": name, "args": args}]}
    replies = [{"json": call}, {"json": {"response": "Done."}}]
    project.write("model.yaml", json.dumps({"replies": replies}))
    about = name.rpartition(".")[2]  # the nearest tools have room in the prompt
    return _ask(project, f"{about} this text", "--model", "scripted:model.yaml")


def _log(project: Project) -> list[dict[str, Any]]:
    return [
        json.loads(line) for line in (project.episode / "events.jsonl").read_text().splitlines()
    ]


def test_a_model_runs_a_skill_of_it(project: Project) -> None:
    text = "Rivers carry sand to the sea. The sea carries it away. Beaches are what is left between the two."
    found = _planned(project, "skill:text.summarize", {"text": text}).assert_ok()
    assert found.json["outputs"]["response"] == "Done."
    log = _log(project)
    (closing,) = [
        each for each in log if each.get("step_id") == "t1_call1" and "output" in each["payload"]
    ]
    assert closing["payload"]["output"]["summary"]
    decided = [each["payload"] for each in log if each["event_type"] == "policy.decided"]
    assert {each["verdict"] for each in decided} == {"allow"}
    assert all(each.get("inside") == ["skill:text.summarize"] for each in decided[1:])
    project.run("verify", "@last").assert_ok()
    project.run("replay", "@last").assert_ok()


@pytest.mark.sampled(32)
def test_a_run_that_was_cut_off_inside_a_skill_goes_on_there(project: Project) -> None:
    _planned(project, "skill:text.language", {"text": "It is a text."}).assert_ok()
    calls = [each["step_id"] for each in _log(project) if each["event_type"] == "step.started"]
    project.cut_after("step.started")
    resumed = project.run("resume", "@last", "--json").assert_ok().json
    assert resumed["outputs"]["response"] == "Done."
    assert calls[-1].startswith("t1_call1/")
    decided = [each["step_id"] for each in _log(project) if each["event_type"] == "policy.decided"]
    assert set(decided) <= set(calls)
    assert len(decided) == len(set(decided)), "nothing is decided about twice"
    project.run("verify", "@last").assert_ok()
    project.run("replay", "@last").assert_ok()


@pytest.mark.sampled(32)
@pytest.mark.parametrize(
    "name", ["text.content.summarize", "skill:demo.write", "skill:agent.builtin"]
)
def test_a_model_that_asks_for_anything_else_calls_nothing(project: Project, name: str) -> None:
    _planned(project, name, {}).assert_ok()
    (first, *_) = [e["payload"] for e in _log(project) if e["event_type"] == "critic.verified"]
    assert first["reason"] == f"unknown_capability:{name}"
    assert [each for each in _log(project) if each["event_type"] == "step.started"] == []


def test_a_flag_cannot_raise_the_ceiling(project: Project) -> None:
    refused = _ask(project, "hello", "--safety-mode", "network").assert_exit(2)
    assert "is above the pack's `read_only`" in refused.json["error"]["message"]
    assert project.episodes == []


def test_an_unknown_intent_is_refused(project: Project) -> None:
    found = _ask(project, "hello", "--intent", "pay").assert_exit(4).json
    assert found["decision"]["status_reason"] == "unknown_intent"
