"""A log as spans of one trace (docs/reference/protocols.md#export), the basis of every trace export.

1. Pure: the same events give the same spans.
2. A span's id comes from the event that opens it, so that it was known when an attempt's `traceparent` was sent.
3. A step that ended without a start is a span of no length if it failed, otherwise a moment of its run.
4. A span that is open at the end of the log, or when a run is resumed, ends there with `cogcli.incomplete`.
5. Inputs and outputs are exported on request only, since a trace leaves the machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from cogcli.base.canonical import span_of, trace_of
from cogcli.declarations.agent_events import LayerCompleted
from cogcli.declarations.call_records import AttemptMade, RunError, StepError
from cogcli.declarations.envelope import Event
from cogcli.declarations.event_type import Payload
from cogcli.declarations.events import (
    CallRetried,
    RunStarted,
    RunTerminated,
    StepFinished,
    StepStarted,
)
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.run_start import RunPins
from cogcli.declarations.typed_payload import read_payload
from cogcli.declarations.value_types import Json
from cogcli.protocols import PROTOCOLS
from cogcli.report.attempts import RetryWait, attempt_span, attempt_times
from cogcli.report.chrome import chrome
from cogcli.report.otlp import otlp
from cogcli.report.trace_spans import (
    CLIENT,
    Attributes,
    Moment,
    OpenSpans,
    Trace,
    TraceSpan,
    drop_empty,
    duration_of,
    is_count,
    json_text,
)
from cogcli.report.turn_spans import TurnSpans

_BAD: Final = ("failed", "vetoed")
_BAD_OUTCOMES: Final = ("error", "vetoed")


def render_trace(events: Iterable[Event], format: str | None, *, io: bool = False) -> Json:
    """Return the spans of a whole log as an object of a format: `chrome`, otherwise OTLP."""
    trace = trace_spans(events, io=io)
    return chrome(trace) if format == "chrome" else otlp(trace)


def trace_spans(events: Iterable[Event], *, io: bool = False) -> Trace:
    """Return the spans of a whole log. With `io` they include inputs and outputs."""
    fold = _TraceFold(io)
    for event in events:
        fold.apply(event)
    return fold.finish()


class _MomentSubject(Record):
    """The step that a moment belongs to, and its status."""

    step_id: str
    step_status: str


class _TraceFold:
    """The fold that turns the events of a log into spans."""

    def __init__(self, io: bool) -> None:
        self._io = io
        self._open = OpenSpans()
        self._turns = TurnSpans(self._open, io=io)
        self._trace = ""
        self._repeats: dict[str, list[RetryWait]] = {}
        self._resource: Attributes = {"service.name": "cogcli"}

    def apply(self, event: Event) -> None:
        before = self._open.now
        self._open.advance(event)
        self._trace = self._trace or event.trace_id or event.episode_id
        payload = read_payload(event)
        if isinstance(payload, RunStarted):
            self._start_run(event, payload)
            return
        run = self._run_span(event)
        if not self._turns.apply(event, payload, run, before):
            self._apply_to_run(event, payload, run, before)

    def _apply_to_run(
        self, event: Event, payload: Payload, run: TraceSpan, previous_time: int
    ) -> None:
        """Add an event that is not a part of a turn."""
        match payload:
            case StepStarted():
                self._begin_step(event, payload)
            case StepFinished():
                self._end_step(event, payload)
            case RunTerminated():
                self._end_run(run, payload)
            case LayerCompleted():
                self._add_layer(event, payload)
            case CallRetried():
                self._add_retry(event, payload)
            case _:
                self._apply_moment(event, payload, previous_time)

    def _apply_moment(self, event: Event, payload: Payload, previous_time: int) -> None:
        """Add an event that has no span, if its type declares attributes."""
        names = payload.event.attributes
        if not names:
            return
        if payload.event.reopens:
            self._open.close_incomplete(previous_time)
        names = (*names, "reason") if self._io else names
        self._add_moment(event, _select_attributes(payload, names))

    def finish(self) -> Trace:
        self._open.end()
        for run in self._open.runs.values():
            if "cogcli.outcome" not in run.attributes:
                run.attributes["cogcli.outcome"] = "pending"
        resource, id = self._resource, trace_of(self._trace)
        if id != self._trace:
            resource["cogcli.trace.label"] = self._trace
        return Trace(id, resource, self._open.spans)

    # -- runs --------------------------------------------------------------------------------------------------------

    def _start_run(self, event: Event, payload: RunStarted) -> None:
        run_id = event.run_id or ""
        if run_id in self._open.runs:
            return
        name = payload.skill.id
        agent = payload.using == "agent"
        operation = "invoke_agent" if agent else "invoke_workflow"
        attributes = {
            "gen_ai.operation.name": operation,
            "gen_ai.agent.name" if agent else "gen_ai.workflow.name": name,
            "cogcli.episode.id": event.episode_id,
            "cogcli.run.id": run_id,
        }
        if self._io:
            attributes["cogcli.inputs"] = json_text(payload.inputs)
        version = read_record(RunPins, payload.pins).cogcli
        if not self._open.runs and version:
            self._resource["service.version"] = version
        parent = self._around_run(event, payload.parent_run_id or "")
        title = f"{operation} {name}".rstrip()
        self._open.runs[run_id] = self._open.open(event, parent, title, drop_empty(attributes))

    def _around_run(self, event: Event, parent_run: str) -> str:
        """Return the id of the span that contains a run which starts; empty for the first run of
        the log."""
        if not self._open.runs:
            return ""
        parent = parent_run if parent_run in self._open.runs else next(iter(self._open.runs))
        return self._open.find_enclosing(parent, event.step_id or "").id

    def _run_span(self, event: Event) -> TraceSpan:
        """Return the span of an event's run. If the log lacks the start of the run, the span starts at the event."""
        run_id = event.run_id or ""
        run = self._open.runs.get(run_id)
        if run is None:
            self._start_run(event, read_record(RunStarted, {}))
            run = self._open.runs[run_id]
        return run

    def _end_run(self, run: TraceSpan, payload: RunTerminated) -> None:
        status = str(payload.status) or "error"
        run.attributes["cogcli.outcome"] = status
        if self._io:
            run.attributes["cogcli.outputs"] = json_text(payload.outputs)
        if status in _BAD_OUTCOMES:
            self._mark_failed(run, payload.error, payload.status_reason or status)
        run.close(self._open.now)

    def _mark_failed(
        self, span: TraceSpan, error: StepError | RunError | AttemptMade | None, otherwise: str
    ) -> None:
        code, message = (error.code, error.message) if error else (None, None)
        span.fail(code or otherwise, message or "" if self._io else "")

    # -- steps -------------------------------------------------------------------------------------------------------

    def _begin_step(self, event: Event, payload: StepStarted) -> None:
        step_id = payload.step_id or event.step_id
        if not step_id:
            return
        place = (event.run_id or "", step_id)
        span = self._open.steps.get(place)
        if span is not None:
            span.close_incomplete(self._open.now)
        self._open_step(event, payload, place)

    def _end_step(self, event: Event, payload: StepFinished) -> None:
        step_id, status = payload.step_id or event.step_id, payload.step_status
        if not step_id or not status:
            return
        place = (event.run_id or "", step_id)
        span = self._open.steps.get(place)
        if span is None or not span.is_open:
            if status == "skipped":
                self._add_moment(
                    event, {"cogcli.step.id": step_id, **_select_attributes(payload, ("reason",))}
                )
                return
            span = self._open_step(event, payload, place)
            span.start = max(
                self._open.runs[place[0]].start, self._open.now - duration_of(event.metrics)
            )
        self._finish_step(span, payload)

    def _open_step(
        self, event: Event, payload: StepStarted | StepFinished, place: tuple[str, str]
    ) -> TraceSpan:
        run_id, step_id = place
        uses = payload.uses or payload.capability or step_id
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": uses,
            "cogcli.step.id": step_id,
            "cogcli.run.id": run_id,
        }
        if isinstance(payload, StepStarted):
            attributes["cogcli.binding.id"] = payload.binding or ""
            attributes["cogcli.service.id"] = payload.service or ""
            if self._io:
                attributes["gen_ai.tool.call.arguments"] = json_text(payload.input)
        parent = self._open.find_enclosing(run_id, step_id).id
        span = self._open.open(event, parent, f"execute_tool {uses}", drop_empty(attributes))
        self._open.steps[place] = span
        return span

    def _finish_step(self, span: TraceSpan, payload: StepFinished) -> None:
        protocol, _, service = (payload.tool or "").partition(":")
        # A nested skill has no protocol, a loop over several services has no single one.
        row = None if "," in service else PROTOCOLS.get(protocol)
        if row is None:
            protocol, service = "", ""
        made = [attempt for attempt in payload.attempts or () if attempt.status != "skipped"]
        attributes = {
            "cogcli.step.status": payload.step_status,
            "cogcli.reason": payload.reason,
            "cogcli.binding.id": made[-1].binding_id if made else "",
            "cogcli.service.id": service,
            "cogcli.protocol": protocol,
            "mcp.method.name": row.called_method if row else "",
            "gen_ai.tool.call.result": json_text(payload.output) if self._io else "",
        }
        span.attributes.update(drop_empty(attributes))
        if payload.step_status in _BAD:
            self._mark_failed(span, payload.error, payload.reason or payload.step_status)
        span.close(self._open.now)
        self._add_attempts(span, made, protocol, service)

    def _add_attempts(
        self, span: TraceSpan, attempts: list[AttemptMade], protocol: str, service: str
    ) -> None:
        times = attempt_times(attempts, span.start, span.end, self._repeats.pop(span.id, []))
        for number, (attempt, (begin, end)) in enumerate(
            zip(attempts, times, strict=True), start=1
        ):
            spoken = protocol if attempt.service_id == service else ""
            shown = attempt_span(attempt, spoken, io=self._io)
            if shown is None:
                continue
            id = span_of(self._open.openings[span.id], number)
            inner = TraceSpan(id, span.id, shown.name, begin, shown.attributes)
            inner.kind = CLIENT
            inner.close(end)
            if attempt.status == "failed":
                self._mark_failed(inner, attempt, "failed")
            self._open.keep(inner)

    # -- moments and layers ------------------------------------------------------------------------------------------

    def _add_retry(self, event: Event, payload: CallRetried) -> None:
        attributes = {
            **_select_attributes(payload, payload.event.attributes),
            "cogcli.binding.id": payload.binding,
            "cogcli.service.id": payload.service,
            "error.type": read_record(StepError, payload.error).code,
        }
        span = self._add_moment(event, drop_empty(attributes))
        waited = payload.wait_ms * 1000 if is_count(payload.wait_ms) else 0
        self._repeats.setdefault(span.id, []).append(RetryWait(self._open.now, waited))

    def _add_moment(self, event: Event, attributes: Attributes) -> TraceSpan:
        subject = read_record(_MomentSubject, event.payload)
        step_id = event.step_id or subject.step_id
        span = self._open.find_enclosing(event.run_id or "", step_id)
        if step_id:
            attributes = {"cogcli.step.id": step_id, **attributes}
        name = event.event_type or f"step.{subject.step_status}"
        span.moments.append(Moment(name, self._open.now, attributes))
        return span

    def _add_layer(self, event: Event, payload: LayerCompleted) -> None:
        name = payload.layer or "layer"
        parent = self._open.find_enclosing(event.run_id or "", event.step_id or "")
        span = self._open.open(event, parent.id, f"cogcli.layer {name}", {"cogcli.layer": name})
        span.start = max(parent.start, self._open.now - duration_of(event.metrics))
        span.close(self._open.now)


def _select_attributes(payload: Payload, names: tuple[str, ...]) -> Attributes:
    """Return the named members of a payload that an attribute can contain: strings, whole numbers and
    booleans."""
    values = {name: payload.json.get(name) for name in names}
    return {f"cogcli.{name}": value for name, value in values.items() if _is_attribute_value(value)}


def _is_attribute_value(value: object) -> bool:
    """Return whether an attribute can contain a value."""
    return type(value) is bool or is_count(value) or (type(value) is str and value != "")
