"""Checks that a tool is unchanged since it was accepted (docs/reference/protocols.md#mcp-pins).

1. A tool's digest covers its canonical name, description, schemas and annotations.
2. A locked service has only the tools of its lock, unchanged.
3. Else the first use of a tool pins it in the user's state directory, by server; a call never
   replaces a pin.
4. A tool that differs is refused, naming the fields. An unreadable pin or lock refuses too: it is
   not known what was accepted."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Final

import orjson

from cogcli.base.canonical import canonical
from cogcli.base.errors import RejectedError, SafetyScopeError
from cogcli.base.files import FolderLock, UnreadableFile, hint_for_write, read_regular, write_atomic
from cogcli.base.json_pointer import DocumentFault
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.specs.lock import MEMBERS, READ_ONLY, LockedTools, digest_of_tool, read_locked_services
from cogcli.specs.lock import NAME as LOCK_NAME
from cogcli.specs.lock import SCHEMA as LOCK_SCHEMA

SCHEMA: Final = "cogcli.pin/1"
_LIMIT: Final = 8 * 1024 * 1024
_NODES: Final = 500_000


def find_changed_fields(old: Json, new: Json) -> list[str]:
    """Return the members in which two definitions differ, in the order of `MEMBERS`."""
    return [name for name in MEMBERS if canonical(old.get(name)) != canonical(new.get(name))]


class PinFile(Record):
    """The file of one pinned tool."""

    schema: str
    tool: Json | None = None


class Pins:
    """The pins of one user. If `state_dir` is empty, nothing is pinned."""

    def __init__(self, state_dir: str) -> None:
        self._folder = os.path.join(state_dir, "pins", "mcp") if state_dir else ""

    def require_same(self, service_id: str, server: object, tool: Json) -> None:
        """Pin a tool at its first use. Raise SafetyScopeError if it differs from its pin."""
        if not self._folder:
            return
        path = self._pin_path(server, tool["name"])
        pinned = self._read_pin(path, service_id, tool["name"])
        if pinned is None:
            # Of two first uses at the same time, one pins and the other is compared with that pin.
            with self._lock_pins(tool, path):
                pinned = self._read_pin(path, service_id, tool["name"])
                if pinned is None:
                    self._write_pin(path, server, tool)
        require_unchanged(service_id, tool if pinned is None else pinned, tool)

    def replace(self, server: object, tools: list[Json]) -> None:
        """Pin these tools in their present form instead of older pins, because a person accepted
        them."""
        for tool in tools:
            if self._folder:
                with self._lock_pins(tool, path := self._pin_path(server, tool["name"])):
                    self._write_pin(path, server, tool)

    def _pin_path(self, server: object, name: str) -> str:
        folder = sha256(canonical(server)).hexdigest()[:32]
        return os.path.join(self._folder, folder, f"{sha256(name.encode()).hexdigest()[:32]}.json")

    def _read_pin(self, path: str, service_id: str, name: str) -> Json | None:
        try:
            document = loads(read_regular(path, limit=_LIMIT), max_bytes=_LIMIT, max_nodes=_NODES)
        except UnreadableFile as error:
            if error.reason == "missing":
                return None
            raise _unreadable_pin(service_id, name, str(error)) from error
        except InvalidJson as error:
            raise _unreadable_pin(service_id, name, f"{path}: {error}") from error
        pin = read_record(PinFile, document)
        if pin.tool is None or pin.schema != SCHEMA:
            raise _unreadable_pin(service_id, name, f"{path} is not a pin")
        return pin.tool

    def _write_pin(self, path: str, server: object, tool: Json) -> None:
        members = {name: tool[name] for name in MEMBERS if name in tool}
        document = {
            "schema": SCHEMA,
            "server": server,
            "sha256": digest_of_tool(tool),
            "tool": members,
        }
        write_atomic(path, canonical(document) + b"\n")

    @contextmanager
    def _lock_pins(self, tool: Json, path: str) -> Iterator[None]:
        """Hold the lock on the pins of this server in the `with` block. Raise SafetyScopeError if the lock cannot be
        written.
        """
        folder = os.path.dirname(path)
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            with FolderLock(folder):
                yield
        except OSError as error:
            text = f"tool `{tool['name']}` cannot be pinned: {path}: {error.strerror}"
            raise SafetyScopeError(
                "safety.scope", text, hint=hint_for_write(error), left=False
            ) from error


def require_locked(service_id: str, locked: list[Json], tool: Json) -> None:
    """Raise RejectedError for a tool that is not in the lock, SafetyScopeError for one that differs from it."""
    known = {entry["name"]: entry for entry in locked}
    if tool["name"] not in known:
        text = f"service `{service_id}`: tool `{tool['name']}` is not among its locked tools"
        raise RejectedError("call.rejected", text, hint=_refresh_hint(service_id), left=False)
    require_unchanged(service_id, known[tool["name"]], tool)


def require_unchanged(service_id: str, old: Json, new: Json) -> None:
    """Raise SafetyScopeError with the fields in which a tool differs from the accepted one."""
    fields = find_changed_fields(old, new)
    if fields:
        text = f"service `{service_id}`: tool `{new['name']}` has changed: {', '.join(fields)}"
        raise SafetyScopeError("safety.scope", text, hint=_refresh_hint(service_id), left=False)


def _unreadable_pin(service_id: str, name: str, why: str) -> SafetyScopeError:
    text = f"service `{service_id}`: what tool `{name}` was cannot be told: {why}"
    return SafetyScopeError("safety.scope", text, hint=_refresh_hint(service_id), left=False)


def _refresh_hint(service_id: str) -> str:
    return f"look at it with `cogcli services refresh {service_id}`, then add --accept"


def lock_path(root: str) -> str:
    """Return the path of the lock of the layer with this root."""
    return os.path.join(root, LOCK_NAME)


def read_locked(root: str, service_id: str) -> list[Json] | None:
    """Return the locked tools of a service, None without a lock. Raise SafetyScopeError for a
    damaged lock."""
    tools = _read_services(root).get(service_id)
    return None if tools is None else [dict(tool) for tool in tools.values()]


def write_lock(root: str, service_id: str, tools: list[Json], *, bound: str = "") -> bytes:
    """Lock a service to these tools, leaving other services unchanged; returns the content of the lock.

    `read_only` sets or clears a tool's mark. A tool without that member keeps its mark if it is
    unchanged.

    Raise SafetyScopeError, OSError, and UnusableEnvironment `project.link` for a link that leaves `bound`.
    """
    style = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    with FolderLock(root):
        services: Json = {
            id: {"tools": list(others.values())} for id, others in _read_services(root).items()
        }
        before = {tool["name"]: tool for tool in services.get(service_id, {}).get("tools", ())}
        services[service_id] = {"tools": [_lock_entry(tool, before) for tool in tools]}
        data = orjson.dumps({"schema": LOCK_SCHEMA, "services": services}, option=style)
        write_atomic(lock_path(root), data, mode=0o644, bound=bound)
    return data


def _lock_entry(tool: Json, before: Json) -> Json:
    """Return the entry of a tool in a lock. A mark of a person is kept as long as the tool does not change."""
    digest = digest_of_tool(tool)
    entry = {**{name: tool.get(name) for name in MEMBERS}, "sha256": digest}
    earlier = before.get(tool["name"], {})
    kept = earlier.get(READ_ONLY) if earlier.get("sha256") == digest else False
    return entry | ({READ_ONLY: True} if tool.get(READ_ONLY, kept) else {})


def _read_services(root: str) -> Mapping[str, LockedTools]:
    try:
        return read_locked_services(root)
    except DocumentFault as fault:
        raise SafetyScopeError(
            "safety.scope", fault.located_message, hint=fault.hint, left=False
        ) from fault
