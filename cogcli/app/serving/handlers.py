"""`serve mcp`: skills as tools for clients of the Model Context Protocol (docs/reference/protocols.md#serve).

1. The tools and the options of their runs are fixed at the start: no client raises trust or approves anything.
2. A call is a run with its own episode, named in `_meta`. At most 8 run at once, the others wait.
3. A run that failed, waits for a person or got wrong inputs is a tool error with code and hint; an unknown tool is a
   protocol error; an unexpected exception is "internal error" without details.
4. A client that cancels a call, or disconnects, aborts its run: the episode is sealed as aborted, and no more progress
   is sent.
5. The listener is called once for each tool call, however it ends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.server import Server
from mcp.shared.exceptions import MCPError

from cogcli import __version__
from cogcli.app.serving.run_pool import ProgressNotifier, RunPool
from cogcli.base.errors import CogcliError
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.specs.unchecked import text_at

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from cogcli.app.serving.tools import ServedSkill, ToolOffer
    from cogcli.run.results import RunResult

    ClientRequest = ServerRequestContext[Any, Any]

_TRACEPARENT: Final = re.compile(r"00-((?!0{32})[0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


_RUN_AGAIN: Final = re.compile(
    r"run again with (--(?:confirm|trust-level) \S+) if you mean to allow it"
)


class ServerListener(NamedTuple):
    """Callbacks of the command that started the server."""

    called: Callable[[str, Mapping[str, str]], None]
    """Called when a tool call ends: the name of the tool; `status`, `error` (code) and `episode`
    (id), if they are known."""
    bug: Callable[[BaseException], None]
    """Called with an unexpected exception, for a crash report."""
    error: Callable[[RunResult], Json | None]
    """Returns the error object of a run, with commands in `next`."""
    warn: Callable[[CogcliError], None]
    """Called with each warning of a run, such as a hook that failed."""


class ToolHandlers:
    """The handlers of `tools/list` and `tools/call`."""

    def __init__(
        self, offer: ToolOffer, runs: RunPool, listener: ServerListener, where: str = ""
    ) -> None:
        self._where = where
        """The directory in which a person can type the commands of `next`."""
        self._offer = offer
        self._runs = runs
        self._listener = listener

    async def list(
        self, _: ClientRequest, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """Return all tools on one page. Raise MCPError for a cursor."""
        if params is not None and params.cursor is not None:
            raise MCPError(
                code=types.INVALID_PARAMS, message="Unknown cursor: all tools are on one page"
            )
        tools = [types.Tool.model_validate(served.tool) for served in self._offer.tools.values()]
        return types.ListToolsResult(tools=tools)

    async def call(
        self, client: ClientRequest, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Run the skill of a tool. Raise only MCPError, and only for a tool that does not exist."""
        served = self._offer.tools.get(params.name)
        if served is None:
            raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {params.name[:128]}")
        report = {"status": "cancelled"}
        try:
            return await self._run_tool(client, served, params.arguments or {}, report)
        except CogcliError as error:
            refused = _refused_result(error)
            report.update(status="refused", error=(refused.meta or {})["cogcli/code"])
            return refused
        except Exception as bug:
            report.update(status="error", error="internal")
            self._listener.bug(bug)
            return _error_result(
                "internal error", {"cogcli/status": "error", "cogcli/code": "internal"}
            )
        finally:
            self._listener.called(params.name, report)

    async def _run_tool(
        self,
        client: ClientRequest,
        served: ServedSkill,
        arguments: Json,
        report: dict[str, str],
    ) -> types.CallToolResult:
        loaded = served.with_inputs(arguments)
        if trace_id := _trace_id(client):
            loaded = loaded._replace(request=loaded.request.with_options(trace_id=trace_id))
        progress = ProgressNotifier(client, len(loaded.skill.steps), report)
        result = await self._runs.run(loaded, progress)
        await progress.close()
        for warning in result.warnings:
            self._listener.warn(warning)
        return _tool_result(result, self._listener.error(result), self._where)


