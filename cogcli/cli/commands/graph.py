"""`graph SKILL|EP`: the steps and their dependencies; for an episode with the status of each step
(docs/reference/command-line.md#views).
"""

from __future__ import annotations

from typing import Annotated

from cogcli.app.episodes import find
from cogcli.app.state_document import iterate_shown_events
from cogcli.base.errors import OK
from cogcli.cli.context import CommandContext, is_skill
from cogcli.cli.options import OUTPUT, argument, choice, command
from cogcli.episode.foreign_log import for_reports
from cogcli.episode.history import history_of
from cogcli.episode.listing.episode_row import read_row
from cogcli.report import graph as drawing
from cogcli.report import history_graph
from cogcli.report.graph_layers import layers
from cogcli.report.styled_text import Glyphs, StyledLine
from cogcli.report.svg import svg_file
from cogcli.report.unfinished_runs import unfinished_state


@command(
    examples=(
        ("cogcli graph text.summarize", "a skill"),
        ("cogcli graph @last --format mermaid", "a run, for a page"),
        ("cogcli graph @last --format svg > run.svg", "a run, as a picture"),
    ),
    exits=(0, 2, 3),
)
def graph(
    context: CommandContext,
    target: Annotated[str, argument("SKILL|EP", "skills episodes")],
    *,
    format: Annotated[
        str,
        choice("--format", "WORD", ("text", "mermaid", "dot", "svg"), panel=OUTPUT, default="text"),
    ] = "text",
) -> int:
    """Draw the graph of a skill or an episode."""
    graph = _read_graph(context, target)
    context.own["graph"] = graph.to_payload()
    if context.json:
        return OK
    out = context.screen.out
    if format == "text":
        context.screen.answer_lines(_text_lines(graph, out.glyphs, out.width))
    else:
        context.screen.answer(_DRAWINGS[format](graph))
    return OK


_DRAWINGS = {"dot": drawing.dot, "mermaid": drawing.mermaid, "svg": svg_file}


def _text_lines(graph: drawing.GraphView, glyphs: Glyphs, width: int | None) -> list[StyledLine]:
    """Return the graph in layers if the terminal is wide enough, else with one line per step."""
    drawn = None if width is None else layers(graph, glyphs, width=width)
    return (
        drawing.text(graph, glyphs, width=width)
        if drawn is None
        else [drawing.head(graph, glyphs, width), [], *drawn]
    )


def _read_graph(context: CommandContext, word: str) -> drawing.GraphView:
    """Return the graph of a skill or an episode."""
    if is_skill(context, word):
        from cogcli.app.inventory.skill import graph_of

        return graph_of(context.settings, word)
    directory = find(context.settings, word)
    context.own["episode_id"] = directory.name
    folded = history_of(for_reports(iterate_shown_events(directory, context.warn)).events)
    unfinished_state(folded, read_row(directory).status)
    return history_graph.graph_of(folded)
