"""A command of one small file and a row in the one table, which the test adds (docs/contributing.md#recipes)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cogcli.cli import commands, main
from cogcli.cli.app import COMMANDS
from cogcli.cli.completion import values
from cogcli.cli.typer_app import load

HERE = Path(__file__).parent / "toy_command"


@pytest.fixture(autouse=True)
def _toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(HERE)])
    monkeypatch.setitem(COMMANDS, "greet", ("greet:greet", "say hello to somebody"))
    monkeypatch.chdir(tmp_path)


def gave(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = main.run(list(argv))
    out, err = capsys.readouterr()
    return code, out, err


def test_it_runs_with_global_flags_on_both_sides(capsys: pytest.CaptureFixture[str]) -> None:
    assert gave(capsys, "greet", "Ana", "--times", "2") == (0, "good day Ana\ngood day Ana\n", "")
    code, out, _ = gave(capsys, "--json", "greet", "Bo", "--tone=short", "-q")
    assert (code, json.loads(out)["command"], json.loads(out)["explanation"]) == (
        0,
        "greet",
        ["hi Bo"],
    )


def test_it_has_help_as_all_have(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = gave(capsys, "greet", "--help")
    assert code == 0
    assert out.startswith("cogcli greet NAME: say hello to somebody\n")
    for part in (
        "Examples",
        "Output\n  --tone WORD  kind, short",
        "--times N  how often (default 1)",
        "Exit codes",
    ):
        assert part in out
    assert gave(capsys, "help", "greet") == (0, out, "")


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (("greett", "Ana"), "usage.command", "did you mean `greet`?"),
        (("greet", "Ana", "--tims", "2"), "usage.flag", "did you mean `--times`?"),
        (("greet", "Ana", "--tone", "kin"), "usage.value", "did you mean `kind`?"),
        (("greet", "Ana", "--times", "4"), "usage.value", ""),
        (("greet",), "usage.value", ""),
        (("greet", "Ana", "Bo"), "usage.value", ""),
    ],
)
def test_its_usage_errors_are_in_the_envelope(
    argv: tuple[str, ...], code: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    exit_code, out, err = gave(capsys, *argv, "--json")
    error = json.loads(out)["error"]
    assert (exit_code, error["code"], error["hint"]) == (2, code, said)
    assert f"error[{code}]" in err


def test_it_completes() -> None:
    flags = {param.name for param in load("greet", values).params}
    assert {"name", "times", "tone"} <= flags
    assert values(("Ana", "Bo"), None, "A") == [("Ana", ""), ("Bo", "")]


def test_it_is_small() -> None:
    files = list(HERE.glob("*.py"))
    assert len(files) <= 3
    assert all(len(file.read_text().splitlines()) <= 40 for file in files)
