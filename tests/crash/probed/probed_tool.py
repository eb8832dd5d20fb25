"""An MCP server with one tool, which asks a service elsewhere for an effect. It answers one message after the other."""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from typing import Any

TOOL = {
    "name": "effect",
    "description": "An effect.",
    "inputSchema": {
        "type": "object",
        "properties": {"key": {"type": "string"}, "value": {}},
        "required": ["key"],
    },
}


def effect(given: dict[str, Any], once: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {os.environ['CRASH_TOKEN']}", "Idempotency-Key": once}
    request = urllib.request.Request(
        f"{os.environ['CRASH_URL']}/effects", json.dumps(given).encode(), headers
    )
    with urllib.request.urlopen(request, timeout=30) as reply:
        value = json.loads(reply.read())["value"]
    return {"content": [{"type": "text", "text": "done"}], "structuredContent": {"value": value}}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        info = {"name": "effects", "version": "1"}
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": info,
        }
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        return effect(params["arguments"], params["_meta"]["cogcli/idempotency-key"])
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params") or {})
        unknown = {"error": {"code": -32601, "message": "no such method"}}
        told = {
            "jsonrpc": "2.0",
            "id": message["id"],
            **(unknown if result is None else {"result": result}),
        }
        print(json.dumps(told), flush=True)
