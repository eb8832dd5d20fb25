"""The log of an agent's run with members of another shape: every document is still made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fakes.agent_log import AgentLog

from cogcli.declarations.envelope import Event
from cogcli.episode.history import history_of
from cogcli.episode.learn import learn_lines
from cogcli.episode.log_fold import decision_files, fold_log
from cogcli.episode.summary import summary_of
from cogcli.report import layer_cells
from cogcli.report.compare import read_side
from cogcli.report.history_graph import graph_of
from cogcli.report.trace_export import trace_spans

pytestmark = pytest.mark.sampled(6)

ODD: tuple[Any, ...] = (None, 7, "x", [], {}, [7], [{}])
_DEEPEST = 4


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every member, of a list of the first one."""
    members = value.items() if isinstance(value, dict) else list(enumerate(value))[:1]
    for key, inner in members:
        yield (*above, key)
        if isinstance(inner, dict | list) and len(above) < _DEEPEST:
            yield from places(inner, (*above, key))


def replaced(value: Any, place: tuple[Any, ...], odd: Any) -> Any:
    """A copy of a value with another member at a place."""
    if not place:
        return odd
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = replaced(copy[place[0]], place[1:], odd)
    return copy


def derive(events: list[Event]) -> None:
    """Everything that is made of a log."""
    made = fold_log(enumerate(events))
    assert set(decision_files(made)) <= {"decision.json", "context.json"}
    if made.projection.terminated:
        summary_of(made)
        learn_lines(made)
    folded = history_of(events)
    layer_cells.rows(folded)
    graph_of(folded)
    read_side("ep", "ok", events)
    trace_spans(events)


def test_no_member_of_another_shape_breaks_a_document_or_a_view() -> None:
    events = AgentLog().until_gate().to_end().events
    derive(events)
    seen: set[tuple[Any, ...]] = set()
    for number, event in enumerate(events):
        layer = event.payload.get("layer")
        for place in places(event.payload):
            if (event.event_type, layer, place) in seen:
                continue
            seen.add((event.event_type, layer, place))
            for odd in ODD:
                forged = event._replace(payload=replaced(event.payload, place, odd))
                derive([*events[:number], forged, *events[number + 1 :]])
    assert len(seen) > 100
