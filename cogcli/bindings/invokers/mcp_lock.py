"""`cogcli.lock.json`: the tools of services as a person accepted them, kept with the project (protocols.md 6)."""

from __future__ import annotations

import os
from typing import Any, Final

import orjson

from cogcli.bindings.invokers.mcp_pins import digest_of_tool
from cogcli.bindings.invokers.mcp_tools import PINNED
from cogcli.core.errors import SafetyScopeError
from cogcli.core.files import FileRefused, read_regular, write_atomic
from cogcli.core.strict_json import JsonRefused, loads

NAME: Final = "cogcli.lock.json"
SCHEMA: Final = "cogcli.lock/1"
_LIMIT: Final = 64 * 1024 * 1024
_NODES: Final = 2_000_000


def path_of(root: str) -> str:
    """The lock of the layer whose specs live in this directory."""
    return os.path.join(root, NAME)


def locked(root: str, service_id: str) -> list[dict[str, Any]] | None:
    """The tools that a service is locked to, None where it is not locked.

    Raises SafetyScopeError for a lock that cannot be read: what was agreed to is not known.
    """
    services = _services(path_of(root))
    entry = services.get(service_id)
    if entry is None:
        return None
    tools = entry.get("tools") if isinstance(entry, dict) else None
    if not isinstance(tools, list) or not all(map(_is_tool, tools)):
        raise _damaged(path_of(root), f"the entry of service `{service_id}` is no list of tools")
    return tools


def write(root: str, service_id: str, tools: list[dict[str, Any]]) -> None:
    """Lock a service to these tools; other services stay as they are. Raises SafetyScopeError, OSError."""
    path = path_of(root)
    services = {**_services(path), service_id: {"tools": [_entry(tool) for tool in tools]}}
    style = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    write_atomic(path, orjson.dumps({"schema": SCHEMA, "services": services}, option=style), mode=0o644)


def _services(path: str) -> dict[str, Any]:
    try:
        document = loads(read_regular(path, limit=_LIMIT), max_bytes=_LIMIT, max_nodes=_NODES)
    except FileRefused as error:
        if error.reason == "missing":
            return {}
        raise _damaged(path, error.message) from error
    except JsonRefused as error:
        raise _damaged(path, str(error)) from error
    services = document.get("services") if isinstance(document, dict) else None
    if not isinstance(services, dict) or document.get("schema") != SCHEMA:
        raise _damaged(path, f"it is no `{SCHEMA}`")
    return services


def _is_tool(value: Any) -> bool:
    """Whether an entry is a definition, and the one that its digest says."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("name"), str)
        and value.get("sha256") == digest_of_tool(value)
    )


def _entry(tool: dict[str, Any]) -> dict[str, Any]:
    return {**{name: tool.get(name) for name in PINNED}, "sha256": digest_of_tool(tool)}


def _damaged(path: str, why: str) -> SafetyScopeError:
    text = f"{path} is damaged: {why}"
    return SafetyScopeError("safety.scope", text, hint="restore it, or remove it", left=False)
