"""The mock servers that published scenarios name (docs/reference/protocols.md#mocks). They accept
POST and compute replies from the request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import orjson

from cogcli.base.strict_json import InvalidJson, loads
from cogcli.declarations.scenario_spec import CannedReply
from cogcli.declarations.value_types import Json
from cogcli.protocols.exchange import (
    ReceivedRequest,
    Responder,
    ServerReply,
    json_reply,
    reply_in_turn,
)
from cogcli.specs.unchecked import list_at

_MAX_WORDS: Final = 20

ReplyBuilder = Callable[[Json], Json]
"""A function that returns the reply to a request's JSON object. It raises RejectedRequest."""


class RejectedRequest(Exception):
    """The error for a request that the service refuses."""


def _data_schema_validate(request: Json) -> Json:
    errors = [
        f"`{name}` must be an object"
        for name in ("data", "schema")
        if not isinstance(request.get(name), dict)
    ]
    return {"valid": not errors, "errors": errors}


def _text_summarize(request: Json) -> Json:
    words = _text_member(request, "text").split()
    kept = " ".join(words[:_MAX_WORDS])
    return {"summary": f"{kept} ..." if len(words) > _MAX_WORDS else kept}


def _code_execute(request: Json) -> Json:
    """Return the length of the code without running it."""
    code = _text_member(request, "code")
    return {"result": None, "stdout": f"mock: {len(code)} characters, not run", "stderr": ""}


def _fs_read(request: Json) -> Json:
    content = f"mock content of {_text_member(request, 'path')}"
    return {"content": content, "bytes": len(content.encode())}


def _agent_route(request: Json) -> Json:
    agents = list_at(request, "agents")
    if not agents:
        raise RejectedRequest("`agents` must be a list with at least one agent")
    first = agents[0]
    return {"route": first.get("id") if isinstance(first, dict) else first, "confidence": 0.95}


def _text_member(request: Json, name: str) -> str:
    value = request.get(name)
    if not isinstance(value, str):
        raise RejectedRequest(f"`{name}` must be text")
    return value


STAND_INS: Final[dict[str, ReplyBuilder]] = {
    "data_schema_validate": _data_schema_validate,
    "text_summarize": _text_summarize,
    "code_execute": _code_execute,
    "web_fetch": lambda request: {
        "content": f"mock content of {_text_member(request, 'url')}",
        "status": 200,
    },
    "pdf_read": lambda request: {
        "text": f"mock text of {_text_member(request, 'path')}",
        "metadata": {"source": request["path"], "pages": 1},
    },
    "fs_read": _fs_read,
    "audio_transcribe": lambda request: {
        "transcript": f"mock transcript of {_text_member(request, 'audio')}"
    },
    "agent_route": _agent_route,
    "model_research": lambda request: {
        "summary": f"mock research on {_text_member(request, 'query')}",
        "sources": [],
    },
}


def named_mock(type: str) -> Responder:
    """Return the server function of one of the types above, for every path."""
    made = STAND_INS[type]

    def answering(seen: ReceivedRequest) -> ServerReply:
        if seen.method != "POST":
            return json_reply({"error": f"{seen.method} is not allowed"}, 405, {"Allow": "POST"})
        try:
            request = loads(seen.body)
        except InvalidJson:
            request = None
        if not isinstance(request, dict):
            return json_reply({"error": "the body is not a JSON object"}, 400)
        try:
            return json_reply(made(request))
        except RejectedRequest as refused:
            return json_reply({"error": str(refused)}, 422)

    return answering


def canned_replies(replies: tuple[CannedReply, ...]) -> Responder:
    """Return a server function that sends these replies in order, then repeats the last."""
    return reply_in_turn([_reply_from(reply) for reply in replies])


def _reply_from(reply: CannedReply) -> ServerReply:
    delay = reply.delay_ms / 1000
    if reply.body is None:
        return ServerReply(reply.status, reply.headers, (), delay)
    media_type = "application/json"
    if isinstance(reply.body, str):
        media_type, body = "text/plain; charset=utf-8", reply.body.encode()
    else:
        body = orjson.dumps(reply.body)
    has_type = any(name.lower() == "content-type" for name in reply.headers)
    headers = reply.headers if has_type else {**reply.headers, "Content-Type": media_type}
    return ServerReply(reply.status, headers, (body,), delay)
