from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fakes.runner import ScriptedRunner, gives, member, raises
from fakes.runs import SOON, Ran, run
from fakes.specs import capability, skill, step

from cogcli.base import errors
from cogcli.base.calls import Answer, SkippedBinding
from cogcli.base.errors import FAILURE_OF, FAILURES, RuntimeErrorBase

CALL_CODES = [
    "request.missing", "request.value", "response.missing", "response.type", "response.not-json", "call.transport",
    "call.timeout", "call.overloaded", "call.server-error", "call.rejected", "service.module", "env.extra",
    "safety.scope",
]  # fmt: skip
CLASS_OF = {code: row.cls for row in FAILURES for code in row.codes}


def failing(code: str, left: bool | None = False) -> Callable[[dict[str, Any]], Any]:
    def make() -> BaseException:
        cls = CLASS_OF[code]
        assert issubclass(cls, RuntimeErrorBase)
        return cls(code, "went wrong", left=left)

    return raises(make)


def called(
    scripts: list[Any],
    *members: Any,
    effect: str = "none",
    passed_over: tuple[SkippedBinding, ...] = (),
) -> Ran:
    runner = ScriptedRunner({"c.a": scripts})
    runner.members["c.a"] = members
    runner.passed_over["c.a"] = passed_over
    return run(
        skill(step("s", "c.a", output={"y": "vars.y"})), runner, capability("c.a", effect=effect)
    )


def through(result: Ran) -> list[str]:
    return [attempt.member.binding_id for attempt in result.runner.attempts]


ONE, TWO, THREE = member("b1"), member("b2"), member("b3")


@pytest.mark.parametrize("code", CALL_CODES)
def test_only_errors_marked_so_fall_back(code: str) -> None:
    result = called([failing(code), gives(y=2)], ONE, TWO)
    if FAILURE_OF[code].falls_back:
        assert (through(result), result.state.vars) == (["b1", "b2"], {"y": 2})
    else:
        assert (through(result), result.code) == (["b1"], code)


@pytest.mark.parametrize("effect", ["none", "idempotent", "effect", "unknown"])
@pytest.mark.parametrize("left", [True, False, None])
def test_no_fallback_once_something_not_repeatable_may_have_left(
    effect: str, left: bool | None
) -> None:
    result = called([failing("call.server-error", left), gives(y=2)], ONE, TWO, effect=effect)
    allowed = effect in ("none", "idempotent") or left is False
    assert through(result) == (["b1", "b2"] if allowed else ["b1"])


@pytest.mark.parametrize("effect", ["none", "idempotent", "effect", "unknown"])
@pytest.mark.parametrize("left", [True, False, None])
def test_a_binding_repeats_itself_under_the_same_rule(effect: str, left: bool | None) -> None:
    result = called(
        [failing("call.transport", left), gives(y=2)], member("b1", retries=1), effect=effect
    )
    allowed = effect in ("none", "idempotent") or left is False
    assert len(result.runner.attempts) == (2 if allowed else 1)
    if effect == "effect" and not allowed:
        assert (result.outcome.status, result.code) == ("pending", "effect.in-doubt")


@pytest.mark.parametrize("code", CALL_CODES)
def test_a_binding_repeats_transport_timeout_and_overload_only(code: str) -> None:
    result = called([failing(code), gives(y=2)], member("b1", retries=1))
    repeated = code in ("call.transport", "call.timeout", "call.overloaded")
    assert len(result.runner.attempts) == (2 if repeated else 1)


def test_repeats_come_first_then_the_next_binding_of_the_chain() -> None:
    bad = failing("call.transport")
    result = called(
        [bad, bad, bad, bad, gives(y=2)], member("b1", retries=1), member("b2", retries=1), THREE
    )
    assert through(result) == ["b1", "b1", "b2", "b2", "b3"]
    assert [a.number for a in result.runner.attempts] == [1, 2, 3, 4, 5]
    assert len({a.idempotency_key for a in result.runner.attempts}) == 1


