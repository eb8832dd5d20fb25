from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from fakes.runner import Gate, ScriptedRunner, gives, member, raises
from fakes.runs import SOON, Running
from fakes.specs import capability, gate, skill, step
from support.waiting import wait_until

from cogcli.base.errors import TransportError
from cogcli.run.engine import tasks

A, SLOW = capability("c.a"), capability("c.slow")


@pytest.fixture
def slow() -> Iterator[Gate]:
    held = Gate(y=1, allowed=True)
    yield held
    held.open.set()


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> float:
    monkeypatch.setattr(tasks, "GRACE_SECONDS", 0.6)
    return 0.6


def started(
    slow: Gate, *steps: dict[str, Any], caps: tuple[Any, ...] = (A, SLOW), **options: Any
) -> Running:
    runner = ScriptedRunner({"c.slow": slow, "c.a": gives(y=2), "g.slow": slow})
    running = Running(skill(*steps), runner, *caps, **options)
    assert slow.entered.wait(60)
    return running


def s(id: str, uses: str = "c.slow", depends_on: list[str] | None = None) -> dict[str, Any]:
    return step(id, uses, output={"y": f"vars.{id}"}, depends_on=depends_on)


@pytest.mark.parametrize("beside", [[], [s("b", "c.slow", [])]])
def test_running_calls_may_end_and_nothing_new_starts(slow: Gate, beside: list[Any]) -> None:
    running = started(slow, s("a", depends_on=[]), s("then", "c.a"), *beside)
    running.interrupt()
    time.sleep(0.1)
    slow.open.set()
    result = running.result()
    assert result.outcome.status == "aborted"
    assert (result.steps["a"], result.steps["then"]) == ("done", "pending")
    assert result.state.vars["a"] == 1
    assert result.sink.types()[-1] == "run.terminated"
    assert result.runner.grace == tasks.GRACE_SECONDS
    aborting = [e.payload for e in result.sink.events if e.event_type == "run.aborting"]
    assert aborting == [{"reason": "SIGINT received", "signal": "SIGINT"}]


@pytest.mark.parametrize("beside", [[], [s("b", "c.slow", [])]])
def test_a_second_signal_leaves_no_grace(
    slow: Gate, beside: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "GRACE_SECONDS", 60.0)
    running = started(slow, s("a", depends_on=[]), s("then", "c.a"), *beside)
    running.interrupt()
    time.sleep(0.1)
    before = time.monotonic()
    running.interrupt()
    result = running.result()
    assert time.monotonic() - before < SOON
    assert (result.outcome.status, result.steps["a"], result.steps["then"]) == (
        "aborted",
        "skipped",
        "pending",
    )
    assert result.reason("a") == "cancelled"
    assert result.runner.grace == 0


@pytest.mark.parametrize("beside", [[], [s("b", "c.slow", [])]])
def test_grace_ends_once(slow: Gate, beside: list[Any], short_grace: float) -> None:
    running = started(slow, s("a", depends_on=[]), *beside)
    before = time.monotonic()
    running.interrupt("SIGTERM")
    result = running.result()
    assert short_grace <= time.monotonic() - before < SOON
    assert (result.outcome.status, result.steps["a"]) == ("aborted", "skipped")


def test_a_signal_that_came_before_the_run_starts_nothing() -> None:
    from fakes.runs import RUN_ID, engine_for, request

    from cogcli.run.engine.run import execute

    runner = ScriptedRunner({"c.a": gives(y=1)})
    main = skill(s("a", "c.a"), s("b", "c.a"))
    engine = engine_for(runner, [A], [main])
    engine.loop.interrupt("SIGINT")
    finished = execute(engine, engine.plan_of(main.id), request(), RUN_ID)
    assert (finished.outcome.status, runner.called()) == ("aborted", [])


EFFECT = capability("c.slow", effect="effect")


def test_a_run_cut_off_in_an_effect_waits_for_a_person(slow: Gate) -> None:
    running = started(slow, s("a"), caps=(A, EFFECT))
    running.interrupt()
    running.interrupt()
    result = running.result()
    assert (result.outcome.status, result.code, result.steps) == (
        "pending",
        "effect.in-doubt",
        {"a": "pending"},
    )
    assert result.sink.types("a") == ["step.started"]
    assert result.sink.types()[-2:] == ["run.aborting", "run.paused"]


