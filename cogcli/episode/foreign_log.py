"""Another tool's log, or its `state.json` alone, as the events that reports fold.

The steps of the root with their statuses, the actions, the outcome, the error and the time of its end are those of the
projection. The events add when a step began and ended, its input and its output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cogcli.base.jsonvalue import list_of, object_of, text_of
from cogcli.declarations.envelope import Event
from cogcli.episode.document_bytes import earlier, milliseconds_between
from cogcli.episode.foreign_words import is_foreign, translate_event
from cogcli.episode.layout import STEP_STATUSES
from cogcli.episode.plan_projection import PlanProjection

if TYPE_CHECKING:  # what projects is needed for another tool's log alone
    from cogcli.episode.projection import Projection

_UNBEGUN: Final = ("pending", "running", "skipped")
"""Statuses of a step that has not begun."""


class ReportedLog(NamedTuple):
    """What reports fold: the events, and of another tool's log the action log of the projection."""

    events: Iterable[Event]
    actions: list[dict[str, Any]]


def for_reports(events: Iterable[Event]) -> ReportedLog:
    """A log for reports: one of ours as it is, one event at a time; another tool's as its projection has it."""
    rest = iter(events)
    first = next(rest, None)
    if first is None or not is_foreign(first):
        return ReportedLog(chain(() if first is None else (first,), rest), [])
    return _foreign([first, *rest])


def _foreign(events: list[Event]) -> ReportedLog:
    from cogcli.episode.projection import Projection

    projection, planned_at, ended_at = Projection(), -1, -1
    for number, event in enumerate(events):
        projection.apply(event)
        if not projection.is_root(event):
            continue
        if event.phase == "plan" and type(event.payload) is dict:
            planned_at = number
        elif event.phase == "terminate":
            ended_at = number
    reported = _Report(projection).events(events, planned_at, ended_at)
    return ReportedLog(list(reported), projection.actions)


class _Report:
    """Another tool's events, in order, as reports fold them."""

    def __init__(self, projection: Projection) -> None:
        self._projection = projection
        self._step_ids = {step["id"] for step in projection.plan.steps}
        self._begun: dict[str, str] = {}

    def events(self, events: list[Event], planned_at: int, ended_at: int) -> Iterator[Event]:
        """The events for reports; the last plan and the last end count, as they do for the projection."""
        yield self._start(events[0])
        for number, event in enumerate(events):
            if number == planned_at:
                yield self._plan(event)
            elif number == ended_at:
                yield self._end(event)
            elif not self._projection.is_root(event) or event.phase in (
                "start",
                "plan",
                "terminate",
            ):
                yield self._passed_over(event)
            elif event.phase != "act":
                yield self._of_root(event)
            elif number > planned_at >= 0:
                yield from self._evidence(translate_event(event))
            else:
                yield self._passed_over(event)

    def _of_root(self, event: Event, **changes: Any) -> Event:
        return event._replace(run_id=self._projection.root, **changes)

    def _passed_over(self, event: Event) -> Event:
        """An event of which only the time counts."""
        return self._of_root(event, phase="runtime", payload={})

    def _start(self, first: Event) -> Event:
        projection = self._projection
        payload = {**projection.start_payload, "task": projection.task()}
        begun = self._of_root(first, phase="start", event_type="run.started", payload=payload)
        return begun._replace(timestamp=projection.started_at)

    def _plan(self, event: Event) -> Event:
        """The last plan as it was made: its steps have the statuses that it gave them."""
        plan = PlanProjection()
        plan.apply(event)
        records = [{**step, "uses": step["description"]} for step in plan.steps]
        return self._of_root(event, payload={"step_records": records})

    def _end(self, event: Event) -> Event:
        status, error = self._projection.status, self._projection.error()
        payload = {**object_of(event.payload), "status": status, "error": error}
        metrics = {"duration_ms": self._projection.duration_ms()}
        return self._of_root(event, event_type="run.terminated", payload=payload, metrics=metrics)

    def _evidence(self, event: Event) -> Iterator[Event]:
        """The events of an act of a step of the plan: of a step that has an end alone, its beginning comes before."""
        payload = event.payload
        evidence = object_of(payload)
        step_id, status = text_of(evidence.get("step_id")), text_of(evidence.get("step_status"))
        if step_id not in self._step_ids or status not in STEP_STATUSES:
            yield self._passed_over(event)
            return
        if status == "running":
            self._begun.setdefault(step_id, event.timestamp)
        elif status not in _UNBEGUN and step_id not in self._begun:
            self._begun[step_id] = _beginning(event)
            begun = {"step_id": step_id, "step_status": "running", "input": payload.get("input")}
            started = self._of_root(
                event, step_id=step_id, event_type="step.started", payload=begun
            )
            yield started._replace(
                id=f"{event.id}@begun", timestamp=self._begun[step_id], metrics=None
            )
        metrics = self._timed(event, step_id)
        yield self._of_root(
            event, step_id=step_id, payload=_merged_payload(payload), metrics=metrics
        )

    def _timed(self, event: Event, step_id: str) -> dict[str, Any] | None:
        """The metrics with the duration: as measured, else since the step was running."""
        metrics = event.metrics or {}
        if type(metrics.get("duration_ms")) in (int, float):
            return metrics
        begun = self._begun.get(step_id, event.timestamp)
        if begun == event.timestamp:
            return None
        return {"duration_ms": milliseconds_between(begun, event.timestamp)}


