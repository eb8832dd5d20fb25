"""Completion in shells, by typer's scripts and protocol
(docs/reference/command-line.md#completion).

The shell starts `cogcli` with a variable that requests the possible next words. After an error the
response is empty and the exit code 0, because a completing shell displays no errors.
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


def write_completions() -> int:
    """Write the possible next words in the format of the shell. Always return 0."""
    from io import StringIO

    text = StringIO()
    try:
        with redirect_stdout(text), redirect_stderr(StringIO()), _without_rich():
            typers = _typer_completion()
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
    """Return the possible values with their descriptions: the words of the declaration, or the
    values of the named kinds.
    """
    if isinstance(kind, tuple):
        return [(word, "") for word in kind]
    # Names of commands and flags do not need this.
    from cogcli.cli.completion_values import CompletionQuery, TypedArguments, find_values

    # For the value of a flag, typer has not yet read the words before it.
    unread = (each.name for each in ctx.command.params if each.param_type_name == "argument")
    words = {name: word for name, word in zip(unread, ctx.args, strict=False) if word}
    typed = (
        ctx.find_root().params
        | words
        | {name: value for name, value in ctx.params.items() if value}
    )
    return find_values(
        kind, CompletionQuery(ctx.command.words, TypedArguments.of(typed), incomplete)
    )


@contextmanager
def _without_rich() -> Iterator[None]:
    """Block imports of rich within the `with` block. Typer would load all of rich to strip markup from plain
    strings.
    """
    before = sys.modules.get("rich", ...)
    sys.modules["rich"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["rich"]
        if before is not ...:
            sys.modules["rich"] = before


def script(shell: str) -> str:
    """Return the completion script of a shell."""
    return f"{_typer_completion().get_completion_script(prog_name='cogcli', complete_var=VARIABLE, shell=shell)}\n"


def install(shell: str) -> str:
    """Write the script to the folder of the shell, register it in the shell's startup file, and return its path. Raise
    OSError or ValueError if a file cannot be read or written.
    """
    _, path = _typer_completion().install(shell=shell, prog_name="cogcli", complete_var=VARIABLE)
    return str(path)


def detect() -> str:
    """Return the name of the shell that started this process; empty if it is unknown."""
    name = _typer_completion()._get_shell_name() or ""
    return "powershell" if name == "pwsh" else name if name in SHELLS else ""


def _typer_completion() -> Any:
    """Return the module `typer.completion`, which is undocumented but exists in each supported
    version.
    """
    return import_module("typer.completion")
