"""OpenAI's chat completions, which many servers speak (docs/reference/models.md#openai)."""

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
    error_in,
    object_at,
    objects_in,
    sent_names,
    split_system,
)
from cogcli.agent.models.server_events import ServerEvent
from cogcli.base.jsonvalue import text_of

DONE: Final = "[DONE]"
_FINISHES: Final = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "filtered",
}
_MOST_CALLS: Final = 128


def _headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def _body(outgoing: Outgoing) -> dict[str, Any]:
    request = outgoing.request
    system, messages = split_system(request)
    # The provider's newer models know only the longer name, other servers only the shorter one.
    limit = "max_completion_tokens" if outgoing.own else "max_tokens"
    return {
        "model": outgoing.model,
        "messages": [*([{"role": "system", "content": system}] if system else []), *messages],
        limit: request.max_tokens,
        "temperature": request.temperature,
        "seed": request.seed,
        **({"stop": list(request.stop)} if request.stop else {}),
        **({"tools": _tools(request)} if request.tools else {}),
        **(
            {} if request.json_schema is None else {"response_format": _format(request.json_schema)}
        ),
        **({"stream": True, "stream_options": {"include_usage": True}} if outgoing.stream else {}),
    }


def _reply(value: dict[str, Any]) -> ProviderReply | None:
    choice = object_at(value, "choices", 0)
    message, usage = choice.get("message"), object_at(value, "usage")
    if not isinstance(message, dict):
        return None
    calls = tuple(
        {
            "id": text_of(call.get("id")),
            "name": text_of(object_at(call, "function").get("name")),
            "args": arguments_of(text_of(object_at(call, "function").get("arguments"))),
        }
        for call in objects_in(message.get("tool_calls"))
    )
    reason = _FINISHES.get(text_of(choice.get("finish_reason")), "stop")
    return ProviderReply(
        text=content_text(message.get("content")),
        tool_calls=calls,
        # Servers name `stop` for calls, too.
        finish="tool_calls" if calls and reason == "stop" else reason,
        tokens_in=count_of(usage.get("prompt_tokens")),
        tokens_out=count_of(usage.get("completion_tokens")),
        model=text_of(value.get("model")),
        id=text_of(value.get("id")),
    )


class _ChunkFold:
    """The chunks of one streamed completion. Calls come in pieces, told apart by `index`."""

    def __init__(self) -> None:
        self.whole = False
        self.done = False
        self._head: dict[str, Any] = {}
        self._text: list[str] = []
        self._calls: dict[int, dict[str, str]] = {}
        self._finish = ""

    def apply(self, event: ServerEvent, value: Any) -> str:
        if event.data == DONE:
            self.whole = self.done = True
            return ""
        if error := error_in(value):
            raise ProviderFailure(error)
        for name in ("id", "model", "usage"):
            if object_at(value).get(name):
                self._head[name] = value[name]
        choice = object_at(value, "choices", 0)
        delta = object_at(choice, "delta")
        for piece in objects_in(delta.get("tool_calls")):
            self._add_call(piece)
        if finish := text_of(choice.get("finish_reason")):
            self._finish, self.whole = finish, True
        text = content_text(delta.get("content"))
        self._text.append(text)
        return text

    def _add_call(self, piece: dict[str, Any]) -> None:
        index = piece.get("index", len(self._calls))
        if type(index) is not int or (index not in self._calls and len(self._calls) >= _MOST_CALLS):
            return
        call = self._calls.setdefault(index, {"id": "", "name": "", "arguments": ""})
        function = object_at(piece, "function")
        call["id"] = call["id"] or text_of(piece.get("id"))
        call["name"] = call["name"] or text_of(function.get("name"))
        call["arguments"] += text_of(function.get("arguments"))

    @property
    def value(self) -> dict[str, Any]:
        calls = [
            {"id": call["id"], "function": {"name": call["name"], "arguments": call["arguments"]}}
            for _, call in sorted(self._calls.items())
        ]
        message = {"content": "".join(self._text), "tool_calls": calls}
        return {**self._head, "choices": [{"message": message, "finish_reason": self._finish}]}


def _tools(request: ModelRequest) -> list[dict[str, Any]]:
    names = sent_names(request.tools)
    return [
        {"type": "function", "function": {**tool, "name": names[tool["name"]]}}
        for tool in request.tools
    ]


def _format(schema: dict[str, Any]) -> dict[str, Any]:
    """Not `strict`: that allows a part of JSON Schema only, and a reply is checked here in any case."""
    return {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": schema, "strict": False},
    }


OPENAI: Final = ProviderApi(
    path="/chat/completions",
    base_url="https://api.openai.com/v1",
    auth_ref="OPENAI_API_KEY",
    features=("stream", "tools", "json", "json_schema", "seed"),
    optional={
        "temperature": "temperature",
        "seed": "seed",
        # Some servers take tools or a schema, not both.
        "response_format": "response_format|json_schema|grammar",
        "stream_options": "stream_options|include_usage",
    },
    headers=_headers,
    body=_body,
    reply=_reply,
    fold=_ChunkFold,
)
