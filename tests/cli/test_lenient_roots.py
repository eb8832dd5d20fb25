"""`[roots."reg"] contracts = "lenient"` (docs/reference/spec-files.md#lenient)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.sampled(10)

LENIENT = 'registry = ["reg"]\n[roots."reg"]\ncontracts = "lenient"\n'
STRICT = 'registry = ["reg"]\n'
CAPABILITY = """\
id: t.text.count
version: "1.0.0"
description: Counts words.
inputs: {text: {type: string, required: true}}
outputs: {words: {type: number, required: true}, note: {type: string}}
properties: {side_effects: false}
metadata:
  tags: [a]
  tags: [b]
"""
OTHER = """\
id: t.text.label
version: "1.0.0"
description: Labels a count, which it wants as text.
inputs: {count: {type: string, required: true}, note: {type: string}}
outputs: {label: {type: string, required: true}}
properties: {side_effects: false}
"""
SKILL = """\
id: t.count
version: "1.0.0"
name: Count
description: Counts, and labels the count.
inputs: {text: {type: string, required: true}}
outputs: {words: {type: string, required: true}, label: {type: string}, note: {type: string, required: true}}
steps:
  - {id: count, uses: t.text.count, input: {text: inputs.text}, output: {words: outputs.words, note: outputs.note}}
  - {id: label, uses: t.text.label, input: {count: outputs.words, note: outputs.note}, output: {label: outputs.label}}
"""
SOURCE = """
def count(text):
    return {"words": len(text.split()), "note": None}

def label(count, note=None):
    return {"label": f"{count!r} {note}"}
