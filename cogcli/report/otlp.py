"""A trace as OTLP/JSON (docs/reference/protocols.md#export): hex ids, 64-bit integers as text, enumerations
as numbers."""

from __future__ import annotations

from typing import Final

from cogcli.declarations.value_types import Json
from cogcli.report.trace_spans import Attributes, Trace, TraceSpan

_ERROR: Final = 2
_LATEST: Final = 2**64 - 1


def otlp(trace: Trace) -> Json:
    """Return the object that a collector accepts."""
    scope = {
        "scope": {"name": "cogcli"},
        "spans": [_convert_span(trace.id, span) for span in trace.spans],
    }
    resource = {"attributes": _convert_attributes(trace.resource)}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}


def _convert_span(trace_id: str, span: TraceSpan) -> Json:
    body: Json = {"traceId": trace_id, "spanId": span.id}
    if span.parent:
        body["parentSpanId"] = span.parent
    body |= {
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": _convert_time(span.start),
        "endTimeUnixNano": _convert_time(span.end),
        "attributes": _convert_attributes(span.attributes),
    }
    if span.moments:
        body["events"] = [
            {
                "timeUnixNano": _convert_time(at),
                "name": name,
                "attributes": _convert_attributes(attributes),
            }
            for name, at, attributes in span.moments
        ]
    if span.error:
        body["status"] = {"code": _ERROR} | ({"message": span.message} if span.message else {})
    return body


def _convert_time(microseconds: int) -> str:
    return str(min(microseconds * 1000, _LATEST))


def _convert_attributes(values: Attributes) -> list[Json]:
    return [{"key": name, "value": _convert_value(value)} for name, value in values.items()]


def _convert_value(value: object) -> Json:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case list():
            return {"arrayValue": {"values": [_convert_value(item) for item in value]}}
        case _:
            return {"stringValue": value}
