"""Completion in shells, by typer: its scripts and its protocol (docs/reference/command-line.md#completion).

The shell starts `cogcli` with a variable that asks for the words that may come next. In trouble the answer is empty and
the exit code 0: a shell that waits for a word shows no error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib import import_module
from typing import Any, Final

from cogcli.base.errors import OK
from cogcli.cli.typer_app import root

VARIABLE: Final = "_COGCLI_COMPLETE"
SHELLS: Final = ("bash", "zsh", "fish", "powershell")


def answer() -> int:
    """Write the words that may come next, as the shell of the variables wants them. Returns 0, whatever happens."""
    from io import StringIO

    text = StringIO()
    try:
        with redirect_stdout(text), redirect_stderr(StringIO()), _plain_help():
            typers = _typers()
            typers.completion_init()
            typers.shell_complete(
                root(values), {"obj": values}, "cogcli", VARIABLE, os.environ[VARIABLE]
            )
    except (Exception, SystemExit):
        return OK
    try:
        os.write(1, text.getvalue().encode("utf-8", "replace"))
    except OSError:
        return OK
    return OK


def values(kind: str | tuple[str, ...], ctx: Any, incomplete: str) -> list[tuple[str, str]]:
    """The words that may stand for a value, with what they mean: those given, or those of the kinds named."""
    if isinstance(kind, tuple):
        return [(word, "") for word in kind]
    # Names of commands and flags need none of it.
    from cogcli.cli.completion_values import CompletionQuery, values_of

    # Where the value of a flag is asked for, typer has left the words before it unread.
    unread = (each.name for each in ctx.command.params if each.param_type_name == "argument")
    words = {name: word for name, word in zip(unread, ctx.args, strict=False) if word}
    typed = (
        ctx.find_root().params
        | words
        | {name: value for name, value in ctx.params.items() if value}
    )
    return values_of(kind, CompletionQuery(ctx.command.words, typed, incomplete))


@contextmanager
def _plain_help() -> Iterator[None]:
    """Within it rich cannot be found: typer would import all of it to take markup out of texts that have none."""
    before = sys.modules.get("rich", ...)
    sys.modules["rich"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["rich"]
        if before is not ...:
            sys.modules["rich"] = before


def script(shell: str) -> str:
    """The script that a shell reads at its start."""
    return f"{_typers().get_completion_script(prog_name='cogcli', complete_var=VARIABLE, shell=shell)}\n"


def install(shell: str) -> str:
    """Write the script where the shell finds it, and name it in the shell's own file; returns the script's path.

    Raises OSError and ValueError where a file cannot be read or written.
    """
    _, path = _typers().install(shell=shell, prog_name="cogcli", complete_var=VARIABLE)
    return str(path)


def detect() -> str:
    """The shell that started this process; empty for one that is unknown."""
    name = _typers()._get_shell_name() or ""
    return "powershell" if name == "pwsh" else name if name in SHELLS else ""


def _typers() -> Any:
    """Return the module `typer.completion`. It is undocumented, and part of each version that is supported."""
    return import_module("typer.completion")
