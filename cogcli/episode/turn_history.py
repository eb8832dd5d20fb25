"""The turns of an agent's run, folded from its events (docs/reference/agent-run.md#layers). A skill's run has none."""

from __future__ import annotations

from typing import Final, TypeVar

from cogcli.base.step_path import StepPath
from cogcli.declarations.agent_events import (
    CandidateProposed,
    ContextCompiled,
    DecisionRecorded,
    LayerCompleted,
    ModelAnswered,
    PlanJudged,
    ResultJudged,
)
from cogcli.declarations.envelope import ActiveTime, Event
from cogcli.declarations.event_type import Payload
from cogcli.declarations.events import PlanCreated, RunStarted, RunTerminated, StepFinished
from cogcli.declarations.governance_events import ApprovalRequested, PolicyDecided
from cogcli.declarations.layer_records import (
    ContextDocument,
    GoalsWrites,
    PolicyGateWrites,
    ReflectionWrites,
    TurnReflection,
)
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.episode.run_history import CallUsage, StepHistory

_Writes = TypeVar("_Writes", bound=Record)
_VETOES: Final = ("deny", "refuse")
_ENDED: Final = {"ok": "done", "vetoed": "vetoed"}
"""The status of an interrupted turn, by the status of its run."""


class TurnHistory:
    """One turn of an agent: a pass over the layers, after the events read so far."""

    __slots__ = (
        "calls", "candidate", "context", "decided", "escalation", "layers", "model_use", "number", "scored", "skipped",
        "step", "steps", "verified",
    )  # fmt: skip

    def __init__(self, number: int, started_at: str) -> None:
        self.number = number
        self.step = StepHistory(f"turn {number}", f"turn {number}")
        """The turn as a row of a view, with its status and times."""
        self.step.status, self.step.started_at = "running", started_at
        self.layers: dict[str, object] = {}
        """The writes of each layer."""
        self.skipped: dict[str, str] = {}
        """The reason of each skipped layer."""
        self.model_use = CallUsage()
        """The use of its model calls."""
        self.context: ContextDocument | None = None
        self.candidate: CandidateProposed | None = None
        self.verified: PlanJudged | None = None
        self.scored: ResultJudged | None = None
        self.steps: list[str] = []
        """The steps of its plan."""
        self.calls: list[tuple[str, str]] = []
        """The capabilities of its calls, also of vetoed ones, each with its status."""
        self.decided: list[PolicyDecided] = []
        """The decisions of policies on its calls."""
        self.escalation = ""
        """The gate of an escalation to a person."""

    def writes_of(self, layer: str, record: type[_Writes]) -> _Writes | None:
        """Return the writes of a layer, or None before it completed."""
        return read_record(record, self.layers[layer]) if layer in self.layers else None

    @property
    def reflection(self) -> TurnReflection | None:
        """The writes of the last layer; None before it completed."""
        writes = self.writes_of("reflection", ReflectionWrites)
        return writes.reflection if writes else None

    @property
    def template(self) -> str:
        """The template of its candidate; empty if the candidate has none."""
        return (self.candidate.template or "") if self.candidate else ""

    def apply(self, payload: Payload) -> None:
        """Apply an event of the turn. Events of its layers are applied elsewhere."""
        match payload:
            case ContextCompiled():
                self.context = read_record(ContextDocument, payload.context)
            case ModelAnswered():
                self.model_use = self.model_use.plus(CallUsage.of(payload.usage))
            case CandidateProposed():
                self.candidate = payload
            case PlanJudged():
                self.verified = payload
            case ResultJudged():
                self.scored = payload
            case PlanCreated():
                self.steps = [record.id for record in payload.step_records]

    def end(self, status: str, at: str) -> None:
        """End the turn with this status."""
        self.step.status, self.step.ended_at = status, at

    @property
    def result(self) -> str:
        """The status of the turn as the status of a step, once the last layer completed."""
        found = self.reflection
        if found is not None and (found.goal_met is True or found.next == "continue"):
            return "done"
        gate = self.writes_of("policy_gate", PolicyGateWrites)
        statuses = [status for _, status in self.calls]
        if (gate is not None and gate.verdict in _VETOES) or "vetoed" in statuses:
            return "vetoed"
        return "failed"


class AgentHistory:
    """Folds the events of a root run to its turns; `active_time` is the fold of its active time."""

    def __init__(self, active_time: ActiveTime) -> None:
        self.turns: list[TurnHistory] = []
        self.decision: DecisionRecorded | None = None
        """The recorded decision; None before."""
        self.started: RunStarted | None = None
        """The first event of an agent's run; None for the run of a skill."""
        self._active_time = active_time
        self._last = ""
        self._active = 0
        self._began = 0

    @property
    def reply_causes(self) -> list[str]:
        """The turn and the template of the response; empty without a response."""
        if self.decision is None or "response" not in self.decision.outputs or not self.turns:
            return []
        turn = self.turns[-1]
        return [f"{turn.step.id} (reply of {turn.template})" if turn.template else turn.step.id]

    def apply(self, event: Event, payload: Payload) -> None:
        """Apply the next event of the root run."""
        if isinstance(payload, RunStarted) and payload.using == "agent":
            self.started = payload
        if self.started is None:
            return
        is_open = not self.turns or self.turns[-1].step.status == "running"
        self._apply_payload(event, payload)
        self._last, self._active = event.timestamp, self._active_time.milliseconds or 0
        if self.turns and is_open:
            self.turns[-1].step.ms = self._active - self._began

    def _apply_payload(self, event: Event, payload: Payload) -> None:
        match payload:
            case RunTerminated() if self.turns and self.turns[-1].step.status == "running":
                self.turns[-1].end(_ENDED.get(payload.status, "failed"), event.timestamp)
            case DecisionRecorded():
                self.decision = payload
            case LayerCompleted():
                self._complete_layer(self._turn_with_number(payload.turn), event, payload)
            case _ if type(number := getattr(payload, "turn", None)) is int:
                self._turn_with_number(number).apply(payload)
            case _ if self.turns:
                self._apply_call(self.turns[-1], event, payload)

    def _turn_with_number(self, number: int) -> TurnHistory:
        """Return the turn with this number. A turn begins with the event before its own first event."""
        if not self.turns or self.turns[-1].number != number:
            self.turns.append(TurnHistory(number, self._last))
            self._began = self._active
        return self.turns[-1]

    def _complete_layer(self, turn: TurnHistory, event: Event, payload: LayerCompleted) -> None:
        turn.layers[payload.layer] = payload.writes
        if payload.skipped:
            turn.skipped[payload.layer] = payload.skipped
        goals = turn.writes_of("goals", GoalsWrites)
        turn.step.uses = (goals.intent or "") if goals else ""
        if payload.layer == "reflection":
            turn.end(turn.result, event.timestamp)

    def _apply_call(self, turn: TurnHistory, event: Event, payload: Payload) -> None:
        match payload:
            case StepFinished():
                if payload.step_status != "skipped" and StepPath(event.step_id or "").is_step:
                    turn.calls.append(
                        (payload.capability or payload.uses or "", payload.step_status)
                    )
            case PolicyDecided():
                turn.decided.append(payload)
            case ApprovalRequested() if payload.kind == "escalation":
                turn.escalation = payload.gate or ""
