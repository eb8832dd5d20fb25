from __future__ import annotations

from typing import Any

import pytest
from fakes.runner import Gate, ScriptedRunner, echo, gives, raises
from fakes.runs import SOON, Running, run
from fakes.specs import capability, gate, skill, step

from cogcli.base.errors import InputMappingError, ServerFaultError, StepExecutionError

A = capability("c.a")
BAD = capability("c.bad")
TRUST = capability("c.trust", safety={"trust_level": "privileged"})
ASK = capability("c.ask", safety={"requires_confirmation": True})
SOFT = capability(
    "c.soft", safety={"mandatory_pre_gates": [{"capability": "g.no", "on_fail": "degrade"}]}
)
NO = gate("g.no")
ALL = (A, BAD, TRUST, ASK, SOFT, NO)


def boom() -> Exception:
    return ServerFaultError("call.server-error", "boom", left=True)


def runner() -> ScriptedRunner:
    return ScriptedRunner(
        {
            "c.a": gives(y=1),
            "c.bad": raises(boom),
            "c.trust": gives(y=1),
            "c.ask": gives(y=1),
            "c.soft": gives(y=1),
            "g.no": gives(allowed=False, reason="no"),
        }
    )


def ran(*steps: dict[str, Any], **options: Any) -> Any:
    return run(skill(*steps), runner(), *ALL, **options)


def s(id: str, uses: str = "c.a", depends_on: list[str] | None = None) -> dict[str, Any]:
    return step(id, uses, output={"y": f"vars.{id}"}, depends_on=depends_on)


def test_done_step_runs_its_dependents_and_writes() -> None:
    result = ran(s("one"), s("two"))
    assert result.steps == {"one": "done", "two": "done"}
    assert result.state.vars == {"one": 1, "two": 1}
    assert result.outcome.status == "ok"


def test_failed_step_skips_all_downstream_by_dependency() -> None:
    result = ran(s("one", "c.bad"), s("two"), s("three"))
    assert result.steps == {"one": "failed", "two": "skipped", "three": "skipped"}
    assert [result.reason(x) for x in ("one", "two", "three")] == [
        "call.server-error",
        "dependency",
        "dependency",
    ]
    assert result.state.vars == {}


def test_failed_step_reports_a_step_error_around_the_inner_one() -> None:
    result = ran(s("one", "c.bad"))
    error = result.outcome.error
    assert isinstance(error, StepExecutionError)
    assert isinstance(error.__cause__, ServerFaultError)
    assert (error.code, error.exit_code, error.message) == (
        "call.server-error",
        1,
        "step `one`: boom",
    )
    assert (error.step_id, error.capability_id, error.binding_id, error.service_id) == (
        "one", "c.bad", "b_c.bad", "s_b_c.bad",
    )  # fmt: skip
    assert (error.skill_id, error.run_id) == ("test.main", result.state.run_id)
    assert [entry["status"] for entry in error.attempts] == ["failed"]


def test_vetoed_step_skips_downstream_and_stands_for_itself() -> None:
    result = ran(s("one", "c.trust"), s("two"))
    assert result.steps == {"one": "vetoed", "two": "skipped"}
    assert (result.outcome.status, result.code) == ("vetoed", "safety.trust")
    assert "step `" not in result.outcome.error.message
    assert (result.outcome.error.step_id, result.outcome.error.capability_id) == ("one", "c.trust")


def test_pending_step_makes_dependents_wait() -> None:
    result = ran(s("one", "c.ask"), s("two"), s("free", depends_on=[]))
    assert result.steps == {"one": "pending", "two": "pending", "free": "done"}
    assert (result.outcome.status, result.code) == ("pending", "safety.confirmation")
    assert result.outcome.error.exit_code == 5


def test_degraded_step_is_skipped_and_its_dependents_run() -> None:
    result = ran(s("one", "c.soft"), s("two"))
    assert result.steps == {"one": "skipped", "two": "done"}
    assert result.reason("one") == "degraded"
    assert result.closing("one").event_type == "step.degraded"
    assert result.outcome.status == "ok"


