from __future__ import annotations

from typing import Any

import pytest
from fakes.runner import ScriptedRunner, echo, gives, raises
from fakes.runs import closes, replayed, run
from fakes.sink import payload_of
from fakes.specs import capability, skill, step

from cogcli.base.calls import Answer
from cogcli.base.errors import ServerFaultError, TransportError
from cogcli.declarations.checked import problem_of

A = capability("c.a")


def test_a_pure_step_costs_two_events() -> None:
    result = run(
        skill(step("one", "c.a"), step("two", "c.a")), ScriptedRunner({"c.a": gives(y=1)}), A
    )
    assert result.sink.types() == [
        "run.started",
        "plan.created",
        "step.started",
        "step.completed",
        "step.started",
        "step.completed",
        "run.terminated",
    ]


def test_the_intent_is_written_before_the_call_leaves() -> None:
    seen: list[list[str]] = []
    runner = ScriptedRunner({})
    runner.scripts["c.a"] = lambda given: seen.append(sink.types("s")) or {"y": 1}
    from fakes.runs import RUN_ID, engine_for, request
    from fakes.sink import MemorySink

    from cogcli.run.engine.run import execute

    sink = MemorySink()
    main = skill(step("s", "c.a", {"x": "inputs.x"}))
    engine = engine_for(runner, [A], [main], sink=sink)
    execute(engine, engine.plan_of(main.id), request({"x": 1}), RUN_ID)
    assert seen == [["step.started"]]
    intent = payload_of(sink.events, "step.started")
    assert {
        k: intent[k]
        for k in ("uses", "capability", "binding", "service", "attempt", "side_effects")
    } == {
        "uses": "c.a",
        "capability": "c.a",
        "binding": "b_c.a",
        "service": "s_b_c.a",
        "attempt": 1,
        "side_effects": "none",
    }
    assert (intent["input"], intent["reads"], intent["idempotency_key"]) == (
        {"x": 1},
        ["inputs.x"],
        f"{RUN_ID}:s",
    )
    assert runner.closed == 1


@pytest.mark.parametrize(
    ("effect", "durable"),
    [
        ("none", []),
        ("unknown", []),
        ("idempotent", ["step.started s", "call.retried s", "step.completed s"]),
        ("effect", ["step.started s", "call.retried s", "step.completed s"]),
    ],
)
def test_intent_and_result_of_declared_effects_survive_the_machine(
    effect: str, durable: list[str]
) -> None:
    from fakes.runner import member

    refused = raises(lambda: TransportError("call.transport", "refused", left=False))
    runner = ScriptedRunner({"c.a": [refused, gives(y=1)]})
    runner.members["c.a"] = (member("b1"), member("b2"))
    result = run(skill(step("s", "c.a")), runner, capability("c.a", effect=effect))
    assert result.sink.durable == [*durable, "run.terminated None"]


def test_an_answer_that_waits_is_as_durable_as_its_effect() -> None:
    import time

    runner = ScriptedRunner(
        {"c.slow": lambda given: time.sleep(0.1) or {"y": [1]}, "c.a": gives(y=[2])}
    )
    steps = [
        step(id, uses, output={"y": "vars.l"}, depends_on=[], merge_strategy="append")
        for id, uses in (("a", "c.slow"), ("b", "c.a"))
    ]
    result = run(skill(*steps), runner, capability("c.slow"), capability("c.a", effect="effect"))
    assert "step.answered b" in result.sink.durable


def test_closing_event_carries_reads_writes_and_usage() -> None:
    runner = ScriptedRunner(
        {"c.a": lambda given: Answer({"y": [1]}, {"input_tokens": 2, "output_tokens": 1})}
    )
    main = skill(
        step(
            "s",
            "c.a",
            {"x": "inputs.x"},
            output={"y": "working.artifacts.d"},
            merge_strategy="append",
        )
    )
    result = run(main, runner, A)
    event = result.closing("s")
    payload = event.payload
    assert payload["writes"] == [
        {"target": "working.artifacts.d", "strategy": "append", "value": [1]}
    ]
    assert payload["usage"] == {"llm_calls": 1, "tool_calls": 0, "tokens_in": 2, "tokens_out": 1}
    assert (payload["reads"], payload["result_artifacts"]) == (["inputs.x"], ["d"])
    assert (payload["kind"], payload["result_status"]) == ("analyze", "ok")
    intent = result.sink.of("s")[0]
    assert event.caused_by == intent.id
    assert payload["action_id"] == f"act_{intent.id[3:]}"
    assert set(event.metrics or ()) == {"started_at", "completed_at", "duration_ms"}


