"""`config trust [DIR]`: let the services of a project start code, as it is now or whatever the folder holds."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cogcli.core.errors import OK, EnvironmentRefusal, UsageError
from cogcli.core.terminal_text import visible
from cogcli.report.humanize import count_of

if TYPE_CHECKING:
    from cogcli.cli.context import CommandContext


def execute(context: CommandContext) -> int:
    """Trust or revoke; the answer is the project's directory."""
    from cogcli.app import trust

    project, arguments = _project(context), context.arguments
    if arguments.on("--revoke") and arguments.on("--folder"):
        raise UsageError("usage.flag", "`--folder` trusts, `--revoke` ends trust", hint="give one of them")
    if arguments.on("--revoke"):
        before = trust.revoke(project, context.environ)
        told = "no longer trusted" if before else "was not trusted"
    elif arguments.on("--folder"):
        trust.accept_folder(project, context.environ)
        told = "trusted as a folder, whatever it holds from now on"
    else:
        counts = trust.accept(project, context.environ)
        what = (
            ", ".join(count_of(count, noun) for noun, count in counts.items() if count)
            or "nothing that starts code"
        )
        told = f"trusted as it is now: {what}; a change of these is refused until it is accepted"
    context.own["settings"] = {"project": project, "trusted": not arguments.on("--revoke")}
    if not context.json:
        context.screen.answer(visible(project) + "\n")
    if not context.screen.quiet:
        context.screen.notify(f"{visible(told)}\n")
    return OK


def _project(context: CommandContext) -> str:
    from cogcli.app.user_dirs import find_project

    words = context.arguments.words
    if words and not os.path.isdir(words[0]):
        raise UsageError("usage.value", f"`{words[0]}` is no directory")
    project = find_project(words[0] if words else context.settings.base)
    if project is None:
        raise EnvironmentRefusal(
            "project.none",
            "there is no project here" if not words else f"there is no project at `{words[0]}`",
            expected="cogcli.toml, skills/ or capabilities/ in this directory or above it",
            next=("cogcli config trust DIR",),
        )
    return project
