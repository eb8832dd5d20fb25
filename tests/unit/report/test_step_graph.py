"""Steps and edges as text, Mermaid and DOT."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from fakes.agent_log import AgentLog
from fakes.risk_review import risk_review

from cogcli.episode.history import history_of
from cogcli.report.graph import GraphView, Node, dot, mermaid, text
from cogcli.report.history_graph import graph_of
from cogcli.report.styled_text import UNICODE, plain_text, width

HOSTILE = GraphView(
    'a"];--\n\x1b[2J',
    (Node('x"]; y --> z', "</script>\u202e", ()), Node("b", "#quot;`", ('x"]; y --> z', "no"))),
)


def test_a_run_is_told_with_statuses_and_what_each_step_waited_for() -> None:
    assert [
        plain_text(line) for line in text(graph_of(history_of(risk_review())), UNICODE, width=88)
    ] == [
        "risk.review 0.4.1 · 6 steps",
        "  ✓ fetch     web.page.fetch",
        "  ✓ clean     text.normalize        after fetch",
        "  ✓ risks     skill:analysis.risks  after clean",
        "  ✓ entities  text.entity.extract   after clean",
        "  ✗ score     analysis.risk.score   after risks, entities",
        "  – report    doc.report.compose    after score",
    ]


def test_no_row_exceeds_the_width() -> None:
    for columns in range(20, 90):
        for line in text(graph_of(history_of(risk_review())), UNICODE, width=columns):
            assert width(line) <= columns


def test_mermaid_numbers_its_nodes_and_colours_them_by_status() -> None:
    drawn = mermaid(graph_of(history_of(risk_review()))).split("\n")
    assert drawn[0] == "flowchart TD"
    assert '    s4["score<br/>analysis.risk.score<br/>failed"]:::failed' in drawn
    assert "    s2 --> s4" in drawn
    assert any(line.startswith("    classDef failed ") for line in drawn)


def test_a_skill_has_no_statuses() -> None:
    drawn = mermaid(GraphView("a.b 1.0.0", (Node("a", "x.y", ()), Node("b", "x.y", ("a",)))))
    assert drawn == 'flowchart TD\n    s0["a<br/>x.y"]\n    s1["b<br/>x.y"]\n    s0 --> s1\n'


def test_texts_from_data_cannot_leave_their_quotes() -> None:
    for drawn in (mermaid(HOSTILE), dot(HOSTILE)):
        assert "\x1b" not in drawn
        assert "\u202e" not in drawn
    body = mermaid(HOSTILE)
    assert body.count('"') == 4
    assert "-->" not in body.split("\n")[1]
    assert "<script" not in body
    assert '\\"];' in dot(HOSTILE)


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not here")
def test_graphviz_reads_what_is_drawn() -> None:
    for graph in (HOSTILE, graph_of(history_of(risk_review()))):
        subprocess.run(["dot", "-Tsvg"], input=dot(graph).encode(), capture_output=True, check=True)


def test_edges_lead_between_known_steps_only() -> None:
    assert HOSTILE.edges == [('x"]; y --> z', "b")]
    assert graph_of(history_of([])).nodes == ()


def test_an_agents_steps_come_after_their_turn_and_before_the_decision() -> None:
    log = AgentLog().until_gate()
    waiting = graph_of(history_of(log.events))
    assert waiting.edges[:1] == [("turn 1", "t1_order")]
    assert waiting.nodes[-1].uses == "pending_approval: GATE_FINANCE_APPROVAL"
    ended = graph_of(history_of(log.to_end().events))
    assert (ended.nodes[-1].id, ended.nodes[-1].status) == ("decision", "done")
    assert plain_text(text(ended, UNICODE, width=80)[0]).endswith("3 steps")


def test_a_refused_request_is_a_turn_and_a_decision() -> None:
    log = AgentLog()
    log.layer("policy_gate", verdict="refuse")
    log.close_turn(goal_met=False)
    log.add(
        "decision.recorded", "insight", {"status": "refused", "status_reason": "must_refuse:card"}
    )
    graph = graph_of(history_of(log.events))
    assert [(node.id, node.status) for node in graph.nodes] == [
        ("turn 1", "vetoed"),
        ("decision", "vetoed"),
    ]
    assert graph.edges == [("turn 1", "decision")]
    assert "turn 1" in mermaid(graph)
