"""One binding judged by protocol; nothing of this is needed while a kept verdict holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from cogcli.specs.checks import wire_mcp, wire_openapi, wire_openrpc
from cogcli.specs.checks.wire_finding import Finding, Wire
from cogcli.specs.checks.wire_flow import flow_findings
from cogcli.specs.checks.wire_python import python_findings
from cogcli.specs.contracts import refused_patterns

if TYPE_CHECKING:
    from cogcli.specs.binding import Binding
    from cogcli.specs.capability import Capability
    from cogcli.specs.service import Service


def judged(binding: Binding, capability: Capability, service: Service, matter: bytes) -> Iterator[Finding]:
    """Everything that is wrong with a binding on the wire; `matter` is the source of a Python service."""
    for found in _found(binding, capability, service, matter):
        if isinstance(found, Wire):
            yield from _pattern_findings(found)
            yield from flow_findings(binding, capability, found)
        else:
            yield found


def _pattern_findings(wire: Wire) -> Iterator[Finding]:
    """`wire.pattern`: what the service gives or takes cannot be checked in bounded time."""
    for said in dict.fromkeys(text for schema in wire.described for text in refused_patterns(schema)):
        hint = "write it without that in the service's document, or bind another operation"
        yield Finding("wire.pattern", "E", ("operation",), f"{wire.title} has {said}", hint)


def judged_service(service: Service) -> Iterator[Finding]:
    """What keeps the document or the lock of a service from being used."""
    return _DOCUMENTS[service.kind](service)


_DOCUMENTS: Final[dict[str, Callable[[Service], Iterator[Finding]]]] = {
    "openapi": wire_openapi.document_findings,
    "openrpc": wire_openrpc.document_findings,
    "mcp": wire_mcp.lock_findings,
}


def _found(
    binding: Binding, capability: Capability, service: Service, matter: bytes
) -> Iterator[Finding | Wire]:
    if service.kind == "openapi":
        yield from wire_openapi.openapi_findings(binding, capability, service)
    elif service.kind == "openrpc":
        yield from wire_openrpc.openrpc_findings(binding, service)
    elif service.kind == "mcp":
        yield from wire_mcp.mcp_findings(binding, service)
    else:
        yield from python_findings(binding, matter)