def test_what_is_cut_off_beside_an_effect_in_doubt_stays_open(
    slow: Gate, short_grace: float
) -> None:
    """It would have ended for good: whoever answers for the effect could finish the run no more."""
    inner = skill(
        step("deep", "c.slow", output={"y": "outputs.y"}, depends_on=[]),
        step("read", "c.read", output={"y": "outputs.z"}, depends_on=[]),
        id="demo.inner",
    )
    nested = step("nest", "skill:demo.inner", depends_on=[])
    runner = ScriptedRunner({"c.slow": slow, "c.read": slow, "c.a": gives(y=2)})
    running = Running(
        skill(nested, s("beside", "c.read", []), s("then", "c.a", ["beside"])),
        runner, A, EFFECT, capability("c.read"), nested=[inner],
    )  # fmt: skip
    assert slow.entered.wait(60)
    running.interrupt("SIGTERM")
    result = running.result()
    assert (result.outcome.status, result.code) == ("pending", "effect.in-doubt")
    assert result.outcome.error is not None
    assert result.outcome.error.message.startswith(
        "step `nest` > skill `demo.inner` > step `deep`: `c.slow`"
    )
    told = [str(event.event_type) for event in result.sink.events]
    assert not [kind for kind in told if kind in ("step.skipped", "run.terminated")]


CUT_IN_GRACE = {
    "a step": (step("b", "c.guarded", depends_on=[]), {"b"}),
    "an item": (
        step("b", "c.guarded", depends_on=[], foreach={"items": "[1, 2]", "max_parallel": 2}),
        {"b", "b#0", "b#1"},
    ),
    "a round": (
        step(
            "b", "c.guarded", depends_on=[], **{"while": {"condition": "true", "max_iterations": 2}}
        ),
        {"b", "b#0"},
    ),
    "a nested step": (step("b", "skill:demo.inner", depends_on=[]), {"b", "b/deep"}),
}


@pytest.mark.parametrize("shape", CUT_IN_GRACE)
@pytest.mark.parametrize("in_doubt", [True, False])
def test_what_is_cut_off_in_the_grace_has_ended_only_where_the_run_has(
    slow: Gate, shape: str, in_doubt: bool
) -> None:
    """It is cut off while it is open whether the effect beside it will be answered."""
    beside, paths = CUT_IN_GRACE[shape]
    judged = Gate(allowed=True)
    inner = skill(step("deep", "c.guarded", output={"y": "outputs.y"}), id="demo.inner")
    runner = ScriptedRunner({"c.slow": slow, "c.guarded": gives(y=1), "g.judge": judged})
    guarded = capability("c.guarded", safety={"mandatory_pre_gates": ["g.judge"]})
    running = Running(
        skill(s("a", "c.slow", []), beside),
        runner,
        EFFECT,
        guarded,
        gate("g.judge"),
        nested=[inner],
    )
    assert slow.entered.wait(60)
    assert judged.entered.wait(60)
    running.interrupt()
    wait_until(lambda: "run.aborting" in running.engine.sink.types())  # type: ignore[attr-defined]
    judged.open.set()
    wait_until(lambda: "gate.decided" in running.engine.sink.types())  # type: ignore[attr-defined]
    if in_doubt:
        running.interrupt()
    else:
        slow.open.set()
    result = running.result()
    assert result.outcome.status == ("pending" if in_doubt else "aborted")
    ended = {
        event.step_id for event in result.sink.events if event.payload.get("reason") == "cancelled"
    }
    assert ended == (set() if in_doubt else paths)
    ends = [
        str(event.step_id or "")
        for event in result.sink.events
        if event.event_type == "run.terminated"
    ]
    assert ends == ([] if in_doubt else ["b", ""] if shape == "a nested step" else [""])


def test_a_limit_of_time_that_cuts_off_an_effect_leaves_the_run_waiting(slow: Gate) -> None:
    running = started(slow, s("a"), caps=(A, EFFECT), timeout=0.2)
    result = running.result()
    assert (result.outcome.status, result.code) == ("pending", "effect.in-doubt")
    assert result.sink.types()[-1] == "run.paused"


