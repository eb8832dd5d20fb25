"""The layout of a graph in layers, for text and SVG. A node is below its dependencies and near its
neighbors, and few edges cross. The units are those of the widths that the caller passes.

1. Backward edges are ignored. Only a forged log has them.
2. An edge over several layers passes an empty place in each layer between its ends.
3. The layout depends only on the graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise

from cogcli.base.named_tuple import NamedTuple

_SWEEPS = 4
"""The number of passes over the layers, down and up."""


class Layering(NamedTuple):
    """Nodes by layer from left to right, the center of each node, and the places along each edge, including its
    ends.
    """

    layers: list[list[str]]
    centre: dict[str, float]
    routes: dict[tuple[str, str], list[str]]


def lay_out(
    widths: Mapping[str, float], edges: Iterable[tuple[str, str]], *, gap: float, passing: float
) -> Layering:
    """Return the layout of nodes with these widths and a distance of `gap`. An edge across a layer occupies the width
    `passing` in it.
    """
    kept, rank = _drop_cycles(list(widths), edges)
    depth = _assign_layers(rank, kept)
    layers: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for id in widths:
        layers[depth[id]].append(id)
    routes = {edge: _route_edge(edge, depth, layers) for edge in kept}
    above: dict[str, list[str]] = {}
    below: dict[str, list[str]] = {}
    for route in routes.values():
        for one, other in pairwise(route):
            below.setdefault(one, []).append(other)
            above.setdefault(other, []).append(one)
    _order_layers(layers, above, below)
    sizes = {id: widths.get(id, passing) for layer in layers for id in layer}
    return Layering(layers, _compute_centres(layers, sizes, above, below, gap), routes)


def _drop_cycles(
    ids: list[str], edges: Iterable[tuple[str, str]]
) -> tuple[list[tuple[str, str]], dict[str, int]]:
    """Return the edges without those that close a cycle, sorted by their ends, and the topological
    rank of each node."""
    after: dict[str, list[str]] = {id: [] for id in ids}
    for a, b in dict.fromkeys(edges):
        if a in after and b in after and a != b:
            after[a].append(b)
    rank = _topological_ranks(ids, after)
    return [(a, b) for a in ids for b in after[a] if rank[a] < rank[b]], rank


def _topological_ranks(ids: list[str], followers_by_id: dict[str, list[str]]) -> dict[str, int]:
    """Number the nodes in topological order. A cycle starts at its first node in `ids`."""
    open_predecessors = Counter(
        follower for followers in followers_by_id.values() for follower in followers
    )
    ready = [id for id in ids if not open_predecessors[id]]
    rank: dict[str, int] = {}
    while len(rank) < len(ids):
        id = ready.pop(0) if ready else next(id for id in ids if id not in rank)
        rank[id] = len(rank)
        for follower in followers_by_id[id]:
            open_predecessors[follower] -= 1
            if not open_predecessors[follower] and follower not in rank:
                ready.append(follower)
    return rank


def _assign_layers(rank: dict[str, int], edges: list[tuple[str, str]]) -> dict[str, int]:
    """Return the layer of each node: one below the lowest of its dependencies."""
    depth = dict.fromkeys(rank, 0)
    for a, b in sorted(edges, key=lambda edge: rank[edge[0]]):
        depth[b] = max(depth[b], depth[a] + 1)
    return depth


def _route_edge(edge: tuple[str, str], depth: dict[str, int], layers: list[list[str]]) -> list[str]:
    """Return the node ids along an edge. Each layer between its ends gets a placeholder id."""
    a, b = edge
    passed = {level: f"{a}\n{b}\n{level}" for level in range(depth[a] + 1, depth[b])}
    for level, id in passed.items():
        layers[level].append(id)
    return [a, *passed.values(), b]


def _order_layers(
    layers: list[list[str]], predecessors: dict[str, list[str]], successors: dict[str, list[str]]
) -> None:
    """Sort each layer by the positions of its nodes' neighbours, alternating down and up."""
    position = {id: n for layer in layers for n, id in enumerate(layer)}
    for layer, neighbours in _sweep_layers(layers, predecessors, successors):
        layer.sort(key=_mean_position_of(position, neighbours))
        position.update({id: n for n, id in enumerate(layer)})


def _sweep_layers(
    layers: list[list[str]], predecessors: dict[str, list[str]], successors: dict[str, list[str]]
) -> Iterator[tuple[list[str], dict[str, list[str]]]]:
    """Yield each layer with the neighbours of its nodes in the layer before, alternating down and up."""
    for _ in range(_SWEEPS):
        yield from ((layer, predecessors) for layer in layers)
        yield from ((layer, successors) for layer in reversed(layers))


def _mean_position_of(
    position: Mapping[str, float], neighbours: dict[str, list[str]]
) -> Callable[[str], float]:
    def mean(id: str) -> float:
        ids = neighbours.get(id)
        return sum(position[other] for other in ids) / len(ids) if ids else position[id]

    return mean


def _compute_centres(
    layers: list[list[str]], sizes: dict[str, float], predecessors: dict[str, list[str]],
    successors: dict[str, list[str]], gap: float,
) -> dict[str, float]:  # fmt: skip
    """Return the center of each node: as close to the mean of its neighbors as the others in its
    layer allow. The leftmost node starts at 0."""
    centre: dict[str, float] = {}
    for layer in layers:
        offset = 0.0
        for id in layer:
            centre[id] = offset + sizes[id] / 2
            offset += sizes[id] + gap
    for layer, neighbours in _sweep_layers(layers, predecessors, successors):
        wanted = map(_mean_position_of(centre, neighbours), layer)
        spaces = [(sizes[a] + sizes[b]) / 2 + gap for a, b in pairwise(layer)]
        centre.update(zip(layer, _space_out([*wanted], spaces), strict=True))
    left = min((centre[id] - sizes[id] / 2 for id in centre), default=0.0)
    return {id: offset - left for id, offset in centre.items()}


def _space_out(desired: list[float], spaces: list[float]) -> list[float]:
    """Return the positions closest to the wanted ones (least squares) that keep their order and the
    distances `spaces`."""
    offsets = [0.0]
    for space in spaces:
        offsets.append(offsets[-1] + space)
    blocks: list[tuple[float, int]] = []
    for desired_position, offset in zip(desired, offsets, strict=False):
        total, count = desired_position - offset, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            more, others = blocks.pop()
            total, count = total + more, count + others
        blocks.append((total, count))
    placed = [total / count for total, count in blocks for _ in range(count)]
    return [at + offset for at, offset in zip(placed, offsets, strict=False)]
