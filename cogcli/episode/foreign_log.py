"""The log of another tool, or its `state.json` alone, as events that reports fold.

Steps of the root, statuses, actions, outcome, error and the time of the end come from the projection. The events add
the times, the input and the output of each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.envelope import Event
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.shared_events import SharedActivity, SharedEnd
from cogcli.declarations.shared_state import SharedState
from cogcli.declarations.value_types import Json
from cogcli.episode.document_bytes import duration_in, earlier, measured_ms, milliseconds_between
from cogcli.episode.foreign_words import is_foreign, translate_event
from cogcli.episode.layout import STEP_STATUSES
from cogcli.episode.plan_projection import PlanProjection

if TYPE_CHECKING:  # what projects is needed for another tool's log alone
    from cogcli.episode.projection import Projection

_UNBEGUN: Final = ("pending", "running", "skipped")
"""Statuses of a step that has not begun."""


class ReportedLog(NamedTuple):
    """The input of reports: events and, for a log of another tool, the action log of its projection."""

    events: Iterable[Event]
    actions: list[Json]


def for_reports(events: Iterable[Event]) -> ReportedLog:
    """Return a log for reports. A log of cogcli is unchanged and read lazily. A log of another tool
    has the values of its projection."""
    rest = iter(events)
    first = next(rest, None)
    if first is None or not is_foreign(first):
        return ReportedLog(chain(() if first is None else (first,), rest), [])
    return _report_foreign([first, *rest])


def _report_foreign(events: list[Event]) -> ReportedLog:
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
    return ReportedLog(list(reported), list(projection.actions))


class _Report:
    """Translates the events of another tool, in order."""

    def __init__(self, projection: Projection) -> None:
        self._projection = projection
        self._step_ids = {step["id"] for step in projection.plan.steps}
        self._begun: dict[str, str] = {}

    def events(self, events: list[Event], planned_at: int, ended_at: int) -> Iterator[Event]:
        """Yield the events for reports. If there are several plans or ends, only the last one is used, as in the
        projection.
        """
        yield self._build_start_event(events[0])
        for number, event in enumerate(events):
            if number == planned_at:
                yield self._build_plan_event(event)
            elif number == ended_at:
                yield self._build_end_event(event)
            elif not self._projection.is_root(event) or event.phase in (
                "start",
                "plan",
                "terminate",
            ):
                yield self._keep_time_only(event)
            elif event.phase != "act":
                yield self._of_root(event)
            elif number > planned_at >= 0:
                yield from self._step_events(translate_event(event))
            else:
                yield self._keep_time_only(event)

    def _of_root(self, event: Event, **changes: Any) -> Event:
        return event._replace(run_id=self._projection.root, **changes)

    def _keep_time_only(self, event: Event) -> Event:
        """Return the event with an empty payload; only its time is kept."""
        return self._of_root(event, phase="runtime", payload={})

    def _build_start_event(self, first: Event) -> Event:
        projection = self._projection
        payload = {**projection.start.json, "task": projection.task()}
        begun = self._of_root(first, phase="start", event_type="run.started", payload=payload)
        return begun._replace(timestamp=projection.started_at)

    def _build_plan_event(self, event: Event) -> Event:
        """Return the last plan, with the statuses that it assigned to its steps."""
        plan = PlanProjection()
        plan.apply(event)
        records = [{**step, "uses": step["description"]} for step in plan.steps]
        return self._of_root(event, payload={"step_records": records})

    def _build_end_event(self, event: Event) -> Event:
        status, error = self._projection.status, self._projection.error()
        recorded = read_record(SharedEnd, event.payload).json
        payload = {**recorded, "status": status, "error": error}
        metrics = {"duration_ms": self._projection.duration_ms()}
        return self._of_root(event, event_type="run.terminated", payload=payload, metrics=metrics)

    def _step_events(self, event: Event) -> Iterator[Event]:
        """Yield the events for an act of a planned step. If the step has only an end, a start is added."""
        payload = event.payload
        act = read_record(SharedActivity, payload)
        step_id, status = act.step_id or "", act.step_status
        if step_id not in self._step_ids or status not in STEP_STATUSES:
            yield self._keep_time_only(event)
            return
        if status == "running":
            self._begun.setdefault(step_id, event.timestamp)
        elif status not in _UNBEGUN and step_id not in self._begun:
            self._begun[step_id] = _start_time(event)
            begun = {"step_id": step_id, "step_status": "running", "input": act.input}
            started = self._of_root(
                event, step_id=step_id, event_type="step.started", payload=begun
            )
            yield started._replace(
                id=f"{event.id}@begun", timestamp=self._begun[step_id], metrics=None
            )
        metrics = self._add_duration(event, step_id)
        yield self._of_root(
            event, step_id=step_id, payload=_add_writes(payload, act), metrics=metrics
        )

    def _add_duration(self, event: Event, step_id: str) -> Json | None:
        """Return the metrics with the duration, which is the measured one or else the time since the step began."""
        if measured_ms(event) is not None:
            return event.metrics
        begun = self._begun.get(step_id, event.timestamp)
        if begun == event.timestamp:
            return None
        return {"duration_ms": milliseconds_between(begun, event.timestamp)}


def _start_time(event: Event) -> str:
    """Return the start time of a step that has only an end: the measured time, or else the time of the end."""
    begun, duration = (event.metrics or {}).get("started_at"), measured_ms(event)
    if type(begun) is str:
        return begun
    return event.timestamp if duration is None else earlier(event.timestamp, duration)


def _add_writes(payload: Json, act: SharedActivity) -> Json:
    """Return the payload with its artifacts as writes, if it has artifacts and no writes."""
    if type(payload.get("writes")) is list or act.result_artifacts is None:
        return payload
    names = [name for name in act.result_artifacts if type(name) is str]
    return {**payload, "writes": [{"target": f"working.artifacts.{name}"} for name in names]}


# -- a state without a log ---------------------------------------------------------------------------------------------


def events_of_state(document: Json) -> list[Event]:
    """Return events that project the steps, actions and outcome of a `state.json` without a log.

    Members of a wrong type are ignored. The time of the run's end is unknown.
    """
    state = read_record(SharedState, document)
    episode, outcomes = state.episode, state.outcomes
    start = {"task": state.goal.task, **_select_members(episode, "seed", "tags", "using", "skill")}
    start |= _select_members(episode, "intuition_mode")
    planned = {"source": state.plan.source, "step_records": state.plan.json.get("steps")}
    parts: list[tuple[str, str, Json]] = [
        ("start", episode.started_at, start),
        ("plan", state.plan.updated_at or episode.started_at, planned),
    ]
    parts += [
        ("act", action.timestamp or "", {**action.json, "action_id": action.id})
        for action in outcomes.actions or ()
    ]
    if outcomes.status != "pending":
        parts.append(("terminate", "", _select_members(outcomes, "status", "error", "outputs")))
    duration = duration_in(outcomes.metrics)
    return [
        Event(
            seq=None, id=f"state_{number}", timestamp=timestamp, episode_id=episode.id,
            run_id=None, trace_id=episode.trace_id or None, phase=phase, event_type=None,
            payload=payload, metrics={"duration_ms": duration} if phase == "terminate" else None,
        )
        for number, (phase, timestamp, payload) in enumerate(parts)
    ]  # fmt: skip


def _select_members(record: Record, *names: str) -> Json:
    """Return some members of a document unchanged, for the fold to read again."""
    return {name: record.json.get(name) for name in names}
