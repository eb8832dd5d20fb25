"""An event type is a row of `events/types.EVENT_TYPES` and a model, with a reducer where it changes state: it is
drafted, chained, checked, reduced, counted, indexed and shown by code that does not name it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.logged import is_clean

from cogcli.core.redact import Redactor
from cogcli.core.system import FakeClock, FakeIds
from cogcli.episode.log_fold import Counters
from cogcli.episode.log_reader import EventLog
from cogcli.episode.seal import seal
from cogcli.episode.store import Store
from cogcli.episode.verify.check import verify
from cogcli.events import build, payloads
from cogcli.events.envelope import Draft, Event
from cogcli.events.types import EVENT_TYPES, EventType
from cogcli.mapping.apply import REDUCERS, apply, initial_state, rebuild
from cogcli.report.table import EventLines
from cogcli.report.trace_export import trace_spans
from cogcli.runs.closed_scopes import ClosedScopes
from cogcli.runs.log_index import LogIndex
from cogcli.state.execution import ExecutionState

STAMP = "2026-01-01T00:00:00.000000Z"


class ToyNoted(payloads.Payload):
    """A note."""

    decision: str


def note(state: ExecutionState, event: Event) -> None:
    state.iteration += 1


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    row = EventType(
        "governance", "ToyNoted", reduced=True, decides=True, words=("decision",), attributes=("decision",)
    )
    monkeypatch.setitem(EVENT_TYPES, "toy.noted", row)
    monkeypatch.setattr(payloads, "ToyNoted", ToyNoted, raising=False)
    monkeypatch.setitem(REDUCERS, "toy.noted", note)


def test_a_new_type_is_a_row_a_model_and_a_reducer() -> None:
    start = Event(0, "ev_1", STAMP, "ep_1", "run_1", "t", "start", "run.started", {})
    event = Event(1, "ev_2", STAMP, "ep_1", "run_1", "t", "governance", "toy.noted", {"decision": "audit"})
    assert payloads.problem_of("toy.noted", event.payload) is None
    assert payloads.problem_of("toy.noted", {}) is not None
    state = initial_state(start)
    apply(state, event)
    assert state.iteration == 1
    counters = Counters()
    counters.apply(event, is_root=True)
    assert counters.would_vetoes == 1
    closed = ClosedScopes()
    closed.apply(event)
    assert not closed.steps
    assert EventLines().line(event) == "2026-01-01T00:00:00.000Z toy.noted decision=audit"
    moments = trace_spans([start, event]).spans[0].moments
    assert [moment.name for moment in moments] == ["toy.noted"]


def test_it_is_chained_projected_sealed_and_verified(tmp_path: Path) -> None:
    journal = Store(tmp_path).create(
        "ep_01JZ0000000000000000000000",
        trace_id="t-1",
        clock=FakeClock(1_800_000_000),
        ids=FakeIds(1),
        redactor=Redactor(),
    )
    run = "run_000000000000000a"
    journal.append(
        build.run_started(
            run, task="a task", skill={"id": "t.s", "version": "1.0.0"}, inputs={}, frame={}, options={}, seed=0,
            tags={}, pins={},
        )
    )  # fmt: skip
    journal.append(build.plan_created(run, rationale="", step_records=[], steps=[]))
    journal.append(Draft("toy.noted", "governance", run, {"decision": "audit"}))
    journal.append(
        build.run_terminated(
            run, status="ok", status_reason=None, outputs={}, error=None, required_missing=[], metrics=None
        )
    )
    seal(journal)
    journal.close()
    assert is_clean(verify(journal.directory))
    events = [event for _, event in EventLog(journal.directory)]
    assert rebuild(events).root.iteration == 1
    assert LogIndex(events).last == events[-1]
