"""Steps and their dependencies as text, Mermaid or DOT, with the status of each step for an episode."""

from __future__ import annotations

from typing import Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.terminal_text import cells, pad, visible
from cogcli.declarations.value_types import Json
from cogcli.report.humanize import count_of
from cogcli.report.styled_text import CUT_OFF, IN_DOUBT, WAITS, Glyphs, StyledLine, fit, style_of


class Node(NamedTuple):
    """A step, or a node before or after an agent's steps. `status` is empty if the node did not
    run."""

    id: str
    uses: str
    after: tuple[str, ...]
    status: str = ""
    is_step: bool = True
    """False for an agent's turn and for its decision."""


class GraphView(NamedTuple):
    """The steps of a skill, or of the root run of an episode, in order."""

    title: str
    nodes: tuple[Node, ...]

    @property
    def edges(self) -> list[tuple[str, str]]:
        """Return pairs of a step and a step that depends on it. Unknown steps are omitted."""
        known = {node.id for node in self.nodes}
        return [
            (before, node.id) for node in self.nodes for before in node.after if before in known
        ]

    def to_payload(self) -> Json:
        """Return the graph as JSON."""
        nodes = [
            {"id": node.id, "uses": node.uses, "status": node.status or None} for node in self.nodes
        ]
        return {
            "title": self.title,
            "nodes": nodes,
            "edges": [{"from": a, "to": b} for a, b in self.edges],
        }


def head(graph: GraphView, glyphs: Glyphs, width: int | None) -> StyledLine:
    """Return a line with the title and the number of steps."""
    steps = count_of(sum(node.is_step for node in graph.nodes), "step")
    return [(fit(f"{visible(graph.title)} {glyphs.dot} {steps}", width), "bold")]


def text(graph: GraphView, glyphs: Glyphs, *, width: int | None) -> list[StyledLine]:
    """Return one line per step, with its dependencies."""
    names = [visible(node.id) for node in graph.nodes]
    uses = [visible(node.uses) for node in graph.nodes]
    name, use = max(map(cells, names), default=0), max(map(cells, uses), default=0)
    sign = max((cells(glyphs.sign(node.status)) for node in graph.nodes if node.status), default=0)
    lines: list[StyledLine] = [head(graph, glyphs, width)]
    for node, one, other in zip(graph.nodes, names, uses, strict=True):
        lead = f"{pad(glyphs.sign(node.status), sign)} " if node.status else ""
        after = f"after {', '.join(map(visible, node.after))}" if node.after else ""
        rest = f"{pad(one, name)}  {pad(other, use)}  {after}".rstrip()
        shown = fit(rest, width, 2 + cells(lead))
        lines.append(
            [("  ", ""), (lead, style_of(node.status) if node.status else ""), (shown, "")]
        )
    return lines


_COLOURS: Final = {
    "done": ("#e6f4ea", "#1e7e34"), "failed": ("#fdecea", "#b3261e"), "vetoed": ("#fff4e5", "#b26a00"),
    "skipped": ("#f1f1f1", "#777777"), "running": ("#e3f2fd", "#1565c0"), "pending": ("#ffffff", "#777777"),
    "waits": ("#fff4e5", "#b26a00"),
}  # fmt: skip
"""Fill and border by status. The label contains the status, too."""


def mermaid(graph: GraphView) -> str:
    """Return a Mermaid flowchart. Node names are generated, strings are quoted and escaped."""
    number: dict[str, str] = {}
    lines = ["flowchart TD"]
    for n, node in enumerate(graph.nodes):
        number.setdefault(node.id, f"s{n}")
        label = "<br/>".join(map(_escape_mermaid, _label_lines(node)))
        lines.append(f'    s{n}["{label}"]' + (f":::{_class_name(node)}" if node.status else ""))
    lines += [f"    {number[a]} --> {number[b]}" for a, b in graph.edges]
    used = dict.fromkeys(_class_name(node) for node in graph.nodes if node.status)
    lines += [
        f"    classDef {name} fill:{_COLOURS[name][0]},stroke:{_COLOURS[name][1]}" for name in used
    ]
    return "\n".join(lines) + "\n"


def dot(graph: GraphView) -> str:
    """Return a Graphviz digraph. Every string is quoted."""
    lines = [
        f"digraph {_escape_dot(graph.title)} {{",
        "    node [shape=box, style=filled, fillcolor=white];",
    ]
    for node in graph.nodes:
        label = "\\n".join(_escape_dot(part)[1:-1] for part in _label_lines(node))
        fill = f', fillcolor="{_COLOURS[_class_name(node)][0]}", color="{_COLOURS[_class_name(node)][1]}"'
        lines.append(f'    {_escape_dot(node.id)} [label="{label}"{fill if node.status else ""}];')
    lines += [f"    {_escape_dot(a)} -> {_escape_dot(b)};" for a, b in graph.edges]
    return "\n".join([*lines, "}"]) + "\n"


def _label_lines(node: Node) -> list[str]:
    return [node.id, *([node.uses] if node.uses else []), *([node.status] if node.status else [])]


def _class_name(node: Node) -> str:
    if node.status in (CUT_OFF, IN_DOUBT):
        return WAITS
    return node.status if node.status in _COLOURS else "pending"


def _escape_mermaid(value: str) -> str:
    """Return a string escaped for a Mermaid label. In a label `#code;` is a character, and a quote
    ends the label."""
    safe = "".join(c if c.isalnum() or c in " .:_-/" else f"#{ord(c)};" for c in visible(value))
    return safe or " "


def _escape_dot(value: str) -> str:
    escaped = visible(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
