"""`serve mcp`: offer skills as tools over stdio or HTTP until the client disconnects or a signal
ends the server (docs/reference/protocols.md#serve).
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from cogcli.app.run_skill import build_options
from cogcli.app.serving.server_socket import Endpoint, bind_socket, redirect_standard_streams
from cogcli.app.serving.tools import ToolOffer, offer_skills
from cogcli.base.errors import ABORTED, OK, CogcliError, ServiceResolutionError
from cogcli.base.problems import suggestion
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.crash import report_bug
from cogcli.cli.given_options import read_options
from cogcli.cli.options import SAFETY, choice, command, text, wrong_flag, wrong_value
from cogcli.cli.run_flags import ServeFlags
from cogcli.cli.run_report import error_of
from cogcli.cli.run_skill import warn_of_distrust
from cogcli.declarations.value_types import Json
from cogcli.protocols.secrets import Secrets
from cogcli.report.humanize import count_of
from cogcli.run.prepare import RunRequest
from cogcli.run.results import RunResult

if TYPE_CHECKING:
    from cogcli.app.serving.handlers import ServerListener

_ADDRESS = re.compile(r"(?:(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):)?([0-9]{1,5})")


@command(
    examples=(
        ("cogcli serve mcp", "the command for an MCP client"),
        ("cogcli serve mcp --skill text.brief", "one tool, named text__brief"),
        ("cogcli serve mcp --http 8765", "on http://127.0.0.1:8765/mcp"),
    ),
    exits=(0, 2, 3, 70, 130, 143),
)
def serve_mcp(
    context: CommandContext,
    *,
    http: Annotated[
        str | None,
        text("--http", "[HOST:]PORT", "listen on HTTP instead; loopback only, unless a token is required"),
    ] = None,
    token_file: Annotated[
        str | None,
        text(
            "--token-file", "FILE", "with --http: every request must carry the token in this file", SAFETY
        ),
    ] = None,
    skill: Annotated[
        list[str],
        text(
            "--skill", "GLOB", "only this skill, or those that match `text.*` (repeatable)", completes="skills"
        ),
    ],
    tool_names: Annotated[
        str,
        choice(
            "--tool-names", "WORD", ("underscore", "dots"), "write dots in ids as `__`, or keep them as dots",
            default="underscore",
        ),
    ] = "underscore",
    flags: ServeFlags,
) -> int:  # fmt: skip
    """Serve until the client disconnects or a signal ends the server.

    All errors of the command line and the registry are raised before the first frame.
    """
    if context.json:
        raise wrong_flag("`--json` is not for a server", "standard output carries its frames")
    require_sdk()
    address, token = _address_of(http, token_file), read_token(token_file)
    if address is not None and not address.is_loopback and not token:
        what = f"`--http {address.url_host}:{address.port}` can be reached by others"
        raise wrong_flag(what, "give --token-file FILE, or listen on 127.0.0.1")

    request = _run_request(context, flags)
    offer = offer_skills(context.settings, request, list(skill), tool_names)
    _require_served_capabilities(request, offer)
    warn_of_distrust(context, "skill", "")
    silence_libraries()
    return _serve_tools(context, offer, request, address, token)


def require_sdk() -> None:
    """Raise ServiceResolutionError `env.extra` if the MCP library is not installed."""
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        what = "this needs `mcp`, which is not installed"
        raise ServiceResolutionError("env.extra", what, hint="pip install 'cogcli[mcp]'")


def _address_of(http: str | None, token_file: str | None) -> Endpoint | None:
    """Return the address to listen on; None for stdio. Raise UsageError."""
    if http is None and token_file is not None:
        raise wrong_flag("`--token-file` belongs to `--http`", "give --http [HOST:]PORT")
    return parse_address(http)


def parse_address(text: str | None) -> Endpoint | None:
    """Return the address in `[HOST:]PORT`; None for None. Raise UsageError."""
    if text is None:
        return None
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found[2]) > 65535:
        raise wrong_value(f"`--http`: found `{text[:60]}`", expected="[HOST:]PORT")

    return Endpoint((found[1] or "127.0.0.1").strip("[]"), int(found[2]))


def is_token(text: str) -> bool:
    """Return whether a text is long enough for a token, and can be in a header."""
    return len(text) >= 16 and text.isascii() and text.isprintable()


def read_token(path: str | None) -> str:
    """Return the token in a file; empty without a file. Raise UsageError."""
    if path is None:
        return ""
    from os.path import abspath

    token = Secrets({}, lambda _: None).resolve(f"file:{abspath(path)}")
    if not is_token(token):
        raise wrong_value(
            f"`--token-file {path}`: no token", expected="16 or more visible ASCII characters"
        )
    return token


def _run_request(context: CommandContext, flags: ServeFlags) -> RunRequest:
    """Return the run request whose options apply to each call. Raise UsageError."""
    problems: list[CogcliError] = []
    options = build_options(context.settings, read_options(flags, problems))
    for problem in problems:
        raise problem
    return RunRequest("", {}, options)


def _require_served_capabilities(request: RunRequest, offer: ToolOffer) -> None:
    """Raise UsageError if `--bind` or `--confirm` names a capability that no served skill uses: it
    is probably a typo.
    """
    known = sorted(
        {id for served in offer.tools.values() for id in served.loaded.catalog.capabilities}
    )
    for flag, names in (("--bind", request.options.bind), ("--confirm", request.options.confirm)):
        for name in names:
            catalogs = [served.loaded.catalog for served in offer.tools.values()]
            if not any(name in (*catalog.capabilities, *catalog.aliases) for catalog in catalogs):
                what = f"`{flag}`: no skill that is served uses a capability `{name[:60]}`"
                raise wrong_value(what, suggestion(name, known) or "leave it out")


def silence_libraries() -> None:
    """Discard the log records of libraries: they may contain values, and stderr is for messages to
    the user.
    """
    import logging

    logging.getLogger().addHandler(logging.NullHandler())


def _serve_tools(
    context: CommandContext,
    offer: ToolOffer,
    request: RunRequest,
    address: Endpoint | None,
    token: str,
) -> int:
    """Serve over stdio or HTTP until the end, and return the exit code."""
    import anyio

    from cogcli.app.serving.handlers import ToolHandlers, server_of
    from cogcli.app.serving.run_pool import RunPool

    runs = RunPool(context.settings)
    # Next commands hold the relative directories of the flags: they are right only in this directory.
    server = server_of(ToolHandlers(offer, runs, _server_listener(context), os.getcwd()))
    if address is None:
        from cogcli.app.serving.stdio_transport import serve_stdio, take_descriptors

        pipe = take_descriptors()
        _announce_offer(context, offer, "standard input and output")
        ended_by = anyio.run(serve_stdio, server, pipe, runs, ending_signals())
    else:
        from cogcli.app.serving.http_transport import PATH, http_server, serve_http

        listening = bind_socket(address)
        web = http_server(server, address, token)
        redirect_standard_streams()
        port = listening.getsockname()[1]
        _announce_offer(context, offer, f"http://{address.url_host}:{port}{PATH}")
        ended_by = anyio.run(serve_http, web, listening, runs, ending_signals())
    return ABORTED[ended_by] if ended_by else OK


def ending_signals() -> list[signal.Signals]:
    """Return the signals that end the server: all but those that this process ignores."""
    found = (getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP"))
    return [number for number in found if number and signal.getsignal(number) is not signal.SIG_IGN]


def _announce_offer(context: CommandContext, offer: ToolOffer, where: str) -> None:
    """Report on stderr the address of the server, and the number of omitted skills."""
    out = f"; {count_of(len(offer.left_out), 'other')} cannot run here" if offer.left_out else ""
    context.note(f"serving {count_of(len(offer.tools), 'skill')} on {where}{out}")


def _server_listener(context: CommandContext) -> ServerListener:
    """Return the listener of the server. It reports calls and bugs on stderr, and builds the client's errors."""
    from cogcli.app.serving.handlers import ServerListener

    def report_call(tool: str, report: Mapping[str, str]) -> None:
        """Report a call of a tool."""
        pairs = "".join(f" {name}={value}" for name, value in report.items() if value)
        context.note(f"{context.settings.clock.now()[:23]}Z tool.called tool={tool}{pairs}")

    def report_exception(error: BaseException) -> None:
        """Report an unexpected exception."""
        report_bug(context.screen, "serve mcp", error, context)

    def build_error(result: RunResult) -> Json | None:
        """Return the error of a run for the client."""
        return error_of(result, context.again)

    def warn(warning: CogcliError) -> None:
        """Report a warning of a run. The client gets none, because it cannot act on it."""
        context.note(visible(f"warning[{warning.code}]: {warning.message}"))

    return ServerListener(report_call, report_exception, build_error, warn)
