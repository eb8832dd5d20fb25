"""A trace as OTLP in protobuf, by the library of the extra `otlp` (docs/reference/protocols.md#export)."""

from __future__ import annotations

from base64 import b64encode

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from cogcli.declarations.value_types import Json
from cogcli.report.otlp import otlp
from cogcli.report.trace_spans import Trace

_IDS = ("traceId", "spanId", "parentSpanId")


def otlp_protobuf(trace: Trace) -> bytes:
    """Return the request that a collector accepts."""
    request = otlp(trace)
    for resource in request["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            scope["spans"] = [_with_base64_ids(span) for span in scope["spans"]]
    message = ParseDict(request, ExportTraceServiceRequest())
    return bytes(message.SerializeToString())


def _with_base64_ids(span: Json) -> Json:
    """Return a span whose ids are written as JSON of protobuf writes bytes: OTLP/JSON has them in hex."""
    ids = {name: b64encode(bytes.fromhex(span[name])).decode() for name in _IDS if name in span}
    return {**span, **ids}
