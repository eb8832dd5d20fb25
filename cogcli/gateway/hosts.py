"""The hosts whose hooks are decided about: what their inputs look like, and their own tools
(docs/reference/hosts.md).

The input of a hook is foreign data. It is read here, once. An input that lacks what a decision needs is a fault, and
the call is denied.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.declarations.value_types import Json
from cogcli.gateway.hook_wire import MOST_BYTES, SESSION_MEMBERS
from cogcli.specs.unchecked import text_at

EventKind = Literal["decide", "report", "failure", "end"]
"""The event of a hook: a call that waits for a decision, a call that has ended or failed, the end of the session."""


class AgentHost(NamedTuple):
    """One host: the member names of its hook input, and its built-in tools."""

    name: str
    title: str
    events: Mapping[str, EventKind]
    """By the name of an event in an input."""
    tools: Mapping[str, str]
    """Its own tools, and the last word of their capability ids."""
    shells: frozenset[str]
    """The tools that run any command. No mark makes one read-only."""
    event: str = "hook_event_name"
    """The member with the name of the event. Empty if inputs do not name it."""
    tool: str = "tool_name"
    arguments: str = "tool_input"
    call_id: str = ""
    """The member that identifies a call in all its events. Empty if the host has none."""
    response: tuple[str, ...] = ("tool_response",)
    """The members that may contain a tool's response. The first one present is used."""


class HostCall(NamedTuple):
    """A call of a tool, as a host passes it to a hook."""

    tool: str
    arguments: Json
    cwd: str
    call_id: str = ""
    """Empty if the host does not identify calls."""

    @property
    def inputs(self) -> Json:
        """The inputs of the capability."""
        return {"arguments": self.arguments, "cwd": self.cwd, "tool": self.tool}


class HostEvent(NamedTuple):
    """The input of a hook."""

    kind: EventKind
    call: HostCall | None = None
    """None for the end of a session."""
    response: object = None
    """The tool's response, for a call that has ended or failed."""


class UnusableInput(Exception):
    """Raised for a hook's input that lacks a member that the decision needs. The text is the reason."""


_CLAUDE: Final[Mapping[str, EventKind]] = {
    "PreToolUse": "decide",
    "PostToolUse": "report",
    "PostToolUseFailure": "failure",
    "SessionEnd": "end",
}
_CURSOR: Final[Mapping[str, EventKind]] = {
    "preToolUse": "decide",
    "beforeShellExecution": "decide",
    "beforeMCPExecution": "decide",
    "postToolUse": "report",
    "afterShellExecution": "report",
    "afterMCPExecution": "report",
    "postToolUseFailure": "failure",
    "sessionEnd": "end",
}
_GEMINI: Final[Mapping[str, EventKind]] = {
    "BeforeTool": "decide",
    "AfterTool": "report",
    "SessionEnd": "end",
}
_COPILOT: Final[Mapping[str, EventKind]] = {
    "preToolUse": "decide",
    "postToolUse": "report",
    "sessionEnd": "end",
}


def _parse_pairs(text: str) -> dict[str, str]:
    return dict(pair.split(":") for pair in text.split())