"""


def binding(capability: str, function: str, request: str, response: str) -> str:
    name = capability.replace(".", "_")
    return (
        f"id: {name}\ncapability: {capability}\nservice: counting\nprotocol: pythoncall\noperation: {function}\n"
        f"request: {request}\nresponse: {response}\n"
    )


@pytest.fixture
def vendor(project: Any) -> Any:
    """A project with a root `reg` whose specs contradict themselves."""
    write_root(project, "reg/")
    project.write("cogcli.toml", LENIENT)
    return project


def write_root(project: Any, at: str) -> None:
    project.write(f"{at}capabilities/t.text.count.yaml", CAPABILITY)
    project.write(f"{at}capabilities/t.text.label.yaml", OTHER)
    project.write(f"{at}skills/local/t/count/skill.yaml", SKILL)
    count = binding(
        "t.text.count",
        "count",
        "{text: input.text}",
        "{words: response.words, note: response.note}",
    )
    label = binding(
        "t.text.label", "label", "{count: input.count, note: input.note}", "{label: response.label}"
    )
    project.write(f"{at}bindings/local/t.text.count/count.yaml", count)
    project.write(f"{at}bindings/local/t.text.label/label.yaml", label)
    service = "id: counting\nkind: pythoncall\nmodule: counting_functions\nisolation: thread\n"
    project.write(f"{at}services/local/counting.yaml", service)
    project.write(f"{at}counting_functions.py", SOURCE)


def payloads(project: Any, event_type: str) -> list[dict[str, Any]]:
    lines = (Path(project.episode) / "events.jsonl").read_text().splitlines()
    return [
        event["payload"] for event in map(json.loads, lines) if event["event_type"] == event_type
    ]


def test_contradictions_of_a_lenient_root_are_warnings_and_the_episode_has_them(
    vendor: Any,
) -> None:
    problems = vendor.run("validate", "--json").assert_ok().json["problems"]
    assert {(p["code"], p["severity"]) for p in problems} >= {
        ("flow.type", "W"),
        ("yaml.duplicate-key", "W"),
    }

    answer = vendor.run("run", "t.count", "-p", "text=one two", "-q").assert_ok().json
    assert answer == {"words": 2, "label": "2 None", "note": None}
    (started,), (ended,) = payloads(vendor, "run.started"), payloads(vendor, "run.terminated")
    assert started["contracts"]["lenient"] == [
        "capability:t.text.count",
        "capability:t.text.label",
        "skill:t.count",
    ]
    found = {(each["code"], each["spec"], each["path"]) for each in started["contracts"]["found"]}
    assert found == {
        ("flow.type", "skill:t.count", "/steps/0/output/words"),
        ("flow.type", "skill:t.count", "/steps/1/input/count"),
        ("yaml.duplicate-key", "capability:t.text.count", "/metadata/tags"),
    }
    assert ended["contradictions"] == ["`words`: expected string, found number 2"]
    for check in (("verify",), ("replay",), ("state", "show", "--check")):
        vendor.run(*check, *(() if check[-1] == "--check" else ("@last",))).assert_ok()


@pytest.mark.sampled(20)
def test_a_strict_root_and_the_project_itself_refuse_the_same(project: Any) -> None:
    write_root(project, "reg/")
    project.write("cogcli.toml", STRICT)
    assert "yaml.duplicate-key" in project.run("validate").assert_exit(1).out
    project.write("reg/capabilities/t.text.count.yaml", CAPABILITY.replace("  tags: [b]\n", ""))
    assert "flow.type" in project.run("validate").assert_exit(1).out
    project.write("cogcli.toml", LENIENT)
    project.write("skills/local/own/count/skill.yaml", SKILL.replace("t.count", "own.count", 1))
    found = [
        p
        for p in project.run("validate", "--json").assert_exit(1).json["problems"]
        if p["severity"] == "E"
    ]
    assert {(p["code"], p["file"]) for p in found} == {
        ("flow.type", "skills/local/own/count/skill.yaml")
    }
    assert "flow.type" in project.run("run", "own.count", "-p", "text=x").assert_exit(3).err


@pytest.mark.sampled(20)
def test_a_root_does_not_call_itself_lenient_and_an_untrusted_project_calls_none(
    vendor: Any,
) -> None:
    untrusted = (
        vendor.run("validate", "--json", env={"COGCLI_TRUST_PROJECT": "0"})
        .assert_exit(1)
        .json["problems"]
    )
    told = vendor.run("validate", env={"COGCLI_TRUST_PROJECT": "0"}).err
    assert "counts once the project is trusted" in told
    assert "next: cogcli config trust" in told
    assert ("yaml.duplicate-key", "E") in {(p["code"], p["severity"]) for p in untrusted}
    vendor.write("cogcli.toml", STRICT)
    vendor.write("reg/cogcli.toml", '[roots."."]\ncontracts = "lenient"\n')
    assert "yaml.duplicate-key" in vendor.run("validate").assert_exit(1).out
    vendor.write("cogcli.toml", '[roots."."]\ncontracts = "lenient"\n')
    assert "own specs stay strict" in vendor.run("validate").assert_exit(3).err


def test_accepted_by_digest_leniency_is_a_part_of_what_was_accepted(vendor: Any) -> None:
    env = {"COGCLI_TRUST_PROJECT": "0"}
    vendor.write("cogcli.toml", STRICT)
    vendor.run("config", "trust", env=env).assert_ok()
    vendor.write("cogcli.toml", LENIENT)
    assert "changed cogcli.toml" in vendor.run("config", "show", "trust", env=env).assert_ok().out
    assert "yaml.duplicate-key" in vendor.run("validate", env=env).assert_exit(1).out


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("input: {text: inputs.text}", "input: {text: vars.nothing}", "ref.unwritten"),
        ("uses: t.text.label", "uses: t.text.lable", "step.uses"),
        ("words: outputs.words, note", "words: outputs.words, nota", "step.output-unknown"),
    ],
)
def test_nothing_else_is_lenient(vendor: Any, old: str, new: str, code: str) -> None:
    vendor.write("reg/skills/local/t/count/skill.yaml", SKILL.replace(old, new))
    assert code in vendor.run("validate").assert_exit(1).out


def test_what_bindings_are_chosen_by_is_said_once(vendor: Any) -> None:
    twice = "metadata:\n  required_conformance_profile: strict\n  required_conformance_profile: experimental\n"
    vendor.write(
        "reg/capabilities/t.text.count.yaml", CAPABILITY[: CAPABILITY.index("metadata:")] + twice
    )
    assert "yaml.duplicate-key" in vendor.run("validate").assert_exit(1).out


def test_the_contract_of_a_strict_root_holds_for_lenient_callers(vendor: Any) -> None:
    """A warning of the caller; the value itself is refused where it would be taken."""
    (vendor.root / "reg/capabilities/t.text.label.yaml").unlink()
    vendor.write("capabilities/t.text.label.yaml", OTHER)
    vendor.run("validate").assert_ok()
    assert "input.contract" in vendor.run("run", "t.count", "-p", "text=one two").assert_exit(1).err
