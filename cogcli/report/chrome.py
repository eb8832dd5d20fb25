"""A trace in the Trace Event Format of Chrome and Perfetto. It has complete events, with
overlapping steps on different lanes.

On one lane a span may overlap only with spans that it contains. So a span uses its parent's lane if
that is free, otherwise the first free lane."""

from __future__ import annotations

from typing import Final

from cogcli.declarations.value_types import Json
from cogcli.report.trace_spans import Trace, TraceSpan

_PROCESS: Final = 1
_MAX_LANES: Final = 256
"""A real run never needs more lanes. A forged log may; its further spans share the last lane."""


def chrome(trace: Trace) -> Json:
    """Return the object that `chrome://tracing` and ui.perfetto.dev open."""
    lanes = assign_lanes(trace.spans)
    names = [_metadata_event("process_name", 0, "cogcli")]
    count = max(lanes.values(), default=-1) + 1
    names += [_metadata_event("thread_name", lane, f"lane {lane}") for lane in range(count)]
    spans = [
        {
            "ph": "X", "name": span.name, "cat": "cogcli", "pid": _PROCESS, "tid": lanes[span.id],
            "ts": span.start, "dur": span.end - span.start, "args": _span_arguments(span),
        }
        for span in trace.spans
    ]  # fmt: skip
    moments = [
        {
            "ph": "i", "name": moment.name, "cat": "cogcli", "pid": _PROCESS, "tid": lanes[span.id],
            "ts": moment.at, "s": "t", "args": moment.attributes,
        }
        for span in trace.spans
        for moment in span.moments
    ]  # fmt: skip
    return {
        "displayTimeUnit": "ms",
        "otherData": {"trace_id": trace.id, **trace.resource},
        "traceEvents": names + spans + moments,
    }


def assign_lanes(spans: list[TraceSpan]) -> dict[str, int]:
    """Return the lane of each span, numbered from 0."""
    placed: dict[str, int] = {}
    under_way: list[list[TraceSpan]] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        for lane in under_way:
            while lane and lane[-1].end <= span.start:
                lane.pop()
        number = _find_lane(span, placed, under_way)
        under_way[number].append(span)
        placed[span.id] = number
    return placed


def _find_lane(
    span: TraceSpan, lane_by_span: dict[str, int], under_way: list[list[TraceSpan]]
) -> int:
    parent_lane = lane_by_span.get(span.parent)
    enclosing = (
        under_way[parent_lane][-1] if parent_lane is not None and under_way[parent_lane] else None
    )
    if (
        parent_lane is not None
        and enclosing is not None
        and enclosing.id == span.parent
        and span.end <= enclosing.end
    ):
        return parent_lane
    for number, lane in enumerate(under_way):
        if not lane:
            return number
    if len(under_way) < _MAX_LANES:
        under_way.append([])
    return len(under_way) - 1


def _span_arguments(span: TraceSpan) -> Json:
    return (
        span.attributes | {"span_id": span.id} | ({"message": span.message} if span.message else {})
    )


def _metadata_event(kind: str, lane: int, text: str) -> Json:
    return {"ph": "M", "name": kind, "pid": _PROCESS, "tid": lane, "args": {"name": text}}
