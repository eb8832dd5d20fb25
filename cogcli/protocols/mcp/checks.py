"""mcp: checks that a shipped server exists, or that a program can be started
(docs/reference/protocols.md#mcp-stdio)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import suggestion
from cogcli.declarations.service_spec import Service
from cogcli.protocols.mcp.grammar import McpServer
from cogcli.specs.checks.context import CheckContext, ProtocolChecks
from cogcli.specs.id_grammar import PLACEHOLDER
from cogcli.specs.service import TABLES


def check_service(context: CheckContext, service: Service) -> None:
    """Report an unknown shipped server, and a program that cannot be started."""
    report, subject = context.report(service.file, service.at), f"service `{service.id}`"
    server = McpServer.of(service.settings).server
    if server is not None and server not in TABLES:
        hint = suggestion(server, TABLES) or f"there is {', '.join(TABLES)}"
        report.add_for_run(
            "service.server", ("server",), f"{subject}: no shipped server `{server}`", hint=hint
        )
    missing = find_program_fault(service, context.options.environ) if service.trusted else None
    if missing:
        report.warn(
            "service.program", (missing.key,), f"{subject}: {missing.text}", hint=missing.hint
        )


class ProgramFault(NamedTuple):
    """The reason why a program cannot be started: the faulty key of the service, a message, a hint."""

    key: str
    text: str
    hint: str


def find_program_fault(service: Service, environ: Mapping[str, str]) -> ProgramFault | None:
    """Return why the program of a service cannot be started. None if it can be started, is unknown, or the service has
    none.
    """
    server = McpServer.of(service.settings)
    command, directory = server.command, server.cwd or ""
    search = server.env.get("PATH") or environ.get("PATH", os.defpath)
    if not command or PLACEHOLDER.search(search):
        return None
    place = os.path.join(service.root, directory)
    if not os.path.isdir(place):
        hint = "write it relative to the directory that holds services/"
        return ProgramFault(
            "cwd", f"there is no directory `{directory}` to start `{command}` in", hint
        )
    named = os.path.join(place, command) if os.path.dirname(command) else command
    return None if shutil.which(named, path=search) else _program_fault(command, named)


def _program_fault(command: str, named: str) -> ProgramFault:
    """Return why a command does not start the program of this name."""
    if os.path.dirname(command) and os.path.isfile(named):
        return ProgramFault(
            "command",
            f"program `{command}` may not be started",
            f"chmod u+x {os.path.normpath(named)}",
        )
    hint = "install it, or put it on the PATH"
    if " " in command:
        hint = (
            f"command names one program: write command: {command.split()[0]}, and the rest as args"
        )
    elif os.path.dirname(command):
        hint = "write it relative to cwd, else to the directory that holds services/"
    return ProgramFault("command", f"program `{command}` is not found", hint)


CHECKS: Final = ProtocolChecks(check_service)