def _beginning(event: Event) -> str:
    """The beginning of a step that has an end alone: as its end measured it, else the time of the end."""
    metrics = event.metrics or {}
    begun, duration = metrics.get("started_at"), metrics.get("duration_ms")
    if type(begun) is str:
        return begun
    return (
        earlier(event.timestamp, duration) if isinstance(duration, int | float) else event.timestamp
    )


def _merged_payload(payload: dict[str, Any]) -> dict[str, Any]:
    """The payload, with its artifacts as writes where it holds no writes."""
    artifacts = payload.get("result_artifacts")
    if type(payload.get("writes")) is list or type(artifacts) is not list:
        return payload
    names = [name for name in artifacts if type(name) is str]
    return {**payload, "writes": [{"target": f"working.artifacts.{name}"} for name in names]}


# -- a state without a log ---------------------------------------------------------------------------------------------


def events_of_state(document: dict[str, Any]) -> list[Event]:
    """A log that projects the steps, actions and outcome of a `state.json` whose own log is not there.

    Members of a wrong type count as absent. When the run ended is not known.
    """
    episode, outcomes = object_of(document.get("episode")), object_of(document.get("outcomes"))
    goal, plan = object_of(document.get("goal")), object_of(document.get("plan"))
    began = text_of(episode.get("started_at"))
    start = {key: episode.get(key) for key in ("seed", "tags", "using", "skill", "intuition_mode")}
    planned = {"source": plan.get("source"), "step_records": plan.get("steps")}
    parts: list[tuple[str, str, dict[str, Any]]] = [
        ("start", began, {"task": goal.get("task"), **start}),
        ("plan", text_of(plan.get("updated_at")) or began, planned),
    ]
    parts += [
        ("act", text_of(action.get("timestamp")), {**action, "action_id": action.get("id")})
        for action in list_of(outcomes.get("actions"))
        if isinstance(action, dict)
    ]
    if outcomes.get("status") != "pending":
        parts.append(
            ("terminate", "", {key: outcomes.get(key) for key in ("status", "error", "outputs")})
        )
    duration = object_of(outcomes.get("metrics")).get("duration_ms")
    return [
        Event(
            seq=None, id=f"state_{number}", timestamp=timestamp, episode_id=text_of(episode.get("id")),
            run_id=None, trace_id=text_of(episode.get("trace_id")) or None, phase=phase, event_type=None,
            payload=payload, metrics={"duration_ms": duration} if phase == "terminate" else None,
        )
        for number, (phase, timestamp, payload) in enumerate(parts)
    ]  # fmt: skip
