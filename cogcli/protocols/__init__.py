"""How a service is called: one attempt at a time, over one of the protocols in the table
`PROTOCOLS`.

`invoker` holds the contract of an invoker: it turns an `InvocationRequest` into an
`InvocationResponse`, or raises an error of docs/reference/protocols.md#failures. Timeouts, retries,
fallbacks and mapping belong to the callers. Each protocol has a folder; `http` holds what openapi,
openrpc and mcp share.

A protocol's modules are imported on first use, so that start-up loads none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast

from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.service_spec import Service
from cogcli.specs.protocol import DOCUMENT, LOCK, SOURCE, Grammar
from cogcli.specs.service import is_shipped

if TYPE_CHECKING:
    from cogcli.declarations.binding_spec import Binding
    from cogcli.protocols.contract_finding import ContractJudges
    from cogcli.protocols.invoker import Invoker, InvokerContext
    from cogcli.protocols.invoker_rule import InvokerRules
    from cogcli.protocols.live_document import DocumentKind
    from cogcli.specs.checks.context import CheckContext, ProtocolChecks


def _no_checks() -> ProtocolChecks:
    from cogcli.specs.checks.context import ProtocolChecks

    return ProtocolChecks()


def _no_contract() -> ContractJudges:
    from cogcli.protocols.contract_finding import ContractJudges

    return ContractJudges(lambda binding, capability, service, source: (), lambda service: ())


class ProtocolRow(NamedTuple):
    """One protocol: functions that import their module when called, and its properties."""

    grammar: Callable[[], Grammar]
    invoker: Callable[[InvokerContext], Invoker]
    checks: Callable[[], ProtocolChecks] = _no_checks
    contract: Callable[[], ContractJudges] = _no_contract
    """Compares a binding with the description of its service."""
    described_by: Callable[[Service], str] = lambda service: ""
    """Returns the kind of source that describes the operations of a service: DOCUMENT, LOCK, SOURCE, or empty."""
    address_keys: tuple[str, ...] = ()
    """The keys of a service that may contain its URL, the preferred one first."""
    path_keys: Callable[[Service, Binding], Collection[str]] = lambda service, binding: ()
    """Returns the keys of a binding's request that become parts of the URL path."""
    in_process: bool = False
    """Whether its services are functions on this machine, so that no data leaves it."""
    sends_files: bool = False
    """Whether its requests can contain the content of files, as the document of the service describes."""
    json_rpc: bool = False
    """Whether its requests are JSON-RPC calls, which name their own method."""
    called_method: str = ""
    """The single method of all its calls; empty if the operation is the method."""
    library: str = ""
    """The module that its calls import, and the extra that installs it; empty for none."""
    extra: str = ""
    document: Callable[[], DocumentKind] | None = None
    """The reading, fetching, comparing and mocking of its documents; None if services publish none.
    """
    rules: Callable[[], InvokerRules] | None = None
    """The rules of its invoker, which `verify-invoker` checks; None if there are none."""

    def check_contracts(
        self, context: CheckContext, name: str, bindings: Iterable[Binding]
    ) -> None:
        """Report contradictions between the bindings of this protocol, `name`, and the descriptions
        of their services."""
        from cogcli.protocols.service_contract import check_contracts

        check_contracts(self, context, name, bindings)


def _source_of_document(service: Service) -> str:
    return DOCUMENT if "spec_ref" in service.settings else ""


def _source_of_module(service: Service) -> str:
    return SOURCE if service.module and (service.trusted or is_shipped(service.module)) else ""


def _source_of_tools(service: Service) -> str:
    return SOURCE if "server" in service.settings else LOCK


def _lazy_member(path: str) -> Callable[[], Any]:
    """Return a function that imports and returns `module:name` below this package when called."""
    module, _, name = path.partition(":")
    return lambda: getattr(import_module(f"cogcli.protocols.{module}"), name)


def _lazy_invoker(path: str) -> Callable[[InvokerContext], Invoker]:
    member = _lazy_member(path)
    return lambda context: cast("Invoker", member()(context))


def _lazy_path_keys(path: str) -> Callable[[Service, Binding], Collection[str]]:
    member = _lazy_member(path)
    return lambda service, binding: cast("Collection[str]", member()(service, binding))


PROTOCOLS: Final[dict[str, ProtocolRow]] = {
    "pythoncall": ProtocolRow(
        grammar=_lazy_member("pythoncall.grammar:GRAMMAR"),
        checks=_lazy_member("pythoncall.checks:CHECKS"),
        contract=_lazy_member("pythoncall.contract:JUDGES"),
        invoker=_lazy_invoker("pythoncall.invoker:PythonCall"),
        described_by=_source_of_module,
        in_process=True,
    ),
    "openapi": ProtocolRow(
        grammar=_lazy_member("openapi.grammar:GRAMMAR"),
        checks=_lazy_member("openapi.checks:CHECKS"),
        contract=_lazy_member("openapi.contract:JUDGES"),
        invoker=_lazy_invoker("openapi.invoker:OpenApi"),
        document=_lazy_member("openapi.document:KIND"),
        rules=_lazy_member("openapi.rules:RULES"),
        described_by=_source_of_document,
        address_keys=("base_url",),
        path_keys=_lazy_path_keys("openapi.path_keys:path_keys"),
        sends_files=True,
        library="httpx",
    ),
    "openrpc": ProtocolRow(
        grammar=_lazy_member("openrpc.grammar:GRAMMAR"),
        contract=_lazy_member("openrpc.contract:JUDGES"),
        invoker=_lazy_invoker("openrpc.invoker:OpenRpc"),
        document=_lazy_member("openrpc.document:KIND"),
        rules=_lazy_member("openrpc.rules:RULES"),
        described_by=_source_of_document,
        address_keys=("url", "base_url"),
        json_rpc=True,
        library="httpx",
    ),
    "mcp": ProtocolRow(
        grammar=_lazy_member("mcp.grammar:GRAMMAR"),
        checks=_lazy_member("mcp.checks:CHECKS"),
        contract=_lazy_member("mcp.contract:JUDGES"),
        invoker=_lazy_invoker("mcp.invoker:Mcp"),
        rules=_lazy_member("mcp.rules:RULES"),
        described_by=_source_of_tools,
        address_keys=("url",),
        json_rpc=True,
        called_method="tools/call",
        library="mcp",
        extra="mcp",
    ),
}
