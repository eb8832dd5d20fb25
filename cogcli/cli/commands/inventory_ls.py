"""`capabilities`, `bindings` and `services`: `ls` and `search`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cogcli.cli.listing import Column, show
from cogcli.core.errors import OK

if TYPE_CHECKING:
    from cogcli.cli.context import CommandContext

COLUMNS: Final = {
    "capabilities": (Column("id"), Column("version"), Column("binding"), Column("description")),
    "bindings": (
        Column("id"),
        Column("capability"),
        Column("service"),
        Column("protocol"),
        Column("layer"),
        Column("channel"),
        Column("conformance"),
    ),
    "services": (
        Column("id"),
        Column("kind"),
        Column("address"),
        Column("layer"),
        Column("channel"),
        Column("description"),
    ),
}


def execute(context: CommandContext) -> int:
    """List, or search by the words given."""
    from cogcli.app.inventory.kinds import KINDS
    from cogcli.app.inventory.listing import list_specs, search_specs

    given = context.arguments
    kind = given.command.name.split()[0] if given.command else ""
    if given.words:
        rows = search_specs(context.settings, kind, given.words, given.integer("--limit", 10))
    else:
        rows = list_specs(
            context.settings,
            kind,
            domain=given.text("--domain"),
            channel=given.text("--channel"),
            usable=given.on("--usable"),
        )
    context.own[kind] = rows
    if not context.json:
        show(context, COLUMNS[kind], rows)
        if not rows and context.screen.err.tty and not context.screen.quiet:
            context.screen.notify(f"no {KINDS[kind].singular} fits\n")
    return OK
