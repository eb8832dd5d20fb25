"""A run as bars on a time axis (docs/reference/command-line.md#views). It has the steps that
started, in plan order.

A column is the same time in every row. On a narrow screen a column is a longer time. On a very
narrow screen only names and times are displayed."""

from __future__ import annotations

from itertools import count
from typing import Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.terminal_text import cells, pad, shorten_middle, truncate, visible
from cogcli.declarations.value_types import Json
from cogcli.episode.history import History
from cogcli.episode.run_history import Branch, StepHistory
from cogcli.report.humanize import duration, milliseconds_between
from cogcli.report.styled_text import ASCII, CUT_OFF, IN_DOUBT, WAITS, Glyphs, StyledLine, style_of

COLUMNS: Final = ("step_id", "status", "start_ms", "ms")
_TICKS: Final = 5
_TICK_COLUMNS: Final = 6
_WIDE_TICK_COLUMNS: Final = 10
_WIDE: Final = 110
_MIN_WIDTH: Final = 10
_MINUTE: Final = 60_000


class Bar(NamedTuple):
    """The start of a step, in milliseconds since the start of the run, and its duration so far."""

    step: StepHistory
    start_ms: int
    ms: int

    @property
    def end_ms(self) -> int:
        """Return the end of the step, in milliseconds since the start of the run."""
        return self.start_ms + self.ms


def bars(fold: History, *, only: str = "", turns: bool = False) -> list[Bar]:
    """Return bars for the steps that started, or only for one step and its parts.

    With `turns`, each turn of an agent's run comes before its steps."""
    found = []
    grouped = fold.grouped(only) if turns else fold.branches(only)
    marks = {turn.step.id for turn in fold.turns.turns}
    shown = _flatten_branches(grouped) if only else _with_steps_of(grouped, marks)
    for step in shown:
        if fold.root is None or not step.started_at:
            continue
        start = milliseconds_between(fold.root.started_at, step.started_at)
        ms = _measure_step(step, fold.last)
        if start is not None and ms is not None:
            found.append(Bar(step, start, ms))
    return found


def _measure_step(step: StepHistory, last: str) -> int | None:
    """Return the milliseconds of a step. A step that has not ended lasts until the last event."""
    if step.ms is not None:
        return step.ms
    return milliseconds_between(step.started_at, step.ended_at or last)


def _with_steps_of(branches: list[Branch], turns: set[str]) -> list[StepHistory]:
    """Return the top step of each branch. A turn is followed by its steps."""
    parts = [
        (branch.step, *(one.step for one in branch.below if branch.step.id in turns))
        for branch in branches
    ]
    return [step for part in parts for step in part]


def _flatten_branches(branches: list[Branch]) -> list[StepHistory]:
    return [step for branch in branches for step in (branch.step, *_flatten_branches(branch.below))]


def rows(fold: History, *, only: str = "") -> list[Json]:
    """Return the bars as rows of a table."""
    return [
        {"step_id": step.id, "status": step.status, "start_ms": start, "ms": ms}
        for step, start, ms in bars(fold, only=only)
    ]


class _Axis(NamedTuple):
    """The time axis. A tick is `unit` milliseconds and `tick` columns after the previous one.
    `columns` is the width of the axis."""

    unit: int
    tick: int
    columns: int

    def at(self, ms: int) -> int:
        """Return the column of a time."""
        return round(ms * self.tick / self.unit)


class _Widths(NamedTuple):
    """The widths, in columns, of the parts of a line before and after its bar."""

    sign: int
    name: int
    took: int
    ending: int

    @property
    def width_before_bar(self) -> int:
        """Return the number of columns before the bar."""
        return 2 + self.sign + 1 + self.name + 2

    @property
    def width_after_bar(self) -> int:
        """Return the number of columns after the bar."""
        return 2 + self.took + (2 + self.ending if self.ending else 0)


def _fit_axis(ms: int, widths: _Widths, width: int | None) -> _Axis | None:
    """Return the axis for this time within the width of a terminal, or None if the bars have no room."""
    room = None if width is None else width - widths.width_before_bar - widths.width_after_bar
    tick = _TICK_COLUMNS if width is None or width < _WIDE else _WIDE_TICK_COLUMNS
    return _choose_axis(ms, room, tick)


