"""The views of `trace EP`: tree, table, timeline, lineage, why, graph, events and exports
(docs/reference/command-line.md#views)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cogcli.cli import next_actions
from cogcli.cli.listing import Column, show
from cogcli.cli.next_actions import TracedEpisode
from cogcli.cli.run_flags import TraceFlags
from cogcli.core.errors import EnvironmentRefusal, UsageError
from cogcli.core.problems import suggestion
from cogcli.core.step_path import StepPath
from cogcli.core.terminal_text import LONGEST_SHOWN, truncate, truncate_bytes, visible, visible_block
from cogcli.events.envelope import Event, to_json
from cogcli.report.glyphs import style_of
from cogcli.report.humanize import duration, fuzzy_time
from cogcli.report.run_view import StepView
from cogcli.report.styled_text import StyledLine

if TYPE_CHECKING:
    from cogcli.cli.context import CommandContext
    from cogcli.report.lineage import TargetFlow

LISTED = ("tsv", "csv", "md")
DRAWN = ("mermaid", "dot")
EXPORTED = ("otlp", "chrome")


def view_of(flags: TraceFlags) -> str:
    """The view of the flags. Raises UsageError where format and view exclude each other."""
    view, format = flags.view, flags.format or "text"
    if flags.why is not None:
        if view is not None or format != "text":
            raise UsageError(
                "usage.flag", "`--why` is a view of its own", hint="leave --view and --format out"
            )
        return "why"
    if format in EXPORTED:
        if view is not None or flags.step is not None:
            raise UsageError(
                "usage.value",
                f"`--format {format}` exports the whole run",
                hint="leave --view and --step out",
            )
        return "export"
    if format in DRAWN:
        if view not in (None, "tree"):
            raise UsageError("usage.value", f"`--format {format}` draws the tree", hint="leave --view out")
        return "graph"
    if format in LISTED and view in (None, "tree"):
        if view == "tree":
            raise UsageError("usage.value", f"`--format {format}` is for tables", hint="as in --view table")
        return "table"
    if format == "jsonl" and view in (None, "tree"):
        return "events"
    return view or "tree"


def answer(context: CommandContext, view: str, shown: TracedEpisode) -> None:
    """Write a view to stdout; to stderr, what an unfinished run waits for and the commands that continue it."""
    _VIEWS[view](context, shown)
    if view == "export" or context.screen.quiet or _is_list_format(shown):
        return
    from cogcli.cli.render_error import next_lines

    waiting = (
        next_actions.waiting_lines(context, shown, width=context.screen.err.width, in_tree=False)
        if view != "tree"
        else []
    )
    for line in waiting + next_lines(next_actions.next_commands(context, shown)):
        context.screen.notify_line(line)


def into_file(context: CommandContext, view: str, shown: TracedEpisode, path: str) -> None:
    """Write a view to a new file, without colour and cut lines.

    Raises UsageError `output.exists`, EnvironmentRefusal `env.disk`.
    """
    from io import StringIO

    from cogcli.cli.streams import OutputStream

    screen, before, whole = context.screen, context.screen.out, StringIO()
    try:
        screen.out = OutputStream(whole, {}, "never")
        _VIEWS[view](context, shown)
    finally:
        screen.out = before
    try:
        with open(path, "x", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.write(whole.getvalue())
    except FileExistsError as error:
        raise file_exists(path) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no such name"
        raise EnvironmentRefusal(
            "env.disk", f"`{path}` cannot be written: {reason}", hint="free some space, or name another file"
        ) from error


def file_exists(path: str) -> UsageError:
    """The error for a file that `-o` would overwrite."""
    return UsageError("output.exists", f"`{path}` exists", hint="remove it, or name another file")


def episode_object(context: CommandContext, view: str, shown: TracedEpisode) -> dict[str, Any]:
    """`trace` of the envelope, with the rows or the object of the view."""
    from cogcli.report.table import rows

    root = shown.fold.root
    body = {
        "status": shown.status,
        "skill": root.skill if root else None,
        "version": root.version if root else None,
        "started_at": root.started_at if root else None,
        "duration_ms": root.ms if root else None,
        "error": root.error if root else None,
        "steps": rows(shown.fold, only=shown.only),
        "waits": [ask._asdict() for ask in shown.unfinished.asks],
        "next": next_actions.next_commands(context, shown),
    }
    if not shown.fold.chained:
        body["actions"] = shown.fold.actions
    more = _OBJECTS.get(view)
    return body | ({view: more(context, shown)} if more else {})


# -- the tree ----------------------------------------------------------------------------------------------------------


def tree_lines(context: CommandContext, shown: TracedEpisode, *, on_stderr: bool = False) -> list[StyledLine]:
    """Head line, tree and totals; for stdout, or for stderr during `trace SKILL`."""
    from cogcli.report.tree import footer, header, tree

    stream = context.screen.err if on_stderr else context.screen.out
    now = context.settings.clock.now()
    width, glyphs, fold = stream.width, stream.glyphs, shown.fold
    lines = _note(shown)
    lines.append(header(fold, glyphs, status=shown.status_text, now=now, width=width))
    lines += tree(fold, glyphs, status=shown.status_text, width=width, only=shown.only)
    if not shown.only:
        lines.append(footer(fold, glyphs))
    return lines


def _note(shown: TracedEpisode) -> list[StyledLine]:
    return [[(visible(shown.note), "dim")]] if shown.note else []


def _tree(context: CommandContext, shown: TracedEpisode) -> None:
    waiting = next_actions.waiting_lines(context, shown, width=context.screen.out.width, in_tree=True)
    context.screen.answer_lines([*tree_lines(context, shown), *waiting, *_io(context, shown)])


def _io(context: CommandContext, shown: TracedEpisode) -> list[StyledLine]:
    """With `--io`, the input, attempts and output of each step."""
    lines: list[StyledLine] = []
    if shown.flags.io:
        for run in shown.fold.runs.values():
            for step in run.steps.values():
                if not shown.only or StepPath(step.id).within(shown.only):
                    lines += [
                        [("", "")],
                        [(visible(step.id), "bold")],
                        *_step_values(step, _value_limit(shown.flags)),
                    ]
    return lines


def _value_limit(flags: TraceFlags) -> int | None:
    """How many bytes of one value are written; None (all) in a file."""
    return None if flags.o is not None else LONGEST_SHOWN


def _step_values(step: StepView, most: int | None) -> list[StyledLine]:
    lines = _block("input", step.input, most)
    several = len(step.attempts) > 1
    for number, attempt in enumerate(step.attempts, start=1):
        if several:
            words = (
                attempt.get("binding_id"),
                attempt.get("status"),
                attempt.get("code"),
                attempt.get("message"),
            )
            lines.append(
                [(f"  attempt {number}  ", "dim"), (visible("  ".join(str(w) for w in words if w)), "")]
            )
        for name in ("request", "reply"):
            lines += _block(name, attempt.get(name), most)
        for name in ("printed", "stderr"):
            lines += _text_block(name, attempt.get(name), most)
        noticed = attempt.get("notices")
        lines += _text_block(
            "noticed", "\n".join(map(str, noticed)) if isinstance(noticed, list) else None, most
        )
    return lines + _block("output", step.output, most) + _block("error", step.error, most)


def _block(word: str, value: Any, most: int | None) -> list[StyledLine]:
    if value is None:
        return []
    from cogcli.cli.envelope import dumps

    return _lines(word, dumps(value, indent=True), most)


def _text_block(word: str, text: Any, most: int | None) -> list[StyledLine]:
    """The lines of a text that a call printed; none for an empty one."""
    return _lines(word, text.rstrip("\n"), most) if isinstance(text, str) and text else []


def _lines(word: str, block: str, most: int | None) -> list[StyledLine]:
    head, more = truncate_bytes(block, most)
    text = [*visible_block(head).split("\n"), *([more] if more else [])]
    return [[(f"  {word if n == 0 else '':<7}  ", "dim"), (line, "")] for n, line in enumerate(text)]


# -- tables ------------------------------------------------------------------------------------------------------------


def _columns(context: CommandContext, names: tuple[str, ...]) -> list[Column]:
    now, glyphs = context.settings.clock.now(), context.screen.out.glyphs
    special = {
        "status": Column("status", shown=lambda word: f"{glyphs.sign(word)} {word}", style=style_of),
        "started_at": Column("started_at", title="started_at", shown=lambda text: fuzzy_time(text, now)),
        "start_ms": Column("start_ms", title="start_ms", shown=duration, right=True),
        "ms": Column("ms", shown=duration, right=True),
    }
    return [special.get(name, Column(name, title=name)) for name in names]


def _table(context: CommandContext, shown: TracedEpisode) -> None:
    from cogcli.report.table import COLUMNS, rows

    show(context, _columns(context, COLUMNS), rows(shown.fold, only=shown.only), shown.flags)


def _timeline(context: CommandContext, shown: TracedEpisode) -> None:
    from cogcli.report.timeline import COLUMNS, rows, timeline

    if _is_list_format(shown):
        show(context, _columns(context, COLUMNS), rows(shown.fold, only=shown.only), shown.flags)
        return
    out = context.screen.out
    context.screen.answer_lines(
        _note(shown) + timeline(shown.fold, out.glyphs, width=out.width, only=shown.only)
    )


def _timeline_rows(context: CommandContext, shown: TracedEpisode) -> list[dict[str, Any]]:
    from cogcli.report.timeline import rows

    return rows(shown.fold, only=shown.only)


def _is_list_format(shown: TracedEpisode) -> bool:
    return shown.flags.format not in (None, "text")


# -- lineage -----------------------------------------------------------------------------------------------------------


def _targets(shown: TracedEpisode) -> list[TargetFlow]:
    from cogcli.app.state_document import declared_specs
    from cogcli.report.lineage import Lineage, targets

    found = targets(shown.fold, Lineage(shown.events), declared_specs(shown.directory, shown.events))
    if not shown.only:
        return found
    return [
        target
        for target in found
        if shown.only in target.readers or any(write.step == shown.only for write in target.writes)
    ]


def _lineage(context: CommandContext, shown: TracedEpisode) -> None:
    from cogcli.report.lineage import COLUMNS, lineage, rows

    if _is_list_format(shown):
        show(context, _columns(context, COLUMNS), rows(_targets(shown)), shown.flags)
        return
    out, found = context.screen.out, _targets(shown)
    if not found and not shown.fold.chained:
        context.screen.answer_lines([[("this log does not tell what its steps read and wrote", "dim")]])
        return
    context.screen.answer_lines(_note(shown) + lineage(found, out.glyphs, width=out.width))


def _lineage_rows(context: CommandContext, shown: TracedEpisode) -> list[dict[str, Any]]:
    from cogcli.report.lineage import rows

    return rows(_targets(shown))


def _why(context: CommandContext, shown: TracedEpisode) -> None:
    from cogcli.report.why import why

    context.screen.answer_lines(why(_chains(context, shown), context.screen.out.glyphs))


def _chains(context: CommandContext, shown: TracedEpisode) -> list[list[str]]:
    from cogcli.app.state_document import declared_specs
    from cogcli.report.lineage import Lineage, overlap, targets
    from cogcli.report.why import causes, known_places

    reference = shown.flags.why or ""
    flow, specs = Lineage(shown.events), declared_specs(shown.directory, shown.events)
    places = known_places(flow, targets(shown.fold, flow, specs))
    if not reference or not any(overlap(reference, place) for place in places):
        there = (
            f"there is {', '.join(places[:10])}" if places else "nothing is told of what was read or written"
        )
        hint = suggestion(reference, places) or there
        raise UsageError(
            "usage.value", f"`--why {reference[:80]}`: nothing was read or written there", hint=hint
        )
    return causes(reference, shown.fold, flow, specs)


# -- graph and events --------------------------------------------------------------------------------------------------


def _graph(context: CommandContext, shown: TracedEpisode) -> None:
    from cogcli.report.graph import dot, graph_of, mermaid

    draw = dot if shown.flags.format == "dot" else mermaid
    context.screen.answer(draw(graph_of(shown.fold)))


def _graph_object(context: CommandContext, shown: TracedEpisode) -> dict[str, Any]:
    from cogcli.report.graph import graph_of

    return graph_of(shown.fold).as_object()


_EVENT_COLUMNS = ("seq", "timestamp", "event_type", "step_id", "agent_id", "run_id", "id")


def _events(context: CommandContext, shown: TracedEpisode) -> None:
    if shown.flags.format in LISTED:
        rows = [{name: getattr(event, name) for name in _EVENT_COLUMNS} for event in shown.events]
        show(context, [Column(name, title=name) for name in _EVENT_COLUMNS], rows, shown.flags)
        return
    write = EventPrinter(context, shown.flags)
    for event in shown.events:
        write(event)


class EventPrinter:
    """Writes events to stdout one by one, in the given format."""

    def __init__(self, context: CommandContext, flags: TraceFlags) -> None:
        from cogcli.report.table import EventLines

        self._screen = context.screen
        self._jsonl = flags.format == "jsonl"
        self._full = flags.full
        self._most = _value_limit(flags)
        self._lines = EventLines()

    def __call__(self, event: Event) -> None:
        """Write one event."""
        self._screen.answer(self._text(event) + "\n")

    def _text(self, event: Event) -> str:
        if self._jsonl:
            from cogcli.cli.envelope import dumps

            return dumps(to_json(event))
        if self._full:
            from cogcli.report.table import sections

            return "\n".join([*sections(event, self._most), ""])
        line, width = self._lines.line(event), self._screen.out.width
        return line if width is None else truncate(line, width)


# -- exports -----------------------------------------------------------------------------------------------------------


def _export_object(context: CommandContext, shown: TracedEpisode) -> dict[str, Any]:
    from cogcli.report.trace_export import trace_spans

    trace = trace_spans(shown.events, io=shown.flags.io)
    if shown.flags.format == "chrome":
        from cogcli.report.chrome import chrome

        return chrome(trace)
    from cogcli.report.otlp import otlp

    return otlp(trace)


def _export(context: CommandContext, shown: TracedEpisode) -> None:
    from cogcli.cli.envelope import dumps

    context.screen.answer(dumps(_export_object(context, shown)) + "\n")


_VIEWS = {
    "tree": _tree, "table": _table, "timeline": _timeline, "lineage": _lineage, "why": _why, "graph": _graph,
    "events": _events, "export": _export,
}  # fmt: skip
_OBJECTS = {
    "timeline": _timeline_rows, "lineage": _lineage_rows, "why": _chains, "graph": _graph_object,
    "export": _export_object,
}  # fmt: skip
