"""An MCP server of the protocol of 2026-07-28 for tests: its tool `asks` gives an `InputRequiredResult` until it has an
answer. Run by its path. With `--asks=sampling` it asks for a model instead of a person.
"""

from __future__ import annotations

import sys
from typing import Any

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server

FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool(name="asks", input_schema=TEXT)])


async def call(
    context: Any, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    answer = (params.input_responses or {}).get("who")
    if isinstance(answer, types.ElicitResult):
        text = f"{answer.action} {answer.content} {params.request_state}"
        return types.CallToolResult(content=[types.TextContent(text=text)])
    text = (params.arguments or {})["text"]
    asked: Any = types.ElicitRequest(
        params=types.ElicitRequestFormParams(message=text, requested_schema=FORM)
    )
    if "--asks=sampling" in sys.argv:
        asked = types.CreateMessageRequest(
            params=types.CreateMessageRequestParams(messages=[], max_tokens=5)
        )
    return types.InputRequiredResult(input_requests={"who": asked}, request_state="state-1")


async def main() -> None:
    server: Server[Any] = Server("asking", on_list_tools=list_tools, on_call_tool=call)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


anyio.run(main)
