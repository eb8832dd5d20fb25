"""What holds for every invoker, whatever it speaks (docs/reference/protocols.md#invoker)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from contracts.invoker_targets import COUNTS, SECRET, TARGETS, Target
from fakes.processes import children, descriptors
from support.waiting import wait_until

from cogcli.base.calls import Cancellation
from cogcli.base.errors import (
    CallTimeoutError,
    RejectedError,
    RequestMappingError,
    ResponseMappingError,
    RuntimeErrorBase,
    ServerFaultError,
    TransportError,
)
from cogcli.base.redact import Redactor

pytestmark = pytest.mark.sampled(4)


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Target]:
    with TARGETS[request.param](tmp_path) as made:
        yield made


def able(target: Target, behaviour: str) -> None:
    """Leave a test that is about something this protocol has not."""
    if behaviour not in target.behaviours:
        pytest.skip(f"{target.name}: no such thing as `{behaviour}`")


def silent_call(
    target: Target, cancel: Cancellation
) -> tuple[threading.Thread, list[BaseException]]:
    """A call that has reached the service and gets no answer, in a thread of its own, and how it will have ended."""
    errors: list[BaseException] = []

    def call() -> None:
        try:
            target.call("silent", cancel=cancel)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    target.wait_until_entered()
    return thread, errors


def ended(thread: threading.Thread, errors: list[BaseException]) -> None:
    """Hold a call that nobody waits for any more to ending, with an error of ours that says that it left."""
    thread.join(60)
    assert not thread.is_alive()
    assert [
        (isinstance(error, RuntimeErrorBase), getattr(error, "left", error)) for error in errors
    ] == [(True, True)]


def test_the_suite_covers_every_protocol() -> None:
    from cogcli.protocols import PROTOCOLS

    assert {name.partition("-")[0] for name in TARGETS} == set(PROTOCOLS)


def test_an_answer_is_the_services_own_value(target: Target) -> None:
    text = 'ä "quoted" \u2028 \U0001f600'
    assert target.call("echo", text).body == {"text": text}


def test_the_payload_is_left_as_it_was(target: Target) -> None:
    payload: dict[str, Any] = {"text": "hello"}
    target.call("echo", payload=payload)
    assert payload == {"text": "hello"}


# -- how long ---------------------------------------------------------------------------------------------------------


def test_silence_ends_at_the_deadline(target: Target) -> None:
    target.call("echo")
    error = target.failure("silent", seconds=0.5)
    assert (type(error), error.code, error.left) == (CallTimeoutError, "call.timeout", True)
    assert target.call("echo").body == {"text": "hello"}


def test_a_deadline_that_has_passed_lets_nothing_out(target: Target) -> None:
    if target.name == "pythoncall-thread":
        pytest.skip("a function in a thread is given up by whoever waits, not by its invoker")
    error = target.failure("silent", seconds=-1.0)
    assert (error.code, error.left) == ("call.timeout", False)
    assert not target.entered()


def test_a_call_that_is_given_up_ends(target: Target) -> None:
    if target.name == "pythoncall-thread":
        pytest.skip("a function in a thread is left behind")
    cancel = Cancellation()
    thread, errors = silent_call(target, cancel)
    cancel.set()
    ended(thread, errors)
    assert target.call("echo").body == {"text": "hello"}


def test_a_call_that_was_given_up_before_does_not_leave(target: Target) -> None:
    if target.name == "pythoncall-thread":
        pytest.skip("a function in a thread is left behind")
    cancel = Cancellation()
    cancel.set()
    assert target.failure("silent", cancel=cancel, seconds=5.0).left is False
    assert not target.entered()


# -- how much ---------------------------------------------------------------------------------------------------------


def test_a_request_over_its_cap_does_not_leave(target: Target) -> None:
    error = target.failure("silent", "x" * 1000, max_request_bytes=100)
    assert (type(error), error.code, error.left) == (RequestMappingError, "request.size", False)
    assert not target.entered()


def test_a_reply_over_its_cap_is_refused(target: Target) -> None:
    error = target.failure("echo", "x" * 5000, max_response_bytes=1000)
    assert (type(error), error.code, error.left) == (ResponseMappingError, "response.size", True)
    assert target.call("echo", "x" * 5000).body == {"text": "x" * 5000}


@pytest.mark.parametrize("behaviour", ["nan", "deep"])
def test_what_is_no_json_for_us_is_no_answer(target: Target, behaviour: str) -> None:
    error = target.failure(behaviour)
    wrong = (
        ("response.not-json",)
        if target.name != "mcp"
        else ("response.not-json", "call.server-error")
    )
    assert error.code in wrong
    assert error.left is True
    assert target.call("echo").body == {"text": "hello"}


# -- what goes wrong --------------------------------------------------------------------------------------------------


def test_a_fault_of_the_service_is_told_as_such(target: Target) -> None:
    error = target.failure("fails", "\x1b[31mred")
    assert (type(error), error.code, error.left, error.retryable) == (
        ServerFaultError,
        "call.server-error",
        True,
        True,
    )


def test_a_refusal_is_no_fault_of_the_service(target: Target) -> None:
    able(target, "refuses")
    error = target.failure("refuses")
    assert (type(error), error.code, error.left, error.retryable) == (
        RejectedError,
        "call.rejected",
        True,
        False,
    )


def test_foreign_text_is_cut(target: Target) -> None:
    behaviour = "refuses" if "refuses" in target.behaviours else "fails"
    assert len(target.failure(behaviour, "x" * 20_000).message) < 1000


def test_an_end_in_the_middle_is_told_with_that_it_left(target: Target) -> None:
    able(target, "breaks")
    error = target.failure("breaks")
    assert (type(error), error.code, error.left) == (TransportError, "call.transport", True)
    assert target.call("echo").body == {"text": "hello"}


# -- what is told besides ---------------------------------------------------------------------------------------------


def test_whole_counts_are_usage_and_nothing_else_is(target: Target) -> None:
    assert target.call("usage").meta.usage == COUNTS


def test_secrets_are_in_no_message_and_in_no_record(target: Target) -> None:
    able(target, "secret")
    error = target.failure("secret")
    told = {"message": error.message, "hint": error.hint, "record": error.record or {}}
    assert SECRET not in json.dumps(Redactor(target.learned).mask(told))
    assert SECRET not in json.dumps(target.call("echo").meta.to_payload())


# -- many at once, and the end ----------------------------------------------------------------------------------------


def test_calls_from_many_threads_get_their_own_answers(target: Target) -> None:
    wrong: list[object] = []

    def calls(thread: int) -> None:
        for number in range(5):
            text = f"{thread} {number}"
            try:
                answer = target.call("echo", text).body
            except BaseException as error:
                wrong.append(error)
            else:
                wrong.extend([answer] if answer != {"text": text} else [])

    threads = [threading.Thread(target=calls, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert wrong == []


@pytest.mark.parametrize("name", TARGETS)
def test_the_end_leaves_no_process_and_no_socket(name: str, tmp_path: Path) -> None:
    with TARGETS[name](tmp_path) as warm:
        warm.call("echo")  # what is imported or opened once in the life of this process is here now
    before, threads = (children(), descriptors()), set(threading.enumerate())
    with TARGETS[name](tmp_path) as target:
        target.call("echo")
        target.call("echo")
        target.invoker.close(1.0)
        target.invoker.close(1.0)
    for thread in set(threading.enumerate()) - threads:
        thread.join(60)
    # A machine that is busy closes a little later.
    wait_until(lambda: (children(), descriptors()) == before)


def test_calls_under_way_end_with_the_run(target: Target) -> None:
    if target.name == "pythoncall-thread":
        pytest.skip("a function in a thread is left behind")
    thread, errors = silent_call(target, Cancellation())
    target.invoker.close(0.0)
    ended(thread, errors)
