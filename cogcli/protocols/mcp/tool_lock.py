"""Reading and writing the lock of accepted tools. A damaged lock refuses: it is not known what was accepted."""

from __future__ import annotations

import os
from typing import Any

import orjson

from cogcli.core.document_fault import DocumentFault
from cogcli.core.errors import SafetyScopeError
from cogcli.core.files import Alone, write_atomic
from cogcli.specs.lock import MEMBERS, NAME, SCHEMA, digest_of_tool, read_locked_services


def path_of(root: str) -> str:
    """The path of the lock of the layer with this root."""
    return os.path.join(root, NAME)


def read_locked(root: str, service_id: str) -> list[dict[str, Any]] | None:
    """The tools that a service is locked to, None for one that is not locked. Raises SafetyScopeError for a damaged
    lock."""
    tools = _read_services(root).get(service_id)
    return None if tools is None else [dict(tool) for tool in tools.values()]


def write(root: str, service_id: str, tools: list[dict[str, Any]]) -> None:
    """Lock a service to these tools, leaving other services unchanged. Raises SafetyScopeError, OSError."""
    style = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    with Alone(root):
        services = {id: {"tools": list(others.values())} for id, others in _read_services(root).items()}
        services[service_id] = {"tools": [_entry(tool) for tool in tools]}
        write_atomic(
            path_of(root), orjson.dumps({"schema": SCHEMA, "services": services}, option=style), mode=0o644
        )


def _read_services(root: str) -> Any:
    try:
        return read_locked_services(root)
    except DocumentFault as fault:
        raise SafetyScopeError("safety.scope", fault.located_message, hint=fault.hint, left=False) from fault


def _entry(tool: dict[str, Any]) -> dict[str, Any]:
    return {**{name: tool.get(name) for name in MEMBERS}, "sha256": digest_of_tool(tool)}
