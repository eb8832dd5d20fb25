"""A protocol of three small files and a row in the one table, which the test adds (docs/contributing.md#recipes)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from extension.toy_protocol.checks import CHECKS
from extension.toy_protocol.grammar import GRAMMAR
from extension.toy_protocol.invoker import Toy

from cogcli.protocols import PROTOCOLS, ProtocolRow

pytestmark = pytest.mark.sampled(8)


@pytest.fixture
def toy(project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A project whose service speaks the toy protocol; its second call asks a person first."""
    row = ProtocolRow(grammar=lambda: GRAMMAR, checks=lambda: CHECKS, invoker=Toy, in_process=True)
    monkeypatch.setitem(PROTOCOLS, "toy", row)
    project.env["XDG_CACHE_HOME"] = str(tmp_path / "cache")  # what it compiles is valid here alone
    project.write("services/local/toys.yaml", "id: toys\nkind: toy\nmark: '!'\n")
    text = "{text: {type: string, required: true}}"
    for operation, asks in (("reverse", ""), ("repeat", "safety: {requires_confirmation: true}\n")):
        project.write(
            f"capabilities/toy.text.{operation}.yaml",
            f'id: toy.text.{operation}\nversion: "1.0.0"\ndescription: Toys.\ninputs: {text}\noutputs: {text}\n'
            f"properties: {{side_effects: false}}\n{asks}",
        )
        project.write(
            f"bindings/local/toy.text.{operation}/{operation}.yaml",
            f"id: toy_{operation}\ncapability: toy.text.{operation}\nservice: toys\nprotocol: toy\n"
            f"operation: {operation}\nrequest: {{text: input.text}}\nresponse: {{text: response.text}}\n",
        )
    project.skill(
        "toy.both",
        """
        - {id: back, uses: toy.text.reverse, input: {text: inputs.text}, output: {text: vars.text}}
        - {id: twice, uses: toy.text.repeat, input: {text: vars.text}, output: {text: outputs.text}}
        """,
        inputs=text,
        outputs=text,
    )
    return project


@pytest.mark.sampled(16)
def test_a_skill_over_a_toy_protocol_validates_explains_runs_resumes_and_replays(toy: Any) -> None:
    toy.run("validate", "--strict").assert_ok()
    explained = toy.run("skills", "explain", "toy.both").assert_ok().out
    assert "toy_reverse" in toy.run("bindings", "explain", "toy.text.reverse").assert_ok().out, (
        explained
    )
    toy.run("run", "toy.both", "-p", "text=abc", "-q").assert_exit(5)
    resumed = toy.run("resume", "@last", "--approve", "toy.text.repeat", "-q").assert_ok().json
    assert resumed == {"text": "cba!cba!!"}
    toy.run("replay", "@last").assert_ok()
    toy.run("verify", "@last").assert_ok()


def test_the_grammar_and_the_checks_of_a_toy_protocol_are_those_of_validate(toy: Any) -> None:
    service = toy.root / "services/local/toys.yaml"
    service.write_text("id: toys\nkind: toy\nbase_url: http://127.0.0.1\n")
    binding = toy.root / "bindings/local/toy.text.repeat/repeat.yaml"
    binding.write_text(binding.read_text().replace("operation: repeat", "operation: shout"))
    back = toy.root / "bindings/local/toy.text.reverse/reverse.yaml"
    back.write_text(back.read_text().replace("{text: input.text}", "{}"))
    problems = toy.run("validate", "--json").assert_exit(1).json["problems"]
    assert {(p["code"], Path(p["file"]).name) for p in problems} >= {
        ("service.kind-key", "toys.yaml"), ("key.missing", "toys.yaml"),
        ("binding.operation", "repeat.yaml"), ("wire.parameter", "reverse.yaml"),
    }  # fmt: skip


@pytest.mark.sampled(16)
def test_without_its_row_the_protocol_is_unknown(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(PROTOCOLS, "toy")
    assert "value.choice" in toy.run("validate").assert_exit(1).out
