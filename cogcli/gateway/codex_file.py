"""The gateway as a server in the file of Codex, which is TOML (docs/reference/hosts.md#server-config).

A table is added at the end of the file. No other byte of it changes, since comments and order belong to its user.
"""

from __future__ import annotations

import json
from typing import Final

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.files import UnreadableFile, read_regular
from cogcli.declarations.value_types import Json

FILE: Final = ".codex/config.toml"
"""The file of a project in which Codex finds servers, if its user trusts the project there."""
SERVERS: Final = "mcp_servers"
_LIMIT: Final = 4 * 1024 * 1024
_HINT: Final = "correct it, or add the table yourself: cogcli gateway config codex --server"


def format_server(name: str, server: Json) -> str:
    """Return the table of a server with a `command` and `args`."""
    # JSON without escapes of characters above ASCII is a basic string of TOML.
    command, args = (json.dumps(server[key], ensure_ascii=False) for key in ("command", "args"))
    return f"[{SERVERS}.{name}]\ncommand = {command}\nargs = {args}\n"


def add_server(path: str, name: str, server: Json) -> bytes | None:
    """Return the content of a file with the table of a server added; None if the file has it already.

    Raise UnusableEnvironment `gateway.file` for a file that cannot be read or extended, or that has another server of
    this name.
    """
    text = _read_text(path)
    before = _parse(text)
    servers = before.get(SERVERS, {})
    if not isinstance(servers, dict):
        raise _file_error(f"`{SERVERS}` is not a table")
    if name in servers:
        if servers[name] == server:
            return None
        raise _file_error(f"`{SERVERS}.{name}` is another server; replace it yourself")
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    extended = f"{text}{gap}{format_server(name, server)}"
    if _parse(extended) != {**before, SERVERS: {**servers, name: server}}:
        raise _file_error("a table at its end would change another one")
    return extended.encode()


def _read_text(path: str) -> str:
    """Return the content of a file, empty if it does not exist."""
    try:
        return read_regular(path, limit=_LIMIT).decode()
    except UnreadableFile as refused:
        if refused.reason == "missing":
            return ""
        raise _file_error(refused.message) from refused
    except UnicodeDecodeError as error:
        raise _file_error("it is not UTF-8") from error


def _parse(text: str) -> Json:
    import tomllib

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _file_error(f"it is no TOML that a table can be added to: {error}") from error


def _file_error(text: str) -> UnusableEnvironment:
    return UnusableEnvironment("gateway.file", f"{FILE}: {text}", hint=_HINT)
