"""The tools of a host that a person marked read-only, in the lock of the project (docs/reference/hosts.md#marks)."""

from __future__ import annotations

from collections.abc import Mapping

from cogcli.app.settings import Settings
from cogcli.app.settings.own_writes import keep_trust
from cogcli.base.errors import UnusableEnvironment, UsageError
from cogcli.declarations.value_types import Json
from cogcli.gateway.hosts import HOSTS, AgentHost
from cogcli.protocols.mcp.pins import lock_path, read_locked, write_lock
from cogcli.specs.lock import READ_ONLY


def find_host(name: str) -> AgentHost:
    """Return a host by its name. Raise UsageError."""
    host = HOSTS.get(name)
    if host is None:
        expected = f"one of {', '.join(HOSTS)}"
        raise UsageError("usage.value", f"there is no host `{name[:60]}`", expected=expected)
    return host


def lock_entry(host: AgentHost) -> str:
    """Return the name of a host's entry in the lock. No service has it."""
    return f"host:{host.name}"


def read_marks(settings: Settings, host: AgentHost) -> list[str]:
    """Return the tools that are marked read-only. None are in a project that is not trusted.

    Raise SafetyScopeError for a damaged lock.
    """
    if settings.project is None or not settings.trust:
        return []
    tools = read_locked(settings.project, lock_entry(host)) or []
    return [str(tool["name"]) for tool in tools if tool.get(READ_ONLY) is True]


def set_marks(settings: Settings, host: AgentHost, marks: Mapping[str, bool]) -> list[str]:
    """Mark tools as read-only, or remove marks, and return all marked tools. Raise UsageError for a tool that can run
    any command. Raise UnusableEnvironment without a project or a writable lock, SafetyScopeError for a damaged lock.
    """
    if settings.project is None:
        raise UnusableEnvironment(
            "project.none", "marks are kept in a project", next=("cogcli new project .",)
        )
    for tool, read_only in marks.items():
        if read_only and tool in host.shells:
            text = f"`{tool}` of {host.title} runs any command: it cannot be read-only"
            raise UsageError("usage.value", text, hint="write a pack with rules for its command")
    root = settings.project
    before = {str(tool["name"]): tool for tool in read_locked(root, lock_entry(host)) or ()}
    marked = {tool: {"name": tool, READ_ONLY: mark} for tool, mark in marks.items()}
    _write_tools(settings, root, host, list({**before, **marked}.values()))
    locked = read_locked(root, lock_entry(host)) or []
    return [str(tool["name"]) for tool in locked if tool.get(READ_ONLY) is True]


def _write_tools(settings: Settings, root: str, host: AgentHost, tools: list[Json]) -> None:
    """Write the tools of a host to the lock. Raise UnusableEnvironment."""
    path = lock_path(root)
    try:
        with keep_trust(settings) as written:
            written(path, write_lock(root, lock_entry(host), tools, bound=settings.bound))
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror}"
        raise UnusableEnvironment("env.disk", message) from error
