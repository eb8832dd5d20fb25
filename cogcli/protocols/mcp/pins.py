"""Whether a tool is still the one that was agreed to (docs/reference/protocols.md#mcp-pins).

1. A tool's digest is over canonical name, description, schemas and annotations.
2. A locked service has only the tools of its lock, as they stand there.
3. Else the first use of a tool pins it in the user's state directory, by server; nothing is ever pinned over.
4. A tool that differs is refused, and the refusal names the fields. A pin that cannot be read refuses, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, Final

from cogcli.core.canonical import canonical
from cogcli.core.errors import RejectedError, SafetyScopeError
from cogcli.core.files import Alone, FileRefused, read_regular, write_atomic
from cogcli.core.strict_json import JsonRefused, loads
from cogcli.specs.lock import MEMBERS, digest_of_tool

SCHEMA: Final = "cogcli.pin/1"
_LIMIT: Final = 8 * 1024 * 1024
_NODES: Final = 500_000


def find_changed_fields(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Which members of two definitions differ, in the order in which tools are written."""
    return [name for name in MEMBERS if canonical(old.get(name)) != canonical(new.get(name))]


class Pins:
    """The pins of one user. `state_dir` empty: nothing is remembered."""

    def __init__(self, state_dir: str) -> None:
        self._folder = os.path.join(state_dir, "pins", "mcp") if state_dir else ""

    def require_same(self, service_id: str, server: Any, tool: Mapping[str, Any]) -> None:
        """Pin a tool at its first use; raise SafetyScopeError where it is no longer the one that was pinned."""
        if not self._folder:
            return
        path = self._path(server, tool["name"])
        pinned = self._read(path, service_id, tool["name"])
        require_unchanged(service_id, pinned or self._pinned_first(path, service_id, server, tool), tool)

    def replace(self, server: Any, tools: list[dict[str, Any]]) -> None:
        """Pin these tools as they are now, whatever they were; a person has looked at them."""
        for tool in tools:
            if self._folder:
                with self._alone(tool, path := self._path(server, tool["name"])):
                    self._write(path, server, tool)

    def _pinned_first(
        self, path: str, service_id: str, server: Any, tool: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """The tool as it is pinned now: of two that use it first at once, one pins and the other is held to that."""
        with self._alone(tool, path):
            pinned = self._read(path, service_id, tool["name"])
            if pinned is None:
                self._write(path, server, tool)
        return tool if pinned is None else pinned

    def _path(self, server: Any, name: str) -> str:
        folder = sha256(canonical(server)).hexdigest()[:32]
        return os.path.join(self._folder, folder, f"{sha256(name.encode()).hexdigest()[:32]}.json")

    def _read(self, path: str, service_id: str, name: str) -> dict[str, Any] | None:
        try:
            document = loads(read_regular(path, limit=_LIMIT), max_bytes=_LIMIT, max_nodes=_NODES)
        except FileRefused as error:
            if error.reason == "missing":
                return None
            raise _unreadable(service_id, name, str(error)) from error
        except JsonRefused as error:
            raise _unreadable(service_id, name, f"{path}: {error}") from error
        tool = document.get("tool") if isinstance(document, dict) else None
        if not isinstance(tool, dict) or document.get("schema") != SCHEMA:
            raise _unreadable(service_id, name, f"{path} is no pin")
        return tool

    def _write(self, path: str, server: Any, tool: Mapping[str, Any]) -> None:
        kept = {name: tool[name] for name in MEMBERS if name in tool}
        document = {"schema": SCHEMA, "server": server, "sha256": digest_of_tool(tool), "tool": kept}
        write_atomic(path, canonical(document) + b"\n")

    @contextmanager
    def _alone(self, tool: Mapping[str, Any], path: str) -> Iterator[None]:
        """With nobody else at the pins of this server. Raises SafetyScopeError where nothing can be written."""
        folder = os.path.dirname(path)
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            with Alone(folder):
                yield
        except OSError as error:
            text = f"tool `{tool['name']}` cannot be pinned: {path}: {error.strerror}"
            raise SafetyScopeError(
                "safety.scope", text, hint="make the directory writable", left=False
            ) from error


def require_locked(service_id: str, locked: list[dict[str, Any]], tool: Mapping[str, Any]) -> None:
    """Raise RejectedError for a tool that the lock does not hold, SafetyScopeError for one that has changed."""
    known = {entry["name"]: entry for entry in locked}
    if tool["name"] not in known:
        text = f"service `{service_id}`: tool `{tool['name']}` is not among its locked tools"
        raise RejectedError("call.rejected", text, hint=_refresh(service_id), left=False)
    require_unchanged(service_id, known[tool["name"]], tool)


def require_unchanged(service_id: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Raise SafetyScopeError naming the fields in which a tool differs from what was agreed to."""
    fields = find_changed_fields(old, new)
    if fields:
        text = f"service `{service_id}`: tool `{new['name']}` has changed: {', '.join(fields)}"
        raise SafetyScopeError("safety.scope", text, hint=_refresh(service_id), left=False)


def _unreadable(service_id: str, name: str, why: str) -> SafetyScopeError:
    text = f"service `{service_id}`: what tool `{name}` was cannot be told: {why}"
    return SafetyScopeError("safety.scope", text, hint=_refresh(service_id), left=False)


def _refresh(service_id: str) -> str:
    return f"look at it with `cogcli services refresh {service_id}`, then add --accept"
