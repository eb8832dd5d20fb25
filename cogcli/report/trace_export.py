"""A log as spans of one trace (docs/reference/protocols.md#export): what every export of traces shares.

1. Pure: the same events give the same spans.
2. A span's id comes from the event that opens it, so that it was known when an attempt's `traceparent` was sent.
3. A step that ended without ever beginning is a span of no length where it failed, else a moment of its run.
4. What is open at the end of the log, or when a run is resumed, ends there with `cogcli.incomplete`.
5. Inputs and outputs are exported on request only: a trace leaves the machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from cogcli.core.canonical import span_of, trace_of
from cogcli.core.jsonvalue import list_of, object_of, text_of
from cogcli.declarations.events import row_of
from cogcli.events.envelope import Event
from cogcli.protocols import PROTOCOLS
from cogcli.report.attempts import RetryWait, attempt_span, bounds
from cogcli.report.chrome import chrome
from cogcli.report.otlp import otlp
from cogcli.report.trace_spans import (
    CLIENT,
    Attributes,
    Moment,
    OpenSpans,
    Trace,
    TraceSpan,
    duration_of,
    is_count,
    json_text,
    microseconds_of,
    some,
)
from cogcli.report.turn_spans import TurnSpans

_BAD: Final = ("failed", "vetoed")
_BAD_OUTCOMES: Final = ("error", "vetoed")


def exported(events: Iterable[Event], format: str | None, *, io: bool = False) -> dict[str, Any]:
    """The spans of a whole log as an object of a format, `chrome` or else OTLP."""
    trace = trace_spans(events, io=io)
    return chrome(trace) if format == "chrome" else otlp(trace)


def trace_spans(events: Iterable[Event], *, io: bool = False) -> Trace:
    """The spans of a whole log; with `io` also what was passed in and out."""
    fold = _Fold(io)
    for event in events:
        fold.apply(event)
    return fold.ended()


class _Fold:
    def __init__(self, io: bool) -> None:
        self._io = io
        self._open = OpenSpans()
        self._turns = TurnSpans(self._open, io=io)
        self._trace = ""
        self._repeats: dict[str, list[RetryWait]] = {}
        self._resource: Attributes = {"service.name": "cogcli"}

    def apply(self, event: Event) -> None:
        before, at = self._open.now, microseconds_of(event.timestamp)
        self._open.now = before if at is None else max(before, at)
        self._open.count += 1
        self._trace = self._trace or text_of(event.trace_id) or text_of(event.episode_id)
        payload = object_of(event.payload)
        if event.phase == "start":
            self._start(event, payload)
            return
        run = self._run(event)
        type, row = event.event_type, row_of(event.event_type)
        if self._turns.apply(event, payload, run, before):
            return
        if event.phase == "act" and type != "call.retried":
            self._act(event, payload)
        elif event.phase == "terminate":
            self._terminate(run, payload)
        elif type == "layer.completed":
            self._layer(event, payload)
        elif type == "call.retried":
            self._retried(event, payload)
        elif row.attributes:
            if row.reopens:
                self._open.cut_off(before)
            names = (*row.attributes, "reason") if self._io else row.attributes
            self._add_moment(event, self._recorded(payload, names))

    def ended(self) -> Trace:
        self._open.end()
        for run in self._open.runs.values():
            if "cogcli.outcome" not in run.attributes:
                run.attributes["cogcli.outcome"] = "pending"
        resource, id = self._resource, trace_of(self._trace)
        if id != self._trace:
            resource["cogcli.trace.label"] = self._trace
        return Trace(id, resource, self._open.spans)

    # -- runs --------------------------------------------------------------------------------------------------------

    def _start(self, event: Event, payload: dict[str, Any]) -> None:
        run_id = text_of(event.run_id)
        if run_id in self._open.runs:
            return
        skill = payload.get("skill")
        name = text_of(object_of(skill).get("id", skill))
        agent = payload.get("using") == "agent"
        operation = "invoke_agent" if agent else "invoke_workflow"
        attributes = {
            "gen_ai.operation.name": operation,
            "gen_ai.agent.name" if agent else "gen_ai.workflow.name": name,
            "cogcli.episode.id": text_of(event.episode_id),
            "cogcli.run.id": run_id,
        }
        if self._io:
            attributes["cogcli.inputs"] = json_text(payload.get("inputs"))
        version = text_of(object_of(payload.get("pins")).get("cogcli"))
        if not self._open.runs and version:
            self._resource["service.version"] = version
        parent = self._around_run(event, text_of(payload.get("parent_run_id")))
        title = f"{operation} {name}".rstrip()
        self._open.runs[run_id] = self._open.open(event, parent, title, some(attributes))

    def _around_run(self, event: Event, parent_run: str) -> str:
        """The id of the span around a run that begins; empty for the first run of the log."""
        if not self._open.runs:
            return ""
        parent = parent_run if parent_run in self._open.runs else next(iter(self._open.runs))
        return self._open.near(parent, text_of(event.step_id)).id

    def _run(self, event: Event) -> TraceSpan:
        """The run of an event; a log may lack its start."""
        run_id = text_of(event.run_id)
        run = self._open.runs.get(run_id)
        if run is None:
            self._start(event, {})
            run = self._open.runs[run_id]
        return run

    def _terminate(self, run: TraceSpan, payload: dict[str, Any]) -> None:
        status = text_of(payload.get("status")) or "error"
        run.attributes["cogcli.outcome"] = status
        if self._io:
            run.attributes["cogcli.outputs"] = json_text(payload.get("outputs"))
        if status in _BAD_OUTCOMES:
            self._failed(run, payload.get("error"), text_of(payload.get("status_reason")) or status)
        run.close(self._open.now)

    def _failed(self, span: TraceSpan, error: Any, otherwise: str) -> None:
        error = object_of(error)
        span.fail(text_of(error.get("code")) or otherwise, text_of(error.get("message")) if self._io else "")

    # -- steps -------------------------------------------------------------------------------------------------------

    def _act(self, event: Event, payload: dict[str, Any]) -> None:
        step_id = text_of(payload.get("step_id")) or text_of(event.step_id)
        status = text_of(payload.get("step_status"))
        if not step_id or not status:
            return
        place = (text_of(event.run_id), step_id)
        span = self._open.steps.get(place)
        if status == "running":
            if span is not None:
                span.cut_off(self._open.now)
            self._begin(event, payload, place)
            return
        if span is None or not span.is_open:
            if status == "skipped":
                self._add_moment(event, {"cogcli.step.id": step_id, **self._recorded(payload, ("reason",))})
                return
            span = self._begin(event, payload, place)
            span.start = max(self._open.runs[place[0]].start, self._open.now - duration_of(event.metrics))
        self._finish(span, payload, status)

    def _begin(self, event: Event, payload: dict[str, Any], place: tuple[str, str]) -> TraceSpan:
        run_id, step_id = place
        uses = text_of(payload.get("uses")) or text_of(payload.get("capability"))
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": uses or step_id,
            "cogcli.step.id": step_id,
            "cogcli.run.id": run_id,
            "cogcli.binding.id": text_of(payload.get("binding")),
            "cogcli.service.id": text_of(payload.get("service")),
        }
        if self._io:
            attributes["gen_ai.tool.call.arguments"] = json_text(payload.get("input"))
        parent = self._open.near(run_id, step_id).id
        span = self._open.open(event, parent, f"execute_tool {uses or step_id}", some(attributes))
        self._open.steps[place] = span
        return span

    def _finish(self, span: TraceSpan, payload: dict[str, Any], status: str) -> None:
        protocol, _, service = text_of(payload.get("tool")).partition(":")
        row = PROTOCOLS.get(protocol)
        if row is None or "," in service:  # a nested skill, or a loop over several services
            protocol, service, row = "", "", None
        attempts = [a for a in list_of(payload.get("attempts")) if isinstance(a, dict)]
        made = [a for a in attempts if a.get("status") != "skipped"]
        attributes = {
            "cogcli.step.status": status,
            "cogcli.reason": text_of(payload.get("reason")),
            "cogcli.binding.id": text_of(made[-1].get("binding_id")) if made else "",
            "cogcli.service.id": service,
            "cogcli.protocol": protocol,
            "mcp.method.name": row.called_method if row else "",
            "gen_ai.tool.call.result": json_text(payload.get("output")) if self._io else "",
        }
        span.attributes.update(some(attributes))
        if status in _BAD:
            self._failed(span, payload.get("error"), text_of(payload.get("reason")) or status)
        span.close(self._open.now)
        self._attempts(span, made, protocol, service)

    def _attempts(self, span: TraceSpan, made: list[dict[str, Any]], protocol: str, service: str) -> None:
        times = bounds(made, span.start, span.end, self._repeats.pop(span.id, []))
        for number, (attempt, (begin, end)) in enumerate(zip(made, times, strict=True), start=1):
            spoken = protocol if attempt.get("service_id") == service else ""
            shown = attempt_span(attempt, spoken, io=self._io)
            if shown is None:
                continue
            id = span_of(self._open.openings[span.id], number)
            inner = TraceSpan(id, span.id, shown.name, begin, shown.attributes)
            inner.kind = CLIENT
            inner.close(end)
            if attempt.get("status") == "failed":
                self._failed(inner, attempt, "failed")
            self._open.keep(inner)

    # -- moments and layers ------------------------------------------------------------------------------------------

    def _retried(self, event: Event, payload: dict[str, Any]) -> None:
        attributes = {
            **self._recorded(payload, row_of(event.event_type).attributes),
            "cogcli.binding.id": text_of(payload.get("binding")),
            "cogcli.service.id": text_of(payload.get("service")),
            "error.type": text_of(object_of(payload.get("error")).get("code")),
        }
        span = self._add_moment(event, some(attributes))
        wait = payload.get("wait_ms")
        waited = wait * 1000 if is_count(wait) else 0
        self._repeats.setdefault(span.id, []).append(RetryWait(self._open.now, waited))

    def _add_moment(self, event: Event, attributes: Attributes) -> TraceSpan:
        payload = object_of(event.payload)
        step_id = text_of(event.step_id) or text_of(payload.get("step_id"))
        span = self._open.near(text_of(event.run_id), step_id)
        if step_id:
            attributes = {"cogcli.step.id": step_id, **attributes}
        name = event.event_type or f"step.{text_of(payload.get('step_status'))}"
        span.moments.append(Moment(name, self._open.now, attributes))
        return span

    def _recorded(self, payload: dict[str, Any], names: tuple[str, ...]) -> Attributes:
        values = ((name, payload.get(name)) for name in names)
        return {
            f"cogcli.{name}": value
            for name, value in values
            if isinstance(value, bool) or is_count(value) or (isinstance(value, str) and value)
        }

    def _layer(self, event: Event, payload: dict[str, Any]) -> None:
        name = text_of(payload.get("layer")) or "layer"
        parent = self._open.near(text_of(event.run_id), text_of(event.step_id))
        span = self._open.open(event, parent.id, f"cogcli.layer {name}", {"cogcli.layer": name})
        span.start = max(parent.start, self._open.now - duration_of(event.metrics))
        span.close(self._open.now)
