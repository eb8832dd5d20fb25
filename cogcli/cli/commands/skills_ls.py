"""`skills ls` and `skills search`: what can be run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogcli.cli.listing import Column, show
from cogcli.core.errors import OK

if TYPE_CHECKING:
    from cogcli.cli.context import CommandContext

COLUMNS = (Column("id"), Column("version"), Column("description"))


def execute(context: CommandContext) -> int:
    """List, or search by the words given."""
    from cogcli.app.inventory.listing import list_specs, search_specs

    given = context.arguments
    if given.words:
        rows = search_specs(context.settings, "skills", given.words, given.integer("--limit", 10))
    else:
        rows = list_specs(
            context.settings,
            "skills",
            domain=given.text("--domain"),
            channel=given.text("--channel"),
            usable=given.on("--usable"),
        )
    context.own["skills"] = rows
    if not context.json:
        show(context, COLUMNS, rows)
        if not rows and context.screen.err.tty and not context.screen.quiet:
            context.screen.notify("no skill fits\n")
    return OK
