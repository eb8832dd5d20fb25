"""`config trust [DIR]`: let the services of a project start code, as it is now or whatever the folder holds."""

from __future__ import annotations

import os
from typing import Annotated

from cogcli.app.settings import trust
from cogcli.app.settings.user_dirs import find_project
from cogcli.cli.context import CommandContext
from cogcli.cli.options import SAFETY, argument, command, switch, wrong_flag, wrong_value
from cogcli.core.errors import OK, EnvironmentRefusal
from cogcli.core.terminal_text import visible
from cogcli.report.humanize import count_of


@command(
    examples=(
        ("cogcli config trust", "the project around you, as it is now"),
        ("cogcli config trust --folder", "a project of your own"),
        ("cogcli config trust --revoke", "no longer"),
    ),
    exits=(0, 2, 3),
)
def change_trust(
    context: CommandContext,
    project_dir: Annotated[str | None, argument("[DIR]")] = None,
    *,
    folder: Annotated[
        bool,
        switch("--folder", help="whatever it holds, now and later: for a project of your own", panel=SAFETY),
    ] = False,
    revoke: Annotated[bool, switch("--revoke", help="no longer", panel=SAFETY)] = False,
) -> int:
    """Trust or revoke; the answer is the project's directory."""
    project = _project(context, project_dir)
    if revoke and folder:
        raise wrong_flag("`--folder` trusts, `--revoke` ends trust", "give one of them")
    if revoke:
        before = trust.revoke(project, context.environ)
        text = "no longer trusted" if before else "was not trusted"
    elif folder:
        trust.accept_folder(project, context.environ)
        text = "trusted as a folder, whatever it holds from now on"
    else:
        counts = trust.accept(project, context.environ)
        what = ", ".join(count_of(count, noun) for noun, count in counts.items() if count)
        what = what or "nothing that starts code"
        text = f"trusted as it is now: {what}; a change of these is refused until it is accepted"
    context.own["settings"] = {"project": project, "trusted": not revoke}
    context.answer(visible(project) + "\n")
    context.note(visible(text))
    return OK


def _project(context: CommandContext, directory: str | None) -> str:
    if directory is not None and not os.path.isdir(directory):
        raise wrong_value(f"`{directory}` is no directory")
    project = find_project(context.settings.base if directory is None else directory)
    if project is None:
        raise EnvironmentRefusal(
            "project.none",
            "there is no project here" if directory is None else f"there is no project at `{directory}`",
            expected="cogcli.toml, skills/ or capabilities/ in this directory or above it",
        )
    return project
