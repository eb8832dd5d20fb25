"""What is said of the choice of bindings in a project that is not trusted is what a run of now would call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.project import Project

SUMMARY = "text.content.summarize"
LEAD = "python_text_content_summarize_lead"
FREQUENCY = "python_text_content_summarize_frequency"
STEP = f"- {{id: make, uses: {SUMMARY}, input: {{text: inputs.text}}, output: {{summary: outputs.summary}}}}"


@pytest.fixture
def clone(tmp_path: Path) -> Project:
    """A clone that chooses another binding for a shipped capability."""
    project = Project(tmp_path)
    project.write("cogcli.toml", "")
    project.write(".agent-skills/active_bindings.json", json.dumps({SUMMARY: LEAD}))
    del project.env["COGCLI_TRUST_PROJECT"]
    return project


def _called(project: Project, skill: str, **more: Any) -> str:
    """The binding that a run called for the summary."""
    project.run(
        "run", skill, "-p", "text=Ships wait in the bay. Tugs bring them in.", **more
    ).assert_ok()
    log = (project.episode / "events.jsonl").read_text().splitlines()
    chosen: str = json.loads(log[0])["payload"]["selection"][SUMMARY]["members"][0]["binding_id"]
    return chosen


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "words", [("bindings", "explain", SUMMARY), ("capabilities", "explain", LEAD)]
)
def test_the_choice_that_is_explained_is_the_one_of_a_run(
    clone: Project, words: tuple[str, ...]
) -> None:
    found = clone.run(*words, "--json").assert_ok().json
    assert found["explanation"]["primary_binding_id"] == _called(clone, "text.brief") == FREQUENCY
    (warning,) = found["warnings"]
    assert warning["code"] == "service.untrusted"
    assert f"`{LEAD}` for `{SUMMARY}`" in warning["message"]
    trusted = {"COGCLI_TRUST_PROJECT": "1"}
    after = clone.run(*words, "--json", env=trusted).assert_ok().json
    assert (
        after["explanation"]["primary_binding_id"]
        == _called(clone, "text.brief", env=trusted)
        == LEAD
    )
    assert after["warnings"] == []


def test_the_row_of_a_service_and_of_a_skill_agree(clone: Project) -> None:
    rows = clone.run("services", "explain", "official_prose", "--json").assert_ok().json
    state = {row["binding_id"]: row["state"] for row in rows["explanation"]["bindings"]}
    assert (state[FREQUENCY], state[LEAD]) == ("chosen", "fallback")
    assert [each["code"] for each in rows["warnings"]] == ["service.untrusted"]
    skill = clone.run("skills", "explain", "text.brief", "--json").assert_ok().json
    (choice,) = [
        each for each in skill["explanation"]["capabilities"] if each["capability_id"] == SUMMARY
    ]
    assert choice["primary_binding_id"] == FREQUENCY
    assert [each["code"] for each in skill["warnings"]] == ["service.untrusted"]
