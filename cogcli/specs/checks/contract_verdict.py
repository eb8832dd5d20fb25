"""Checking one binding by its protocol. Not imported while a cached verdict is valid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from cogcli.schema.validator import refused_patterns
from cogcli.specs.binding import Binding
from cogcli.specs.capability import Capability
from cogcli.specs.checks import mcp_contract, openapi_contract, openrpc_contract
from cogcli.specs.checks.contract_finding import ContractFinding, OperationContract
from cogcli.specs.checks.contract_flow import flow_findings
from cogcli.specs.checks.pythoncall_contract import python_findings
from cogcli.specs.service import Service


def judge_binding(
    binding: Binding, capability: Capability, service: Service, matter: bytes
) -> Iterator[ContractFinding]:
    """All findings about a binding on the wire; `matter` is the source of a Python service."""
    for found in _found(binding, capability, service, matter):
        if isinstance(found, OperationContract):
            yield from _pattern_findings(found)
            yield from flow_findings(binding, capability, found)
        else:
            yield found


def _pattern_findings(wire: OperationContract) -> Iterator[ContractFinding]:
    """`wire.pattern`: a schema of the service cannot be checked in bounded time."""
    for said in dict.fromkeys(text for schema in wire.described for text in refused_patterns(schema)):
        hint = "write it without that in the service's document, or bind another operation"
        yield ContractFinding("wire.pattern", "E", ("operation",), f"{wire.title} has {said}", hint)


def judge_service(service: Service) -> Iterator[ContractFinding]:
    """The findings about a document or lock that cannot be used."""
    return _DOCUMENTS[service.kind](service)


_DOCUMENTS: Final[dict[str, Callable[[Service], Iterator[ContractFinding]]]] = {
    "openapi": openapi_contract.document_findings,
    "openrpc": openrpc_contract.document_findings,
    "mcp": mcp_contract.lock_findings,
}


def _found(
    binding: Binding, capability: Capability, service: Service, matter: bytes
) -> Iterator[ContractFinding | OperationContract]:
    if service.kind == "openapi":
        yield from openapi_contract.openapi_findings(binding, capability, service)
    elif service.kind == "openrpc":
        yield from openrpc_contract.openrpc_findings(binding, service)
    elif service.kind == "mcp":
        yield from mcp_contract.mcp_findings(binding, service)
    else:
        yield from python_findings(binding, matter)