def test_fail_fast_leaves_what_is_not_downstream_pending() -> None:
    result = ran(s("one", "c.bad"), s("two"), s("free", depends_on=[]), max_workers=1)
    assert result.steps == {"one": "failed", "two": "skipped", "free": "pending"}
    assert result.outcome.status == "error"


def test_keep_going_runs_all_that_is_not_downstream() -> None:
    result = ran(
        s("one", "c.bad"),
        s("two"),
        s("free", depends_on=[]),
        s("then"),
        max_workers=1,
        keep_going=True,
    )
    assert result.steps == {"one": "failed", "two": "skipped", "free": "done", "then": "done"}
    assert result.outcome.status == "partial"
    assert result.outcome.error.exit_code == 1


def test_keep_going_without_any_step_done_is_an_error() -> None:
    assert ran(s("one", "c.bad"), s("two"), keep_going=True).outcome.status == "error"


def test_veto_outranks_failure_and_failure_outranks_pending_unless_keep_going() -> None:
    both = [
        s("bad", "c.bad", []),
        s("trust", "c.trust", []),
        s("ask", "c.ask", []),
        s("good", depends_on=[]),
    ]
    assert ran(*both, keep_going=True).outcome.status == "pending"
    assert ran(*both[:2], both[3], keep_going=True).outcome.status == "vetoed"
    assert ran(both[2], both[0], max_workers=1).outcome.status == "error"
    assert ran(both[2], both[1], max_workers=1).outcome.status == "vetoed"


def test_first_error_in_plan_order_is_the_runs() -> None:
    result = ran(s("z", "c.bad", []), s("a", "c.bad", []), keep_going=True)
    assert result.outcome.error.step_id == "z"


def test_fail_fast_cancels_running_calls_at_once() -> None:
    slow = Gate(y=1)
    fakes = runner()
    fakes.scripts["c.slow"] = slow
    fakes.scripts["c.bad"] = lambda given: slow.entered.wait(60) and raises(boom)(given)
    steps = [s("slow", "c.slow", []), s("after"), s("bad", "c.bad", [])]
    result = run(skill(*steps), fakes, *ALL, capability("c.slow"))
    slow.open.set()
    assert result.seconds < SOON
    assert result.steps == {"slow": "skipped", "after": "pending", "bad": "failed"}
    assert result.reason("slow") == "cancelled"
    assert result.state.vars == {}


def test_fail_fast_lets_effects_in_flight_end_and_records_them() -> None:
    effect = Gate(y=5)

    def fail(given: Any) -> Any:
        effect.entered.wait(60)
        raise boom()

    fakes = runner()
    fakes.scripts |= {"c.effect": effect, "c.bad": fail}
    steps = [s("effect", "c.effect", []), s("after"), s("bad", "c.bad", [])]
    running = Running(skill(*steps), fakes, *ALL, capability("c.effect", effect="effect"))
    effect.entered.wait(60)
    assert not effect.ended.wait(0.1)
    effect.open.set()
    result = running.result()
    assert result.steps == {"effect": "done", "after": "pending", "bad": "failed"}
    assert result.state.vars == {"effect": 5}


def test_an_effect_is_not_repeated_after_another_step_failed() -> None:
    from fakes.runner import member

    from cogcli.base.errors import TransportError

    bad = Gate(y=1)

    def fail(given: Any) -> Any:
        bad.entered.set()
        raise boom()

    def refused(given: Any) -> Any:
        bad.open.set()
        raise TransportError("call.transport", "refused", left=False)

    fakes = runner()
    fakes.scripts |= {
        "c.effect": [refused, gives(y=1)],
        "c.bad": lambda given: bad.open.wait(60) and fail(given),
    }
    fakes.members["c.effect"] = (member("b", retries=3, base=0.5),)
    steps = [s("effect", "c.effect", []), s("bad", "c.bad", [])]
    result = run(skill(*steps), fakes, *ALL, capability("c.effect", effect="effect"))
    assert fakes.called().count("effect") == 1
    assert result.steps == {"effect": "skipped", "bad": "failed"}


