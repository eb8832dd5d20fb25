"""The spans of an agent's turns within a trace: turn > layer > step, and the compiler with its stages
(docs/reference/protocols.md#export).

1. A layer is logged when it is through: it began where what was logged before it ended.
2. The layer `action` begins with the plan, so that the steps hang below it.
3. The stages of the compiler have no times of their own: they stand at its beginning, in order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from cogcli.core.jsonvalue import object_of, text_of
from cogcli.events.envelope import Event
from cogcli.report.trace_spans import CLIENT, Attributes, OpenSpans, TraceSpan, is_count, json_text, some

_ACTION: Final = "action"
_LAST: Final = "reflection"
_Take = Callable[[Event, dict[str, Any], TraceSpan], None]


class TurnSpans:
    """Opens and closes the spans of the turns of a log as its events are read."""

    def __init__(self, spans: OpenSpans, *, io: bool) -> None:
        self._open = spans
        self._io = io
        self._turn: TraceSpan | None = None
        self._number = 0
        self._action: TraceSpan | None = None
        self._since = 0
        self._asked: dict[str, int] = {}
        """By call of a model: when it was asked."""

    def apply(self, event: Event, payload: dict[str, Any], run: TraceSpan, before: int) -> bool:
        """Take an event of a turn into account; False for any other. `before` is the time of the event before it."""
        number, take = payload.get("turn"), self._taken_by(text_of(event.event_type))
        if type(number) is not int or take is None:
            return False
        turn = self._turn
        if turn is None or number != self._number:
            turn = self._begin(event, number, run, before)
        take(event, payload, turn)
        if take not in (self._ask, self._answer):  # a layer begins before what it asks of a model
            self._since = self._open.now
        return True

    def _taken_by(self, kind: str) -> _Take | None:
        """What takes an event of this type; None for one that is not part of a turn's spans."""
        if kind == "layer.completed":
            return self._layer
        if kind == "context.compiled":
            return self._compiled
        if kind == "plan.created":
            return self._act
        if kind == "model.requested":
            return self._ask
        if kind == "model.answered":
            return self._answer
        return self._judge if kind.startswith("critic.") else None

    def _act(self, event: Event, payload: dict[str, Any], turn: TraceSpan) -> None:
        self._action = self._part(event, turn, f"cogcli.layer {_ACTION}", {"cogcli.layer": _ACTION})
        self._action.start = self._open.now
        self._open.around[text_of(event.run_id)] = self._action

    def _judge(self, event: Event, payload: dict[str, Any], turn: TraceSpan) -> None:
        word = "verify" if event.event_type == "critic.verified" else "score"
        turn.attributes |= some({f"cogcli.critic.{word}": text_of(payload.get("verdict"))})

    def _ask(self, event: Event, payload: dict[str, Any], turn: TraceSpan) -> None:
        self._asked[text_of(payload.get("call_id"))] = self._open.now

    def _answer(self, event: Event, payload: dict[str, Any], turn: TraceSpan) -> None:
        reply, usage = object_of(payload.get("reply")), object_of(payload.get("usage"))
        model, finish = text_of(reply.get("model")), text_of(reply.get("finish"))
        counts = {
            "gen_ai.usage.input_tokens": usage.get("tokens_in"),
            "gen_ai.usage.output_tokens": usage.get("tokens_out"),
        }
        attributes: Attributes = some(
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": model,
                "gen_ai.response.id": text_of(reply.get("request_id")),
            }
        )
        attributes |= {name: count for name, count in counts.items() if is_count(count)}
        if finish:
            attributes["gen_ai.response.finish_reasons"] = [finish]
        if self._io:
            attributes["gen_ai.output.messages"] = json_text(reply)
        span = self._open.open(event, turn.id, f"chat {model}".rstrip(), attributes)
        span.kind = CLIENT
        span.start = self._asked.pop(text_of(payload.get("call_id")), self._open.now)
        error = object_of(payload.get("error"))
        span.error, span.message = text_of(error.get("code")), text_of(error.get("message"))
        span.close(self._open.now)

    def _begin(self, event: Event, number: int, run: TraceSpan, before: int) -> TraceSpan:
        """The span of a turn that begins with the event before this one."""
        for span in (self._action, self._turn):
            if span is not None:
                span.cut_off(before)
        attributes: Attributes = {"cogcli.turn": number, "cogcli.run.id": text_of(event.run_id)}
        turn = self._open.open(event, run.id, f"cogcli.turn {number}", attributes, part="/turn")
        turn.start = self._since = max(run.start, before)
        self._turn, self._number, self._action = turn, number, None
        self._open.around[text_of(event.run_id)] = turn
        return turn

    def _part(self, event: Event, turn: TraceSpan, name: str, attributes: Attributes) -> TraceSpan:
        """A part of a turn, from the end of what was before it."""
        span = self._open.open(event, turn.id, name, some({**attributes, "cogcli.turn": self._number}))
        span.start = self._since
        return span

    def _layer(self, event: Event, payload: dict[str, Any], turn: TraceSpan) -> None:
        name = text_of(payload.get("layer")) or "layer"
        attributes = {"cogcli.layer": name, "cogcli.skipped": text_of(payload.get("skipped"))}
        if name == _ACTION and self._action is not None:
            span, self._action = self._action, None
            span.attributes |= some(attributes)
            self._open.around[text_of(event.run_id)] = turn
        else:
            span = self._part(event, turn, f"cogcli.layer {name}", attributes)
        if self._io:
            span.attributes["cogcli.writes"] = json_text(payload.get("writes"))
        span.close(self._open.now)
        if name == _LAST:
            turn.close(self._open.now)

    def _compiled(self, event: Event, payload: dict[str, Any], turn: TraceSpan) -> None:
        hash = text_of(payload.get("context_hash"))
        span = self._part(event, turn, "cogcli.compiler", {"cogcli.context.hash": hash})
        span.close(self._open.now)
        context = object_of(payload.get("context"))
        for stage, digest in object_of(object_of(context.get("context_ledger")).get("stage_hashes")).items():
            told = some({"cogcli.stage": stage, "cogcli.stage.hash": text_of(digest)})
            one = self._open.open(event, span.id, f"cogcli.stage {stage}", told, part=f"/{stage}")
            one.start = span.start
            one.close(span.start)
