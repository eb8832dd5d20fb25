"""mcp: its shipped server exists, or its program can be started (docs/reference/protocols.md#mcp-stdio)."""

from __future__ import annotations

from typing import Final

from cogcli.core.problems import suggestion
from cogcli.specs.checks.context import CheckContext, ProtocolChecks
from cogcli.specs.program_lookup import find_program_fault
from cogcli.specs.service import Service
from cogcli.specs.shipped_tools import TABLES


def check_service(context: CheckContext, service: Service) -> None:
    """Report an unknown shipped server, and a program that cannot be started."""
    report, subject = context.report(service.file, service.at), f"service `{service.id}`"
    server = service.settings.get("server")
    if server is not None and server not in TABLES:
        hint = suggestion(server, TABLES) or f"there is {', '.join(TABLES)}"
        report.need("service.server", ("server",), f"{subject}: no shipped server `{server}`", hint=hint)
    missing = find_program_fault(service, context.options.environ) if service.trusted else None
    if missing:
        report.warn("service.program", (missing.key,), f"{subject}: {missing.text}", hint=missing.hint)


CHECKS: Final = ProtocolChecks(check_service)
