from __future__ import annotations

import threading
import time
from typing import Any, NamedTuple

import pytest
from fakes.runner import Gate, ScriptedRunner, gives, member, raises
from fakes.runs import RUN_ID, SOON, Running, engine_for, request, run
from fakes.specs import capability, skill, step
from support.growth import assert_linear
from support.waiting import wait_until

from cogcli.base.calls import Attempt
from cogcli.base.errors import TransportError
from cogcli.run.engine.run import execute

pytestmark = pytest.mark.sampled(2)


def listed(
    id: str, uses: str, depends_on: list[str], target: str = "vars.l", strategy: str = "append"
) -> dict[str, Any]:
    return step(id, uses, output={"y": target}, depends_on=depends_on, merge_strategy=strategy)


def in_turn(order: list[str], **outputs: Any) -> ScriptedRunner:
    """Capabilities `c.NAME` whose calls end in the order given; all others at once."""
    ended = {name: threading.Event() for name in order}

    def script(name: str) -> Any:
        def answer(given: Any) -> Any:
            place = order.index(name)
            if place:
                ended[order[place - 1]].wait(60)
                time.sleep(0.005)
            ended[name].set()
            return {"y": outputs[name]}

        return answer

    return ScriptedRunner({f"c.{name}": script(name) for name in order})


@pytest.mark.parametrize("order", ["abc", "cba", "bca"])
def test_concurrent_appends_stand_in_plan_order(order: str) -> None:
    runner = in_turn(list(order), a=[1], b=[2], c=[3])
    caps = [capability(f"c.{n}") for n in "abc"]
    result = run(skill(*[listed(n, f"c.{n}", []) for n in "abc"]), runner, *caps)
    assert result.state.vars == {"l": [1, 2, 3]}


class Told(NamedTuple):
    """A log that tells where steps wrote, and of every repeat or of none."""

    places: dict[str, int]
    repeats: bool = False
    live: bool = True

    def wrote_at(self, run_id: str, path: str) -> int | None:
        return self.places.get(path)

    def starts_at(self, run_id: str, path: str) -> None:
        return None

    def recorded(self, attempt: Attempt) -> None:
        return None

    def is_repeated(self, run_id: str, path: str, number: int) -> bool:
        return self.repeats

    def ended_at(self, run_id: str, path: str) -> None:
        return None

    def is_cancelled(self, run_id: str, path: str) -> bool:
        return False


@pytest.mark.parametrize(
    ("order", "wrote_at", "expected"),
    [
        ("bca", {"a": 9, "b": 5}, [2, 1, 3]),
        ("cba", {"a": 9, "b": 5, "c": 3}, [3, 2, 1]),
        ("cba", {"a": 3, "b": 5, "c": 9}, [1, 2, 3]),
        ("bca", {"b": 5}, [2, 1, 3]),
    ],
)
def test_what_a_log_tells_of_is_written_in_its_order(
    order: str, wrote_at: dict[str, int], expected: list[int]
) -> None:
    """Told again, a step that wrote while an earlier one waited for a person does not wait for that one."""
    runner = in_turn(list(order), a=[1], b=[2], c=[3])
    plan = skill(*[listed(n, f"c.{n}", []) for n in "abc"])
    engine = engine_for(runner, [capability(f"c.{n}") for n in "abc"], [plan])
    engine.dispatcher = Told(wrote_at)
    finished = execute(engine, engine.plan_of(plan.id), request(), RUN_ID)
    assert finished.state.vars == {"l": expected}


def test_what_a_log_tells_of_is_not_waited_for_again() -> None:
    """Neither before a retry by the step nor before one by the binding."""
    away = raises(lambda: TransportError("call.transport", "away", left=False))
    runner = ScriptedRunner({"c.a": [away, away, away, gives(y=1)]})
    runner.members["c.a"] = (member("b", retries=1, base=30.0),)
    plan = skill(
        step("a", "c.a", output={"y": "vars.y"}, retry={"max_attempts": 2, "backoff_seconds": 30})
    )
    engine = engine_for(runner, [capability("c.a")], [plan])
    engine.dispatcher = Told({}, repeats=True)
    begun = time.monotonic()
    assert execute(engine, engine.plan_of(plan.id), request(), RUN_ID).state.vars == {"y": 1}
    assert len(runner.attempts) == 4
    assert time.monotonic() - begun < SOON


@pytest.mark.parametrize("order", ["abc", "cba"])
def test_the_last_in_plan_order_wins_among_concurrent_replaces(order: str) -> None:
    runner = in_turn(list(order), a=1, b=2, c=3)
    caps = [capability(f"c.{n}") for n in "abc"]
    result = run(
        skill(*[listed(n, f"c.{n}", [], strategy="replace") for n in "abc"]), runner, *caps
    )
    assert result.state.vars == {"l": 3}


