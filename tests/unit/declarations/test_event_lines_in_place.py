"""An event line is changed in place, and the events that were taken from it stay."""

from __future__ import annotations

import orjson

from cogcli.declarations.envelope import Event, to_json
from cogcli.declarations.event_line import EventLine

EVENT = Event(
    0, "ev_1", "", "ep_1", "run_1", "trace", "act", "step.completed", {"output": {}}, "s0", None, "ev_0",
    metrics={"duration_ms": 0}, prev="",
)  # fmt: skip


def test_a_changed_line_has_the_bytes_of_the_event() -> None:
    line = EventLine(EVENT)
    line.members["id"], line.payload["output"], line.metrics["duration_ms"] = "ev_2", {"y": 1}, 7
    changed = EVENT._replace(id="ev_2", payload={"output": {"y": 1}}, metrics={"duration_ms": 7})
    assert orjson.dumps(line.members) == orjson.dumps(to_json(changed))
    assert line.to_event() == changed


def test_an_event_that_was_taken_from_a_line_does_not_change_with_it() -> None:
    line = EventLine(EVENT)
    taken = line.to_event()
    line.members["id"], line.payload["output"], line.metrics["duration_ms"] = "ev_2", {"y": 1}, 7
    assert taken == EVENT


def test_the_event_of_a_line_does_not_change_with_it() -> None:
    line = EventLine(EVENT)
    line.payload["output"] = {"y": 1}
    line.metrics["duration_ms"] = 7
    assert EVENT.payload == {"output": {}}
    assert EVENT.metrics == {"duration_ms": 0}
