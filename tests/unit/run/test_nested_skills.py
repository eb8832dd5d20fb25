from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from fakes.runner import Gate, ScriptedRunner, echo, gives, raises
from fakes.runs import RUN_ID, Running, engine_for, request, run
from fakes.sink import payload_of
from fakes.specs import capability, skill, step
from support.waiting import wait_until

from cogcli.base.calls import Answer
from cogcli.base.errors import ServerFaultError
from cogcli.run.engine.run import execute

A = capability("c.a", "x l", "x l")


def boom() -> Exception:
    return ServerFaultError("call.server-error", "boom", left=True)


def child(
    *steps: dict[str, Any], id: str = "test.child", inputs: str = "x l", outputs: str = "x l"
) -> Any:
    return skill(*steps, id=id, inputs=inputs, outputs=outputs)


def test_child_has_its_own_state_and_gives_its_declared_outputs() -> None:
    inner = child(
        step("c", "c.a", {"x": "inputs.x"}, output={"x": "outputs.x"}),
        step("d", "c.a", {"x": "vars.x"}, output={"x": "outputs.undeclared"}),
    )
    main = skill(
        step("a", "c.a", {"x": "inputs.x"}, output={"x": "vars.x"}),
        step("n", "skill:test.child", {"x": "vars.x"}, output={"x": "outputs.got"}),
    )
    failing = run(main, ScriptedRunner({"c.a": echo}), A, nested=[inner], inputs={"x": 5})
    assert failing.code == "input.reference", "a child does not see its parent's vars"
    inner = child(
        step("c", "c.a", {"x": "inputs.x"}, output={"x": "vars.x", "inputs.x": "outputs.x"})
    )
    result = run(main, ScriptedRunner({"c.a": echo}), A, nested=[inner], inputs={"x": 5})
    assert (result.state.vars, result.state.outputs) == ({"x": 5}, {"got": 5})


def test_undeclared_outputs_of_a_child_stay_with_it() -> None:
    inner = child(step("c", "c.a", {"x": "inputs.x"}, output={"x": "outputs.secret"}), outputs="x")
    main = skill(step("n", "skill:test.child", {"x": 1}))
    result = run(main, ScriptedRunner({"c.a": echo}), A, nested=[inner])
    assert result.closing("n").payload["output"] == {}


def test_child_value_changes_reach_neither_parent_nor_caller() -> None:
    def vandal(given: dict[str, Any]) -> Any:
        given["l"].append("vandal")
        return {"l": [9]}

    inner = child(step("c", "c.a", {"l": "inputs.l"}, output={"inputs.l": "outputs.l", "l": "vars.l"}),
                  step("d", "c.a", {"l": "inputs.l"}, output={"l": "outputs.l"}, merge_strategy="append"))  # fmt: skip
    main = skill(
        step("n", "skill:test.child", {"l": "inputs.l"}, output={"l": "vars.got"}), inputs="l"
    )
    given = {"l": [1]}
    result = run(main, ScriptedRunner({"c.a": vandal}), A, nested=[inner], inputs=given)
    assert given == {"l": [1]}
    assert result.state.inputs == {"l": [1]}
    assert result.state.vars == {"got": [1, 9]}


def test_child_inherits_frame_options_and_trace_and_names_its_parent() -> None:
    inner = child(step("c", "c.a", {"x": "frame.goal"}, output={"x": "outputs.x"}))
    main = skill(step("n", "skill:test.child", output={"x": "outputs.x"}))
    result = run(
        main,
        ScriptedRunner({"c.a": echo}),
        A,
        nested=[inner],
        frame={"goal": "g", "assumptions": ["z"]},
        max_workers=3,
    )
    parent, inside = [e for e in result.sink.events if e.event_type == "run.started"]
    assert result.state.outputs == {"x": "g"}
    assert inside.payload["parent_run_id"] == parent.run_id
    assert inside.run_id != parent.run_id
    assert inside.payload["options"] == parent.payload["options"]
    assert inside.payload["frame"]["assumptions"] == ["z"]
    assert (inside.step_id, inside.trace_id) == ("n", parent.trace_id)
    assert {e.step_id for e in result.sink.events if e.run_id == inside.run_id} == {"n", "n/c"}


