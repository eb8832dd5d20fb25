"""A comparison of several episodes in columns. Each is compared with the first, as by `diff`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.report.compare import SAME, ComparedEpisode, DiffLine, EpisodeDiff, compare
from cogcli.report.humanize import duration
from cogcli.report.page_values import page_text
from cogcli.report.styled_text import UNICODE

_WHOLE: Final = ("steps", "outputs")
"""Areas that are shown in full. Other areas show only differences."""
_LONGEST: Final = 200


class PageRow(NamedTuple):
    """One item, with a cell per episode. `differs`: whether a cell differs from the first one."""

    name: str
    cells: list[str]
    differs: bool


class PageComparison(NamedTuple):
    """The areas in order, each with its rows. `heads` contains the episode ids."""

    heads: list[str]
    areas: list[tuple[str, list[PageRow]]]


def compare_all(sides: Sequence[ComparedEpisode]) -> PageComparison | None:
    """Return the comparison of two episodes or more, or None for one."""
    if len(sides) < 2:
        return None
    first = sides[0]
    diffs = [compare(first, other) for other in sides]
    names = dict.fromkeys(name for diff in diffs for name in diff.areas)
    areas = {"run": _run_rows(sides)} | {area: _area_rows(area, diffs, sides) for area in names}
    shown = [(area, rows) for area, rows in areas.items() if rows]
    return PageComparison([side.id for side in sides], shown)


def _area_rows(
    area: str, diffs: Sequence[EpisodeDiff], sides: Sequence[ComparedEpisode]
) -> list[PageRow]:
    """Return the rows of an area that the page displays."""
    found = [{line.name: line for line in diff.areas.get(area, ())} for diff in diffs]
    names = dict.fromkeys(name for lines in found for name in lines)
    rows = [_build_row(area, name, found, sides) for name in names]
    return [row for row in rows if row.differs or area in _WHOLE]


def _run_rows(sides: Sequence[ComparedEpisode]) -> list[PageRow]:
    rows = {
        "skill": [side.run.title for side in sides],
        "outcome": [f"{UNICODE.outcome(side.status)} {side.status}" for side in sides],
        "took": [duration(side.run.ms) for side in sides],
        "started": [side.run.started_at[:19].replace("T", " ") for side in sides],
    }
    return [
        PageRow(name, cells, name in rows and len(set(cells)) > 1) for name, cells in rows.items()
    ]


def _build_row(
    area: str, name: str, comparisons: list[dict[str, DiffLine]], sides: Sequence[ComparedEpisode]
) -> PageRow:
    """Return the row of one item. The first episode is the `before` side of each comparison."""
    differs = any(name in lines and lines[name].how != SAME for lines in comparisons)
    cells = []
    for lines, side in zip(comparisons, sides, strict=True):
        line = lines.get(name)
        cells.append(
            _render_step(name, side, line)
            if area == "steps"
            else _render_value(area, line.after if line else None)
        )
    return PageRow(name, cells, differs)


def _render_step(name: str, side: ComparedEpisode, line: DiffLine | None) -> str:
    step = side.run.steps.get(name)
    if step is None:
        return ""
    what = f"other {line.what}" if line and line.what and line.how != SAME else ""
    return " ".join(
        part for part in (UNICODE.sign(step.status), step.status, duration(step.ms), what) if part
    )


def _render_value(area: str, value: object) -> str:
    if area == "specs" and isinstance(value, str):
        return f"{value[:19]}…"
    text = "" if value is None else page_text(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
