"""The spans of an agent's turns within a trace: turn > layer > step, and the compiler with its stages
(docs/reference/protocols.md#export).

1. A layer is logged when it ends: it started at the end of the part logged before it.
2. The layer `action` starts with the plan, so that the steps are below it.
3. The stages of the compiler have no times of their own: they are placed at its start, in order.
"""

from __future__ import annotations

from typing import Final

from cogcli.declarations.agent_events import (
    ContextCompiled,
    LayerCompleted,
    ModelAnswered,
    ModelRequested,
    PlanJudged,
    ResultJudged,
)
from cogcli.declarations.call_records import StepError
from cogcli.declarations.envelope import Event
from cogcli.declarations.event_type import Payload
from cogcli.declarations.events import PlanCreated
from cogcli.declarations.layer_records import ContextDocument, RecordedReply
from cogcli.declarations.reading import read_record
from cogcli.report.trace_spans import (
    CLIENT,
    Attributes,
    OpenSpans,
    TraceSpan,
    drop_empty,
    json_text,
)

_ACTION: Final = "action"
_LAST: Final = "reflection"
_PARTS: Final = (
    LayerCompleted,
    ContextCompiled,
    PlanCreated,
    ModelRequested,
    ModelAnswered,
    PlanJudged,
    ResultJudged,
)
"""The events that belong to a turn's spans."""


class TurnSpans:
    """Opens and closes the spans of the turns of a log as its events are read."""

    def __init__(self, spans: OpenSpans, *, io: bool) -> None:
        self._open = spans
        self._io = io
        self._turn: TraceSpan | None = None
        self._number = 0
        self._action: TraceSpan | None = None
        self._since = 0
        self._requested: dict[str, int] = {}
        """By model call: the time of the request."""

    def apply(self, event: Event, payload: Payload, run: TraceSpan, previous_time: int) -> bool:
        """Add an event of a turn. Return False for any other event. `previous_time` is the time of the
        previous event."""
        number = getattr(payload, "turn", None)
        if type(number) is not int or not isinstance(payload, _PARTS):
            return False
        turn = self._turn
        if turn is None or number != self._number:
            turn = self._begin_turn(event, number, run, previous_time)
        self._apply_part(event, payload, turn)
        # A layer starts before its model requests.
        if not isinstance(payload, ModelRequested | ModelAnswered):
            self._since = self._open.now
        return True

    def _apply_part(self, event: Event, payload: Payload, turn: TraceSpan) -> None:
        match payload:
            case LayerCompleted():
                self._add_layer(event, payload, turn)
            case ContextCompiled():
                self._add_compiler(event, payload, turn)
            case PlanCreated():
                self._open_action(event, turn)
            case ModelRequested():
                self._requested[payload.call_id] = self._open.now
            case ModelAnswered():
                self._add_answer(event, payload, turn)
            case PlanJudged():
                turn.attributes |= drop_empty({"cogcli.critic.verify": payload.verdict})
            case ResultJudged():
                turn.attributes |= drop_empty({"cogcli.critic.score": payload.verdict})

    def _open_action(self, event: Event, turn: TraceSpan) -> None:
        self._action = self._open_part(
            event, turn, f"cogcli.layer {_ACTION}", {"cogcli.layer": _ACTION}
        )
        self._action.start = self._open.now
        self._open.enclosing[event.run_id or ""] = self._action

    def _add_answer(self, event: Event, payload: ModelAnswered, turn: TraceSpan) -> None:
        reply = read_record(RecordedReply, payload.reply)
        attributes: Attributes = drop_empty(
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": reply.model,
                "gen_ai.response.id": reply.request_id,
            }
        )
        attributes["gen_ai.usage.input_tokens"] = payload.usage.tokens_in
        attributes["gen_ai.usage.output_tokens"] = payload.usage.tokens_out
        if reply.finish:
            attributes["gen_ai.response.finish_reasons"] = [reply.finish]
        if self._io:
            attributes["gen_ai.output.messages"] = json_text(payload.reply or {})
        span = self._open.open(event, turn.id, f"chat {reply.model}".rstrip(), attributes)
        span.kind = CLIENT
        span.start = self._requested.pop(payload.call_id, self._open.now)
        error = read_record(StepError, payload.error)
        span.error, span.message = error.code, error.message
        span.close(self._open.now)

    def _begin_turn(
        self, event: Event, number: int, run: TraceSpan, previous_time: int
    ) -> TraceSpan:
        """Open and return the span of a turn. It starts at the time of the previous event."""
        for span in (self._action, self._turn):
            if span is not None:
                span.close_incomplete(previous_time)
        attributes: Attributes = {"cogcli.turn": number, "cogcli.run.id": event.run_id or ""}
        turn = self._open.open(event, run.id, f"cogcli.turn {number}", attributes, part="/turn")
        turn.start = self._since = max(run.start, previous_time)
        self._turn, self._number, self._action = turn, number, None
        self._open.enclosing[event.run_id or ""] = turn
        return turn

    def _open_part(
        self, event: Event, turn: TraceSpan, name: str, attributes: Attributes
    ) -> TraceSpan:
        """Open and return the span of a part of a turn. It starts at the end of the previous
        part."""
        span = self._open.open(
            event, turn.id, name, drop_empty({**attributes, "cogcli.turn": self._number})
        )
        span.start = self._since
        return span

    def _add_layer(self, event: Event, payload: LayerCompleted, turn: TraceSpan) -> None:
        name = payload.layer or "layer"
        attributes = {"cogcli.layer": name, "cogcli.skipped": payload.skipped}
        if name == _ACTION and self._action is not None:
            span, self._action = self._action, None
            span.attributes |= drop_empty(attributes)
            self._open.enclosing[event.run_id or ""] = turn
        else:
            span = self._open_part(event, turn, f"cogcli.layer {name}", attributes)
        if self._io:
            span.attributes["cogcli.writes"] = json_text(payload.writes)
        span.close(self._open.now)
        if name == _LAST:
            turn.close(self._open.now)

    def _add_compiler(self, event: Event, payload: ContextCompiled, turn: TraceSpan) -> None:
        span = self._open_part(
            event, turn, "cogcli.compiler", {"cogcli.agent.context.hash": payload.context_hash}
        )
        span.close(self._open.now)
        context = read_record(ContextDocument, payload.context)
        for stage, digest in context.context_ledger.stage_hashes.items():
            attributes = drop_empty({"cogcli.stage": stage, "cogcli.stage.hash": digest})
            one = self._open.open(
                event, span.id, f"cogcli.stage {stage}", attributes, part=f"/{stage}"
            )
            one.start = span.start
            one.close(span.start)
