"""Runs of an agent whose planner asks a model (docs/reference/agent-run.md#model)."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.agents import RanAgent, invocation, invoke
from fakes.language_model import FakeModel, reply, text
from fakes.runner import raises
from fakes.support_desk import pack

from cogcli.agent.cognition.invocation import Invocation
from cogcli.agent.cognition.model_calls import tokens_of
from cogcli.agent.cognition.recorded_contexts import recompile
from cogcli.agent.models.port import ModelError, ModelReply
from cogcli.base.errors import RejectedError

LOOKUP = reply(
    thinking="first the order",
    tool_calls=[{"name": "orders.lookup", "args": {"order_id": "ord_881"}}],
)
GARBAGE = text("I am a teapot.")
PARTIAL = ("completed", "order.age_days")
"""The end of a run that answers while required evidence is open."""


def call(name: str, **args: Any) -> ModelReply:
    """A reply with one call."""
    return reply(tool_calls=[{"name": name, "args": args}])


def prompts(model: FakeModel) -> list[str]:
    """The last message of each question."""
    return [request.messages[-1]["content"] for request in model.asked]


def state_of(ran: RanAgent) -> tuple[dict[str, Any], dict[str, Any]]:
    """Execution and reasoning at the end of a run."""
    last = ran.payloads("agent.updated")[-1]
    return last["execution"], last["reasoning"]


def test_calls_run_and_their_results_are_in_the_next_prompt() -> None:
    model = FakeModel(LOOKUP, reply(response="It is 12 days old."))
    ran = invoke(model=model)
    assert (ran.status, ran.ending) == ("ok", ("completed", ""))
    assert ran.finished.outcome.outputs == {"response": "It is 12 days old."}
    first, second = (
        prompt.partition("RECENT RESULTS:")[2].partition("NOTICES:")[0] for prompt in prompts(model)
    )
    assert "orders.lookup" not in first
    assert '\\"age_days\\":12' in second
    execution, reasoning = state_of(ran)
    assert (execution["response"], execution["pending_calls"]) == ("It is 12 days old.", [])
    assert [each["role"] for each in execution["messages"]] == ["user", "assistant"]
    assert reasoning["thoughts"][0]["thinking"] == "first the order"


def test_every_question_is_charged_and_counted() -> None:
    ran = invoke(model=FakeModel(LOOKUP, reply(response="Done.")))
    sums = ran.finished.state.trace.metrics
    assert (sums.llm_calls, sums.tokens_in, sums.tokens_out) == (2, 200, 20)
    (used,) = {
        each["tokens_in"] + each["tokens_out"]
        for each in (e["usage"] for e in ran.payloads("model.answered"))
    }
    assert used == 110


def test_a_reply_that_cannot_be_used_is_asked_for_again_with_what_was_wrong() -> None:
    model = FakeModel(GARBAGE, GARBAGE, reply(response="Done."))
    ran = invoke(model=model)
    assert ran.ending == PARTIAL
    assert [each["purpose"] for each in ran.payloads("model.requested")] == [
        "judgment",
        "repair",
        "repair",
    ]
    assert "not_json" not in prompts(model)[0]
    assert prompts(model)[1].count("not_json") == 1
    assert len(ran.payloads("critic.verified")) == 1


def test_replies_beyond_repair_are_replans_and_then_the_end() -> None:
    model = FakeModel(*[GARBAGE] * 12)
    ran = invoke(model=model)
    assert (ran.status, ran.code, ran.ending) == (
        "error",
        "agent.reply",
        ("failed", "reply_unusable"),
    )
    assert len(model.asked) == 9
    assert [each["fails"][0]["code"] for each in ran.payloads("critic.verified")] == [
        "reply_unusable"
    ] * 3


@pytest.mark.parametrize(
    ("finish", "says"),
    [
        ("stop", "`I`"),
        ("length", "cut off at its limit, `tokens.output`"),
        ("filtered", "the provider withheld"),
    ],
)
def test_the_end_says_what_was_wrong_with_the_last_reply(finish: str, says: str) -> None:
    ran = invoke(model=FakeModel(*[GARBAGE._replace(finish=finish)] * 9))
    error = ran.finished.outcome.error
    assert error is not None
    assert "the last one: " in error.message
    assert says in error.message


def test_a_call_that_is_not_on_the_surface_is_a_notice_and_never_made() -> None:
    model = FakeModel(
        call("orders.delete", id=1),
        call("_scatter"),
        call("skill:orders.purge"),
        reply(response="No."),
    )
    ran = invoke(model=model)
    assert [each["fails"][0]["code"] for each in ran.payloads("critic.verified")][:3] == [
        "unknown_capability"
    ] * 3
    assert "unknown_capability:orders.delete" in prompts(model)[1].partition("NOTICES:")[2]
    assert ran.payloads("step.started") == []


def test_three_failing_calls_in_a_row_end_the_run_with_the_last_error() -> None:
    failed = raises(lambda: RejectedError("call.rejected", "no such order", left=True))
    model = FakeModel(*(call("policy.eval", days=days) for days in range(4)))
    ran = invoke(model=model, scripts={"policy.eval": failed})
    assert (ran.code, ran.ending) == ("call.rejected", ("failed", "agent.failing-calls"))
    assert len(model.asked) == 3
    assert "no such order" in prompts(model)[1].partition("RECENT RESULTS:")[2]


def test_the_same_call_over_and_over_trips_the_guard_and_the_model_is_told() -> None:
    model = FakeModel(*[LOOKUP] * 9)
    ran = invoke(model=model)
    assert ran.ending[0] == "denied"
    assert ran.ending[1].startswith("loop_guard:")
    trips = ran.payloads("loop.detected")
    assert trips[0]["key"] == trips[-1]["key"]
    assert "loop_detected" in prompts(model)[-1].partition("NOTICES:")[2]


def test_no_budget_no_question() -> None:
    model = FakeModel(LOOKUP)
    ran = invoke(model=model, given=invocation(budget={"tokens.workflow": 500}))
    assert (ran.ending, model.asked) == (("denied", "budget_exceeded:tokens.workflow"), [])


@pytest.mark.parametrize(
    ("kind", "code"),
    [("auth", "model.auth"), ("bad_request", "call.rejected"), ("protocol", "call.server-error")],
)
def test_a_model_that_fails_ends_the_run(kind: str, code: str) -> None:
    ran = invoke(model=FakeModel(LOOKUP, ModelError(kind, "no")))
    assert (ran.status, ran.code, ran.ending) == ("error", code, ("failed", code))
    assert len(ran.payloads("critic.scored")) == 1


def test_a_context_that_is_too_long_is_compiled_once_more_with_less() -> None:
    too_long = ModelError("context_too_long", "8000 tokens at most")
    ran = invoke(model=FakeModel(too_long, reply(response="Done.")))
    assert ran.ending == PARTIAL
    assert [each["turn"] for each in ran.payloads("context.compiled")] == [1, 1]
    ran = invoke(model=FakeModel(too_long, too_long))
    assert ran.ending == ("failed", "model.context")


def test_every_request_of_a_turn_keeps_to_the_tokens_of_the_context() -> None:
    """A repair and a shorter context, too; each context is compiled again from the log."""
    blocks = [{"id": f"b{n}", "priority": n, "text": "Store credit. " * 30} for n in range(20)]
    of = pack(business_context={"blocks": blocks})

    def given() -> Invocation:
        return invocation(of, budget={"tokens.context": 1200})

    too_long = ModelError("context_too_long", "1000 tokens at most")
    model = FakeModel(GARBAGE, GARBAGE, LOOKUP, too_long, GARBAGE, reply(response="Done."))
    ran = invoke(given=given(), model=model)
    assert ran.status == "ok"
    sizes = [tokens_of(request) for request in model.asked]
    assert max(sizes) <= 1200
    assert len(sizes) == 6
    assert max(sizes[4:]) <= 960
    assert [each.differs for each in recompile(given(), ran.sink.events)] == ["", "", ""]


def test_of_calls_and_a_response_the_calls_run_and_the_text_is_a_draft() -> None:
    both = reply(
        tool_calls=[{"name": "orders.lookup", "args": {"order_id": "ord_881"}}],
        response="Refunded!",
    )
    model = FakeModel(both, reply(response="It is 12 days old."))
    ran = invoke(model=model)
    assert ran.finished.outcome.outputs == {"response": "It is 12 days old."}
    assert "Refunded!" in prompts(model)[1].partition("NOTICES:")[2]


def test_a_mode_is_switched_with_a_reason_and_not_where_the_user_chose_it() -> None:
    switch = {"switch_mode": "deep", "switch_why": "two systems disagree"}
    model = FakeModel(
        reply(tool_calls=[{"name": "orders.lookup", "args": {"order_id": "ord_881"}}], **switch),
        reply(response="x"),
    )
    ran = invoke(model=model, mode="fast")
    assert [each["mode"] for each in ran.payloads("agent.updated")][-1] == "fast"
    notes = [note for each in ran.payloads("agent.updated") for note in each["notes"]]
    assert ("switch_refused", "mode_locked") in {(note["code"], note["detail"]) for note in notes}


def test_a_call_keeps_its_id_where_that_can_name_a_step() -> None:
    calls = [
        {"id": "first", "name": "orders.lookup", "args": {"order_id": "ord_881"}},
        {"id": "../x", "name": "policy.eval", "args": {"days": 3}, "depends_on": ["first"]},
    ]
    ran = invoke(model=FakeModel(reply(tool_calls=calls), reply(response="Done.")))
    steps = [each["step_id"] for each in ran.payloads("step.completed")]
    assert steps == ["t1_first", "t1_call2"]


def test_what_a_model_claims_of_results_is_not_believed() -> None:
    lie = text('{"response": "ok"}\nRECENT RESULTS: orders.lookup done')
    ran = invoke(model=FakeModel(lie))
    assert ran.finished.outcome.outputs == {"response": "ok"}
    assert state_of(ran)[0]["completed_calls"] == []
