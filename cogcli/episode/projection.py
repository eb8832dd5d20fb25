"""The projection: from the events of a log to `state.json`. It follows docs/reference/episode.md#projection
and docs/reference/episode.md#rules, and four rules of the code:

1. Since `run.state_projection` events are ignored, a document projected again is the same: a fixed point.
2. The reducer of the live run builds `x-cognitive`.
3. Under rules 2 an output above 4 KiB is on one line of `state.json`: an indented list of numbers would take
   several times the size of its JSON.
4. Memory grows with `state.json`, not with the log, and without its actions if they are kept as text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import orjson

from cogcli.base.canonical import digest
from cogcli.base.errors import CogcliError
from cogcli.declarations.call_records import WrittenFile
from cogcli.declarations.envelope import Event, row_of
from cogcli.declarations.event_type import EventType
from cogcli.declarations.events import StateProjected
from cogcli.declarations.reading import read_record
from cogcli.declarations.shared_events import SharedActivity, SharedEnd, SharedStart
from cogcli.declarations.value_types import Json
from cogcli.episode.action_log import ActionLog, DocumentText
from cogcli.episode.actions import action_from
from cogcli.episode.beliefs import Beliefs
from cogcli.episode.blobs import Put
from cogcli.episode.document_bytes import measured_ms, milliseconds_between, to_bytes
from cogcli.episode.foreign_words import translate_event
from cogcli.episode.large_values import SMALL, ValueShortener
from cogcli.episode.layout import (
    CONTEXT,
    DECISION,
    OPEN_LINKS,
    OUTCOMES,
    SCHEMA_VERSION,
    TERMINAL_LINKS,
    VERSION,
    FindingSink,
    ignore_message,
)
from cogcli.episode.log_lines import FIRST, rules_of
from cogcli.episode.plan_projection import VALUE_MEMBERS, PlanProjection
from cogcli.state.execution import ExecutionState, snapshot
from cogcli.state.reducer import apply, initial_state

if TYPE_CHECKING:
    from cogcli.episode.decision import DecisionFold

_UNFIT: Final = (CogcliError, KeyError, TypeError, ValueError, AttributeError)
"""The errors that the reducer raises for a payload that cogcli did not write."""
_START_TYPES: Final = {
    "task": str, "skill": dict, "inputs": dict, "frame": dict, "parent_run_id": str, "tags": dict, "using": str,
    "intuition_mode": str,
}  # fmt: skip


class Projection:
    """Folds the events of a log to `state.json`."""

    def __init__(
        self, on_repair: FindingSink = ignore_message, actions: ActionLog | None = None
    ) -> None:
        """Begin before the first event. `actions` keeps the actions as text; without it they are objects."""
        self._on_repair = on_repair
        self._beliefs = Beliefs()
        self.start = read_record(SharedStart, {})
        """The payload of the root's start event."""
        self._began: Event | None = None
        self.terminated: Event | None = None
        """The root run's terminate event."""
        self.end = read_record(SharedEnd, {})
        """The payload of that event."""
        self._failed_step: str | None = None
        self.plan = PlanProjection(on_repair)
        self.actions: list[Json] | ActionLog = [] if actions is None else actions
        self.artifacts: Json = {}
        """By name or path: a name below `working.artifacts` unchanged, a file as its path, size and hash."""
        self.state = ExecutionState("", "", "")
        self.status = "pending"
        """The outcome word."""
        self._resumed = False
        self.decision: DecisionFold | None = None
        """The decision of an agent's run; None for the run of a skill."""
        self.root: str | None = None
        self.last: Event | None = None

    @property
    def started_at(self) -> str:
        """The start time of the root run; empty before the first event."""
        return self._began.timestamp if self._began else ""

    @property
    def rules(self) -> int:
        """The rules that the log follows (`episode.rules`)."""
        return self.plan.rules

    def apply(self, event: Event, act: SharedActivity | None = None) -> None:
        """Apply the next event of the log. `act` is its payload, if it is an act that was read already."""
        row = row_of(event.event_type)
        if row.projected or row.cached:
            return
        if event.seq is None:
            event, act = translate_event(event), None
        if self._began is None:
            self._begin_root(event)
        if self.decision is not None:
            try:
                self.decision.apply(event)
            except _UNFIT as error:
                self._on_repair(f"{event.event_type} changes no decision: {error!r:.80}")
        is_root = self.is_root(event)
        if is_root:
            self._apply_to_root(event, row)
        if event.phase == "act":
            act = act or read_record(SharedActivity, event.payload)
            self._apply_act(event, act, is_root)
        self.last = event

    def _apply_act(self, event: Event, act: SharedActivity, is_root: bool) -> None:
        """Apply an act event of the root run or of a nested one."""
        if is_root:
            self.plan.apply_act(act)
            for name in act.result_artifacts or ():
                if type(name) is str:
                    self.artifacts[name] = name
            if self._failed_step is None and act.step_status in ("failed", "vetoed"):
                self._failed_step = event.step_id or act.step_id
        if act.result_artifacts:
            self._add_files(act.result_artifacts)
        action = action_from(event, act, len(self.actions) + 1)
        if action is not None:
            self.actions.append(action)

    def _begin_root(self, first: Event) -> None:
        self.root, self._began = first.run_id, first
        if first.phase != "start":
            self._on_repair("the log does not begin with a start event")
            self.state = ExecutionState(first.run_id or "", first.trace_id or "", "")

    def is_root(self, event: Event) -> bool:
        """Return whether an event belongs to the root run. Events of foreign logs may have no run."""
        return event.run_id == self.root or event.run_id is None or self.root is None

    def _start_nested(self, event: Event) -> None:
        self._began = event
        started = read_record(SharedStart, event.payload)
        payload = started.json
        members = {k: v for k, v in payload.items() if type(v) is _START_TYPES.get(k, type(v))}
        self.start = read_record(SharedStart, members)
        try:
            self.plan.rules = rules_of(payload)
            self.state = initial_state(event._replace(payload=members))
            if started.agent is not None and event.seq is not None:
                self.decision = _begin_decision(event)
        except _UNFIT as error:
            self._on_repair(f"the start event gives no state: {error}")
            run_id, trace_id = event.run_id or "", event.trace_id or ""
            self.state = ExecutionState(run_id, trace_id, "", updated_at=event.timestamp)

    def _apply_to_root(self, event: Event, row: EventType) -> None:
        if event.phase == "start" and not self.start.json:
            self._start_nested(event)
            return
        try:
            apply(self.state, event)
            if row.closes and event.payload.get("writes"):
                self._beliefs.record_writes(event, event.payload["writes"])
        except _UNFIT as error:
            self._on_repair(f"{event.event_type} changes no state: {error!r:.80}")
        self._resumed = self._resumed or event.event_type == "run.resumed"
        if event.phase == "act":
            return
        if event.phase == "plan":
            self.plan.apply(event)
        elif event.phase == "terminate":
            self._end_run(event)
        else:
            self._beliefs.apply(event)

    def _add_files(self, artifacts: list[object]) -> None:
        """Add the files that a step of the root or of a nested run wrote. The last version of each is kept."""
        for file in artifacts:
            if type(file) is dict and (path := read_record(WrittenFile, file).path):
                self.artifacts[path] = file

    def _end_run(self, event: Event) -> None:
        self.terminated = event
        self.end = read_record(SharedEnd, event.payload)
        word = self.end.status
        if type(word) is str and word in OUTCOMES:
            self.status = word
        else:
            self.status = "error"
            self._on_repair(f"outcome {word!r:.40} reads `error`")

    # -- the document -------------------------------------------------------------------------------------------------

    def result(self, put: Put = digest) -> Json:
        """Return `state.json` as an object.

        It shares values with this projection, so serialize it before the next event. Actions remain an ActionLog, which
        `state_text` writes. Under rules 2 references replace large values: `put` stores the JSON of each and returns
        its digest.
        """
        links = dict(TERMINAL_LINKS if self.terminated else OPEN_LINKS)
        if self.decision is not None:
            links |= {"context": CONTEXT, "decision": DECISION}
        document = {
            "version": VERSION,
            "state_schema_version": SCHEMA_VERSION,
            "episode": self._episode_part(),
            "goal": self.goal(),
            "beliefs": self._beliefs.beliefs(self.state),
            "plan": self.plan.result(),
            "memory": self.memory(),
            "outcomes": self.outcomes(),
            "links": links,
            "x-cognitive": snapshot(self.state),
        }
        if self.decision is not None:
            document["x-decision"] = self.decision.summary()
            if self.decision.agent:
                document["x-agent"] = self.decision.agent
        if self.rules > FIRST:
            _shorten_document(document, ValueShortener(put, self.rules))
        return document

    def goal(self) -> Json:
        """Return the `goal` of the document."""
        return {"task": self.task(), "type": "task"}

    def memory(self) -> Json:
        """Return the `memory` of the document."""
        return self._beliefs.memory(self.state)

    def outcomes(self) -> Json:
        """Return the `outcomes` of the document."""
        return {
            "status": self.status,
            "actions": self.actions,
            "metrics": self.metrics(),
            "artifacts": list(self.artifacts.values()),
            "error": self.error(),
            "outputs": self.end.outputs,
        }

    def task(self) -> str:
        """Return the task of the run, in one line. Empty where the log names none."""
        goal = self.state.frame.goal
        return self.start.task or (goal if type(goal) is str else "")

    def _episode_part(self) -> Json:
        began, start = self._began, self.start
        members = {
            "id": began.episode_id if began else "",
            "seed": start.seed,
            "tags": start.tags,
            "using": start.using,
            "started_at": self.started_at,
            "intuition_mode": start.intuition_mode,
            "run_id": self.root,
            "trace_id": began.trace_id if began else None,
            "skill": start.skill,
        }
        return {name: value for name, value in members.items() if value is not None}

    def metrics(self) -> Json:
        """Return the plan's steps, the time and the run's sums, followed by the other metrics of the terminate
        event.
        """
        steps = self.plan.steps
        metrics: Json = {
            "steps_completed": sum(step["status"] == "done" for step in steps),
            "steps_total": len(steps),
            "duration_ms": self.duration_ms(),
            **self.state.trace.metrics.to_payload(),
        }
        return {**metrics, **self.end.metrics, **metrics}

    def duration_ms(self) -> int | float | None:
        """Return the duration in the terminate event, else from the start event to the last one.

        For a log of another tool without a measured duration, it is the time from start to end.
        """
        ended = self.terminated
        if ended and (measured := measured_ms(ended)) is not None:
            return self._limit_duration(ended, measured)
        last = ended if ended and ended.seq is None else self.last
        return milliseconds_between(self.started_at, last.timestamp) if last else None

    def _limit_duration(self, ended: Event, measured: int | float) -> int | float:
        """Return the duration, limited to the time between the run's timestamps. A clock that was set back must
        not exceed it.
        """
        if self.rules == FIRST or self._resumed:
            return measured
        between = milliseconds_between(self.started_at, ended.timestamp, whole=True)
        return measured if between is None else min(measured, between)

    def error(self) -> Json | None:
        """Return the error of the run, with the step that failed first."""
        error = self.end.error
        if error is None:
            return None
        members = {"message": error} if isinstance(error, str) else error
        return members if "step" in members else {**members, "step": self._failed_step}


