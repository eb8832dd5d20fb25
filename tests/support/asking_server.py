"""An MCP server of the protocol of 2026-07-28 for tests: its tool `asks` gives an `InputRequiredResult` until it has an
answer. Run by its path. With `--asks=sampling` it asks for a model instead of a person. `--field=NAME` names the field
of its form, `--ledger=FILE` takes a line for each call, and with `--dies` it ends at an answer.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server

FIELD = next((flag[8:] for flag in sys.argv if flag.startswith("--field=")), "name")
FORM = {"type": "object", "properties": {FIELD: {"type": "string"}}, "required": [FIELD]}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool(name="asks", input_schema=TEXT)])


def note(word: str) -> None:
    """Add a line to the file of `--ledger=FILE`."""
    for flag in sys.argv[1:]:
        if flag.startswith("--ledger="):
            with open(flag.removeprefix("--ledger="), "a") as file:
                file.write(word + "\n")


async def call(
    context: Any, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    answer = (params.input_responses or {}).get("who")
    note("answered" if answer else "asked")
    if answer and "--dies" in sys.argv:
        os._exit(1)
    if isinstance(answer, types.CreateMessageResult):
        return types.CallToolResult(content=[answer.content])
    if isinstance(answer, types.ElicitResult):
        text = f"{answer.action} {answer.content} {params.request_state}"
        return types.CallToolResult(content=[types.TextContent(text=text)])
    text = (params.arguments or {})["text"]
    asked: Any = types.ElicitRequest(
        params=types.ElicitRequestFormParams(message=text, requested_schema=FORM)
    )
    if "--asks=sampling" in sys.argv:
        asked = types.CreateMessageRequest(
            params=types.CreateMessageRequestParams(
                messages=[types.SamplingMessage(role="user", content=types.TextContent(text=text))],
                max_tokens=5,
            )
        )
    return types.InputRequiredResult(input_requests={"who": asked}, request_state="state-1")


async def main() -> None:
    server: Server[Any] = Server("asking", on_list_tools=list_tools, on_call_tool=call)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


anyio.run(main)
