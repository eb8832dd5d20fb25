"""The configuration of a host that makes `cogcli gateway serve` its server (docs/reference/hosts.md#server-config).

Other servers of the host's file stay in it, since the gateway may read them there. A person turns them off in the host.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Final

from cogcli.app.settings import Settings
from cogcli.app.settings.trust_needs import HOST_FILES
from cogcli.base.errors import UnusableEnvironment
from cogcli.base.files import UnreadableFile, read_regular
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json
from cogcli.gateway import codex_file
from cogcli.gateway.host_file import HostEntry, checked_document, is_gateway
from cogcli.gateway.hosts import AgentHost
from cogcli.gateway.hosts_config import write_document, write_file
from cogcli.specs.unchecked import object_at

NAME: Final = "cogcli"
"""The name of the gateway among the servers of a host."""
SERVERS: Final = "mcpServers"
CODEX: Final = "codex"
_LIMIT: Final = 4 * 1024 * 1024
SERVER_FILES: Final[Mapping[str, str]] = {
    "claude-code": ".mcp.json",
    "cursor": ".cursor/mcp.json",
    "gemini-cli": ".gemini/settings.json",
    "copilot": ".mcp.json",
}
"""The file of a project in which a host finds servers, of hosts whose file is JSON."""
_REQUIRED: Final[Mapping[str, Json]] = {"copilot": {"tools": ["*"]}}
"""By host, the members that it requires of each server."""


def build_server(settings: Settings, host: AgentHost, flags: Sequence[str]) -> Json:
    """Return the member of a host's file that names the gateway as a server.

    The gateway offers the other servers of that file, if a trust in the project covers it. Raise the errors of
    `read_servers`.
    """
    words = ["gateway", "serve", *_from_flag(settings, host), *flags]
    servers = codex_file.SERVERS if host.name == CODEX else SERVERS
    required = _REQUIRED.get(host.name, {})
    return {servers: {NAME: {"command": "cogcli", "args": words, **required}}}


def format_document(document: Json) -> str:
    """Return the hooks or the server for a host's file in the language of that file."""
    if codex_file.SERVERS in document:
        return codex_file.format_server(NAME, document[codex_file.SERVERS][NAME])
    return json.dumps(document, indent=2) + "\n"


def write_server_file(settings: Settings, host: AgentHost, flags: Sequence[str]) -> str:
    """Merge the gateway into a host's file of the project, and return its path.

    Two hosts may share a file, so an earlier entry of the gateway keeps its other members. Raise UnusableEnvironment
    `gateway.file`, `env.disk`, `project.link`.
    """
    if host.name == CODEX:
        return _write_codex_file(settings, host, flags)
    file = SERVER_FILES[host.name]
    path = os.path.join(_project_folder(settings), file)
    document = read_servers(path, file) or {}
    servers = object_at(document, SERVERS)
    own = build_server(settings, host, flags)[SERVERS][NAME]
    earlier = object_at(servers, NAME)
    kept = earlier if is_gateway(read_record(HostEntry, earlier)) else {}
    document[SERVERS] = {**servers, NAME: {**kept, **own}}
    write_document(settings, path, document)
    return path


def _write_codex_file(settings: Settings, host: AgentHost, flags: Sequence[str]) -> str:
    path = os.path.join(_project_folder(settings), codex_file.FILE)
    server = build_server(settings, host, flags)[codex_file.SERVERS][NAME]
    content = codex_file.add_server(path, NAME, server)
    if content is not None:
        write_file(settings, path, content)
    return path


def read_servers(path: str, display_path: str) -> Json | None:
    """Return a host's file; None if it does not exist. Raise UnusableEnvironment `gateway.file`."""
    try:
        document = loads(read_regular(path, limit=_LIMIT), max_bytes=_LIMIT)
    except UnreadableFile as refused:
        if refused.reason == "missing":
            return None
        raise UnusableEnvironment("gateway.file", f"{display_path}: {refused.message}") from refused
    except InvalidJson as refused:
        text = f"{display_path}:{refused.line}: {refused.message}"
        raise UnusableEnvironment("gateway.file", text) from refused
    known = checked_document(document, SERVERS)
    if known is None:
        raise UnusableEnvironment("gateway.file", f"{display_path}: `{SERVERS}` is not an object")
    return known


def _from_flag(settings: Settings, host: AgentHost) -> list[str]:
    """Return the flag with which the gateway offers the other servers of the host's file."""
    file = SERVER_FILES.get(host.name, "")  # none for Codex
    if file not in HOST_FILES:
        return []
    document = read_servers(os.path.join(_project_folder(settings), file), file) or {}
    has_others = bool(object_at(document, SERVERS).keys() - {NAME})
    return ["--from", file] if has_others else []


def _project_folder(settings: Settings) -> str:
    return settings.project or settings.base
