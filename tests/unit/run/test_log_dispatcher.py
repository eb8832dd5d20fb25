"""Where a log places the starts and answers of calls, and what comes of a call that it does not have."""

from __future__ import annotations

from math import inf
from typing import Any, NoReturn

import pytest
from fakes.runner import member

from cogcli.base.calls import Attempt, Cancellation
from cogcli.base.errors import TransportError
from cogcli.declarations.envelope import Event
from cogcli.run.engine.ports import RecordedCall
from cogcli.run.log_dispatcher import LogDispatcher
from cogcli.run.log_index import LogIndex


class NotInTheLog(Exception):
    pass


def refuse(attempt: Attempt) -> NoReturn:
    raise NotInTheLog


def event(seq: int, kind: str, step: str | None, **payload: Any) -> Event:
    return Event(
        seq, f"ev_{seq}", "", "ep", "run", None, "act", kind, {"step_id": step, **payload}, step
    )


LOG = (
    event(0, "run.started", None, options={}),
    event(1, "step.started", "a"),
    event(2, "step.started", "c"),
    event(3, "step.answered", "c", output={"n": 3}, attempts=[{"status": "success"}]),
    event(
        4,
        "step.completed",
        "a",
        step_status="done",
        output={"n": 1},
        attempts=[{"status": "success"}],
    ),
    event(
        5,
        "step.completed",
        "c",
        step_status="done",
        output={"n": 3},
        attempts=[{"status": "success"}],
    ),
    event(6, "step.started", "b"),
    event(
        7,
        "step.completed",
        "b",
        step_status="done",
        output={"n": 2},
        attempts=[{"status": "success"}],
    ),
    event(8, "step.skipped", "d", step_status="skipped", reason="dependency"),
)
RETRIED = (
    event(9, "step.started", "e"),
    event(
        10,
        "call.retried",
        "e",
        attempt=2,
        reason="repeat",
        error={"code": "call.transport", "left": True},
    ),
)


def dispatcher(log: tuple[Event, ...] = LOG, *, live: bool = True) -> LogDispatcher:
    return LogDispatcher(LogIndex(log), refuse, live=live)


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


def recorded(order: LogDispatcher, step: str, number: int = 1) -> RecordedCall:
    call = order.recorded(attempt(step, number))
    assert call is not None
    return call


def test_an_answer_has_the_place_at_which_it_was_there_first() -> None:
    order = dispatcher()
    assert [recorded(order, step).position for step in "acb"] == [4, 3, 7]
    assert [recorded(order, step).answer().output for step in "acb"] == [
        {"n": 1},
        {"n": 3},
        {"n": 2},
    ]


def test_a_call_begins_after_all_that_was_closed_before_it_began() -> None:
    order = dispatcher()
    assert order.starts_at("run", "a") is None
    for index in (3, 4):
        order.mark_delivered(LOG[index])
    assert order.starts_at("run", "b") == 6
    order.mark_delivered(LOG[5])
    assert order.starts_at("run", "b") is None


def test_what_the_log_does_not_tell_of_comes_after_all_of_it() -> None:
    order = dispatcher()
    for index in (3, 4, 5, 7):
        order.mark_delivered(LOG[index])
    assert order.starts_at("run", "new") == inf
    order.mark_delivered(LOG[8])
    assert order.starts_at("run", "new") is None


def test_a_call_that_the_log_does_not_have_is_made_live_or_ends_last() -> None:
    assert dispatcher().recorded(attempt("new")) is None
    call = recorded(dispatcher(live=False), "new")
    assert call.position == inf
    with pytest.raises(NotInTheLog):
        call.answer()


@pytest.mark.sampled(3)
def test_a_call_whose_run_has_ended_in_the_log_is_never_made() -> None:
    order = dispatcher((*LOG, event(9, "run.terminated", None, status="error", status_reason="x")))
    assert recorded(order, "new").position == 9
    with pytest.raises(NotInTheLog):
        recorded(order, "new").answer()


def test_a_step_that_closes_without_an_answer_of_its_own_has_given_it() -> None:
    order = dispatcher()
    order.mark_delivered(LOG[4])
    order.mark_delivered(LOG[5])
    assert order.starts_at("run", "b") is None


def test_an_attempt_that_was_repeated_failed_before_the_repeat() -> None:
    last = event(
        11,
        "step.completed",
        "e",
        step_status="done",
        output={},
        attempts=[{}, {"status": "success"}],
    )
    order = dispatcher((*LOG, *RETRIED))
    assert recorded(order, "e", 1).position == 10
    with pytest.raises(TransportError):
        recorded(order, "e", 1).answer()
    order = dispatcher((*LOG, *RETRIED, last))
    assert [recorded(order, "e", number).position for number in (1, 2)] == [10, 11]


def test_an_attempt_that_was_made_then_is_not_waited_for_again() -> None:
    order = dispatcher((*LOG, *RETRIED))
    assert [order.is_repeated("run", "e", number) for number in (1, 2, 3)] == [False, True, False]


def test_only_what_was_done_wrote() -> None:
    assert [dispatcher().wrote_at("run", step) for step in "abcde"] == [4, 7, 5, None, None]


def test_nothing_comes_after_the_end_of_what_was_cut_off() -> None:
    """It is told once it is decided that the run ends; older logs have it where it was cut off."""
    log = (
        *LOG[:4],
        event(4, "step.skipped", "e", step_status="skipped", reason="cancelled"),
        *LOG[5:],
    )
    order = dispatcher(log)
    order.mark_delivered(log[3])
    assert order.starts_at("run", "b") == 6
    order.mark_delivered(log[5])
    assert order.starts_at("run", "b") is None
