"""`--prefer`, and `prefer` of settings (docs/reference/binding.md#selection)."""

from __future__ import annotations

from typing import Any

import pytest

SOURCE = """
    def upper(text):
        return {"text": "local"}

    def other(text):
        return {"text": "preferred"}
"""
RUN = ("run", "t.ask", "-p", "text=x", "-q")


@pytest.fixture
def asking(project: Any) -> Any:
    project.services(SOURCE)
    project.capability("t.text.ask", "upper")
    first = (project.root / "bindings/local/t.text.ask/t_text_ask.yaml").read_text()
    second = (
        first.replace("id: t_text_ask", "id: second")
        .replace("upper", "other")
        .replace("demo", "modelled")
    )
    project.write("bindings/local/t.text.ask/second.yaml", second.encode())
    service = (project.root / "services/local/demo.yaml").read_text()
    project.write(
        "services/local/modelled.yaml", service.replace("id: demo", "id: modelled").encode()
    )
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


def test_the_flag_moves_a_run_and_its_log_says_so(asking: Any) -> None:
    assert asking.run(*RUN).assert_ok().json == {"text": "local"}
    assert asking.run(*RUN, "--prefer", "modelled").assert_ok().json == {"text": "preferred"}
    assert asking.run("replay", "@last").assert_ok()
    assert asking.run("rerun", "@last", "-q").assert_ok().json == {"text": "preferred"}
    assert asking.run(*RUN, "--prefer", "nothing").assert_ok().json == {"text": "local"}


def test_settings_of_the_user_and_of_a_trusted_project_count(asking: Any) -> None:
    user = asking.home / ".config/cogcli/config.toml"
    user.parent.mkdir(parents=True)
    user.write_text('prefer = ["modelled"]\n')
    assert asking.run(*RUN).assert_ok().json == {"text": "preferred"}
    assert (
        "service `modelled` is preferred"
        in asking.run("bindings", "explain", "t.text.ask").assert_ok().out
    )
    user.unlink()
    asking.write("cogcli.toml", 'prefer = ["modelled"]\n')
    assert asking.run(*RUN).assert_ok().json == {"text": "preferred"}


def test_a_project_that_is_not_trusted_prefers_nothing(asking: Any) -> None:
    asking.write("cogcli.toml", 'prefer = ["modelled"]\n')
    del asking.env["COGCLI_TRUST_PROJECT"]
    assert (
        asking.run("config", "show", "--json").assert_ok().json["settings"]["prefer"]["value"] == []
    )


def test_the_environment_prefers_nothing(asking: Any) -> None:
    asking.env["COGCLI_PREFER"] = "modelled"
    assert asking.run(*RUN).assert_ok().json == {"text": "local"}


def test_the_plan_names_what_would_be_called(asking: Any) -> None:
    planned = asking.run("run", "t.ask", "-p", "text=x", "--plan", "--prefer", "modelled")
    assert "pythoncall:modelled" in planned.assert_ok().out
