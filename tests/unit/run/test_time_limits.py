"""A callee that never returns costs its limit and no more. Bounds are generous: machines are noisy."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from fakes.runner import Gate, ScriptedRunner, gives, member
from fakes.runs import SOON, Running, run
from fakes.specs import capability, skill, step
from support.waiting import wait_until

from cogcli.base.calls import Answer, Attempt
from cogcli.base.errors import CallTimeoutError
from cogcli.run.engine import context


@pytest.fixture
def never() -> Iterator[Gate]:
    """A service that does not answer while the test lasts."""
    gate = Gate(y=1)
    yield gate
    gate.open.set()


def stuck(never: Gate, *, timeout: float = 30.0) -> ScriptedRunner:
    runner = ScriptedRunner({"c.stuck": never, "c.a": gives(y=1), "g.stuck": never})
    runner.members["c.stuck"] = (member("b", timeout=timeout),)
    return runner


STUCK = capability("c.stuck")
A = capability("c.a")


@pytest.mark.parametrize("beside", [0, 3])
def test_an_attempt_is_bounded_whether_it_runs_alone_or_beside_others(
    never: Gate, beside: int
) -> None:
    steps = [step("s", "c.stuck", depends_on=[])] + [
        step(f"a{n}", "c.a", depends_on=[]) for n in range(beside)
    ]
    result = run(skill(*steps), stuck(never, timeout=0.2), STUCK, A, keep_going=True, fast=False)
    assert 0.2 <= result.seconds < 0.2 + SOON
    assert (result.code, result.outcome.error.exit_code) == ("call.timeout", 6)
    assert result.outcome.error.message == "step `s`: no answer within 0.2 s"
    assert result.steps["s"] == "failed"
    assert 200 <= (result.state.step_results["s"].latency_ms or 0) < 200 + SOON * 1000


@pytest.mark.parametrize("beside", [0, 3])
def test_the_thread_of_a_call_that_was_given_up_ends_when_the_call_returns(
    never: Gate, beside: int
) -> None:
    before = set(threading.enumerate())
    steps = [step("s", "c.stuck", depends_on=[])]
    steps += [step(f"a{n}", "c.a", depends_on=[]) for n in range(beside)]
    run(skill(*steps), stuck(never, timeout=0.2), STUCK, A, keep_going=True, fast=False)
    never.open.set()
    wait_until(lambda: set(threading.enumerate()) <= before)


@pytest.mark.parametrize("beside", [0, 3])
def test_a_step_is_bounded_by_its_configured_limit(never: Gate, beside: int) -> None:
    steps = [step("s", "c.stuck", depends_on=[], timeout_seconds=0.2)]
    steps += [step(f"a{n}", "c.a", depends_on=[]) for n in range(beside)]
    result = run(skill(*steps), stuck(never), STUCK, A, keep_going=True)
    assert 0.2 <= result.seconds < 0.2 + SOON
    assert (result.code, result.outcome.error.exit_code) == ("step.timeout", 6)
    assert result.outcome.error.message == "step `s`: exceeded 0.2 s"


@pytest.mark.parametrize("beside", [0, 3])
def test_a_run_is_bounded_and_its_running_steps_are_cancelled(never: Gate, beside: int) -> None:
    steps = [step("s", "c.stuck", depends_on=[]), step("after", "c.a")]
    steps += [step(f"a{n}", "c.a", depends_on=[]) for n in range(beside)]
    result = run(skill(*steps), stuck(never), STUCK, A, timeout=0.3)
    assert 0.3 <= result.seconds < 0.3 + SOON
    assert (result.outcome.status, result.code) == ("error", "run.timeout")
    assert result.outcome.error.message == "exceeded 0.3 s"
    assert (result.steps["s"], result.steps["after"]) == ("skipped", "pending")
    assert result.sink.types()[-1] == "run.terminated"


def test_a_step_may_take_as_long_as_one_attempt_of_its_binding(
    never: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "STEP_SECONDS", 0.05)
    result = run(skill(step("s", "c.stuck")), stuck(never, timeout=0.3), STUCK)
    assert result.code == "call.timeout"


def test_the_step_option_bounds_a_binding_and_a_step_that_allow_more(never: Gate) -> None:
    patient = step("s", "c.stuck", timeout_seconds=30)
    for asked in (step("s", "c.stuck"), patient):
        result = run(skill(asked), stuck(never, timeout=30), STUCK, step_timeout=0.1)
        assert (result.code, result.outcome.error.message) == (
            "step.timeout",
            "step `s`: exceeded 0.1 s",
        )
        assert result.seconds < 0.1 + SOON


def test_the_step_option_bounds_all_attempts_together(never: Gate) -> None:
    runner = stuck(never)
    runner.members["c.stuck"] = (member("b", timeout=0.15, retries=10, base=0.0),)
    result = run(skill(step("s", "c.stuck")), runner, STUCK, step_timeout=0.4)
    assert result.seconds < 0.4 + SOON
    assert result.code == "step.timeout"
    assert 2 <= len(runner.attempts) <= 4


def test_backoff_ends_at_the_deadline(never: Gate) -> None:
    from cogcli.base.errors import TransportError

    def refused(given: Any) -> Any:
        raise TransportError("call.transport", "refused", left=False)

    runner = ScriptedRunner({"c.a": refused})
    runner.members["c.a"] = (member("b", retries=3, base=30.0),)
    result = run(skill(step("s", "c.a", timeout_seconds=0.2)), runner, A)
    assert result.seconds < 0.2 + SOON
    assert (result.code, len(runner.attempts)) == ("step.timeout", 1)


def test_a_late_answer_is_dropped_and_its_slot_is_free_again(never: Gate) -> None:
    steps = [
        step("s", "c.stuck", output={"y": "vars.s"}, depends_on=[]),
        step("a", "c.a", output={"y": "vars.a"}, depends_on=[]),
    ]
    result = run(skill(*steps), stuck(never, timeout=0.1), STUCK, A, max_workers=1, keep_going=True)
    never.open.set()
    time.sleep(0.05)
    assert result.steps == {"s": "failed", "a": "done"}
    assert result.state.vars == {"a": 1}


def test_a_nested_skill_is_bounded_only_where_it_says_so(
    never: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = skill(step("c", "c.stuck"), id="test.child")
    result = run(
        skill(step("n", "skill:test.child", timeout_seconds=0.2)),
        stuck(never),
        STUCK,
        nested=[child],
    )
    assert result.seconds < 0.2 + SOON
    assert (result.code, result.steps) == ("step.timeout", {"n": "failed"})
    assert result.reason("n") == "step.timeout"
    child_end = next(e for e in result.sink.events if e.event_type == "run.terminated")
    assert (child_end.payload["status"], child_end.payload["status_reason"]) == (
        "error",
        "step.timeout",
    )
    monkeypatch.setattr(context, "STEP_SECONDS", 0.05)
    unbounded = run(
        skill(step("n", "skill:test.child")), stuck(never, timeout=0.3), STUCK, nested=[child]
    )
    assert unbounded.code == "call.timeout"


def test_a_gate_that_never_answers_blocks_within_its_own_limit(never: Gate) -> None:
    from fakes.specs import gate

    guarded = capability(
        "c.a", safety={"mandatory_pre_gates": [{"capability": "g.stuck", "on_fail": "warn"}]}
    )
    runner = stuck(never)
    runner.members["g.stuck"] = (member("bg", timeout=0.2),)
    result = run(skill(step("s", "c.a")), runner, guarded, gate("g.stuck"))
    assert result.seconds < 0.2 + SOON
    assert (result.outcome.status, result.code) == ("vetoed", "safety.gate-error")
    assert "s" not in runner.called()


@pytest.mark.parametrize("how", ["attempt", "step", "run"])
def test_an_effect_without_an_answer_is_in_doubt(never: Gate, how: str) -> None:
    effect = capability("c.stuck", effect="effect")
    limits: dict[str, Any] = {"timeout": 0.2} if how == "run" else {}
    result = run(
        skill(step("s", "c.stuck", timeout_seconds=0.2 if how == "step" else None), step("after", "c.a")),
        stuck(never, timeout=0.2 if how == "attempt" else 30.0),
        effect, A, **limits,
    )  # fmt: skip
    assert result.seconds < 0.2 + SOON
    assert result.steps == {"s": "pending", "after": "pending"}
    assert result.sink.types("s") == ["step.started"]
    if how != "run":
        assert (result.outcome.status, result.code) == ("pending", "effect.in-doubt")
        assert result.outcome.error.exit_code == 5
        assert result.outcome.error.message.startswith("`c.stuck` may have happened: ")


@pytest.mark.parametrize("effect", ["none", "idempotent", "unknown"])
def test_other_calls_without_an_answer_are_ordinary_errors(never: Gate, effect: str) -> None:
    result = run(
        skill(step("s", "c.stuck")), stuck(never, timeout=0.1), capability("c.stuck", effect=effect)
    )
    assert (result.outcome.status, result.code) == ("error", "call.timeout")


def test_an_effect_in_doubt_inside_a_nested_skill_outweighs_its_time_limit(never: Gate) -> None:
    child = skill(step("c", "c.stuck"), id="test.child")
    result = run(
        skill(step("n", "skill:test.child", timeout_seconds=0.2)),
        stuck(never), capability("c.stuck", effect="effect"), nested=[child],
    )  # fmt: skip
    assert (result.outcome.status, result.code) == ("pending", "effect.in-doubt")
    assert result.steps == {"n": "pending"}
    assert result.outcome.error.message.startswith(
        "step `n` > skill `test.child` > step `c`: `c.stuck` may have"
    )


class Staying(ScriptedRunner):
    """A runner whose calls never leave: they wait for a service that does not start."""

    def attempt(self, attempt: Attempt) -> Answer:
        with attempt.cancel.held_back("the service is not there"):
            return super().attempt(attempt)


@pytest.mark.slow
@pytest.mark.parametrize("beside", [0, 3])
@pytest.mark.parametrize("how", ["attempt", "step", "run", "signal"])
def test_an_effect_that_never_left_is_in_no_doubt(never: Gate, how: str, beside: int) -> None:
    effect = capability("c.stuck", effect="effect")
    runner = Staying({"c.stuck": never, "c.a": gives(y=1)})
    runner.members["c.stuck"] = (member("b", timeout=0.2 if how == "attempt" else 30.0),)
    steps = [step("s", "c.stuck", timeout_seconds=0.2 if how == "step" else None, depends_on=[])]
    steps += [step(f"a{n}", "c.a", depends_on=[]) for n in range(beside)]
    limits: dict[str, Any] = {"timeout": 0.2} if how == "run" else {}
    running = Running(skill(*steps), runner, effect, A, **limits)
    if how == "signal":
        assert never.entered.wait(60)
        running.interrupt()
        running.interrupt()
    result = running.result()
    words = {
        "attempt": ("error", "call.timeout", "failed"),
        "step": ("error", "step.timeout", "failed"),
        "run": ("error", "run.timeout", "skipped"),
        "signal": ("aborted", result.code, "skipped"),
    }
    assert (result.outcome.status, result.code, result.steps["s"]) == words[how]
    told = [event for event in result.sink.events if event.step_id == "s"][-1].payload
    assert [(a["code"], a["left"]) for a in told.get("attempts", [])] == (
        [(words[how][1], False)] if how in ("attempt", "step") else []
    )


class FailingBefore(ScriptedRunner):
    """A runner whose calls fail before they leave, and report that only once they are given up."""

    def attempt(self, attempt: Attempt) -> Answer:
        given_up = threading.Event()
        try:
            with attempt.cancel.held_back("the service is not there"):
                raise CallTimeoutError("call.timeout", "it did not start", left=False)
        finally:
            with attempt.cancel.on_cancel(given_up.set):
                assert given_up.wait(60)


def test_a_call_that_failed_before_it_left_and_is_given_up_then_is_in_no_doubt() -> None:
    """The call and the step that waits for it notice the same deadline, in either order."""
    runner = FailingBefore({"c.stuck": gives(y=1)})
    runner.members["c.stuck"] = (member("b", timeout=0.2),)
    result = run(skill(step("s", "c.stuck")), runner, capability("c.stuck", effect="effect"))
    assert (result.outcome.status, result.code) == ("error", "call.timeout")


@pytest.mark.parametrize("beside", ["step", "nested"])
def test_a_nested_skill_past_its_limit_waits_with_the_effect_in_it(
    never: Gate, beside: str
) -> None:
    """Had the nested run an end, nobody could answer for the effect any more, nor finish what ran beside it."""
    steps = [
        step("read", "c.stuck", output={"y": "vars.z"}, depends_on=[]),
        step("deep", "c.effect", output={"y": "outputs.y"}, depends_on=[]),
    ]
    child = skill(*steps, id="test.child")
    outer = skill(step("inner", "skill:test.child"), id="test.outer")
    runner = stuck(never)
    runner.scripts["c.effect"] = never
    nest = "skill:test.child" if beside == "step" else "skill:test.outer"
    result = run(
        skill(step("n", nest, timeout_seconds=0.2)),
        runner, STUCK, capability("c.effect", effect="effect"), nested=[child, outer],
    )  # fmt: skip
    assert (result.outcome.status, result.code, result.steps) == (
        "pending",
        "effect.in-doubt",
        {"n": "pending"},
    )
    told = [str(event.event_type) for event in result.sink.events]
    assert not [kind for kind in told if kind in ("step.skipped", "step.failed", "run.terminated")]


def test_a_nested_skill_past_its_limit_ends_what_it_cut_off(never: Gate) -> None:
    steps = [step("one", "c.stuck", depends_on=[]), step("two", "c.stuck", depends_on=[])]
    result = run(
        skill(step("n", "skill:test.child", timeout_seconds=0.2)),
        stuck(never), STUCK, nested=[skill(*steps, id="test.child")],
    )  # fmt: skip
    ends = [(event.event_type, event.step_id) for event in result.sink.events[-5:]]
    assert ends == [
        ("step.skipped", "n/one"),
        ("step.skipped", "n/two"),
        ("run.terminated", "n"),
        ("step.failed", "n"),
        ("run.terminated", None),
    ]
