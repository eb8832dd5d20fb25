"""Anthropic's messages (docs/reference/models.md#anthropic).

A schema of the answer is not asked for: there it allows only closed objects, which facts and arguments are not.
"""

from __future__ import annotations

from typing import Any, Final

from cogcli.agent.models.port import ModelRequest
from cogcli.agent.models.provider_api import (
    Outgoing,
    ProviderApi,
    ProviderFailure,
    ProviderReply,
    arguments_of,
    content_text,
    count_of,
    object_at,
    objects_in,
    sent_names,
    split_system,
)
from cogcli.agent.models.server_events import ServerEvent
from cogcli.base.jsonvalue import text_of

VERSION: Final = "2023-06-01"
_FINISHES: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "filtered",
}
_COUNTS: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_MOST_BLOCKS: Final = 256


def _headers(key: str) -> dict[str, str]:
    return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}


def _body(outgoing: Outgoing) -> dict[str, Any]:
    request = outgoing.request
    system, messages = split_system(request)
    return {
        "model": outgoing.model,
        **({"system": system} if system else {}),
        "messages": messages,
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        **({"stop_sequences": list(request.stop)} if request.stop else {}),
        **({"tools": _tools(request)} if request.tools else {}),
        **({"stream": True} if outgoing.stream else {}),
    }


def _reply(value: dict[str, Any]) -> ProviderReply | None:
    if not isinstance(value.get("content"), list):
        return None
    blocks, usage = objects_in(value["content"]), object_at(value, "usage")
    counts = [count_of(usage.get(name)) for name in _COUNTS]
    return ProviderReply(
        text=content_text([block for block in blocks if block.get("type") == "text"]),
        tool_calls=tuple(
            {
                "id": text_of(each.get("id")),
                "name": text_of(each.get("name")),
                "args": each.get("input"),
            }
            for each in blocks
            if each.get("type") == "tool_use"
        ),
        finish=_FINISHES.get(text_of(value.get("stop_reason")), "stop"),
        # What was read from or written to a cache is counted apart.
        tokens_in=None if counts[0] is None else sum(filter(None, counts)),
        tokens_out=count_of(usage.get("output_tokens")),
        model=text_of(value.get("model")),
        id=text_of(value.get("id")),
    )


class _EventFold:
    """The events of one streamed message. Unknown ones are passed over, as the provider asks for."""

    def __init__(self) -> None:
        self.whole = False
        self.done = False
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}

    def apply(self, event: ServerEvent, value: Any) -> str:
        value = object_at(value)
        kind = value.get("type") or event.type
        if kind == "error":
            raise ProviderFailure(object_at(value, "error"))
        if kind == "message_start":
            self._message = dict(object_at(value, "message"))
        elif kind == "content_block_start":
            self._start(value)
        elif kind == "content_block_delta":
            return self._add(value)
        elif kind == "message_delta":
            usage = {**object_at(self._message, "usage"), **object_at(value, "usage")}
            self._message |= {**object_at(value, "delta"), "usage": usage}
            self.whole = bool(self._message.get("stop_reason"))
        elif kind == "message_stop":
            self.whole = self.done = True
        return ""

    def _start(self, value: dict[str, Any]) -> None:
        index = value.get("index")
        if type(index) is int and len(self._blocks) < _MOST_BLOCKS:
            self._blocks[index] = {**object_at(value, "content_block"), "pieces": []}

    def _add(self, value: dict[str, Any]) -> str:
        """A piece of a block: what it adds to the text."""
        delta, index = object_at(value, "delta"), value.get("index")
        block = self._blocks.get(index) if type(index) is int else None
        if block is None:
            return ""
        text = text_of(delta.get("text"))
        block["pieces"].append(text or text_of(delta.get("partial_json")))
        return text if block.get("type") == "text" else ""

    @property
    def value(self) -> dict[str, Any]:
        blocks = [_joined(block) for _, block in sorted(self._blocks.items())]
        return {**self._message, "content": blocks} if self._message else {}


def _joined(block: dict[str, Any]) -> dict[str, Any]:
    """A block with its pieces put together. A call without pieces has the arguments that it began with."""
    pieces = "".join(block["pieces"])
    if block.get("type") == "text":
        return {"type": "text", "text": text_of(block.get("text")) + pieces}
    return {**block, "input": arguments_of(pieces) if pieces else block.get("input")}


def _tools(request: ModelRequest) -> list[dict[str, Any]]:
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
    headers=_headers,
    body=_body,
    reply=_reply,
    fold=_EventFold,
)
