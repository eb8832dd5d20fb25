"""The loop guard (docs/reference/pack.md#loop-guard)."""

from __future__ import annotations

from typing import Any

from cogcli.governance.loop_guard import LoopGuard

ORDER = {"order_id": "ord_881"}


def _call(guard: LoopGuard, name: str, arguments: dict[str, Any], result: Any) -> Any:
    """The kind of a trip, None where the call was made."""
    trip = guard.propose(name, arguments)
    if trip is None:
        guard.note_result(name, arguments, result)
        return None
    return trip


def test_the_third_identical_call_with_identical_results_trips() -> None:
    guard = LoopGuard()
    assert _call(guard, "orders.lookup", ORDER, {"age": 12}) is None
    assert _call(guard, "orders.lookup", ORDER, {"age": 12}) is None
    trip = _call(guard, "orders.lookup", ORDER, {"age": 12})
    assert (trip.kind, trip.times, trip.calls, trip.again) == (
        "identical_results",
        3,
        ("orders.lookup",),
        False,
    )
    assert trip.unchanged == ("arguments", "result")
    assert "the same result" in trip.hint
    assert _call(guard, "orders.lookup", ORDER, {"age": 12}).again
    assert _call(guard, "orders.lookup", {"order_id": "ord_2"}, {"age": 12}) is None


def test_the_fifth_identical_call_trips_whatever_came_of_it() -> None:
    guard = LoopGuard()
    for number in range(4):
        assert _call(guard, "clock.now", {}, number) is None
    trip = _call(guard, "clock.now", {}, 4)
    assert (trip.kind, trip.times) == ("identical_calls", 5)
    assert guard.most_identical == 5


def test_a_cycle_that_comes_twice_running_trips() -> None:
    guard = LoopGuard()
    made = [("a.b", {}), ("c.d", {"x": 1}), ("e.f", {})]
    for number, (name, arguments) in enumerate([*made, *made[:2]]):
        assert _call(guard, name, arguments, number) is None
    trip = _call(guard, *made[2], 9)
    assert (trip.kind, trip.calls) == ("cycle", ("a.b", "c.d", "e.f"))


def test_two_turns_without_news_trip() -> None:
    guard = LoopGuard()
    assert guard.end_turn([{"fact": 1}]) is None
    assert guard.end_turn([{"fact": 1}]) is None
    trip = guard.end_turn([])
    assert trip is not None
    assert (trip.kind, trip.times) == ("idle", 2)
    assert guard.end_turn([{"fact": 2}]) is None
    assert guard.idle_turns == 0


def test_a_trip_as_the_payload_of_its_event() -> None:
    guard = LoopGuard()
    for _ in range(2):
        _call(guard, "a.b", {}, 1)
    payload = _call(guard, "a.b", {}, 1).to_payload()
    assert list(payload) == ["kind", "key", "count", "calls", "unchanged", "hint"]
