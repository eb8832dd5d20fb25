"""`serve mcp`: skills as tools for clients of the Model Context Protocol (docs/reference/protocols.md#serve).

1. What is offered and with which options it runs is fixed at the start: a client raises no trust and approves nothing.
2. A call is a run with an episode of its own; its `_meta` names that. At most 8 go on at once, the others wait.
3. A run that failed, waits for a person or was given wrong inputs is a tool's error, told with code and hint; a tool
   that does not exist is an error of the protocol; a bug is "internal error" and nothing more.
4. A client that cancels a call, or goes away, ends its run: the episode is finalised as aborted. It hears no more of
   its progress.
5. Every call of a tool is told once to whoever started the server, however it ended.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import mcp_types as types
from mcp.server import Server
from mcp.shared.exceptions import MCPError

from cogcli import __version__
from cogcli.core.errors import CogcliError
from cogcli.events.types import row_of

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from cogcli.app.mcp_catalog import Offer, Served
    from cogcli.app.run_pool import RunsAtOnce
    from cogcli.app.run_skill import RunRequest, RunResult
    from cogcli.events.envelope import Event

    Asked = ServerRequestContext[Any, Any]

_TRACEPARENT: Final = re.compile(r"00-((?!0{32})[0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


class ServerListener(NamedTuple):
    """How whoever started the server wants to be told things."""

    called: Callable[[str, Mapping[str, str]], None]
    """A call ended: the tool's name; status, the error's code and the episode's id, as far as there are any."""
    bug: Callable[[BaseException], None]
    """An exception nobody expected: to be saved."""
    error: Callable[[RunResult], dict[str, Any] | None]
    """The error of a run with `next`: commands that lead on from it."""


