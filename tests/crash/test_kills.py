"""A run that is killed anywhere keeps every promise, before and after somebody goes on with it.

`COGCLI_LONG_TESTS=1` tries every point of every flow; else a sample.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import LONG, Judge  # type: ignore[import-not-found]
from crash_flows import FLOWS, SYSCALLS, Flow
from crash_points import Outcome, Point, Range


def sample(points: list[Point], few: int) -> list[Point]:
    """All in a long run, else a few, spread evenly, the last call among them."""
    step = max(1, len(points) // few)
    return points if LONG else points[::-1][::step][:few]


def test_a_run_killed_anywhere_is_gone_on_with_to_the_same_end(shooting_range: Range, judge: Judge) -> None:
    points = [point for flow in FLOWS for point in sample(shooting_range.points(flow), 2)]
    judge("killed while running", shooting_range.all(points))


def test_a_run_killed_while_it_is_gone_on_with_is_gone_on_with_again(
    shooting_range: Range, judge: Judge
) -> None:
    flows = FLOWS if LONG else FLOWS[-1:]
    points = [point for flow in flows for point in sample(shooting_range.points(flow, resumed=True), 3)]
    judge("killed while resumed", shooting_range.all(points))


@pytest.mark.parametrize("name", ["parallel", "blobs"])
def test_an_effect_left_out_in_doubt_stays_left_out_after_another_crash(
    shooting_range: Range, name: str
) -> None:
    flow = next(flow for flow in FLOWS if flow.name == name)
    outcome = shooting_range.tried(Point(flow, 15, resumed=True, doubt=True))
    assert outcome.violations == []


@pytest.mark.usefixtures("strace")
def test_the_installed_command_killed_at_any_system_call_keeps_its_promises(
    shooting_range: Range, judge: Judge
) -> None:
    if LONG:
        outcomes = [
            outcome
            for flow in FLOWS
            for syscall in SYSCALLS
            for outcome in _every(shooting_range, flow, syscall)
        ]
    else:
        tried = ("write:signal=KILL:when=4", "fdatasync:signal=KILL:when=2", "renameat:signal=KILL:when=3")
        outcomes = shooting_range.all([Point(FLOWS[0], syscall=text) for text in tried])
    judge("killed at a system call", outcomes)


def _every(shooting_range: Range, flow: Flow, syscall: str) -> Iterator[Outcome]:
    """Its first call, its second, ... until a run completes."""
    for first in range(1, 400, 8):
        numbers = range(first, first + 8)
        outcomes = shooting_range.all(
            [Point(flow, syscall=f"{syscall}:signal=KILL:when={n}") for n in numbers]
        )
        yield from (outcome for outcome in outcomes if outcome.reached)
        if not outcomes[-1].reached:
            return
