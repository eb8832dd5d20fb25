"""The MCP server of a gateway: it offers the tools of other servers again (docs/reference/gateway.md).

1. A tool is listed as it was accepted. A call of it is a call of the session, which decides and records. So is a read
   of a resource or a prompt.
2. A call that waits for a person is held for a while. After that the reply says that it is pending, and an equal call
   collects the result.
3. No client approves anything, and nothing here asks a model to.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

import mcp_types as types
from mcp.server import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from cogcli import __version__
from cogcli.base.errors import CogcliError
from cogcli.base.schema import validator
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.gateway.calls import CallResult, CallTicket, PersonAnswer
from cogcli.gateway.client_approval import ClientQuestion, ask_person, can_ask, is_modern
from cogcli.gateway.clients import ClientIdentity
from cogcli.gateway.offer import GatewayOffer
from cogcli.gateway.own_episode import PREFIX
from cogcli.gateway.progress import relay_progress
from cogcli.gateway.reading import (
    CallReply,
    find_prompt,
    find_resource,
    list_prompts,
    list_resources,
    list_templates,
    prompt_result,
    resource_result,
)
from cogcli.gateway.request import GatewayListener
from cogcli.gateway.server_questions import pass_question
from cogcli.gateway.session import GatewaySession
from cogcli.gateway.tool_specs import OfferedTool
from cogcli.protocols.mcp.tool_definition import ToolDefinition
from cogcli.specs.unchecked import list_at, object_at, text_at

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    ClientRequest = ServerRequestContext[Any, Any]

HOLD_SECONDS: Final = 50.0
"""Seconds for which a call is held. Hosts give up after 60."""
KEY: Final = "cogcli/idempotency-key"
"""The member of `_meta` with the idempotency key of a call."""
NAME: Final = "cogcli-gateway"
INSTRUCTIONS: Final = (
    "Each call is decided by rules and recorded. `pending` means that a person has to approve the call: show your user"
    " the command in the reply, go on with something else, and make the same call later for its result. A call that was"
    " denied or rejected was not made: do not try to reach the same by another tool. `effect.in-doubt` means that the"
    " call may have happened: do not repeat it, and tell your user."
)
STATE_SECONDS: Final = 600.0
"""Seconds for which a client may answer a question."""
_ANSWER_SECONDS: Final = 10.0
"""The seconds that a just answered call may take, before it is held like any other."""
_MISSED: Final = 3
_WITHHELD: Final = (
    "the call failed; its message is withheld, since a rule masks a part of what the tool gives"
)
_LONGEST_NAME: Final = 100
"""The maximum length of the name that a client reports."""


class OwnEpisodes(Protocol):
    """The episodes of the clients, as MCP resources."""

    def list_own(self, client: ClientIdentity) -> list[types.Resource]: ...

    def read_own(self, client: ClientIdentity, uri: str) -> types.ReadResourceResult: ...


class GatewayHandlers:
    """The handlers of the requests about tools, resources and prompts."""

    def __init__(
        self,
        offer: asyncio.Future[GatewayOffer],
        session: Callable[[GatewayOffer, ClientIdentity], GatewaySession],
        episodes: OwnEpisodes,
        listener: GatewayListener,
        hold_seconds: float = HOLD_SECONDS,
        *,
        asks_client: bool = False,
    ) -> None:
        """`session` returns the session for the calls of the tools of an offer by a client."""
        self._offer = offer
        self._session = session
        self._episodes = episodes
        self._listener = listener
        self._hold = hold_seconds
        self._asks_client = asks_client

    async def list(
        self, _: ClientRequest, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """Return all tools on one page. Raise MCPError for a cursor."""
        offer = await self._list_from(params)
        listed = (tool for tool in offer.tools.values() if not tool.is_method)
        return types.ListToolsResult(tools=[_list_tool(tool) for tool in listed])

    async def list_resources(
        self, client: ClientRequest, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Return the client's episode and the resources of all servers on one page. Raise MCPError for a cursor."""
        offer = await self._list_from(params)
        own = self._episodes.list_own(_identify_client(client))
        return types.ListResourcesResult(resources=own + list_resources(offer))

    async def list_templates(
        self, _: ClientRequest, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Return the templates of all servers on one page. Raise MCPError for a cursor."""
        templates = list_templates(await self._list_from(params))
        return types.ListResourceTemplatesResult(resource_templates=templates)

    async def list_prompts(
        self, _: ClientRequest, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        """Return the prompts of all servers on one page. Raise MCPError for a cursor."""
        return types.ListPromptsResult(prompts=list_prompts(await self._list_from(params)))

    async def _list_from(self, params: types.PaginatedRequestParams | None) -> GatewayOffer:
        """Return the offer. Raise MCPError for a cursor."""
        if params is not None and params.cursor is not None:
            text = "Unknown cursor: everything is on one page"
            raise MCPError(code=types.INVALID_PARAMS, message=text)
        return await asyncio.shield(self._offer)

    async def read_resource(
        self, client: ClientRequest, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        """Read a resource by a call of the session. Raise MCPError if the reply has no contents."""
        if params.uri.startswith(PREFIX):
            return await self._read_own(client, params.uri)
        offer = await asyncio.shield(self._offer)
        read = find_resource(offer, params.uri)
        reply = await self._answer_call(offer, read.tool, client, read.as_call(params))
        return resource_result(read, reply)

    async def _read_own(self, client: ClientRequest, uri: str) -> types.ReadResourceResult:
        """Read the client's episode. Raise MCPError."""
        try:
            return await asyncio.to_thread(self._episodes.read_own, _identify_client(client), uri)
        except CogcliError as error:
            raise MCPError(code=types.INTERNAL_ERROR, message=_error_text(error)) from error

    async def get_prompt(
        self, client: ClientRequest, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """Get a prompt by a call of the session. Raise MCPError if the reply has no messages."""
        offer = await asyncio.shield(self._offer)
        read = find_prompt(offer, params.name, dict(params.arguments or {}))
        return prompt_result(
            await self._answer_call(offer, read.tool, client, read.as_call(params))
        )

    async def call(self, client: ClientRequest, params: types.CallToolRequestParams) -> CallReply:
        """Make a call of the session. Raise only MCPError, and only for a tool that does not exist."""
        offer = await asyncio.shield(self._offer)
        tool = offer.tools.get(params.name)
        if tool is None or tool.is_method:
            raise MCPError(code=types.INVALID_PARAMS, message=_unknown_text(offer, params.name))
        return await self._answer_call(offer, tool, client, params)

    async def _answer_call(
        self,
        offer: GatewayOffer,
        tool: OfferedTool,
        client: ClientRequest,
        params: types.CallToolRequestParams,
    ) -> CallReply:
        """Make a call of the session, and return the reply."""
        report: dict[str, str] = {"status": "cancelled"}
        try:
            return await self._make_call(offer, tool, client, params, report)
        except CogcliError as error:
            report.update(status="refused", error=error.code)
            return _error_result(_error_text(error), {"cogcli/code": error.code})
        except Exception as bug:
            report.update(status="error", error="internal")
            self._listener.bug(bug)
            return _error_result("internal error", {"cogcli/code": "internal"})
        finally:
            self._listener.called(params.name, report)

    async def _make_call(
        self,
        offer: GatewayOffer,
        tool: OfferedTool,
        client: ClientRequest,
        params: types.CallToolRequestParams,
        report: dict[str, str],
    ) -> CallReply:
        arguments = params.arguments or {}
        if problems := _find_violations(tool, arguments):
            report.update(status="refused", error="request.value")
            text = f"error[request.value]: `{tool.name}` does not take these arguments: {problems}"
            return _error_result(text, {"cogcli/code": "request.value"})
        session = self._session(offer, _identify_client(client))
        key = text_at(dict(client.meta or {}), KEY)
        inputs = tool.inputs_from(arguments)
        for _ in range(_MISSED):
            ticket = await self._begin_call(session, tool, inputs, key)
            future = asyncio.wrap_future(ticket.future)
            until = time.monotonic() + HOLD_SECONDS  # as long as hosts wait
            async with relay_progress(client, ticket):
                question = await self._ask_client(session, ticket, future, client, params)
                if question is None:
                    await self._wait_for_result(ticket, future, until)
            if question is not None:
                report.update(status="asked", episode=session.episode_id, step=ticket.step_id)
                return question
            episode, step = ticket.episode_id or session.episode_id, ticket.step_id
            meta = {"cogcli/episode_id": episode, "cogcli/step_id": step}
            report.update(episode=episode, step=step)
            if not future.done():
                report.update(status="pending")
                return _pending_result(ticket, meta)
            result = future.result()
            session.collect(ticket)
            if result is not None:
                report.update(status=result.status, error=result.error.code if result.error else "")
                return _tool_result(result, meta | {"cogcli/status": result.status})
        return _error_result("error[call.overloaded]: the session is ending", {})

    async def _ask_client(
        self,
        session: GatewaySession,
        ticket: CallTicket,
        future: asyncio.Future[CallResult | None],
        client: ClientRequest,
        params: types.CallToolRequestParams,
    ) -> types.InputRequiredResult | None:
        """Ask the person at the client about a call that waits for an approval, and pass on the answer. Return the
        question if the client must ask its user and call again.
        """
        if not self._asks_client or not can_ask(client):
            return None
        ticket.answerers += 1
        try:
            return await self._pass_requests(session, ticket, future, client, params)
        finally:
            ticket.answerers -= 1

    async def _pass_requests(
        self,
        session: GatewaySession,
        ticket: CallTicket,
        future: asyncio.Future[CallResult | None],
        client: ClientRequest,
        params: types.CallToolRequestParams,
    ) -> types.InputRequiredResult | None:
        """Pass questions of the server, and one request for an approval, to the person at the client."""
        until, is_answered = time.monotonic() + HOLD_SECONDS, False
        while True:
            events: list[asyncio.Future[Any]] = [future, asyncio.wrap_future(ticket.questioned)]
            if not is_answered:
                events.append(asyncio.wrap_future(ticket.requested))
            left = max(0.0, until - time.monotonic())
            await asyncio.wait(events, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if future.done():
                return None
            if ticket.question is not None:
                question = await pass_question(ticket, client, params, left)
                if question is not None:
                    return question
                continue
            if is_answered or ticket.asked is None:
                return None  # the time is over
            request = ClientQuestion(params.name, ticket.asked)
            answer = await _ask_for_approval(request, client, params)
            if not isinstance(answer, PersonAnswer):
                return answer
            session.answer(answer)
            until, is_answered = time.monotonic() + _ANSWER_SECONDS, True

    async def _wait_for_result(
        self, ticket: CallTicket, future: asyncio.Future[CallResult | None], until: float
    ) -> None:
        """Wait for the result of a call until a monotonic time. The wait is shorter for a call that needs a person."""
        while not future.done() and (left := until - time.monotonic()) > 0:
            asked = asyncio.wrap_future(ticket.requested)
            either: list[asyncio.Future[Any]] = [future, asked]
            await asyncio.wait(either, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if future.done() or not asked.done():
                return
            held = min(self._hold, until - time.monotonic())
            await asyncio.wait([future], timeout=max(0.0, held))
            if ticket.approval_id:
                return

    async def _begin_call(
        self, session: GatewaySession, tool: OfferedTool, inputs: Json, key: str | None
    ) -> CallTicket:
        """Return the ticket of a call. Beginning a run may block, so it happens on a thread."""
        arguments = (tool.name, tool.capability, inputs, key)
        if session.is_live:
            return session.call(*arguments)
        return await asyncio.to_thread(session.call, *arguments)


async def _ask_for_approval(
    request: ClientQuestion, client: ClientRequest, params: types.CallToolRequestParams
) -> types.InputRequiredResult | PersonAnswer | None:
    """Return the person's answer, or the question if the client must ask its user. None if the client reports no
    decision.
    """
    if not request.is_allowed:
        return None
    if not is_modern(client):
        result = await ask_person(client, request.params, HOLD_SECONDS)
        return request.answer_from_result(result)
    if params.request_state != request.state:
        return request.as_result()
    return request.answer_from_params(params)


def server_of(handlers: GatewayHandlers) -> Server[Any]:
    """Return the MCP server of these handlers, for any transport."""
    server: Server[Any] = Server(
        NAME,
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=handlers.list,
        on_call_tool=handlers.call,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
    )
    # What a client sends back of a question is what this process sent, for the same call, and not for long.
    security = RequestStateSecurity.ephemeral(ttl=STATE_SECONDS)
    server.middleware.append(RequestStateBoundary(security, default_audience=NAME))
    return server


def _identify_client(client: ClientRequest) -> ClientIdentity:
    """Return the identity that a request claims for its client."""
    about, name = client.session.client_params, ""
    if about is not None:
        name = f"{about.client_info.name} {about.client_info.version}".strip()[:_LONGEST_NAME]
    headers = getattr(client.request, "headers", None)
    return ClientIdentity(name, dict(headers or {}), dict(client.meta or {}))


# -- answers -----------------------------------------------------------------------------------------------------------


def _list_tool(tool: OfferedTool) -> types.Tool:
    """Return a tool as it was accepted, under its name in the gateway, with an input schema narrowed by rules."""
    members = {name: value for name, value in tool.definition.items() if value is not None}
    if tool.listed_schema is not None:
        members["inputSchema"] = tool.listed_schema
    if tool.title:
        members["title"] = tool.title
    try:
        return types.Tool.model_validate({**members, "name": tool.name})
    except ValidationError:
        return types.Tool.model_validate({"name": tool.name, "inputSchema": {"type": "object"}})


def _find_violations(tool: OfferedTool, arguments: Json) -> str:
    """Return the violations of the tool's input schema by arguments; empty if they fit, or if the schema cannot be
    applied.
    """
    schema = read_record(ToolDefinition, tool.definition).inputSchema
    found = [] if schema is None else validator.errors(schema, arguments)
    if any(message == validator.UNUSABLE for _, message in found):
        return ""
    unknown = [name for name in arguments if name not in tool.input_fields]
    if not found and unknown:
        return f"no argument `{unknown[0][:60]}`"
    return "; ".join(f"`{place}`: {message}" if place else message for place, message in found)


def _unknown_text(offer: GatewayOffer, name: str) -> str:
    """Return the message for a tool that is not offered, with the reason if it is withheld."""
    server = name.partition("__")[0]
    for each in offer.withheld:
        if name == f"{each.server}__{each.tool}":
            return f"Tool {name[:128]} is withheld: {each.reason}"
    for upstream in offer.unavailable:
        if upstream.id == server:
            return f"Server {server[:128]} is unavailable: {upstream.fault}"
    return f"Unknown tool: {name[:128]}"


class OfferedOutput(Record):
    """The output of an offered tool, in addition to its content."""

    structured: object = None
    text: str = ""


def _tool_result(result: CallResult, meta: Json) -> types.CallToolResult:
    """Return the reply to a call that has ended."""
    if result.status == "done":
        output = result.output or {}
        offered = read_record(OfferedOutput, output)
        content = list_at(output, "content")
        if text_at(output, "content") is not None:  # a mask instead of the blocks
            content = [{"type": "text", "text": _masked_text(offered)}]
        reply: Json = {"content": content, "_meta": meta}
        if isinstance(offered.structured, dict):
            reply["structuredContent"] = offered.structured
        return _to_call_tool_result(reply, output)
    error = result.error
    if error is None:
        text = result.detail or "the call was cut off before it was made"
        return _error_result(f"error[{result.status}]: {text}", meta)
    meta |= {"cogcli/code": error.code}
    if result.is_masked and error.code.startswith("call."):
        return _error_result(f"error[{error.code}]: {_WITHHELD}", meta)
    content = _content_of_failure(error)
    if content:
        return _to_call_tool_result({"content": content, "isError": True, "_meta": meta}, {})
    if result.is_in_doubt:
        return _error_result(_doubt_text(error, meta), meta)
    return _error_result(_error_text(error), meta)


def _masked_text(output: OfferedOutput) -> str:
    """Return the text of an output whose content is masked: the parts that a client may read."""
    if isinstance(output.structured, dict):
        return json.dumps(output.structured, ensure_ascii=False)
    return output.text


def _to_call_tool_result(reply: Json, output: Json) -> types.CallToolResult:
    """Return a reply as the SDK's type. Content that the SDK does not know becomes text."""
    try:
        return types.CallToolResult.model_validate(reply)
    except ValidationError:
        text = read_record(OfferedOutput, output).text or json.dumps(
            reply["content"], ensure_ascii=False
        )
        return types.CallToolResult.model_validate(
            {**reply, "content": [{"type": "text", "text": text}]}
        )


def _content_of_failure(error: CogcliError) -> list[object]:
    """Return the content with which the tool itself reported its failure; empty for any other error."""
    if error.code != "call.rejected" or not error.attempts:
        return []
    body = object_at(error.attempts[-1], "reply", "body")
    return list_at(body, "content") if body.get("isError") is True else []


def _error_text(error: CogcliError) -> str:
    lines = [f"error[{error.code}]: {error.message}"]
    if error.hint:
        lines.append(f"hint: {error.hint}")
    if error.code.startswith(("policy.", "safety.", "budget.")):
        lines.append(
            "Nothing was called. Do not try to reach the same by another tool; tell your user."
        )
    return "\n".join(lines)


def _doubt_text(error: CogcliError, meta: Json) -> str:
    return "\n".join(
        (
            f"error[{error.code}]: {error.message}",
            "Whether the call happened is not known. It is not made again: a person looks at the service, and decides:"
            f" cogcli resume {meta['cogcli/episode_id']} --in-doubt {meta['cogcli/step_id']}=fail",
            "(`fail`: it did not happen, so that you can call again; `done` or `skip`: it did).",
        )
    )


def _pending_result(ticket: CallTicket, meta: Json) -> types.CallToolResult:
    """Return the reply to a call that is not over. An equal call collects the result."""
    meta |= {"cogcli/status": "pending"}
    if not ticket.approval_id:
        text = "pending: the call still runs. Call this tool again with the same arguments for its result."
        return _error_result(text, meta)
    id = ticket.approval_id
    meta |= {"cogcli/approval_id": id}
    text = "\n".join(
        (
            f"pending: this call waits for a person's approval ({id}). Nothing was called yet.",
            f"a person decides in a terminal: cogcli approvals approve {id}",
            "What you can do: show your user the line above and go on with something else. Once your user has decided,"
            " call this tool again with the same arguments: that collects the result.",
        )
    )
    return _error_result(text, meta)


def _error_result(text: str, meta: Json) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True, _meta=meta)
