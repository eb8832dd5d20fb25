"""`trace [EP|SKILL]`: the positional decides whether an episode is inspected or a skill is run
(docs/reference/command-line.md#skill-or-episode)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cogcli.cli.command import command
from cogcli.cli.context import CommandContext
from cogcli.cli.options import argument
from cogcli.cli.run_flags import RunFlags, TraceFlags
from cogcli.cli.skill_or_episode import is_skill
from cogcli.core.errors import OK, UsageError
from cogcli.core.problems import suggestion
from cogcli.core.step_path import StepPath
from cogcli.core.terminal_text import visible

if TYPE_CHECKING:
    from pathlib import Path

    from cogcli.events.envelope import Event
    from cogcli.report.run_fold import RunFold

_OF_EPISODES = ("why", "follow", "step", "o")


@command(
    examples=(
        ("cogcli trace @last", "the newest episode as a tree"),
        ("cogcli trace --trace-id trace-001 --why outputs.report", "why is this so, or missing?"),
        ("cogcli trace text.summarize -p text=@notes.md", "run, events live"),
    ),
    exits=(0, 1, 2, 3, 4, 5, 6, 70, 130, 143),
)
def trace(
    context: CommandContext,
    target: Annotated[str | None, argument("[EP|SKILL]", "episodes skills")] = None,
    *,
    flags: TraceFlags,
    run: RunFlags,
) -> int:
    """Inspect an episode, or run a skill."""
    if target is not None and is_skill(context, target):
        from cogcli.cli.trace_run import trace_run

        _refuse(context, _OF_EPISODES, "`trace EP`", "run it, then look at the episode")
        _refuse_export(flags.format)
        return trace_run(context, target, flags, run)
    names = tuple(name for name, _, _ in RunFlags.declared() if name != "trace_id")
    _refuse(context, names, "`trace SKILL`", "an episode that exists is only looked at")
    directory, note = _episode(context, target, run.trace_id)
    return _inspect(context, directory, note, flags)


def _refuse(context: CommandContext, names: tuple[str, ...], owner: str, hint: str) -> None:
    for name in names:
        if name in context.call.given:
            flag = f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"
            raise UsageError("usage.flag", f"`{flag}` belongs to {owner}", hint=hint)


def _refuse_export(format: str | None) -> None:
    from cogcli.cli.trace_views import EXPORTED

    if format in EXPORTED:
        raise UsageError(
            "usage.flag", f"`--format {format}` belongs to `trace EP`", hint="run it, then export the episode"
        )


def _episode(context: CommandContext, name: str | None, trace_id: str | None) -> tuple[Path, str]:
    """The directory of the episode, and a note where its trace has other episodes. Raises UsageError."""
    from cogcli.app import episodes

    if trace_id is None:
        return episodes.find(context.settings, name), ""
    if name is None:
        rows = episodes.store_of(context.settings).by_trace(trace_id)
        if not rows:
            raise UsageError(
                "episode.unknown", f"no episode has trace id `{trace_id[:130]}`", next=("cogcli ls",)
            )
        shared = f"{len(rows)} episodes share trace {trace_id}; this is the newest"
        return rows[0].directory, shared if len(rows) > 1 else ""
    directory = episodes.find(context.settings, name)
    from cogcli.episode.listing.episode_row import read_row

    own = read_row(directory).trace_id
    if own != trace_id:
        raise UsageError(
            "usage.value",
            f"`--trace-id {trace_id}` is not the trace of {directory.name}",
            found=own or "none",
        )
    return directory, ""


def _inspect(context: CommandContext, directory: Path, note: str, flags: TraceFlags) -> int:
    from cogcli.app.state_document import iterate_shown_events
    from cogcli.cli import trace_views
    from cogcli.cli.next_actions import TracedEpisode
    from cogcli.episode.foreign_log import for_reports
    from cogcli.episode.listing.episode_row import read_row
    from cogcli.report.run_fold import fold
    from cogcli.report.unfinished_runs import unfinished_state

    view, output = trace_views.view_of(flags), _output(flags)
    if flags.follow:
        events = _follow(context, directory, view, flags)
        is_written = view == "events" and not context.json
    else:
        events, is_written = list(iterate_shown_events(directory, context.warn)), False
    log = for_reports(events)
    reported = tuple(log.events)
    folded, row = fold(reported), read_row(directory)
    folded.actions = log.actions
    only = _require_step(folded, flags.step)
    unfinished = unfinished_state(folded, row.status)
    if view == "events":
        reported = tuple(event for event in events if not only or StepPath(_step_of(event)).within(only))
    shown = TracedEpisode(
        folded, row.status, flags, only, note, reported, directory, unfinished,
        unsealed=_is_unsealed(row.status, sealed=row.sealed, chained=folded.chained),
    )  # fmt: skip
    context.own.update(episode_id=directory.name, trace_id=folded.trace_id)
    if output is not None:
        trace_views.into_file(context, view, shown, output)
        context.own["file"] = context.settings.display_path(output)
        if not context.json:
            context.screen.answer(f"{visible(context.settings.display_path(output))}\n")
    elif context.json:
        context.own["trace"] = trace_views.episode_object(context, view, shown)
    elif not is_written:
        trace_views.answer(context, view, shown)
    return OK


def _step_of(event: Event) -> str:
    """The step of an event; an event of another tool has it in its payload only."""
    in_payload = event.payload.get("step_id") if isinstance(event.payload, dict) else None
    return event.step_id or (in_payload if isinstance(in_payload, str) else "")


def _output(flags: TraceFlags) -> str | None:
    """The file of `-o`, checked before anything is read; None without one. Raises UsageError."""
    from os.path import lexists

    from cogcli.cli.trace_views import file_exists

    path = flags.o
    if path is None:
        return None
    if flags.follow:
        raise UsageError("usage.flag", "`--follow` tells events as they come", hint="leave -o for afterwards")
    if not path:
        raise UsageError("usage.value", "`-o`: an empty word names no file", hint="is a variable unset?")
    if lexists(path):
        raise file_exists(path)
    return path


def _is_unsealed(status: str, *, sealed: bool, chained: bool) -> bool:
    """Whether a crash between two sealing steps left the episode open; another tool's is never sealed."""
    return chained and not sealed and status not in ("running", "pending", "interrupted")


