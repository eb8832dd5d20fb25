"""`config trust [DIR]`: trust the current content of a project's files, or its folder with any
content.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from shlex import quote
from typing import Annotated, Final

from cogcli.app.settings import trust_accept
from cogcli.app.settings.trust_changes import FileChange, changes_of
from cogcli.app.settings.user_dirs import find_project
from cogcli.base.errors import OK, UnusableEnvironment, UsageError
from cogcli.base.terminal_text import visible, visible_block
from cogcli.cli.context import CommandContext
from cogcli.cli.options import (
    OUTPUT,
    SAFETY,
    Flags,
    argument,
    command,
    switch,
    wrong_flag,
    wrong_value,
)
from cogcli.cli.prompt import ask, can_ask
from cogcli.report.humanize import count_of

_MAX_LINES: Final = 40
"""The number of lines for files and consequences, so that the list fits on a screen. `--diff` and `--json` have
all.
"""


class TrustFlags(Flags):
    """The flags for the files to trust, and for the display of changes before."""

    folder: bool = switch(
        "--folder",
        help="trust this folder, including later changes: for your own project",
        panel=SAFETY,
    )
    revoke: bool = switch(
        "--revoke", help="end the trust, and remove the accepted copies", panel=SAFETY
    )
    yes: bool = switch(
        "--yes", help="accept changes without a question; required without a terminal", panel=SAFETY
    )
    diff: bool = switch("--diff", help="also show the changed text", panel=OUTPUT)


@command(
    examples=(
        ("cogcli config trust", "the project you are in, in its present state"),
        ("cogcli config trust --diff", "what a change means, and its text"),
        ("cogcli config trust --folder", "a project of your own, including later changes"),
    ),
    exits=(0, 2, 3, 130),
)
def change_trust(
    context: CommandContext,
    project_dir: Annotated[str | None, argument("[DIR]")] = None,
    *,
    flags: TrustFlags,
) -> int:
    """Trust a project or revoke its trust, and print its directory."""
    project = _find_project(context, project_dir)
    if flags.revoke and flags.folder:
        raise wrong_flag("`--folder` trusts, `--revoke` ends trust", "give one of them")
    trusted = not flags.revoke
    if flags.revoke:
        before = trust_accept.revoke(project, context.environ)
        text = "no longer trusted" if before else "was not trusted"
    elif flags.folder:
        trust_accept.accept_folder(project, context.environ)
        text = "this folder is trusted, including later changes"
    else:
        trusted, text = _confirm_and_trust(context, project, project_dir, flags)
    context.own["settings"] = {"project": project, "trusted": trusted}
    context.answer(visible(project) + "\n")
    context.note(visible(text))
    return OK


def _confirm_and_trust(
    context: CommandContext, project: str, project_dir: str | None, flags: TrustFlags
) -> tuple[bool, str]:
    """Trust the current content of the project, after displaying its changes and a confirmation.

    Return whether it was trusted, and a message. Raise UsageError `usage.flag` if changes need a confirmation and there
    is no terminal. Raise UnusableEnvironment.
    """
    look = trust_accept.take_project_snapshot(project, context.environ)
    changes = changes_of(look, context.environ)
    for name, target in sorted(look.outside_links.items()):
        context.note(visible(f"leaves the project: {name} leads to {target}"))
    if look.before is not None and not changes:
        trust_accept.accept(look, context.environ)
        return True, f"trusted as before: {count_of(len(look.digests), 'file')} did not change"
    if changes:
        context.own["changes"] = [change.to_payload() for change in changes]
        where = f" {quote(project_dir)}" if project_dir else ""
        lines = _summary_lines(changes, f"{where}{context.again}", diff=flags.diff)
        context.screen.notify("".join(f"{line}\n" for line in lines))
        if not flags.yes and not _prompt_for_trust(context, changes, project_dir, flags):
            return False, "nothing was accepted; the project stays untrusted"
    trust_accept.accept(look, context.environ)
    count = count_of(len(look.digests), "file")
    return (
        True,
        f"this project is trusted in its present state: {count}; a change of any of them ends the trust",
    )


def _summary_lines(changes: Sequence[FileChange], command: str, *, diff: bool) -> Iterator[str]:
    """Yield the changes since the project was trusted and their consequences, most severe first.

    With `diff` the full text of each change is first. The summary is last and limited in length, so that it stays
    visible above the prompt.
    """
    if diff:
        for change in changes:
            yield from _change_lines(change, [each.text for each in change.consequences])
            yield from visible_block(change.diff()).splitlines()
        yield ""
    yield f"since it was accepted: {count_of(len(changes), 'change')}"
    entries = _consequence_entries(changes)
    taken = _count_that_fit(entries)
    shown: dict[int, list[str]] = {}
    for _, number, text in entries[:taken]:
        shown.setdefault(number, []).extend([text] if text else [])
    for number, texts in shown.items():
        yield from _change_lines(changes[number], texts)
    if left := entries[taken:]:
        files = len(changes) - len(shown)
        meanings = sum(bool(text) for _, _, text in left)
        yield (
            f"not shown: {count_of(meanings, 'meaning')}, {count_of(files, 'file')};"
            f" all of it: cogcli config trust{command} --diff"
        )


def _consequence_entries(changes: Sequence[FileChange]) -> list[tuple[int, int, str]]:
    """Return severity, index of the change and text of each consequence, most severe first.

    A change without consequences has one entry with an empty text.
    """
    entries = [
        (each.severity, number, each.text)
        for number, change in enumerate(changes)
        for each in change.consequences
    ]
    entries += [
        (change.severity, number, "")
        for number, change in enumerate(changes)
        if not change.consequences
    ]
    return sorted(entries, key=lambda entry: entry[0])


def _count_that_fit(entries: Sequence[tuple[int, int, str]]) -> int:
    """Return how many entries fit on the screen.

    Each consequence takes a line, and the first entry of a change takes another one for its name.
    """
    room, seen = _MAX_LINES, set[int]()
    for taken, (_, number, text) in enumerate(entries):
        room -= (number not in seen) + bool(text)
        if room < 0:
            return taken
        seen.add(number)
    return len(entries)


def _change_lines(change: FileChange, meanings: Sequence[str]) -> Iterator[str]:
    """Yield the name of a change, and its consequences below."""
    yield visible(f"  {change.change} {change.name}")
    yield from (visible(f"    {consequences}") for consequences in meanings)


def _prompt_for_trust(
    context: CommandContext,
    changes: Sequence[FileChange],
    project_dir: str | None,
    flags: TrustFlags,
) -> bool:
    """Prompt for a confirmation of the changes. Raise UsageError without a terminal."""
    what = count_of(len(changes), "change")
    if not can_ask(context):
        again = (
            f"cogcli config trust{f' {quote(project_dir)}' if project_dir else ''}{context.again}"
        )
        raise UsageError(
            "usage.flag",
            f"the project has {what} since it was accepted, and there is no terminal to ask on",
            hint="read what they mean above; --yes accepts them",
            next=(*(() if flags.diff else (f"{again} --diff",)), f"{again} --yes"),
        )
    return ask(context, f"accept {what}? [y/N]") in ("y", "yes")


def _find_project(context: CommandContext, directory: str | None) -> str:
    """Return the project that contains a directory. Raise UsageError or UnusableEnvironment
    `project.none`.
    """
    if directory is not None and not os.path.isdir(directory):
        raise wrong_value(f"`{directory}` is not a directory")
    project = find_project(context.settings.base if directory is None else directory)
    if project is None:
        raise UnusableEnvironment(
            "project.none",
            "there is no project here"
            if directory is None
            else f"there is no project at `{directory}`",
            expected="cogcli.toml, skills/ or capabilities/ in this directory or above it",
        )
    return project
