"""Resources and prompts of a gateway: they are listed as their servers list them, and each read is a call of the
session (docs/reference/gateway.md#resources).

1. A URI names its server, so that no server stands in the place of another: `mcp://SERVER/URI`.
2. Reading is a call of the tool `resources/read` or `prompts/get` of the server. It is decided and recorded as such.
3. A list is as it was when the gateway started. It decides nothing: any URI of a server may be read, if rules allow it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeVar

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ValidationError

from cogcli.base.jsonvalue import object_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.value_types import Json
from cogcli.gateway.offer import GatewayOffer
from cogcli.gateway.tool_names import client_name
from cogcli.gateway.tool_specs import OfferedTool
from cogcli.protocols.mcp.methods import PROMPT, READ
from cogcli.specs.unchecked import list_at, text_at

SCHEME: Final = "mcp://"
CallReply = types.CallToolResult | types.InputRequiredResult
"""The reply to a call: its result, or a question that the client has to answer first."""
_Listed = TypeVar("_Listed", bound=BaseModel)
_Kept: Final = ("name", "title", "description", "mimeType", "size", "annotations", "arguments")


class ReadCall(NamedTuple):
    """A read of a client as a call: the tool of the server, and its arguments."""

    tool: OfferedTool
    arguments: Json
    prefix: str = ""
    """The prefix of the client's URI before the server's URI."""

    def as_call(
        self, params: types.ReadResourceRequestParams | types.GetPromptRequestParams
    ) -> types.CallToolRequestParams:
        """Return the parameters of the call, with the client's answers to questions."""
        return types.CallToolRequestParams(
            name=self.tool.name,
            arguments=self.arguments,
            input_responses=params.input_responses,
            request_state=params.request_state,
        )


def find_resource(offer: GatewayOffer, uri: str) -> ReadCall:
    """Return the call that reads a URI. A URI without a server is that of the only server with resources.

    Raise MCPError.
    """
    tools = _tools_of(offer, READ)
    if uri.startswith(SCHEME):
        server, _, own = uri.removeprefix(SCHEME).partition("/")
        if server in tools:
            return ReadCall(tools[server], {"uri": own}, f"{SCHEME}{server}/")
    elif len(tools) == 1:
        return ReadCall(next(iter(tools.values())), {"uri": uri})
    text = f"Unknown resource: {uri[:128]}; a URI is {SCHEME}SERVER/URI, of one of: {_join_names(tools)}"
    raise MCPError(code=types.INVALID_PARAMS, message=text)


def find_prompt(offer: GatewayOffer, name: str, arguments: Json) -> ReadCall:
    """Return the call that gets a prompt. Raise MCPError for an unlisted prompt."""
    for server, tool in _tools_of(offer, PROMPT).items():
        for prompt in offer.listings[server].prompts:
            own = text_at(prompt, "name") or ""
            if client_name(server, own) == name:
                return ReadCall(
                    tool, {"name": own, **({"arguments": arguments} if arguments else {})}
                )
    raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown prompt: {name[:128]}")


def list_resources(offer: GatewayOffer) -> list[types.Resource]:
    """Return the resources of all servers whose resources may be read, each with its server in the URI."""
    listed = ((server, offer.listings[server].resources) for server in _tools_of(offer, READ))
    return list(_valid_entries(types.Resource, _with_server(listed, "uri")))


def list_templates(offer: GatewayOffer) -> list[types.ResourceTemplate]:
    """Return the templates of URIs, each with its server."""
    listed = ((server, offer.listings[server].templates) for server in _tools_of(offer, READ))
    return list(_valid_entries(types.ResourceTemplate, _with_server(listed, "uriTemplate")))


def _with_server(
    listed: Iterable[tuple[str, Iterable[Json]]], member: str
) -> Iterator[tuple[Json, Json]]:
    """Yield each entry, and the member of the gateway's entry that has the server in its URI."""
    for server, entries in listed:
        for entry in entries:
            yield entry, {member: f"{SCHEME}{server}/{text_at(entry, member)}"}


def list_prompts(offer: GatewayOffer) -> list[types.Prompt]:
    """Return the prompts of all servers whose prompts may be got, each under its name in the gateway."""
    found = (
        (each, {"name": client_name(server, text_at(each, "name") or "")})
        for server in _tools_of(offer, PROMPT)
        for each in offer.listings[server].prompts
    )
    return list(_valid_entries(types.Prompt, found))


def resource_result(
    read: ReadCall, reply: CallReply
) -> types.ReadResourceResult | types.InputRequiredResult:
    """Return the resource contents in a reply. Raise MCPError if the reply has none."""
    if isinstance(reply, types.InputRequiredResult):
        return reply
    contents = [
        {**each, "uri": read.prefix + (text_at(each, "uri") or "")}
        for each in list_at(_require_value(reply), "contents")
        if isinstance(each, dict)
    ]
    return _validate_result(types.ReadResourceResult, {"contents": contents, "_meta": reply.meta})


def prompt_result(reply: CallReply) -> types.GetPromptResult | types.InputRequiredResult:
    """Return the prompt messages in a reply. Raise MCPError if the reply has none."""
    if isinstance(reply, types.InputRequiredResult):
        return reply
    return _validate_result(types.GetPromptResult, {**_require_value(reply), "_meta": reply.meta})


def _require_value(reply: types.CallToolResult) -> Json:
    """Return the value in the reply of a method. Raise MCPError if the reply has none."""
    if reply.is_error:
        texts = (block.text for block in reply.content if isinstance(block, types.TextContent))
        raise MCPError(code=types.INVALID_REQUEST, message="\n".join(texts), data=reply.meta)
    return object_of(reply.structured_content)


def _tools_of(offer: GatewayOffer, method: str) -> dict[str, OfferedTool]:
    """Return the tool of a method by server, of those servers that offer it."""
    return {
        tool.service.id: tool
        for tool in offer.tools.values()
        if tool.definition["name"] == method and tool.service.id in offer.listings
    }


def _join_names(servers: Iterable[str]) -> str:
    """Return the names of at most 20 servers for a message."""
    return ", ".join(sorted(servers)[:20]) or "none"


def _valid_entries(kind: type[_Listed], entries: Iterable[tuple[Json, Json]]) -> Iterator[_Listed]:
    """Yield the entries that have the form of the protocol. Others are left out, and so are icons."""
    for listed, own in entries:
        members = {name: listed[name] for name in _Kept if listed.get(name) is not None}
        try:
            yield kind.model_validate({**members, **own})
        except ValidationError:
            continue


def _validate_result(kind: type[_Listed], value: dict[str, Any]) -> _Listed:
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        text = "the server's answer has not the form of the protocol"
        raise MCPError(code=types.INTERNAL_ERROR, message=text) from error
