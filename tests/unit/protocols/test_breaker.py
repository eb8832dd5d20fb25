"""The circuit breaker (docs/reference/execution.md#breaker)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.specs import capability
from fakes.surroundings import surroundings

from cogcli.base.calls import Attempt, Cancellation, Member
from cogcli.base.errors import FAILURE_OF, RuntimeErrorBase, TransportError
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.service_spec import Service
from cogcli.protocols.live.breaker import (
    FAULTS,
    OPEN_SECONDS,
    THRESHOLD,
    CircuitPermit,
    Circuits,
    process_circuits,
)
from cogcli.protocols.live.runner import LiveRunner
from cogcli.specs.catalog import Catalog
from cogcli.specs.selection import SelectionOptions, select

SERVICE = Service(id="svc", kind="pythoncall", module="m", root="/one", trusted=True)


class Time:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def now() -> Time:
    return Time()


@pytest.fixture
def circuits(now: Time) -> Circuits:
    return Circuits(now)


def fail(
    circuits: Circuits, times: int = 1, code: str = "call.transport", service: Service = SERVICE
) -> None:
    for _ in range(times):
        circuits.passage(service).record_failure(code)


def is_open(circuits: Circuits, service: Service = SERVICE) -> bool:
    """Whether a call would be refused; one that is let through is given up again."""
    try:
        circuits.passage(service).record_abandoned()
    except TransportError as error:
        return (error.code, error.left) == ("call.circuit-open", False)
    return False


def test_the_figures_are_those_of_the_specification() -> None:
    assert (THRESHOLD, OPEN_SECONDS) == (5, 30.0)
    assert set(FAULTS) == {"call.transport", "call.timeout", "call.overloaded", "call.server-error"}
    row = FAILURE_OF["call.circuit-open"]
    assert (row.exit, row.retryable, row.falls_back) == (6, True, True)


@pytest.mark.parametrize("code", sorted(FAULTS))
def test_five_faults_in_a_row_open_it(circuits: Circuits, code: str) -> None:
    fail(circuits, 4, code)
    assert not is_open(circuits)
    fail(circuits, 1, code)
    assert is_open(circuits)


@pytest.mark.parametrize("code", sorted(set(FAILURE_OF) - FAULTS))
def test_nothing_else_counts_or_ends_a_row(circuits: Circuits, code: str) -> None:
    fail(circuits, 4)
    fail(circuits, 10, code)
    assert not is_open(circuits)
    fail(circuits)
    assert is_open(circuits)


def test_success_ends_a_row(circuits: Circuits) -> None:
    fail(circuits, 4)
    circuits.passage(SERVICE).record_success()
    fail(circuits, 4)
    assert not is_open(circuits)


def test_each_service_has_a_circuit_of_its_own(circuits: Circuits) -> None:
    fail(circuits, 5)
    others = (
        Service(id="other", kind="pythoncall", module="m", root="/one", trusted=True),
        Service(id="svc", kind="pythoncall", module="m", root="/two", trusted=True),
    )
    assert not any(is_open(circuits, service) for service in others)


def test_the_refusal_tells_the_service_and_the_rest_of_the_time(
    circuits: Circuits, now: Time
) -> None:
    fail(circuits, 5)
    now.seconds += 12.5
    with pytest.raises(TransportError, match=r"`svc` failed 5 times in a row .* for 18 s more"):
        circuits.passage(SERVICE)


def half_open(circuits: Circuits, now: Time) -> CircuitPermit:
    fail(circuits, 5)
    now.seconds += OPEN_SECONDS - 0.1
    assert is_open(circuits)
    now.seconds += 0.1
    return circuits.passage(SERVICE)


def test_after_thirty_seconds_one_call_probes_and_the_others_are_refused(
    circuits: Circuits, now: Time
) -> None:
    half_open(circuits, now)
    with pytest.raises(TransportError, match="while one call probes it"):
        circuits.passage(SERVICE)


def test_a_probe_that_succeeds_closes_it(circuits: Circuits, now: Time) -> None:
    half_open(circuits, now).record_success()
    fail(circuits, 4)
    assert not is_open(circuits)


def test_a_probe_that_fails_opens_it_for_another_time(circuits: Circuits, now: Time) -> None:
    half_open(circuits, now).record_failure("call.timeout")
    assert is_open(circuits)
    now.seconds += OPEN_SECONDS - 0.1
    assert is_open(circuits)
    now.seconds += 0.1
    assert not is_open(circuits)


@pytest.mark.parametrize("code", ["call.rejected", "response.missing", "given up"])
def test_a_probe_that_shows_nothing_leaves_it_to_the_next_one(
    circuits: Circuits, now: Time, code: str
) -> None:
    probe = half_open(circuits, now)
    if code == "given up":
        probe.record_abandoned()
    else:
        probe.record_failure(code)
    circuits.passage(SERVICE).record_failure("call.transport")
    assert is_open(circuits)


def test_what_was_sent_before_it_opened_opens_it_no_longer_but_may_close_it(
    circuits: Circuits, now: Time
) -> None:
    late = [circuits.passage(SERVICE) for _ in range(3)]
    fail(circuits, 5)
    now.seconds += OPEN_SECONDS - 1
    late[0].record_failure("call.transport")
    now.seconds += 1
    assert not is_open(circuits)
    fail(circuits)
    assert is_open(circuits)
    late[1].record_success()
    assert not is_open(circuits)


def test_only_the_first_ending_of_a_call_counts(circuits: Circuits) -> None:
    fail(circuits, 4)
    passage = circuits.passage(SERVICE)
    passage.record_abandoned()
    passage.record_failure("call.transport")
    assert not is_open(circuits)


def test_threads_lose_no_fault(circuits: Circuits) -> None:
    passages = [circuits.passage(SERVICE) for _ in range(5)]
    threads = [
        threading.Thread(target=passage.record_failure, args=("call.timeout",))
        for passage in passages
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert is_open(circuits)


def test_all_runs_of_a_process_share_their_circuits() -> None:
    assert process_circuits() is process_circuits()


# -- around live calls ------------------------------------------------------------------------------------------------

CALLED = """
CALLS = []
def f(how):
    CALLS.append(how)
    if how == "fault":
        raise ValueError("boom")
    if how == "late":
        import time
        time.sleep(0.3)
    return {"n": len(CALLS)} if how != "unmapped" else {}
