"""What metrics count of runs as the engine logs them (docs/reference/agent-run.md#metrics)."""

from __future__ import annotations

from typing import Any

from fakes.agents import LOOKUP, RanAgent, ScriptedPlanner, calls, invocation, invoke, lookup, says
from fakes.runner import gives, raises
from fakes.support_desk import pack, raw_pack

from cogcli.base.errors import TransportError
from cogcli.episode.decision import DecisionFold
from cogcli.policy.metrics import METRICS, MeasuredCall, MeasuredRun, Ratio, RunMeter

DONE = MeasuredCall(True, True, True)
DOWN = raises(lambda: TransportError("call.transport", "refused", left=False))


def _measured(ran: RanAgent, ceiling: str = "destructive") -> MeasuredRun:
    meter, decision = RunMeter(ceiling), DecisionFold(ran.sink.events[0])
    for number, event in enumerate(ran.sink.events):
        meter.apply(event)
        if number:
            decision.apply(event)
    return meter.finish(decision.record(), 1)


def _retrying() -> Any:
    retry = {"max_attempts": 2, "backoff_seconds": 0}
    look = {
        "id": "look",
        "uses": "orders.lookup",
        "input": {"order_id": "inputs.order_id"},
        "output": {},
    }
    templates = [{"id": "refund_with_eligibility", "steps": [{**look, "config": {"retry": retry}}]}]
    return pack(decision_layer={**raw_pack()["decision_layer"], "task_templates": templates})


def _lanes(number: int) -> Any:
    look = {
        "id": "look",
        "uses": "orders.lookup",
        "input": {"order_id": "inputs.order_id"},
        "output": {},
    }
    steps = [
        {
            "id": f"l{n}",
            "uses": "lane:age",
            "depends_on": [],
            "input": {"order_id": "inputs.order_id"},
            "output": {},
        }
        for n in range(number)
    ]
    templates = [{"id": "age", "steps": [look]}, {"id": "refund_with_eligibility", "steps": steps}]
    return pack(decision_layer={**raw_pack()["decision_layer"], "task_templates": templates})


def test_calls_that_went_well() -> None:
    run = _measured(
        invoke(ScriptedPlanner(lookup(), calls(("policy.eval", {"days": 12})), says("Looked.")))
    )
    assert run.calls == (DONE, DONE)
    assert run.verdicts == ("ok", "ok", "ok")
    assert (run.status, run.tripped, run.gates) == ("completed", False, ("satisfied", "satisfied"))


def test_a_call_that_failed_for_good_failed_first() -> None:
    run = _measured(
        invoke(ScriptedPlanner(lookup(), says("It is down.")), scripts={"orders.lookup": DOWN})
    )
    assert run.calls == (MeasuredCall(True, True, False, True),)
    assert METRICS["recovery_rate"]([run]) == Ratio(0, 1)


def test_a_call_that_was_repeated_and_done_recovered() -> None:
    ran = invoke(given=invocation(_retrying()), scripts={"orders.lookup": [DOWN, gives(**LOOKUP)]})
    run = _measured(ran)
    assert run.calls == (MeasuredCall(True, True, True, True),)
    assert METRICS["recovery_rate"]([run]) == METRICS["tool_success_rate"]([run]) == Ratio(1, 1)


def test_a_plan_that_the_critic_sends_back_has_no_call() -> None:
    run = _measured(invoke(ScriptedPlanner(calls(("orders.delete", {})), says("I cannot."))))
    assert (run.calls, run.verdicts) == ((), ("replan", "ok"))


def test_a_loop_trips_once() -> None:
    run = _measured(invoke(ScriptedPlanner(lookup(), lookup(), lookup(), says("Enough."))))
    assert run.tripped
    assert METRICS["loop_guard_trip_rate"]([run]) == Ratio(1, 1)


def test_calls_of_lanes_are_calls_of_the_run() -> None:
    assert _measured(invoke(given=invocation(_lanes(2)))).calls == (DONE, DONE)


def test_a_call_past_the_budget_never_left() -> None:
    given = invocation(_lanes(4), budget={"tool_calls.per_workflow": 3})
    run = _measured(invoke(given=given, keep_going=True))
    assert len(run.calls) == 3
    assert run.complies


def test_a_call_above_the_ceiling_would_not_comply() -> None:
    ran = invoke(ScriptedPlanner(lookup(), says("Looked.")))
    assert _measured(ran, "read_only").complies
