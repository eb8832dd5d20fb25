"""The configuration of a host that makes `cogcli gateway hook` its hook (docs/reference/hosts.md#config).

A hook that does not start must not let a call run. So each command ends with a denial by the shell itself, and the
switch of the host that blocks after a failure is set where the host has one.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Mapping, Sequence
from typing import Final

import orjson

from cogcli.app.settings import Settings
from cogcli.base.errors import UnusableEnvironment
from cogcli.base.files import UnreadableFile, read_regular, write_atomic
from cogcli.base.links import require_inside
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.declarations.value_types import Json
from cogcli.gateway.hook_wire import SECONDS
from cogcli.gateway.host_file import checked_document
from cogcli.gateway.hosts import AgentHost
from cogcli.specs.unchecked import list_at, object_at, objects_at, text_at

MARGIN_SECONDS: Final = 5
"""Seconds by which the host waits longer than the hook."""
_LIMIT: Final = 4 * 1024 * 1024
_NEW_MODE: Final = 0o644
_DENIED_BY_SHELL: Final = "exit 2"
_COPILOT_DENIAL: Final = (
    """echo '{"permissionDecision":"deny","permissionDecisionReason":"cogcli did not run"}'"""
)


class HostConfig(NamedTuple):
    """The file from which a host reads the hooks of a project, and the events that need a hook."""

    file: str
    events: tuple[str, ...]
    decides: tuple[str, ...]
    """The events of these in which a call is decided."""


CONFIGS: Final[Mapping[str, HostConfig]] = {
    "claude-code": HostConfig(
        ".claude/settings.json",
        ("PreToolUse", "PostToolUse", "PostToolUseFailure", "SessionEnd"),
        ("PreToolUse",),
    ),
    "cursor": HostConfig(
        ".cursor/hooks.json",
        ("preToolUse", "postToolUse", "postToolUseFailure", "sessionEnd"),
        ("preToolUse",),
    ),
    "gemini-cli": HostConfig(
        ".gemini/settings.json", ("BeforeTool", "AfterTool", "SessionEnd"), ("BeforeTool",)
    ),
    "codex": HostConfig(".codex/hooks.json", ("PreToolUse", "PostToolUse"), ("PreToolUse",)),
    "copilot": HostConfig(
        ".github/hooks/cogcli.json", ("preToolUse", "postToolUse", "sessionEnd"), ("preToolUse",)
    ),
}
"""By host."""


def hook_command(host: AgentHost, flags: Sequence[str]) -> str:
    """Return the command of a hook, for a shell."""
    command = shlex.join(["cogcli", "gateway", "hook", host.name, *flags])
    denial = _COPILOT_DENIAL if host.name == "copilot" else _DENIED_BY_SHELL
    return f"{command} || {denial}"


def is_own_command(host: AgentHost, command: str) -> bool:
    """Return whether a command of a host's file is one of these hooks."""
    return f"gateway hook {host.name}" in command


def build_hook(host: AgentHost, event: str, flags: Sequence[str]) -> Json:
    """Return the entry of an event in the host's file."""
    command, seconds = hook_command(host, flags), SECONDS[host.name] + MARGIN_SECONDS
    if host.name == "cursor":
        return {"command": command, "timeout": seconds, "failClosed": True}
    if host.name == "copilot":
        return {"type": "command", "bash": command, "timeoutSec": seconds}
    hook: Json = {"type": "command", "command": command, "timeout": seconds}
    if host.name == "gemini-cli":
        hook |= {"name": "cogcli", "timeout": seconds * 1000}
    elif host.name == "claude-code" and event in CONFIGS[host.name].decides:
        hook["onFailure"] = "block"
    is_of_tool = not event.lower().startswith("session")
    return {**({"matcher": "*"} if is_of_tool else {}), "hooks": [hook]}