def test_every_attempt_is_kept_in_the_closing_event() -> None:
    result = called(
        [failing("call.transport"), failing("response.missing", True), gives(y=2)], ONE, TWO, THREE
    )
    payload = result.closing("s").payload
    assert payload["attempts"] == [
        {
            "binding_id": "b1",
            "service_id": "s_b1",
            "status": "failed",
            "code": "call.transport",
            "message": "went wrong",
            "left": False,
        },
        {
            "binding_id": "b2",
            "service_id": "s_b2",
            "status": "failed",
            "code": "response.missing",
            "message": "went wrong",
            "left": True,
        },
        {"binding_id": "b3", "service_id": "s_b3", "status": "success"},
    ]
    assert payload["tool"] == "pythoncall:s_b3"
    assert result.closing("s").agent_id == "b3"


# -- fallback records --------------------------------------------------------------------------------------------------

UNSET = SkippedBinding("b0", "s_b0", "env.missing", "`KEY` is not set", 0)
MIDDLE = SkippedBinding("bm", "s_bm", "safety.scope", "reaches the public network", 1)
LAST = SkippedBinding("bz", None, "service.unknown", "no such service", 2)
BAD = failing("call.transport")


def statuses(result: Ran) -> list[tuple[str, str, str | None]]:
    attempts = result.closing("s").payload["attempts"]
    return [(each["binding_id"], each["status"], each.get("code")) for each in attempts]


def test_a_chain_of_one_tells_no_fallback() -> None:
    assert "fallback" not in called([gives(y=2)], ONE).closing("s").payload


@pytest.mark.parametrize(
    ("scripts", "used"), [([gives(y=2)], False), ([BAD, gives(y=2)], True), ([BAD, BAD], True)]
)
def test_a_chain_tells_whether_its_fallback_was_used(scripts: list[Any], used: bool) -> None:
    told = called(scripts, ONE, TWO).closing("s").payload["fallback"]
    assert told == {"fallback_used": used, "fallback_chain": ["b1", "b2"]}


def test_bindings_passed_over_stand_where_their_turn_was() -> None:
    result = called([BAD, gives(y=2)], ONE, TWO, passed_over=(UNSET, MIDDLE, LAST))
    assert statuses(result) == [
        ("b0", "skipped", "env.missing"),
        ("b1", "failed", "call.transport"),
        ("bm", "skipped", "safety.scope"),
        ("b2", "success", None),
    ]
    payload = result.closing("s").payload
    assert payload["attempts"][0] == {
        "binding_id": "b0",
        "service_id": "s_b0",
        "status": "skipped",
        "code": "env.missing",
        "message": "`KEY` is not set",
    }
    assert payload["fallback"] == {
        "fallback_used": True,
        "fallback_chain": ["b0", "b1", "bm", "b2", "bz"],
    }
    assert [attempt.number for attempt in result.runner.attempts] == [1, 2]
    (intent,) = [e.payload for e in result.sink.of("s") if e.event_type == "call.retried"]
    assert (intent["attempt"], intent["error"]["code"]) == (2, "call.transport")


def test_what_follows_the_last_attempt_is_told_where_the_chain_was_used_up() -> None:
    assert statuses(called([BAD, BAD], ONE, TWO, passed_over=(LAST,)))[-1] == (
        "bz",
        "skipped",
        "service.unknown",
    )
    stopped = called([failing("call.rejected")], ONE, TWO, passed_over=(MIDDLE, LAST))
    assert statuses(stopped) == [("b1", "failed", "call.rejected")]


def test_the_first_binding_passed_over_makes_the_next_one_a_fallback() -> None:
    told = called([gives(y=2)], ONE, passed_over=(UNSET,)).closing("s").payload["fallback"]
    assert told == {"fallback_used": True, "fallback_chain": ["b0", "b1"]}


def test_an_open_circuit_is_an_attempt_of_its_own_status_and_falls_back() -> None:
    result = called(
        [failing("call.circuit-open"), gives(y=2)], member("b1", retries=3), TWO, effect="effect"
    )
    assert statuses(result) == [
        ("b1", "circuit_open", "call.circuit-open"),
        ("b2", "success", None),
    ]
    assert result.state.vars == {"y": 2}


def test_each_attempt_after_the_first_leaves_its_own_intent() -> None:
    scripts = [failing("call.transport"), failing("call.transport"), gives(y=2)]
    result = called(scripts, member("b1", retries=1, base=0.02), TWO)
    assert result.sink.types("s") == [
        "step.started",
        "call.retried",
        "call.retried",
        "step.completed",
    ]
    retries = [e.payload for e in result.sink.of("s") if e.event_type == "call.retried"]
    assert [(p["attempt"], p["binding"], p["reason"], p["wait_ms"]) for p in retries] == [
        (2, "b1", "repeat", 20),
        (3, "b2", "fallback", 0),
    ]