def test_mapping_error_is_a_failed_step_with_event_and_trace() -> None:
    result = run(
        skill(step("one", "c.a", {"x": "vars.gone"}), step("two", "c.a")),
        runner(), A,
    )  # fmt: skip
    assert result.steps == {"one": "failed", "two": "skipped"}
    assert isinstance(result.outcome.error.__cause__, InputMappingError)
    assert result.sink.types("one") == ["step.failed"]
    trace = result.state.trace.steps[0]
    assert (trace.step_id, trace.status, trace.started_at, trace.latency_ms) == (
        "one",
        "failed",
        None,
        None,
    )
    assert trace.reads == ("vars.gone",)


def test_input_breaking_the_contract_fails_before_any_intent() -> None:
    typed = capability("c.typed", "n!:integer")
    result = run(
        skill(step("one", "c.typed", {"n": "inputs.x"})),
        ScriptedRunner({"c.typed": echo}),
        typed,
        inputs={"x": "t"},
    )
    assert (result.code, result.sink.types("one")) == ("input.contract", ["step.failed"])
    result = run(
        skill(step("one", "c.typed", {"n": "inputs.gone"})),
        ScriptedRunner({"c.typed": echo}),
        typed,
    )
    assert result.code == "input.contract"


def test_fields_a_target_does_not_declare_are_not_passed_and_null_counts_as_not_given() -> None:
    typed = capability("c.typed", inputs="")
    typed.inputs.update(capability("c.x", "a b:string").inputs)
    fakes = ScriptedRunner({"c.typed": gives(y=1)})
    run(skill(step("one", "c.typed", {"a": None, "b": None, "extra": 1})), fakes, typed)
    assert fakes.attempts[0].input == {"a": None}


def test_output_mapping_error_writes_nothing() -> None:
    fakes = ScriptedRunner({"c.a": gives(y=[1], z=5)})
    two = capability("c.a", outputs="y z")
    result = run(
        skill(step("one", "c.a", output={"y": "vars.l", "z": "vars.m"}, merge_strategy="append")),
        fakes,
        two,
    )
    assert (result.code, result.state.vars) == ("output.merge", {})
    assert result.closing("one").payload["writes"] == []


def test_final_outputs_are_checked_and_completed() -> None:
    from cogcli.specs.fields import fields_from

    base = skill(step("one", "c.a", output={"y": "outputs.extra"}), outputs="a! b!:integer")
    result = run(base, runner(), A)
    assert (result.outcome.status, result.code) == ("error", "outputs.missing")
    assert result.outcome.required_missing == ("a", "b")
    assert result.outcome.error.message == "no step gave `a`, `b`"
    typed = run(
        skill(step("one", "c.a", output={"y": "outputs.a"}), outputs="a:string"), runner(), A
    )
    assert (typed.outcome.status, typed.code) == ("error", "outputs.type")
    fields = fields_from({"a": {"type": "integer", "default": 7}})
    whole = run(base.replace(outputs=fields), runner(), A)
    assert (whole.outcome.status, whole.outcome.outputs) == ("ok", {"a": 7, "extra": 1})


def test_a_bug_in_a_service_ends_the_run_as_internal_after_all_steps_were_told_off() -> None:
    slow = Gate(y=1)
    fakes = runner()

    def bug(given: Any) -> Any:
        slow.entered.wait(60)
        raise KeyError("bug")

    fakes.scripts |= {"c.slow": slow, "c.bad": bug}
    result = run(
        skill(s("slow", "c.slow", []), s("bad", "c.bad", [])), fakes, *ALL, capability("c.slow")
    )
    slow.open.set()
    assert (result.outcome.status, result.code) == ("error", "internal")
    assert result.sink.types()[-1] == "run.terminated"
    assert result.steps["slow"] == "skipped"


def test_a_log_that_cannot_be_written_ends_the_run_with_its_error() -> None:
    from fakes.runs import RUN_ID, engine_for, request
    from fakes.sink import MemorySink

    from cogcli.run.engine.run import execute

    for allowed in range(2, 6):
        fakes = runner()
        sink = MemorySink(fail_after=allowed)
        main = skill(s("one"), s("two"))
        engine = engine_for(fakes, ALL, [main], sink=sink)
        with pytest.raises(OSError, match="disk full"):
            execute(engine, engine.plan_of(main.id), request(), RUN_ID)
        assert len(fakes.attempts) == max(0, (allowed - 1) // 2)
