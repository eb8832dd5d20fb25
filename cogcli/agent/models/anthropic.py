"""Anthropic's messages (docs/reference/models.md#anthropic).

No schema of the answer is sent: the API allows only closed objects, and facts and arguments are open.
"""

from __future__ import annotations

from typing import Final

from cogcli.agent.models.port import ModelRequest
from cogcli.agent.models.provider_api import (
    Outgoing,
    ProviderApi,
    ProviderFailure,
    ProviderReply,
    ReportedError,
    arguments_of,
    sent_names,
    split_system,
)
from cogcli.agent.models.server_events import ServerEvent
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Count, Json

VERSION: Final = "2023-06-01"
_FINISHES: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "filtered",
}
_MAX_BLOCKS: Final = 256


class AnthropicBlock(Record):
    """A block of a message: text, or a call with its arguments."""

    type: str
    text: str
    id: str
    name: str
    input: object = None


class AnthropicUsage(Record):
    """The counts of tokens. Tokens that were read from or written to a cache are counted separately."""

    input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None
    output_tokens: Count | None = None

    @property
    def tokens_in(self) -> int | None:
        """All tokens of the prompt; None without a count."""
        if self.input_tokens is None:
            return None
        cached = (self.cache_creation_input_tokens or 0) + (self.cache_read_input_tokens or 0)
        return self.input_tokens + cached


class AnthropicMessage(Record):
    """A message."""

    content: list[AnthropicBlock] | None = None
    stop_reason: str
    usage: AnthropicUsage
    model: str
    id: str


class AnthropicDelta(Record):
    """A piece of a block, or the last members of a message."""

    text: str
    partial_json: str
    stop_reason: str


class AnthropicEvent(Record):
    """An event of a stream."""

    type: str
    index: int | None = None
    message: AnthropicMessage
    content_block: AnthropicBlock
    delta: AnthropicDelta
    usage: Json
    error: ReportedError


def _request_headers(key: str) -> dict[str, str]:
    return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}


def _request_body(outgoing: Outgoing) -> Json:
    request = outgoing.request
    system, messages = split_system(request)
    return {
        "model": outgoing.model,
        **({"system": system} if system else {}),
        "messages": messages,
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        **({"stop_sequences": list(request.stop)} if request.stop else {}),
        **({"tools": _tool_definitions(request)} if request.tools else {}),
        **({"stream": True} if outgoing.stream else {}),
    }


def _parse_reply(value: object) -> ProviderReply | None:
    message = read_record(AnthropicMessage, value)
    blocks = message.content
    if blocks is None:
        return None
    return ProviderReply(
        text="".join(block.text for block in blocks if block.type == "text"),
        tool_calls=tuple(
            {"id": block.id, "name": block.name, "args": block.input}
            for block in blocks
            if block.type == "tool_use"
        ),
        finish=_FINISHES.get(message.stop_reason, "stop"),
        tokens_in=message.usage.tokens_in,
        tokens_out=message.usage.output_tokens,
        model=message.model,
        id=message.id,
    )


class _EventFold:
    """Folds the events of one streamed message. The provider requires that unknown events are ignored."""

    def __init__(self) -> None:
        self.whole = False
        self.done = False
        self._message: Json = {}
        self._usage: Json = {}
        self._blocks: dict[int, _StreamedBlock] = {}

    def apply(self, event: ServerEvent, value: object) -> str:
        found = read_record(AnthropicEvent, value)
        match found.type or event.type:
            case "error":
                raise ProviderFailure(found.error)
            case "message_start":
                self._message, self._usage = dict(found.message.json), found.message.usage.json
            case "content_block_start":
                if found.index is not None and len(self._blocks) < _MAX_BLOCKS:
                    self._blocks[found.index] = _StreamedBlock(found.content_block, [])
            case "content_block_delta":
                return self._add_piece(found)
            case "message_delta":
                self._usage = {**self._usage, **found.usage}
                self._message |= {**found.delta.json, "usage": self._usage}
                self.whole = bool(found.delta.stop_reason) or self.whole
            case "message_stop":
                self.whole = self.done = True
        return ""

    def _add_piece(self, event: AnthropicEvent) -> str:
        """Add a piece to a block, and return the text that it adds."""
        block = self._blocks.get(-1 if event.index is None else event.index)
        if block is None:
            return ""
        text = event.delta.text
        block.pieces.append(text or event.delta.partial_json)
        return text if block.begun.type == "text" else ""

    @property
    def value(self) -> Json:
        blocks = [block.to_payload() for _, block in sorted(self._blocks.items())]
        return {**self._message, "content": blocks} if self._message else {}


class _StreamedBlock(NamedTuple):
    """A block as it began, and its pieces."""

    begun: AnthropicBlock
    pieces: list[str]

    def to_payload(self) -> Json:
        """Return the complete block. A call without further pieces keeps its initial arguments."""
        pieces = "".join(self.pieces)
        if self.begun.type == "text":
            return {"type": "text", "text": self.begun.text + pieces}
        arguments = arguments_of(pieces) if pieces else self.begun.input
        return {**self.begun.json, "input": arguments}


def _tool_definitions(request: ModelRequest) -> list[Json]:
    names = sent_names(request.tools)
    return [
        {
            "name": names[tool["name"]],
            "description": tool["description"],
            "input_schema": tool["parameters"],
        }
        for tool in request.tools
    ]


ANTHROPIC: Final = ProviderApi(
    path="/v1/messages",
    base_url="https://api.anthropic.com",
    auth_ref="ANTHROPIC_API_KEY",
    features=("stream", "tools"),
    optional={"temperature": "temperature"},
    headers=_request_headers,
    body=_request_body,
    reply=_parse_reply,
    fold=_EventFold,
)
