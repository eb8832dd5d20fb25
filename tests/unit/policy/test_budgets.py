"""Budgets of a run (docs/reference/pack.md#budgets)."""

from __future__ import annotations

from threading import Barrier, Thread

from cogcli.policy.budgets import (
    COUNTED,
    DEFAULTS,
    BudgetOverrun,
    Budgets,
    BudgetUsage,
    budget_hint,
    merge_limits,
    raised_keys,
)


def test_a_reservation_takes_all_keys_or_none() -> None:
    budgets = Budgets({"tool_calls.per_turn": 2, "tokens.workflow": 100})
    first = budgets.reserve({"tool_calls.per_turn": 1, "tokens.workflow": 90})
    assert first.overrun is None
    refused = budgets.reserve({"tool_calls.per_turn": 1, "tokens.workflow": 11})
    assert refused.overrun == BudgetOverrun("tokens.workflow", 90, 100)
    assert budgets.usage() == {
        "tool_calls.per_turn": BudgetUsage(0, 1),
        "tokens.workflow": BudgetUsage(0, 90),
    }
    first.commit({"tool_calls.per_turn": 1, "tokens.workflow": 40})
    first.commit()
    first.release()
    assert budgets.usage() == {
        "tool_calls.per_turn": BudgetUsage(1, 0),
        "tokens.workflow": BudgetUsage(40, 0),
    }
    assert budgets.remaining() == {"tool_calls.per_turn": 1, "tokens.workflow": 60}


def test_a_reservation_may_take_all_that_is_left_and_no_more() -> None:
    budgets = Budgets({"turns": 3})
    assert budgets.reserve({"turns": 4}).overrun == BudgetOverrun("turns", 0, 3)
    first = budgets.reserve({"turns": 1})
    assert first.overrun is None
    first.commit()
    assert budgets.reserve({"turns": 1}).overrun is None
    assert budgets.reserve({"turns": 2}).overrun == BudgetOverrun("turns", 2, 3)
    assert budgets.usage() == {"turns": BudgetUsage(1, 1)}
    assert budgets.remaining() == {"turns": 1}
    assert budgets.reserve({"turns": 1}).overrun is None
    assert budgets.remaining() == {"turns": 0}


def test_what_is_used_beyond_a_limit_leaves_nothing() -> None:
    budgets = Budgets({"tokens.workflow": 10, "turns": 1})
    held = budgets.reserve({"tokens.workflow": 5})
    assert held.overrun is None
    held.commit({"tokens.workflow": 25, "other": 1})
    assert budgets.remaining() == {"tokens.workflow": 0, "turns": 1}
    assert budgets.usage() == {
        "tokens.workflow": BudgetUsage(25, 0),
        "turns": BudgetUsage(0, 0),
        "other": BudgetUsage(1, 0),
    }
    assert budgets.reserve({"tokens.workflow": 1}).overrun == BudgetOverrun(
        "tokens.workflow", 25, 10
    )


def test_what_is_released_can_be_had_again() -> None:
    budgets = Budgets({"turns": 1})
    held = budgets.reserve({"turns": 1})
    assert held.overrun is None
    assert budgets.reserve({"turns": 1}).overrun == BudgetOverrun("turns", 1, 1)
    held.release()
    assert budgets.reserve({"turns": 1}).overrun is None


def test_a_turn_begins_with_its_own_calls() -> None:
    budgets = Budgets({"tool_calls.per_turn": 1, "tool_calls.per_workflow": 2})
    needs = {"tool_calls.per_turn": 1, "tool_calls.per_workflow": 1}
    for _ in range(2):
        budgets.begin_turn()
        held = budgets.reserve(needs)
        assert held.overrun is None
        held.commit()
    budgets.begin_turn()
    assert budgets.reserve(needs).overrun == BudgetOverrun("tool_calls.per_workflow", 2, 2)
    assert budgets.usage() == {
        "tool_calls.per_turn": BudgetUsage(0, 0),
        "tool_calls.per_workflow": BudgetUsage(2, 0),
    }


def test_what_has_no_limit_is_counted() -> None:
    budgets = Budgets({})
    held = budgets.reserve({"cost_microusd": 5})
    assert held.overrun is None
    held.commit({"cost_microusd": 7})
    assert budgets.usage() == {"cost_microusd": BudgetUsage(7, 0)}


def test_four_threads_grant_exactly_the_limit() -> None:
    budgets, granted, start = Budgets({"a": 1000, "b": 4000}), [], Barrier(4)

    def spend() -> None:
        start.wait()
        for number in range(400):
            held = budgets.reserve({"b": 1, "a": 1})
            if held.overrun is None:
                granted.append(number)
                held.commit()

    threads = [Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == 1000
    assert budgets.usage() == {"a": BudgetUsage(1000, 0), "b": BudgetUsage(1000, 0)}


def test_the_budgets_of_a_pack_that_sets_none() -> None:
    assert merge_limits(DEFAULTS, {}) == {
        "tokens.context": 8000,
        "tokens.output": 2000,
        "tokens.workflow": 80_000,
        "tool_calls.per_turn": 8,
        "tool_calls.per_workflow": 32,
        "wall_clock_ms": 300_000,
        "heartbeat_ms": 10_000,
        "replans": 3,
        "retries": 2,
        "turns": 10,
        "soft": 0.5,
    }
    assert BudgetUsage() == BudgetUsage(0, 0)


def test_a_flag_gives_more_but_under_a_pack_where_only_the_pack_does() -> None:
    assert budget_hint("turns", pack=False) == "give it more with --budget turns=N"
    assert budget_hint("turns", pack=True).startswith("raise `turns` in the budget of the pack")


def test_each_budget_is_spent_or_bounds_one_thing() -> None:
    each = merge_limits(DEFAULTS, {"cost_microusd": 1})
    bounds = ("tokens.context", "tokens.output", "wall_clock_ms", "heartbeat_ms", "retries", "soft")
    assert sorted((*COUNTED, *bounds)) == sorted(each)


def test_limits_are_those_of_the_pack_else_the_defaults_and_flags_only_lower_them() -> None:
    limits = merge_limits(
        {"tool_calls": {"per_turn": 8, "per_workflow": 32}}, {"tool_calls": {"per_turn": 4}}
    )
    assert limits == {"tool_calls.per_turn": 4, "tool_calls.per_workflow": 32}
    assert raised_keys(
        limits, {"tool_calls.per_turn": 5, "tool_calls.per_workflow": 32, "turns": 9}
    ) == ["tool_calls.per_turn"]
