"""The loop guard (docs/reference/pack.md#loop-guard)."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from cogcli.policy.loop_guard import LoopGuard, LoopTrip, call_key

ORDER = {"order_id": "ord_881"}


def _call(guard: LoopGuard, name: str, arguments: dict[str, Any], result: Any) -> Any:
    """The kind of a trip, None where the call was made."""
    trip = guard.propose(name, arguments)
    if trip is None:
        guard.record_result(name, arguments, result)
        return None
    return trip


def test_a_call_is_named_by_capability_and_arguments() -> None:
    members = b'{"arguments":{"order_id":"ord_881"},"capability":"orders.lookup"}'
    assert call_key("orders.lookup", ORDER) == f"sha256:{sha256(members).hexdigest()}"


def test_the_third_identical_call_with_identical_results_trips() -> None:
    guard = LoopGuard()
    assert _call(guard, "orders.lookup", ORDER, {"age": 12}) is None
    assert _call(guard, "orders.lookup", ORDER, {"age": 12}) is None
    assert guard.max_identical == 2
    trip = _call(guard, "orders.lookup", ORDER, {"age": 12})
    assert trip == LoopTrip(
        "identical_results",
        call_key("orders.lookup", ORDER),
        3,
        ("orders.lookup",),
        ("arguments", "result"),
        "the same call gave the same result before: use that result, or ask for something else",
        False,
    )
    assert _call(guard, "orders.lookup", ORDER, {"age": 12}).again
    assert _call(guard, "orders.lookup", {"order_id": "ord_2"}, {"age": 12}) is None


def test_results_that_are_still_to_come_are_none_that_were_the_same() -> None:
    guard = LoopGuard()
    assert [guard.propose("orders.lookup", ORDER) for _ in range(4)] == [None] * 4
    trip = guard.propose("orders.lookup", ORDER)
    assert trip is not None
    assert trip.kind == "identical_calls"
    other = LoopGuard()
    assert _call(other, "a.b", {}, 1) is None
    assert [other.propose("a.b", {}) for _ in range(3)] == [None] * 3


def test_a_result_that_was_taken_up_without_a_proposal_trips_nothing_yet() -> None:
    guard = LoopGuard()
    for _ in range(2):
        guard.record_result("a.b", {}, 1)
    assert guard.propose("a.b", {}) is None
    assert guard.propose("a.b", {}) is None
    assert guard.propose("a.b", {}) is not None


def test_the_fifth_identical_call_trips_whatever_came_of_it() -> None:
    guard = LoopGuard()
    assert (guard.max_identical, guard.idle_turns) == (0, 0)
    for number in range(4):
        assert _call(guard, "clock.now", {}, number) is None
    trip = _call(guard, "clock.now", {}, 4)
    assert (trip.kind, trip.times, trip.calls, trip.unchanged) == (
        "identical_calls",
        5,
        ("clock.now",),
        ("arguments",),
    )
    assert trip.hint == "this call was made before: change its arguments, or answer"
    assert guard.max_identical == 5
    assert _call(guard, "other.call", {}, 4) is None


@pytest.mark.parametrize("length", [2, 3, 4])
def test_a_cycle_that_comes_twice_running_trips(length: int) -> None:
    made: list[tuple[str, dict[str, Any]]] = [
        ("a.b", {}),
        ("c.d", {"x": 1}),
        ("e.f", {}),
        ("g.h", {}),
    ][:length]
    guard = LoopGuard()
    assert _call(guard, "before.it", {}, 0) is None
    for number, (name, arguments) in enumerate([*made, *made[:-1]]):
        assert _call(guard, name, arguments, number) is None
    trip = _call(guard, *made[-1], 9)
    assert (trip.kind, trip.calls) == ("cycle", tuple(name for name, _ in made))
    assert (trip.key, trip.times, trip.unchanged) == (
        call_key(*made[-1]),
        2,
        ("arguments", "order"),
    )
    assert trip.hint == "these calls follow each other again: change one of them, or answer"


def test_what_is_no_cycle() -> None:
    names = "abcde"
    guard = LoopGuard()
    for number, name in enumerate([*names, *names]):  # five calls
        assert _call(guard, name, {}, number) is None
    guard = LoopGuard()
    for number, name in enumerate("aabbaab"):  # not running
        assert _call(guard, name, {}, number) is None
    guard = LoopGuard()
    for number in range(4):  # one call is none
        assert _call(guard, "a", {}, number) is None


def test_two_turns_without_news_trip() -> None:
    guard = LoopGuard()
    assert guard.end_turn([{"fact": 1}]) is None
    assert guard.end_turn([{"fact": 1}]) is None
    assert guard.idle_turns == 1
    trip = guard.end_turn([])
    assert trip == LoopTrip(
        "idle",
        "turns",
        2,
        (),
        ("facts", "effects", "plan", "results"),
        "nothing new came of the last turns: answer with what there is, or ask",
    )
    assert guard.end_turn([{"fact": 1}]) == trip._replace(times=3, again=True)
    assert guard.end_turn([{"fact": 1}, {"fact": 2}]) is None
    assert guard.idle_turns == 0


def test_a_trip_as_the_payload_of_its_event() -> None:
    trip = LoopTrip("cycle", "sha256:0", 2, ("a.b",), ("order",), "change it", True)
    assert trip.to_payload() == {
        "kind": "cycle",
        "key": "sha256:0",
        "count": 2,
        "calls": ["a.b"],
        "unchanged": ["order"],
        "hint": "change it",
    }
    assert not trip._replace(again=False).again
