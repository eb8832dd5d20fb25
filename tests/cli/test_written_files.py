"""The files that a run wrote stand in `state.json` with path, size and hash."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from cogcli.base.redact import MASK

WRITES = """
from cogcli import sdk

tries = []

def note(text: str) -> dict[str, object]:
    with open(f"{text}.txt", "w") as file:
        file.write(text)
    sdk.artifact(f"{text}.txt")
    return {"text": text}

def fails_first(text: str) -> dict[str, object]:
    note("first" if not tries else text)
    tries.append(text)
    if len(tries) == 1:
        raise ConnectionError("not yet")
    return {"text": text}

def missing(text: str) -> dict[str, object]:
    sdk.artifact(f"{text}.txt")
    return {"text": text}
"""
NOTE = "{id: note, uses: demo.text.note, input: {text: inputs.text}, output: {text: outputs.text}}"
INPUT = "{text: {type: string, required: true}}"
OUTPUT = "{text: {type: string}}"


def row_of(text: str, path: str = "") -> dict[str, Any]:
    data = text.encode()
    return {
        "path": path or f"{text}.txt",
        "size_bytes": len(data),
        "sha256": sha256(data).hexdigest(),
    }


@pytest.fixture
def tmp_path(ordinary_path: Path) -> Path:
    """Gates of shipped capabilities refuse to write in folders of the system."""
    return ordinary_path


@pytest.fixture
def project_of(project: Any) -> Any:
    def make(steps: str, *, isolation: str = "thread") -> Any:
        project.services(WRITES)
        text = f"id: demo\nkind: pythoncall\nmodule: demo_services\nisolation: {isolation}\n"
        project.write("services/local/demo.yaml", text)
        for function in ("note", "fails_first", "missing"):
            project.capability(f"demo.text.{function.replace('_', '-')}", function)
        project.skill("demo.writes", steps, inputs=INPUT, outputs=OUTPUT)
        return project

    return make


def outcomes_of(project: Any, *words: str) -> dict[str, Any]:
    project.run("run", "demo.writes", "-p", "text=hello", "-q", *words).assert_ok()
    state = json.loads(project.run("state", "show", "@last", "--json").assert_ok().out)
    project.run("verify", "@last").assert_ok()
    project.run("replay", "@last").assert_ok()
    outcomes: dict[str, Any] = state["state"]["outcomes"] if "state" in state else state["outcomes"]
    return outcomes


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_file_that_a_function_records_is_in_the_state(project_of: Any, isolation: str) -> None:
    project = project_of(f"- {NOTE}", isolation=isolation)
    outcomes = outcomes_of(project)
    assert outcomes["artifacts"] == [row_of("hello")]
    assert [action["result_artifacts"] for action in outcomes["actions"]] == [[row_of("hello")]]
    assert "wrote hello.txt, 5 B" in project.run("trace", "@last").assert_ok().out


def test_files_of_items_and_of_nested_skills_are_those_of_the_run(project_of: Any) -> None:
    project = project_of(
        """
        - id: each
          uses: demo.text.note
          input: {text: item}
          output: {text: vars.texts}
          config: {foreach: {items: "['a', 'b']"}}
        - {id: inner, uses: "skill:demo.inner", input: {text: inputs.text}, output: {text: outputs.text}}
        """
    )
    project.skill("demo.inner", f"- {NOTE}", inputs=INPUT, outputs=OUTPUT)
    found = outcomes_of(project)["artifacts"]
    assert [each for each in found if isinstance(each, dict)] == [
        row_of("a"),
        row_of("b"),
        row_of("hello"),
    ]


def test_what_a_failed_attempt_wrote_is_no_result(project_of: Any) -> None:
    step = NOTE.replace("demo.text.note", "demo.text.fails-first")
    project = project_of(
        f"- {step[:-1]}, config: {{retry: {{max_attempts: 2, backoff_seconds: 0}}}}}}"
    )
    assert outcomes_of(project)["artifacts"] == [row_of("hello")]
    assert (project.root / "first.txt").exists()


def test_a_file_that_is_not_there_is_an_error_of_the_call(project_of: Any) -> None:
    project = project_of("- " + NOTE.replace("demo.text.note", "demo.text.missing"))
    failed = project.run("run", "demo.writes", "-p", "text=hello", "--json").json["error"]
    assert (failed["code"], failed["reason"]) == ("call.rejected", "bad-data")
    assert "hello.txt: does not exist" in failed["message"]


@pytest.mark.parametrize(
    ("capability", "inputs", "path"),
    [
        ("fs.file.write", "path: {$literal: out/a.txt}, content: {$literal: hi}", "out/a.txt"),
        (
            "table.sheet.write",
            "path: {$literal: b.csv}, table: {$literal: [{n: 1}]}",
            "b.csv",
        ),
    ],
)
def test_shipped_capabilities_record_what_they_wrote(
    project: Any, capability: str, inputs: str, path: str
) -> None:
    project.skill("demo.writes", f"- {{id: save, uses: {capability}, input: {{{inputs}}}}}")
    (project.root / "out").mkdir()
    project.run(
        "run", "demo.writes", "--trust-level", "elevated", "--confirm", capability, "-q"
    ).assert_ok()
    state = json.loads(next((project.root / ".cogcli").rglob("state.json")).read_bytes())
    assert state["outcomes"]["artifacts"] == [
        row_of((project.root / path).read_bytes().decode(), path)
    ]


def test_a_secret_in_a_path_is_masked(project_of: Any) -> None:
    project = project_of(f"- {NOTE}")
    project.services(
        WRITES + "def leak(text: str) -> dict[str, object]:\n    return note(sdk.secret())\n"
    )
    secret = "Zk7qWm2xTr9pLs4v"
    project.env["API_TOKEN"] = secret
    project.write(
        "services/local/demo.yaml",
        "id: demo\nkind: pythoncall\nmodule: demo_services\nisolation: thread\nauth_ref: env:API_TOKEN\n",
    )
    project.capability("demo.text.note", "leak")
    project.run("run", "demo.writes", "-p", "text=a", "-q").assert_ok()
    (episode,) = (project.root / ".cogcli").rglob("events.jsonl")
    log, state = episode.read_text(), episode.with_name("state.json").read_text()
    assert secret not in log + state
    assert f'"path":"{MASK}.txt"' in log
    project.run("verify", "@last").assert_ok()
