"""A credential that somebody wrote into a skill is used, and shows nowhere but in the skill's own file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.sampled(8)

SECRET = "sentinel-4711-sentinel"
SOURCE = """
def check(password: str, login: dict) -> dict[str, object]:
    return {"text": f"{len(password)} {len(login['apiKey'])}"}
"""


@pytest.fixture
def careless(project: Any) -> Any:
    """A skill that holds credentials, also in a default; its step waits for a person if it is asked to."""
    project.services(SOURCE)
    project.capability(
        "demo.login.check", "check",
        inputs="{password: {type: string, required: true, schema: {minLength: 10}},"
        " login: {type: object, required: true}}",
        request="{password: input.password, login: input.login}",
    )  # fmt: skip
    project.skill(
        "demo.login",
        f"""
        - id: a
          uses: demo.login.check
          input: {{password: {SECRET}, login: {{apiKey: {SECRET}, user: me}}}}
          output: {{text: outputs.text}}
        """,
        inputs=f"{{token: {{type: string, default: {SECRET}}}}}",
        outputs="{text: {type: string, required: true}}",
    )
    return project


def holding(directory: Path) -> list[str]:
    return [
        path.name
        for path in directory.rglob("*")
        if path.is_file() and SECRET.encode() in path.read_bytes()
    ]


def test_no_artifact_holds_it_and_the_run_replays(careless: Any) -> None:
    done = careless.run("run", "demo.login").assert_ok()
    assert holding(careless.root / ".cogcli") == []
    assert SECRET not in done.out + done.err
    careless.run("verify", "@last").assert_ok()
    assert careless.run("replay", "@last", "--json").assert_ok().json["replay"]["equal"]
    assert '"text": "22 22"' in careless.run("state", "show", "@last").out


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "command",
    [
        ("validate",), ("run", "demo.login", "--plan"), ("run", "demo.login", "--plan", "--json"),
        ("skills", "show", "demo.login"), ("skills", "show", "demo.login", "--json"), ("graph", "demo.login"),
        ("trace", "@last", "--io"), ("trace", "@last", "--why", "outputs.text"), ("explain", "secret.literal"),
        ("trace", "@last", "--format", "otlp"), ("report", "@last"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_no_screen_shows_it(careless: Any, command: tuple[str, ...]) -> None:
    careless.run("run", "demo.login", "-q").assert_ok()
    shown = careless.run(*command)
    assert SECRET not in shown.out + shown.err


def test_a_frame_around_another_problem_hides_it(careless: Any) -> None:
    file = careless.root / "skills/local/demo/login/skill.yaml"
    file.write_text(file.read_text().replace("user: me}", "user: me}, pasword: inputs.nothing"))
    shown = careless.run("validate")
    assert "pasword" in shown.out + shown.err
    assert SECRET not in shown.out + shown.err


def test_a_run_that_waited_goes_on_with_it(careless: Any) -> None:
    careless.write(
        "capabilities/demo.login.check.yaml",
        (careless.root / "capabilities/demo.login.check.yaml").read_text()
        + "safety: {requires_confirmation: true}\n",
    )
    careless.run("run", "demo.login", "-q").assert_exit(5)
    assert holding(careless.root / ".cogcli") == []
    careless.run("resume", "@last", "--approve", "demo.login.check", "-q").assert_ok()
    assert holding(careless.root / ".cogcli") == []
    assert '"text": "22 22"' in careless.run("state", "show", "@last").out
    careless.run("replay", "@last").assert_ok()
