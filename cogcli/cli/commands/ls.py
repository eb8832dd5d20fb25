"""`ls`: episodes, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogcli.app.episodes import OUTCOMES, error_of_unstarted, list_episodes, parse_age, row_of
from cogcli.cli.listing import Column, show
from cogcli.core.errors import OK, UsageError
from cogcli.core.terminal_text import visible
from cogcli.episode.listing.episode_row import EpisodeFilter
from cogcli.report.glyphs import style_of
from cogcli.report.humanize import duration, fuzzy_time, short_episode, short_trace

if TYPE_CHECKING:
    from cogcli.cli.context import CommandContext
    from cogcli.episode.listing.episode_row import EpisodeRow


def execute(context: CommandContext) -> int:
    """List what fits."""
    given = context.arguments
    wanted = EpisodeFilter(
        skill=given.text("--skill"),
        outcomes=_outcome(given.text("--outcome")),
        trace_id=given.text("--trace-id"),
        tags=tuple(_tag(text) for text in given.many("--tag")),
        since=parse_age(context.settings, "--since", given.text("--since")),
    )
    limit = None if given.on("--all") else given.integer("--limit", 20)
    found = list_episodes(context.settings, wanted, limit)
    _report_unstarted(context, found)
    _warn_of_renamed(context, found)
    rows = [row_of(row, context.settings.display_path) for row in found]
    context.own["episodes"] = rows
    if context.json:
        return OK
    show(context, _columns(context), rows)
    if not rows and context.screen.err.tty and not context.screen.quiet:
        place = context.settings.display_path(context.settings.runs_dir)
        context.screen.notify(f"no episodes in {visible(place)}\n")
    return OK


def _report_unstarted(context: CommandContext, found: list[EpisodeRow]) -> None:
    """Say of runs that were stopped before their first event what is to be done; once, however many they are."""
    stubs = [stub for row in found if row.started_at is None and (stub := error_of_unstarted(row))]
    if stubs:
        more = f" (so in {len(stubs)} episodes)" if len(stubs) > 1 else ""
        stubs[0].message += more
        context.warn(stubs[0])


def _warn_of_renamed(context: CommandContext, found: list[EpisodeRow]) -> None:
    """Warn of each folder whose name is the id of another episode."""
    for row in found:
        if row.log_id is not None:
            from cogcli.episode.log_reader import renamed_folder_error

            context.warn(renamed_folder_error(row.directory, row.log_id))


def _columns(context: CommandContext) -> tuple[Column, ...]:
    now = context.settings.clock.now()
    glyphs = context.screen.out.glyphs
    return (
        Column("episode_id", title="episode", shown=short_episode),
        Column("status", shown=lambda word: f"{glyphs.sign(word)} {word}", style=style_of),
        Column("skill"),
        Column("started_at", title="started", shown=lambda text: fuzzy_time(text, now)),
        Column("duration_ms", title="took", shown=lambda ms: duration(round(ms)), right=True),
        Column("trace_id", title="trace", shown=short_trace),
        Column("tags"),
    )


def _outcome(word: str | None) -> tuple[str, ...]:
    if word is None:
        return ()
    if word in OUTCOMES:
        return (word,)
    from cogcli.cli.parse import suggest

    raise UsageError(
        "usage.value",
        f"`--outcome`: found `{word}`, expected one of {', '.join(OUTCOMES)}",
        hint=suggest(word, list(OUTCOMES)),
    )


def _tag(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError("usage.value", f"`--tag`: found `{text[:60]}`, expected k=v")
    return name, value
