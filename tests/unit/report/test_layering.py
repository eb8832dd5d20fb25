"""Graphs in layers: nothing overlaps, every edge leads down, and the same graph is drawn the same."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cogcli.report.layering import Layering, lay_out

IDS = [f"n{number}" for number in range(9)]
graphs = st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from(IDS)), max_size=24)


def drawn(edges: list[tuple[str, str]]) -> Layering:
    widths = {id: 20.0 + 7 * number for number, id in enumerate(IDS)}
    return lay_out(widths, edges, gap=5, passing=2)


@given(graphs)
def test_nodes_of_a_layer_keep_their_distance(edges: list[tuple[str, str]]) -> None:
    found = drawn(edges)
    sizes = {id: 20.0 + 7 * number for number, id in enumerate(IDS)}
    for layer in found.layers:
        for one, other in pairwise(layer):
            space = found.centre[other] - found.centre[one]
            assert space >= (sizes.get(one, 2) + sizes.get(other, 2)) / 2 + 5 - 1e-6
    assert sorted(id for layer in found.layers for id in layer if id in sizes) == sorted(IDS)
    assert min(found.centre[id] - sizes.get(id, 2) / 2 for id in found.centre) >= -1e-6


@given(graphs)
def test_every_edge_leads_down_one_layer_at_a_time(edges: list[tuple[str, str]]) -> None:
    found = drawn(edges)
    level = {id: n for n, layer in enumerate(found.layers) for id in layer}
    for (a, b), route in found.routes.items():
        assert (route[0], route[-1]) == (a, b)
        assert [level[id] for id in route] == list(range(level[a], level[b] + 1))


@given(graphs)
def test_only_edges_of_circles_are_left_out(edges: list[tuple[str, str]]) -> None:
    found = drawn(edges)
    assert set(found.routes) <= {(a, b) for a, b in edges if a != b}
    forward = [(a, b) for a, b in edges if a < b]
    assert set(drawn(forward).routes) == set(forward)


def test_the_same_graph_is_drawn_the_same() -> None:
    edges = [("n0", "n3"), ("n1", "n3"), ("n3", "n8"), ("n0", "n8")]
    assert drawn(edges) == drawn(edges)
