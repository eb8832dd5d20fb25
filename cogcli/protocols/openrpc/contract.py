"""openrpc: a binding against its service's document (docs/reference/protocols.md#openrpc,
docs/reference/protocols.md#wire-checks)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cogcli.core.document_fault import DocumentFault
from cogcli.core.problems import suggestion
from cogcli.documents.openrpc import RpcMethod, openrpc_of
from cogcli.protocols.contract_finding import (
    ContractFinding,
    ContractJudges,
    OperationContract,
    Taken,
    document_finding,
)
from cogcli.specs.binding import Binding
from cogcli.specs.capability import Capability
from cogcli.specs.service import Service


def document_findings(service: Service) -> Iterator[ContractFinding]:
    """`wire.document`: a document that cannot be used."""
    try:
        openrpc_of(service)
    except DocumentFault as fault:
        yield document_finding(fault, ("spec_ref",))


def openrpc_findings(
    binding: Binding, capability: Capability, service: Service, source: bytes
) -> Iterator[ContractFinding | OperationContract]:
    """The findings about method and parameters, then the method's contract."""
    try:
        document = openrpc_of(service)
        method = document.method(binding.operation) if document else None
    except DocumentFault as fault:
        if fault.code != "wire.document":  # told at the service
            yield ContractFinding(fault.code, "E", ("operation",), fault.message, fault.hint)
        return
    if method is None:
        return
    taken: dict[str, Taken] = {}
    yield from _params(binding, method, taken)
    reply = () if method.is_notification else (method.result,)
    described = (*(param.schema for param in method.params), *reply)
    yield OperationContract(f"method `{method.name}`", taken, reply, method.deprecated, described)


def _params(binding: Binding, method: RpcMethod, taken: dict[str, Taken]) -> Iterator[ContractFinding]:
    known = {param.name: param for param in method.params}
    for param in method.params:
        if param.required and param.name not in binding.request:
            message = f"method `{method.name}` requires `{param.name}`, which is not given"
            yield ContractFinding(
                "wire.parameter", "E", ("request",), message, f"add {param.name} to request", key=True
            )
    for key in binding.request:
        found = known.get(key)
        if found:
            taken[key] = Taken(key, found.required, found.schema, found.deprecated)
        else:
            hint = suggestion(key, known) or f"it takes {', '.join(list(known)[:6]) or 'nothing'}"
            message = f"method `{method.name}` takes no `{key}`"
            yield ContractFinding("wire.parameter", "E", ("request", key), message, hint, key=True)


JUDGES: Final = ContractJudges(openrpc_findings, document_findings)
