"""Drawings of a run as SVG: its steps in layers, and its bars on a time axis.

Geometry is in attributes, colour in classes of `page_files/drawing.css`. Every text is made visible and escaped here,
once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.terminal_text import cells, shorten_middle, visible
from cogcli.report.graph import GraphView
from cogcli.report.humanize import count_of, duration
from cogcli.report.layering import Layering, lay_out
from cogcli.report.styled_text import UNICODE, style_of
from cogcli.report.timeline import Bar, choose_tick_unit, label_of

_CELL: Final = 7.3
"""The largest width of one text column in pixels. An SVG cannot measure its text."""
_LINE: Final = 18
_PAD: Final = 12
_GAP: Final = 26
_BETWEEN: Final = 40
_LONGEST: Final = 34
_ROW: Final = 26
_BAR: Final = 12
MAX_BARS: Final = 150
"""The number of bars in a timeline. Later ones are only counted."""


class Box(NamedTuple):
    """The box of a step and its lines of text. The first line is bold. `is_place`: whether it is an
    input or output value."""

    id: str
    lines: tuple[str, ...]
    status: str = ""
    is_place: bool = False


class Arrow(NamedTuple):
    """An arrow from a box to a dependent one. `carries` is whether a value flows along the arrow."""

    start: str
    end: str
    carries: bool = True


def style_sheet(*names: str) -> str:
    """Return the style sheets of these names, concatenated."""
    return "\n".join(page_file(f"{name}.css").strip() for name in names)


def page_file(name: str) -> str:
    """Return the text of a file in `page_files`."""
    return (files("cogcli.report") / "page_files" / name).read_text(encoding="utf-8")


def standalone(drawing: str) -> str:
    """Return a drawing as a complete SVG file that includes its colors."""
    head, mark, rest = drawing.partition(">")
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n{head} xmlns="http://www.w3.org/2000/svg"{mark}'
        + (f"<style>{style_sheet('colours', 'drawing')}</style>{rest}\n")
    )


def label_with_sign(id: str, status: str) -> str:
    """Return the name of a step, with the sign of its status if it has one."""
    return f"{UNICODE.sign(status)} {id}" if status else id


def svg_file(graph: GraphView) -> str:
    """Return a graph as an SVG file: steps in layers, with the status of each step that ran."""
    boxes = [
        Box(
            node.id,
            tuple(line for line in (label_with_sign(node.id, node.status), node.uses) if line),
            node.status,
        )
        for node in graph.nodes
    ]
    arrows = [Arrow(*edge) for edge in graph.edges]
    description = count_of(len(boxes), "step")
    return standalone(graph_svg(boxes, arrows, title=graph.title, description=description))


def graph_svg(
    boxes: Sequence[Box], arrows: Iterable[Arrow], *, name: str = "graph", title: str, description: str
) -> str:  # fmt: skip
    """Return boxes in layers with arrows between them, as SVG. `name` identifies the drawing in its page."""
    lines = {box.id: _shorten_lines(box) for box in boxes}
    widths = {
        id: max(map(cells, texts), default=1) * _CELL + 2 * _PAD for id, texts in lines.items()
    }
    carried = {(arrow.start, arrow.end): arrow.carries for arrow in arrows}
    placed = lay_out(widths, carried, gap=_GAP, passing=2)
    size = {id: _measure_height(texts) for id, texts in lines.items()}
    heights = [max(size.get(id, 0) for id in layer) for layer in placed.layers]
    middle = _stack_layers(placed.layers, heights)
    drawn = [
        _draw_arrow(route, placed, middle, size, heights[0], carries=carried[edge])
        for edge, route in placed.routes.items()
    ]
    drawn += [
        _draw_box(box, lines[box.id], placed.centre[box.id], middle[box.id], widths[box.id])
        for box in boxes
    ]
    right = max((placed.centre[id] + widths[id] / 2 for id in widths), default=0)
    bottom = sum(heights) + _BETWEEN * max(0, len(heights) - 1)
    frame = f"-2 -2 {round(right) + 4} {round(bottom) + 4}"
    return _wrap_svg(
        "graph",
        name,
        frame,
        title,
        description,
        drawn,
        width=round(right) + 4,
        height=round(bottom) + 4,
    )


def _shorten_lines(box: Box) -> list[str]:
    return [shorten_middle(visible(line), _LONGEST) for line in box.lines]


def _stack_layers(layers: list[list[str]], heights: list[int]) -> dict[str, float]:
    """Return the vertical middle of each place in pixels, with the layers below each other."""
    middle: dict[str, float] = {}
    top = 0
    for layer, height in zip(layers, heights, strict=True):
        middle |= dict.fromkeys(layer, top + height / 2)
        top += height + _BETWEEN
    return middle


def _measure_height(lines: Sequence[str]) -> int:
    return len(lines) * _LINE + (14 if lines else 0)


def _draw_box(box: Box, lines: Sequence[str], centre: float, middle: float, width: float) -> str:
    left, top = centre - width / 2, middle - _measure_height(lines) / 2
    height = _measure_height(lines)
    radius = height // 2 if box.is_place else 7
    shape = f'<rect x="{_px(left)}" y="{_px(top)}" width="{_px(width)}" height="{height}" rx="{radius}"/>'
    texts = "".join(
        f'<text x="{_px(centre)}" y="{_px(top + 20 + n * _LINE)}"{_css_class("first" if n == 0 else "more")}>'
        f"{escape(line)}</text>"
        for n, line in enumerate(lines)
    )
    kind = "place" if box.is_place else "step"
    whole = f"<title>{escape(visible(' '.join(box.lines)))}</title>"
    return f"<g{_css_class(kind, _status_class(box.status))}>{whole}{shape}{texts}</g>"


def _draw_arrow(
    route: list[str], layering: Layering, middle: dict[str, float], size: dict[str, int], high: float, *, carries: bool
) -> str:  # fmt: skip
    """Return a curve from the lower edge of the first place to the upper edge of the last."""
    edges = [
        (layering.centre[id], middle[id] + side * size.get(id, high) / 2)
        for id in route
        for side in (-1, 1)
    ]
    points = edges[1:-1]
    x, y = points[0]
    path = f"M{_px(x)} {_px(y)}"
    for number, (to_x, to_y) in enumerate(points[1:]):
        bend = (to_y - y) / 2
        path += (
            f"V{_px(to_y)}"
            if number % 2 or to_x == x
            else f"C{_px(x)} {_px(y + bend)} {_px(to_x)} {_px(to_y - bend)} {_px(to_x)} {_px(to_y)}"
        )
        x, y = to_x, to_y
    head = f"M{_px(x - 4)} {_px(y - 7)}L{_px(x)} {_px(y)}L{_px(x + 4)} {_px(y - 7)}"
    return f'<path{_css_class("arrow", "" if carries else "order")} d="{path}"/><path class="head" d="{head}"/>'


def timeline_svg(
    bars: Sequence[Bar], total: int, *, name: str, title: str, description: str
) -> str:
    """Return bars on a time axis, as SVG.

    Positions are shares of the width, so that strings keep their size at any width. Names are in the
    left margin, and times in the right margin."""
    total = max(1, total, *(bar.end_ms for bar in bars[:MAX_BARS]))
    unit = choose_tick_unit(total)
    shown = bars[:MAX_BARS]
    bottom = len(shown) * _ROW + 24
    drawn = []
    for at in range(0, total + 1, unit):
        x = f"{100 * at / total:.3f}%"
        drawn.append(f'<line class="tick" x1="{x}" x2="{x}" y1="20" y2="{bottom}"/>')
        drawn.append(f'<text class="tick" x="{x}" y="12">{label_of(at, unit)}</text>')
    for number, bar in enumerate(shown):
        drawn.append(_draw_bar(bar, total, 24 + number * _ROW))
    if len(bars) > len(shown):
        rest = f"and {count_of(len(bars) - len(shown), 'step')} more"
        drawn.append(f'<text class="tick" x="0" y="{bottom + 14}">{rest}</text>')
        bottom += 22
    return _wrap_svg("timeline", name, "", title, description, drawn, height=bottom)


class ShareBar(NamedTuple):
    """A bar whose length is its share of the largest count."""

    name: str
    total: int


def shares_svg(bars: Sequence[ShareBar], *, name: str, title: str, description: str) -> str:
    """Return a bar per count, as SVG in the form of a timeline."""
    maximum = max(1, *(bar.total for bar in bars))
    drawn = []
    for number, bar in enumerate(bars):
        y = 8 + number * _ROW
        drawn.append(
            f"<g{_css_class('bar')}><title>{escape(f'{bar.name}: {bar.total:,}')}</title>"
            f'<text class="name" x="0" dx="-12" y="{y + 14}">{escape(bar.name)}</text>'
            f'<rect x="0" y="{y + 4}" width="{100 * bar.total / maximum:.3f}%" height="{_BAR}" rx="3"/>'
            f'<text class="took" x="100%" dx="12" y="{y + 14}">{bar.total:,}</text></g>'
        )
    height = 16 + len(bars) * _ROW
    return _wrap_svg("timeline", name, "", title, description, drawn, height=height)


def _draw_bar(bar: Bar, total: int, y: int) -> str:
    name, took = visible(bar.step.name), duration(bar.ms)
    start, width = 100 * min(bar.start_ms, total) / total, 100 * bar.ms / total
    label = escape(f"{name}: {bar.step.status}, {took} from {duration(bar.start_ms)} on")
    text = escape(f"{UNICODE.sign(bar.step.status)} {shorten_middle(name, 18)}")
    return (
        f"<g{_css_class('bar', _status_class(bar.step.status))}><title>{label}</title>"
        f'<text class="name" x="0" dx="-12" y="{y + 14}">{text}</text>'
        f'<rect x="{start:.3f}%" y="{y + 4}" width="{max(width, 0.35):.3f}%" height="{_BAR}" rx="3"/>'
        f'<text class="took" x="100%" dx="12" y="{y + 14}">{took}</text></g>'
    )


def _wrap_svg(
    kind: str, name: str, frame: str, title: str, description: str, drawn: Iterable[str], *, width: int = 0, height: int
) -> str:  # fmt: skip
    box = f' viewBox="{frame}"' if frame else ""
    wide = f' width="{width}"' if width else ""
    names = f'role="img" aria-labelledby="{name}-title {name}-desc"'
    described = f'<title id="{name}-title">{escape(visible(title))}</title>'
    described += f'<desc id="{name}-desc">{escape(visible(description))}</desc>'
    return f'<svg class="{kind}" {names}{box}{wide} height="{height}">{described}{"".join(drawn)}</svg>'


def _status_class(status: str) -> str:
    """Return the CSS class of a status; empty for a step that did not run."""
    return (style_of(status) or "dim") if status else ""


def _css_class(*names: str) -> str:
    given = " ".join(name for name in names if name)
    return f' class="{given}"' if given else ""


def _px(value: float) -> str:
    """Return a number of pixels in its shortest form."""
    return f"{value:.1f}".removesuffix(".0")
