"""The model calls of one run: asked once each, recorded, and found again in the log (docs/reference/models.md#calls).

1. `model.requested` is on disk before a request leaves; what is sent is what it holds, so that no masked value leaves.
2. What the log has an outcome of is not asked again. What it has none of was cut off: a run that goes on asks again,
   which is written and charged (`model.resent`).
3. Tool schemas and the arguments of tool calls are JSON texts in the log: a member named like a secret is none there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple

import orjson

from cogcli.agent.context.tokenizer import ESTIMATE
from cogcli.agent.models.port import (
    LanguageModel,
    ModelError,
    ModelReply,
    ModelRequest,
    TokenUsage,
    retry_wait,
)
from cogcli.agent.reply_text import partial_response
from cogcli.base.calls import Cancellation
from cogcli.base.canonical import compact
from cogcli.declarations.agent_events import (
    ModelAnswered,
    ModelRequested,
    ModelResent,
    ModelRetried,
)
from cogcli.declarations.call_records import Usage
from cogcli.declarations.envelope import Event, draft_of
from cogcli.declarations.event_type import Payload
from cogcli.declarations.events import row_of
from cogcli.run.engine.run import RootRun
from cogcli.run.engine.tasks import (
    Cancel,
    Effects,
    Interrupted,
    Next,
    Sleep,
    Spawn,
    Unanswered,
    WorkerCall,
)

OpenModel = Callable[[int], LanguageModel]
"""Gives the model; called with how many requests of the run have an outcome already."""
OnResponse = Callable[[str], None]
"""Is given what can be read of the response while a model writes it, from any thread; with each reply anew."""
Outcome = ModelReply | ModelError


class AnsweredCall(NamedTuple):
    """What came of a model call, and the tokens that it used."""

    outcome: Outcome
    tokens: int


class RecordedModelCall:
    """What a log has of one model call."""

    def __init__(self) -> None:
        self.failures: list[ModelError] = []
        self.answer: Outcome | None = None
        self.resent = 0

    def outcome(self, attempt: int) -> Outcome | None:
        """What came of an attempt; None where the log does not say."""
        return self.failures[attempt - 1] if attempt <= len(self.failures) else self.answer


class ModelCalls:
    """The model calls of a run, in order. `open_model` is called for the first that the log does not answer; None on
    replay. `on_response` makes the model stream where it can."""

    def __init__(
        self,
        root: RootRun,
        open_model: OpenModel | None,
        on_response: OnResponse | None = None,
        *,
        timeout_s: float = 60.0,
    ) -> None:
        self._root, self._open, self._on_response = root, open_model, on_response
        self._timeout_ms = round(timeout_s * 1000)
        self._model: LanguageModel | None = None
        self._recorded: dict[str, RecordedModelCall] = {}
        self._count = 0
        self._known = 0
        """How many outcomes the log has."""
        if root.engine.dispatcher is not None:
            for event in root.engine.sink.history():
                self._take(event)
                self._known += is_outcome(event)

    def ask(self, turn: int, purpose: str, request: ModelRequest) -> Effects:
        """Ask, and give what was `AnsweredCall`. Raises what the log raises, and what ends the run from outside."""
        self._count += 1
        call_id = f"m{self._count}"
        asked = ModelRequested(
            turn=turn, call_id=call_id, purpose=purpose, request=_to_log(request)
        )
        event = self._emit(asked)
        logged = request_of_log(event.payload["request"])._replace(
            call_id=call_id, timeout_ms=self._timeout_ms
        )
        task = yield Spawn(self._steps(turn, logged))
        try:
            while (yield Next()) is not task:  # a step of an earlier plan may have ended unasked
                pass
        except Interrupted:
            yield Cancel(task, force=True)
            raise
        if task.error is not None:
            raise task.error
        return task.result

    def _steps(self, turn: int, request: ModelRequest) -> Effects:
        """The attempts of a call, up to the one whose outcome counts."""
        known, began = self._recorded.get(request.call_id, RecordedModelCall()), time.monotonic()
        was_cut_off = request.call_id in self._recorded and self._root.engine.is_live
        attempt = 1
        while True:
            outcome, is_new = known.outcome(attempt), False
            if outcome is None:
                if was_cut_off:
                    self._emit(ModelResent(call_id=request.call_id))
                    known.resent, was_cut_off = known.resent + 1, False
                outcome, is_new = (yield from self._attempt(request)), True
            wait = (
                retry_wait(outcome, attempt, request.seed)
                if isinstance(outcome, ModelError)
                else None
            )
            if wait is None or not isinstance(outcome, ModelError):
                break
            if is_new:
                yield Sleep(time.monotonic() + wait)
            attempt += 1
            self._note_retry(request.call_id, attempt, outcome, wait)
        sent = SendCounts(attempt, known.resent, round((time.monotonic() - began) * 1000))
        return self._note_answer(turn, request, outcome, sent)

    def _attempt(self, request: ModelRequest) -> Effects:
        """One attempt, by a thread; over a log that is not live it never ends, and what cut it off there comes."""
        cancel, seconds = Cancellation(), request.timeout_ms / 1000
        late = ModelError("timeout", f"no answer within {seconds:g} s")
        log = None if self._root.engine.is_live else self._root.engine.dispatcher
        position = None if log is None else inf

        def perform() -> Outcome:
            if log is not None:
                log.end_unanswered()
            if self._open is None:
                raise Unanswered
            self._model = self._model or self._open(self._known)
            try:
                return self._generate(self._model, request, cancel)
            except ModelError as error:
                return error

        try:
            return (
                yield WorkerCall(
                    perform, time.monotonic() + seconds, lambda: late, cancel.set, position
                )
            )
        except ModelError as error:
            return error

    def _generate(
        self, model: LanguageModel, request: ModelRequest, cancel: Cancellation
    ) -> ModelReply:
        if self._on_response is None or "stream" not in model.describe().features:
            return model.generate(request, cancel)
        pieces, text, shown = model.stream(request, cancel), "", 0
        while True:
            try:
                text += next(pieces).text
            except StopIteration as end:
                self._on_response(partial_response(text))
                reply: ModelReply = end.value
                return reply
            # A long text is read anew for some of its pieces only: for each it would cost its length squared.
            if len(text) - shown > len(text) // 256:
                self._on_response(partial_response(text))
                shown = len(text)

    # -- the log ------------------------------------------------------------------------------------------------------

    def _take(self, event: Event) -> None:
        """Take up what an earlier process recorded."""
        payload = event.payload
        if event.event_type == "model.requested":
            self._recorded[payload["call_id"]] = RecordedModelCall()
        elif event.event_type == "model.retried":
            self._recorded[payload["call_id"]].failures.append(
                ModelError.from_payload(payload["error"])
            )
        elif event.event_type == "model.resent":
            self._recorded[payload["call_id"]].resent += 1
        elif event.event_type == "model.answered":
            self._recorded[payload["call_id"]].answer = outcome_of_log(payload)

    def _note_retry(self, call_id: str, attempt: int, error: ModelError, wait: float) -> None:
        is_cut = error.retry_after is not None and error.retry_after > wait
        retried = ModelRetried(
            call_id=call_id,
            attempt=attempt,
            reason=error.kind,
            wait_ms=round(wait * 1000),
            asked_ms=round((error.retry_after or 0) * 1000) if is_cut else None,
            error=error.to_payload(),
        )
        self._emit(retried)

    def _note_answer(
        self, turn: int, request: ModelRequest, outcome: Outcome, sent: SendCounts
    ) -> AnsweredCall:
        used = outcome.usage if isinstance(outcome, ModelReply) else TokenUsage(0, 0)
        lost = sent.resent * tokens_of(
            request
        )  # of each that was cut off nobody knows what it cost
        usage = Usage(
            llm_calls=sent.attempts + sent.resent,
            tool_calls=0,
            tokens_in=used.tokens_in + lost,
            tokens_out=used.tokens_out,
        )
        answered = ModelAnswered(
            turn=turn,
            call_id=request.call_id,
            request_hash=request.request_hash,
            **_outcome_to_log(outcome),
            usage=usage,
            estimated=used.estimated or lost > 0,
            latency_ms=sent.milliseconds,
        )
        payload = self._emit(answered).payload
        return AnsweredCall(outcome_of_log(payload), usage.tokens_in + usage.tokens_out)

    def _emit(self, payload: Payload) -> Event:
        run = self._root.run
        return run.emit(draft_of(payload, run.state.run_id))


def is_outcome(event: Event) -> bool:
    """Whether an event tells what came of a request."""
    return row_of(event.event_type).answers_request


class SendCounts(NamedTuple):
    """How often a call was sent: its attempts, how often one was sent again by another process, and how long it
    took."""

    attempts: int
    resent: int
    milliseconds: int


def tokens_of(request: ModelRequest) -> int:
    """About how many tokens a request has."""
    texts = [message["content"] for message in request.messages]
    tools = [_text(tool) for tool in request.tools]
    return sum(ESTIMATE.count(text) for text in (*texts, *tools))


def _to_log(request: ModelRequest) -> dict[str, Any]:
    """A request as `model.requested` holds it."""
    payload = request.to_payload()
    del payload["call_id"], payload["timeout_ms"]
    return {
        **payload,
        "tools": _text(payload["tools"]),
        "json_schema": _text(payload["json_schema"]),
    }


def request_of_log(logged: dict[str, Any]) -> ModelRequest:
    """The request that `model.requested` holds, without its limit of time."""
    lists = {"messages": tuple(logged["messages"]), "stop": tuple(logged["stop"])}
    tools, schema = tuple(orjson.loads(logged["tools"])), orjson.loads(logged["json_schema"])
    return ModelRequest(**{**logged, **lists, "tools": tools, "json_schema": schema})


def _outcome_to_log(outcome: Outcome) -> dict[str, Any]:
    if isinstance(outcome, ModelError):
        return {"error": outcome.to_payload()}
    calls = [{**call, "args": _text(call["args"])} for call in outcome.tool_calls]
    return {"reply": {**outcome.to_payload(), "tool_calls": calls}}


def outcome_of_log(payload: dict[str, Any]) -> Outcome:
    """The reply or the error that `model.answered` holds."""
    if payload.get("error") is not None:
        return ModelError.from_payload(payload["error"])
    reply = ModelReply.from_payload(payload["reply"])
    calls = ({**call, "args": orjson.loads(call["args"])} for call in reply.tool_calls)
    return reply._replace(tool_calls=tuple(calls))


def _text(value: Any) -> str:
    return compact(value).decode()