def commands_in(entry: Json) -> list[str]:
    """Return the commands of an entry of an event, in the form of any host."""
    inner = [hook for _, hook in objects_at(entry, "hooks")]
    found = [text_at(each, name) for each in (entry, *inner) for name in ("command", "bash")]
    return [each for each in found if each]


def build_config(host: AgentHost, flags: Sequence[str]) -> Json:
    """Return the host's file with nothing but these hooks."""
    events = CONFIGS[host.name].events
    hooks = {event: [build_hook(host, event, flags)] for event in events}
    return {**({"version": 1} if host.name in ("cursor", "copilot") else {}), "hooks": hooks}


def merge_config(host: AgentHost, document: Json, flags: Sequence[str]) -> Json:
    """Return a host's file with these hooks added. Earlier hooks of this tool are replaced; everything else is
    unchanged.
    """
    own = build_config(host, flags)
    hooks = dict(object_at(document, "hooks"))
    for event, entries in own["hooks"].items():
        others = [
            each
            for each in list_at(hooks, event)
            if not (isinstance(each, dict) and _is_own(host, each))
        ]
        hooks[event] = [*others, *entries]
    return {**own, **document, "hooks": hooks}


def _is_own(host: AgentHost, entry: Json) -> bool:
    """Return whether all commands of an entry are these hooks."""
    commands = commands_in(entry)
    return bool(commands) and all(is_own_command(host, each) for each in commands)


def read_config(host: AgentHost, folder: str) -> Json | None:
    """Return a host's configuration file of a project; None if it does not exist. Raise UnusableEnvironment
    `gateway.file`.
    """
    path = os.path.join(folder, CONFIGS[host.name].file)
    try:
        document = loads(read_regular(path, limit=_LIMIT), max_bytes=_LIMIT)
    except UnreadableFile as refused:
        if refused.reason == "missing":
            return None
        raise _file_error(host, refused.message) from refused
    except InvalidJson as refused:
        raise _file_error(host, f"line {refused.line}: {refused.message}") from refused
    known = checked_document(document, "hooks")
    if known is None or not all(
        isinstance(each, list) for each in object_at(known, "hooks").values()
    ):
        raise _file_error(host, "`hooks` is not an object of lists")
    return known


def _file_error(host: AgentHost, text: str) -> UnusableEnvironment:
    hint = f"correct it, or add the hooks yourself: cogcli gateway config {host.name}"
    return UnusableEnvironment("gateway.file", f"{CONFIGS[host.name].file}: {text}", hint=hint)


def write_config(settings: Settings, host: AgentHost, flags: Sequence[str]) -> str:
    """Merge these hooks into a host's file of the project, and return its path.

    Raise UnusableEnvironment `gateway.file` for a file that cannot be read, `env.disk`, and `project.link`.
    """
    folder = settings.project or settings.base
    path = os.path.join(folder, CONFIGS[host.name].file)
    document = merge_config(host, read_config(host, folder) or {}, flags)
    write_document(settings, path, document)
    return path


def write_document(settings: Settings, path: str, document: Json) -> None:
    """Write a host's file of the project. Raise UnusableEnvironment `env.disk`, `project.link`."""
    data = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    write_file(settings, path, data)


def write_file(settings: Settings, path: str, data: bytes) -> None:
    """Write a host's file of the project. A file that exists keeps its permissions, since it may hold secrets. Raise
    UnusableEnvironment `env.disk`, `project.link`.
    """
    folder = require_inside(os.path.dirname(path), settings.bound)
    try:
        os.makedirs(folder, exist_ok=True)
        write_atomic(path, data, mode=_mode_of(path), bound=settings.bound)
    except OSError as error:
        raise UnusableEnvironment("env.disk", f"{path} cannot be written: {error}") from error


def _mode_of(path: str) -> int:
    """Return the permissions for a file after it is replaced: its own, or the default if it is new or was a link."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return _NEW_MODE
    return stat.S_IMODE(found.st_mode) if stat.S_ISREG(found.st_mode) else _NEW_MODE
