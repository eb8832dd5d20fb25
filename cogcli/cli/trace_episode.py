"""`trace EP`: read an episode, and display it in one of its views
(docs/reference/command-line.md#views).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from time import sleep
from typing import Final

from cogcli.app import episodes
from cogcli.app.state_document import iterate_shown_events
from cogcli.base.errors import OK, UnusableEnvironment, UsageError
from cogcli.base.files import hint_for_write
from cogcli.base.problems import suggestion
from cogcli.base.step_path import StepPath
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.options import wrong_flag, wrong_value
from cogcli.cli.render_error import next_lines
from cogcli.cli.run_flags import DRAWN, EXPORTED, LISTED, TraceFlags
from cogcli.cli.streams import OutputStream
from cogcli.cli.trace_tree import TracedEpisode, next_commands, show_tree, waiting_lines
from cogcli.declarations.envelope import Event
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.episode.foreign_log import for_reports
from cogcli.episode.history import History, history_of
from cogcli.episode.listing.episode_row import read_row
from cogcli.episode.log_reader import iterate_events
from cogcli.episode.run_history import RunHistory
from cogcli.report.thinned_log import left_out_warning, thin_log
from cogcli.report.unfinished_runs import unfinished_state


def find_episode(
    context: CommandContext, name: str | None, trace_id: str | None
) -> tuple[Path, str]:
    """Return the directory of the episode, and a note if its trace contains other episodes. Raise
    UsageError.
    """
    if trace_id is None:
        return episodes.find(context.settings, name), ""
    if name is None:
        rows = episodes.store_of(context.settings).by_trace(trace_id)
        if not rows:
            what = f"no episode has trace id `{trace_id[:130]}`"
            raise UsageError("episode.unknown", what, next=("cogcli ls",))
        shared = f"{len(rows)} episodes share trace {trace_id}; this is the newest"
        return rows[0].directory, shared if len(rows) > 1 else ""
    directory = episodes.find(context.settings, name)
    own = read_row(directory).trace_id
    if own != trace_id:
        what = f"`--trace-id {trace_id}` is not the trace of {directory.name}"
        raise UsageError("usage.value", what, found=own or "none")
    return directory, ""


def inspect(context: CommandContext, directory: Path, note: str, flags: TraceFlags) -> int:
    """Display an episode in the view of its flags, and return the exit code. Raise UsageError if
    flags exclude each other.
    """
    view, output = view_of(flags), _output_path(flags)
    if flags.follow:
        events = _follow_events(context, directory, view, flags)
        is_written = view == "events" and not context.json
    else:
        events, is_written = _read_events(context, directory, view, flags.step), False
    shown = _read_trace(context, directory, events, flags)._replace(note=note)
    if view == "events":
        shown = shown._replace(events=_events_of_step(events, shown.step))
    folded = shown.history
    context.own.update(episode_id=directory.name, trace_id=folded.trace_id)
    if output is not None:
        _write_to_file(context, view, shown, output)
        context.own["file"] = context.settings.display_path(output)
        context.answer(f"{visible(context.settings.display_path(output))}\n")
    elif context.json:
        context.own["trace"] = _episode_object(context, view, shown)
    elif not is_written:
        _write_to_stdout(context, view, shown)
    return OK


_THINNED: Final = ("tree", "table", "timeline", "lineage", "why", "layers")
"""Views that leave events of a very long run out. Lists of events, exports and drawings have all."""


def _read_events(
    context: CommandContext, directory: Path, view: str, step: str | None
) -> list[Event]:
    """Return the events for a view. If some are left out, a warning counts them."""
    events = iterate_shown_events(directory, context.warn)
    if view not in _THINNED or step:
        return list(events)
    thinned = thin_log(events)
    if thinned.note:
        context.warn(left_out_warning(thinned))
    return thinned.events


def _read_trace(
    context: CommandContext, directory: Path, events: list[Event], flags: TraceFlags
) -> TracedEpisode:
    """Return an episode as views display it. Raise UsageError for an unknown step."""
    log = for_reports(events)
    reported = tuple(log.events)
    folded = history_of(reported)
    folded.actions = log.actions
    row = episodes.read_status(context.settings, directory, context.warn)
    is_open = row.status in ("running", "pending", "interrupted")
    return TracedEpisode(
        folded,
        row.status,
        flags,
        step=_require_step(folded, flags.step),
        events=reported,
        log=reported,
        directory=directory,
        unfinished=unfinished_state(folded, row.status),
        stalled=row.is_stalled(context.settings.clock.now()),
        # A crash between two sealing steps left it open; another tool's is never sealed.
        unsealed=folded.chained and not row.sealed and not is_open,
        fault_status=row.shown_status if row.fault else "",
    )


def _events_of_step(events: list[Event], step: str) -> tuple[Event, ...]:
    """Return the events of a step and its descendants; all events without a step."""
    return tuple(event for event in events if not step or StepPath(_step_of(event)).within(step))


class _PayloadOfStep(Record):
    """The step in the payload of an event of another tool."""

    step_id: str = ""


def _step_of(event: Event) -> str:
    """Return the step of an event. An event of another tool has it only in its payload."""
    return event.step_id or read_record(_PayloadOfStep, event.payload).step_id


def view_of(flags: TraceFlags) -> str:
    """Return the view that the flags select. Raise UsageError if format and view exclude each
    other.
    """
    view, format = flags.view, flags.format or "text"
    if flags.why is not None:
        if view is not None or format != "text":
            raise wrong_flag("`--why` is a view of its own", "leave --view and --format out")
        return "why"
    _require_matching(format, view, flags.step)
    if format in EXPORTED:
        return "export"
    if format in DRAWN:
        return "graph"
    if view is None or view == "tree":
        return _VIEW_OF_FORMAT.get(format, "tree")
    return view


_VIEW_OF_FORMAT: Final = {**dict.fromkeys(LISTED, "table"), "jsonl": "events"}
"""The view of a format, unless flags select another."""


def _require_matching(format: str, view: str | None, step: str | None) -> None:
    """Raise UsageError for a format that cannot show what the flags select."""
    if format in EXPORTED and (view is not None or step is not None):
        what, hint = "exports the whole run", "leave --view and --step out"
    elif format in DRAWN and view not in (None, "tree"):
        what, hint = "draws the tree", "leave --view out"
    elif format in LISTED and view == "tree":
        what, hint = "is for tables", "as in --view table"
    else:
        return
    raise wrong_value(f"`--format {format}` {what}", hint)


def _output_path(flags: TraceFlags) -> str | None:
    """Return the file of `-o`, checked before any episode is read; None without `-o`. Raise
    UsageError.
    """
    path = flags.o
    if path is None:
        return None
    if flags.follow:
        raise wrong_flag("`--follow` prints events as they come", "leave -o for afterwards")
    if not path:
        raise wrong_value("`-o`: an empty word names no file", "is a variable unset?")
    if os.path.lexists(path):
        raise _file_exists_error(path)
    return path


def _write_to_stdout(context: CommandContext, view: str, traced: TracedEpisode) -> None:
    """Write a view to stdout. For an unfinished run, write its open requests and the commands that
    continue it to stderr.
    """
    _view_writer(view)(context, traced)
    if view == "export" or context.screen.quiet or traced.flags.format not in (None, "text"):
        return
    waiting = []
    if view != "tree":
        waiting = waiting_lines(context, traced, width=context.screen.err.width, in_tree=False)
    for line in waiting + next_lines(next_commands(context, traced)):
        context.screen.notify_line(line)


def _view_writer(view: str) -> Callable[[CommandContext, TracedEpisode], None]:
    """Return the function that writes a view."""
    if view == "tree":
        return show_tree
    from cogcli.cli.trace_views import VIEWS

    return VIEWS[view]


def _write_to_file(context: CommandContext, view: str, traced: TracedEpisode, path: str) -> None:
    """Write a view to a new file, without colors and truncation.

    Raise UsageError `output.exists` or UnusableEnvironment `env.disk`.
    """
    screen, before, whole = context.screen, context.screen.out, StringIO()
    try:
        screen.out = OutputStream(whole, {}, "never")
        _view_writer(view)(context, traced)
    finally:
        screen.out = before
    try:
        with open(path, "x", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.write(whole.getvalue())
    except FileExistsError as error:
        raise _file_exists_error(path) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no such name"
        hint = f"{hint_for_write(error)}, or name another file"
        raise UnusableEnvironment(
            "env.disk", f"`{path}` cannot be written: {reason}", hint=hint
        ) from error


def _file_exists_error(path: str) -> UsageError:
    """Return the error for a file that `-o` would overwrite."""
    return UsageError("output.exists", f"`{path}` exists", hint="remove it, or name another file")


def _episode_object(context: CommandContext, view: str, traced: TracedEpisode) -> Json:
    """Return the `trace` object of the envelope, with the rows or the object of the view."""
    from cogcli.cli.trace_views import OBJECTS
    from cogcli.report.table import rows

    body = {
        "status": "stalled" if traced.stalled else traced.fault_status or traced.status,
        **_run_members(traced.history.root),
        "steps": rows(traced.history, only=traced.step),
        "waits": [ask._asdict() for ask in traced.unfinished.asks],
        "input_requests": [asked.json for asked in traced.unfinished.inputs],
        "next": next_commands(context, traced),
    }
    if not traced.history.chained:
        body["actions"] = traced.history.actions
    more = OBJECTS.get(view)
    return body | ({view: more(context, traced)} if more else {})


def _run_members(root: RunHistory | None) -> Json:
    """Return the displayed members of a run. All are null for a log without one."""
    if root is None:
        return dict.fromkeys(("skill", "version", "started_at", "duration_ms", "error"))
    return {
        "skill": root.skill,
        "version": root.version,
        "started_at": root.started_at,
        "duration_ms": root.ms,
        "error": root.error.json if root.error else None,
    }


def _follow_events(
    context: CommandContext, directory: Path, view: str, flags: TraceFlags
) -> list[Event]:
    """Write each new event until the run ends, and return all events. They are written to stdout in the view `events`,
    else to stderr.
    """
    from cogcli.cli.progress import display_for
    from cogcli.cli.trace_views import EventPrinter

    if flags.step is not None or flags.format in LISTED:
        raise wrong_flag("`--follow` prints every event", "leave --step and tables for afterwards")
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


def _require_step(history: History, requested: str | None) -> str:
    """Return the path of the requested step, empty without one. Raise UsageError if it is unknown."""
    if requested is None:
        return ""
    known = [step.id for run in history.runs.values() for step in run.steps.values()]
    if requested in known:
        return requested
    some = f"steps: {', '.join(known[:20])}" if known else "no step began"
    hint = suggestion(requested, known) or some
    raise wrong_value(f"there is no step `{requested}`", hint)
