"""Control flow where it is easier to see in process: concurrency, cancellation, effects, scratch state, replay."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from fakes.runner import Gate, ScriptedRunner, echo, gives, member, raises
from fakes.runs import SOON, Ran, Running, replayed, run
from fakes.sink import payload_of
from fakes.specs import capability, skill, step
from fakes.states import whole
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from cogcli.base.errors import RuntimeErrorBase, ServerFaultError, TransportError
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.skill_spec import Skill
from cogcli.state.execution import snapshot

pytestmark = pytest.mark.sampled(2)

A = capability("c.a", "x l", "x l y")
SLOW, EFFECT = capability("c.slow", "x"), capability("c.effect", "x", effect="effect")
FAST = {"max_attempts": 3, "backoff_seconds": 0}


@pytest.fixture
def slow() -> Iterator[Gate]:
    """A service that does not answer before the test lets it."""
    held = Gate(y="slow")
    yield held
    held.open.set()


def boom(left: bool = True) -> RuntimeErrorBase:
    return ServerFaultError("call.server-error", "boom", left=left)


def foreach(items: list[Any], **more: Any) -> dict[str, Any]:
    return {"items": items, **more}


def scattered(*names: str, merge: str = "collect", **more: Any) -> dict[str, Any]:
    return {
        "capabilities": [{"name": name.rpartition(".")[2], "uses": name} for name in names],
        "merge": merge,
        **more,
    }


def statuses(result: Ran) -> dict[str, str]:
    """How every step and part of a step ended, by path."""
    found = {}
    for event in result.sink.events:
        if isinstance(event.payload, dict) and event.payload.get("step_status") not in (
            None,
            "running",
        ):
            found[str(event.step_id)] = event.payload.get("reason") or event.payload["step_status"]
    return found


# -- how many at once -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("max_parallel", "workers"), [(1, 8), (3, 8), (8, 2), (20, 20)])
def test_never_more_than_max_parallel_items_nor_max_workers_calls(
    max_parallel: int, workers: int
) -> None:
    runner = ScriptedRunner({"c.a": lambda given: time.sleep(0.005) or {"y": given["x"]}})
    items = list(range(20))
    main = skill(
        step(
            "s",
            "c.a",
            {"x": "item"},
            foreach=foreach(items, max_parallel=max_parallel),
            output={"y": "vars.v"},
        )
    )
    result = run(main, runner, A, max_workers=workers)
    assert result.state.vars == {"v": items}
    assert runner.most_at_once <= min(max_parallel, workers)
    assert runner.most_at_once > 1 or max_parallel == 1


def test_never_more_than_max_parallel_nested_items_at_once() -> None:
    now, most = 0, 0
    lock = threading.Lock()

    def counted(given: dict[str, Any]) -> dict[str, Any]:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.01)
        with lock:
            now -= 1
        return {"y": given["x"]}

    child = skill(
        step("c", "c.a", {"x": "inputs.x"}, output={"y": "outputs.y"}), id="test.child", outputs="y"
    )
    main = skill(
        step(
            "s",
            "skill:test.child",
            {"x": "item"},
            foreach=foreach([1, 2, 3, 4, 5], max_parallel=2),
            output={"y": "vars.v"},
        )
    )
    result = run(main, ScriptedRunner({"c.a": counted}), A, nested=[child])
    assert (result.state.vars, most) == ({"v": [1, 2, 3, 4, 5]}, 2)


@pytest.mark.parametrize("merge", ["collect", "concat_lists"])
def test_never_more_than_max_parallel_targets_at_once(merge: str) -> None:
    names = [f"c.t{n}" for n in range(6)]
    scripts: dict[str, Any] = {
        name: lambda given: time.sleep(0.005) or {"y": [1]} for name in names
    }
    runner = ScriptedRunner(scripts)
    main = skill(step("s", "_scatter", scatter=scattered(*names, merge=merge, max_parallel=2)))
    run(main, runner, *map(capability, names))
    assert runner.most_at_once == 2


# -- cancelling -------------------------------------------------------------------------------------------------------

FLOWS: dict[str, dict[str, Any]] = {
    "plain": {},
    "foreach": {"foreach": foreach([1, 2, 3], max_parallel=2)},
    "while": {"while": {"condition": True, "max_iterations": 3}},
    "retry": {"retry": FAST},
    "router": {"router": {"on": "'x'", "cases": {"x": "c.slow"}}},
}


@pytest.mark.parametrize("flow", FLOWS)
def test_a_failure_elsewhere_cancels_at_once(slow: Gate, flow: str) -> None:
    runner = ScriptedRunner(
        {"c.slow": slow, "c.a": [lambda given: slow.entered.wait(60) and {}, raises(boom)]}
    )
    steps = [
        step("f", "c.a", {"x": "item"}, depends_on=[], foreach=foreach([1, 2])),
        step("s", "c.slow", {"x": 1}, depends_on=[], output={"y": "vars.v"}, **FLOWS[flow]),
    ]
    result = run(skill(*steps), runner, A, SLOW)
    assert result.seconds < SOON
    assert (result.steps, result.reason("s"), result.state.vars) == (
        {"f": "failed", "s": "skipped"},
        "cancelled",
        {},
    )
    assert {status for path, status in statuses(result).items() if path.startswith("s#")} <= {
        "cancelled"
    }


def test_a_failure_elsewhere_cancels_a_scatter_and_all_its_targets(slow: Gate) -> None:
    runner = ScriptedRunner(
        {
            "c.slow": slow,
            "c.two": slow,
            "c.a": [lambda given: slow.entered.wait(60) and {}, raises(boom)],
        }
    )
    steps = [
        step("f", "c.a", {"x": "item"}, depends_on=[], foreach=foreach([1, 2])),
        step("s", "_scatter", {"x": 1}, depends_on=[], scatter=scattered("c.slow", "c.two")),
    ]
    result = run(skill(*steps), runner, A, SLOW, capability("c.two"))
    told = statuses(result)
    assert (told["s"], told["s#slow"], told["s#two"]) == ("cancelled", "cancelled", "cancelled")


@pytest.mark.parametrize("flow", ["plain", "foreach", "while", "retry"])
def test_an_effect_in_flight_ends_before_its_step_is_given_up(slow: Gate, flow: str) -> None:
    def failing(given: dict[str, Any]) -> Any:
        slow.entered.wait(60)
        threading.Timer(0.1, slow.open.set).start()
        raise boom()

    runner = ScriptedRunner({"c.effect": slow, "c.a": failing})
    config = {"foreach": {"foreach": foreach([1, 2])}}.get(flow, FLOWS[flow])
    steps = [
        step("f", "c.a", depends_on=[]),
        step("s", "c.effect", {"x": 1}, depends_on=[], output={"y": "vars.v"}, **config),
    ]
    result = run(skill(*steps), runner, A, EFFECT)
    assert slow.ended.is_set()
    called = [path for path in runner.called() if path.startswith("s")]
    assert len(called) == 1, "nothing new starts"
    assert result.sink.types(called[0]) == ["step.started", "step.completed"]
    assert result.steps["s"] == ("done" if flow in ("plain", "retry") else "skipped")


def test_the_first_failing_item_cancels_the_rest_at_once(slow: Gate) -> None:
    def one(given: dict[str, Any]) -> Any:
        if given["x"] == 0:
            return slow(given)
        slow.entered.wait(60)
        raise boom()

    main = skill(step("s", "c.a", {"x": "item"}, foreach=foreach([0, 1, 2, 3], max_parallel=2)))
    result = run(main, ScriptedRunner({"c.a": one}), A)
    assert result.seconds < SOON
    assert statuses(result) == {
        "s#0": "cancelled",
        "s#1": "call.server-error",
        "s": "call.server-error",
    }
    assert result.outcome.error is not None
    assert result.outcome.error.message == "step `s#1`: boom"


def test_items_that_never_started_leave_no_trace(slow: Gate) -> None:
    main = skill(step("s", "c.a", {"x": "item"}, foreach=foreach([1, 2, 3])))
    result = run(main, ScriptedRunner({"c.a": raises(boom)}), A)
    assert set(statuses(result)) == {"s", "s#0"}


def test_first_success_does_not_wait_for_the_others(slow: Gate) -> None:
    runner = ScriptedRunner({"c.slow": slow, "c.a": gives(y="fast")})
    main = skill(
        step(
            "s",
            "_scatter",
            {"x": 1},
            output={"y": "vars.v"},
            scatter=scattered("c.slow", "c.a", merge="first_success"),
        )
    )
    result = run(main, runner, A, SLOW)
    assert result.seconds < SOON
    assert (result.state.vars, result.outcome.status) == ({"v": "fast"}, "ok")
    assert statuses(result) == {"s#a": "done", "s#slow": "cancelled", "s": "done"}


def test_first_success_keeps_an_account_of_effects_in_flight(slow: Gate) -> None:
    def fast(given: dict[str, Any]) -> Any:
        slow.entered.wait(60)
        threading.Timer(0.1, slow.open.set).start()
        return {"y": "fast"}

    runner = ScriptedRunner({"c.effect": slow, "c.a": fast})
    main = skill(
        step(
            "s",
            "_scatter",
            {"x": 1},
            output={"y": "vars.v"},
            scatter=scattered("c.effect", "c.a", merge="first_success"),
        )
    )
    result = run(main, runner, A, EFFECT)
    assert result.state.vars == {"v": "fast"}
    assert statuses(result) == {"s#a": "done", "s#effect": "done", "s": "done"}
    assert result.state.trace.metrics.tool_calls == 2


def test_first_success_with_an_effect_in_doubt_waits_for_a_person(slow: Gate) -> None:
    def fast(given: dict[str, Any]) -> Any:
        slow.entered.wait(60)
        return {"y": "fast"}

    runner = ScriptedRunner({"c.effect": slow, "c.a": fast})
    runner.members["c.effect"] = (member("b", timeout=1.0),)
    main = skill(
        step("s", "_scatter", {"x": 1}, scatter=scattered("c.effect", "c.a", merge="first_success"))
    )
    result = run(main, runner, A, EFFECT)
    assert (result.outcome.status, result.code, result.steps) == (
        "pending",
        "effect.in-doubt",
        {"s": "pending"},
    )


@pytest.mark.parametrize("flow", ["foreach", "while", "scatter", "nested"])
def test_an_effect_cut_off_inside_is_in_doubt_whatever_cut_it_off(slow: Gate, flow: str) -> None:
    configs: dict[str, dict[str, Any]] = {
        **FLOWS,
        "scatter": {"scatter": scattered("c.a", "c.effect")},
    }
    child = skill(step("c", "c.effect", foreach=foreach([1])), id="test.child")
    main = skill(
        step("n", "skill:test.child")
        if flow == "nested"
        else step("n", "c.effect", **configs[flow])
    )
    runner = ScriptedRunner({"c.effect": slow, "c.a": echo})
    running = Running(main, runner, A, EFFECT, nested=[child])
    assert slow.entered.wait(60)
    running.interrupt()
    running.interrupt()
    result = running.result()
    assert (result.outcome.status, result.steps) == ("pending", {"n": "pending"})


def test_a_signal_ends_a_backoff_at_once() -> None:
    tried = threading.Event()
    runner = ScriptedRunner({"c.a": lambda given: tried.set() or raises(boom)(given)})
    running = Running(
        skill(step("s", "c.a", retry={"max_attempts": 5, "backoff_seconds": 30})), runner, A
    )
    assert tried.wait(60)
    time.sleep(0.05)
    started = time.monotonic()
    running.interrupt()
    result = running.result()
    assert time.monotonic() - started < SOON
    assert (result.outcome.status, result.steps, len(runner.attempts)) == (
        "aborted",
        {"s": "skipped"},
        1,
    )


@pytest.mark.parametrize("uses", ["c.slow", "skill:test.child"])
@pytest.mark.parametrize("flow", ["foreach", "while"])
def test_after_a_signal_no_item_and_no_round_starts(slow: Gate, flow: str, uses: str) -> None:
    child = skill(step("c", "c.slow"), id="test.child")
    config = {"foreach": {"foreach": foreach([1, 2, 3])}}.get(flow, FLOWS[flow])
    running = Running(
        skill(step("s", uses, **config)), ScriptedRunner({"c.slow": slow}), SLOW, nested=[child]
    )
    assert slow.entered.wait(60)
    running.interrupt()
    time.sleep(0.05)
    slow.open.set()
    result = running.result()
    assert (result.outcome.status, result.steps, len(result.runner.attempts)) == (
        "aborted",
        {"s": "skipped"},
        1,
    )
    assert result.sink.types().count("run.started") == (2 if uses.startswith("skill:") else 1)
    assert (statuses(result)["s#0"], statuses(result)["s#1"]) == ("done", "cancelled")


# -- retry ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize(
    "how", ["plain", "foreach", "scatter", "router", "nested", "nested foreach"]
)
def test_an_effect_that_may_have_left_is_never_repeated(how: str, left: bool) -> None:
    runner = ScriptedRunner({"c.effect": [raises(lambda: boom(left)), gives(y=1)], "c.a": echo})
    flow: dict[str, dict[str, Any]] = {
        "foreach": {"foreach": foreach([1])},
        "scatter": {"scatter": scattered("c.effect", "c.a")},
        "router": {"router": {"on": "'x'", "cases": {"x": "c.effect"}}},
    }
    inner = {"foreach": foreach([1])} if how == "nested foreach" else {}
    child = skill(step("c", "c.effect", **inner), id="test.child")
    uses = "skill:test.child" if how.startswith("nested") else "c.effect"
    result = run(
        skill(step("s", uses, retry=FAST, **flow.get(how, {}))), runner, A, EFFECT, nested=[child]
    )
    calls = [attempt for attempt in runner.attempts if attempt.capability_id == "c.effect"]
    assert (len(calls), result.outcome.status) == ((1, "error") if left else (2, "ok"))


def test_a_nested_skill_whose_effect_succeeded_is_not_repeated() -> None:
    runner = ScriptedRunner({"c.effect": gives(y=1), "c.a": [raises(boom), echo]})
    grandchild = skill(step("e", "c.effect"), id="test.grandchild")
    child = skill(step("m", "skill:test.grandchild"), step("f", "c.a"), id="test.child")
    main = skill(step("s", "skill:test.child", retry=FAST))
    result = run(main, runner, A, EFFECT, nested=[child, grandchild])
    assert (runner.called(), result.code) == (["s/m/e", "s/f"], "call.server-error")


def test_a_nested_skill_without_effects_is_repeated_with_a_state_of_its_own() -> None:
    runner = ScriptedRunner({"c.a": [echo, raises(boom), echo, echo]})
    child = skill(
        step("one", "c.a", {"x": [1]}, output={"x": "vars.l"}, merge_strategy="append"),
        step("two", "c.a", {"x": "vars.l"}, output={"x": "outputs.x"}),
        id="test.child", outputs="x",
    )  # fmt: skip
    result = run(
        skill(step("s", "skill:test.child", retry=FAST, output={"x": "vars.v"})),
        runner,
        A,
        nested=[child],
    )
    assert (result.state.vars, result.state.iteration) == ({"v": [1]}, 1)
    retried = payload_of(result.sink.events, "call.retried", "s")
    assert (retried["attempt"], retried["reason"]) == (2, "retry")


def test_an_unknown_effect_without_an_answer_is_not_repeated_by_itself() -> None:
    def lost() -> RuntimeErrorBase:
        return TransportError("call.transport", "connection lost", left=True)

    unsure = capability("c.unsure", effect="unknown")
    runner = ScriptedRunner({"c.unsure": [raises(lost), gives(y=1)]})
    result = run(skill(step("s", "c.unsure", retry=FAST)), runner, unsure)
    assert (len(runner.attempts), result.code, result.steps) == (
        1,
        "call.transport",
        {"s": "failed"},
    )
    assert result.closing("s").payload["error"]["effect"] == "unknown"
    runner = ScriptedRunner({"c.unsure": [raises(boom), gives(y=1)]})
    assert run(skill(step("s", "c.unsure", retry=FAST)), runner, unsure).outcome.status == "ok", (
        "it answered"
    )


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["step", "run", "item"])
def test_backoff_ends_at_the_deadline(limit: str) -> None:
    config: dict[str, Any] = {"retry": {"max_attempts": 5, "backoff_seconds": 30}}
    if limit != "run":
        config["timeout_seconds"] = 0.3
    if limit == "item":
        config["foreach"] = foreach([1, 2])
    options: dict[str, Any] = {"timeout": 0.3} if limit == "run" else {}
    runner = ScriptedRunner({"c.a": raises(boom)})
    result = run(skill(step("s", "c.a", **config)), runner, A, **options)
    assert 0.3 <= result.seconds < SOON
    assert (len(runner.attempts), result.code) == (
        1,
        "run.timeout" if limit == "run" else "step.timeout",
    )


def test_backoff_waits_hold_no_worker() -> None:
    runner = ScriptedRunner({"c.a": [raises(boom), echo], "c.slow": gives(y=1)})
    steps = [
        step("r", "c.a", depends_on=[], retry={"max_attempts": 2, "backoff_seconds": 0.3}),
        step("s", "c.slow", depends_on=[]),
    ]
    result = run(skill(*steps), runner, A, SLOW, max_workers=1)
    assert runner.called() == ["r", "s", "r"]
    assert result.outcome.status == "ok"


# -- while ------------------------------------------------------------------------------------------------------------


def test_rounds_write_where_only_the_step_itself_sees_it() -> None:
    seen: list[Any] = []
    round_one = threading.Event()

    def looping(given: dict[str, Any]) -> dict[str, Any]:
        if given["x"] == [0, 0]:
            round_one.set()
            time.sleep(0.1)
        return {"x": [0]}

    def looking(given: dict[str, Any]) -> dict[str, Any]:
        round_one.wait(60)
        return {}

    runner = ScriptedRunner(
        {"c.a": looping, "c.slow": looking, "c.see": lambda given: seen.append(given["x"]) or {}}
    )
    loop = {"condition": True, "max_iterations": 3}
    main = skill(
        step("start", "c.see", {"x": 0}, output={"inputs.x": "vars.l"}),
        step(
            "w",
            "c.a",
            {"x": "vars.l"},
            depends_on=["start"],
            output={"x": "vars.l"},
            merge_strategy="append",
            **{"while": loop},
        ),
        step("gate", "c.slow", depends_on=["start"]),
        step("look", "c.see", {"x": "vars.l"}, depends_on=["gate"]),
        step("after", "c.see", {"x": "vars.l"}, depends_on=["w", "look"]),
    )
    run(main, runner, A, SLOW, capability("c.see", "x", ""), inputs={"x": [0]})
    assert seen == [0, [0], [0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("strategy", "value", "expected"),
    [
        ("append", [1], [1, 1, 1]), ("replace", [1], [1]), ("overwrite", {"a": 1}, {"a": 1}),
        ("deep_merge", {"a": {"b": 1}}, {"a": {"b": 1}}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("target", ["vars.v", "working.artifacts.v", "extensions.v"])
def test_each_round_merges_once(strategy: str, value: Any, expected: Any, target: str) -> None:
    main = skill(
        step(
            "w",
            "c.a",
            {"x": value},
            output={"x": target},
            merge_strategy=strategy,
            **{"while": {"condition": True, "max_iterations": 3}},
        )
    )
    result = run(main, ScriptedRunner({"c.a": echo}), A)
    state = snapshot(result.state)
    found: Any = state
    for part in target.split("."):
        found = found[part]
    assert found == expected
    writes = result.closing("w").payload["writes"]
    kept = 1 if strategy in ("replace", "overwrite") else 3  # a later round replaces the others
    assert [write["value"] for write in writes] == [value] * kept


# -- the same result, live, again and from the log --------------------------------------------------------------------

KINDS = [
    "plain",
    "foreach",
    "while",
    "router",
    "scatter",
    "first",
    "retry",
    "nested",
    "nested foreach",
    "condition",
]


class Jittery(ScriptedRunner):
    """Answers `y: [x]` after a random moment. Where `x` is `bad` it fails, `c.flaky` fails at first in every step."""

    def __init__(self, random: random.Random) -> None:
        super().__init__(dict.fromkeys(("c.a", "c.b", "c.flaky", "c.effect"), echo))
        self._random = random
        self._tried: set[str] = set()

    def attempt(self, attempt: Any) -> Any:
        time.sleep(self._random.random() / 500)
        if attempt.capability_id == "c.flaky" and attempt.step_id not in self._tried:
            self._tried.add(attempt.step_id)
            raise boom()
        if attempt.input.get("x") == "bad":
            raise boom()
        self.scripts[attempt.capability_id] = lambda given: {"y": [given.get("x")]}
        return super().attempt(attempt)


@st.composite
def skills(draw: st.DrawFn) -> Skill:
    """A few steps of all kinds, in sequence or side by side, all appending to two shared lists."""
    steps = []
    for n in range(draw(st.integers(1, 5))):
        needs = draw(
            st.none() | st.lists(st.sampled_from([s["id"] for s in steps]), unique=True, max_size=2)
            if steps
            else st.none()
        )
        kind = draw(st.sampled_from(KINDS))
        steps.append(
            made(
                f"s{n}",
                kind,
                draw(st.sampled_from(["vars.l", "extensions.m"])),
                needs,
                draw(st.integers(0, 9)) == 0,
            )
        )
    return skill(*steps)


def made(id: str, kind: str, target: str, needs: list[str] | None, bad: bool) -> dict[str, Any]:
    value, at_once = (
        ("bad", 1) if bad else (id, 3)
    )  # of several failures at once the first in time counts
    config: dict[str, dict[str, Any]] = {
        "foreach": {"foreach": foreach([value, 1, 2], max_parallel=at_once)},
        "nested foreach": {"foreach": foreach([value, 1], max_parallel=at_once)},
        "while": {"while": {"condition": True, "max_iterations": 3}},
        "router": {"router": {"on": f"'{id}'", "cases": {id: "c.b"}, "default": "c.a"}},
        "scatter": {
            "scatter": scattered(
                "c.a", "c.b", "c.effect", merge="concat_lists", max_parallel=at_once
            )
        },
        "first": {"scatter": scattered("c.a", "c.b", merge="first_success", max_parallel=1)},
        "retry": {"retry": FAST},
        "condition": {"condition": False, "otherwise": {"y": [value]}},
    }
    uses = {
        "retry": "c.flaky",
        "nested": "skill:test.child",
        "nested foreach": "skill:test.child",
    }.get(kind, "c.a")
    given = {"x": "item" if "foreach" in kind else value}
    return step(
        id,
        uses,
        given,
        output={"y": target},
        merge_strategy="append",
        depends_on=needs,
        **config.get(kind, {}),
    )


CHILD = skill(
    step("c", "c.a", {"x": "inputs.x"}, output={"y": "vars.t"}),
    step("d", "c.flaky", {"x": "vars.t"}, output={"y": "outputs.y"}, retry=FAST),
    id="test.child", outputs="y",
)  # fmt: skip
CAPABILITIES: tuple[Capability, ...] = (
    A, capability("c.b"), capability("c.flaky"), capability("c.effect", effect="effect"),
)  # fmt: skip


def ran(main: Skill, seed: int, **options: Any) -> Ran:
    return run(
        main,
        Jittery(random.Random(seed)),
        *CAPABILITIES,
        nested=[CHILD],
        keep_going=True,
        **options,
    )


def comparable(result: Ran) -> dict[str, Any]:
    """The state but for times and the order of trace entries."""
    state: dict[str, Any] = orjson.loads(orjson.dumps(snapshot(result.state)))
    state.pop("updated_at")
    trace = state.pop("trace")
    trace["metrics"].pop("elapsed_ms")
    entries = [
        {k: v for k, v in s.items() if not k.endswith(("_at", "_ms"))} for s in trace["steps"]
    ]
    error = result.outcome.error
    return {
        "state": state,
        "steps": sorted(entries, key=lambda entry: str(entry["step_id"])),
        "statuses": result.steps,
        "outcome": (result.outcome.status, result.code, error.message if error else None),
    }


@pytest.mark.slow
@examples(60)
@given(skills(), st.integers(0, 2**16), st.integers(2, 8))
def test_neither_timing_nor_workers_change_the_result(main: Skill, seed: int, workers: int) -> None:
    assert comparable(ran(main, seed, max_workers=workers)) == comparable(
        ran(main, seed + 1, max_workers=1)
    )


@pytest.mark.slow
@examples(60)
@given(skills(), st.integers(0, 2**16))
def test_the_log_folds_to_the_live_state_of_every_run(main: Skill, seed: int) -> None:
    result = ran(main, seed)
    states = replayed(result.sink.events)
    assert whole(states[result.state.run_id]) == whole(result.state)
    for run_id, state in states.items():
        assert state.running == {}
        assert (state.parent_run_id is None) == (run_id == result.state.run_id)


@pytest.mark.slow
@examples(60)
@given(skills(), st.integers(0, 2**16))
def test_every_intent_has_one_closing_event(main: Skill, seed: int) -> None:
    begun: list[str] = []
    closed: list[str] = []
    for event in ran(main, seed).sink.events:
        status = event.payload.get("step_status") if isinstance(event.payload, dict) else None
        if status is not None:
            (begun if status == "running" else closed).append(f"{event.run_id} {event.step_id}")
    assert len(closed) == len(set(closed))
    assert set(begun) <= set(closed)
