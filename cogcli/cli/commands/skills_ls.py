"""`skills ls` and `skills search`: what can be run."""

from __future__ import annotations

from typing import Any

from cogcli.cli.command import command
from cogcli.cli.context import CommandContext
from cogcli.cli.listing import Column, show
from cogcli.cli.options import ListFlags, SearchLimit, SearchWords, SpecFilter
from cogcli.core.errors import OK

COLUMNS = (Column("id"), Column("version"), Column("description"))


@command(
    examples=(
        ("cogcli skills ls", "all skills"),
        ("cogcli skills ls --domain text --usable", "some"),
        ("cogcli skills ls --format jsonl", "for scripts"),
    ),
    exits=(0, 2, 3),
)
def ls(context: CommandContext, *, wanted: SpecFilter, flags: ListFlags) -> int:
    """List the skills that fit."""
    from cogcli.app.inventory.listing import list_specs

    return _answer(context, list_specs(context.settings, context.kind, **vars(wanted)), flags)


@command(
    examples=(
        ("cogcli skills search summary", "by a word"),
        ("cogcli skills search pdf text --limit 3", "by several"),
        ("cogcli skills search json --format jsonl", "for scripts"),
    ),
    exits=(0, 2, 3),
    most=100,
)
def search(context: CommandContext, words: SearchWords, *, limit: SearchLimit = 10, flags: ListFlags) -> int:
    """Find skills by words."""
    from cogcli.app.inventory.listing import search_specs

    return _answer(context, search_specs(context.settings, context.kind, words, limit), flags)


def _answer(context: CommandContext, rows: list[dict[str, Any]], flags: ListFlags) -> int:
    context.own["skills"] = rows
    if not context.json:
        show(context, COLUMNS, rows, flags)
        if not rows and context.screen.err.tty and not context.screen.quiet:
            context.screen.notify("no skill fits\n")
    return OK