def _follow(context: CommandContext, directory: Path, view: str, flags: TraceFlags) -> list[Event]:
    """All events, after the run has ended. Each is written as it comes: to stdout in the view `events`, else to
    stderr."""
    from time import sleep

    from cogcli.cli.progress import display_for
    from cogcli.cli.trace_views import LISTED, EventPrinter
    from cogcli.episode.log_reader import iterate_events

    if flags.step is not None or flags.format in LISTED:
        raise UsageError(
            "usage.flag", "`--follow` tells every event", hint="leave --step and tables for afterwards"
        )
    on_stdout = view == "events" and not context.json
    display = display_for(context.screen, "none" if on_stdout else "auto", verbose=context.verbose)
    write = EventPrinter(context, flags) if on_stdout else display
    events = []
    try:
        for event in iterate_events(directory, context.warn, wait=lambda: sleep(_POLL)):
            write(event)
            events.append(event)
    finally:
        display.close()
    return events


_POLL = 0.1
"""Seconds between two reads of a growing log."""


def _require_step(folded: RunFold, wanted: str | None) -> str:
    if wanted is None:
        return ""
    known = [step.id for run in folded.runs.values() for step in run.steps.values()]
    if wanted in known:
        return wanted
    raise UsageError(
        "usage.value",
        f"there is no step `{wanted}`",
        hint=suggestion(wanted, known) or f"steps: {', '.join(known[:20])}",
    )
