"""The two protocols that the tiny model speaks: what it reads of a request, and its answer whole and as events."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from support.tinymodel.behaviours import Answer, Seen, seen_in


class Usage(NamedTuple):
    """Tokens as this model counts them: four bytes each."""

    tokens_in: int
    tokens_out: int


def count(*texts: str) -> int:
    return sum(math.ceil(len(text.encode()) / 4) for text in texts)


def usage_of(seen: Seen, tools: list[Any], answer: Answer) -> Usage:
    """What a request and its answer count."""
    calls = [json.dumps(call["args"]) + call["name"] for call in answer.calls]
    return Usage(count(seen.prompt, *map(json.dumps, tools)), count(answer.text, *calls))


def _pieces(text: str) -> list[str]:
    return [text[at : at + 7] for at in range(0, len(text), 7)]


class OpenAi:
    """`/chat/completions`."""

    path = "/chat/completions"

    @staticmethod
    def key(headers: Any) -> str:
        return str(headers.get("Authorization", "")).removeprefix("Bearer ")

    @staticmethod
    def seen(body: dict[str, Any]) -> Seen:
        tools = [each["function"] for each in body.get("tools", [])]
        return seen_in(
            body["messages"], tools, body.get("max_tokens") or body.get("max_completion_tokens", 0)
        )

    @staticmethod
    def error(status: int, kind: str, message: str) -> dict[str, Any]:
        return {"error": {"message": message, "type": kind, "param": None, "code": kind}}

    @staticmethod
    def whole(id: str, model: str, answer: Answer, usage: Usage) -> dict[str, Any]:
        calls = [_openai_call(call) for call in answer.calls]
        message = {
            "role": "assistant",
            "content": answer.text or None,
            **({"tool_calls": calls} if calls else {}),
        }
        finish = answer.finish or ("tool_calls" if calls else "stop")
        choice = {"index": 0, "message": message, "finish_reason": finish}
        counts = {"prompt_tokens": usage.tokens_in, "completion_tokens": usage.tokens_out}
        return {
            "id": id,
            "object": "chat.completion",
            "model": model,
            "choices": [choice],
            "usage": counts,
        }

    @staticmethod
    def events(body: dict[str, Any], id: str, answer: Answer, usage: Usage) -> Iterator[str]:
        def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> str:
            choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
            data = {
                "id": id,
                "object": "chat.completion.chunk",
                "model": body["model"],
                "choices": choices,
                **more,
            }
            return f"data: {json.dumps(data, ensure_ascii=False)}\n\n"

        yield chunk({"role": "assistant", "content": ""})
        for piece in _pieces(answer.text):
            yield chunk({"content": piece})
        for index, call in enumerate(answer.calls):
            function = _openai_call(call)["function"]
            begun = {**function, "arguments": ""}
            yield chunk(
                {
                    "tool_calls": [
                        {"index": index, "id": call["id"], "type": "function", "function": begun}
                    ]
                }
            )
            for piece in _pieces(function["arguments"]):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield chunk({}, "tool_calls" if answer.calls else "stop")
        if body.get("stream_options", {}).get("include_usage"):
            counts = {"prompt_tokens": usage.tokens_in, "completion_tokens": usage.tokens_out}
            yield chunk({}, choices=[], usage=counts)
        yield "data: [DONE]\n\n"


def _openai_call(call: dict[str, Any]) -> dict[str, Any]:
    function = {"name": call["name"], "arguments": json.dumps(call["args"])}
    return {"id": call["id"], "type": "function", "function": function}


class Anthropic:
    """`/v1/messages`."""

    path = "/v1/messages"

    @staticmethod
    def key(headers: Any) -> str:
        return str(headers.get("x-api-key", ""))

    @staticmethod
    def seen(body: dict[str, Any]) -> Seen:
        system = [{"content": body["system"]}] if body.get("system") else []
        tools = [
            {"name": each["name"], "parameters": each["input_schema"]}
            for each in body.get("tools", [])
        ]
        return seen_in([*system, *body["messages"]], tools, body["max_tokens"])

    @staticmethod
    def error(status: int, kind: str, message: str) -> dict[str, Any]:
        known = {401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}
        return {"type": "error", "error": {"type": known.get(status, kind), "message": message}}

    @staticmethod
    def whole(id: str, model: str, answer: Answer, usage: Usage) -> dict[str, Any]:
        content: list[dict[str, Any]] = (
            [{"type": "text", "text": answer.text}] if answer.text else []
        )
        content += [
            {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["args"]}
            for call in answer.calls
        ]
        reason = "tool_use" if answer.calls else "end_turn"
        counts = {"input_tokens": usage.tokens_in, "output_tokens": usage.tokens_out}
        head = {"id": id, "type": "message", "role": "assistant", "model": model}
        return {**head, "content": content, "stop_reason": reason, "usage": counts}

    @classmethod
    def events(cls, body: dict[str, Any], id: str, answer: Answer, usage: Usage) -> Iterator[str]:
        def event(type: str, **members: Any) -> str:
            data = json.dumps({"type": type, **members}, ensure_ascii=False)
            return f"event: {type}\ndata: {data}\n\n"

        whole = cls.whole(id, body["model"], answer, usage)
        counts = {"input_tokens": usage.tokens_in, "output_tokens": 1}
        yield event(
            "message_start", message={**whole, "content": [], "stop_reason": None, "usage": counts}
        )
        yield event("ping")
        for index, block in enumerate(whole["content"]):
            text = block.get("text")
            empty = {**block, "text": ""} if text is not None else {**block, "input": {}}
            yield event("content_block_start", index=index, content_block=empty)
            for piece in _pieces(text if text is not None else json.dumps(block["input"])):
                delta = {"type": "text_delta", "text": piece}
                if text is None:
                    delta = {"type": "input_json_delta", "partial_json": piece}
                yield event("content_block_delta", index=index, delta=delta)
            yield event("content_block_stop", index=index)
        counts = {"output_tokens": usage.tokens_out}
        yield event("message_delta", delta={"stop_reason": whole["stop_reason"]}, usage=counts)
        yield event("message_stop")


class Embeddings(OpenAi):
    """`/embeddings`: two numbers for each text, from its length."""

    path = "/embeddings"

    @staticmethod
    def seen(body: dict[str, Any]) -> Seen:
        return seen_in([{"content": body["input"]}], [], 0)

    @staticmethod
    def whole(id: str, model: str, answer: Answer, usage: Usage) -> dict[str, Any]:
        data = [{"object": "embedding", "index": 0, "embedding": json.loads(answer.text)}]
        counts = {"prompt_tokens": usage.tokens_in, "total_tokens": usage.tokens_in}
        return {"object": "list", "data": data, "model": model, "usage": counts}


PROTOCOLS = (OpenAi, Anthropic, Embeddings)
