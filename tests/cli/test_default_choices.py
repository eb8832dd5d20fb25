"""Defaults that cannot be called here, and lists of them (docs/reference/binding.md#default-selection)."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

SOURCE = """
    def near(text):
        return {"text": "near"}
"""
RUN = ("run", "t.ask", "-p", "text=x")
KEY = {"T_ASK_KEY": "sesame-open"}
UNSET = "service `remote`: environment variable `T_ASK_KEY` is not set"


@pytest.fixture
def asking(project: Any) -> Any:
    """A skill whose capability has a binding on a remote service, which is the default, and one on a function."""
    project.services(SOURCE)
    project.capability("t.text.ask", "near")
    project.write(
        "services/local/remote.yaml",
        "id: remote\nkind: openapi\nbase_url: http://127.0.0.1:9\nnetwork: private\nauth_ref: T_ASK_KEY\n",
    )
    project.write(
        "bindings/local/t.text.ask/far.yaml",
        "id: far\ncapability: t.text.ask\nservice: remote\nprotocol: openapi\noperation: ask\n"
        "request: {text: input.text}\nresponse: {text: response.text}\n",
    )
    steps = (
        "- {id: ask, uses: t.text.ask, input: {text: inputs.text}, output: {text: outputs.text}}"
    )
    text = "{text: {type: string, required: true}}"
    project.skill("t.ask", steps, inputs=text, outputs=text)
    return name_defaults(project, "far")


def name_defaults(project: Any, named: str) -> Any:
    project.write(
        "policies/official_default_selection.yaml", f"defaults: {{t.text.ask: {named}}}\n"
    )
    return project


def test_each_line_that_is_offered_for_a_default_without_its_variable_works(asking: Any) -> None:
    (problem,) = asking.run(*RUN, "--json").assert_exit(3).json["problems"]
    assert problem["code"] == "env.missing"
    assert f"policies/official_default_selection.yaml names `far`: {UNSET}" in problem["message"]
    lines = problem["hint"].splitlines()
    assert lines == [
        "export T_ASK_KEY=...",
        "named in services/local/remote.yaml:5:11",
        "or use `t_text_ask`:",
        "cogcli bindings activate t.text.ask t_text_ask",
        "for one run: --bind t.text.ask=t_text_ask",
    ]
    flag = shlex.split(lines[4].partition(": ")[2])
    assert asking.run(*RUN, "-q", *flag).assert_ok().json == {"text": "near"}
    asking.run(*RUN, "-q").assert_exit(3)
    asking.run(*shlex.split(lines[3])[1:]).assert_ok()
    assert asking.run(*RUN, "-q").assert_ok().json == {"text": "near"}


def test_the_lines_work_from_another_directory_too(asking: Any) -> None:
    root, asking.root = asking.root, asking.root.parent
    flags = ("-C", root.name)
    (problem,) = asking.run(*RUN, "--json", *flags).assert_exit(3).json["problems"]
    line = next(line for line in problem["hint"].splitlines() if line.startswith("cogcli bindings"))
    assert line == f"cogcli bindings activate t.text.ask t_text_ask -C {root.name}"
    asking.run(*shlex.split(line)[1:]).assert_ok()
    assert asking.run(*RUN, "-q", *flags).assert_ok().json == {"text": "near"}
    assert (root / ".agent-skills/active_bindings.json").exists()


def test_of_a_list_the_first_that_can_be_called_is_chosen_shown_and_recorded(asking: Any) -> None:
    name_defaults(asking, "[far, t_text_ask]")
    asking.run("validate").assert_ok()
    why = f"named in policies/official_default_selection.yaml; before it `far`: {UNSET}"
    explained = (
        asking.run("bindings", "explain", "t.text.ask", "--json").assert_ok().json["explanation"]
    )
    assert explained["primary_binding_id"] == "t_text_ask"
    assert {row["binding_id"]: (row["state"], row["reason"]) for row in explained["bindings"]} == {
        "t_text_ask": ("chosen", why),
        "far": ("unusable", UNSET),
    }
    assert "before it `far`" in " ".join(
        asking.run("bindings", "explain", "t.text.ask").assert_ok().out.split()
    )
    assert asking.run(*RUN, "-q").assert_ok().json == {"text": "near"}
    with (asking.episode / "events.jsonl").open() as log:
        chosen = json.loads(next(log))["payload"]["selection"]["t.text.ask"]
    assert (chosen["selection_source"], chosen["primary_binding_id"]) == ("policy", "t_text_ask")
    assert chosen["considered"][-1]["reason"] == why


def test_resume_and_replay_keep_what_was_chosen(asking: Any) -> None:
    name_defaults(asking, "[far, t_text_ask]")
    asking.run(*RUN, "-q").assert_ok()
    asking.cut_after("step.started")
    assert asking.run("resume", "@last", "-q", env=KEY).assert_ok().json == {"text": "near"}
    asking.run("verify", "@last").assert_ok()
    asking.run("replay", "@last", env=KEY).assert_ok()
    # Another run, where the variable is set, takes the first of them: nobody answers there.
    asking.run(*RUN, "-q", env=KEY).assert_exit(6)


def test_each_name_of_a_list_is_checked_at_its_place(asking: Any) -> None:
    name_defaults(asking, "[far, t_text_aks, t_text_ask]")
    problem, *_ = asking.run("validate", "--json").assert_exit(1).json["problems"]
    assert (problem["code"], problem["path"]) == ("policy.binding", "/defaults/t.text.ask/1")
    assert problem["hint"] == "did you mean `t_text_ask`?"
    name_defaults(asking, "[]")
    problem, *_ = asking.run("validate", "--json").assert_exit(1).json["problems"]
    assert problem["code"] == "value.range"
