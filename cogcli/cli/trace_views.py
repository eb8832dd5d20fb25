"""All views of `trace EP` except the tree: table, timeline, lineage, why, graph, events and exports
(docs/reference/command-line.md#views).
"""

from __future__ import annotations

from collections.abc import Callable

from cogcli.app.state_document import read_declared_places
from cogcli.base.problems import suggestion
from cogcli.cli.context import CommandContext
from cogcli.cli.envelope import dumps
from cogcli.cli.listing import Column, show
from cogcli.cli.options import wrong_value
from cogcli.cli.run_flags import LISTED, TraceFlags
from cogcli.cli.trace_tree import TracedEpisode
from cogcli.declarations.envelope import Event, to_json
from cogcli.declarations.value_types import Json
from cogcli.report import layer_cells, lineage, table, timeline
from cogcli.report.event_lines import EventLines
from cogcli.report.graph import dot, mermaid
from cogcli.report.history_graph import graph_of
from cogcli.report.humanize import duration, fuzzy_time
from cogcli.report.lineage import Lineage, TargetFlow, overlap
from cogcli.report.styled_text import fit, style_of
from cogcli.report.why import explainable_places, find_cause_chains, why_lines


def _view_columns(context: CommandContext, names: tuple[str, ...]) -> list[Column]:
    """Return the columns of a view."""
    now, glyphs = context.settings.clock.now(), context.screen.out.glyphs
    special = {
        "status": Column(
            "status", shown=lambda word: f"{glyphs.sign(word)} {word}", style=style_of
        ),
        "started_at": Column(
            "started_at", title="started_at", shown=lambda text: fuzzy_time(text, now)
        ),
        "start_ms": Column("start_ms", title="start_ms", shown=duration, right=True),
        "ms": Column("ms", shown=duration, right=True),
    }
    return [special.get(name, Column(name, title=name)) for name in names]


def _write_table(context: CommandContext, traced: TracedEpisode) -> None:
    """Write the table of steps."""
    rows = table.rows(traced.history, only=traced.step)
    show(context, _view_columns(context, table.columns(traced.history)), rows, traced.flags)


def _write_timeline(context: CommandContext, traced: TracedEpisode) -> None:
    """Write the timeline."""
    if traced.flags.format not in (None, "text"):
        rows = timeline.rows(traced.history, only=traced.step)
        show(context, _view_columns(context, timeline.COLUMNS), rows, traced.flags)
        return
    out = context.screen.out
    lines = timeline.timeline(traced.history, out.glyphs, width=out.width, only=traced.step)
    context.screen.answer_lines(traced.note_lines + lines)


def _target_flows(traced: TracedEpisode) -> list[TargetFlow]:
    """Return the written targets; with `--step` only those that the step reads or writes."""
    flows = lineage.targets(
        traced.history,
        Lineage(traced.events),
        read_declared_places(traced.directory, traced.events),
    )
    if not traced.step:
        return flows
    return [
        one for one in flows if traced.step in (*one.readers, *(write.step for write in one.writes))
    ]


def _write_lineage(context: CommandContext, traced: TracedEpisode) -> None:
    """Write which steps read and write each target."""
    out, flows = context.screen.out, _target_flows(traced)
    if traced.flags.format not in (None, "text"):
        show(context, _view_columns(context, lineage.COLUMNS), lineage.rows(flows), traced.flags)
    elif not flows and not traced.history.chained:
        context.screen.answer_lines(
            [[("this log does not record what its steps read and wrote", "dim")]]
        )
    else:
        context.screen.answer_lines(
            traced.note_lines + lineage.lineage(flows, out.glyphs, width=out.width)
        )


def _write_layers(context: CommandContext, traced: TracedEpisode) -> None:
    """Write the layers of the turns."""
    out, format = context.screen.out, traced.flags.format
    if format == "jsonl":
        show(context, [], layer_cells.cells_of(traced.history), traced.flags)
    elif format not in (None, "text"):
        show(
            context,
            _view_columns(context, layer_cells.COLUMNS),
            layer_cells.rows(traced.history),
            traced.flags,
        )
    elif not traced.history.turns.turns:
        context.screen.answer_lines([[("this run has no turns: no agent ran", "dim")]])
    else:
        lines = layer_cells.lines(traced.history, out.glyphs, width=out.width)
        context.screen.answer_lines(traced.note_lines + lines)


