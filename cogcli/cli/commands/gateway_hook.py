"""`gateway hook` and `gateway mark`: calls that hosts make themselves (docs/reference/hosts.md)."""

from __future__ import annotations

from typing import Annotated

from cogcli.base.errors import OK
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.options import SAFETY, argument, command, integer, text
from cogcli.gateway.hook_client import run_hook
from cogcli.gateway.hook_marks import find_host, set_marks

Host = Annotated[str, argument("HOST")]


@command(
    examples=(
        ("cogcli gateway hook claude-code", "the command of a hook; reads JSON on stdin"),
        ("cogcli gateway hook cursor --hold 0", "do not hold a call that waits for a person"),
        ("cogcli gateway hook codex --pack desk@1.0.0 --intent help", "a pack decides"),
    ),
    exits=(0, 2),
)
def hook(
    context: CommandContext,
    host: Host,
    *,
    hold: Annotated[
        int | None,
        integer(
            "--hold",
            "hold a call that waits for a person for N seconds",
            minimum=0,
            maximum=50,
            default="10",
        ),
    ] = None,
    pack: Annotated[
        str | None, text("--pack", "ID@VERSION", "the pack that governs the calls", SAFETY)
    ] = None,
    intent: Annotated[
        str | None, text("--intent", "ID", "with --pack: the intent of the session", SAFETY)
    ] = None,
    user: Annotated[
        str | None, text("--user", "ID", "with --pack: the user for whom calls are made", SAFETY)
    ] = None,
) -> int:
    """Decide about one call, and exit 0 with JSON, or 2."""
    given = {"--hold": hold, "--pack": pack, "--intent": intent, "--user": user}
    words = [
        word for name, value in given.items() if value is not None for word in (name, str(value))
    ]
    return run_hook([host, *words])


@command(
    examples=(
        ("cogcli gateway mark claude-code --read-only Read --read-only Grep", "these ask no more"),
        ("cogcli gateway mark claude-code --asks Grep", "it asks again"),
        ("cogcli gateway mark claude-code", "the marked tools"),
    ),
    exits=(0, 2, 3, 4, 6),
)
def mark(
    context: CommandContext,
    host: Host,
    *,
    read_only: Annotated[
        list[str],
        text("--read-only", "TOOL", "it changes nothing: do not ask a person (repeatable)", SAFETY),
    ],
    asks: Annotated[
        list[str], text("--asks", "TOOL", "ask a person for each call of it (repeatable)", SAFETY)
    ],
) -> int:
    """Mark tools of a host as read-only, or remove marks, and print all marked tools."""
    marks = {**dict.fromkeys(read_only, True), **dict.fromkeys(asks, False)}
    found = set_marks(context.settings, find_host(host), marks)
    context.own["read_only"] = found
    context.answer([[(visible(name), "")] for name in found])
    if not found:
        context.note("no tool is marked read-only: a person is asked for each call")
    return OK
