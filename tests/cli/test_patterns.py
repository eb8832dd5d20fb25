"""No pattern of others keeps a run from ending: it runs in linear time, or is refused before anything is called."""

from __future__ import annotations

from typing import Any

import pytest
from test_wire_refusals import notes, rewrite  # noqa: F401

RUNAWAY = "a" * 5000 + "b"


@pytest.mark.parametrize("pattern", ["^(a|a)*$", "^(?:a|aa)*$", "^" + "a*" * 20 + "$"])
def test_a_pattern_of_a_skill_ends_at_once_and_says_what_it_expected(
    demo: Any, pattern: str
) -> None:
    field = f"{{type: string, required: true, schema: {{pattern: '{pattern}'}}}}"
    demo.skill(
        "a.b", "- {id: s, uses: data.json.parse, input: {text: inputs.t}}", inputs=f"{{t: {field}}}"
    )
    demo.write("t.json", f'{{"t": "{RUNAWAY}"}}')
    done = demo.run("run", "a.b", "--input-file", "t.json", "--json").assert_exit(2)
    assert pattern in done.json["error"]["message"]


def test_without_the_linear_engine_what_may_not_end_is_refused(demo: Any) -> None:
    field = "{type: string, required: true, schema: {pattern: '^(a|a)*$'}}"
    demo.skill(
        "a.b", "- {id: s, uses: data.json.parse, input: {text: inputs.t}}", inputs=f"{{t: {field}}}"
    )
    demo.env["COGCLI_SCHEMA_ENGINE"] = "jsonschema"
    done = demo.run("run", "a.b", "-p", f"t={RUNAWAY}", "--json").assert_exit(3)
    assert {p["code"] for p in done.json["problems"]} == {"field.schema"}


def test_an_operation_whose_document_holds_a_pattern_that_cannot_be_run_is_not_called(
    notes: Any,  # noqa: F811
) -> None:
    rewrite(
        notes,
        "docs/notes.yaml",
        "schema: {type: string}}]",
        "schema: {type: string, pattern: '(?!x)'}}]",
    )
    done = notes.run("run", "note.read", "-p", "id=1", "--json").assert_exit(3)
    assert [p["code"] for p in done.json["problems"] if p["severity"] == "E"] == ["wire.pattern"]