def server_of(tools: ToolHandlers) -> Server[Any]:
    """Return the MCP server of these handlers, for any transport."""
    return Server("cogcli", version=__version__, on_list_tools=tools.list, on_call_tool=tools.call)


# -- answers -----------------------------------------------------------------------------------------------------------


class RunErrorPayload(Record):
    """The error of a run, as `run --json` prints it."""

    code: str
    message: str
    hint: str | None = None
    next: list[str] | None = None


def _tool_result(result: RunResult, error: Json | None, directory: str) -> types.CallToolResult:
    """Return the reply to a call with the result of its run."""
    meta = {
        "cogcli/episode_id": result.episode_id,
        "cogcli/run_id": result.run_id,
        "cogcli/trace_id": result.trace_id,
        "cogcli/status": result.status,
    }
    if result.status == "ok":
        text = types.TextContent(text=_json_text(result.outputs))
        return types.CallToolResult(
            content=[text], structured_content=result.outputs or {}, _meta=meta
        )
    if error is None:
        return _error_result(f"{result.status}: the run gave no outputs", meta)
    if error["code"] == "internal":
        return _error_result("internal error", meta | {"cogcli/code": "internal"})
    meta |= {"cogcli/code": error["code"]}
    if result.status == "pending":
        return _error_result(
            _waiting_text(result.episode_id, error, directory),
            meta | {"cogcli/next": RunErrorPayload.of(error).next or []},
        )
    reply = _error_result(_error_lines("error", error, "look with"), meta)
    if result.status == "partial" and result.outputs:
        reply.content.append(types.TextContent(text=_json_text(result.outputs)))
    return reply


def _error_lines(word: str, error: Json, lead: str) -> str:
    """Return an error as lines of text: code and message, the hint, and each next command after
    `lead`."""
    found = RunErrorPayload.of(error)
    lines = [f"{word}[{found.code}]: {found.message}"]
    if found.hint:
        lines.append(f"hint: {_hint_for_client(found.hint)}")
    return "\n".join([*lines, *(f"{lead}: {command}" for command in found.next or ())])


def _hint_for_client(hint: str) -> str:
    """Return a hint without the flags of `run`, which only the person who starts the server can
    set."""
    found = _RUN_AGAIN.fullmatch(hint)
    if found is None:
        return hint
    return (
        f"no client can allow it. The person who starts this server can, for every call:"
        f" `cogcli serve mcp {found[1]}` with its other options"
    )


def _waiting_text(episode_id: str, error: Json, directory: str) -> str:
    """Return the text for a run that waits for a person.

    It lists the steps of an approval, because its reader may be a model without a shell."""
    place = f", in {directory}" if directory else ""
    return "\n".join(
        (
            _error_lines("pending", error, f"a person decides in a terminal{place}"),
            f"Nothing failed: run {episode_id} is saved and waits, however long it takes. No client can decide, and no"
            " tool here does.",
            "What you can do: show your user the line above and say what is asked; then go on with something else, or"
            " stop. Calling this tool again begins another run, which waits, too. Once your user has decided, the"
            " command prints the outcome: ask for it.",
        )
    )


def _refused_result(error: CogcliError) -> types.CallToolResult:
    """Return the reply to a call that started no run: all problems of its inputs, or the error."""
    problems = getattr(error, "problems", None) or [error]
    lines = []
    for problem in problems:
        lines.append(f"error[{problem.code}]: {problem.message}")
        if problem.hint:
            lines.append(f"hint: {_hint_for_client(problem.hint)}")
    return _error_result(
        "\n".join(lines), {"cogcli/status": "error", "cogcli/code": problems[0].code}
    )


def _error_result(text: str, meta: Json) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True, _meta=meta)


def _json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _trace_id(client: ClientRequest) -> str | None:
    """Return the trace id of the client's `traceparent`; None if the client sent none.

    It is read from `_meta` of the call, otherwise from the HTTP headers."""
    given = client.meta.get("traceparent") if client.meta else None
    headers = getattr(client.request, "headers", None)
    if given is None and headers is not None:
        given = headers.get("traceparent")
    found = _TRACEPARENT.fullmatch(text_at(given) or "")
    return found[1] if found else None