class ToolHandlers:
    """The handlers of both methods that the server answers."""

    def __init__(
        self, offer: Offer, runs: RunsAtOnce, request: RunRequest, told: ServerListener, where: str = ""
    ) -> None:
        self._where = where
        """The directory in which a person types commands that concern these runs."""
        self._offer = offer
        self._runs = runs
        self._request = request
        self._told = told

    async def list(self, _: Asked, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """Every tool, on one page."""
        if params is not None and params.cursor is not None:
            raise MCPError(code=types.INVALID_PARAMS, message="Unknown cursor: all tools are on one page")
        return types.ListToolsResult(tools=[_shown(served) for served in self._offer.tools.values()])

    async def call(self, asked: Asked, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Run the skill of a tool."""
        served = self._offer.tools.get(params.name)
        if served is None:
            raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {params.name[:128]}")
        told = {"status": "cancelled"}
        try:
            return await self._ran(asked, served, params.arguments or {}, told)
        except CogcliError as error:
            refused = _refused(error)
            told.update(status="refused", error=(refused.meta or {})["cogcli/code"])
            return refused
        except Exception as bug:
            told.update(status="error", error="internal")
            self._told.bug(bug)
            return _error("internal error", {"cogcli/status": "error", "cogcli/code": "internal"})
        finally:
            self._told.called(params.name, told)

    async def _ran(
        self, asked: Asked, served: Served, given: dict[str, Any], told: dict[str, str]
    ) -> types.CallToolResult:
        loaded = served.with_inputs(given)
        request = self._request._replace(
            skill_id=loaded.skill.id,
            inputs=loaded.inputs,
            trace_id=_trace_id(asked) or self._request.trace_id,
        )
        progress = Progress(asked, len(loaded.skill.steps), told)
        result = await self._runs.run(loaded, request, progress)
        await progress.close()
        return _answer(result, self._told.error(result), self._where)


def server_of(tools: ToolHandlers) -> Server[Any]:
    """The server, ready for any transport."""
    return Server("cogcli", version=__version__, on_list_tools=tools.list, on_call_tool=tools.call)


def _shown(served: Served) -> types.Tool:
    tool = served.tool
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.hints.read_only,
            destructive_hint=not tool.hints.read_only,
            idempotent_hint=tool.hints.idempotent,
        ),
    )


class Progress:
    """Tells a client that asked for it how many steps of its run have ended, in order; notes how the run ended."""

    def __init__(self, asked: Asked, total: int, told: dict[str, str]) -> None:
        self._session = asked.session
        self._total = total
        self._told = told
        self._ended = 0
        self._root: str | None = None
        self._wanted = bool(asked.meta and asked.meta.get("progress_token") is not None)
        self._tasks: list[Any] = []

    def heard(self, event: Event) -> None:
        """One event of the run. Called on the event loop."""
        self._root = self._root or event.run_id
        step = event.step_id or ""
        if not self._wanted or not row_of(event.event_type).closes or event.run_id != self._root:
            return
        if "#" in step or "@" in step:  # an item, a round, a gate: part of a step
            return
        from asyncio import ensure_future

        self._ended += 1
        told = self._session.report_progress(
            self._ended, self._total, f"{step} {event.payload['step_status']}"
        )
        self._tasks.append(ensure_future(told))

    def given_up(self) -> None:
        """The client wants no answer: it is told nothing any more."""
        self._wanted = False
        for task in self._tasks:
            task.cancel()

    def ended(self, result: RunResult) -> None:
        """Note it, for the call's line."""
        code = result.error["code"] if result.error else ""
        self._told.update(status=result.status, error=code, episode=result.episode_id)

    async def close(self) -> None:
        """Let what is under way be told before the answer is."""
        from asyncio import gather

        await gather(*self._tasks, return_exceptions=True)


# -- answers -----------------------------------------------------------------------------------------------------------


def _answer(result: RunResult, error: dict[str, Any] | None, where: str) -> types.CallToolResult:
    meta = {
        "cogcli/episode_id": result.episode_id,
        "cogcli/run_id": result.run_id,
        "cogcli/trace_id": result.trace_id,
        "cogcli/status": result.status,
    }
    if result.status == "ok":
        text = types.TextContent(text=_json(result.outputs))
        return types.CallToolResult(content=[text], structured_content=result.outputs or {}, _meta=meta)
    if error is None:
        return _error(f"{result.status}: the run gave no outputs", meta)
    if error["code"] == "internal":
        return _error("internal error", meta | {"cogcli/code": "internal"})
    meta |= {"cogcli/code": error["code"]}
    if result.status == "pending":
        return _error(
            _waiting(result.episode_id, error, where), meta | {"cogcli/next": error.get("next") or []}
        )
    told = _error(_lines("error", error, "look with"), meta)
    if result.status == "partial" and result.outputs:
        told.content.append(types.TextContent(text=_json(result.outputs)))
    return told


def _lines(word: str, error: dict[str, Any], lead: str) -> str:
    """An error in lines: what, how to mend it, the command that leads on."""
    lines = [f"{word}[{error['code']}]: {error['message']}"]
    if error.get("hint"):
        lines.append(f"hint: {error['hint']}")
    return "\n".join([*lines, *(f"{lead}: {command}" for command in error.get("next") or ())])


def _waiting(episode_id: str, error: dict[str, Any], where: str) -> str:
    """What a client is told of a run that waits for a person: who reads it may be a model without a shell."""
    place = f", in {where}" if where else ""
    return "\n".join(
        (
            _lines("pending", error, f"a person decides in a terminal{place}"),
            f"Nothing failed: run {episode_id} is saved and waits, however long it takes. No client can decide, and no"
            " tool here does.",
            "What you can do: show your user the line above and say what is asked; then go on with something else, or"
            " stop. Calling this tool again begins another run, which waits, too. Once your user has decided, the"
            " command prints the outcome: ask for it.",
        )
    )


def _refused(error: CogcliError) -> types.CallToolResult:
    """Nothing ran: every problem of the inputs, or why no run could begin."""
    problems = getattr(error, "problems", None) or [error]
    lines = []
    for problem in problems:
        lines.append(f"error[{problem.code}]: {problem.message}")
        if problem.hint:
            lines.append(f"hint: {problem.hint}")
    return _error("\n".join(lines), {"cogcli/status": "error", "cogcli/code": problems[0].code})


def _error(text: str, meta: dict[str, Any]) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True, _meta=meta)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _trace_id(asked: Asked) -> str | None:
    """The trace id of the client's span: of the call's `_meta`, else of the HTTP request."""
    given = asked.meta.get("traceparent") if asked.meta else None
    headers = getattr(asked.request, "headers", None)
    if given is None and headers is not None:
        given = headers.get("traceparent")
    found = _TRACEPARENT.fullmatch(given) if isinstance(given, str) else None
    return found[1] if found else None