def test_input_is_checked_by_the_childs_contract_with_its_defaults() -> None:
    typed = skill(
        step("c", "c.a", {"x": "inputs.x"}, output={"x": "outputs.x"}),
        id="test.child", inputs="x!:integer", outputs="x",
    )  # fmt: skip
    main = skill(step("n", "skill:test.child", {"x": "inputs.x"}))
    result = run(main, ScriptedRunner({"c.a": echo}), A, nested=[typed], inputs={"x": "t"})
    assert (result.code, result.sink.types("n")) == ("input.contract", ["step.failed"])


def test_an_error_is_told_once_with_the_whole_way() -> None:
    deep = child(step("c", "c.bad"), id="test.deep")
    inner = child(step("b", "skill:test.deep"))
    main = skill(step("a", "skill:test.child"))
    runner = ScriptedRunner({"c.bad": raises(boom)})
    result = run(main, runner, capability("c.bad"), nested=[inner, deep])
    error = result.outcome.error
    assert error is not None
    assert (
        error.message
        == "step `a` > skill `test.child` > step `b` > skill `test.deep` > step `c`: boom"
    )
    assert (error.step_id, error.skill_id, error.capability_id) == ("a/b/c", "test.deep", "c.bad")
    messages = [
        payload_of(result.sink.events, "step.failed", s)["error"]["message"]
        for s in ("a/b/c", "a/b", "a")
    ]
    assert messages == [
        "boom",
        "skill `test.deep` > step `c`: boom",
        "skill `test.child` > step `b` > skill `test.deep` > step `c`: boom",
    ]


def test_outputs_a_child_does_not_give_are_told_with_its_name() -> None:
    inner = child(step("c", "c.a", {"x": 1}), outputs="need!")
    result = run(
        skill(step("n", "skill:test.child")), ScriptedRunner({"c.a": echo}), A, nested=[inner]
    )
    assert result.code == "outputs.missing"
    assert result.outcome.error is not None
    assert result.outcome.error.message == "step `n` > skill `test.child`: no step gave `need`"


def test_child_vetoed_or_pending_makes_the_step_so() -> None:
    for safety, status, code in (
        ({"trust_level": "privileged"}, "vetoed", "safety.trust"),
        ({"requires_confirmation": True}, "pending", "safety.confirmation"),
    ):
        guarded = capability("c.guarded", safety=safety)
        inner = child(step("c", "c.guarded"))
        result = run(
            skill(step("n", "skill:test.child")),
            ScriptedRunner({"c.guarded": echo}),
            guarded,
            nested=[inner],
        )
        assert (result.outcome.status, result.code, result.steps["n"]) == (status, code, status)
        assert result.outcome.error is not None
        assert result.outcome.error.message.startswith(
            "step `n` > skill `test.child` > step `c`: `c.guarded` needs"
        )


def test_child_calls_and_tokens_are_added_to_the_parent_but_not_its_steps() -> None:
    runner = ScriptedRunner(
        {"c.a": lambda given: Answer({"x": 1}, {"input_tokens": 3, "output_tokens": 2})}
    )
    inner = child(step("c", "c.a"), step("d", "c.a"))
    main = skill(step("a", "c.a"), step("n", "skill:test.child"))
    result = run(main, runner, A, nested=[inner])
    sums = result.state.trace.metrics
    assert (sums.step_count, sums.llm_calls, sums.tool_calls, sums.tokens_in, sums.tokens_out) == (
        2,
        3,
        0,
        9,
        6,
    )


def test_calls_of_a_child_that_failed_count_too() -> None:
    runner = ScriptedRunner({"c.a": echo, "c.bad": raises(boom)})
    inner = child(step("c", "c.a"), step("d", "c.bad"))
    result = run(
        skill(step("n", "skill:test.child")), runner, A, capability("c.bad"), nested=[inner]
    )
    assert result.state.trace.metrics.tool_calls == 2


