"""A fallback is never silent (docs/reference/execution.md#attempts)."""

from __future__ import annotations

import json
from typing import Any

import pytest

SOURCE = """
    def broken(text):
        raise OSError("the line is down")

    def steady(text):
        return {"text": "steady"}
"""
RUN = ("run", "t.ask", "-p", "text=x")
REASON = "the line is down"


@pytest.fixture
def falling(project: Any) -> Any:
    """A skill of one step whose first binding fails and names another one as its fallback."""
    project.services(SOURCE)
    project.capability("t.text.ask", "broken")
    path = "bindings/local/t.text.ask/t_text_ask.yaml"
    first = (project.root / path).read_text()
    project.write(path, (first + "metadata: {fallback_binding_id: steady}\n").encode())
    second = first.replace("id: t_text_ask", "id: steady").replace("broken", "steady")
    project.write("bindings/local/t.text.ask/steady.yaml", second.encode())
    project.write(
        "policies/official_default_selection.yaml", "defaults: {t.text.ask: t_text_ask}\n"
    )
    steps = (
        "- {id: ask, uses: t.text.ask, input: {text: inputs.text}, output: {text: outputs.text}}"
    )
    project.skill(
        "t.ask",
        steps,
        inputs="{text: {type: string, required: true}}",
        outputs="{text: {type: string}}",
    )
    return project


def fallbacks(result: Any) -> list[Any]:
    """The warnings of a command that report a fallback."""
    return [each for each in result.json["warnings"] if each["code"] == "binding.fallback"]


@pytest.mark.parametrize("ordered", [(), ("--bind", "t.text.ask=t_text_ask")])
@pytest.mark.parametrize("quiet", [(), ("-q",)])
def test_a_call_that_fell_back_is_reported_everywhere(
    falling: Any, ordered: tuple[str, ...], quiet: tuple[str, ...]
) -> None:
    ran = falling.run(*RUN, *ordered, *quiet).assert_ok()
    (line,) = [line for line in ran.err.splitlines() if line.startswith("! ")]
    assert line.startswith("! ask fell back to steady (")
    assert REASON in line
    (warning,) = fallbacks(falling.run(*RUN, *ordered, "--json").assert_ok())
    assert (warning["step"], warning["binding"], warning["instead_of"]) == (
        "ask",
        "steady",
        "t_text_ask",
    )
    assert REASON in warning["message"]
    assert json.loads((falling.episode / "summary.json").read_text())["counts"]["fallbacks"] == 1


def test_trace_shows_the_fallback_first_in_the_line_of_its_step(falling: Any) -> None:
    falling.run(*RUN).assert_ok()
    shown = falling.run("trace", "@last", env={"COGCLI_FORCE_TTY": "80"}).assert_ok().out
    (line,) = [line for line in shown.splitlines() if "─ ✓ ask" in line]
    assert "! fell back to steady" in line


def test_a_binding_that_cannot_be_called_is_reported_like_one_that_failed(falling: Any) -> None:
    service = "id: far\nkind: openapi\nbase_url: https://api.example.com\nauth_ref: env:FAR_KEY\n"
    falling.write("services/local/far.yaml", service)
    falling.write(
        "bindings/local/t.text.ask/t_text_ask.yaml",
        "id: t_text_ask\ncapability: t.text.ask\nservice: far\nprotocol: openapi\noperation: /ask\n"
        "request: {text: input.text}\nresponse: {text: response.text}\n"
        "metadata: {fallback_binding_id: steady}\n",
    )
    ran = falling.run(*RUN).assert_ok()
    (line,) = [line for line in ran.err.splitlines() if line.startswith("! ")]
    assert line.startswith("! ask fell back to steady (")
    assert "FAR_KEY" in line


def test_without_fallbacks_the_run_fails_with_the_error_of_its_binding(falling: Any) -> None:
    ran = falling.run(*RUN, "--no-fallback", "--json").assert_exit(1)
    assert REASON in ran.json["error"]["message"]
    assert fallbacks(ran) == []
    falling.write("cogcli.toml", "no_fallback = true\n")
    assert REASON in falling.run(*RUN, "--json").assert_exit(1).json["error"]["message"]
    falling.run("rerun", "@last", "--json").assert_exit(1)


def test_a_run_without_fallbacks_is_resumed_and_replayed_without_them(falling: Any) -> None:
    falling.run(*RUN, "--no-fallback").assert_exit(1)
    falling.run("replay", "@last").assert_ok()
    started = json.loads((falling.episode / "events.jsonl").read_text().splitlines()[0])
    assert started["payload"]["options"]["no_fallback"] is True