def _write_causes(context: CommandContext, traced: TracedEpisode) -> None:
    """Write the chains of causes of the value at `--why`."""
    context.screen.answer_lines(
        why_lines(_cause_chains(context, traced), context.screen.out.glyphs)
    )


def _cause_chains(context: CommandContext, traced: TracedEpisode) -> list[list[str]]:
    """Return the chains of causes of the value at `--why`. Raise UsageError if no step read or
    wrote it.
    """
    reference = traced.flags.why or ""
    if reference == "outputs.response" and (reply := traced.history.turns.reply_causes):
        return [[reference, *reply]]
    flow, specs = Lineage(traced.events), read_declared_places(traced.directory, traced.events)
    places = explainable_places(flow, lineage.targets(traced.history, flow, specs))
    if not reference or not any(overlap(reference, place) for place in places):
        some = f"there is {', '.join(places[:10])}" if places else ""
        hint = suggestion(reference, places) or some or "this log does not record reads and writes"
        raise wrong_value(f"`--why`: nothing was read or written at `{reference[:80]}`", hint)
    return find_cause_chains(reference, traced.history, flow, specs)


def _write_graph(context: CommandContext, traced: TracedEpisode) -> None:
    """Write the graph as DOT or Mermaid text."""
    draw = dot if traced.flags.format == "dot" else mermaid
    context.screen.answer(draw(graph_of(traced.history)))


_EVENT_COLUMNS = ("seq", "timestamp", "event_type", "step_id", "agent_id", "run_id", "id")


def _write_events(context: CommandContext, traced: TracedEpisode) -> None:
    """Write the events."""
    if traced.flags.format in LISTED:
        rows = [{name: getattr(event, name) for name in _EVENT_COLUMNS} for event in traced.events]
        show(context, [Column(name, title=name) for name in _EVENT_COLUMNS], rows, traced.flags)
        return
    write = EventPrinter(context, traced.flags)
    for event in traced.events:
        write(event)


class EventPrinter:
    """A writer of single events to stdout, in the format of the flags."""

    def __init__(self, context: CommandContext, flags: TraceFlags) -> None:
        self._screen = context.screen
        self._jsonl = flags.format == "jsonl"
        self._full = flags.full
        self._max_bytes = flags.max_bytes
        self._lines = EventLines()

    def __call__(self, event: Event) -> None:
        """Write an event."""
        if self._jsonl:
            text = dumps(to_json(event))
        elif self._full:
            text = "\n".join([*table.sections(event, self._max_bytes), ""])
        else:
            text = fit(self._lines.line(event), self._screen.out.width)
        self._screen.answer(text + "\n")


def _export_object(context: CommandContext, traced: TracedEpisode) -> Json:
    """Return the trace in the export format of the flags."""
    from cogcli.report.trace_export import render_trace

    return render_trace(traced.events, traced.flags.format, io=traced.flags.io)


def _write_export(context: CommandContext, traced: TracedEpisode) -> None:
    """Write the trace in the export format of the flags."""
    context.screen.answer(dumps(_export_object(context, traced)) + "\n")


VIEWS = {
    "table": _write_table,
    "timeline": _write_timeline,
    "lineage": _write_lineage,
    "why": _write_causes,
    "graph": _write_graph,
    "events": _write_events,
    "export": _write_export,
    "layers": _write_layers,
}
OBJECTS: dict[str, Callable[[CommandContext, TracedEpisode], object]] = {
    "timeline": lambda _, shown: timeline.rows(shown.history, only=shown.step),
    "lineage": lambda _, shown: lineage.rows(_target_flows(shown)),
    "why": _cause_chains,
    "graph": lambda _, shown: graph_of(shown.history).to_payload(),
    "export": _export_object,
    "layers": lambda _, shown: layer_cells.cells_of(shown.history),
}