def test_fail_fast_in_the_parent_starts_nothing_new_in_a_child() -> None:
    """Two effects run in the child; when the shorter ends, neither its dependent nor another step may start."""
    short, long, fail = Gate(x=1), Gate(x=1), threading.Event()

    def failing(given: Any) -> Any:
        fail.wait(60)
        raise boom()

    runner = ScriptedRunner({"c.short": short, "c.long": long, "c.a": echo, "c.bad": failing})
    inner = child(
        step("s", "c.short", depends_on=[]),
        step("s2", "c.a"),
        step("l", "c.long", depends_on=[]),
        step("plain", "c.wait", depends_on=[]),
        step("late", "c.a", depends_on=[]),
    )
    waits = Gate(x=1)
    runner.scripts["c.wait"] = waits
    main = skill(step("n", "skill:test.child", depends_on=[]), step("bad", "c.bad", depends_on=[]))
    caps = [capability(name, effect="effect") for name in ("c.short", "c.long")]
    caps += [A, capability("c.bad"), capability("c.wait")]
    running = Running(main, runner, *caps, nested=[inner], max_workers=4)
    for gate in (short, long, waits):
        assert gate.entered.wait(60)
    fail.set()
    wait_until(lambda: running.engine.sink.types("bad")[-1:] == ["step.failed"])
    short.open.set()
    time.sleep(0.1)
    long.open.set()
    result = running.result()
    waits.open.set()
    assert result.steps == {"n": "skipped", "bad": "failed"}
    assert set(runner.called()) == {"n/s", "n/l", "n/plain", "bad"}
    statuses = {
        e.step_id: e.payload["step_status"]
        for e in result.sink.events
        if "step_status" in e.payload
    }
    assert (statuses["n/s"], statuses["n/l"], statuses["n/plain"], statuses["n"]) == (
        "done",
        "done",
        "skipped",
        "skipped",
    )
    assert "n/s2" not in statuses
    assert "n/late" not in statuses


def test_skills_nest_ten_deep_and_no_deeper() -> None:
    def tower(height: int) -> list[Any]:
        floors = [
            child(step("s", f"skill:test.f{n + 1}"), id=f"test.f{n}") for n in range(1, height)
        ]
        return [*floors, child(step("s", "c.a"), id=f"test.f{height}")]

    main = skill(step("s", "skill:test.f1"))
    assert run(main, ScriptedRunner({"c.a": gives()}), A, nested=tower(10)).outcome.status == "ok"
    result = run(main, ScriptedRunner({"c.a": gives()}), A, nested=tower(11))
    assert result.code == "skill.depth"


@pytest.mark.parametrize("answered", ["before the failure", "after it"])
def test_an_effect_that_waits_for_plan_order_in_a_cut_off_child_holds_nobody_up(
    answered: str,
) -> None:
    """It waits for an earlier writer; once the parent failed nobody in the child would tell it that that is over."""
    slow, effect, fail = Gate(x=[1]), Gate(x=[2]), threading.Event()

    def failing(given: Any) -> Any:
        fail.wait(60)
        raise boom()

    runner = ScriptedRunner({"c.slow": slow, "c.effect": effect, "c.bad": failing})
    inner = child(
        *(
            step(id, uses, depends_on=[], output={"x": "vars.list"}, merge_strategy="append")
            for id, uses in (("a", "c.slow"), ("b", "c.effect"))
        )
    )
    main = skill(step("n", "skill:test.child", depends_on=[]), step("bad", "c.bad", depends_on=[]))
    running = Running(
        main,
        runner,
        capability("c.slow", "", "x"),
        capability("c.effect", "", "x", effect="effect"),
        capability("c.bad"),
        nested=[inner],
    )
    for gate in (slow, effect):
        assert gate.entered.wait(60)
    if answered == "before the failure":
        effect.open.set()
        wait_until(lambda: "step.answered" in running.engine.sink.types("n/b"))
        fail.set()
    else:
        fail.set()
        wait_until(lambda: "step.failed" in running.engine.sink.types("bad"))
        effect.open.set()
    result = running.result()
    slow.open.set()
    assert result.steps == {"n": "skipped", "bad": "failed"}
    assert result.sink.types("n/b") == ["step.started", "step.answered", "step.skipped"]


@pytest.mark.parametrize(("first_rules", "given"), [(False, {}), (True, {"x": None})])
def test_an_optional_any_that_reads_nothing_is_null_under_the_first_rules_alone(
    first_rules: bool, given: dict[str, Any]
) -> None:
    """Logs of those rules are told again as they were."""
    inner = child(step("c", "c.a", {"x": "inputs.x"}))
    main = skill(step("n", "skill:test.child", {"x": "inputs.x"}))
    engine = engine_for(ScriptedRunner({"c.a": echo}), [A], [main, inner])
    engine.passes_null = first_rules
    execute(engine, engine.plan_of(main.id), request(), RUN_ID)
    for id in ("n", "n/c"):
        assert payload_of(engine.sink.of(id), "step.started")["input"] == given