HOSTS: Final[Mapping[str, AgentHost]] = {
    host.name: host
    for host in (
        AgentHost(
            "claude-code",
            "Claude Code",
            _CLAUDE,
            _parse_pairs(
                "Agent:agent AskUserQuestion:ask_user_question Bash:bash BashOutput:bash_output Edit:edit"
                " ExitPlanMode:exit_plan_mode Glob:glob Grep:grep KillShell:kill_shell LS:ls MultiEdit:multi_edit"
                " NotebookEdit:notebook_edit Read:read Skill:skill Task:task TodoWrite:todo_write WebFetch:web_fetch"
                " WebSearch:web_search Write:write"
            ),
            frozenset(("Bash",)),
            call_id="tool_use_id",
        ),
        AgentHost(
            "cursor",
            "Cursor",
            _CURSOR,
            _parse_pairs(
                "Delete:delete Edit:edit Grep:grep LS:ls Read:read Shell:shell StrReplace:str_replace Task:task"
                " WebFetch:web_fetch WebSearch:web_search Write:write"
            ),
            frozenset(("Shell",)),
            call_id="tool_use_id",
            response=("tool_output", "output", "result_json", "error_message"),
        ),
        AgentHost(
            "gemini-cli",
            "Gemini CLI",
            _GEMINI,
            _parse_pairs(
                "glob:glob google_web_search:google_web_search list_directory:list_directory"
                " read_file:read_file read_many_files:read_many_files replace:replace"
                " run_shell_command:run_shell_command save_memory:save_memory"
                " search_file_content:search_file_content web_fetch:web_fetch write_file:write_file"
                " write_todos:write_todos"
            ),
            frozenset(("run_shell_command",)),
        ),
        AgentHost(
            "codex",
            "Codex",
            {name: kind for name, kind in _CLAUDE.items() if name != "SessionEnd"},
            _parse_pairs(
                "Bash:bash apply_patch:apply_patch update_plan:update_plan view_image:view_image"
            ),
            frozenset(("Bash",)),
            call_id="tool_use_id",
        ),
        AgentHost(
            "copilot",
            "GitHub Copilot CLI",
            _COPILOT,
            _parse_pairs(
                "bash:bash create:create edit:edit glob:glob grep:grep powershell:powershell"
                " report_intent:report_intent task:task view:view web_fetch:web_fetch"
            ),
            frozenset(("bash", "powershell")),
            event="",
            tool="toolName",
            arguments="toolArgs",
            response=("toolResult",),
        ),
    )
}
"""The hosts by name."""


def read_event(host: AgentHost, data: bytes) -> HostEvent:
    """Return the input of a hook. Raise UnusableInput."""
    try:
        document = loads(data, max_bytes=MOST_BYTES)
    except InvalidJson as refused:
        raise UnusableInput(f"the input is not usable JSON: {refused.message}") from refused
    if text_at(document, SESSION_MEMBERS[host.name]) is None:
        raise UnusableInput("the input does not name its session")
    name = text_at(document, host.event) if host.event else _find_event(document)
    kind = host.events.get(name or "")
    if kind is None:
        raise UnusableInput(
            f"no event of {host.title} that is decided about: `{(name or '')[:60]}`"
        )
    if kind == "end":
        return HostEvent("end")
    found = [document[each] for each in host.response if each in document]
    return HostEvent(kind, _read_call(host, name or "", document), found[0] if found else None)


def _find_event(document: Json) -> str:
    """Return the name of the event of an input that does not name it: Copilot's."""
    if "toolName" not in document:
        return "sessionEnd" if "reason" in document else ""
    return "postToolUse" if "toolResult" in document else "preToolUse"


def _read_call(host: AgentHost, event: str, document: Json) -> HostCall:
    """Return the call that an event is about. Raise UnusableInput."""
    if event in ("beforeShellExecution", "afterShellExecution"):
        tool: str | None = "Shell"
        arguments: object = {"command": document.get("command")}
        if text_at(document, "command") is None:
            raise UnusableInput("the input has no `command`")
    else:
        tool, arguments = text_at(document, host.tool), document.get(host.arguments)
        if event in ("beforeMCPExecution", "afterMCPExecution"):
            tool = tool and f"MCP:{tool.removeprefix('MCP:')}"
    if not tool or len(tool) > 256:
        raise UnusableInput(f"the input has no `{host.tool}`")
    id = text_at(document, host.call_id) if host.call_id else None
    return HostCall(
        tool, _read_arguments(host, arguments), text_at(document, "cwd") or "", id or ""
    )


def _read_arguments(host: AgentHost, raw: object) -> Json:
    """Return the arguments of a call. Some hosts encode them as JSON text. Raise UnusableInput."""
    if isinstance(raw, str):
        try:
            raw = loads(raw, max_bytes=MOST_BYTES)
        except InvalidJson as refused:
            raise UnusableInput(f"`{host.arguments}` is not usable JSON") from refused
    if not isinstance(raw, dict):
        raise UnusableInput(f"`{host.arguments}` is not an object")
    return raw
