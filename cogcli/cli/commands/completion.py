"""`completion show` and `completion install`: the completion script of a shell
(docs/reference/command-line.md#completion).
"""

from __future__ import annotations

from typing import Annotated

from cogcli.base.errors import OK, UnusableEnvironment
from cogcli.base.problems import suggestion
from cogcli.base.terminal_text import visible
from cogcli.cli import completion
from cogcli.cli.context import CommandContext
from cogcli.cli.options import argument, command, wrong_value

Shell = Annotated[str | None, argument("[SHELL]", completion.SHELLS)]


@command(
    examples=(
        ("cogcli completion show", "for the shell that you use"),
        ("cogcli completion show bash > cogcli.bash", "for another shell, into a file"),
        ("cogcli completion install zsh", "for every new shell"),
    ),
)
def show(context: CommandContext, shell: Shell = None) -> int:
    """Write the script of a shell to stdout."""
    shell = _require_shell(shell)
    script = completion.script(shell)
    context.own["explanation"] = {"shell": shell, "script": script}
    context.answer(script)
    return OK


@command(
    examples=(
        ("cogcli completion install", "for the shell that you use"),
        ("cogcli completion install fish", "for another shell"),
        ("cogcli completion show powershell", "what would be written"),
    ),
    exits=(0, 2, 3),
)
def install(context: CommandContext, shell: Shell = None) -> int:
    """Write the script into the home directory, and print its path."""
    shell = _require_shell(shell)
    try:
        file = completion.install(shell)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        what = f"completion for {shell} cannot be written: {reason}"
        hint = f"write it yourself: cogcli completion show {shell} > FILE"
        raise UnusableEnvironment("env.disk", what, hint=hint) from error
    context.own["file"] = file
    context.answer(f"{visible(file)}\n")
    context.note(f"completion for {shell} works in every new shell")
    return OK


def _require_shell(shell: str | None) -> str:
    """Return the named shell, else the shell that started this process. Raise UsageError if it is
    unknown.
    """
    found = completion.detect() if shell is None else "powershell" if shell == "pwsh" else shell
    if found in completion.SHELLS:
        return found
    what = f"found `{shell[:60]}`" if shell else "the shell around this command is not known"
    hint = suggestion(found, completion.SHELLS)
    raise wrong_value(f"completion: {what}", hint, expected=", ".join(completion.SHELLS))
