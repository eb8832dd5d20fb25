"""OpenAI's chat completions, which many servers offer (docs/reference/models.md#openai)."""

from __future__ import annotations

from typing import Final

from cogcli.agent.models.port import ModelRequest
from cogcli.agent.models.provider_api import (
    ContentPart,
    Outgoing,
    ProviderApi,
    ProviderFailure,
    ProviderReply,
    arguments_of,
    content_text,
    parse_error,
    sent_names,
    split_system,
)
from cogcli.agent.models.server_events import ServerEvent
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Count, Json

DONE: Final = "[DONE]"
_FINISHES: Final = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "filtered",
}
_MAX_CALLS: Final = 128


class OpenAiFunction(Record):
    """The function of a call, with its arguments as JSON text."""

    name: str
    arguments: str


class OpenAiCall(Record):
    """A call, or a piece of one in a stream."""

    id: str
    index: int | None = None
    function: OpenAiFunction


class OpenAiMessage(Record):
    """The message of a choice, or a piece of it in a stream."""

    content: str | list[ContentPart] | None = None
    tool_calls: list[OpenAiCall]


class OpenAiChoice(Record):
    """One answer; a stream has it in pieces, as `delta`."""

    message: OpenAiMessage | None = None
    delta: OpenAiMessage
    finish_reason: str


class OpenAiUsage(Record):
    """The counts of tokens."""

    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None


class OpenAiCompletion(Record):
    """A completion, or a chunk of one in a stream."""

    choices: list[OpenAiChoice]
    usage: OpenAiUsage
    model: str
    id: str

    @property
    def choice(self) -> OpenAiChoice:
        """The first choice; an empty one without any."""
        return self.choices[0] if self.choices else read_record(OpenAiChoice, {})


def _request_headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def _request_body(outgoing: Outgoing) -> Json:
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
        **({"tools": _tool_definitions(request)} if request.tools else {}),
        **(
            {}
            if request.json_schema is None
            else {"response_format": _response_format(request.json_schema)}
        ),
        **({"stream": True, "stream_options": {"include_usage": True}} if outgoing.stream else {}),
    }


def _parse_reply(value: object) -> ProviderReply | None:
    completion = read_record(OpenAiCompletion, value)
    message = completion.choice.message
    if message is None:
        return None
    calls = tuple(
        {
            "id": call.id,
            "name": call.function.name,
            "args": arguments_of(call.function.arguments),
        }
        for call in message.tool_calls
    )
    reason = _FINISHES.get(completion.choice.finish_reason, "stop")
    return ProviderReply(
        text=content_text(message.content),
        tool_calls=calls,
        # Servers name `stop` for calls, too.
        finish="tool_calls" if calls and reason == "stop" else reason,
        tokens_in=completion.usage.prompt_tokens,
        tokens_out=completion.usage.completion_tokens,
        model=completion.model,
        id=completion.id,
    )


class _ChunkFold:
    """Folds the chunks of one streamed completion. `index` distinguishes the pieces of calls."""

    def __init__(self) -> None:
        self.whole = False
        self.done = False
        self._head: Json = {}
        self._text: list[str] = []
        self._calls: dict[int, dict[str, str]] = {}
        self._finish = ""

    def apply(self, event: ServerEvent, value: object) -> str:
        if event.data == DONE:
            self.whole = self.done = True
            return ""
        if error := parse_error(value):
            raise ProviderFailure(error)
        chunk = read_record(OpenAiCompletion, value)
        for name in ("id", "model", "usage"):
            if chunk.json.get(name):
                self._head[name] = chunk.json[name]
        choice = chunk.choice
        for piece in choice.delta.tool_calls:
            self._add_call(piece)
        if choice.finish_reason:
            self._finish, self.whole = choice.finish_reason, True
        text = content_text(choice.delta.content)
        self._text.append(text)
        return text

    def _add_call(self, piece: OpenAiCall) -> None:
        index = piece.index if "index" in piece.json else len(self._calls)
        if index is None or (index not in self._calls and len(self._calls) >= _MAX_CALLS):
            return
        call = self._calls.setdefault(index, {"id": "", "name": "", "arguments": ""})
        call["id"] = call["id"] or piece.id
        call["name"] = call["name"] or piece.function.name
        call["arguments"] += piece.function.arguments

    @property
    def value(self) -> Json:
        calls = [
            {"id": call["id"], "function": {"name": call["name"], "arguments": call["arguments"]}}
            for _, call in sorted(self._calls.items())
        ]
        message = {"content": "".join(self._text), "tool_calls": calls}
        return {**self._head, "choices": [{"message": message, "finish_reason": self._finish}]}


def _tool_definitions(request: ModelRequest) -> list[Json]:
    names = sent_names(request.tools)
    return [
        {"type": "function", "function": {**tool, "name": names[tool["name"]]}}
        for tool in request.tools
    ]


def _response_format(schema: Json) -> Json:
    """Return the format of a reply. It is not `strict`, because strict mode supports only a part of JSON Schema.
    Replies are checked by cogcli.
    """
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
    headers=_request_headers,
    body=_request_body,
    reply=_parse_reply,
    fold=_ChunkFold,
)
