"""What a command leaves for after its answer: the answer is out by then, and the exit code decided."""

from __future__ import annotations

import json
import sys
from types import ModuleType
from typing import Any

import pytest

from cogcli.cli import main, typer_app
from cogcli.cli.app import COMMANDS
from cogcli.cli.context import CommandContext
from cogcli.cli.options import command


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_it_comes_after_the_answer(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    flags: tuple[str, ...],
    error: Any,
) -> None:
    seen = []

    def learn() -> None:
        seen.append(capsys.readouterr().out)
        if error:
            raise error

    @command(examples=(("cogcli late", ""),) * 3)
    def late(context: CommandContext) -> int:
        """Answer, and go on."""
        context.afterwards.append(learn)
        context.own["outputs"] = {"text": "done"}
        context.answer("done\n")
        return 4

    module = ModuleType("cogcli.cli.commands.late")
    module.late = late  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(COMMANDS, "late", ("late:late", "answer, and go on"))
    monkeypatch.setattr(typer_app, "load", typer_app.load.__wrapped__)
    assert main.run(["late", *flags]) == 4
    (out,) = seen
    assert (json.loads(out)["outputs"] if flags else out) == (
        {"text": "done"} if flags else "done\n"
    )
    assert capsys.readouterr().out == ""
