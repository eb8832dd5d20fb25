"""openrpc: checks of a binding against its service's document (docs/reference/protocols.md#openrpc,
docs/reference/protocols.md#wire-checks)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cogcli.base.api_documents.openrpc import load_openrpc
from cogcli.base.json_pointer import DocumentFault
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.service_spec import Service
from cogcli.protocols.contract_finding import (
    ContractFinding,
    ContractJudges,
    OperationContract,
    OperationInput,
    argument_findings,
    document_finding,
)


def document_findings(service: Service) -> Iterator[ContractFinding]:
    """Yield the finding `wire.document` for a document that cannot be used."""
    try:
        load_openrpc(service)
    except DocumentFault as fault:
        yield document_finding(fault, ("spec_ref",))


def openrpc_findings(
    binding: Binding, capability: Capability, service: Service, source: bytes
) -> Iterator[ContractFinding | OperationContract]:
    """Yield the findings about method and parameters, then the method's contract."""
    try:
        document = load_openrpc(service)
        method = document.method(binding.operation) if document else None
    except DocumentFault as fault:
        if fault.code != "wire.document":  # the check of the service reports it
            yield ContractFinding(fault.code, "E", ("operation",), fault.message, fault.hint)
        return
    if method is None:
        return
    known = {
        each.name: OperationInput(each.name, each.required, each.schema, each.deprecated)
        for each in method.params
    }
    title = f"method `{method.name}`"
    yield from argument_findings(binding, title, known)
    taken = {key: known[key] for key in binding.request if key in known}
    reply = () if method.is_notification else (method.result,)
    described = (*(param.schema for param in method.params), *reply)
    yield OperationContract(title, taken, reply, method.deprecated, described)


JUDGES: Final = ContractJudges(openrpc_findings, document_findings)