def timeline(
    fold: History, glyphs: Glyphs, *, width: int | None, only: str = ""
) -> list[StyledLine]:
    """Return the axis and one line per bar."""
    found = bars(fold, only=only, turns=True)
    if not found:
        return []
    names = [visible(bar.step.id if only else bar.step.name) for bar in found]
    named = list(zip(found, names, strict=True))
    widths = _measure_widths(found, names, glyphs)
    first, last = _find_span(found, fold, only)
    axis = _fit_axis(max(1, last - first), widths, width)
    if axis is not None:
        lines = [_render_axis(widths.width_before_bar, axis, first)]
        for bar, name in named:
            drawn = f"  {_draw_bar(bar, axis, first, glyphs)}"
            lines.append(_render_bar(bar, name, drawn, glyphs, widths))
        return lines
    if width is not None:
        return [_render_narrow(bar, name, glyphs, widths.sign, width) for bar, name in named]
    return [_render_bar(bar, name, "", glyphs, widths) for bar, name in named]


def _measure_widths(bars: list[Bar], names: list[str], glyphs: Glyphs) -> _Widths:
    return _Widths(
        max(cells(glyphs.sign(bar.step.status)) for bar in bars),
        max(map(cells, names)),
        max(cells(_render_duration(bar)) for bar in bars),
        max(cells(_unfinished_status(bar)) for bar in bars),
    )


def _find_span(bars: list[Bar], fold: History, is_part: str) -> tuple[int, int]:
    """Return the start and end of the axis: those of the run, or with `is_part` those of the bars."""
    last = max(bar.end_ms for bar in bars)
    if is_part:
        return min(bar.start_ms for bar in bars), last
    return 0, max(last, fold.root.ms or 0) if fold.root else last


def _render_bar(bar: Bar, name: str, drawn: str, glyphs: Glyphs, widths: _Widths) -> StyledLine:
    style, ending = style_of(bar.step.status), _unfinished_status(bar)
    return [
        (f"  {pad(glyphs.sign(bar.step.status), widths.sign)} ", style),
        (pad(name, widths.name), ""),
        (drawn, style),
        (f"  {_render_duration(bar):>{widths.took}}", ""),
        (f"  {ending}" if ending else "", style),
    ]


def _render_duration(bar: Bar) -> str:
    return duration(bar.ms) + ("…" if bar.step.status == "running" else "")


def _unfinished_status(bar: Bar) -> str:
    """Return the status of a step that has not ended by itself; empty for any other step."""
    return bar.step.status if bar.step.status in (CUT_OFF, IN_DOUBT, WAITS) else ""


def _render_narrow(bar: Bar, name: str, glyphs: Glyphs, sign: int, width: int) -> StyledLine:
    """Return the line of a bar without an axis, for a narrow screen."""
    room = max(1, width - sign - 5 - cells(_render_duration(bar)))
    lead = (f"  {pad(glyphs.sign(bar.step.status), sign)} ", style_of(bar.step.status))
    return [lead, (shorten_middle(name, room), ""), (f"  {_render_duration(bar)}", "")]


def _choose_axis(total: int, available: int | None, tick: int) -> _Axis | None:
    """Return the axis of a run, or None if it does not fit."""
    if available is not None and available < _MIN_WIDTH:
        return None
    unit = choose_tick_unit(total)
    if available is not None:
        while tick > 1 and -(-total * tick // unit) > available:
            tick -= 1
    columns = max(-(-total * tick // unit), 1)
    return _Axis(unit, tick, columns if available is None else min(columns, available))


def choose_tick_unit(total: int) -> int:
    """Return the time between two ticks in milliseconds: 1, 2 or 5 times a power of ten, so that
    there are at most five ticks."""
    units = (step * 10**zeros for zeros in count() for step in (1, 2, 5))
    found: int = next(unit for unit in units if total <= unit * _TICKS)
    return found


def _render_axis(indent: int, axis: _Axis, first: int) -> StyledLine:
    text = ""
    for position, at in enumerate(range(0, axis.columns, axis.tick)):
        if not text or at > cells(text):
            text = pad(text, at) + label_of(first + position * axis.unit, axis.unit)
    return [(" " * indent + text, "dim")]


def label_of(ms: int, unit: int) -> str:
    if unit < 100:
        return f"{ms}ms"
    if unit >= 10 * _MINUTE:
        return f"{ms / _MINUTE:.0f}m"
    return f"{ms / 1000:.1f}s" if ms and unit % 1000 else f"{ms // 1000}s"


def _draw_bar(bar: Bar, axis: _Axis, first: int, glyphs: Glyphs) -> str:
    block = "#" if glyphs is ASCII else "█"
    start = min(axis.at(bar.start_ms - first), axis.columns - 1)
    length = max(1, min(round(bar.ms * axis.tick / axis.unit), axis.columns - start))
    return pad(" " * start + truncate(block * length, axis.columns), axis.columns)
