"""A run that is killed anywhere keeps every promise, before and after somebody continues with it.

`COGCLI_LONG_TESTS=1` tries every point of every flow; else a sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from crash_flows import AGENTS, FLOWS, SYSCALLS, Flow
from crash_points import Outcome, Point, Range
from crash_verdicts import LONG, Judge, Tell
from fakes.logged import is_clean

from cogcli.episode.verify.check import verify

pytestmark = pytest.mark.sampled(8)

FEW = ("write:signal=KILL:when=4", "fdatasync:signal=KILL:when=2", "renameat:signal=KILL:when=1")

EVERY = [*FLOWS, *(AGENTS[1:] if LONG else ())]


def sample(points: list[Point], few: int, salt: int = 0) -> list[Point]:
    """All in a long run, else a few, spread evenly. `salt` moves them."""
    if LONG:
        return points
    step = max(1, len(points) // few)
    return points[::-1][salt % step :: step][:few]


@pytest.fixture(params=EVERY, ids=lambda flow: flow.name)
def flow(request: pytest.FixtureRequest) -> Flow:
    found: Flow = request.param
    return found


@pytest.mark.sampled(16)
def test_a_run_killed_anywhere_is_gone_on_with_to_the_same_end(
    shooting_range: Range, judge: Judge, flow: Flow
) -> None:
    points = sample(shooting_range.points(flow), 6, EVERY.index(flow))
    judge("killed while running", shooting_range.all(points))


@pytest.mark.sampled(32)
def test_the_fast_path_of_plain_steps_is_killed_too(shooting_range: Range, judge: Judge) -> None:
    (flow,) = [flow for flow in FLOWS if flow.name == "plain"]
    for mode, kind in (
        ("kill", "killed while running"),
        ("torn", "killed in the middle of a write"),
    ):
        points = shooting_range.points(flow, mode)
        # Here are steps, which take the fast path on any machine; items do so only while their calls are quick.
        tried = points if LONG else points[2 * len(points) // 5 :][:8]
        outcomes = shooting_range.all(tried)
        judge(kind, outcomes)
        assert any(one.plain for one in outcomes)


@pytest.mark.sampled(16)
def test_a_run_killed_in_the_middle_of_a_write_is_recovered(
    shooting_range: Range, judge: Judge, flow: Flow
) -> None:
    points = sample(shooting_range.points(flow, "torn"), 4, EVERY.index(flow))
    judge("killed in the middle of a write", shooting_range.all(points))


@pytest.mark.sampled(16)
def test_a_run_killed_while_it_is_gone_on_with_is_gone_on_with_again(
    shooting_range: Range, judge: Judge, flow: Flow
) -> None:
    points = sample(shooting_range.points(flow, resumed=True), 4, EVERY.index(flow))
    judge("killed while resumed", shooting_range.all(points))


@pytest.mark.sampled(4)
def test_what_a_person_said_in_doubt_stands_after_a_kill(
    shooting_range: Range, judge: Judge, flow: Flow
) -> None:
    if flow.answers:
        pytest.skip("this flow waits for a person instead")
    points = sample(shooting_range.points(flow, resumed=True, doubt=True), 4, EVERY.index(flow))
    judge("killed while resumed in doubt", shooting_range.all(points))


def test_a_rerun_killed_anywhere_calls_nothing_that_it_takes_over(
    shooting_range: Range, tell: Tell
) -> None:
    """From the fourth of five steps: what was to be taken over is, though its results were not in the new log yet."""
    linear = FLOWS[0]
    places = range(1, 100) if LONG else (19, 20, 21, 23)
    wrong = []
    for at in places:
        sandbox = shooting_range.sandbox(f"rerun {at}")
        sandbox.command(*sandbox.asked(linear))
        sandbox.launch("rerun", "@last", "--from", "d", *sandbox.flags(), at=at)
        earlier, *new = sandbox.episodes
        if new and (new[0] / "events.jsonl").exists():
            sandbox.command("resume", new[0].name, "--in-doubt", "skip", *sandbox.flags())
        again = set(sandbox.ledger[5:]) - {"d", "e"}
        wrong += [f"rerun kill@{at}: {again}"] if again else []
        wrong += [f"rerun kill@{at}: {path.name}" for path in (earlier, *new) if not _sound(path)]
        sandbox.remove()
    tell("killed while rerun", linear.name, len(places), len(wrong))
    assert wrong == []


def _sound(episode: Path) -> bool:
    return not (episode / "events.jsonl").exists() or is_clean(verify(episode))


@pytest.mark.sampled(4)
@pytest.mark.usefixtures("strace")
def test_the_installed_command_killed_at_any_system_call_keeps_its_promises(
    shooting_range: Range, judge: Judge, flow: Flow
) -> None:
    if LONG:
        outcomes = [
            one
            for syscall in (*SYSCALLS, *flow.syscalls)
            for one in _every(shooting_range, flow, syscall)
        ]
    else:
        text = FEW[EVERY.index(flow) % len(FEW)]
        outcomes = shooting_range.all([Point(flow, syscall=text)])
    judge("killed at a system call (strace)", outcomes)


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
