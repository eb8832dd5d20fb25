from __future__ import annotations

from typing import Any

from fakes.specs import capability, skill, step
from hypothesis import given
from hypothesis import strategies as st

from cogcli.run.engine.graph import ReadySet
from cogcli.run.engine.plan import StepPlan, plan_skill

CAPABILITIES = {"c.a": capability("c.a")}


def plan(*steps: dict[str, Any]) -> StepPlan:
    return plan_skill(skill(*steps), CAPABILITIES, {})


def order(made: StepPlan) -> list[str]:
    return [s.step.id for s in made.steps]


def a(id: str, depends_on: list[str] | None = None, **more: Any) -> dict[str, Any]:
    return step(id, "c.a", depends_on=depends_on, **more)


def test_absent_dependencies_mean_the_step_before_in_the_file() -> None:
    made = plan(a("one"), a("two"), a("three"))
    assert [s.depends_on for s in made.steps] == [(), ("one",), ("two",)]


def test_empty_dependencies_mean_none() -> None:
    made = plan(a("one"), a("two", []), a("three"))
    assert [s.depends_on for s in made.steps] == [(), (), ("two",)]
    assert made.waiting_on == (0, 0, 1)


def test_plan_order_is_topological_with_ties_by_file_order() -> None:
    made = plan(a("late", ["b", "c"]), a("b", []), a("d", []), a("c", ["d"]))
    assert order(made) == ["b", "d", "c", "late"]


def test_dependency_named_twice_counts_once() -> None:
    made = plan(a("one"), a("two", ["one", "one"]))
    assert made.waiting_on == (0, 1)


def after(made: StepPlan) -> dict[str, set[str]]:
    names = order(made)
    return {
        names[index]: {names[n] for n in range(len(names)) if bits >> n & 1}
        for index, bits in made.writes_after.items()
    }


def writer(id: str, target: str, depends_on: list[str], strategy: str = "append") -> dict[str, Any]:
    return a(id, depends_on, output={"y": target}, merge_strategy=strategy)


def test_concurrent_writers_of_overlapping_targets_follow_plan_order() -> None:
    made = plan(
        writer("a", "working.artifacts.x", [], "deep_merge"),
        writer("b", "working.artifacts", [], "deep_merge"),
        writer("c", "working.artifacts.x.y", [], "deep_merge"),
        writer("d", "working.artifacts.z", [], "deep_merge"),
        writer("e", "vars.x", []),
    )
    assert after(made) == {"b": {"a"}, "c": {"a", "b"}, "d": {"b"}}


def test_writers_that_wait_for_one_another_anyway_are_not_held_up() -> None:
    made = plan(
        writer("a", "vars.l", []), writer("b", "vars.l", ["a"]), writer("c", "vars.l", ["b"])
    )
    assert after(made) == {}


def test_flat_keys_do_not_overlap() -> None:
    made = plan(writer("a", "vars.l", []), writer("b", "vars.l.m", []))
    assert after(made) == {}


def test_step_kind_is_declared_or_follows_from_the_capability() -> None:
    found = plan_skill(
        skill(
            step("a", "c.read"),
            step("b", "c.write"),
            step("c", "c.judge"),
            step("d", "c.read", kind="review"),
        ),
        {
            "c.read": capability("c.read"),
            "c.write": capability("c.write", effect="effect"),
            "c.judge": capability("c.judge", cognitive_hints={"role": ["decide"]}),
        },
        {},
    )
    assert [s.kind for s in found.steps] == ["analyze", "act", "plan", "review"]


@st.composite
def graphs(draw: st.DrawFn) -> list[list[int]]:
    """Dependencies by position: each step may name any step of a hidden order before it."""
    size = draw(st.integers(1, 12))
    hidden = draw(st.permutations(range(size)))
    needs: list[list[int]] = [[] for _ in range(size)]
    for place, node in enumerate(hidden):
        before = hidden[:place]
        needs[node] = (
            draw(st.lists(st.sampled_from(before), unique=True, max_size=3)) if before else []
        )
    return needs


@given(graphs())
def test_random_graphs_have_a_valid_order_and_become_ready_in_it(needs: list[list[int]]) -> None:
    made = plan(*[a(f"s{n}", [f"s{m}" for m in needs[n]]) for n in range(len(needs))])
    names = order(made)
    assert sorted(names) == sorted(f"s{n}" for n in range(len(needs)))
    for n, below in enumerate(needs):
        assert all(names.index(f"s{m}") < names.index(f"s{n}") for m in below)
    ready = ReadySet(made)
    run = []
    while ready:
        index = ready.pop()
        run.append(index)
        ready.release(index)
    assert run == list(range(len(needs)))


@given(graphs(), st.data())
def test_blocked_steps_are_all_downstream_and_told_once(
    needs: list[list[int]], data: st.DataObject
) -> None:
    made = plan(*[a(f"s{n}", [f"s{m}" for m in needs[n]]) for n in range(len(needs))])
    names = order(made)
    culprits = data.draw(st.lists(st.integers(0, len(needs) - 1), unique=True))
    ready = ReadySet(made)
    told = [index for culprit in culprits for index in ready.block(culprit)]
    assert len(told) == len(set(told))
    down: set[str] = set()
    for _ in needs:
        hit = {names[c] for c in culprits} | down
        down |= {f"s{n}" for n, below in enumerate(needs) if any(f"s{m}" in hit for m in below)}
    assert {names[index] for index in told} == down