def test_an_effect_in_doubt_before_a_signal_keeps_the_run_waiting(slow: Gate) -> None:
    """The effect was given up by its own limit; the signal comes while something else is under way."""
    runner = ScriptedRunner({"c.slow": slow, "c.lost": Gate(y=1)})
    runner.members["c.lost"] = (member("b", timeout=0.05),)
    lost = capability("c.lost", effect="effect")
    running = Running(
        skill(s("lost", "c.lost", []), s("beside", "c.slow", [])),
        runner,
        lost,
        SLOW,
        keep_going=False,
    )
    assert slow.entered.wait(60)
    wait_until(lambda: running.engine.in_doubt is not None)
    running.interrupt()
    running.interrupt()
    result = running.result()
    assert (result.outcome.status, result.code) == ("pending", "effect.in-doubt")
    assert result.sink.types("beside") == ["step.started"]


def test_a_run_that_is_closed_ends_with_its_effect_in_doubt(slow: Gate) -> None:
    running = started(slow, s("a"), caps=(A, EFFECT))
    running.engine.waits_in_doubt = False
    running.interrupt()
    running.interrupt()
    result = running.result()
    assert (result.outcome.status, result.steps) == ("aborted", {"a": "pending"})


def test_a_gate_that_answers_after_a_signal_lets_no_call_leave(slow: Gate) -> None:
    guarded = capability("c.a", safety={"mandatory_pre_gates": ["g.slow"]})
    running = started(slow, s("a", "c.a"), caps=(guarded, gate("g.slow")))
    running.interrupt()
    time.sleep(0.1)
    slow.open.set()
    result = running.result()
    assert result.steps == {"a": "skipped"}
    assert result.runner.called() == ["a@pre0"]


def test_a_gate_cut_off_closes_its_own_account(slow: Gate) -> None:
    guarded = capability("c.a", safety={"mandatory_pre_gates": ["g.slow"]})
    running = started(slow, s("a", "c.a"), caps=(guarded, gate("g.slow")))
    running.interrupt()
    running.interrupt()
    result = running.result()
    assert result.sink.types("a@pre0") == ["step.started", "step.skipped"]


def test_nothing_is_repeated_after_a_signal() -> None:
    tried = Gate()

    def refused(given: Any) -> Any:
        tried.entered.set()
        raise TransportError("call.transport", "refused", left=False)

    runner = ScriptedRunner({"c.a": refused})
    runner.members["c.a"] = (member("b", retries=5, base=0.3),)
    running = Running(skill(s("a", "c.a")), runner, A)
    tried.entered.wait(60)
    running.interrupt()
    result = running.result()
    assert (result.steps, len(runner.attempts)) == ({"a": "skipped"}, 1)


def test_a_child_that_was_stopped_half_way_is_not_done(slow: Gate) -> None:
    inner = skill(s("c"), s("d", "c.a"), id="test.child", outputs="")
    running = started(slow, step("n", "skill:test.child"), step("then", "c.a"), nested=[inner])
    running.interrupt()
    time.sleep(0.1)
    slow.open.set()
    result = running.result()
    assert result.steps == {"n": "skipped", "then": "pending"}
    assert result.sink.types("n/c")[-1] == "step.completed"
    assert result.sink.types("n/d") == []
    ends = [e.payload["status"] for e in result.sink.events if e.event_type == "run.terminated"]
    assert ends == ["aborted", "aborted"]


def test_a_run_limit_that_passes_while_a_signal_is_honoured_does_not_matter(slow: Gate) -> None:
    running = started(slow, s("a", depends_on=[]), s("b", depends_on=[]), timeout=1.0)
    running.interrupt()
    time.sleep(1.1)
    slow.open.set()
    result = running.result()
    assert (result.outcome.status, result.sink.types()[-1]) == ("aborted", "run.terminated")


@pytest.mark.sampled(3)
@pytest.mark.slow
def test_signals_during_a_fast_run_are_never_lost() -> None:
    runner = ScriptedRunner({"c.a": lambda given: time.sleep(0.001) or {"y": 1}})
    for parallel in (True, False):
        steps = [s(f"s{n}", "c.a", [] if parallel else None) for n in range(3000)]
        running = Running(skill(*steps), runner, A)
        time.sleep(0.05)
        running.interrupt()
        assert running.result().outcome.status == "aborted"


def test_unexpected_failures_of_a_bug_after_a_signal_still_terminate(slow: Gate) -> None:
    runner_bug = raises(lambda: KeyError("bug"))
    running = started(slow, s("a", depends_on=[]), caps=(A, SLOW, capability("c.bug")))
    running.runner.scripts["c.bug"] = runner_bug
    running.interrupt()
    slow.open.set()
    assert running.result().outcome.status == "aborted"
