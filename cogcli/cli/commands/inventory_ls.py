"""`skills`, `capabilities`, `bindings` and `services`: `ls` and `search`."""

from __future__ import annotations

from typing import Any, Final

from cogcli.cli.command import Examples, command
from cogcli.cli.context import CommandContext
from cogcli.cli.listing import Column, show
from cogcli.cli.options import ListFlags, SearchLimit, SearchWords, SpecFilter
from cogcli.core.errors import OK

COLUMNS: Final = {
    "skills": (Column("id"), Column("version"), Column("description")),
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


SAMPLES: Final = {
    "skills": ("text", "summary"),
    "capabilities": ("text", "summary"),
    "bindings": ("text", "summarize"),
    "services": ("text", "csv"),
}
"""By kind: a domain and a word for the examples."""


def _ls_examples(name: str) -> Examples:
    return (
        (f"cogcli {name}", "all"),
        (f"cogcli {name} --domain {SAMPLES[name.split()[0]][0]} --usable", "some"),
        (f"cogcli {name} --format jsonl", "for scripts"),
    )


@command(examples=_ls_examples, exits=(0, 2, 3))
def ls(context: CommandContext, *, wanted: SpecFilter, flags: ListFlags) -> int:
    """List the specs of a kind that fit."""
    from cogcli.app.inventory.listing import list_specs

    return _answer(context, list_specs(context.settings, context.kind, **vars(wanted)), flags)


def _search_examples(name: str) -> Examples:
    domain, word = SAMPLES[name.split()[0]]
    return (
        (f"cogcli {name} {word}", "by a word"),
        (f"cogcli {name} {domain} {word} --limit 3", "by several"),
        (f"cogcli {name} {word} --format jsonl", "for scripts"),
    )


@command(examples=_search_examples, exits=(0, 2, 3), most=100)
def search(context: CommandContext, words: SearchWords, *, limit: SearchLimit = 10, flags: ListFlags) -> int:
    """Find specs of a kind by words."""
    from cogcli.app.inventory.listing import search_specs

    return _answer(context, search_specs(context.settings, context.kind, words, limit), flags)


def _answer(context: CommandContext, rows: list[dict[str, Any]], flags: ListFlags) -> int:
    from cogcli.app.inventory.kinds import KINDS

    kind = context.kind
    context.own[kind] = rows
    if not context.json:
        show(context, COLUMNS[kind], rows, flags)
        if not rows and context.screen.err.tty and not context.screen.quiet:
            context.screen.notify(f"no {KINDS[kind].singular} fits\n")
    return OK
