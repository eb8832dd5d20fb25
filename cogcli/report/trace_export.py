"""A log as spans of one trace (docs/reference/protocols.md#export): what every export of traces shares.

1. Pure: the same events give the same spans.
2. A span's id comes from the event that opens it, so that it was known when an attempt's `traceparent` was sent.
3. A step that ended without ever beginning is a span of no length where it failed, else a moment of its run.
4. What is open at the end of the log, or when a run is taken up again, ends there and says that it is incomplete.
5. What was passed in and out is told only when asked for: a trace leaves the house.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from cogcli.core.trace_ids import span_of, trace_of
from cogcli.events.envelope import Event
from cogcli.events.types import row_of
from cogcli.report import attempts
from cogcli.report.open_spans import OpenSpans, incomplete
from cogcli.report.payload_values import duration_of, is_count, items, json_text, microseconds_of, some, word
from cogcli.report.trace_spans import CLIENT, Attributes, Moment, Trace, TraceSpan

_BAD: Final = ("failed", "vetoed")
_BAD_OUTCOMES: Final = ("error", "vetoed")


def trace_spans(events: Iterable[Event], *, io: bool = False) -> Trace:
    """The spans of a whole log; with `io` also what was passed in and out."""
    fold = _Fold(io)
    for event in events:
        fold.add(event)
    return fold.ended()


class _Fold:
    def __init__(self, io: bool) -> None:
        self._io = io
        self._open = OpenSpans()
        self._trace = ""
        self._repeats: dict[str, list[attempts.RetryWait]] = {}
        self._resource: Attributes = {"service.name": "cogcli"}

    def add(self, event: Event) -> None:
        before, at = self._open.now, microseconds_of(event.timestamp)
        self._open.now = before if at is None else max(before, at)
        self._open.count += 1
        self._trace = self._trace or word(event.trace_id) or word(event.episode_id)
        payload = event.payload if isinstance(event.payload, dict) else {}
        if event.phase == "start":
            self._start(event, payload)
            return
        run = self._run(event)
        type, row = event.event_type, row_of(event.event_type)
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
            self._tell(event, self._told(payload, (*row.attributes, *(("reason",) if self._io else ()))))

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
        run_id = word(event.run_id)
        if run_id in self._open.runs:
            return
        skill = payload.get("skill")
        name = word(skill.get("id")) if isinstance(skill, dict) else word(skill)
        agent = payload.get("using") == "agent"
        operation = "invoke_agent" if agent else "invoke_workflow"
        attributes = {
            "gen_ai.operation.name": operation,
            "gen_ai.agent.name" if agent else "gen_ai.workflow.name": name,
            "cogcli.episode.id": word(event.episode_id),
            "cogcli.run.id": run_id,
        }
        if self._io:
            attributes["cogcli.inputs"] = json_text(payload.get("inputs"))
        pins = payload.get("pins")
        if not self._open.runs and isinstance(pins, dict) and word(pins.get("cogcli")):
            self._resource["service.version"] = pins["cogcli"]
        parent = self._around_run(event, word(payload.get("parent_run_id")))
        self._open.runs[run_id] = self._open.open(
            event, parent, f"{operation} {name}".rstrip(), some(attributes)
        )

    def _around_run(self, event: Event, parent_run: str) -> str:
        if not self._open.runs:
            return ""
        parent = parent_run if parent_run in self._open.runs else next(iter(self._open.runs))
        return self._open.near(parent, word(event.step_id)).id

    def _run(self, event: Event) -> TraceSpan:
        """The run of an event; a log may lack its start."""
        run_id = word(event.run_id)
        run = self._open.runs.get(run_id)
        if run is None:
            self._start(event, {})
            run = self._open.runs[run_id]
        return run

    def _terminate(self, run: TraceSpan, payload: dict[str, Any]) -> None:
        status = word(payload.get("status")) or "error"
        run.attributes["cogcli.outcome"] = status
        if self._io:
            run.attributes["cogcli.outputs"] = json_text(payload.get("outputs"))
        if status in _BAD_OUTCOMES:
            self._failed(run, payload.get("error"), word(payload.get("status_reason")) or status)
        run.close(self._open.now)

    def _failed(self, span: TraceSpan, error: Any, otherwise: str) -> None:
        error = error if isinstance(error, dict) else {}
        span.fail(word(error.get("code")) or otherwise, word(error.get("message")) if self._io else "")

    # -- steps -------------------------------------------------------------------------------------------------------

    def _act(self, event: Event, payload: dict[str, Any]) -> None:
        step_id = word(payload.get("step_id")) or word(event.step_id)
        status = word(payload.get("step_status"))
        if not step_id or not status:
            return
        place = (word(event.run_id), step_id)
        span = self._open.steps.get(place)
        if status == "running":
            if span is not None:
                incomplete(span, self._open.now)
            self._begin(event, payload, place)
            return
        if span is None or not span.is_open:
            if status == "skipped":
                self._tell(event, {"cogcli.step.id": step_id, **self._told(payload, ("reason",))})
                return
            span = self._begin(event, payload, place)
            span.start = max(self._open.runs[place[0]].start, self._open.now - duration_of(event.metrics))
        self._finish(span, payload, status)

    def _begin(self, event: Event, payload: dict[str, Any], place: tuple[str, str]) -> TraceSpan:
        run_id, step_id = place
        uses = word(payload.get("uses")) or word(payload.get("capability"))
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": uses or step_id,
            "cogcli.step.id": step_id,
            "cogcli.run.id": run_id,
            "cogcli.binding.id": word(payload.get("binding")),
            "cogcli.service.id": word(payload.get("service")),
        }
        if self._io:
            attributes["gen_ai.tool.call.arguments"] = json_text(payload.get("input"))
        parent = self._open.near(run_id, step_id).id
        span = self._open.open(event, parent, f"execute_tool {uses or step_id}", some(attributes))
        self._open.steps[place] = span
        return span

    def _finish(self, span: TraceSpan, payload: dict[str, Any], status: str) -> None:
        told = span.attributes
        protocol, colon, service = word(payload.get("tool")).partition(":")
        told_of = [a for a in items(payload.get("attempts")) if isinstance(a, dict)]
        made = [a for a in told_of if a.get("status") != "skipped"]
        told.update(
            some(
                {
                    "cogcli.step.status": status,
                    "cogcli.reason": word(payload.get("reason")),
                    "cogcli.binding.id": word(made[-1].get("binding_id")) if made else "",
                    "cogcli.service.id": service,
                    "cogcli.protocol": protocol if colon else "",
                    "mcp.method.name": "tools/call" if protocol == "mcp" else "",
                    "gen_ai.tool.call.result": json_text(payload.get("output")) if self._io else "",
                }
            )
        )
        if status in _BAD:
            self._failed(span, payload.get("error"), word(payload.get("reason")) or status)
        span.close(self._open.now)
        self._attempts(span, made, protocol, service)

    def _attempts(self, span: TraceSpan, made: list[dict[str, Any]], protocol: str, service: str) -> None:
        repeats = self._repeats.pop(span.id, [])
        for number, (attempt, bounds) in enumerate(
            zip(made, attempts.bounds(made, span.start, span.end, repeats, microseconds_of), strict=True),
            start=1,
        ):
            spoken = protocol if attempt.get("service_id") == service else ""
            shown = attempts.attempt_span(attempt, spoken, io=self._io)
            if shown is None:
                continue
            id = span_of(self._open.openings[span.id], number)
            inner = TraceSpan(id, span.id, shown.name, bounds.start, shown.attributes)
            inner.kind = CLIENT
            inner.close(bounds.end)
            if attempt.get("status") == "failed":
                self._failed(inner, attempt, "failed")
            self._open.keep(inner)

    # -- moments and layers ------------------------------------------------------------------------------------------

    def _retried(self, event: Event, payload: dict[str, Any]) -> None:
        error = payload.get("error")
        told = {
            **self._told(payload, row_of(event.event_type).attributes),
            "cogcli.binding.id": word(payload.get("binding")),
            "cogcli.service.id": word(payload.get("service")),
            "error.type": word(error.get("code")) if isinstance(error, dict) else "",
        }
        span = self._tell(event, some(told))
        wait = payload.get("wait_ms")
        self._repeats.setdefault(span.id, []).append(
            attempts.RetryWait(self._open.now, wait * 1000 if is_count(wait) else 0)
        )

    def _tell(self, event: Event, told: Attributes) -> TraceSpan:
        payload = event.payload if isinstance(event.payload, dict) else {}
        step_id = word(event.step_id) or word(payload.get("step_id"))
        span = self._open.near(word(event.run_id), step_id)
        if step_id:
            told = {"cogcli.step.id": step_id, **told}
        name = event.event_type or f"step.{word(payload.get('step_status'))}"
        span.moments.append(Moment(name, self._open.now, told))
        return span

    def _told(self, payload: dict[str, Any], names: tuple[str, ...]) -> Attributes:
        values = ((name, payload.get(name)) for name in names)
        return {
            f"cogcli.{name}": value
            for name, value in values
            if isinstance(value, bool) or is_count(value) or (isinstance(value, str) and value)
        }

    def _layer(self, event: Event, payload: dict[str, Any]) -> None:
        name = word(payload.get("layer")) or "layer"
        parent = self._open.near(word(event.run_id), word(event.step_id))
        span = self._open.open(event, parent.id, f"cogcli.layer {name}", {"cogcli.layer": name})
        span.start = max(parent.start, self._open.now - duration_of(event.metrics))
        span.close(self._open.now)
