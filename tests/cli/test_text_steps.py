"""A text with values in a skill: how it is told in the views, and that resume, rerun and replay give it again."""

from __future__ import annotations

from typing import Any

import pytest

SECRET = "sentinel-4711-sentinel"
STEPS = """
- id: name
  uses: demo.text.echo
  input: {text: inputs.name}
  output: {text: vars.name}
- id: greet
  uses: demo.text.echo
  input: {text: {$text: "Dear ${vars.name:-you}, ${inputs.n} of ${inputs.token:-none}"}}
  output: {text: outputs.text}
- id: wait
  uses: demo.text.ask
  input: {text: {$text: "send: ${outputs.text}"}}
  output: {text: outputs.sent}
"""


@pytest.fixture
def letters(project: Any) -> Any:
    project.services("def echo(text: str) -> dict[str, object]:\n    return {'text': text}\n")
    for id, more in (
        ("demo.text.echo", ""),
        ("demo.text.ask", "safety: {requires_confirmation: true}\n"),
    ):
        project.capability(id, "echo", outputs="{text: {type: string, required: true}}", extra=more)
    project.skill(
        "demo.letter",
        STEPS,
        inputs="{name: {type: string, required: true}, n: {type: integer, default: 3}, token: {type: string}}",
        outputs="{text: {type: string}, sent: {type: string}}",
    )
    return project


def test_it_is_told_as_reads_and_given_again(letters: Any) -> None:
    plan = letters.run("run", "demo.letter", "-p", "name=Ana", "--plan", "--json").assert_ok().json
    reads = {step["id"]: step["reads"] for step in plan["plan"]["steps"]}
    assert reads["greet"] == ["vars.name", "inputs.n", "inputs.token"]
    letters.run("run", "demo.letter", "-p", "name=Ana", "-q").assert_exit(5)
    why = letters.run("trace", "@last", "--why", "outputs.text").assert_ok().out
    assert "vars.name" in why
    assert "inputs.n" in why
    letters.run("resume", "@last", "--approve", "demo.text.ask", "-q").assert_ok()
    assert (
        letters.run("state", "show", "@last", "--path", "x-cognitive.outputs.sent").out
        == "send: Dear Ana, 3 of none\n"
    )
    assert letters.run("replay", "@last", "--json").assert_ok().json["replay"]["equal"]


def test_a_secret_is_masked_in_a_text_under_its_name(letters: Any) -> None:
    letters.services(
        "def log_in(password: str) -> dict[str, object]:\n    return {'text': str(len(password))}\n"
    )
    letters.capability(
        "demo.text.echo",
        "log_in",
        inputs="{password: {type: string, required: true}}",
        request="{password: input.password}",
    )
    letters.skill(
        "demo.letter",
        """
        - id: a
          uses: demo.text.echo
          input: {password: {$text: "Bearer ${inputs.token}"}}
          output: {text: outputs.text}
        """,
        inputs="{token: {type: string, required: true}}",
        outputs="{text: {type: string, required: true}}",
    )
    run = letters.run("run", "demo.letter", "-p", f"token={SECRET}").assert_ok()
    assert f'"text": "{len(SECRET) + 7}"' in run.out
    assert "secret.literal" not in run.err
    assert [
        path
        for path in letters.root.rglob("*")
        if path.is_file() and SECRET.encode() in path.read_bytes()
    ] == []
    letters.run("replay", "@last").assert_ok()
