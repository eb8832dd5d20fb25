"""Attention over a turn (docs/reference/agent-run.md#attention)."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.agents import invocation
from fakes.support_desk import NOW, edge

from cogcli.agent.cognition.attention import KEPT, LOW, attention_from, hold, rank
from cogcli.agent.cognition.first_turn import with_first_attention
from cogcli.agent.cognition.invocation import StoredValues
from cogcli.agent.context.compiler import compile_context
from cogcli.agent.context.placements import placements


def recall(id: str, **members: Any) -> dict[str, Any]:
    return {"id": id, "text": id, "trust": "untrusted", "age_s": 0.0, "required": False, **members}


def view(*recalls: dict[str, Any], goals: str = "lamp") -> dict[str, Any]:
    unheld: list[str] = []
    return {
        "goals": [goals],
        "events": [],
        "recalls": list(recalls),
        "focus_state": {"buffered": unheld},
    }


@pytest.mark.parametrize(
    ("more", "less"),
    [
        ({"text": "the lamp"}, {"text": "the door"}),
        ({"trust": "authoritative"}, {"trust": "verified"}),
        ({"trust": "verified"}, {"trust": "untrusted"}),
        ({"age_s": 60.0}, {"age_s": 864_000.0}),
        ({"required": True}, {"text": "lamp", "trust": "verified"}),
    ],
)
def test_what_is_nearer_trusted_and_newer_is_more_salient(more: Any, less: Any) -> None:
    found = rank(view(recall("b", **more), recall("a", **less)))
    scores = found["salience_scores"]
    assert 0.0 <= scores["a"] < scores["b"] <= 1.0
    assert found["focus"] == ["b", "a"]


def test_ties_are_by_id_and_required_evidence_takes_no_place() -> None:
    others = [recall(f"r{n:02}") for n in reversed(range(KEPT + 5))]
    found = rank(view(*others, recall("z", required=True)))
    assert found["focus"] == ["z", *(f"r{n:02}" for n in range(KEPT))]
    assert len(found["salience_scores"]) == KEPT + 6


def test_an_interruption_waits_once() -> None:
    event = {"id": "e1", "type": "attachment", "text": "holiday.jpg"}
    assert hold([event], ["lamp"]) == ["e1"]
    assert hold([{**event, "waited": True}], ["lamp"]) == []
    assert hold([{**event, "text": "lamp"}], ["lamp"]) == []
    assert hold([{**event, "type": "tool_error"}], ["lamp"]) == []
    assert LOW < 0.6


def test_a_masked_salience_counts_as_unranked() -> None:
    logged = {"focus": [], "salience_scores": {"a": 0.5, "b": "[masked]"}, "events": []}
    found = attention_from(logged)
    assert (found.includes("a"), found.includes("b")) == (False, True)


@pytest.mark.parametrize("focus", ["off", "deep"])
def test_the_context_lacks_what_is_not_in_focus(focus: str) -> None:
    edges = tuple(edge(f"remark_{n:02}", n) for n in range(KEPT + 3))
    attachments = ({"name": "holiday.jpg"}, {"name": "order.jpg"})
    given = invocation(fetched=StoredValues(edges), focus=focus, attachments=attachments)
    compiled = compile_context(
        with_first_attention(given.compile_input(1, "run_1", "trace_1", NOW))
    )
    task = compiled.payload["compiled_prompt"]["task"]
    held = focus == "deep"
    assert [each["name"] for each in task["attachments"]] == ["holiday.jpg", "order.jpg"][held:]
    omissions = compiled.payload["budget_report"]["omissions"]
    assert [each["reason"] for each in omissions] == ["not_in_focus"] * 3 + ["held"] * held
    placed = {each.name: (each.status, each.reason) for each in placements(compiled.compilation)}
    assert placed["order.remark_14"] == ("out", "not_in_focus")
    assert placed["attachment:0"] == (("out", "held") if held else ("in", "said"))
    assert placed["attachment:1"] == ("in", "said")