@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize(
    ("a", "b", "target", "status"),
    [
        ({"k": 1}, {"k": 1}, "working.artifacts.x", "ok"),
        ({"k": 1}, {"m": 2}, "working.artifacts.x", "ok"),
        ({"k": 1}, {"k": 2}, "working.artifacts.x", "error"),
        ({"k": 1}, {"x": {"k": 2}}, "working.artifacts", "error"),
        ({"k": 1}, {"x": {"m": 2}}, "working.artifacts", "ok"),
        ({"k": {"d": 1}}, {"k": None}, "working.artifacts.x", "error"),
    ],
)
def test_concurrent_deep_merges_must_agree_on_each_leaf(
    order: str, a: Any, b: Any, target: str, status: str
) -> None:
    runner = in_turn(list(order), a=a, b=b)
    steps = [
        listed("a", "c.a", [], "working.artifacts.x", "deep_merge"),
        listed("b", "c.b", [], target, "deep_merge"),
    ]
    result = run(skill(*steps), runner, capability("c.a"), capability("c.b"))
    assert result.outcome.status == status
    if status == "error":
        assert (result.code, result.steps) == ("output.merge", {"a": "done", "b": "failed"})


def test_a_step_waits_for_an_earlier_writer_that_has_not_even_started() -> None:
    """d -> a and b append to one list: b, quick as it is, comes after a, which has to wait for d."""
    slow = Gate(y=[0])
    runner = ScriptedRunner({"c.d": slow, "c.a": gives(y=[1]), "c.b": gives(y=[2])})
    steps = [step("d", "c.d", depends_on=[]), listed("a", "c.a", ["d"]), listed("b", "c.b", [])]
    running = Running(skill(*steps), runner, *[capability(f"c.{n}") for n in "dab"])
    wait_until(lambda: "step.answered" in running.engine.sink.types("b"))
    slow.open.set()
    result = running.result()
    assert result.state.vars == {"l": [1, 2]}
    assert result.sink.types("b") == ["step.started", "step.answered", "step.completed"]


@pytest.mark.parametrize("first", ["c.fail", "c.ask"])
@pytest.mark.parametrize("fail_fast", [True, False])
def test_nobody_waits_for_a_writer_that_will_never_start(first: str, fail_fast: bool) -> None:
    from fakes.runner import raises

    from cogcli.base.errors import ServerFaultError

    answered = threading.Event()

    def failing(given: Any) -> Any:
        answered.wait(60)
        time.sleep(0.02)
        raise ServerFaultError("call.server-error", "boom")

    def quick(given: Any) -> Any:
        answered.set()
        return {"y": [2]}

    runner = ScriptedRunner(
        {"c.fail": failing, "c.ask": raises(AssertionError), "c.a": gives(y=[1]), "c.b": quick}
    )
    steps = [step("d", first, depends_on=[]), listed("a", "c.a", ["d"]), listed("b", "c.b", [])]
    caps = [capability(f"c.{n}") for n in ("fail", "a", "b")]
    caps.append(capability("c.ask", safety={"requires_confirmation": True}))
    result = run(skill(*steps), runner, *caps, keep_going=not fail_fast)
    assert result.seconds < SOON
    assert result.steps["b"] == "done"
    assert result.state.vars == {"l": [2]}


def test_waiting_for_plan_order_does_not_count_as_the_steps_own_time() -> None:
    slow = Gate(y=[1])
    runner = ScriptedRunner({"c.a": slow, "c.b": gives(y=[2])})
    steps = [listed("a", "c.a", []), {**listed("b", "c.b", []), "timeout_seconds": 0.5}]
    running = Running(skill(*steps), runner, capability("c.a"), capability("c.b"))
    slow.entered.wait(60)
    time.sleep(0.8)
    slow.open.set()
    assert running.result().state.vars == {"l": [1, 2]}


@pytest.mark.sampled(4)
@pytest.mark.slow
def test_many_parked_steps_are_let_go_without_looking_at_all_of_them_each_time() -> None:
    def let_go(count: int) -> None:
        first = Gate(y=[0])
        runner = ScriptedRunner({"c.a": first, "c.b": gives(y=[1])})
        steps = [listed("s0", "c.a", [])] + [listed(f"s{n}", "c.b", []) for n in range(1, count)]
        running = Running(
            skill(*steps), runner, capability("c.a"), capability("c.b"), max_workers=4
        )
        wait_until(lambda: len(runner.attempts) == count)
        first.open.set()
        assert running.result(60).state.vars["l"] == [0] + [1] * (count - 1)

    assert_linear(let_go, 2000)


