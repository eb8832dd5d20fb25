"""A log as spans of one trace (protocols.md 10): what every export of traces shares.

1. Pure: the same events give the same spans.
2. A span's id comes from the event that opens it, so that it was known when an attempt's `traceparent` was sent.
3. A step that ended without ever beginning is a span of no length where it failed, else a moment of its run.
4. What is open at the end of the log, or when a run is taken up again, ends there and says that it is incomplete.
5. What was passed in and out is told only when asked for: a trace leaves the house.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeGuard

from cogcli.core.spans import span_of, trace_of
from cogcli.events.envelope import Event
from cogcli.report import attempts
from cogcli.report.trace_spans import CLIENT, Attributes, Moment, Trace, TraceSpan

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_WHOLE: Final = 2**53
_BAD: Final = ("failed", "vetoed")
_BAD_OUTCOMES: Final = ("error", "vetoed")
_DECISIONS: Final = ("decision", "verdict", "gate", "rule", "on_fail", "enforced")
_APPROVALS: Final = ("approval_id", "capability", "gate", "by", "expires_at")


def traced(events: Iterable[Event], *, io: bool = False) -> Trace:
    """The spans of a whole log; with `io` also what was passed in and out."""
    fold = _Fold(io)
    for event in events:
        fold.add(event)
    return fold.ended()


def microseconds_of(timestamp: Any) -> int | None:
    """Microseconds since 1970 of an RFC 3339 text, None if it is none."""
    try:
        at = datetime.fromisoformat(timestamp)
    except (TypeError, ValueError):
        return None
    return max(0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND)


class _Fold:
    def __init__(self, io: bool) -> None:
        self._io = io
        self._count = 0
        self._now = 0
        self._trace = ""
        self._used: set[str] = set()
        self._spans: list[TraceSpan] = []
        self._runs: dict[str, TraceSpan] = {}
        self._steps: dict[tuple[str, str], TraceSpan] = {}
        self._openings: dict[str, str] = {}
        """Span id -> the id of the event that opened it: attempts are named by it."""
        self._repeats: dict[str, list[attempts.Repeat]] = {}
        self._resource: Attributes = {"service.name": "cogcli"}

    def add(self, event: Event) -> None:
        before, at = self._now, microseconds_of(event.timestamp)
        self._now = before if at is None else max(before, at)
        self._count += 1
        self._trace = self._trace or _word(event.trace_id) or _word(event.episode_id)
        payload = event.payload if isinstance(event.payload, dict) else {}
        if event.phase == "start":
            self._start(event, payload)
            return
        run = self._run(event)
        type = event.event_type or ""
        if event.phase == "act" and type != "call.retried":
            self._act(event, payload)
        elif event.phase == "terminate":
            self._terminate(run, payload)
        elif type == "layer.completed":
            self._layer(event, payload)
        elif type == "call.retried":
            self._retried(event, payload)
        elif type in ("gate.decided", "policy.decided"):
            self._tell(event, self._told(payload, (*_DECISIONS, *(("reason",) if self._io else ()))))
        elif type.startswith("approval."):
            self._tell(event, self._told(payload, (*_APPROVALS, *(("reason",) if self._io else ()))))
        elif type in ("run.paused", "run.resumed", "run.recovered", "run.aborting"):
            if type in ("run.resumed", "run.recovered"):
                self._cut_off(before)
            run.moments.append(
                Moment(type, self._now, self._told(payload, ("reason", "signal", "dropped_bytes")))
            )

    def ended(self) -> Trace:
        for span in self._spans:
            self._incomplete(span, self._now)
        for run in self._runs.values():
            if "cogcli.outcome" not in run.attributes:
                run.attributes["cogcli.outcome"] = "pending"
        resource, id = self._resource, trace_of(self._trace)
        if id != self._trace:
            resource["cogcli.trace.label"] = self._trace
        return Trace(id, resource, self._spans)

    # -- spans -------------------------------------------------------------------------------------------------------

    def _open(self, event: Event, parent: str, name: str, attributes: Attributes) -> TraceSpan:
        opening = _word(event.id) or f"{event.episode_id}/{self._count}"
        id = span_of(opening)
        if id in self._used:  # a log that names two events alike; a span must not be its own parent
            opening = f"{opening}/{event.episode_id}/{self._count}"
            id = span_of(opening)
        span = TraceSpan(id, parent, name, self._now, attributes)
        self._openings[id] = opening
        self._keep(span)
        return span

    def _keep(self, span: TraceSpan) -> None:
        self._used.add(span.id)
        self._spans.append(span)

    def _incomplete(self, span: TraceSpan, at: int) -> None:
        if span.is_open:
            span.close(at)
            span.attributes["cogcli.incomplete"] = True

    def _cut_off(self, at: int) -> None:
        """Steps that were under way when a run stopped: they begin anew, if at all."""
        for span in self._steps.values():
            self._incomplete(span, at)

    # -- runs --------------------------------------------------------------------------------------------------------

    def _start(self, event: Event, payload: dict[str, Any]) -> None:
        run_id = _word(event.run_id)
        if run_id in self._runs:
            return
        skill = payload.get("skill")
        name = _word(skill.get("id")) if isinstance(skill, dict) else _word(skill)
        agent = payload.get("using") == "agent"
        operation = "invoke_agent" if agent else "invoke_workflow"
        attributes = {
            "gen_ai.operation.name": operation,
            "gen_ai.agent.name" if agent else "gen_ai.workflow.name": name,
            "cogcli.episode.id": _word(event.episode_id),
            "cogcli.run.id": run_id,
        }
        if self._io:
            attributes["cogcli.inputs"] = _json(payload.get("inputs"))
        pins = payload.get("pins")
        if not self._runs and isinstance(pins, dict) and _word(pins.get("cogcli")):
            self._resource["service.version"] = pins["cogcli"]
        parent = self._around_run(event, _word(payload.get("parent_run_id")))
        self._runs[run_id] = self._open(event, parent, f"{operation} {name}".rstrip(), _some(attributes))

    def _around_run(self, event: Event, parent_run: str) -> str:
        if not self._runs:
            return ""
        parent = parent_run if parent_run in self._runs else next(iter(self._runs))
        return self._near(parent, _word(event.step_id)).id

    def _run(self, event: Event) -> TraceSpan:
        """The run of an event; a log may lack its start."""
        run_id = _word(event.run_id)
        run = self._runs.get(run_id)
        if run is None:
            self._start(event, {})
            run = self._runs[run_id]
        return run

    def _terminate(self, run: TraceSpan, payload: dict[str, Any]) -> None:
        status = _word(payload.get("status")) or "error"
        run.attributes["cogcli.outcome"] = status
        if self._io:
            run.attributes["cogcli.outputs"] = _json(payload.get("outputs"))
        if status in _BAD_OUTCOMES:
            self._failed(run, payload.get("error"), _word(payload.get("status_reason")) or status)
        run.close(self._now)

    def _failed(self, span: TraceSpan, error: Any, otherwise: str) -> None:
        error = error if isinstance(error, dict) else {}
        span.fail(_word(error.get("code")) or otherwise, _word(error.get("message")) if self._io else "")

    # -- steps -------------------------------------------------------------------------------------------------------

    def _near(self, run_id: str, step_id: str) -> TraceSpan:
        """The span that is open around something of a step: the step's, its owner's, else the run's."""
        while step_id:
            span = self._steps.get((run_id, step_id))
            if span is not None and span.is_open:
                return span
            step_id = _owner(step_id)
        return self._runs[run_id]

    def _act(self, event: Event, payload: dict[str, Any]) -> None:
        step_id = _word(payload.get("step_id")) or _word(event.step_id)
        status = _word(payload.get("step_status"))
        if not step_id or not status:
            return
        place = (_word(event.run_id), step_id)
        span = self._steps.get(place)
        if status == "running":
            if span is not None:
                self._incomplete(span, self._now)
            self._begin(event, payload, place)
            return
        if span is None or not span.is_open:
            if status == "skipped":
                self._tell(event, {"cogcli.step.id": step_id, **self._told(payload, ("reason",))})
                return
            span = self._begin(event, payload, place)
            span.start = max(self._runs[place[0]].start, self._now - _lasted(event.metrics))
        self._finish(span, payload, status)

    def _begin(self, event: Event, payload: dict[str, Any], place: tuple[str, str]) -> TraceSpan:
        run_id, step_id = place
        uses = _word(payload.get("uses")) or _word(payload.get("capability"))
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": uses or step_id,
            "cogcli.step.id": step_id,
            "cogcli.run.id": run_id,
            "cogcli.binding.id": _word(payload.get("binding")),
            "cogcli.service.id": _word(payload.get("service")),
        }
        if self._io:
            attributes["gen_ai.tool.call.arguments"] = _json(payload.get("input"))
        parent = self._near(run_id, step_id).id
        span = self._open(event, parent, f"execute_tool {uses or step_id}", _some(attributes))
        self._steps[place] = span
        return span

    def _finish(self, span: TraceSpan, payload: dict[str, Any], status: str) -> None:
        told = span.attributes
        protocol, colon, service = _word(payload.get("tool")).partition(":")
        told_of = [a for a in _list(payload.get("attempts")) if isinstance(a, dict)]
        made = [a for a in told_of if a.get("status") != "skipped"]
        told.update(
            _some(
                {
                    "cogcli.step.status": status,
                    "cogcli.reason": _word(payload.get("reason")),
                    "cogcli.binding.id": _word(made[-1].get("binding_id")) if made else "",
                    "cogcli.service.id": service,
                    "cogcli.protocol": protocol if colon else "",
                    "mcp.method.name": "tools/call" if protocol == "mcp" else "",
                    "gen_ai.tool.call.result": _json(payload.get("output")) if self._io else "",
                }
            )
        )
        if status in _BAD:
            self._failed(span, payload.get("error"), _word(payload.get("reason")) or status)
        span.close(self._now)
        self._attempts(span, made, protocol, service)

    def _attempts(self, span: TraceSpan, made: list[dict[str, Any]], protocol: str, service: str) -> None:
        repeats = self._repeats.pop(span.id, [])
        for number, (attempt, bounds) in enumerate(
            zip(made, attempts.bounds(made, span.start, span.end, repeats, microseconds_of), strict=True),
            start=1,
        ):
            spoken = protocol if attempt.get("service_id") == service else ""
            shown = attempts.shown(attempt, spoken, io=self._io)
            if shown is None:
                continue
            id = span_of(self._openings[span.id], number)
            inner = TraceSpan(id, span.id, shown.name, bounds.start, shown.attributes)
            inner.kind = CLIENT
            inner.close(bounds.end)
            if attempt.get("status") == "failed":
                self._failed(inner, attempt, "failed")
            self._keep(inner)

    # -- moments and layers ------------------------------------------------------------------------------------------

    def _retried(self, event: Event, payload: dict[str, Any]) -> None:
        error = payload.get("error")
        told = {
            **self._told(payload, ("attempt", "reason", "wait_ms")),
            "cogcli.binding.id": _word(payload.get("binding")),
            "cogcli.service.id": _word(payload.get("service")),
            "error.type": _word(error.get("code")) if isinstance(error, dict) else "",
        }
        span = self._tell(event, _some(told))
        wait = payload.get("wait_ms")
        self._repeats.setdefault(span.id, []).append(
            attempts.Repeat(self._now, wait * 1000 if _is_count(wait) else 0)
        )

    def _tell(self, event: Event, told: Attributes) -> TraceSpan:
        payload = event.payload if isinstance(event.payload, dict) else {}
        step_id = _word(event.step_id) or _word(payload.get("step_id"))
        span = self._near(_word(event.run_id), step_id)
        if step_id:
            told = {"cogcli.step.id": step_id, **told}
        name = event.event_type or f"step.{_word(payload.get('step_status'))}"
        span.moments.append(Moment(name, self._now, told))
        return span

    def _told(self, payload: dict[str, Any], names: tuple[str, ...]) -> Attributes:
        values = ((name, payload.get(name)) for name in names)
        return {
            f"cogcli.{name}": value
            for name, value in values
            if isinstance(value, bool) or _is_count(value) or (isinstance(value, str) and value)
        }

    def _layer(self, event: Event, payload: dict[str, Any]) -> None:
        name = _word(payload.get("layer")) or "layer"
        parent = self._near(_word(event.run_id), _word(event.step_id))
        span = self._open(event, parent.id, f"cogcli.layer {name}", {"cogcli.layer": name})
        span.start = max(parent.start, self._now - _lasted(event.metrics))
        span.close(self._now)


def _owner(step_id: str) -> str:
    """The step that an item, a round or a gate belongs to; empty for a step itself."""
    folder, slash, name = step_id.rpartition("/")
    end = max(name.rfind("#"), name.rfind("@"))
    return f"{folder}{slash}{name[:end]}" if end > 0 else ""


def _lasted(metrics: Any) -> int:
    """Microseconds that something took, as its closing event measured it."""
    ms = metrics.get("duration_ms") if isinstance(metrics, dict) else None
    return ms * 1000 if _is_count(ms) else 0


def _is_count(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < _WHOLE


def _json(value: Any) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _some(attributes: Attributes) -> Attributes:
    return {name: value for name, value in attributes.items() if value not in ("", None)}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""
