"""The ceilings of spec files are settings that the user raises and a project only lowers
(docs/reference/spec-files.md#ceilings)."""

from __future__ import annotations

from typing import Any

import pytest

LOOPS = """
id: t.loops
version: "1.0.0"
name: Loops
description: Loops over loops.
inputs: {texts: {type: array, required: true}}
outputs: {text: {type: any}}
steps:
  - id: again
    uses: demo.text.upper
    input: {text: {$literal: x}}
    output: {text: vars.text}
    config: {while: {condition: false, max_iterations: 20000}}
  - id: each
    uses: demo.text.upper
    input: {text: {$literal: x}}
    output: {text: outputs.text}
    config: {foreach: {items: inputs.texts, max_items: 2000000}}
"""
RAISED = {"COGCLI_LIMITS_MAX_ITERATIONS": "20000", "COGCLI_LIMITS_MAX_ITEMS": "2000000"}


@pytest.fixture
def loops(demo: Any) -> Any:
    demo.write("skills/local/t/loops/skill.yaml", LOOPS.encode())
    return demo


def _errors(project: Any, **environment: str) -> list[tuple[str, int, str]]:
    """The errors that `validate` finds: code, line and hint."""
    found = project.run("validate", "--json", env=environment).json["problems"]
    return [(each["code"], each["line"], each["hint"]) for each in found if each["severity"] == "E"]


def _write_own_settings(project: Any, text: str) -> None:
    file = project.home / ".config/cogcli/config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_a_loop_beyond_its_ceiling_is_refused_with_the_setting(loops: Any) -> None:
    assert _errors(loops) == [
        ("value.range", 13, "lower it, or raise the setting limits.max_iterations"),
        ("value.range", 18, "lower it, or raise the setting limits.max_items"),
    ]
    assert _errors(loops, **RAISED) == []


def test_a_project_lowers_a_ceiling_and_cannot_raise_it(loops: Any) -> None:
    shown = ("config", "show", "limits.steps", "--origin")
    loops.write("cogcli.toml", b"limits.steps = 1\n")
    (steps, *_) = _errors(loops, **RAISED)
    assert steps == ("skill.steps", 8, "split the skill, or raise the setting limits.steps")
    _write_own_settings(loops, "limits.steps = 20000\n")
    assert loops.run(*shown).out == "limits.steps = 1   cogcli.toml:1\n"
    raised = loops.run(*shown, env={"COGCLI_LIMITS_STEPS": "20001"})
    assert raised.out == "limits.steps = 20001   COGCLI_LIMITS_STEPS\n"
    loops.write("cogcli.toml", b"limits.steps = 10001\n")
    error = loops.run("run", "demo.greet", "-p", "text=x", "--json").assert_exit(3).json["error"]
    assert (error["code"], error["line"]) == ("config.key", 1)
    assert "a project cannot raise it to 10001" in error["message"]
    assert "COGCLI_LIMITS_STEPS=10001" in error["hint"]


def test_a_run_and_its_rerun_keep_to_the_ceilings(loops: Any) -> None:
    run = ("run", "t.loops", "-p", 'texts=["a"]', "--json")
    error = loops.run(*run).assert_exit(3).json["error"]
    assert error["code"] == "value.range"
    assert loops.episodes == []
    loops.run(*run, env=RAISED).assert_ok()
    loops.run("replay", "@last").assert_ok()
    loops.run("rerun", "@last").assert_exit(3)
    loops.run("rerun", "@last", env=RAISED).assert_ok()


@pytest.mark.sampled(6)
def test_a_larger_file_needs_a_setting(demo: Any) -> None:
    words = ", ".join(["x"] * 60_000)
    text = LOOPS.replace("steps:", f"metadata: {{x-words: [{words}]}}\nsteps:")
    demo.write(
        "skills/local/t/loops/skill.yaml", text.replace("[x", f"[{'x' * 200_000}", 1).encode()
    )
    ((size, _, hint),) = _errors(demo, **RAISED)
    assert (size, hint) == ("yaml.size", "split the file, or raise the setting limits.yaml_bytes")
    larger = {**RAISED, "COGCLI_LIMITS_YAML_BYTES": "1000000"}
    ((nodes, _, hint),) = _errors(demo, **larger)
    assert (nodes, hint) == ("yaml.limit", "split the file, or raise the setting limits.yaml_nodes")
    largest = {**larger, "COGCLI_LIMITS_YAML_NODES": "100000"}
    assert _errors(demo, **largest) == []
    # The cache of compiled files keeps a file apart that is too large now.
    assert [code for code, _, _ in _errors(demo, **larger)] == ["yaml.limit"]
