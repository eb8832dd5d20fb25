"""An event type is one record, with a reducer where it changes state: it is drafted, chained, checked, reduced,
counted, indexed and shown by code that does not name it. A field of it is one line of that record."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.logged import is_clean

from cogcli.base.redact import Redactor
from cogcli.base.system import FakeClock, FakeIds
from cogcli.declarations.checked import problem_of
from cogcli.declarations.envelope import Event, draft_of
from cogcli.declarations.event_table import EVENT_TYPES, PAYLOAD_OF
from cogcli.declarations.event_type import EventType, Payload
from cogcli.declarations.events import PlanCreated, RunStarted, RunTerminated, SkillRef
from cogcli.declarations.value_types import Count
from cogcli.episode.log_fold import Counters
from cogcli.episode.log_reader import EventLog
from cogcli.episode.seal import seal
from cogcli.episode.store import Store
from cogcli.episode.verify.check import verify
from cogcli.report.event_lines import EventLines
from cogcli.report.trace_export import trace_spans
from cogcli.run.closed_scopes import ClosedScopes
from cogcli.run.log_index import LogIndex
from cogcli.state.execution import ExecutionState
from cogcli.state.reducer import REDUCERS, apply, initial_state, rebuild

STAMP = "2026-01-01T00:00:00.000000Z"


class ToyNoted(Payload):
    """A note."""

    event = EventType(
        "toy.noted",
        "governance",
        reduced=True,
        decides=True,
        words=("decision",),
        attributes=("decision",),
    )
    decision: str
    weight: Count = 0


def note(state: ExecutionState, event: Event) -> None:
    state.iteration += 1


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EVENT_TYPES, "toy.noted", ToyNoted.event)
    monkeypatch.setitem(PAYLOAD_OF, "toy.noted", ToyNoted)
    monkeypatch.setitem(REDUCERS, "toy.noted", note)


def test_a_new_type_is_a_row_a_model_and_a_reducer() -> None:
    start = Event(0, "ev_1", STAMP, "ep_1", "run_1", "t", "start", "run.started", {})
    event = Event(
        1, "ev_2", STAMP, "ep_1", "run_1", "t", "governance", "toy.noted", {"decision": "audit"}
    )
    assert problem_of("toy.noted", event.payload) is None
    assert problem_of("toy.noted", {}) == "payload.decision: Field required"
    weighed = ToyNoted(decision="audit", weight=-1).json
    assert (
        problem_of("toy.noted", weighed)
        == "payload.weight: Input should be greater than or equal to 0"
    )
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
    start = RunStarted(
        task="a task",
        seed=0,
        using="runner",
        skill=SkillRef(id="t.s", version="1.0.0"),
        inputs={},
        frame={},
        options={},
        tags={},
        pins={},
        parent_run_id=None,
    )
    plan = PlanCreated(source="", rationale="", step_records=[], steps=[])
    end = RunTerminated(
        status="ok", status_reason=None, outputs={}, error=None, required_missing=[]
    )
    for payload in (start, plan, ToyNoted(decision="audit"), end):
        journal.append(draft_of(payload, run))
    seal(journal)
    journal.close()
    assert is_clean(verify(journal.directory))
    events = [event for _, event in EventLog(journal.directory)]
    assert rebuild(events).root.iteration == 1
    assert LogIndex(events).last == events[-1]