def test_trace_holds_one_entry_per_ended_step_in_order_of_ending() -> None:
    bad = raises(lambda: ServerFaultError("call.server-error", "boom", left=True))
    runner = ScriptedRunner({"c.a": gives(y=1), "c.bad": bad})
    main = skill(
        step("ok", "c.a", {"x": "inputs.x"}, output={"y": "vars.y"}),
        step("bad", "c.bad"),
        step("after", "c.a"),
        step("map", "c.a", {"x": "vars.gone"}, depends_on=["ok"]),
    )
    result = run(main, runner, A, capability("c.bad"), keep_going=True, max_workers=1)
    trace = {entry.step_id: entry for entry in result.state.trace.steps}
    assert {k: v.status for k, v in trace.items()} == {
        "ok": "done",
        "bad": "failed",
        "after": "skipped",
        "map": "failed",
    }
    assert (trace["ok"].reads, trace["ok"].writes) == (("inputs.x",), ("vars.y",))
    assert [trace[k].started_at is None for k in ("ok", "bad", "after", "map")] == [
        False,
        False,
        True,
        True,
    ]
    assert [trace[k].latency_ms is None for k in ("ok", "bad", "after", "map")] == [
        False,
        False,
        True,
        True,
    ]
    sums = result.state.trace.metrics
    assert sums.step_count == 3
    assert sums.elapsed_ms == (trace["ok"].latency_ms or 0) + (trace["bad"].latency_ms or 0)
    assert sums.tool_calls == 2


def test_metadata_follow_the_seed() -> None:
    result = run(skill(step("s", "c.a")), ScriptedRunner({"c.a": gives(y=1)}), A)
    state = result.state
    assert (state.state_version, state.skill_version, state.iteration) == ("1.0.0", "1.0.0", 0)
    assert (state.current_step, state.parent_run_id) == (None, None)
    assert state.updated_at == result.sink.events[-1].timestamp
    assert (state.status, state.skill_id) == ("ok", "test.main")


def test_current_step_is_the_running_one_first_in_plan_order() -> None:
    result = run(
        skill(step("a", "c.a", depends_on=[]), step("b", "c.a", depends_on=[])),
        ScriptedRunner({"c.a": gives(y=1)}),
        A,
    )
    started = [e for e in result.sink.events if e.event_type == "step.started"]
    head = [e for e in result.sink.events if e.event_type in ("run.started", "plan.created")]
    state = replayed(head)[head[0].run_id or ""]
    from cogcli.state.reducer import apply

    for event in reversed(started):
        apply(state, event)
    assert state.current_step == "a"


def test_a_pending_run_pauses_and_does_not_terminate() -> None:
    ask = capability("c.a", safety={"requires_confirmation": True})
    inner = skill(step("c", "c.a"), id="test.child")
    result = run(
        skill(step("n", "skill:test.child")), ScriptedRunner({"c.a": echo}), ask, nested=[inner]
    )
    assert result.sink.types()[-1] == "run.paused"
    assert "run.terminated" not in result.sink.types()
    assert payload_of(result.sink.events, "run.paused")["reason"].startswith(
        "safety.confirmation: "
    )
    assert result.sink.durable[-1] == "run.paused None"


def test_every_payload_written_has_the_declared_shape() -> None:
    bad = raises(lambda: ServerFaultError("call.server-error", "boom", left=True))
    guarded = capability(
        "c.g", safety={"mandatory_pre_gates": [{"capability": "g.w", "on_fail": "warn"}]}
    )
    runner = ScriptedRunner(
        {"c.a": gives(y=[1]), "c.bad": bad, "c.g": gives(y=1), "g.w": gives(allowed=False)}
    )
    inner = skill(step("c", "c.a"), step("d", "c.bad"), id="test.child")
    main = skill(
        step(
            "a",
            "c.a",
            {"x": "inputs.x"},
            output={"y": "vars.l"},
            merge_strategy="append",
            depends_on=[],
        ),
        step("b", "c.a", output={"y": "vars.l"}, merge_strategy="append", depends_on=[]),
        step("g", "c.g", depends_on=[]),
        step("n", "skill:test.child", depends_on=[]),
        step("after", "c.a"),
    )
    from fakes.specs import gate

    result = run(
        main, runner, A, capability("c.bad"), guarded, gate("g.w"), nested=[inner], keep_going=True
    )
    events: list[Any] = result.sink.events
    assert {e.event_type for e in events} >= {
        "gate.decided",
        "step.failed",
        "step.skipped",
        "run.terminated",
    }
    assert [problem_of(e.event_type, e.payload) for e in events] == [None] * len(events)
    assert len([e for e in events if closes(e) and e.step_id == "n"]) == 1
