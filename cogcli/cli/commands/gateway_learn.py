"""`gateway learn`: propose a pack from recorded sessions (docs/reference/gateway.md#learn)."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cogcli.app.episodes import find_all
from cogcli.base.errors import NO, OK, UnusableEnvironment, UsageError
from cogcli.base.files import hint_for_write, write_atomic
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.options import OUTPUT, argument, command, text, wrong_value
from cogcli.gateway.learn import propose_pack, read_calls, write_pack_text

if TYPE_CHECKING:
    from cogcli.gateway.learn import MadeCall

_ID: Final = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_LOADED: Final = "packs"
"""The name of the folders from which packs are loaded."""


@command(
    examples=(
        ("cogcli gateway learn @last -o proposals", "from the newest session"),
        ("cogcli gateway learn .cogcli/episodes -o proposals --id desk", "from all of them"),
        ("cogcli policy test proposals/learned.yaml", "then: do its tests hold?"),
    ),
    exits=(0, 1, 2, 3),
    maximum=10_000,
)
def learn(
    context: CommandContext,
    episodes: Annotated[list[str], argument("[EP...]", "episodes")],
    *,
    o: Annotated[str | None, text("-o", "DIR", "the folder for the proposal", OUTPUT)] = None,
    id: Annotated[
        str | None, text("--id", "ID", "the id of the proposed pack", default="learned")
    ] = None,
) -> int:
    """Write a proposal, and print its path. Return exit code 1 if no session made a call."""
    if not episodes or o is None:
        raise wrong_value(
            "episodes or `-o DIR` are missing", expected="cogcli gateway learn EP... -o DIR"
        )
    pack_id = id or "learned"
    path = _proposal_path(context, o, pack_id)
    read = [_read_calls(context, *named) for named in find_all(context.settings, episodes).items()]
    sessions = [calls for calls in read if calls]
    calls = [call for found in sessions for call in found]
    if not calls:
        context.note("no session with a call that was made")
        return NO
    data = write_pack_text(propose_pack(pack_id, calls), len(sessions), len(calls))
    shown = _write_proposal(context, path, data)
    context.own |= {"created": [shown], "sessions": len(sessions), "calls": len(calls)}
    context.answer(f"{visible(shown)}\n")
    context.note("a proposal: nothing loads it, and it allows nothing until you move it to packs/")
    return OK


def _proposal_path(context: CommandContext, folder: str, pack_id: str) -> str:
    """Return the path of the proposal. Raise UsageError `usage.value` for a place that packs are loaded from."""
    if not _ID.fullmatch(pack_id):
        raise wrong_value(f"`--id {pack_id[:60]}`", expected="words of a-z and 0-9, joined by `-`")
    path = os.path.abspath(os.path.join(context.base, folder, f"{pack_id}.yaml"))
    if _LOADED in path.split(os.sep):
        raise wrong_value(
            f"`-o {folder[:200]}`: packs may be loaded from there", expected="another folder"
        )
    return path


def _read_calls(context: CommandContext, directory: Path, is_named: bool) -> list[MadeCall] | None:
    """Return the calls of a session. An episode of a directory that cannot be read adds a warning."""
    try:
        return read_calls(directory)
    except UnusableEnvironment as error:
        if is_named:
            raise
        context.warn(error)
        return None


def _write_proposal(context: CommandContext, path: str, data: bytes) -> str:
    """Write a proposal, and return its path for messages.

    Raise UsageError `output.exists` or UnusableEnvironment `env.disk`.
    """
    shown = context.settings.display_path(path)
    context.settings.require_inside(path)
    if os.path.lexists(path):
        hint = "give another --id, or remove the file"
        raise UsageError("output.exists", f"`{visible(shown)}` exists", hint=hint)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_atomic(path, data, mode=0o644)
    except OSError as error:
        message = f"`{visible(shown)}` cannot be written: {error.strerror}"
        raise UnusableEnvironment("env.disk", message, hint=hint_for_write(error)) from error
    return shown
