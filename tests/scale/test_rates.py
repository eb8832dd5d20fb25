"""The rates of services: lines wait until there is room for their calls."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from counted import RUN, effects, make_counted, write_lines

from cogcli.base.errors import OverloadedError
from cogcli.scale.executor import LineEnded
from cogcli.scale.frames import completion_from_frame, completion_to_frame
from cogcli.scale.identity import LineTask
from cogcli.scale.line_result import LineResult, unsealed_result
from cogcli.scale.line_runner import CallCounter
from cogcli.scale.pacing import FIRST_PAUSE, LONGEST_PAUSE, FailureLimit, ServicePause
from cogcli.scale.rates import MOST_HELD, ServiceGate, ServiceRates, SharedBucket, parse_rate
from cogcli.scale.service_slots import ServiceSlots


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def send_for(clock: Clock, rates: ServiceRates, seconds: float, calls: int) -> int:
    """Send lines with so many calls each for so long, as soon as they may be sent. The number of calls."""
    end, made = clock.now + seconds, 0
    while True:
        wait = rates.seconds_left()
        if clock.now + wait > end:
            return made
        clock.now += wait + 1e-6
        rates.reserve(1)
        rates.settle(1, {"s": calls})
        made += calls


@pytest.mark.parametrize("calls", [1, 3, 10])
def test_a_rate_holds_whatever_the_calls_of_a_line(tmp_path: Path, calls: int) -> None:
    clock = Clock()
    rates = ServiceRates({"s": ServiceGate(SharedBucket(tmp_path, "s", 5.0, clock))})
    made = send_for(clock, rates, 100, calls)
    assert 480 <= made <= 500 + max(5, calls) + calls


def test_batches_of_one_user_share_a_rate(tmp_path: Path) -> None:
    clock = Clock()
    one, two = (
        ServiceRates({"s": ServiceGate(SharedBucket(tmp_path, "s", 5.0, clock))}) for _ in "12"
    )
    assert send_for(clock, one, 10, 1) >= 50
    clock.now -= 5
    assert send_for(clock, two, 0, 1) == 0
    (tmp_path / "s").write_text("nonsense")
    assert send_for(clock, two, 0, 1) >= 1


def test_what_is_not_called_is_given_back(tmp_path: Path) -> None:
    clock = Clock()
    rates = ServiceRates({"s": ServiceGate(SharedBucket(tmp_path, "s", 1.0, clock))})
    for _ in range(50):
        assert rates.seconds_left() == 0
        rates.reserve(1)
        rates.settle(1, {"other": 9})


def test_a_batch_counts_the_calls_of_each_service(counting: Any) -> None:
    write_lines(counting, ["a", "b", "c"])
    counting.run(*RUN, "--rate", "demo=1000/s", "--jobs", "1").assert_ok()
    (file,) = counting.home.rglob("rates/*")
    tokens, _ = json.loads(file.read_text())
    assert 996 <= tokens <= 1000
    assert effects(counting) == ["a", "b", "c"]
    counting.run(*RUN, "--rate", "dmo=1/s").assert_exit(2)
    counting.run(*RUN, "--rate", "demo=0/s").assert_exit(2)
    counting.run(*RUN, "--rate", "demo").assert_exit(2)


def test_a_service_declares_its_own_rate(counting: Any) -> None:
    service = counting.root / "services/local/demo.yaml"
    service.write_text(service.read_text() + "metadata: {max_rate: 500/s}\n")
    write_lines(counting, ["a"])
    counting.run(*RUN).assert_ok()
    (file,) = counting.home.rglob("rates/*")
    assert json.loads(file.read_text())[0] <= 500
    service.write_text(service.read_text().replace("500/s", "often"))
    counting.run("validate").assert_exit(1)


def test_a_service_that_asks_for_a_pause_is_left_alone_by_all_batches(tmp_path: Path) -> None:
    clock = Clock()
    one, two = (
        ServiceRates({"s": ServiceGate(SharedBucket(tmp_path, "s", clock=clock))}) for _ in "12"
    )
    assert one.seconds_left() == 0
    one.reserve(1)
    one.settle(1, {"s": 1}, {"s": 20.0})
    assert two.seconds_left() == 20
    clock.now += 5
    two.reserve(2)
    two.settle(2, {"s": 1}, {"s": 1.0})
    assert one.seconds_left() == 15
    clock.now += 15
    assert one.seconds_left() == two.seconds_left() == 0
    one.reserve(3)
    one.settle(3, {}, {"s": 1e9})
    assert one.seconds_left() == MOST_HELD
    for text in ("[1, 1000, 1e300]", "[1, 1000, NaN]", "[1]", "{}"):
        (tmp_path / "s").write_text(text)
        assert two.seconds_left() == 0, text


def test_a_slot_is_taken_by_one_line_at_a_time_and_is_never_lost(tmp_path: Path) -> None:
    def gates() -> ServiceRates:
        slots = ServiceSlots(tmp_path, "s", 2)
        return ServiceRates({"s": ServiceGate(SharedBucket(tmp_path, "s"), slots)})

    one, two = gates(), gates()
    for line, rates in ((1, one), (2, two)):
        assert rates.seconds_left() == 0
        rates.reserve(line)
    assert one.seconds_left() > 0
    assert two.seconds_left() > 0
    one.settle(1, {})
    assert two.seconds_left() == 0
    assert one.seconds_left() > 0  # the other batch holds it for its next line
    two.rest()
    assert one.seconds_left() == 0


@pytest.mark.sampled(6)
@pytest.mark.slow
def test_lines_wait_for_a_slot_of_their_service(project: Any) -> None:
    make_counted(project, "none")
    service = project.root / "services/local/demo.yaml"
    service.write_text(service.read_text() + "metadata: {max_concurrent: 1}\n")
    source = project.root / "demo_services.py"
    together = "    os.mkdir('alone')\n    time.sleep(0.02)\n    os.rmdir('alone')\n"
    source.write_text(source.read_text().replace('    die("die-before", text)\n', together))
    write_lines(project, [f"t{number}" for number in range(8)])
    project.started(*RUN, "--jobs", "3").assert_ok()
    assert len(effects(project)) == 8


def test_the_seconds_of_a_refusal_reach_the_batch() -> None:
    counter = CallCounter()
    error = OverloadedError("call.overloaded", "later")
    error.retry_after = 7.0
    attempt: Any = SimpleNamespace(member=SimpleNamespace(service_id="s"))

    def refuse(_: object) -> Any:
        raise error

    with pytest.raises(OverloadedError):
        counter.watch(attempt, refuse)
    assert counter.take(late("s")).held == {"s": 7.0}
    assert counter.take(late("s")).held == {}
    result = counter.take(late("s"))._replace(held={"s": 7.0})
    task = LineTask(1, 1, b"{}")
    frame = completion_to_frame(LineEnded(task, result))
    again = completion_from_frame(json.loads(json.dumps(frame)), task)
    assert isinstance(again, LineEnded)
    assert again.result.held == {"s": 7.0}


@pytest.mark.parametrize("text", ["", "5", "0/s", "-1/s", "nan/s", "1e9/s", "x/s"])
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_rate(text)


def late(service: str) -> LineResult:
    error = {"code": "call.timeout", "message": "late", "service": service}
    return unsealed_result(LineTask(1, 1, b"{}"), None, "error", 6, error)


def test_five_lines_without_an_answer_of_one_service_pause_the_sending() -> None:
    pause, ok = ServicePause(), unsealed_result(LineTask(1, 1, b"{}"), None, "ok", 0, None)
    assert [pause.apply(late("s"), 0.0) for _ in range(4)] == [""] * 4
    assert pause.apply(late("t"), 0.0) == ""
    assert [pause.apply(late("s"), 0.0) for _ in range(5)] == [*[""] * 4, "s"]
    assert pause.seconds_left(1.0) == FIRST_PAUSE - 1
    assert pause.apply(late("s"), 10.0) == ""
    now, lengths = FIRST_PAUSE, []
    for _ in range(6):
        assert pause.apply(late("s"), now) == "s"
        lengths.append(pause.seconds_left(now))
        now += lengths[-1]
    assert lengths == [60.0, 120.0, 240.0, 480.0, LONGEST_PAUSE, LONGEST_PAUSE]
    pause.apply(ok, now)
    assert [pause.apply(late("s"), now) for _ in range(5)] == [*[""] * 4, "s"]
    assert pause.seconds_left(now) == FIRST_PAUSE


def test_the_limit_of_failures() -> None:
    assert not FailureLimit(2).is_exceeded(2, 10)
    assert FailureLimit(2).is_exceeded(3, 10)
    assert not FailureLimit(5, is_percentage=True).is_exceeded(50, 99)
    assert FailureLimit(5, is_percentage=True).is_exceeded(6, 100)
    assert not FailureLimit(5, is_percentage=True).is_exceeded(5, 100)
