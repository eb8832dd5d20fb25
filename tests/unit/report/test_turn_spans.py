"""Turns, layers and compiler stages as spans: run > turn > layer > step."""

from __future__ import annotations

import json

from fakes.agent_log import STAGES, AgentLog

from cogcli.base.canonical import span_of
from cogcli.declarations.envelope import Event
from cogcli.report.chrome import assign_lanes
from cogcli.report.otlp import otlp
from cogcli.report.trace_export import trace_spans
from cogcli.report.trace_spans import TraceSpan

RUN = "invoke_agent agent.support-desk"


def spans(events: list[Event], *, io: bool = False) -> dict[str, TraceSpan]:
    return {span.name: span for span in trace_spans(events, io=io).spans}


def finished() -> list[Event]:
    """Each event at a time of its own."""
    events = AgentLog().until_gate().to_end().events
    return [
        event._replace(timestamp=f"2026-11-20T22:58:{number:02d}.000000Z")
        for number, event in enumerate(events)
    ]


def test_a_step_hangs_below_its_layer_its_turn_and_the_run() -> None:
    found = spans(finished())
    around, names = found["execute_tool payments.refund"], []
    by_id = {span.id: span for span in found.values()}
    while around.parent:
        around = by_id[around.parent]
        names.append(around.name)
    assert names == ["cogcli.layer action", "cogcli.turn 1", RUN]
    layers = [span for span in found.values() if span.name.startswith("cogcli.layer ")]
    assert len(layers) == 11
    assert {span.parent for span in layers} == {found["cogcli.turn 1"].id}


def test_layers_follow_each_other_within_their_turn() -> None:
    found = spans(finished())
    turn = found["cogcli.turn 1"]
    for span in found.values():
        if span.name != RUN:
            assert turn.start <= span.start <= span.end <= turn.end
    assert found["cogcli.layer perception"].start == found["cogcli.layer budget_gate"].end
    assert found["cogcli.layer action"].end == found["cogcli.layer action"].start + 14_000_000
    assert not any("cogcli.incomplete" in span.attributes for span in found.values())


def test_attributes_name_turn_layer_critic_and_stage() -> None:
    found = spans(finished())
    assert found["cogcli.turn 1"].attributes == {
        "cogcli.turn": 1,
        "cogcli.run.id": "run_root",
        "cogcli.critic.verify": "ok",
        "cogcli.critic.score": "accept",
    }
    assert found["cogcli.layer focus"].attributes == {
        "cogcli.layer": "focus", "cogcli.skipped": "off", "cogcli.turn": 1
    }  # fmt: skip
    stages = [found[f"cogcli.stage {stage}"] for stage in STAGES]
    assert {stage.parent for stage in stages} == {found["cogcli.compiler"].id}
    assert stages[0].attributes["cogcli.stage.hash"] == f"sha256:{0:064x}"
    assert [moment.name for moment in found[RUN].moments][-1] == "decision.recorded"


def test_ids_follow_from_the_events_that_open_them() -> None:
    events, found = finished(), spans(finished())
    opened = {event.payload.get("layer"): event.id for event in events}
    assert found["cogcli.turn 1"].id == span_of(f"{opened['budget_gate']}/turn")
    assert found["cogcli.layer goals"].id == span_of(opened["goals"])
    (plan,) = [event.id for event in events if event.event_type == "plan.created"]
    assert found["cogcli.layer action"].id == span_of(plan)


def test_what_layers_wrote_leaves_only_when_asked() -> None:
    assert "neutral_concise" not in json.dumps(otlp(trace_spans(finished())))
    assert "neutral_concise" in json.dumps(otlp(trace_spans(finished(), io=True)))


def test_a_turn_that_waits_is_incomplete_and_the_next_one_ends_the_last() -> None:
    log = AgentLog().until_gate()
    found = spans(log.events)
    assert found["cogcli.turn 1"].attributes["cogcli.incomplete"] is True
    assert "approval.requested" in [moment.name for moment in found["cogcli.layer action"].moments]
    log.layer("budget_gate", 2)
    found = spans(log.events)
    assert found["cogcli.layer budget_gate"].parent == found["cogcli.turn 2"].id
    assert found["cogcli.turn 1"].end <= found["cogcli.turn 2"].start


def test_all_of_a_turn_lies_on_one_lane() -> None:
    assert set(assign_lanes(trace_spans(finished()).spans).values()) == {0}
