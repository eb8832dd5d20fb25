"""The steps of an episode as a graph, with the turns of an agent's run."""

from __future__ import annotations

from typing import Final

from cogcli.episode.history import History
from cogcli.report.graph import GraphView, Node
from cogcli.report.styled_text import WAITS
from cogcli.report.tree import decision_text


def graph_of(fold: History) -> GraphView:
    """Return the graph of an episode's root run."""
    root = fold.root
    if root is None:
        return GraphView("", ())
    nodes = [Node(step.id, step.uses, tuple(step.depends_on), step.status) for step in root.own]
    if fold.turns.turns:
        nodes = _with_turns(fold, nodes)
    return GraphView(root.title, tuple(nodes))


def _with_turns(fold: History, steps: list[Node]) -> list[Node]:
    """Return the turns in sequence, each before its first steps. The decision or the pending
    request comes last."""
    nodes: list[Node] = []
    before: tuple[str, ...] = ()
    for turn in fold.turns.turns:
        shown = turn.step
        nodes.append(Node(shown.id, shown.uses, before, shown.status, is_step=False))
        before = (shown.id,)
        nodes += [
            step._replace(after=step.after or before) for step in steps if step.id in turn.steps
        ]
    if text := decision_text(fold):
        status = _NODE_STATUS.get(text.partition(":")[0], WAITS)
        nodes.append(Node("decision", text, before, status, is_step=False))
    return nodes


_NODE_STATUS: Final = {
    "completed": "done", "refused": "vetoed", "denied": "vetoed", "failed": "failed", "aborted": "skipped"
}  # fmt: skip
"""The status of a node by the status of a decision. Any other decision waits."""
