"""The model calls of one run: sent once each, recorded, and answered from the log (docs/reference/models.md#calls).

1. `model.requested` is on disk before its request leaves. The request is sent as logged, without masked values.
2. A request with an outcome in the log is not sent again. A request without one was interrupted: a resumed run sends it
   again, and the log and the budget count that (`model.resent`).
3. Tool schemas and the arguments of tool calls are JSON texts in the log, so that no member of theirs is masked because
   of its name.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf

import orjson

from cogcli.agent.context.tokenizer import ESTIMATE
from cogcli.agent.models.port import (
    LanguageModel,
    ModelError,
    ModelOutcome,
    ModelReply,
    ModelRequest,
    count_request,
    retry_wait,
)
from cogcli.agent.reply_text import partial_response
from cogcli.base.calls import Cancellation
from cogcli.base.canonical import compact
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.agent_events import (
    ModelAnswered,
    ModelRequested,
    ModelResent,
    ModelRetried,
)
from cogcli.declarations.call_records import Usage
from cogcli.declarations.envelope import Event, draft_of, row_of
from cogcli.declarations.event_type import Payload
from cogcli.declarations.typed_payload import recorded_payload
from cogcli.declarations.value_types import Json
from cogcli.run.engine.effects import (
    CallNeverAnswered,
    Cancel,
    Effects,
    Interrupted,
    Next,
    Sleep,
    Spawn,
    WorkerCall,
)
from cogcli.run.engine.run import RootRun

OpenModel = Callable[[int], LanguageModel]
"""Opens the model, given the number of requests of the run with an outcome."""
OnResponse = Callable[[str], None]
"""Takes the readable part of a response while a model writes it, from any thread."""


class AnsweredCall(NamedTuple):
    """The outcome of a model call, and its tokens."""

    outcome: ModelOutcome
    usage: Usage

    @property
    def tokens(self) -> int:
        """The tokens of request and reply."""
        return self.usage.tokens_in + self.usage.tokens_out


class RecordedModelCall:
    """One model call in a log."""

    def __init__(self) -> None:
        self.failures: list[ModelError] = []
        self.answer: ModelOutcome | None = None
        self.resent = 0

    def outcome(self, attempt: int) -> ModelOutcome | None:
        """Return the outcome of an attempt, or None if the log has none."""
        if attempt <= len(self.failures):
            return ModelOutcome(error=self.failures[attempt - 1])
        return self.answer


class ModelCalls:
    """The model calls of a run, in order. `open_model` is called for the first one without an outcome in the log, and
    is None on replay. With `on_response` the model streams if it can."""

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
        """The number of outcomes in the log."""
        if root.engine.dispatcher is not None:
            for event in root.engine.sink.history():
                self._store_recorded(event)
                self._known += is_outcome(event)

    def ask(self, turn: int, purpose: str, request: ModelRequest) -> Effects:
        """Send a request and return its `AnsweredCall`. Raise the errors of the log, and those that end the run."""
        self._count += 1
        call_id = f"m{self._count}"
        requested = ModelRequested(
            turn=turn, call_id=call_id, purpose=purpose, request=_logged_request(request)
        )
        event = self._emit_event(requested)
        logged = request_of_log(event.payload["request"])._replace(
            call_id=call_id, timeout_ms=self._timeout_ms
        )
        task = yield Spawn(self._make_attempts(turn, logged))
        try:
            while (yield Next()) is not task:  # a step of an earlier plan may end meanwhile
                pass
        except Interrupted:
            yield Cancel(task, force=True)
            raise
        if task.error is not None:
            raise task.error
        return task.result

    def _make_attempts(self, turn: int, request: ModelRequest) -> Effects:
        """Make attempts of a call until one succeeds or no further one is allowed."""
        known, began = self._recorded.get(request.call_id, RecordedModelCall()), time.monotonic()
        was_cut_off = request.call_id in self._recorded and self._root.engine.is_live
        attempt = 1
        while True:
            outcome, is_new = known.outcome(attempt), False
            if outcome is None:
                if was_cut_off:
                    self._emit_event(ModelResent(call_id=request.call_id))
                    known.resent, was_cut_off = known.resent + 1, False
                outcome, is_new = (yield from self._make_attempt(request)), True
            if outcome.error is None:
                break
            wait = retry_wait(outcome.error, attempt, request.seed)
            if wait is None:
                break
            if is_new:
                yield Sleep(time.monotonic() + wait)
            attempt += 1
            self._record_retry(request.call_id, attempt, outcome.error, wait)
        sent = SendCounts(attempt, known.resent, round((time.monotonic() - began) * 1000))
        return self._record_answer(turn, request, outcome, sent)

    def _make_attempt(self, request: ModelRequest) -> Effects:
        """Make one attempt in a thread. In a replay the attempt never ends, since its recorded interruption follows."""
        cancel, seconds = Cancellation(), request.timeout_ms / 1000
        late = ModelError("timeout", f"no answer within {seconds:g} s")
        log = None if self._root.engine.is_live else self._root.engine.dispatcher
        position = None if log is None else inf

        def perform() -> ModelOutcome:
            if log is not None:
                log.end_unanswered()
            if self._open is None:
                raise CallNeverAnswered
            self._model = self._model or self._open(self._known)
            try:
                return ModelOutcome(reply=self._generate_reply(self._model, request, cancel))
            except ModelError as error:
                return ModelOutcome(error=error)

        try:
            return (
                yield WorkerCall(
                    perform, time.monotonic() + seconds, lambda: late, cancel.set, position
                )
            )
        except ModelError as error:
            return ModelOutcome(error=error)

    def _generate_reply(
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
            # A long text is parsed again only for some of its pieces: for each it would take quadratic time.
            if len(text) - shown > len(text) // 256:
                self._on_response(partial_response(text))
                shown = len(text)

    # -- the log ------------------------------------------------------------------------------------------------------

    def _store_recorded(self, event: Event) -> None:
        """Store an event of a model call that an earlier process recorded."""
        match recorded_payload(event):
            case ModelRequested() as requested:
                self._recorded[requested.call_id] = RecordedModelCall()
            case ModelRetried() as retried:
                failure = ModelError.from_payload(retried.error)
                self._recorded[retried.call_id].failures.append(failure)
            case ModelResent() as resent:
                self._recorded[resent.call_id].resent += 1
            case ModelAnswered() as answered:
                self._recorded[answered.call_id].answer = outcome_of_log(answered)

    def _record_retry(self, call_id: str, attempt: int, error: ModelError, wait: float) -> None:
        is_cut = error.retry_after is not None and error.retry_after > wait
        retried = ModelRetried(
            call_id=call_id,
            attempt=attempt,
            reason=error.kind,
            wait_ms=round(wait * 1000),
            asked_ms=round((error.retry_after or 0) * 1000) if is_cut else None,
            error=error.to_payload(),
        )
        self._emit_event(retried)

    def _record_answer(
        self, turn: int, request: ModelRequest, outcome: ModelOutcome, send_counts: SendCounts
    ) -> AnsweredCall:
        used = outcome.usage
        lost = send_counts.resent * tokens_of(
            request
        )  # the cost of each interrupted call is not known
        usage = Usage(
            llm_calls=send_counts.attempts + send_counts.resent,
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
            latency_ms=send_counts.milliseconds,
        )
        logged = ModelAnswered.of(self._emit_event(answered).payload)
        return AnsweredCall(outcome_of_log(logged), usage)

    def _emit_event(self, payload: Payload) -> Event:
        run = self._root.run
        return run.emit(draft_of(payload, run.state.run_id))


def is_outcome(event: Event) -> bool:
    """Return whether an event records the outcome of a request."""
    return row_of(event.event_type).answers_request


class SendCounts(NamedTuple):
    """The attempts of a call, the number of them that another process sent again, and the duration."""

    attempts: int
    resent: int
    milliseconds: int


def tokens_of(request: ModelRequest) -> int:
    """Return the estimated tokens of a request."""
    return count_request(ESTIMATE.count, request)


def _logged_request(request: ModelRequest) -> Json:
    """Return a request for `model.requested`."""
    payload = request.to_payload()
    del payload["call_id"], payload["timeout_ms"]
    return {
        **payload,
        "tools": _text_or_empty(payload["tools"]),
        "json_schema": _text_or_empty(payload["json_schema"]),
    }


def request_of_log(logged_request: Json) -> ModelRequest:
    """Return the request in `model.requested`, without its limit of time."""
    lists = {"messages": tuple(logged_request["messages"]), "stop": tuple(logged_request["stop"])}
    tools, schema = (
        tuple(orjson.loads(logged_request["tools"])),
        orjson.loads(logged_request["json_schema"]),
    )
    return ModelRequest(**{**logged_request, **lists, "tools": tools, "json_schema": schema})


def _outcome_to_log(outcome: ModelOutcome) -> Json:
    if outcome.reply is None:
        return outcome.to_payload()
    calls = [{**call, "args": _text_or_empty(call["args"])} for call in outcome.reply.tool_calls]
    return {"reply": {**outcome.reply.to_payload(), "tool_calls": calls}}


def outcome_of_log(answer: ModelAnswered) -> ModelOutcome:
    """Return the reply or the error in `model.answered`."""
    if answer.error is not None:
        return ModelOutcome(error=ModelError.from_payload(answer.error))
    reply = ModelReply.from_payload(answer.reply or {})
    calls = ({**call, "args": orjson.loads(call["args"])} for call in reply.tool_calls)
    return ModelOutcome(reply=reply._replace(tool_calls=tuple(calls)))


def _text_or_empty(value: object) -> str:
    return compact(value).decode()