"""
MEMBER = Member("b", "svc", "pythoncall", 5.0)


class Live:
    """A runner over one function, and its circuits."""

    def __init__(self, root: Path, circuits: Circuits) -> None:
        (root / "breaker_called.py").write_text(CALLED)
        service = Service(
            id="svc",
            kind="pythoncall",
            module="breaker_called",
            isolation="thread",
            root=str(root),
            trusted=True,
        )
        request, response = {"how": "input.how"}, {"n": "response.n"}
        catalog = Catalog(
            capabilities={"c.a": capability("c.a", "how", "n!:integer")},
            bindings={
                "b": Binding(
                    id="b",
                    capability="c.a",
                    service="svc",
                    protocol="pythoncall",
                    operation="f",
                    request=request,
                    response=response,
                    trusted=True,
                )
            },
            bindings_of={"c.a": ("b",)},
            services={"svc": service},
        )
        self.runner = LiveRunner(
            catalog, lambda id: select(catalog, id, SelectionOptions()), surroundings(), circuits
        )

    def __call__(
        self, how: str | None, *, cancel: Cancellation | None = None, seconds: float = 5.0
    ) -> Any:
        given = {} if how is None else {"how": how}
        deadline = time.monotonic() + seconds
        attempt = Attempt(
            "c.a", MEMBER, given, "none", "k", "run_1", "s", 1, deadline, cancel or Cancellation()
        )
        return self.runner.attempt(attempt).output["n"]

    def code(self, how: str | None) -> str:
        with pytest.raises(RuntimeErrorBase) as caught:
            self(how)
        return caught.value.code


@pytest.fixture
def live(tmp_path: Path, circuits: Circuits) -> Iterator[Live]:
    made = Live(tmp_path, circuits)
    yield made
    made.runner.close(0.0)


def test_an_open_circuit_lets_nothing_reach_the_service(live: Live, now: Time) -> None:
    before = live("fine")
    assert [live.code("fault") for _ in range(7)] == ["call.server-error"] * 5 + [
        "call.circuit-open"
    ] * 2
    now.seconds += OPEN_SECONDS
    assert live("fine") == before + 6


def test_faults_of_mapping_and_of_the_caller_open_nothing(live: Live) -> None:
    assert {live.code("unmapped") for _ in range(6)} == {"response.missing"}
    assert {live.code(None) for _ in range(6)} == {"request.value"}
    assert live("fine")


def test_a_call_that_nobody_waits_for_because_it_is_late_counts_at_once(live: Live) -> None:
    """A function in a thread may never return: whoever gives it up at its deadline tells."""
    cancels = [Cancellation() for _ in range(THRESHOLD)]
    threads = [
        threading.Thread(target=lambda c=cancel: live("late", cancel=c, seconds=0.0)) for cancel in cancels
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    for cancel in cancels:
        cancel.set()
    refused = live.code("fine")
    for thread in threads:
        thread.join()
    assert refused == "call.circuit-open"


def test_calls_cut_off_by_the_run_count_for_nothing(live: Live) -> None:
    cancels = [Cancellation() for _ in range(THRESHOLD)]
    threads = [
        threading.Thread(target=lambda c=cancel: live("late", cancel=c)) for cancel in cancels
    ]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    for cancel in cancels:
        cancel.set()
    assert live("fine")
    for thread in threads:
        thread.join()
