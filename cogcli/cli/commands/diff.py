"""`diff [EP EP]`: the differences between two episodes (docs/reference/command-line.md#views)."""

from __future__ import annotations

from typing import Annotated

from cogcli.app import episodes
from cogcli.app.state_document import iterate_shown_events
from cogcli.base.errors import NO, OK, UsageError
from cogcli.cli.context import CommandContext
from cogcli.cli.options import OUTPUT, argument, command, switch
from cogcli.episode.foreign_log import for_reports
from cogcli.report.compare import ComparedEpisode, compare, comparison_object, lines, read_side


@command(
    examples=(
        ("cogcli diff", "the newest run with the one before"),
        ("cogcli diff @last~5 @last", "with an older one"),
        ("cogcli diff ep_01M7XJNZDYM9 @last --exit-code", "for scripts"),
    ),
    exits=(0, 1, 2, 3),
)
def diff(
    context: CommandContext,
    first: Annotated[str | None, argument("[EP EP]", "episodes")] = None,
    second: Annotated[str | None, argument("", "episodes")] = None,
    *,
    exit_code: Annotated[
        bool, switch("--exit-code", help="exit 1 if they differ", panel=OUTPUT)
    ] = False,
) -> int:
    """Compare two named episodes, or the newest with the one before it."""
    if first is not None and second is None:
        raise _single_episode_error(context, first)
    difference = compare(
        _read_side(context, first or "@last~1"), _read_side(context, second or "@last")
    )
    context.own["diff"] = comparison_object(difference)
    out = context.screen.out
    context.answer(lines(difference, out.glyphs, width=out.width))
    return NO if exit_code and not difference.is_same else OK


def _single_episode_error(context: CommandContext, word: str) -> UsageError:
    """Return the error for a single episode, with the likely intended comparison to the newest
    other one.
    """
    from shlex import quote

    named = episodes.find(context.settings, word)
    newest = episodes.store_of(context.settings).ids()[:2]
    if named.name in newest[:1]:
        pair = f"@last~1 {quote(word)}" if newest[1:] else ""
    else:
        pair = f"{quote(word)} @last" if newest else ""
    what = "`diff` needs two episodes, or none for the newest two"
    hint = "" if pair else "there is no other run to compare it with"
    next = f"cogcli diff {pair}" if pair else "cogcli ls"
    return UsageError("usage.value", what, found=f"`{word}`", hint=hint, next=(next,))


def _read_side(context: CommandContext, word: str) -> ComparedEpisode:
    """Return an episode as one side of the comparison."""
    directory = episodes.find(context.settings, word)
    events = for_reports(iterate_shown_events(directory, context.warn)).events
    return read_side(
        directory.name,
        episodes.read_status(context.settings, directory, context.warn).shown_status,
        events,
    )
