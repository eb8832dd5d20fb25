"""`ls`: episodes, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from cogcli.app.episodes import (
    OUTCOMES,
    archive_faults,
    error_of_unstarted,
    find_unreadable,
    list_episodes,
    parse_age,
    row_to_payload,
    store_of,
    unreadable_warning,
)
from cogcli.app.wings import WingFunction
from cogcli.base.errors import OK, CogcliError, UsageError
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.listing import Column, Wanted, report_empty_list, show
from cogcli.cli.options import ListFlags, choice, command, integer, switch, text
from cogcli.episode.listing.episode_listing import count_episodes
from cogcli.episode.listing.episode_row import EpisodeFilter, EpisodeRow
from cogcli.episode.refusals import altered_error, renamed_folder_error
from cogcli.report.humanize import duration, fuzzy_time, short_episode, short_trace
from cogcli.report.styled_text import style_of

if TYPE_CHECKING:
    from cogcli.declarations.value_types import Json
    from cogcli.report.approval_view import ApprovalView


@command(
    examples=(
        ("cogcli ls", "the newest twenty"),
        ("cogcli ls --outcome error --since 7d", "what went wrong this week"),
        ("cogcli ls --format jsonl | jq -r .episode_id", "for scripts"),
    ),
    exits=(0, 2, 3),
)
def ls(
    context: CommandContext,
    *,
    limit: Annotated[
        int, integer("--limit", "at most N", minimum=1, maximum=10**9, default="20")
    ] = 20,
    all: Annotated[bool, switch("--all", help="no limit")] = False,
    skill: Annotated[
        str | None, text("--skill", "ID", "only runs of this skill", completes="skills")
    ] = None,
    outcome: Annotated[
        str | None, choice("--outcome", "WORD", OUTCOMES, "only with this outcome")
    ] = None,
    tag: Annotated[list[str], text("--tag", "k=v", "only with this tag (repeatable)")],
    batch: Annotated[str | None, text("--batch", "ID", "only runs of this batch")] = None,
    trace_id: Annotated[str | None, text("--trace-id", "ID", "only runs of this trace")] = None,
    since: Annotated[
        str | None, text("--since", "AGE", "only runs younger than AGE: 30d, 12h, 45m")
    ] = None,
    flags: ListFlags,
) -> int:
    """List the episodes that match the flags."""
    tags = list(map(_parse_tag, tag))
    if batch:
        tags.append(("batch", _find_batch(context, batch)))
    wanted = EpisodeFilter(
        skill=skill,
        outcomes=(outcome,) if outcome else (),
        trace_id=trace_id,
        tags=tuple(tags),
        since=parse_age(context.settings, "--since", since),
    )
    found = list_episodes(context.settings, wanted, None if all else limit)
    _warn_of_faults(context, found)
    now = context.settings.clock.now()
    rows = [row_to_payload(row, context.settings.display_path, now) for row in found]
    context.own["episodes"] = rows
    unreadable = find_unreadable(context.settings)
    context.own["unreadable"] = unreadable.total()
    if unreadable:
        context.warn(unreadable_warning(unreadable))
    waiting: list[ApprovalView] = []
    if outcome == "pending":
        waiting = _add_waiting(context, rows, found)
    if not rows:
        given = {
            "--skill": skill,
            "--outcome": outcome,
            "--tag": tag,
            "--batch": batch,
            "--trace-id": trace_id,
            "--since": since,
        }
        _report_empty(context, list(given.items()))
    if context.json:
        return OK
    columns = _select_columns(context, found, has_requests=_is_awaited(rows))
    show(context, columns, rows, flags, whole=all or "limit" in context.call.given, for_all="--all")
    if flags.format in (None, "text"):
        _show_requests(context, waiting)
    return OK


def _warn_of_faults(context: CommandContext, rows: list[EpisodeRow]) -> None:
    """Report runs that never started, renamed and altered episodes, and faults of archives."""
    _report_unstarted_runs(context, rows)
    _warn_of_renamed(context, rows)
    _warn_of_altered(context, rows)
    for fault in archive_faults(context.settings):
        context.warn(fault)


def _select_columns(
    context: CommandContext, found: list[EpisodeRow], *, has_requests: bool
) -> tuple[Column, ...]:
    """Return the columns of the table: those of all runs, then those that some of these rows need."""
    columns = _episode_columns(context)
    if any(row.pack for row in found):
        columns = (*columns, *_AGENT_COLUMNS)
    return (*columns, Column("waits_for")) if has_requests else columns


def _add_waiting(
    context: CommandContext, rows: list[Json], found: list[EpisodeRow]
) -> list[ApprovalView]:
    """Add each run's open requests to its row, with the line that a table displays. Return the requests for approval. A
    log that cannot be read is a warning.
    """
    from cogcli.app.approvals import questions_of  # for runs that wait alone

    waiting: list[ApprovalView] = []
    for row, episode in zip(rows, found, strict=True):
        row["approvals"], row["input_requests"], row["waits_for"] = [], [], ""
        try:
            asked = questions_of(context.settings, episode, context.again)
        except CogcliError as error:
            context.warn(error)
            continue
        views = [each.view for each in asked.approvals]
        row["approvals"] = [each.to_payload() for each in views]
        row["input_requests"] = [each.json for each in asked.inputs]
        lines = [each.line for each in views]
        lines += [visible(f"input for {each.step_id}") for each in asked.inputs]
        row["waits_for"] = "; ".join(lines)
        waiting += views
    return waiting


def _is_awaited(rows: list[Json]) -> bool:
    """Return whether a row waits for an answer."""
    return any(row.get("waits_for") for row in rows)


def _show_requests(context: CommandContext, waiting: list[ApprovalView]) -> None:
    """Print each open request below the table on a terminal."""
    if context.screen.out.width is None:
        return
    from cogcli.cli.approval_screen import request_lines  # for runs that wait alone

    for view in waiting:
        context.screen.answer_lines([[("", "")], *request_lines(context, view)])


_BATCH_OF_WORD: Final = WingFunction("cogcli.scale.batch_folder", "find_batch")


def _find_batch(context: CommandContext, word: str) -> str:
    """Return the id of the batch that a word names. Raise UsageError `batch.unknown`."""
    batch_id: str = _BATCH_OF_WORD(context.settings.runs_dir, word)
    return batch_id


def _report_empty(context: CommandContext, wanted: Wanted) -> None:
    """Report on stderr that no episode matches."""
    store = store_of(context.settings)
    place = context.settings.display_path(context.settings.runs_dir)
    report_empty_list(
        context,
        "episode",
        wanted,
        lambda: count_episodes(store.runs_dir, store.ids),
        place,
    )


def _report_unstarted_runs(context: CommandContext, rows: list[EpisodeRow]) -> None:
    """Warn once of all runs that were stopped before their first event, with the commands for them."""
    stubs = [stub for row in rows if row.started_at is None and (stub := error_of_unstarted(row))]
    if stubs:
        more = f" (so in {len(stubs)} episodes)" if len(stubs) > 1 else ""
        stubs[0].message += more
        context.warn(stubs[0])


def _warn_of_renamed(context: CommandContext, rows: list[EpisodeRow]) -> None:
    """Warn of each folder that is named after another episode."""
    for row in rows:
        if row.log_id is not None:
            context.warn(renamed_folder_error(row.directory, row.log_id))


def _warn_of_altered(context: CommandContext, rows: list[EpisodeRow]) -> None:
    """Warn of the first episode with inconsistent files, with the number of others."""
    altered = [row for row in rows if row.fault]
    if altered:
        warning = altered_error(altered[0].directory, visible(altered[0].fault))
        if len(altered) > 1:
            warning.message += f" (and {len(altered) - 1} more)"
            warning.next = ("cogcli verify --all",)
        context.warn(warning)


def _episode_columns(context: CommandContext) -> tuple[Column, ...]:
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


_AGENT_COLUMNS = (Column("decision"), Column("intent"), Column("pack"))
"""Columns of lists that have runs of agents."""


def _parse_tag(text: str) -> tuple[str, str]:
    """Return name and value of a `--tag`. Raise UsageError."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError("usage.value", f"`--tag`: found `{text[:60]}`, expected k=v")
    return name, value