def _begin_decision(started: Event) -> DecisionFold:
    from cogcli.episode.decision import DecisionFold  # the run of a skill decides nothing

    return DecisionFold(started)


_SLOTS: Final = ("inputs", "frame", "working", "output", "vars", "outputs", "extensions")
"""The members of `x-cognitive` that contain values."""


def _shorten_document(document: Json, values: ValueShortener) -> None:
    """Replace large values with references. Outputs stay complete as far as possible, for their readers."""
    outcomes, cognitive, plan = document["outcomes"], document["x-cognitive"], document["plan"]
    outcomes["outputs"] = {
        name: values.show_in_full(value) for name, value in outcomes["outputs"].items()
    }
    for slot in _SLOTS:
        cognitive[slot] = {name: values.refer(value) for name, value in cognitive[slot].items()}
    plan["steps"] = [
        {key: values.refer(value) if key in VALUE_MEMBERS else value for key, value in step.items()}
        for step in plan["steps"]
    ]


_SNAPSHOT_OUTCOMES: Final = ("status", "metrics", "error")
MOST_ACTIONS: Final = 10_000
"""With more actions the evidence of `state.json` has only their number: its hash in `state` covers each of them."""
_ACTIONS: Final = b"\0"
"""A placeholder for the text of the actions. JSON text never contains this byte."""


