"""A trace as OTLP/JSON (docs/reference/protocols.md#export): hex ids, 64-bit integers as text, enumerations
as numbers."""

from __future__ import annotations

from typing import Any, Final

from cogcli.report.trace_spans import Attributes, Trace, TraceSpan

_ERROR: Final = 2
_LATEST: Final = 2**64 - 1


def otlp(trace: Trace) -> dict[str, Any]:
    """Return the object that a collector accepts."""
    scope = {"scope": {"name": "cogcli"}, "spans": [_span(trace.id, span) for span in trace.spans]}
    resource = {"attributes": _attributes(trace.resource)}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}


def _span(trace_id: str, span: TraceSpan) -> dict[str, Any]:
    body: dict[str, Any] = {"traceId": trace_id, "spanId": span.id}
    if span.parent:
        body["parentSpanId"] = span.parent
    body |= {
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": _nanoseconds(span.start),
        "endTimeUnixNano": _nanoseconds(span.end),
        "attributes": _attributes(span.attributes),
    }
    if span.moments:
        body["events"] = [
            {"timeUnixNano": _nanoseconds(at), "name": name, "attributes": _attributes(attributes)}
            for name, at, attributes in span.moments
        ]
    if span.error:
        body["status"] = {"code": _ERROR} | ({"message": span.message} if span.message else {})
    return body


def _nanoseconds(microseconds: int) -> str:
    return str(min(microseconds * 1000, _LATEST))


def _attributes(values: Attributes) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in values.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": value}
