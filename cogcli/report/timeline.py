"""A run as bars on a time axis (docs/reference/command-line.md#views): the steps that began, in plan order.

A column of the axis stands for the same time in every row. Where the width is too small, columns stand for more time;
below a few columns only names and times are left.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from cogcli.core.terminal_text import cells, pad, shorten_middle, truncate, visible
from cogcli.report.humanize import duration, milliseconds_between
from cogcli.report.run_fold import RunFold
from cogcli.report.run_view import Branch, StepView
from cogcli.report.styled_text import ASCII, Glyphs, StyledLine, style_of
from cogcli.report.unfinished_runs import CUT_OFF, IN_DOUBT, WAITS

COLUMNS: Final = ("step_id", "status", "start_ms", "ms")
_TICKS: Final = 5
_TICK_COLUMNS: Final = 6
_WIDE: Final = 110
_LEAST: Final = 10
_MINUTE: Final = 60_000


class Bar(NamedTuple):
    """When a step began, counted from the start of the run, and how long it took so far."""

    step: StepView
    start_ms: int
    ms: int

    @property
    def end_ms(self) -> int:
        """When it ended."""
        return self.start_ms + self.ms


def bars(fold: RunFold, *, only: str = "", turns: bool = False) -> list[Bar]:
    """The steps of the run that began; of one step, with all that is inside it. With `turns` each turn of an agent's
    run before its steps."""
    found = []
    grouped = fold.grouped(only) if turns else fold.branches(only)
    marks = {turn.step.id for turn in fold.turns.turns}
    shown = _inside(grouped) if only else _with_steps_of(grouped, marks)
    for step in shown:
        if fold.root is None or not step.started_at:
            continue
        start, ms = milliseconds_between(fold.root.started_at, step.started_at), step.ms
        if ms is None:
            ms = milliseconds_between(step.started_at, step.ended_at or fold.last)
        if start is not None and ms is not None:
            found.append(Bar(step, start, ms))
    return found


def _with_steps_of(branches: list[Branch], turns: set[str]) -> list[StepView]:
    """The top of each branch, and of a turn its steps."""
    parts = [
        (branch.step, *(one.step for one in branch.below if branch.step.id in turns)) for branch in branches
    ]
    return [step for part in parts for step in part]


def _inside(branches: list[Branch]) -> list[StepView]:
    return [step for branch in branches for step in (branch.step, *_inside(branch.below))]


def rows(fold: RunFold, *, only: str = "") -> list[dict[str, Any]]:
    """The bars as rows of a table."""
    return [
        {"step_id": step.id, "status": step.status, "start_ms": start, "ms": ms}
        for step, start, ms in bars(fold, only=only)
    ]


class _Axis(NamedTuple):
    """`unit` milliseconds between two ticks, which are `tick` columns apart; `columns` in all."""

    unit: int
    tick: int
    columns: int

    def at(self, ms: int) -> int:
        """The column of a moment."""
        return round(ms * self.tick / self.unit)


def timeline(fold: RunFold, glyphs: Glyphs, *, width: int | None, only: str = "") -> list[StyledLine]:
    """The axis and one line per bar."""
    found = bars(fold, only=only, turns=True)
    if not found:
        return []
    total = max(bar.end_ms for bar in found)
    if not only and fold.root and fold.root.ms:
        total = max(total, fold.root.ms)
    first = min(bar.start_ms for bar in found) if only else 0
    names = [visible(bar.step.id if only else bar.step.name) for bar in found]
    sign = max(cells(glyphs.sign(bar.step.status)) for bar in found)
    name = max(map(cells, names))
    times = max(cells(_took(bar)) for bar in found)
    words = max(cells(_ended_how(bar)) for bar in found)
    room = None if width is None else width - (2 + sign + 1 + name + 2) - (2 + times) - (words and 2 + words)
    axis = _axis(max(1, total - first), room, _TICK_COLUMNS if width is None or width < _WIDE else 10)
    lines: list[StyledLine] = [] if axis is None else [_head(2 + sign + 1 + name + 2, axis, first)]
    for bar, text in zip(found, names, strict=True):
        lead = pad(glyphs.sign(bar.step.status), sign)
        drawn = _drawn(bar, axis, first, glyphs) if axis else ""
        line: StyledLine = [
            (f"  {lead} ", style_of(bar.step.status)), (pad(text, name), ""),
            (f"  {drawn}" if axis else "", style_of(bar.step.status)), (f"  {_took(bar):>{times}}", ""),
            (f"  {word}" if (word := _ended_how(bar)) else "", style_of(bar.step.status)),
        ]  # fmt: skip
        lines.append(line if axis or width is None else _narrow(text, lead, bar, width))
    return lines


def _took(bar: Bar) -> str:
    return duration(bar.ms) + ("…" if bar.step.status == "running" else "")


def _ended_how(bar: Bar) -> str:
    """What became of a step that did not end by itself."""
    return bar.step.status if bar.step.status in (CUT_OFF, IN_DOUBT, WAITS) else ""


def _narrow(name: str, sign: str, bar: Bar, width: int) -> StyledLine:
    room = max(1, width - cells(sign) - 5 - cells(_took(bar)))
    lead = (f"  {sign} ", style_of(bar.step.status))
    return [lead, (shorten_middle(name, room), ""), (f"  {_took(bar)}", "")]


def _axis(total: int, room: int | None, tick: int) -> _Axis | None:
    """The axis of a run; None where there is no room for one."""
    if room is not None and room < _LEAST:
        return None
    unit = unit_of(total)
    if room is not None:
        while tick > 1 and -(-total * tick // unit) > room:
            tick -= 1
    columns = max(-(-total * tick // unit), 1)
    return _Axis(unit, tick, columns if room is None else min(columns, room))


def unit_of(total: int) -> int:
    """The time between two ticks, so that there are at most five: 1, 2 or 5 with zeros; minutes and hours as such."""
    scale = 1
    while True:
        for step in (1, 2, 5):
            unit = step * scale
            if total <= unit * _TICKS:
                return unit
        scale *= 10


def _head(left: int, axis: _Axis, first: int) -> StyledLine:
    text = ""
    position = 0
    while position * axis.tick < axis.columns:
        label = label_of(first + position * axis.unit, axis.unit)
        at = position * axis.tick
        if not text or at > cells(text):
            text = pad(text, at) + label
        position += 1
    return [(" " * left + text, "dim")]


def label_of(ms: int, unit: int) -> str:
    if unit < 100:
        return f"{ms}ms"
    if unit >= 10 * _MINUTE:
        return f"{ms / _MINUTE:.0f}m"
    return f"{ms / 1000:.1f}s" if ms and unit % 1000 else f"{ms // 1000}s"


def _drawn(bar: Bar, axis: _Axis, first: int, glyphs: Glyphs) -> str:
    block = "#" if glyphs is ASCII else "█"
    start = min(axis.at(bar.start_ms - first), axis.columns - 1)
    length = max(1, min(round(bar.ms * axis.tick / axis.unit), axis.columns - start))
    return pad(" " * start + truncate(block * length, axis.columns), axis.columns)
