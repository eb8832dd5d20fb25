"""`gateway serve`: offer the tools of other MCP servers again, each call governed and recorded
(docs/reference/gateway.md).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Final

from cogcli.app.run_skill import build_options, resolve_pack_option
from cogcli.app.services import refresh_service
from cogcli.app.serving.server_socket import bind_socket
from cogcli.app.wings import WingFunction
from cogcli.base.errors import ABORTED, NO, OK
from cogcli.base.terminal_text import visible
from cogcli.cli.commands.serve import (
    ending_signals,
    is_token,
    parse_address,
    read_token,
    require_sdk,
    silence_libraries,
)
from cogcli.cli.commands.services import change_lines, service_object
from cogcli.cli.context import CommandContext
from cogcli.cli.crash import report_bug
from cogcli.cli.options import (
    SAFETY,
    FlagDeclaration,
    argument,
    choice,
    command,
    integer,
    switch,
    text,
    wrong_flag,
    wrong_value,
)
from cogcli.cli.run_skill import SHADOW_NOTE
from cogcli.declarations.options import OPTIONS
from cogcli.gateway.clients import ONE_SESSION, SESSION_NAME, SessionRule, is_session_source
from cogcli.gateway.offer import find_service, find_upstreams, offer_upstreams
from cogcli.gateway.program import MOST_CALLS, MOST_SECONDS, SessionLimits
from cogcli.gateway.request import GatewayListener, GatewayRequest, HttpListener
from cogcli.gateway.status import SessionStatus, list_sessions
from cogcli.report.humanize import count_of

if TYPE_CHECKING:
    from cogcli.declarations.value_types import Json
    from cogcli.gateway.offer import GatewayOffer
    from cogcli.gateway.tool_specs import OfferedTool

FROM_HELP: Final = "also the `mcpServers` of this file, such as .mcp.json"
_RUN_GATEWAY: Final = WingFunction("cogcli.gateway.serving", "run_gateway")
"""Imported when it is called, since it needs the SDK."""
_VARIABLE: Final = "COGCLI_GATEWAY_TOKEN"
"""The variable with the token of HTTP clients."""
_DURATION: Final = re.compile(r"([0-9]{1,6})([smh])")
_UNITS: Final = {"s": 1, "m": 60, "h": 3600}


def duration(name: str, help: str, default: str) -> FlagDeclaration:
    """Declare a flag with a time like `30m`, from one second to a day. Its value is in seconds."""

    def parse(raw: object) -> object:
        """Return the seconds of a typed text. Raise UsageError."""
        if not isinstance(raw, str):  # the default
            return raw
        found = _DURATION.fullmatch(raw)
        seconds = int(found[1]) * _UNITS[found[2]] if found else 0
        if not 1 <= seconds <= MOST_SECONDS:
            raise wrong_value(
                f"`{name}`: found `{raw[:60]}`", expected="a time like 90s, 30m or 24h, at most 24h"
            )
        return float(seconds)

    return text(name, "TIME", help, default=default, parse=parse)


@command(
    examples=(
        ("cogcli gateway serve --from .mcp.json", "the command for an MCP client"),
        ("cogcli gateway serve --pack desk@1.0.0 --intent help", "a pack decides about each call"),
        ("cogcli gateway serve --http 8765 --token-file token", "for clients over HTTP"),
    ),
    exits=(0, 2, 3, 70, 130, 143),
)
def serve(
    context: CommandContext,
    *,
    from_: Annotated[
        str | None,
        text("--from", "FILE", FROM_HELP),
    ] = None,
    hold: Annotated[
        int | None,
        integer(
            "--hold",
            "hold a call that waits for a person for N seconds",
            minimum=0,
            maximum=50,
            default="50",
        ),
    ] = None,
    session: Annotated[
        str | None, text("--session", "NAME", "a name for the session, in the episode")
    ] = None,
    idle: Annotated[
        float | None, duration("--idle", "seal the session after this time without a call", "30m")
    ] = None,
    max_calls: Annotated[
        int | None,
        integer(
            "--max-calls",
            "seal the session after N calls",
            minimum=1,
            maximum=MOST_CALLS,
            default="10000",
        ),
    ] = None,
    max_age: Annotated[
        float | None, duration("--max-age", "seal the session at this age", "24h")
    ] = None,
    http: Annotated[
        str | None,
        text("--http", "[HOST:]PORT", "listen on HTTP instead; each request needs the token"),
    ] = None,
    token_file: Annotated[
        str | None,
        text(
            "--token-file",
            "FILE",
            "with --http: the token, in a file of yours alone",
            SAFETY,
            default=f"the variable {_VARIABLE}",
        ),
    ] = None,
    session_from: Annotated[
        str | None,
        text(
            "--session-from",
            "SOURCE",
            "with --http: where a session's name is: header:NAME, meta:NAME, or token for one session",
            default="token",
        ),
    ] = None,
    on_unresolved: Annotated[
        str,
        choice(
            "--on-unresolved",
            "WORD",
            ("deny", "new"),
            "with --session-from: refuse a call without a name, or begin a session for it",
            default="deny",
        ),
    ] = "deny",
    ask_client: Annotated[
        bool,
        switch(
            "--ask-client",
            help="let the person at the client approve calls that need no role; proves no identity",
            panel=SAFETY,
        ),
    ] = False,
    pack: Annotated[
        str | None, text("--pack", "ID@VERSION", "the pack that governs the calls", SAFETY)
    ] = None,
    intent: Annotated[
        str | None, text("--intent", "ID", "with --pack: the intent of the session", SAFETY)
    ] = None,
    user: Annotated[
        str | None, text("--user", "ID", "with --pack: the user for whom calls are made", SAFETY)
    ] = None,
    shadow: Annotated[bool, switch("--shadow", help=OPTIONS["shadow"].help, panel=SAFETY)] = False,
) -> int:
    """Serve the client on stdio until it disconnects, or clients over HTTP, until a signal ends the gateway.

    All errors of the command line and the registry are raised before the first frame.
    """
    if context.json:
        raise wrong_flag("`--json` is not for a server", "standard output carries its frames")
    if session is not None and not SESSION_NAME.fullmatch(session):
        raise wrong_value(
            f"`--session`: found `{session[:60]}`",
            expected="letters, digits and `._@-`, at most 64",
        )
    require_sdk()
    options = resolve_pack_option(
        context.settings,
        build_options(
            context.settings,
            {"pack": pack or "", "intent": intent or "", "user": user or "", "shadow": shadow},
        ),
    )
    if shadow:
        context.note(SHADOW_NOTE)
    silence_libraries()
    limits = _session_limits(idle, max_calls, max_age)
    rule = _session_rule(session, session_from, on_unresolved)
    listener = _http_listener(context, http, token_file, session_from)
    request = GatewayRequest(
        options, from_ or "", session or "", hold, limits, rule, listener, ask_client
    )
    return _serve_gateway(context, request)


def _session_limits(
    idle: float | None, max_calls: int | None, max_age: float | None
) -> SessionLimits:
    """Return the limits of a session of these flags, none above the built-in age."""
    most = SessionLimits()
    return SessionLimits(
        min(idle or most.idle_seconds, most.seconds),
        max_calls or most.calls,
        min(max_age or most.seconds, most.seconds),
    )


def _session_rule(session: str | None, source: str | None, on_unresolved: str) -> SessionRule:
    """Return the rule that assigns a request to a session. Raise UsageError."""
    if source is None:
        return ONE_SESSION
    if not is_session_source(source):
        raise wrong_value(
            f"`--session-from`: found `{source[:60]}`",
            expected="token, header:NAME or meta:NAME",
        )
    if session is not None and source != "token":
        raise wrong_flag(
            f"`--session` and `--session-from {source}` both name sessions", "keep one"
        )
    return SessionRule(source, "new" if on_unresolved == "new" else "deny")


def _http_listener(
    context: CommandContext, http: str | None, token_file: str | None, source: str | None
) -> HttpListener | None:
    """Return the HTTP address to listen on, with the token of clients; None for stdio. Raise UsageError."""
    for flag, given in (("--token-file", token_file), ("--session-from", source)):
        if http is None and given is not None:
            raise wrong_flag(f"`{flag}` belongs to `--http`", "give --http [HOST:]PORT")
    address = parse_address(http)
    if address is None:
        return None
    token = _read_token(context, token_file)
    listening = bind_socket(address)
    port = listening.getsockname()[1]
    context.note(f"listening on http://{address.url_host}:{port}/mcp")
    return HttpListener(address, token, listening)


def _read_token(context: CommandContext, path: str | None) -> str:
    """Return the client token, from a file that only its owner may read or from the environment variable. Raise
    UsageError.
    """
    if path is not None:
        mode = os.stat(path).st_mode & 0o077 if os.path.exists(path) else 0
        if mode:
            raise wrong_value(f"`--token-file {path}`: others may use it", f"chmod 600 {path}")
        return read_token(path)
    token = context.settings.environ.get(_VARIABLE, "")
    if not is_token(token):
        raise wrong_flag(
            "`--http` needs a token of 16 or more visible ASCII characters",
            f"give --token-file FILE, or set {_VARIABLE}",
        )
    return token


def _serve_gateway(context: CommandContext, request: GatewayRequest) -> int:
    """Serve until the client disconnects or a signal arrives, and return the exit code."""
    ended_by: str = _RUN_GATEWAY(
        context.settings,
        request,
        _stderr_listener(context),
        ending_signals(),
        lambda offer: _announce_offer(context, offer),
    )
    return ABORTED[ended_by] if ended_by else OK


@command(
    examples=(
        ("cogcli gateway tools --from .mcp.json", "what a client would be offered"),
        ("cogcli gateway tools", "of the services of the project alone"),
        ("cogcli gateway tools --json | jq .tools", "for scripts"),
    ),
    exits=(0, 1, 2, 3),
)
def list_tools(
    context: CommandContext,
    *,
    from_: Annotated[str | None, text("--from", "FILE", FROM_HELP)] = None,
) -> int:
    """Start the servers, and print each tool with its state. Exit 1 if there are servers and no tool is offered."""
    require_sdk()
    settings = context.settings
    offer = offer_upstreams(settings, find_upstreams(settings, from_ or ""), is_governed=False)
    context.own["tools"] = [_tool_object(tool) for tool in offer.tools.values()]
    context.own["withheld"] = [each._asdict() for each in offer.withheld]
    context.own["unavailable"] = [
        {"server": each.id, "reason": each.fault} for each in offer.unavailable
    ]
    context.answer([[("  ".join(map(visible, words)), "")] for words in _tool_rows(offer)])
    if offer.tools:
        return OK
    if not (offer.withheld or offer.unavailable):
        context.note("no MCP server here: name the file with `mcpServers` by --from")
        return OK
    context.note("no tool is offered")
    return NO


def _tool_object(tool: OfferedTool) -> Json:
    """Return the entry of a tool in the envelope."""
    return {
        "name": tool.name,
        "server": tool.service.id,
        "tool": tool.definition["name"],
        "capability": tool.capability,
        "read_only": tool.is_read_only,
        "proposed_read_only": tool.proposes_read_only,
    }


def _tool_rows(offer: GatewayOffer) -> Iterator[tuple[str, ...]]:
    """Yield the columns of a line for each tool, and for each server that cannot be used."""
    for tool in offer.tools.values():
        proposes = "its server proposes read-only" if tool.proposes_read_only else ""
        state = "read-only" if tool.is_read_only else "asks"
        yield (
            tool.name,
            tool.capability,
            state,
            *([proposes] if state == "asks" and proposes else ()),
        )
    for each in offer.withheld:
        yield f"{each.server}: {each.tool}", "withheld", each.reason
    for upstream in offer.unavailable:
        yield upstream.id, "unavailable", upstream.fault


@command(
    examples=(
        ("cogcli gateway accept files --from .mcp.json", "lock the tools as they are now"),
        ("cogcli gateway accept files --read-only list_directory", "this tool asks no more"),
        ("cogcli gateway accept files --asks list_directory", "it asks again"),
    ),
    exits=(0, 2, 3, 4, 6),
)
def accept(
    context: CommandContext,
    server: Annotated[str, argument("SERVER")],
    *,
    from_: Annotated[str | None, text("--from", "FILE", FROM_HELP)] = None,
    read_only: Annotated[
        list[str],
        text("--read-only", "TOOL", "it changes nothing: do not ask a person (repeatable)", SAFETY),
    ],
    asks: Annotated[
        list[str], text("--asks", "TOOL", "ask a person for each call of it (repeatable)", SAFETY)
    ],
) -> int:
    """Lock the tools that a server has now, and set or remove marks."""
    require_sdk()
    service = find_service(context.settings, server, from_ or "")
    marks = {**dict.fromkeys(read_only, True), **dict.fromkeys(asks, False)}
    found = refresh_service(context.settings, service, accept=True, marks=marks)
    context.own["services"] = [service_object(found)]
    context.answer(change_lines(found))
    context.note(
        visible(f"{found.service}: {count_of(len(found.names), 'tool')} locked in {found.file}")
    )
    return OK


@command(
    examples=(
        ("cogcli gateway status", "the newest 20 sessions"),
        ("cogcli gateway status --limit 100", "more of them"),
        ("cogcli gateway status --json | jq .sessions", "for scripts"),
    ),
    exits=(0, 2, 3),
)
def status(
    context: CommandContext,
    *,
    limit: Annotated[
        int, integer("--limit", "at most N sessions", minimum=1, maximum=10**6, default="20")
    ] = 20,
) -> int:
    """Print a line for each session, newest first."""
    found = list_sessions(context.settings, limit, context.warn)
    context.own["sessions"] = [each.to_payload() for each in found]
    context.answer([[("  ".join(map(visible, _status_columns(each))), "")] for each in found])
    if not found:
        context.note("no session of a gateway here")
    return OK


def _status_columns(session: SessionStatus) -> Iterator[str]:
    """Yield the columns of a session. Zero counts are omitted, except the number of calls."""
    yield from filter(None, (session.episode_id, session.status, session.session))
    yield count_of(session.calls, "call")
    counts = {
        "denied": session.denied,
        "failed": session.failed,
        "pending": session.pending,
        "in doubt": session.in_doubt,
    }
    yield from (f"{count} {word}" for word, count in counts.items() if count)
    if session.shadow:
        yield "shadow: no rule enforced"


def _announce_offer(context: CommandContext, offer: GatewayOffer) -> None:
    """Report on stderr the offered tools, the withheld tools, and the servers that cannot be used."""
    servers = {tool.service.id for tool in offer.tools.values()}
    context.note(
        f"offering {count_of(len(offer.tools), 'tool')} of {count_of(len(servers), 'server')}"
    )
    for upstream in offer.unavailable:
        context.note(visible(f"server {upstream.id} is unavailable: {upstream.fault}"))
    for each in offer.withheld:
        context.note(visible(f"tool {each.tool} of {each.server} is withheld: {each.reason}"))


def _stderr_listener(context: CommandContext) -> GatewayListener:
    """Return the functions that report calls and bugs on stderr."""

    def report_call(tool: str, report: Mapping[str, str]) -> None:
        """Report a call of a tool."""
        pairs = "".join(f" {name}={value}" for name, value in report.items() if value)
        context.note(f"{context.settings.clock.now()[:23]}Z gateway.called tool={tool}{pairs}")

    def report_exception(error: BaseException) -> None:
        """Report an unexpected exception."""
        report_bug(context.screen, "gateway serve", error, context)

    return GatewayListener(report_call, report_exception)
