"""A log for views that must fit memory."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.declarations.envelope import Event
from cogcli.episode.verify import event_ids
from cogcli.episode.verify.event_ids import EventIds
from cogcli.report import thinned_log
from cogcli.report.thinned_log import thin_log


def log(rounds: int, inner: int, unusual: tuple[str, ...] = ()) -> list[Event]:
    """Nested loops; in the items of these paths a gate decides."""
    found: list[Event] = []

    def add(event_type: str, step_id: str | None) -> None:
        found.append(Event(len(found), "", "", "ep_x", "run", None, "act", event_type, {}, step_id))

    add("run.started", None)
    for n in range(rounds):
        add("step.started", f"a#{n}")
        for m in range(inner):
            path = f"a#{n}/b#{m}"
            add("step.started", path)
            if path in unusual:
                add("gate.decided", f"{path}@pre0")
            add("step.completed", path)
        add("step.completed", f"a#{n}")
    add("step.started", f"a#{rounds}")
    return found


def test_nothing_is_left_out_of_a_log_that_fits() -> None:
    events = log(30, 3)
    assert thin_log(events) == (events, 0, 0)
    assert thin_log(events).note == ""


def test_rounds_that_are_done_are_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thinned_log, "MOST", 10)
    monkeypatch.setattr(thinned_log, "FIRST", 2)
    events = log(50, 4, unusual=("a#30/b#1",))
    thinned = thin_log(events)
    assert len(thinned.events) + thinned.events_left_out == len(events)
    assert [event.seq for event in thinned.events] == sorted(e.seq or 0 for e in thinned.events)
    shown = {event.step_id for event in thinned.events}
    assert {"a#0", "a#1", "a#30", "a#30/b#1", "a#50"} <= shown
    assert not {"a#10", "a#49", "a#1/b#3"} & shown
    left = {e.step_id for e in events if e.event_type == "step.completed"} - shown
    assert thinned.parts_left_out == len(left)
    assert f"{thinned.events_left_out:,} are left out" in thinned.note


def test_a_long_run_needs_no_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thinned_log, "MOST", 100)
    few, many = (len(thin_log(log(rounds, 5)).events) for rounds in (200, 2000))
    assert few == many


def test_another_tools_log_is_left_as_it_is() -> None:
    events: list[Any] = [event._replace(seq=None) for event in log(3, 3)]
    assert thin_log(events).events == events


def test_ids_beyond_those_in_memory_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_ids, "_RECENT", 10)
    ids = EventIds()
    known = [f"ev_{n:026d}" for n in range(0, 100, 2)]
    for each in known:
        assert each not in ids
        ids.add(each)
    late = "ev_" + "0" * 25 + "3"
    assert late not in ids
    ids.add(late)
    ids.add("another tool's")
    assert all(each in ids for each in (*known, late, "another tool's"))
    assert not any(f"ev_{n:026d}" in ids for n in range(1, 120, 2) if n != 3)
    assert "ev_é" not in ids
