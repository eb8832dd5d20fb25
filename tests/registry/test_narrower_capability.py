"""A later layer declares a shipped capability with fewer fields: it runs, and what is more is left out
(docs/reference/binding.md#response)."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.sampled(6)

NARROW = """
    id: text.language.detect
    version: "1.0.0"
    description: With the fields of the guide alone.
    inputs: {text: {type: string, required: true}}
    outputs: {language: {type: string, required: true}, confidence: {type: number}}
    properties: {side_effects: false}
"""


@pytest.fixture
def narrow(project: Any) -> Any:
    project.write("capabilities/text.language.detect.yaml", NARROW)
    project.skill(
        "t.detect",
        "- {id: one, uses: text.language.detect, input: {text: inputs.text}, output: {language: outputs.language}}",
        inputs="{text: {type: string, required: true}}",
        outputs="{language: {type: string}}",
    )
    return project


@pytest.mark.sampled(12)
def test_a_skill_with_those_fields_runs(narrow: Any) -> None:
    text = (
        "The ships wait in the bay until the harbour opens, and the tugs bring them in one by one."
    )
    assert narrow.run("run", "t.detect", "-p", f"text={text}", "-q").assert_ok().json == {
        "language": "en"
    }


def test_a_binding_of_the_project_may_map_more_outputs_but_no_inputs(narrow: Any) -> None:
    binding = """
        id: own
        capability: text.language.detect
        service: official_text
        protocol: pythoncall
        operation: detect_language
        request: {text: input.text, more: input.more}
        response: {language: response.language, reliable: response.reliable}
    """
    narrow.write("bindings/local/text.language.detect/own.yaml", binding)
    problems = narrow.run("validate", "--json").json["problems"]
    own = {
        (each["code"], each["severity"]) for each in problems if each["file"].endswith("own.yaml")
    }
    assert {("response.field", "W"), ("request.input", "E")} <= own


def test_an_alias_asks_for_its_capability_everywhere(project: Any) -> None:
    project.run("capabilities", "show", "doc.pdf.read").assert_ok()
    explained = project.run("bindings", "explain", "doc.pdf.read", "--json").assert_ok().json
    assert "pdf.document.read" in str(explained)
    project.skill(
        "t.read",
        "- {id: one, uses: doc.pdf.read, input: {path: inputs.path}, output: {text: outputs.text}}",
        inputs="{path: {type: string, required: true}}",
        outputs="{text: {type: string}}",
    )
    project.write("note.pdf", "This is not a PDF.")
    error = (
        project.run("run", "t.read", "-p", "path=note.pdf", "--json").assert_exit(1).json["error"]
    )
    assert (error["code"], error["capability"]) == ("call.rejected", "pdf.document.read")
