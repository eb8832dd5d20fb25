"""Budgets of a run (docs/reference/pack.md#budgets)."""

from __future__ import annotations

from threading import Barrier, Thread

from cogcli.governance.budgets import Budgets, BudgetUsage, Exceeded, Reservation, merge_limits, raised_keys


def test_a_reservation_takes_all_keys_or_none() -> None:
    budgets = Budgets({"tool_calls.per_turn": 2, "tokens.workflow": 100})
    first = budgets.reserve({"tool_calls.per_turn": 1, "tokens.workflow": 90})
    assert isinstance(first, Reservation)
    refused = budgets.reserve({"tool_calls.per_turn": 1, "tokens.workflow": 11})
    assert refused == Exceeded("tokens.workflow", 90, 100)
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


def test_what_is_released_can_be_had_again() -> None:
    budgets = Budgets({"turns": 1})
    held = budgets.reserve({"turns": 1})
    assert isinstance(held, Reservation)
    assert budgets.reserve({"turns": 1}) == Exceeded("turns", 1, 1)
    held.release()
    assert isinstance(budgets.reserve({"turns": 1}), Reservation)


def test_a_turn_begins_with_its_own_calls() -> None:
    budgets = Budgets({"tool_calls.per_turn": 1, "tool_calls.per_workflow": 2})
    needs = {"tool_calls.per_turn": 1, "tool_calls.per_workflow": 1}
    for _ in range(2):
        budgets.begin_turn()
        held = budgets.reserve(needs)
        assert isinstance(held, Reservation)
        held.commit()
    budgets.begin_turn()
    assert budgets.reserve(needs) == Exceeded("tool_calls.per_workflow", 2, 2)


def test_what_has_no_limit_is_counted() -> None:
    budgets = Budgets({})
    held = budgets.reserve({"cost_microusd": 5})
    assert isinstance(held, Reservation)
    held.commit({"cost_microusd": 7})
    assert budgets.usage() == {"cost_microusd": BudgetUsage(7, 0)}


def test_four_threads_grant_exactly_the_limit() -> None:
    budgets, granted, start = Budgets({"a": 1000, "b": 4000}), [], Barrier(4)

    def spend() -> None:
        start.wait()
        for number in range(400):
            held = budgets.reserve({"b": 1, "a": 1})
            if isinstance(held, Reservation):
                granted.append(number)
                held.commit()

    threads = [Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == 1000
    assert budgets.usage() == {"a": BudgetUsage(1000, 0), "b": BudgetUsage(1000, 0)}


def test_limits_are_those_of_the_pack_else_the_defaults_and_flags_only_lower_them() -> None:
    limits = merge_limits(
        {"tool_calls": {"per_turn": 8, "per_workflow": 32}}, {"tool_calls": {"per_turn": 4}}
    )
    assert limits == {"tool_calls.per_turn": 4, "tool_calls.per_workflow": 32}
    assert raised_keys(limits, {"tool_calls.per_turn": 5, "tool_calls.per_workflow": 1}) == [
        "tool_calls.per_turn"
    ]
