"""Parts of a log that a page shows in addition to runs and steps: decisions, approvals, model requests, and the lines
that hold the values of each step."""

from __future__ import annotations

from collections.abc import Iterable

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.step_path import StepPath
from cogcli.declarations.agent_events import ModelAnswered, ModelRequested
from cogcli.declarations.envelope import Event
from cogcli.declarations.event_type import Payload
from cogcli.declarations.events import StepFinished, StepStarted
from cogcli.declarations.governance_events import (
    Approval,
    ApprovalGranted,
    ApprovalRejected,
    ApprovalRequested,
    GateDecided,
    PolicyDecided,
)
from cogcli.declarations.typed_payload import read_payload


class RequestAndAnswer(NamedTuple):
    """A request to a person and its answer. `answer` is empty while the request is open."""

    asked_at: str
    request: Approval
    answered_at: str = ""
    answer: str = ""
    """`granted` or `rejected`."""
    reply: Approval | None = None


class ModelCall(NamedTuple):
    """A request to a model and its answer. The answer is None while it is pending."""

    request: ModelRequested
    line: int
    answer: ModelAnswered | None = None


class PageLog:
    """An index of the log. Lines are counted from 1, as in `events.jsonl`."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.decisions: dict[str, list[tuple[Event, GateDecided | PolicyDecided]]] = {}
        """By step: the decisions of gates, rules and people."""
        self.approvals: dict[str, RequestAndAnswer] = {}
        self.model_calls: dict[str, ModelCall] = {}
        self.begun: dict[tuple[str | None, str], int] = {}
        """The line that contains a step's input, by run and step."""
        self.ended: dict[tuple[str | None, str], int] = {}
        """The line that contains a step's output, attempts and error, by run and step."""
        for line, event in enumerate(events, start=1):
            self._add_event(line, event, read_payload(event))

    def _add_event(self, line: int, event: Event, payload: Payload) -> None:
        match payload:
            case StepStarted():
                self.begun[event.run_id, event.step_id or payload.step_id] = line
            case StepFinished():
                self.ended[event.run_id, event.step_id or payload.step_id] = line
            case GateDecided():
                self._add_decision(event.step_id, event, payload)
            case PolicyDecided():
                self._add_decision(event.step_id or payload.step_id, event, payload)
            case ModelRequested():
                self.model_calls[payload.call_id] = ModelCall(payload, line)
            case ModelAnswered():
                self._answer_model_call(payload)
            case _:
                self._add_approval(event, payload)

    def _add_approval(self, event: Event, payload: Payload) -> None:
        match payload:
            case ApprovalRequested():
                self.approvals[payload.approval_id] = RequestAndAnswer(event.timestamp, payload)
            case ApprovalGranted():
                self._answer_approval(event, payload, "granted")
            case ApprovalRejected():
                self._answer_approval(event, payload, "rejected")

    def _add_decision(
        self, step: str | None, event: Event, payload: GateDecided | PolicyDecided
    ) -> None:
        self.decisions.setdefault(_find_owner(step or ""), []).append((event, payload))

    def _answer_model_call(self, payload: ModelAnswered) -> None:
        if call := self.model_calls.get(payload.call_id):
            self.model_calls[payload.call_id] = call._replace(answer=payload)

    def _answer_approval(self, event: Event, payload: Approval, word: str) -> None:
        if payload.taken_from is not None:
            self.approvals[payload.approval_id] = RequestAndAnswer(event.timestamp, payload)
        if known := self.approvals.get(payload.approval_id):
            self.approvals[payload.approval_id] = known._replace(
                answered_at=event.timestamp, answer=word, reply=payload
            )


def _find_owner(step: str) -> str:
    """Return the step that a decision is about. For a gate it is the guarded step."""
    path = StepPath(step)
    return path.owner if path.in_call else step
