from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from fakes.runner import member

from cogcli.core.calls import Attempt, Cancellation
from cogcli.events.envelope import Event
from cogcli.runs import turns
from cogcli.runs.log_index import LogIndex
from cogcli.runs.turns import Turns


def event(seq: int, kind: str, step: str | None, **payload: Any) -> Event:
    return Event(seq, f"ev_{seq}", "", "ep", "run", None, "act", kind, {"step_id": step, **payload}, step)


LOG = (
    event(0, "run.started", None),
    event(1, "step.started", "a"),
    event(2, "step.started", "c"),
    event(3, "step.answered", "c", output={}),
    event(4, "step.completed", "a", step_status="done"),
    event(5, "step.completed", "c", step_status="done"),
    event(6, "step.started", "b"),
    event(7, "step.completed", "b", step_status="done"),
    event(8, "step.skipped", "d", step_status="skipped", reason="dependency"),
)


@pytest.fixture
def order() -> Turns:
    return Turns(LogIndex(LOG))


def attempt(step: str, number: int = 1) -> Attempt:
    return Attempt(
        capability_id="c",
        member=member("b"),
        input={},
        effect="none",
        idempotency_key="",
        run_id="run",
        step_id=step,
        number=number,
        deadline=0.0,
        cancel=Cancellation(),
    )


def after(wait: Callable[[], None], act: Callable[[], None]) -> bool:
    """Whether `wait` comes back because of `act`."""
    back = threading.Event()
    threading.Thread(target=lambda: (wait(), back.set())).start()
    early = back.wait(0.05)
    act()
    return not early and back.wait(4)


def test_an_answer_comes_after_all_that_was_answered_before_it(order: Turns) -> None:
    order.wait(attempt("c"))  # the first of all
    assert after(lambda: order.wait(attempt("a")), lambda: order.mark_delivered(LOG[3]))


def test_a_call_begins_after_all_that_was_closed_before_it_began(order: Turns) -> None:
    assert order.before("run", "a") is None
    for index in (3, 4):
        order.mark_delivered(LOG[index])
    wait = order.before("run", "b")
    assert wait is not None
    assert after(wait, lambda: order.mark_delivered(LOG[5]))
    assert order.before("run", "b") is None


def test_what_the_log_does_not_tell_of_comes_after_all_of_it(order: Turns) -> None:
    for index in (3, 4, 5, 7):
        order.mark_delivered(LOG[index])
    wait = order.before("run", "new")
    assert wait is not None
    assert after(wait, lambda: order.mark_delivered(LOG[8]))
    assert after(order.wait_for_all, lambda: None) is False


def test_a_step_that_closes_without_an_answer_of_its_own_has_given_it(order: Turns) -> None:
    order.mark_delivered(LOG[4])
    order.mark_delivered(LOG[5])
    assert order.before("run", "b") is None


def test_an_attempt_that_was_repeated_then_waits_for_nobody() -> None:
    again = event(9, "call.retried", "e", attempt=2, reason="repeat")
    last = event(10, "step.completed", "e", step_status="done")
    order = Turns(LogIndex((*LOG, event(9, "step.started", "e"), again, last)))
    order.wait(attempt("e", 1))
    assert after(
        lambda: order.wait(attempt("e", 2)), lambda: [order.mark_delivered(one) for one in LOG] and None
    )


def test_an_attempt_that_was_made_then_is_not_waited_for_again() -> None:
    again = event(9, "call.retried", "e", attempt=2, reason="retry")
    order = Turns(LogIndex((*LOG, again)))
    assert [order.repeated("run", "e", number) for number in (1, 2, 3)] == [False, True, False]


def test_only_what_was_done_wrote(order: Turns) -> None:
    assert [order.wrote_at("run", step) for step in "abcde"] == [4, 7, 5, None, None]


def test_where_the_order_is_lost_nobody_waits(order: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_PATIENCE_SECONDS", 0.01)
    order.wait_for_all()
    monkeypatch.setattr(turns, "_PATIENCE_SECONDS", 60.0)
    begun = time.monotonic()
    order.wait(attempt("b"))
    assert order.before("run", "b") is None
    assert time.monotonic() - begun < 30


def test_nobody_waits_for_the_end_of_what_was_cut_off() -> None:
    """It is told once it is decided that the run ends; older logs have it where it was cut off."""
    log = (*LOG[:4], event(4, "step.skipped", "e", step_status="skipped", reason="cancelled"), *LOG[5:])
    order = Turns(LogIndex(log))
    order.mark_delivered(log[3])
    assert order.before("run", "b") is not None
    order.mark_delivered(log[5])
    assert order.before("run", "b") is None