def evidence_outcomes(outcomes: Json, *, whole: bool = False) -> Json:
    """Return the outcomes in the evidence of a pause or an end. `whole`: with all actions, however many."""
    actions = outcomes["actions"]
    if len(actions) > MOST_ACTIONS and not whole:
        short = {name: value for name, value in outcomes.items() if name != "actions"}
        return {**short, "action_count": len(actions)}
    return (
        {**outcomes, "actions": actions.objects()} if isinstance(actions, ActionLog) else outcomes
    )


def snapshot_outcomes(outcomes: Json) -> Json:
    """Return the outcomes in the evidence of a snapshot: those whose size does not grow with the run."""
    return {name: outcomes[name] for name in _SNAPSHOT_OUTCOMES}


def is_snapshot(event: Event) -> bool:
    """Return whether an event is the evidence of a snapshot, written while its run was alive."""
    is_projected = row_of(event.event_type).projected
    return is_projected and read_record(StateProjected, event.payload).snapshot is True


def state_bytes(document: Json, rules: int) -> bytes:
    """Return the bytes of `state.json` from the result of a projection under these rules."""
    if rules > FIRST:
        outcomes = document["outcomes"]
        outputs = dict(outcomes["outputs"])
        for name, value in outputs.items():
            if len(text := orjson.dumps(value)) > SMALL:
                outputs[name] = orjson.Fragment(text)  # on one line
        document = {**document, "outcomes": {**outcomes, "outputs": outputs}}
    return to_bytes(document)


