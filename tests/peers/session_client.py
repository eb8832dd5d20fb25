"""A client of an MCP server over stdio, by the official SDK or by fastmcp: `python session_client.py sdk|fastmcp`.

stdin has the server and the requests as JSON, stdout gets a list with one reply per request: the result, or `error`
with its code. It imports nothing of the project, since it also runs in the environment of fastmcp.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError


async def ask_sdk(client: Any, request: dict[str, Any]) -> Any:
    """Send a request by the SDK."""
    match request["method"]:
        case "initialize":
            return {"instructions": client.instructions}
        case "tools/list":
            return await client.list_tools()
        case "tools/call":
            return await client.call_tool(request["name"], request["arguments"])
        case "resources/list":
            return await client.list_resources()
        case "resources/templates/list":
            return await client.list_resource_templates()
        case "resources/read":
            return await client.read_resource(request["uri"])
        case "prompts/list":
            return await client.list_prompts()
        case "prompts/get":
            return await client.get_prompt(request["name"], request["arguments"])


async def ask_fastmcp(client: Any, request: dict[str, Any]) -> Any:
    """Send a request by fastmcp, and return the result as the protocol has it."""
    match request["method"]:
        case "initialize":
            return {"instructions": client.instructions}
        case "tools/list":
            return await client.list_tools_mcp()
        case "tools/call":
            return await client.call_tool_mcp(request["name"], request["arguments"])
        case "resources/list":
            return await client.list_resources_mcp()
        case "resources/templates/list":
            return await client.list_resource_templates_mcp()
        case "resources/read":
            return await client.read_resource_mcp(request["uri"])
        case "prompts/list":
            return await client.list_prompts_mcp()
        case "prompts/get":
            return await client.get_prompt_mcp(request["name"], request["arguments"])


def open_client(name: str, server: dict[str, Any]) -> Any:
    """Return a client that starts the server."""
    if name == "sdk":
        import mcp

        return mcp.Client(StdioServerParameters(**server))
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport

    return Client(StdioTransport(**server))


async def main() -> None:
    name, given = sys.argv[1], json.load(sys.stdin)
    ask = ask_sdk if name == "sdk" else ask_fastmcp
    replies: list[Any] = []
    with anyio.fail_after(120):
        async with open_client(name, given["server"]) as client:
            for request in given["requests"]:
                try:
                    result = await ask(client, request)
                except MCPError as error:
                    replies.append({"error": error.error.code})
                    continue
                if not isinstance(result, dict):
                    result = result.model_dump(by_alias=True, mode="json", exclude_none=True)
                replies.append(result)
    json.dump(replies, sys.stdout)


anyio.run(main)
