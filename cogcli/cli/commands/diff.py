"""`diff [EP EP]`: what is different between two episodes (docs/reference/command-line.md#views)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogcli.app import episodes
from cogcli.core.errors import NO, OK, UsageError
from cogcli.report.compare import compare, comparison_object, lines, side_of

if TYPE_CHECKING:
    from cogcli.cli.context import CommandContext
    from cogcli.report.compare import Side


def execute(context: CommandContext) -> int:
    """Compare the two that are named, or the newest with the one before."""
    words = context.arguments.words or ["@last~1", "@last"]
    if len(words) != 2:
        raise _one(context, words[0])
    difference = compare(*(_side(context, word) for word in words))
    context.own["diff"] = comparison_object(difference)
    if not context.json:
        out = context.screen.out
        context.screen.answer_lines(lines(difference, out.glyphs, width=out.width))
    return NO if context.arguments.on("--exit-code") and not difference.same else OK


def _one(context: CommandContext, word: str) -> UsageError:
    """The error for a single episode, with the comparison that was probably meant: with the newest other one."""
    from shlex import quote

    named = episodes.find(context.settings, word)
    newest = episodes.store_of(context.settings).ids()[:2]
    if named.name in newest[:1]:
        pair = f"@last~1 {quote(word)}" if newest[1:] else ""
    else:
        pair = f"{quote(word)} @last" if newest else ""
    return UsageError(
        "usage.value",
        "`diff` needs two episodes, or none for the newest two",
        found=f"`{word}`",
        hint="" if pair else "there is no other one to compare it with",
        next=(f"cogcli diff {pair}",) if pair else ("cogcli ls",),
    )


def _side(context: CommandContext, word: str) -> Side:
    from cogcli.app.episodes import iterate_shown_events
    from cogcli.episode.foreign_log import for_reports

    directory = episodes.find(context.settings, word)
    events = for_reports(iterate_shown_events(directory, context.warn)).events
    return side_of(directory.name, episodes.status_of(directory), events)