def test_ready_steps_start_in_plan_order() -> None:
    runner = ScriptedRunner({"c.a": gives(y=1)})
    steps = [step(f"s{n}", "c.a", depends_on=[]) for n in (3, 1, 2, 0)]
    run(skill(*steps), runner, capability("c.a"), max_workers=1)
    assert runner.called() == ["s3", "s1", "s2", "s0"]


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_calls_in_flight_never_exceed_max_workers_in_the_whole_tree(workers: int) -> None:
    def slow(given: Any) -> Any:
        time.sleep(0.003)
        return {"y": 1, "allowed": True}

    gated = capability(
        "c.gated", safety={"mandatory_pre_gates": ["g.ok"], "mandatory_post_gates": ["g.ok"]}
    )
    caps = [capability("c.a"), gated, capability("g.ok", inputs="x", outputs="allowed")]
    runner = ScriptedRunner(dict.fromkeys(("c.a", "c.gated", "g.ok"), slow))
    leaf = skill(
        *[step(f"l{n}", "c.a", depends_on=[]) for n in range(4)], id="test.leaf", outputs=""
    )
    mid = skill(
        step("x", "skill:test.leaf", depends_on=[]),
        step("y", "c.gated", depends_on=[]),
        step("z", "skill:test.leaf", depends_on=[]),
        id="test.mid",
    )
    main = skill(
        *[step(f"m{n}", "skill:test.mid", depends_on=[]) for n in range(3)],
        step("g", "c.gated", depends_on=[]),
    )
    result = run(main, runner, *caps, nested=[leaf, mid], max_workers=workers)
    assert result.outcome.status == "ok"
    assert len(runner.attempts) == 3 * (8 + 3) + 3
    assert runner.most_at_once <= workers
    assert runner.most_at_once > workers // 2


def test_nested_skills_side_by_side_all_run_with_a_single_worker() -> None:
    runner = ScriptedRunner({"c.a": gives(y=1)})
    leaf = skill(step("l", "c.a", output={"y": "outputs.o"}), id="test.leaf", outputs="o!")
    main = skill(
        *[
            step(f"m{n}", "skill:test.leaf", output={"o": f"vars.v{n}"}, depends_on=[])
            for n in range(5)
        ]
    )
    result = run(main, runner, capability("c.a"), nested=[leaf], max_workers=1)
    assert result.outcome.status == "ok"
    assert result.state.vars == {f"v{n}": 1 for n in range(5)}


def test_independent_calls_really_run_side_by_side() -> None:
    barrier = threading.Barrier(4, timeout=60)

    def meet(given: Any) -> Any:
        barrier.wait()
        return {"y": 1}

    runner = ScriptedRunner({"c.a": meet})
    steps = [step(f"s{n}", "c.a", depends_on=[]) for n in range(4)]
    assert run(skill(*steps), runner, capability("c.a"), max_workers=4).outcome.status == "ok"


def test_a_quick_call_that_turns_out_slow_holds_nothing_up() -> None:
    """The last of six waits for one that begins after it, when five have ended at once."""
    begun = threading.Event()
    numbers = iter(range(100))

    def answer(given: Any) -> Any:
        number = next(numbers)
        if number == 5:
            assert begun.wait(SOON)
        if number == 6:
            begun.set()
        return {"y": number}

    steps = [step(f"s{n}", "c.a", {"x": n}, depends_on=[]) for n in range(12)]
    result = run(
        skill(*steps),
        ScriptedRunner({"c.a": answer}),
        capability("c.a"),
        fast=False,
        max_workers=2,
    )
    assert set(result.steps.values()) == {"done"}
    assert begun.is_set()


def test_a_signal_reaches_a_run_whose_quick_call_blocks() -> None:
    blocked, leave = threading.Event(), threading.Event()
    numbers = iter(range(100))

    def answer(given: Any) -> Any:
        if next(numbers) == 6:
            blocked.set()
            leave.wait(SOON)
        return {"y": 1}

    steps = [step(f"s{n}", "c.a", {"x": n}) for n in range(9)]
    running = Running(skill(*steps), ScriptedRunner({"c.a": answer}), capability("c.a"), fast=False)
    assert blocked.wait(SOON)
    running.interrupt()
    running.interrupt()
    result = running.result()
    leave.set()
    assert (result.outcome.status, result.steps["s6"]) == ("aborted", "skipped")