def test_the_error_of_an_exhausted_chain_names_the_first_and_the_last() -> None:
    result = called([failing("call.transport"), failing("call.overloaded", True)], ONE, TWO)
    error = result.outcome.error
    assert error is not None
    assert error.code == "call.overloaded"
    assert "`b1`" in error.message
    assert "`b2`" in error.message
    assert (error.binding_id, len(error.attempts)) == ("b2", 2)


def test_backoff_base_zero_repeats_at_once() -> None:
    bad = failing("call.transport")
    result = called([bad, bad, bad, gives(y=1)], member("b1", retries=3, base=0.0))
    assert (result.outcome.status, result.seconds < SOON) == ("ok", True)


def test_answered_attempts_count_whatever_they_answered() -> None:
    scripts = [
        failing("call.transport", False),
        failing("call.timeout", True),
        failing("response.missing", True),
        lambda given: Answer(
            {"y": 1}, {"prompt_tokens": 5, "completion_tokens": 7, "input_tokens": 4}
        ),
    ]
    result = called(scripts, ONE, TWO, THREE, member("b4"))
    sums = result.state.trace.metrics
    assert (sums.llm_calls, sums.tool_calls, sums.tokens_in, sums.tokens_out) == (1, 1, 4, 7)


def test_a_capability_without_a_binding_fails_without_an_intent() -> None:
    result = run(skill(step("s", "c.gone")), ScriptedRunner(), capability("c.gone"))
    assert (result.code, result.sink.types("s")) == ("binding.none", ["step.failed"])
    assert result.outcome.error is not None
    assert result.outcome.error.exit_code == 3


def test_each_attempt_gets_its_own_copy_of_the_input() -> None:
    def vandal(given: dict[str, Any]) -> Any:
        given["x"].append("vandal")
        raise errors.TransportError("call.transport", "refused", left=False)

    seen: list[Any] = []
    runner = ScriptedRunner({"c.a": [vandal, lambda given: seen.append(given["x"]) or {"y": 1}]})
    runner.members["c.a"] = (ONE, TWO)
    result = run(
        skill(step("s", "c.a", {"x": "inputs.x"})), runner, capability("c.a"), inputs={"x": [1]}
    )
    assert seen == [[1]]
    assert result.state.inputs == {"x": [1]}
    started = result.sink.of("s")[0]
    assert started.payload["input"] == {"x": [1]}


def test_aliases_are_called_under_their_own_capability() -> None:
    from fakes.runs import RUN_ID, engine_for, request

    from cogcli.run.engine.run import execute

    one = capability("c.a", aliases=["c.alias"])
    main = skill(step("s", "c.alias"))
    runner = ScriptedRunner({"c.a": gives(y=1)})
    engine = engine_for(runner, [one], [main])
    engine.capabilities = {"c.a": one, "c.alias": one}
    finished = execute(engine, engine.plan_of(main.id), request(), RUN_ID)
    assert finished.outcome.status == "ok"
    assert finished.state.trace.steps[0].capability_id == "c.a"


def busy(seconds: float) -> Callable[[dict[str, Any]], Any]:
    """A service that is overloaded and says when to come again."""

    def make() -> BaseException:
        error = errors.OverloadedError("call.overloaded", "busy", left=True)
        error.retry_after = seconds
        return error

    return raises(make)


@pytest.mark.parametrize(("asked", "waited"), [(0.02, 20), (0.0, 0), (-5.0, 0)])
def test_a_service_that_says_when_to_come_again_is_heard(asked: float, waited: int) -> None:
    result = called([busy(asked), gives(y=2)], member("b1", retries=1, base=30.0))
    (retried,) = [event for event in result.sink.events if event.event_type == "call.retried"]
    assert retried.payload["wait_ms"] == waited
    assert result.state.vars == {"y": 2}


def test_waiting_for_a_service_ends_with_the_step() -> None:
    runner = ScriptedRunner({"c.a": [busy(99999999.0), gives(y=2)]})
    runner.members["c.a"] = (member("b1", retries=1),)
    result = run(
        skill(step("s", "c.a", timeout_seconds=0.1)), runner, capability("c.a"), fast=False
    )
    assert result.code == "step.timeout"
    assert len(result.runner.attempts) == 1
