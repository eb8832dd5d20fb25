"""A graph as text in layers (docs/reference/command-line.md#views): a row of steps, with lines down to their
dependents.

Crossing lines are drawn with a gap; lines that meet are joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from cogcli.base.terminal_text import cells, shorten_middle, visible
from cogcli.report.graph import GraphView, Node
from cogcli.report.layering import Layering, lay_out
from cogcli.report.styled_text import ASCII, Glyphs, StyledLine, style_of

MOST: Final = 120
"""The largest number of steps that is drawn. A larger graph is listed."""
_GAP: Final = 3
_LONGEST: Final = 36
_N, _E, _S, _W = 1, 2, 4, 8
_JOINTS: Final = {
    _N | _S: "│", _E | _W: "─", _N | _E: "└", _N | _W: "┘", _S | _E: "┌", _S | _W: "┐", _N | _S | _E: "├",
    _N | _S | _W: "┤", _E | _W | _S: "┬", _E | _W | _N: "┴", _N | _E | _S | _W: "┼",
}  # fmt: skip


class _Net(NamedTuple):
    """Edges between two layers that share one horizontal line: the columns where they start and end."""

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

    The text of `uses` is placed next to the step names, else below them, else left out.
    """
    if len(graph.nodes) > MOST or len({node.id for node in graph.nodes}) < len(graph.nodes):
        return None
    for texts in (_name_and_uses, _name_above_uses, _name_only):
        found = {node.id: texts(node, glyphs) for node in graph.nodes}
        sizes = {id: float(max(map(cells, lines))) for id, lines in found.items()}
        placed = lay_out(sizes, graph.edges, gap=_GAP, passing=1)
        right = max((placed.centre[id] + size / 2 for id, size in sizes.items()), default=0)
        if right + 2 <= width - 1:
            return list(_render_lines(graph, found, placed, glyphs))
    return None


def _name(node: Node, glyphs: Glyphs) -> str:
    sign = f"{glyphs.sign(node.status)} " if node.status else ""
    return sign + shorten_middle(visible(node.id), _LONGEST)


def _name_and_uses(node: Node, glyphs: Glyphs) -> list[str]:
    return [f"{_name(node, glyphs)}  {shorten_middle(visible(node.uses), _LONGEST)}".rstrip()]


def _name_above_uses(node: Node, glyphs: Glyphs) -> list[str]:
    return [_name(node, glyphs), shorten_middle(visible(node.uses), _LONGEST)]


def _name_only(node: Node, glyphs: Glyphs) -> list[str]:
    return [_name(node, glyphs)]


def _render_lines(
    graph: GraphView, texts: dict[str, list[str]], placed: Layering, glyphs: Glyphs
) -> Iterator[StyledLine]:
    nodes = {node.id: node for node in graph.nodes}
    left = {
        id: 2 + round(placed.centre[id] - max(map(cells, lines)) / 2) for id, lines in texts.items()
    }
    for number, layer in enumerate(placed.layers):
        for row in range(max((len(texts[id]) for id in layer if id in texts), default=1)):
            yield _render_node_row(layer, row, nodes, texts, left, placed, glyphs)
        if number + 1 < len(placed.layers):
            yield from _render_channel(_find_nets(number, placed, texts, left), glyphs)


def _render_node_row(
    layer: list[str], row: int, nodes: dict[str, Node], texts: dict[str, list[str]], left: dict[str, int],
    placed: Layering, glyphs: Glyphs,
) -> StyledLine:  # fmt: skip
    line: StyledLine = []
    at = 0
    for id in layer:
        if id not in texts:
            column, text, style = _find_column(id, placed), "|" if glyphs is ASCII else "│", "dim"
        elif row < len(texts[id]):
            column, text = left[id], texts[id][row]
            if len(texts[id]) > 1:  # lines below each other are centred
                column += (max(map(cells, texts[id])) - cells(text)) // 2
            style = (
                (style_of(nodes[id].status) if nodes[id].status else "bold") if row == 0 else "dim"
            )
        else:
            continue
        line += [(" " * (column - at), ""), (text, style)]
        at = column + cells(text)
    return line


def _find_column(id: str, placed: Layering) -> int:
    return 2 + int(placed.centre[id])


def _find_nets(
    number: int, placed: Layering, texts: dict[str, list[str]], left: dict[str, int]
) -> list[_Net]:
    """Return the lines from one layer to the next. Steps with the same set of dependents share a line."""
    pairs: dict[str, list[str]] = {}
    for route in placed.routes.values():
        for one, other in pairwise(route):
            if one in placed.layers[number]:
                targets = pairs.setdefault(one, [])
                targets += [] if other in targets else [other]
    groups: dict[tuple[str, ...], list[str]] = {}
    for source, targets in pairs.items():
        groups.setdefault(tuple(sorted(targets)), []).append(source)
    spans = {id: (left[id], left[id] + max(map(cells, texts[id])) - 1) for id in left}
    return [_place_net(sources, targets, placed, spans) for targets, sources in groups.items()]


def _place_net(
    sources: Sequence[str],
    targets: Sequence[str],
    placed: Layering,
    spans: dict[str, tuple[int, int]],
) -> _Net:
    """Return the columns of a net. A single edge goes straight down if its ends overlap."""
    ends = [
        spans.get(id, (_find_column(id, placed), _find_column(id, placed))) for id in (sources[0], targets[0])
    ]  # fmt: skip
    low, high = max(ends[0][0], ends[1][0]), min(ends[0][1], ends[1][1])
    if len(sources) == len(targets) == 1 and low <= high:
        near = min(max(_find_column(sources[0], placed), low), high)
        return _Net((near,), (near,))
    return _Net(
        tuple(_find_column(id, placed) for id in sources), tuple(_find_column(id, placed) for id in targets)
    )  # fmt: skip


def _render_channel(nets: list[_Net], glyphs: Glyphs) -> Iterator[StyledLine]:
    """Yield the rows between two layers: one for each horizontal line, or a single row of verticals."""
    tracks = _assign_rows(nets)
    height = max(tracks, default=0) + 1
    for row in range(height):
        drawn: dict[int, int] = {}
        for net, track in zip(nets, tracks, strict=True):
            own: dict[int, int] = {}
            for column, arms in _arms(net, track, row):
                own[column] = own.get(column, 0) | arms
            for column, arms in own.items():
                drawn[column] = _combine_arms(drawn.get(column, 0), arms)
        text = "".join(
            _render_joint(drawn.get(column, 0), glyphs)
            for column in range(max(drawn, default=0) + 1)
        )
        yield [(text, "dim")]


def _arms(net: _Net, track: int, row: int) -> Iterator[tuple[int, int]]:
    """Yield the arms that a net draws in a row, each with its column."""
    for column in net.sources:
        if row <= track:
            yield column, _N | (_S if row < track or net.is_straight else 0)
    for column in net.targets:
        if row >= track:
            yield column, _S | (_N if row > track or net.is_straight else 0)
    if row == track and not net.is_straight:
        for column in range(net.first, net.last + 1):
            yield column, (_E if column < net.last else 0) | (_W if column > net.first else 0)


def _combine_arms(one: int, other: int) -> int:
    """Return the arms drawn where two nets share a place. If one only passes sideways, the other is drawn and the line
    has a gap."""
    for arms, instead in ((one, other), (other, one)):
        if arms == _E | _W and instead & (_N | _S):
            return instead
    return one | other


def _assign_rows(nets: list[_Net]) -> list[int]:
    """Return the row of each net: different for nets that overlap, and above the nets that end where it starts."""
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
