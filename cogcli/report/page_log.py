"""What a page shows of a log besides its runs and steps: decisions, approvals, questions to a model, and the lines of
the log that hold the values of each step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from cogcli.core.jsonvalue import NOTHING, object_of, text_of
from cogcli.core.step_path import StepPath
from cogcli.declarations.events import row_of
from cogcli.events.envelope import Event
from cogcli.report.run_view import count_in


class AnsweredAsk(NamedTuple):
    """A request to a person and the answer to it; `answer` is empty before there is one."""

    asked_at: str
    request: dict[str, Any]
    answered_at: str = ""
    answer: str = ""
    """`granted` or `rejected`."""
    reply: dict[str, Any] = NOTHING


class ModelCall(NamedTuple):
    """A question to a model and the answer; an empty answer before there is one."""

    turn: int
    request: dict[str, Any]
    line: int
    answer: dict[str, Any] = NOTHING


class PageLog:
    """The log, gone through once. Lines count from 1, as in `events.jsonl`."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.decisions: dict[str, list[tuple[Event, dict[str, Any]]]] = {}
        """By step what gates, rules and persons decided of it."""
        self.approvals: dict[str, AnsweredAsk] = {}
        self.model_calls: dict[str, ModelCall] = {}
        self.begun: dict[tuple[str | None, str], int] = {}
        """By run and step the line that holds its input."""
        self.ended: dict[tuple[str | None, str], int] = {}
        """The same for its output, attempts and error."""
        self.started: dict[str, Any] = {}
        self.terminated: dict[str, Any] = {}
        root: str | None = None
        for line, event in enumerate(events, start=1):
            payload = object_of(event.payload)
            root = event.run_id if line == 1 else root
            if event.phase == "start" and not self.started:
                self.started = payload
            elif event.phase == "terminate" and event.run_id == root:
                self.terminated = payload
            else:
                self._take(line, event, payload)

    def _take(self, line: int, event: Event, payload: dict[str, Any]) -> None:
        row = row_of(event.event_type)
        step = event.step_id or text_of(payload.get("step_id"))
        if event.phase == "act" and step:
            place = (event.run_id, step)
            lines = self.ended if payload.get("step_status") not in ("running", None) else self.begun
            lines[place] = line
        elif row.decides:
            self.decisions.setdefault(_owner(step), []).append((event, payload))
        elif row.asks or row.resolves:
            self._approval(event, payload)
        elif event.event_type == "model.requested":
            turn = count_in(payload, "turn")
            self.model_calls[text_of(payload.get("call_id"))] = ModelCall(turn, payload, line)
        elif event.event_type == "model.answered":
            id = text_of(payload.get("call_id"))
            if id in self.model_calls:
                self.model_calls[id] = self.model_calls[id]._replace(answer=payload)

    def _approval(self, event: Event, payload: dict[str, Any]) -> None:
        id = text_of(payload.get("approval_id"))
        if row_of(event.event_type).asks:
            self.approvals[id] = AnsweredAsk(event.timestamp, payload)
        elif id in self.approvals:
            word = (event.event_type or "").partition(".")[2]
            self.approvals[id] = self.approvals[id]._replace(
                answered_at=event.timestamp, answer=word, reply=payload
            )


def _owner(step: str) -> str:
    """The step whose call was decided about: that of a gate is the step which the gate belongs to."""
    path = StepPath(step)
    return path.owner if path.in_call else step
