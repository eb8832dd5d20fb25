"""The one test that most acts of a log pass finds an act sound only where the checks one by one find nothing."""

from __future__ import annotations

from typing import Any

import pytest
import sample_episode as sample
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cogcli.declarations.envelope import Event
from cogcli.declarations.event_table import EVENT_TYPES
from cogcli.declarations.reading import read_record_at_once
from cogcli.declarations.shared_events import SharedActivity
from cogcli.episode.layout import Finding
from cogcli.episode.log_reader import EventLog
from cogcli.episode.verify.ordering import OrderingCheck

STEPS = [
    "read",
    "write",
    "outer",
    "outer#0",
    "outer#0/s",
    "loop#1",
    "loop#0",
    "read@pre0",
    "other",
    "/",
    "",
    None,
    7,
]
VALUES: list[Any] = [
    None, True, 0, -1, 1.5, "", "done", "running", "ok", [], ["a"], [{}], [3], {}, {"a": 1},
    [{"target": "vars.a", "strategy": "overwrite", "value": 1}],
    [{"target": "vars.a", "strategy": "sideways", "value": 1}],
    [{"binding_id": "b", "service_id": None, "status": "failed", "own": 1}],
]  # fmt: skip
MEMBERS = ["step_id", "step_status", "result_status", "writes", "attempts", "reads", "latency_ms", "tool",
    "action_id", "reused_from", "output", "own", "x-own"]  # fmt: skip


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    """Return the events of a log with steps, rounds and a nested run."""
    journal = sample.new_journal(tmp_path_factory.mktemp("log"), durability="none")
    sample.started(journal)
    sample.planned(
        journal, ("read", "detect", "Read"), ("loop", "act", "Loop"), ("outer", "act", "Outer")
    )
    sample.ended(journal, "read", sample.began(journal, "read"))
    for number in range(2):
        sample.ended(journal, f"loop#{number}", sample.began(journal, f"loop#{number}"))
    outer = sample.began(journal, "outer")
    run = "run_" + "1" * 16
    start = sample.RunStarted(**{**sample.START, "parent_run_id": sample.RUN, "pins": {}})
    journal.append(sample.draft_of(start, run, step_id="outer"))
    intent = sample.began(journal, "outer/s", run_id=run)
    sample.ended(journal, "outer/s", intent, run_id=run)
    sample.ended(journal, "outer", outer)
    sample.terminated(journal)
    journal.close()
    return [event for _, event in EventLog(journal.directory)]


def findings(check: OrderingCheck, events: list[Event], *, one_by_one: bool) -> list[Finding]:
    found = []
    for number, event in enumerate(events, 1):
        is_act = event.phase == "act"
        act = read_record_at_once(SharedActivity, event.payload) if is_act else None
        if one_by_one or act is None or not check.is_sound(event, act):
            found += check.check(number, event, act)
    return found


def steps_of(check: OrderingCheck) -> dict[str | None, Any]:
    """Return what is known of the steps of each run."""
    return {
        name: (run.alive, run.open, run.ended._rounds, run.ended._again, run.ended._others)
        for name, run in check._runs.items()
    }


def both_ways(events: list[Event]) -> list[Finding]:
    """Return the findings, which are the same with the one test and without it."""
    fast, slow = OrderingCheck(), OrderingCheck()
    found = findings(fast, events, one_by_one=False)
    assert found == findings(slow, events, one_by_one=True)
    assert steps_of(fast) == steps_of(slow)
    return found


def test_a_sound_log_has_no_finding(events: list[Event]) -> None:
    assert both_ways(events) == []
    check = OrderingCheck()
    for event in events:
        if event.phase == "act":
            assert check.is_sound(event, read_record_at_once(SharedActivity, event.payload)), event
        else:
            check.check(1, event, None)


def test_each_value_of_each_member_is_judged_the_same(events: list[Event]) -> None:
    wrong = 0
    kinds = [event.event_type for event in events]
    for kind in ("step.started", "step.completed"):
        event = events[place := kinds.index(kind)]
        for name in (*event.payload, *MEMBERS):
            for value in VALUES:
                changed = event._replace(payload={**event.payload, name: value})
                wrong += len(both_ways([*events[:place], changed, *events[place + 1 :]]))
    assert wrong


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_logs_in_any_disorder_are_judged_the_same(events: list[Event], data: st.DataObject) -> None:
    log = list(events)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(log) - 1))
        other = data.draw(st.integers(0, len(log) - 1))
        match data.draw(
            st.sampled_from(["swap", "repeat", "drop", "step", "run", "type", "phase"])
        ):
            case "swap":
                log[place], log[other] = log[other], log[place]
            case "repeat":
                log.insert(place, log[other])
            case "drop" if len(log) > 1:
                del log[place]
            case "step":
                step = data.draw(st.sampled_from(STEPS))
                payload = {**log[place].payload, "step_id": step}
                named = step if isinstance(step, str) and data.draw(st.booleans()) else None
                log[place] = log[place]._replace(payload=payload, step_id=named)
            case "run":
                log[place] = log[place]._replace(run_id=log[other].run_id)
            case "type":
                kind = data.draw(st.sampled_from([*sorted(EVENT_TYPES), "own", None]))
                log[place] = log[place]._replace(event_type=kind)
            case "phase":
                log[place] = log[place]._replace(phase=log[other].phase)
    both_ways(log)
