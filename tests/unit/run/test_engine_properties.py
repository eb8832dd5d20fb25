from __future__ import annotations

import random
import threading
from typing import Any

import orjson
import pytest
from fakes.runner import ScriptedRunner
from fakes.runs import Ran, replayed, run
from fakes.specs import capability, skill, step
from fakes.states import whole
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from cogcli.base.errors import ServerFaultError
from cogcli.declarations.skill_spec import Skill
from cogcli.state.execution import snapshot

pytestmark = pytest.mark.sampled(4)

QUICK = examples(60)
TARGETS = [
    "vars.l",
    "working.risks",
    "working.artifacts.x",
    "working.artifacts",
    "extensions.e",
    "outputs.o",
]
NAMES = [f"s{n}" for n in range(8)]


class Shuffled(ScriptedRunner):
    """Answers in an order of its own: each call waits until the one drawn before it has ended, if that is running."""

    def __init__(self, values: dict[str, Any], failing: set[str], order: list[str]) -> None:
        super().__init__({"c.a": lambda given: None})
        self._values = values
        self._failing = failing
        self._order = order
        self._running: set[str] = set()
        self._change = threading.Condition()

    def attempt(self, attempt: Any) -> Any:
        from cogcli.base.calls import Answer

        name = attempt.step_id.rpartition("/")[2]
        with self._change:
            self._running.add(name)
            self._change.wait(0.0005)
            before = self._order[: self._order.index(name)]
            self._change.wait_for(lambda: not self._running & set(before), timeout=0.05)
            self._running.discard(name)
            self._change.notify_all()
        if name in self._failing:
            raise ServerFaultError("call.server-error", name, left=True)
        return Answer({"y": self._values[name]})


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Skill, dict[str, Any], set[str]]:
    """A skill whose steps append, merge or replace on shared targets; its values; the steps that fail."""
    names = NAMES[: draw(st.integers(2, 8))]
    steps, values = [], {}
    strategy = draw(st.sampled_from(["append", "deep_merge", "replace"]))
    for n, name in enumerate(names):
        needs = draw(st.lists(st.sampled_from(names[:n]), unique=True, max_size=2)) if n else []
        target = draw(st.sampled_from(TARGETS))
        if strategy != "deep_merge" and target == "working.artifacts":
            target = "vars.l"
        if strategy == "deep_merge" and target == "working.risks":
            target = "vars.l"
        values[name] = value_for(strategy, name, draw(st.integers(0, 1)))
        uses = draw(st.sampled_from(["c.a", "c.a", "c.a", "skill:test.child"]))
        if uses == "c.a":
            steps.append(
                step(name, uses, output={"y": target}, depends_on=needs, merge_strategy=strategy)
            )
        else:
            steps.append(step(name, uses, depends_on=needs))
    failing = draw(st.sets(st.sampled_from(names), max_size=1))
    return skill(*steps), values, failing


def value_for(strategy: str, name: str, shared: int) -> Any:
    if strategy == "deep_merge":
        return {name: {"n": 1}, "shared": {"n": shared}, "x": {name: 2}}
    return [{"by": name}]


def ran(made: tuple[Skill, dict[str, Any], set[str]], order: list[str], **options: Any) -> Ran:
    main, values, failing = made
    child = skill(step("c", "c.a", output={"y": "outputs.y"}), id="test.child")
    values = {**values, "c": 1}
    runner = Shuffled(values, failing, [*order, "c"])
    return run(main, runner, capability("c.a"), nested=[child], keep_going=True, **options)


def comparable(result: Ran) -> dict[str, Any]:
    """The state but for times and the order of trace entries."""
    state: dict[str, Any] = orjson.loads(orjson.dumps(snapshot(result.state)))
    trace = state.pop("trace")
    state.pop("updated_at")
    metrics = trace["metrics"]
    metrics.pop("elapsed_ms")
    entries = [
        {k: v for k, v in s.items() if not k.endswith(("_at", "_ms"))} for s in trace["steps"]
    ]
    return {
        "state": state,
        "steps": sorted(entries, key=lambda entry: entry["step_id"]),
        "metrics": metrics,
        "statuses": result.steps,
        "outcome": (
            result.outcome.status,
            result.code,
            result.outcome.error and result.outcome.error.message,
        ),
    }


@pytest.mark.sampled(8)
@pytest.mark.slow
@QUICK
@given(graphs(), st.randoms(use_true_random=False), st.integers(2, 8))
def test_any_order_of_completion_gives_the_same_result(
    made: tuple[Skill, dict[str, Any], set[str]], shuffle: random.Random, workers: int
) -> None:
    order = [planned.id for planned in made[0].steps]
    alone = comparable(ran(made, order, max_workers=1))
    shuffle.shuffle(order)
    assert comparable(ran(made, order, max_workers=workers)) == alone


@pytest.mark.slow
@QUICK
@given(graphs(), st.randoms(use_true_random=False))
def test_the_recorded_events_fold_to_the_live_state(
    made: tuple[Skill, dict[str, Any], set[str]], shuffle: random.Random
) -> None:
    order = [planned.id for planned in made[0].steps]
    shuffle.shuffle(order)
    result = ran(made, order)
    states = replayed(result.sink.events)
    assert whole(states[result.state.run_id]) == whole(result.state)
    assert all(
        state.parent_run_id == result.state.run_id
        for id, state in states.items()
        if id != result.state.run_id
    )


@pytest.mark.slow
@QUICK
@given(graphs(), st.randoms(use_true_random=False))
def test_steps_start_only_after_what_they_depend_on_and_close_once(
    made: tuple[Skill, dict[str, Any], set[str]], shuffle: random.Random
) -> None:
    order = [planned.id for planned in made[0].steps]
    shuffle.shuffle(order)
    result = ran(made, order)
    closed: set[str] = set()
    for event in result.sink.events:
        status = event.payload.get("step_status") if isinstance(event.payload, dict) else None
        if event.run_id != result.state.run_id or status is None:
            continue
        needs = next(s.config.depends_on for s in made[0].steps if s.id == event.step_id) or ()
        if status == "running":
            assert set(needs) <= closed
        else:
            assert event.step_id not in closed
            closed.add(event.step_id or "")
    assert closed == {s.id for s in made[0].steps}
