"""A graph as text in layers (docs/reference/command-line.md#views): a row of steps, with lines down to their
dependents.

Crossing lines are drawn with a gap; lines that meet are joined.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.terminal_text import cells, shorten_middle, visible
from cogcli.report.graph import GraphView, Node
from cogcli.report.layering import lay_out
from cogcli.report.styled_text import ASCII, Glyphs, StyledLine, style_of

MAX_NODES: Final = 120
"""The largest number of steps that is drawn. A larger graph is listed."""
_GAP: Final = 3
_LONGEST: Final = 36
_N, _E, _S, _W = 1, 2, 4, 8
_JOINTS: Final = {
    _N | _S: "│", _E | _W: "─", _N | _E: "└", _N | _W: "┘", _S | _E: "┌", _S | _W: "┐", _N | _S | _E: "├",
    _N | _S | _W: "┤", _E | _W | _S: "┬", _E | _W | _N: "┴", _N | _E | _S | _W: "┼",
}  # fmt: skip


class _Net(NamedTuple):
    """Edges between two layers that share one horizontal line. `sources` and `targets` are the
    columns where they start and end."""

    sources: tuple[int, ...]
    targets: tuple[int, ...]

    @property
    def first(self) -> int:
        return min(self.sources + self.targets)

    @property
    def last(self) -> int:
        return max(self.sources + self.targets)

    @property
    def is_straight(self) -> bool:
        return self.first == self.last


def layers(graph: GraphView, glyphs: Glyphs, *, width: int) -> list[StyledLine] | None:
    """Return the drawing, or None if it does not fit.

    The text of `uses` is next to the step names, otherwise below them. If neither fits, it is
    omitted."""
    if len(graph.nodes) > MAX_NODES or len({node.id for node in graph.nodes}) < len(graph.nodes):
        return None
    for texts in (_name_and_uses, _name_above_uses, _name_only):
        found = {node.id: texts(node, glyphs) for node in graph.nodes}
        drawing = _TextDrawing(graph, found, glyphs)
        if drawing.right_column + 2 <= width - 1:
            return list(drawing.lines())
    return None


def _node_name(node: Node, glyphs: Glyphs) -> str:
    sign = f"{glyphs.sign(node.status)} " if node.status else ""
    return sign + shorten_middle(visible(node.id), _LONGEST)


def _name_and_uses(node: Node, glyphs: Glyphs) -> list[str]:
    return [f"{_node_name(node, glyphs)}  {shorten_middle(visible(node.uses), _LONGEST)}".rstrip()]


def _name_above_uses(node: Node, glyphs: Glyphs) -> list[str]:
    return [_node_name(node, glyphs), shorten_middle(visible(node.uses), _LONGEST)]


def _name_only(node: Node, glyphs: Glyphs) -> list[str]:
    return [_node_name(node, glyphs)]


class _TextDrawing:
    """A graph in layers, with some lines of text for each step."""

    def __init__(self, graph: GraphView, texts: dict[str, list[str]], glyphs: Glyphs) -> None:
        self._texts = texts
        self._glyphs = glyphs
        self._styles = {
            node.id: style_of(node.status) if node.status else "bold" for node in graph.nodes
        }
        self._sizes = {id: max(map(cells, lines)) for id, lines in texts.items()}
        self._placed = lay_out(self._sizes, graph.edges, gap=_GAP, passing=1)
        self._left = {
            id: 2 + round(self._placed.centre[id] - size / 2) for id, size in self._sizes.items()
        }

    @property
    def right_column(self) -> float:
        """Return the column of the right end of the drawing, without its margin."""
        ends = (self._placed.centre[id] + size / 2 for id, size in self._sizes.items())
        return max(ends, default=0)

    def lines(self) -> Iterator[StyledLine]:
        """Yield the rows of each layer, and the rows of lines between two layers."""
        layers = self._placed.layers
        for number, layer in enumerate(layers):
            if number:
                yield from _render_channel(self._find_nets(layers[number - 1]), self._glyphs)
            for row in range(max((len(self._texts.get(id, ())) for id in layer), default=1)):
                yield self._render_row(layer, row)

    def _render_row(self, layer: list[str], row: int) -> StyledLine:
        line: StyledLine = []
        at = 0
        for id in layer:
            column, text, style = self._cell_at(id, row)
            if text:
                line += [(" " * (column - at), ""), (text, style)]
                at = column + cells(text)
        return line

    def _cell_at(self, id: str, row: int) -> tuple[int, str, str]:
        """Return column, text and style of a place in a row of its layer. Without text the place is empty."""
        if id not in self._texts:
            return self._center_column(id), _render_joint(_N | _S, self._glyphs), "dim"
        lines = self._texts[id]
        text = lines[row] if row < len(lines) else ""
        column = self._left[id] + (self._sizes[id] - cells(text)) // 2
        return column, text, self._styles[id] if row == 0 else "dim"

    def _center_column(self, id: str) -> int:
        return 2 + int(self._placed.centre[id])

    def _find_nets(self, layer: list[str]) -> list[_Net]:
        """Return the nets between one layer and the next. Steps with the same dependents share a
        net."""
        pairs: dict[str, set[str]] = {}
        for route in self._placed.routes.values():
            for one, other in pairwise(route):
                if one in layer:
                    pairs.setdefault(one, set()).add(other)
        groups: dict[tuple[str, ...], list[str]] = {}
        for source, targets in pairs.items():
            groups.setdefault(tuple(sorted(targets)), []).append(source)
        return [self._place_net(sources, targets) for targets, sources in groups.items()]

    def _place_net(self, sources: list[str], targets: tuple[str, ...]) -> _Net:
        """Return the columns of a net. A single edge goes straight down if its ends overlap."""
        net = _Net(
            tuple(map(self._center_column, sources)), tuple(map(self._center_column, targets))
        )
        if len(sources) == len(targets) == 1:
            firsts, lasts = zip(
                self._column_span(sources[0]), self._column_span(targets[0]), strict=True
            )
            low, high = max(firsts), min(lasts)
            if low <= high:
                near = min(max(net.sources[0], low), high)
                return _Net((near,), (near,))
        return net

    def _column_span(self, id: str) -> tuple[int, int]:
        """Return the first and the last column of a place."""
        if id not in self._texts:
            return self._center_column(id), self._center_column(id)
        return self._left[id], self._left[id] + self._sizes[id] - 1


def _render_channel(nets: list[_Net], glyphs: Glyphs) -> Iterator[StyledLine]:
    """Yield the rows between two layers: one for each horizontal line, or a single row of verticals."""
    tracks = _assign_rows(nets)
    for row in range(max(tracks, default=0) + 1):
        drawn: dict[int, int] = {}
        for net, track in zip(nets, tracks, strict=True):
            for column, arms in _find_arms(net, track, row).items():
                drawn[column] = _combine_arms(drawn.get(column, 0), arms)
        columns = range(max(drawn, default=0) + 1)
        text = "".join(_render_joint(drawn.get(column, 0), glyphs) for column in columns)
        yield [(text, "dim")]


def _find_arms(net: _Net, track: int, row: int) -> dict[int, int]:
    """Return the arms that a net draws in a row, by column. Its horizontal line is in the row `track`."""
    arms: dict[int, int] = defaultdict(int)
    bends = row == track and not net.is_straight
    for column in net.sources if row <= track else ():
        arms[column] |= _N if bends else _N | _S
    for column in net.targets if row >= track else ():
        arms[column] |= _S if bends else _N | _S
    if bends:
        for column in range(net.first, net.last):
            arms[column] |= _E
            arms[column + 1] |= _W
    return arms


def _combine_arms(first: int, second: int) -> int:
    """Return the arms to draw where two nets share a position. If one net only passes horizontally,
    the other is drawn and the line of the first has a gap."""
    for arms, crossing in ((first, second), (second, first)):
        if arms == _E | _W and crossing & (_N | _S):
            return crossing
    return first | second


def _assign_rows(nets: list[_Net]) -> list[int]:
    """Return the row of each net. Nets that overlap have different rows, and a net is above the
    nets that end in the column where it starts."""
    tracks = [0] * len(nets)
    bent = [n for n, net in enumerate(nets) if not net.is_straight]
    order: list[int] = []
    for n in sorted(bent, key=lambda n: nets[n].first):
        below = [
            m for m, other in enumerate(order) if set(nets[n].sources) & set(nets[other].targets)
        ]
        order.insert(min(below, default=len(order)), n)
    for place, n in enumerate(order):
        taken = {
            tracks[m] for m in order[:place] if nets[m].first <= nets[n].last + 1 and nets[n].first <= nets[m].last + 1
        }  # fmt: skip
        tracks[n] = max(taken, default=-1) + 1
    return tracks


def _render_joint(arms: int, glyphs: Glyphs) -> str:
    if not arms:
        return " "
    if glyphs is ASCII:
        return "|" if arms == _N | _S else "-" if arms == _E | _W else "+"
    return _JOINTS.get(arms, "│" if arms & (_N | _S) else "─")
