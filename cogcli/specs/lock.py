"""`cogcli.lock.json`: the tools of MCP services as a person accepted them (docs/reference/protocols.md#mcp-pins).

`{"schema": "cogcli.lock/1", "services": {ID: {"tools": [{name, description, inputSchema, outputSchema, annotations,
sha256, read_only?}]}}}`. The digest is over the canonical JSON of the five members before it, with null for missing
ones.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from cogcli.base.api_documents.loader import CachedDocument, Identity, with_position
from cogcli.base.canonical import digest_of
from cogcli.base.files import UnreadableFile, read_regular
from cogcli.base.json_pointer import DocumentFault, Pointer
from cogcli.base.jsonvalue import Json
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.specs.unchecked import text_at, value_at

NAME: Final = "cogcli.lock.json"
SCHEMA: Final = "cogcli.lock/1"
MEMBERS: Final = ("name", "description", "inputSchema", "outputSchema", "annotations")
"""The members that identify a tool's definition."""
READ_ONLY: Final = "read_only"
"""The member with which a person marks a tool as without effects. It is not a part of its definition."""
PIN: Final = "lock:"
"""The prefix of a run's pins for the locks of its services."""
MAX_BYTES: Final = 64 * 1024 * 1024
MAX_NODES: Final = 2_000_000

LockedTools = Mapping[str, Mapping[str, object]]
"""Tools by name, each as defined by its server."""


def digest_of_tool(tool: Mapping[str, object]) -> str:
    """Return the SHA-256 digest of a tool's definition as canonical JSON, in hexadecimal."""
    return digest_of({name: tool.get(name) for name in MEMBERS})


def read_locked_tools(root: str, service_id: str) -> LockedTools | None:
    """Return the accepted tools of a service in the layer at `root`, or None if the lock has no entry for it.

    Raise DocumentFault `wire.document` for a damaged lock, since the accepted tools are then unknown.
    """
    return read_locked_services(root).get(service_id)


def read_locked_services(root: str) -> Mapping[str, LockedTools]:
    """Return the accepted tools of all services in the lock of the layer at `root`, by service id.

    Raise DocumentFault `wire.document` for a damaged lock.
    """
    identity = lock_identity(root)
    if identity is None:
        return {}
    found: Mapping[str, LockedTools] = _read_services(identity).require()
    return found


def lock_digest(root: str, service_id: str) -> str | None:
    """Return the digest of a service's accepted tools, even if it has none. None for a damaged lock."""
    try:
        tools = read_locked_tools(root, service_id)
    except DocumentFault:
        return None
    return digest_of(
        None if tools is None else {name: tool["sha256"] for name, tool in tools.items()}
    )


def lock_identity(root: str) -> Identity | None:
    """Return the current identity of a layer's lock file; None without a lock."""
    path = os.path.join(root, NAME)
    try:
        found = os.stat(path)
    except OSError:
        return None
    return Identity(path, root, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=8)
def _read_services(identity: Identity) -> CachedDocument:
    """Return the accepted tools by service id, or the fault of a damaged lock."""
    try:
        return CachedDocument(_parse_services(identity))
    except DocumentFault as fault:
        return CachedDocument(fault=fault)


def _parse_services(identity: Identity) -> dict[str, LockedTools]:
    try:
        value = loads(
            read_regular(identity.path, limit=MAX_BYTES), max_bytes=MAX_BYTES, max_nodes=MAX_NODES
        )
    except UnreadableFile as refused:
        raise _build_damage_fault(identity, refused.message) from refused
    except InvalidJson as refused:
        place = (refused.line, refused.column)
        raise _build_damage_fault(identity, refused.message, place=place) from refused
    services = value_at(value, "services")
    if not isinstance(services, dict) or value_at(value, "schema") != SCHEMA:
        raise _build_damage_fault(identity, f"it is no `{SCHEMA}`", pointer=("schema",))
    damaged = _find_damaged_entry(services)
    if damaged is not None:
        message = f"the entry of service `{damaged[1]}` is not as it was written"
        raise _build_damage_fault(identity, message, pointer=damaged)
    return {id: {tool["name"]: tool for tool in entry["tools"]} for id, entry in services.items()}


def _find_damaged_entry(services: Json) -> Pointer | None:
    """Return the first service or tool with content that this program does not write, or None."""
    for id, entry in services.items():
        tools = value_at(entry, "tools")
        if not isinstance(tools, list):
            return ("services", id)
        for index, tool in enumerate(tools):
            name, sealed = text_at(tool, "name"), value_at(tool, "sha256")
            if name is None or sealed != digest_of_tool(tool):
                return ("services", id, "tools", str(index))
    return None


def _build_damage_fault(
    identity: Identity,
    damage: str,
    *,
    pointer: Pointer | None = None,
    place: tuple[int, int] = (0, 0),
) -> DocumentFault:
    hint = "restore it; or remove it and accept again: cogcli services refresh ID --accept"
    fault = DocumentFault(
        "wire.document", f"{NAME} is damaged: {damage}", hint, pointer=pointer, place=place
    )
    return with_position(fault, identity.path)
