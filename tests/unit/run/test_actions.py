"""Every action names its tool, and a plan says why its steps exist (docs/reference/episode.md#projection)."""

from __future__ import annotations

from typing import Any

from fakes.runner import ScriptedRunner, gives
from fakes.runs import Ran, run
from fakes.specs import capability, gate, skill, step

NESTED = skill(step("m", "c.a", {"x": 1}), id="t.inner", inputs="")


def tools(ran: Ran) -> dict[str | None, Any]:
    """By step the tool of each action of a run."""
    return {e.step_id: e.payload.get("tool") for e in ran.sink.events if e.payload.get("action_id")}


def test_actions_of_nested_skills_and_loops_name_their_tool() -> None:
    both = [{"name": "x", "uses": "c.a"}, {"name": "y", "uses": "skill:t.inner"}]
    steps = (
        step("nested", "skill:t.inner"),
        step("items", "c.a", foreach={"items": [1, 2]}),
        step("rounds", "c.a", **{"while": {"condition": "false"}}),
        step("none", "c.a", foreach={"items": []}),
        step("both", "", scatter={"capabilities": both}),
    )
    ran = run(
        skill(*steps), ScriptedRunner({"c.a": gives(y=1)}), capability("c.a"), nested=[NESTED]
    )
    service = tools(ran)["nested/m"]
    assert str(service).startswith("pythoncall:")
    assert tools(ran) == {
        "nested": "skill:t.inner",
        "nested/m": service,
        "items": service,
        "items#0": service,
        "items#1": service,
        "rounds": service,
        "rounds#0": service,
        "none": "c.a",
        "both": f"{service}, skill:t.inner",
        "both#x": service,
        "both#y": "skill:t.inner",
        "both#y/m": service,
    }


def test_a_step_says_why_it_exists_by_its_rationale_or_its_description() -> None:
    steps = (
        {**step("a", "c.a"), "description": "Counts the words."},
        {
            **step("b", "c.a", rationale="The first count may be wrong."),
            "description": "Counts again.",
        },
        step("c", "c.a"),
    )
    ran = run(skill(*steps), ScriptedRunner({"c.a": gives(y=1)}), capability("c.a"))
    (plan,) = [e.payload for e in ran.sink.events if e.event_type == "plan.created"]
    why = [record.get("rationale") for record in plan["step_records"]]
    assert why == ["Counts the words.", "The first count may be wrong.", None]
    assert [record["description"] for record in plan["step_records"]][:2] == [
        "Counts the words.",
        "Counts again.",
    ]


def test_a_gate_that_warns_is_found_by_the_name_of_the_shared_format() -> None:
    gates = {"mandatory_pre_gates": [{"capability": "g.ask", "on_fail": "warn"}]}
    called = capability("c.a", safety={"trust_level": "standard", **gates})
    runner = ScriptedRunner({"c.a": gives(y=1), "g.ask": gives(allowed=False)})
    ran = run(skill(step("a", "c.a")), runner, called, gate("g.ask"))
    decided = [e.payload for e in ran.sink.events if e.event_type == "gate.decided"]
    assert [(each["verdict"], each.get("warning")) for each in decided] == [
        ("warn", "safety_gate_warning")
    ]
    assert ran.outcome.status == "ok"
