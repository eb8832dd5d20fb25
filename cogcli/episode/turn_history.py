"""The turns of an agent's run, folded from its events (docs/reference/agent-run.md#layers). A run without an agent has
none.
"""

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
from cogcli.episode.run_history import StepHistory, Used

_Writes = TypeVar("_Writes", bound=Record)
_VETOES: Final = ("deny", "refuse")
_ENDED: Final = {"ok": "done", "vetoed": "vetoed"}
"""By the status of a run that of a turn which it cut short."""


class TurnHistory:
    """One pass over the layers, as far as it is known."""

    __slots__ = (
        "asked", "calls", "candidate", "context", "decided", "escalation", "layers", "number", "scored", "skipped",
        "step", "steps", "verified",
    )  # fmt: skip

    def __init__(self, number: int, started_at: str) -> None:
        self.number = number
        self.step = StepHistory(f"turn {number}", f"turn {number}")
        """The turn as a row of a view, with its status and times."""
        self.step.status, self.step.started_at = "running", started_at
        self.layers: dict[str, object] = {}
        """By layer what it wrote."""
        self.skipped: dict[str, str] = {}
        """By skipped layer why."""
        self.asked = Used()
        """What its questions to a model used."""
        self.context: ContextDocument | None = None
        self.candidate: CandidateProposed | None = None
        self.verified: PlanJudged | None = None
        self.scored: ResultJudged | None = None
        self.steps: list[str] = []
        """The steps of its plan."""
        self.calls: list[tuple[str, str]] = []
        """The capabilities that were called or kept from it, each with its status."""
        self.decided: list[PolicyDecided] = []
        """What was decided of its calls."""
        self.escalation = ""
        """The gate of what the agent itself asked a person for."""

    def writes_of(self, layer: str, record: type[_Writes]) -> _Writes | None:
        """What a layer wrote; None before it is through."""
        return read_record(record, self.layers[layer]) if layer in self.layers else None

    @property
    def reflection(self) -> TurnReflection | None:
        """What the last layer found; None before."""
        writes = self.writes_of("reflection", ReflectionWrites)
        return writes.reflection if writes else None

    @property
    def template(self) -> str:
        """The template of its candidate; empty where it has none."""
        return (self.candidate.template or "") if self.candidate else ""

    def end(self, status: str, at: str) -> None:
        """Close it."""
        self.step.status, self.step.ended_at = status, at

    @property
    def result(self) -> str:
        """The word of a step for how it went, once the last layer is through."""
        found = self.reflection
        if found is not None and (found.goal_met is True or found.next == "continue"):
            return "done"
        gate = self.writes_of("policy_gate", PolicyGateWrites)
        statuses = [status for _, status in self.calls]
        if (gate is not None and gate.verdict in _VETOES) or "vetoed" in statuses:
            return "vetoed"
        return "failed"


class AgentHistory:
    """Folds the events of a root run to its turns; `sittings` is the fold of its active time."""

    def __init__(self, sittings: ActiveTime) -> None:
        self.turns: list[TurnHistory] = []
        self.decision: DecisionRecorded | None = None
        """The recorded decision; None before."""
        self.started: RunStarted | None = None
        """The first event of an agent's run; None where no agent runs."""
        self._sittings = sittings
        self._last = ""
        self._active = 0
        self._began = 0

    @property
    def reply_causes(self) -> list[str]:
        """What the response of the run came from: its turn and template; empty where there is none."""
        if self.decision is None or "response" not in self.decision.outputs or not self.turns:
            return []
        turn = self.turns[-1]
        return [f"{turn.step.id} (reply of {turn.template})" if turn.template else turn.step.id]

    def apply(self, event: Event, payload: Payload) -> None:
        """Take the next event of the root run into account."""
        if isinstance(payload, RunStarted) and payload.using == "agent":
            self.started = payload
        if self.started is None:
            return
        is_open = not self.turns or self.turns[-1].step.status == "running"
        self._take(event, payload)
        self._last, self._active = event.timestamp, self._sittings.milliseconds or 0
        if self.turns and is_open:
            self.turns[-1].step.ms = self._active - self._began

    def _take(self, event: Event, payload: Payload) -> None:
        match payload:
            case RunTerminated() if self.turns and self.turns[-1].step.status == "running":
                self.turns[-1].end(_ENDED.get(payload.status, "failed"), event.timestamp)
            case DecisionRecorded():
                self.decision = payload
            case LayerCompleted():
                self._complete_layer(self._turn(payload.turn), event, payload)
            case ContextCompiled():
                self._turn(payload.turn).context = read_record(ContextDocument, payload.context)
            case ModelAnswered():
                turn = self._turn(payload.turn)
                turn.asked = turn.asked.plus(Used.of(payload.usage))
            case CandidateProposed():
                self._turn(payload.turn).candidate = payload
            case PlanJudged():
                self._turn(payload.turn).verified = payload
            case ResultJudged():
                self._turn(payload.turn).scored = payload
            case PlanCreated() if payload.turn is not None:
                self._turn(payload.turn).steps = [record.id for record in payload.step_records]
            case _ if type(number := getattr(payload, "turn", None)) is int:
                self._turn(number)
            case _ if self.turns:
                self._take_call(self.turns[-1], event, payload)

    def _turn(self, number: int) -> TurnHistory:
        """The turn of this number. It began with the event before its first one."""
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

    def _take_call(self, turn: TurnHistory, event: Event, payload: Payload) -> None:
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
