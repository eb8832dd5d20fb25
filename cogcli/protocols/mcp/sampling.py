"""Requests of a server to the configured model inside an open call (docs/reference/mcp.md#sampling).

1. Only a service of a trusted file with `sampling: allow` has a relay, and only if a model is configured. No other
   server learns that it could ask.
2. A request belongs to the only call that is open, or to the unfinished result that contains it. One of a gate or a
   probe is refused.
3. The time limit of the call does not stand still, and the end of the call cancels the request.
4. Each request has its notice for the log, also one that is refused. It is made before the call returns: the run may
   end then, and nothing follows its end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from cogcli.base.calls import (
    Cancellation,
    SampleNotice,
    SampleRefused,
    SampleReply,
    SampleRequest,
    TakeSample,
)
from cogcli.base.jsonvalue import items_of
from cogcli.base.step_path import StepPath
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.protocols.mcp.input_forms import SAMPLE
from cogcli.protocols.mcp.open_sample import OpenSample
from cogcli.protocols.mcp.tool_result import InputDemand
from cogcli.protocols.mcp.traffic import McpExchange, McpTraffic, refusal_of

if TYPE_CHECKING:
    from mcp_types import CreateMessageRequestParams, CreateMessageResult, ErrorData

MOST_REQUESTS: Final = 10
"""The most requests to the model in one attempt of a call."""
MOST_MESSAGES: Final = 100
MOST_CHARACTERS: Final = 64 * 1024
"""Characters of all messages of a request."""
MOST_TOKENS: Final = 4096
"""The most tokens of an answer, whatever a server and a pack allow."""
MOST_STOPS: Final = 4
_LONGEST_STOP: Final = 100
_HOTTEST: Final = 2.0
_REFUSED: Final = -1
"""The code with which the protocol refuses a request to the model."""
_INVALID: Final = -32602
_FAILED: Final = -32603
_CODES: Final = {"budget.exceeded": _REFUSED, "call.rejected": _REFUSED, "request.size": _INVALID}
"""By our code the one of the protocol. Any other is a failure of the model."""
_STOP_REASONS: Final = {"stop": "endTurn", "length": "maxTokens"}


class SamplingRelay:
    """Passes the requests of one connection to the configured model, and the answers back."""

    def __init__(
        self,
        take: TakeSample,
        traffic: McpTraffic,
        mask: Callable[[Json], Json],
        note: Callable[[SampleNotice], None],
    ) -> None:
        """`mask` removes the secrets from what the server and the model write."""
        self._take = take
        self._traffic = traffic
        self._mask = mask
        self._note = note

    async def __call__(
        self, context: object, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        """Return the answer to a request, or its refusal. The SDK calls this."""
        from mcp_types import ErrorData

        exchange = self._traffic.only_open
        if exchange is None:
            self._traffic.note(refusal_of(SAMPLE))
            text = "the request belongs to no one call"
            return ErrorData(code=_REFUSED, message=text, data={"code": "call.rejected"})
        try:
            return _result_of(await self._sample(exchange, params))
        except SampleRefused as refused:
            code = _CODES.get(refused.code, _FAILED)
            return ErrorData(code=code, message=refused.message, data={"code": refused.code})

    async def answer_all(
        self, exchange: McpExchange, result: Json
    ) -> dict[str, CreateMessageResult] | None:
        """Return the answers to the requests of an unfinished result, by their names. None if it is finished, if it
        asks for anything but the model, or if a request is refused.
        """
        from mcp_types import CreateMessageRequest, InputRequiredResult

        if read_record(InputDemand, result).methods != [SAMPLE]:
            return None
        try:
            asked = InputRequiredResult.model_validate(result).input_requests or {}
        except ValueError:  # it has not the form of the protocol
            return None
        if len(asked) > MOST_REQUESTS:
            return None
        answers = {}
        for name, request in asked.items():
            if not isinstance(request, CreateMessageRequest):
                return None
            try:
                answers[name] = _result_of(await self._sample(exchange, request.params))
            except SampleRefused as refused:
                self._traffic.note(f"{refusal_of(SAMPLE)}: {refused.message}")
                return None
        return answers

    async def _sample(
        self, exchange: McpExchange, params: CreateMessageRequestParams
    ) -> SampleReply:
        """Return the answer of the model, and note the request for the log. Raise SampleRefused."""
        if len(exchange.sampling) >= MOST_REQUESTS:  # no notice: a server could fill the log
            text = f"a call may ask the model {MOST_REQUESTS} times"
            raise SampleRefused("call.rejected", text)
        sample = self._open_sample(exchange)
        try:
            if exchange.has_ended:  # asked late: the end of a call goes through the list
                raise SampleRefused("call.timeout", "the call has ended")
            _require_call(exchange)
            request = _read_request(self._mask(params.model_dump(by_alias=True, mode="json")))
            sample.request = request._replace(seconds=_seconds_left(exchange))
            reply = await _on_thread(self._take, sample.request, sample.cancel)
            reply = reply._replace(text=self._mask({"text": reply.text})["text"])
            sample.finish(reply)
            return reply
        except SampleRefused as error:
            sample.finish(error.reply, error.code, error.message)
            raise
        finally:
            sample.end_with_call(0.0)

    def _open_sample(self, exchange: McpExchange) -> OpenSample:
        """Return a new request of a call, which makes its notice when it ends."""
        number, began = len(exchange.sampling) + 1, time.monotonic()

        def note(reply: SampleReply | None, code: str, text: str) -> None:
            notice = SampleNotice(
                exchange.run_id, exchange.step_id, exchange.capability_id, exchange.binding_id,
                exchange.service_id, exchange.attempt, number, sample.request, reply,
                max(0, round((time.monotonic() - began) * 1000)), code, text,
            )  # fmt: skip
            exchange.samples.append(notice)
            self._note(notice)

        sample = OpenSample(note)
        exchange.sampling.append(sample)
        return sample


async def _on_thread(take: TakeSample, request: SampleRequest, cancel: Cancellation) -> SampleReply:
    """Return the answer of the model, for which a thread waits. If the call ends first, the request is cancelled."""
    try:
        return await asyncio.to_thread(take, request, cancel)
    except asyncio.CancelledError:
        cancel.set()
        raise


def _require_call(exchange: McpExchange) -> None:
    """Raise SampleRefused for a request of a gate or a probe: what a model answers decides nothing there."""
    if StepPath(exchange.step_id).in_call:
        raise SampleRefused("call.rejected", "a gate or a probe may not ask the model")


def _seconds_left(exchange: McpExchange) -> float:
    """Return the seconds until the time limit of the call."""
    if exchange.scope is None:
        return 0.0
    return max(0.0, exchange.scope.deadline - asyncio.get_running_loop().time())


class _SamplingParams(Record):
    """The parameters of a request to the model on the wire. The SDK checked them."""

    messages: list[Json]
    maxTokens: int
    systemPrompt: str | None = None
    stopSequences: list[str] | None = None
    temperature: float | None = None
    tools: list[Json] | None = None


def _read_request(params: Json) -> SampleRequest:
    """Return a request of a server, within the limits. Raise SampleRefused `request.size`, `call.rejected`."""
    asked = _SamplingParams.of(params)
    if asked.tools:
        raise SampleRefused("call.rejected", "the model is asked without tools")
    written = asked.messages
    if not 0 < len(written) <= MOST_MESSAGES:
        text = f"found {len(written):,} messages, expected 1 to {MOST_MESSAGES}"
        raise SampleRefused("request.size", text)
    messages = [(each["role"], _text_of(each["content"])) for each in written]
    if asked.systemPrompt:
        messages.insert(0, ("system", asked.systemPrompt))
    stops = tuple(asked.stopSequences or ())
    size = sum(len(text) for _, text in messages)
    if size > MOST_CHARACTERS:
        text = f"the messages have {size:,} characters, at most {MOST_CHARACTERS:,} are allowed"
        raise SampleRefused("request.size", text)
    if len(stops) > MOST_STOPS or any(len(each) > _LONGEST_STOP for each in stops):
        raise SampleRefused("request.size", f"more than {MOST_STOPS} or too long stop sequences")
    if asked.maxTokens < 1:
        raise SampleRefused("request.size", "found maxTokens below 1")
    temperature = min(max(asked.temperature or 0.0, 0.0), _HOTTEST)
    return SampleRequest(tuple(messages), min(asked.maxTokens, MOST_TOKENS), temperature, stops)


def _text_of(content: Json | list[Json]) -> str:
    """Return the text of a message. Raise SampleRefused `call.rejected` for any other content."""
    blocks: list[Json] = items_of(content)
    if any(block["type"] != "text" for block in blocks):
        raise SampleRefused("call.rejected", "the model is asked with texts alone")
    return "\n".join(block["text"] for block in blocks)


def _result_of(reply: SampleReply) -> CreateMessageResult:
    from mcp_types import CreateMessageResult, TextContent

    return CreateMessageResult(
        role="assistant",
        content=TextContent(type="text", text=reply.text),
        model=reply.model,
        stop_reason=_STOP_REASONS.get(reply.finish, reply.finish),
    )