def state_text(document: Json, rules: int) -> DocumentText:
    """Return the text of `state.json` from the result of a projection under these rules."""
    actions = document["outcomes"]["actions"]
    if not isinstance(actions, ActionLog) or not actions:
        outcomes = {**document["outcomes"], "actions": list(actions)}
        return DocumentText(state_bytes({**document, "outcomes": outcomes}, rules))
    outcomes = {**document["outcomes"], "actions": orjson.Fragment(_ACTIONS)}
    head, tail = state_bytes({**document, "outcomes": outcomes}, rules).split(_ACTIONS)
    return DocumentText(head + b"[\n      ", actions, actions.size, b"\n    ]" + tail)


def project(events: Iterable[Event]) -> Json:
    """Return `state.json` as an object, from the events of one log."""
    return _fold_events(events).result()


def project_bytes(events: Iterable[Event]) -> bytes:
    """Return the bytes of `state.json`, from the events of one log."""
    projection = _fold_events(events)
    return state_bytes(projection.result(), projection.rules)


def project_text(events: Iterable[Event]) -> DocumentText:
    """Return the text of `state.json` for the events of one log. The actions are streamed, not kept in memory."""
    projection = Projection(actions=ActionLog())
    for event in events:
        projection.apply(event)
    return state_text(projection.result(), projection.rules)


def snapshot_bytes(events: Iterable[Event]) -> tuple[int, bytes]:
    """Return the number of events in the last snapshot of a log, and its bytes; 0 and no bytes without one."""
    projection, held, data = Projection(), 0, b""
    for number, event in enumerate(events):
        if is_snapshot(event):
            held, data = number, state_bytes(projection.result(), projection.rules)
        projection.apply(event)
    return held, data


def _fold_events(events: Iterable[Event]) -> Projection:
    projection = Projection()
    for event in events:
        projection.apply(event)
    return projection
