"""A graph drawn in layers, as text and as SVG."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogcli.base.terminal_text import cells
from cogcli.report.graph import GraphView, Node
from cogcli.report.graph_layers import layers
from cogcli.report.styled_text import ASCII, UNICODE, Glyphs, plain_text
from cogcli.report.svg import svg_file


def drawn(
    nodes: dict[str, list[str]], *, width: int = 80, glyphs: Glyphs = UNICODE, uses: str = ""
) -> list[str]:
    graph = GraphView("demo", tuple(Node(id, uses, tuple(after)) for id, after in nodes.items()))
    found = layers(graph, glyphs, width=width)
    return ["does not fit"] if found is None else [plain_text(line) for line in found]


DIAMOND = {"fetch": [], "left": ["fetch"], "right": ["fetch"], "join": ["left", "right"]}


def test_steps_that_wait_for_all_the_same_ones_share_a_line() -> None:
    assert drawn(DIAMOND) == [
        "     fetch",
        "    ┌──┴───┐",
        "  left   right",
        "    └──┬───┘",
        "      join",
    ]


def test_without_the_characters_for_lines_others_are_taken() -> None:
    assert drawn(DIAMOND, glyphs=ASCII)[1:4] == ["    +--+---+", "  left   right", "    +--+---+"]


def test_an_edge_over_several_layers_passes_beside_what_lies_between() -> None:
    assert drawn({"a": [], "b": ["a"], "c": ["b"], "d": ["a", "c"]}) == [
        "    a",
        "  ┌─┴─┐",
        "  b   │",
        "  │   │",
        "  c   │",
        "  └─┬─┘",
        "    d",
    ]  # fmt: skip


def test_lines_that_only_cross_do_not_join() -> None:
    crossing = drawn({"a": [], "b": [], "c": ["a"], "d": ["a", "b"], "e": ["b"]})
    assert all("┼" not in line for line in crossing)
    assert {"a", "b", "c", "d", "e"} <= set(" ".join(crossing).split())


def test_where_the_width_is_too_small_what_is_called_goes_below_then_away() -> None:
    assert drawn(DIAMOND, uses="text.normalize", width=80)[0].endswith("fetch  text.normalize")
    assert [line.split() for line in drawn(DIAMOND, uses="text.normalize", width=40)[:2]] == [
        ["fetch"],
        ["text.normalize"],
    ]
    assert drawn(DIAMOND, uses="text.normalize", width=18)[0].split() == ["fetch"]
    assert drawn(DIAMOND, width=12) == ["does not fit"]


IDS = [f"n{number}" for number in range(8)]


@given(
    st.dictionaries(st.sampled_from(IDS), st.lists(st.sampled_from(IDS), max_size=4), min_size=1)
)
def test_every_step_is_drawn_within_the_width(nodes: dict[str, list[str]]) -> None:
    lines = drawn(nodes)
    assert sorted(word for line in lines for word in line.split() if word in IDS) == sorted(nodes)
    assert all(cells(line) <= 80 for line in lines)


@pytest.mark.parametrize("status", ["", "done", "failed"])
def test_the_drawing_is_an_svg_file_whose_texts_are_inert(status: str) -> None:
    text = "</text><script>alert(1)</script>\x1b\u202e&"
    graph = GraphView(text, (Node("a", text, (), status), Node(text, "b", ("a",), status)))
    root = ElementTree.fromstring(svg_file(graph))
    kinds = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert kinds == {"svg", "style", "title", "desc", "g", "rect", "text", "path"}
    assert "</text><script>alert(1)</script>\\x1b\\u202e&" in [
        e.text for e in root.iter() if e.tag.endswith("title")
    ]
