"""The turns of an agent's run, folded from its events (docs/reference/agent-run.md#layers); what every view of such a
run shares. Of another run there are none. Unknown events change nothing, and members of another shape count for
nothing.
"""

from __future__ import annotations

from typing import Any, Final

from cogcli.core.jsonvalue import list_of, object_of, text_of
from cogcli.core.step_path import StepPath
from cogcli.declarations.events import row_of
from cogcli.events.envelope import ActiveTime, Event
from cogcli.report.run_view import StepView, Used, texts_of

_VETOES: Final = ("deny", "refuse")
_ENDED: Final = {"ok": "done", "vetoed": "vetoed"}
"""By the status of a run that of a turn which it cut short."""


class TurnView:
    """One pass over the layers, as far as it is known; members are payloads of its events."""

    __slots__ = (
        "asked", "calls", "candidate", "context", "decided", "escalation", "layers", "number", "scored", "skipped",
        "step", "steps", "verified",
    )  # fmt: skip

    def __init__(self, number: int, started_at: str) -> None:
        self.number = number
        self.step = StepView(f"turn {number}", f"turn {number}")
        """The turn as a row of a view, with its status and times."""
        self.step.status, self.step.started_at = "running", started_at
        self.layers: dict[str, dict[str, Any]] = {}
        """By layer what it wrote."""
        self.skipped: dict[str, str] = {}
        """By skipped layer why."""
        self.asked = Used()
        """What its questions to a model used."""
        self.context: dict[str, Any] = {}
        self.candidate: dict[str, Any] = {}
        self.verified: dict[str, Any] = {}
        self.scored: dict[str, Any] = {}
        self.steps: list[str] = []
        """The steps of its plan."""
        self.calls: list[tuple[str, str]] = []
        """The capabilities that were called or kept from it, each with its status."""
        self.decided: list[dict[str, Any]] = []
        """What was decided of its calls."""
        self.escalation = ""
        """The gate of what the agent itself asked a person for."""

    @property
    def reflection(self) -> dict[str, Any]:
        """What the last layer found; empty before."""
        return object_of(self.layers.get("reflection", {}).get("reflection"))

    def end(self, status: str, at: str) -> None:
        """Close it."""
        self.step.status, self.step.ended_at = status, at

    @property
    def result(self) -> str:
        """The word of a step for how it went, once the last layer is through."""
        if self.reflection.get("goal_met") is True or self.reflection.get("next") == "continue":
            return "done"
        statuses = [status for _, status in self.calls]
        if self.layers.get("policy_gate", {}).get("verdict") in _VETOES or "vetoed" in statuses:
            return "vetoed"
        return "failed"


class TurnFold:
    """Folds the events of a root run to its turns; `sittings` is the fold of its active time."""

    def __init__(self, sittings: ActiveTime) -> None:
        self.turns: list[TurnView] = []
        self.decision: dict[str, Any] = {}
        """The payload of the recorded decision; empty before."""
        self.is_agent = False
        """Whether an agent runs."""
        self.started: dict[str, Any] = {}
        """The payload of the first event of an agent's run."""
        self._sittings = sittings
        self._last = ""
        self._active = 0
        self._began = 0

    @property
    def reply_causes(self) -> list[str]:
        """What the response of the run came from: its turn and template; empty where there is none."""
        if "response" not in object_of(self.decision.get("outputs")) or not self.turns:
            return []
        turn = self.turns[-1]
        template = text_of(turn.candidate.get("template"))
        return [f"{turn.step.id} (reply of {template})" if template else turn.step.id]

    def apply(self, event: Event, payload: dict[str, Any]) -> None:
        """Take the next event of the root run into account."""
        kind = event.event_type
        if kind == "run.started" and payload.get("using") == "agent":
            self.is_agent, self.started = True, payload
        if self.is_agent:
            goes_on = not self.turns or self.turns[-1].step.status == "running"
            self._take(event, kind, payload)
            self._last, self._active = event.timestamp, self._sittings.milliseconds or 0
            if self.turns and goes_on:
                self.turns[-1].step.ms = self._active - self._began

    def _take(self, event: Event, kind: str | None, payload: dict[str, Any]) -> None:
        if kind == "run.terminated" and self.turns and self.turns[-1].step.status == "running":
            status = text_of(payload.get("status"))
            self.turns[-1].end(_ENDED.get(status, "failed"), event.timestamp)
        elif kind == "decision.recorded":
            self.decision = payload
        elif type(turn := payload.get("turn")) is int and kind is not None:
            self._take_layer(self._turn(turn), event, kind, payload)
        elif self.turns:
            self._take_call(self.turns[-1], event, payload)

    def _turn(self, number: int) -> TurnView:
        """The turn of this number. It began with the event before its first one."""
        if not self.turns or self.turns[-1].number != number:
            self.turns.append(TurnView(number, self._last))
            self._began = self._active
        return self.turns[-1]

    def _take_layer(self, turn: TurnView, event: Event, kind: str, payload: dict[str, Any]) -> None:
        if kind == "layer.completed":
            name = text_of(payload.get("layer"))
            turn.layers[name] = object_of(payload.get("writes"))
            if skipped := text_of(payload.get("skipped")):
                turn.skipped[name] = skipped
            turn.step.uses = text_of(turn.layers.get("goals", {}).get("intent"))
            if name == "reflection":
                turn.end(turn.result, event.timestamp)
        elif kind == "context.compiled":
            turn.context = object_of(payload.get("context"))
        elif kind == "model.answered":
            turn.asked = turn.asked.plus(Used.of(object_of(payload.get("usage"))))
        elif kind == "candidate.proposed":
            turn.candidate = payload
        elif kind == "critic.verified":
            turn.verified = payload
        elif kind == "critic.scored":
            turn.scored = payload
        elif kind == "plan.created":
            records = [object_of(record) for record in list_of(payload.get("step_records"))]
            turn.steps = texts_of([record.get("id") for record in records])

    def _take_call(self, turn: TurnView, event: Event, payload: dict[str, Any]) -> None:
        row = row_of(event.event_type)
        status = text_of(payload.get("step_status"))
        if row.closes and status != "skipped" and StepPath(event.step_id or "").is_step:
            turn.calls.append((text_of(payload.get("capability")) or text_of(payload.get("uses")), status))
        elif event.event_type == "policy.decided":
            turn.decided.append(payload)
        elif row.asks and payload.get("kind") == "escalation":
            turn.escalation = text_of(payload.get("gate"))
