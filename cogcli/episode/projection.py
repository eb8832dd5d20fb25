"""The projection: from the events of a log to `state.json`. Its rules are those of
docs/reference/episode.md#projection and docs/reference/episode.md#rules; of the code alone:

1. Since `run.state_projection` events are ignored, a document projected again is the same: a fixed point.
2. `x-cognitive` comes about by the reducer of the live run.
3. Under rules 2 an output above 4 KiB is on one line of `state.json`: indented, a list of numbers would take
   several times the room of its JSON.
4. Memory grows with `state.json`, not with the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import orjson

from cogcli.base.canonical import digest
from cogcli.base.errors import CogcliError
from cogcli.base.jsonvalue import object_of
from cogcli.declarations.envelope import Event
from cogcli.declarations.events import row_of
from cogcli.episode.actions import action_of
from cogcli.episode.beliefs import Beliefs
from cogcli.episode.blobs import Put
from cogcli.episode.decision import DecisionFold
from cogcli.episode.document_bytes import milliseconds_between, to_bytes
from cogcli.episode.foreign_words import translate_event
from cogcli.episode.large_values import SMALL, refer, show_in_full
from cogcli.episode.layout import (
    CONTEXT,
    DECISION,
    INTUITION_MODES,
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

_UNFIT: Final = (CogcliError, KeyError, TypeError, ValueError, AttributeError)
"""What the reducer raises for a payload that is not one of ours."""
_START_TYPES: Final = {
    "task": str, "skill": dict, "inputs": dict, "frame": dict, "parent_run_id": str, "tags": dict, "using": str,
    "intuition_mode": str,
}  # fmt: skip


class Projection:
    """The document after the events so far. Memory in proportion to the document."""

    def __init__(self, on_repair: FindingSink = ignore_message) -> None:
        self._on_repair = on_repair
        self._beliefs = Beliefs()
        self.start_payload: dict[str, Any] = {}
        """The payload of the root's start event, members of a wrong type left out."""
        self._began: Event | None = None
        self.terminated: Event | None = None
        """The root run's terminate event."""
        self._failed_step: str | None = None
        self.plan = PlanProjection(on_repair)
        self.actions: list[dict[str, Any]] = []
        self.artifacts: dict[str, Any] = {}
        """By name or path: a name below `working.artifacts` as it is, a file as its path, size and hash."""
        self.state = ExecutionState("", "", "")
        self.status = "pending"
        """The outcome word."""
        self._resumed = False
        self.decision: DecisionFold | None = None
        """What the run decided; None for the run of a skill."""
        self.root: str | None = None
        self.last: Event | None = None

    @property
    def started_at(self) -> str:
        """When the root run started, the empty text before any event."""
        return self._began.timestamp if self._began else ""

    @property
    def rules(self) -> int:
        """The rules that the log follows (`episode.rules`)."""
        return self.plan.rules

    def apply(self, event: Event) -> None:
        """Take one event into account, in order of the log."""
        if row_of(event.event_type).projected:
            return
        event = translate_event(event) if event.seq is None else event
        if self._began is None:
            self.root, self._began = event.run_id, event
            if event.phase != "start":
                self._on_repair("the log does not begin with a start event")
                self.state = ExecutionState(event.run_id or "", event.trace_id or "", "")
        if self.decision is not None:
            try:
                self.decision.apply(event)
            except _UNFIT as error:
                self._on_repair(f"{event.event_type} changes no decision: {error!r:.80}")
        if self.is_root(event):
            self._apply_to_root(event)
        if event.phase == "act":
            self._note_files(event)
            action = action_of(event, len(self.actions) + 1)
            if action is not None:
                self.actions.append(action)
        self.last = event

    def is_root(self, event: Event) -> bool:
        """Whether an event belongs to the root run; foreign logs may not say."""
        return event.run_id == self.root or event.run_id is None or self.root is None

    def _start(self, event: Event) -> None:
        self._began = event
        payload = object_of(event.payload)
        self.start_payload = {
            k: v for k, v in payload.items() if type(v) is _START_TYPES.get(k, type(v))
        }
        try:
            self.plan.rules = rules_of(payload)
            self.state = initial_state(event._replace(payload=self.start_payload))
            if type(payload.get("agent")) is dict and event.seq is not None:
                self.decision = DecisionFold(event)
        except _UNFIT as error:
            self._on_repair(f"the start event gives no state: {error}")
            run_id, trace_id = event.run_id or "", event.trace_id or ""
            self.state = ExecutionState(run_id, trace_id, "", updated_at=event.timestamp)

    def _apply_to_root(self, event: Event) -> None:
        if event.phase == "start" and not self.start_payload:
            self._start(event)
            return
        try:
            apply(self.state, event)
            if row_of(event.event_type).closes and event.payload.get("writes"):
                self._beliefs.note_writes(event, event.payload["writes"])
        except _UNFIT as error:
            self._on_repair(f"{event.event_type} changes no state: {error!r:.80}")
        self.plan.apply(event)
        self._resumed = self._resumed or event.event_type == "run.resumed"
        if event.phase == "act":
            self._apply_act(event)
        elif event.phase == "terminate":
            self._end(event)
        else:
            self._beliefs.apply(event)

    def _apply_act(self, event: Event) -> None:
        payload = event.payload
        if type(payload) is not dict:
            return
        self.artifacts.update((name, name) for name in _artifacts_of(payload) if type(name) is str)
        if self._failed_step is None and payload.get("step_status") in ("failed", "vetoed"):
            step_id = event.step_id or payload.get("step_id")
            self._failed_step = step_id if type(step_id) is str else None

    def _note_files(self, event: Event) -> None:
        """Note the files that a step wrote, also one of a nested run; the last version of each counts."""
        for file in _artifacts_of(event.payload):
            if type(file) is dict and type(path := file.get("path")) is str:
                self.artifacts[path] = file

    def _end(self, event: Event) -> None:
        self.terminated = event
        word = self.final.get("status")
        if type(word) is str and word in OUTCOMES:
            self.status = word
        else:
            self.status = "error"
            self._on_repair(f"outcome {word!r:.40} reads `error`")

    # -- the document -------------------------------------------------------------------------------------------------

    def result(self, put: Put = digest) -> dict[str, Any]:
        """`state.json` as an object. It shares values with this projection: turn it into bytes before applying more.

        Under rules 2 large values stand by reference: `put` gets the JSON of each and gives its digest.
        """
        links = dict(TERMINAL_LINKS if self.terminated else OPEN_LINKS)
        if self.decision is not None:
            links |= {"context": CONTEXT, "decision": DECISION}
        document = {
            "version": VERSION,
            "state_schema_version": SCHEMA_VERSION,
            "episode": self._episode(),
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
            _shorten(document, put)
        return document

    def goal(self) -> dict[str, Any]:
        """The `goal` of the document."""
        return {"task": self.task(), "type": "task"}

    def memory(self) -> dict[str, Any]:
        """The `memory` of the document."""
        return self._beliefs.memory(self.state)

    def outcomes(self) -> dict[str, Any]:
        """The `outcomes` of the document."""
        return {
            "status": self.status,
            "actions": self.actions,
            "metrics": self.metrics(),
            "artifacts": list(self.artifacts.values()),
            "error": self.error(),
            "outputs": object_of(self.final.get("outputs")),
        }

    def task(self) -> str:
        """The task of the run, in one line; empty where the log names none."""
        goal = self.state.frame.goal
        return self.start_payload.get("task") or (goal if type(goal) is str else "")

    @property
    def final(self) -> dict[str, Any]:
        """The payload of the root's terminate event; empty without one."""
        return object_of(self.terminated.payload if self.terminated else None)

    def _episode(self) -> dict[str, Any]:
        began, start = self._began, self.start_payload
        mode = start.get("intuition_mode")
        episode: dict[str, Any] = {"id": began.episode_id if began else ""}
        if type(start.get("seed")) in (int, float):
            episode["seed"] = start["seed"]
        episode.update((key, start[key]) for key in ("tags", "using") if start.get(key) is not None)
        episode["started_at"] = self.started_at
        episode["intuition_mode"] = mode if mode in INTUITION_MODES else INTUITION_MODES[0]
        trace_id = began.trace_id if began else None
        ours = {"run_id": self.root, "trace_id": trace_id, "skill": start.get("skill")}
        episode.update({key: value for key, value in ours.items() if value is not None})
        return episode

    def metrics(self) -> dict[str, Any]:
        """Steps of the plan, time, and the run's own sums; then what else a terminate event measured."""
        steps = self.plan.steps
        metrics: dict[str, Any] = {
            "steps_completed": sum(step["status"] == "done" for step in steps),
            "steps_total": len(steps),
            "duration_ms": self.duration_ms(),
            **self.state.trace.metrics.to_payload(),
        }
        return {**metrics, **object_of(self.final.get("metrics")), **metrics}

    def duration_ms(self) -> int | float | None:
        """As the terminate event measured it, else from the start event to the last; of another tool's to its end."""
        ended = self.terminated
        measured = (ended.metrics or {}).get("duration_ms") if ended else None
        if ended and isinstance(measured, int | float) and not isinstance(measured, bool):
            if self.rules == FIRST or self._resumed:
                return measured
            # A clock that was set back, and rounding, must not make a single sitting longer than its timestamps say.
            between = milliseconds_between(self.started_at, ended.timestamp, whole=True)
            return measured if between is None else min(measured, between)
        last = ended if ended and ended.seq is None else self.last
        return milliseconds_between(self.started_at, last.timestamp) if last else None

    def error(self) -> dict[str, Any] | None:
        """Why the run did not end well, with the step where it went wrong."""
        error = self.final.get("error")
        if type(error) is str:
            error = {"message": error}
        if type(error) is not dict:
            return None
        return error if "step" in error else {**error, "step": self._failed_step}


def _artifacts_of(payload: Any) -> list[Any]:
    artifacts = payload.get("result_artifacts") if type(payload) is dict else None
    return artifacts if type(artifacts) is list else []


_SLOTS: Final = ("inputs", "frame", "working", "output", "vars", "outputs", "extensions")
"""The members of `x-cognitive` that hold values."""


def _shorten(document: dict[str, Any], put: Put) -> None:
    """Put references in the place of large values: outputs stand in full where they can, for whoever reads them."""
    outcomes, cognitive, plan = document["outcomes"], document["x-cognitive"], document["plan"]
    outcomes["outputs"] = {
        name: show_in_full(value, put) for name, value in outcomes["outputs"].items()
    }
    for slot in _SLOTS:
        cognitive[slot] = {name: refer(value, put) for name, value in cognitive[slot].items()}
    plan["steps"] = [
        {key: refer(value, put) if key in VALUE_MEMBERS else value for key, value in step.items()}
        for step in plan["steps"]
    ]


_SNAPSHOT_OUTCOMES: Final = ("status", "metrics", "error")


def snapshot_outcomes(outcomes: dict[str, Any]) -> dict[str, Any]:
    """The outcomes that the evidence of a snapshot holds: those whose size does not grow with the run."""
    return {name: outcomes[name] for name in _SNAPSHOT_OUTCOMES}


def is_snapshot(event: Event) -> bool:
    """Whether an event is the evidence of a snapshot, written while its run was alive."""
    return row_of(event.event_type).projected and object_of(event.payload).get("snapshot") is True


def state_bytes(document: dict[str, Any], rules: int) -> bytes:
    """The bytes of `state.json`, from what a projection of a log of these rules gave."""
    if rules > FIRST:
        outcomes = document["outcomes"]
        outputs = dict(outcomes["outputs"])
        for name, value in outputs.items():
            if len(text := orjson.dumps(value)) > SMALL:
                outputs[name] = orjson.Fragment(text)  # on one line
        document = {**document, "outcomes": {**outcomes, "outputs": outputs}}
    return to_bytes(document)


def project(events: Iterable[Event]) -> dict[str, Any]:
    """`state.json` as an object, from the events of one log."""
    return _projected(events).result()


def project_bytes(events: Iterable[Event]) -> bytes:
    """`state.json` as its bytes, from the events of one log."""
    projection = _projected(events)
    return state_bytes(projection.result(), projection.rules)


def snapshot_bytes(events: Iterable[Event]) -> tuple[int, bytes]:
    """How many events the last snapshot of a log holds, and its bytes; 0 and nothing without a snapshot."""
    projection, held, data = Projection(), 0, b""
    for number, event in enumerate(events):
        if is_snapshot(event):
            held, data = number, state_bytes(projection.result(), projection.rules)
        projection.apply(event)
    return held, data


def _projected(events: Iterable[Event]) -> Projection:
    projection = Projection()
    for event in events:
        projection.apply(event)
    return projection
