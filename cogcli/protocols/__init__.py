"""How a service is called: one attempt at a time, over one of the protocols in the table `PROTOCOLS`.

`invoker` holds the contract of an invoker: it turns an `InvocationRequest` into an `InvocationResponse`, or raises an
error of docs/reference/protocols.md#failures. Timeouts, retries, fallbacks and mapping belong to the callers. Each
protocol has a folder; `http` holds what openapi, openrpc and mcp share.

Nothing of a protocol is imported before its row is asked for it: start-up pays for none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

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
    """One protocol: functions that import when called, and what others ask of it."""

    grammar: Callable[[], Grammar]
    invoker: Callable[[InvokerContext], Invoker]
    checks: Callable[[], ProtocolChecks] = _no_checks
    contract: Callable[[], ContractJudges] = _no_contract
    """The comparison of a binding with what describes its service."""
    described_by: Callable[[Service], str] = lambda service: ""
    """What describes the operations of a service: DOCUMENT, LOCK, SOURCE, or nothing: empty."""
    address_keys: tuple[str, ...] = ()
    """The keys of a service that may hold its URL, the first to write it."""
    path_keys: Callable[[Service, Binding], Collection[str]] = lambda service, binding: ()
    """The keys of a binding's request that become parts of the path of a URL."""
    in_process: bool = False
    """Whether its services are functions on this machine: nothing leaves it."""
    json_rpc: bool = False
    """Whether its requests are JSON-RPC calls, which name a method of their own."""
    called_method: str = ""
    """The one method that all its calls use; empty where the operation is the method."""
    library: str = ""
    """The module that its calls import, and the extra that installs it; empty for none."""
    extra: str = ""
    document: Callable[[], DocumentKind] | None = None
    """How its documents are read, fetched, compared and mocked; None where services publish none."""
    rules: Callable[[], InvokerRules] | None = None
    """What its invoker promises, each provoked by `verify-invoker`; None where nothing is."""

    def check_contracts(
        self, context: CheckContext, name: str, bindings: Iterable[Binding]
    ) -> None:
        """Report where the bindings of this protocol, called `name`, contradict what describes their services."""
        from cogcli.protocols.service_contract import check_contracts

        check_contracts(self, context, name, bindings)


def _documented(service: Service) -> str:
    return DOCUMENT if "spec_ref" in service.settings else ""


def _readable_module(service: Service) -> str:
    return SOURCE if service.module and (service.trusted or is_shipped(service.module)) else ""


def _locked_unless_shipped(service: Service) -> str:
    return SOURCE if "server" in service.settings else LOCK


def _member(path: str) -> Callable[[], Any]:
    """A function that imports `module:name` below this room when called."""
    module, _, name = path.partition(":")
    return lambda: getattr(import_module(f"cogcli.protocols.{module}"), name)


def _invoker(path: str) -> Callable[[InvokerContext], Invoker]:
    member = _member(path)
    return lambda context: cast("Invoker", member()(context))


def _path_keys(path: str) -> Callable[[Service, Binding], Collection[str]]:
    member = _member(path)
    return lambda service, binding: cast("Collection[str]", member()(service, binding))


PROTOCOLS: Final[dict[str, ProtocolRow]] = {
    "pythoncall": ProtocolRow(
        grammar=_member("pythoncall.grammar:GRAMMAR"),
        checks=_member("pythoncall.checks:CHECKS"),
        contract=_member("pythoncall.contract:JUDGES"),
        invoker=_invoker("pythoncall.invoker:PythonCall"),
        described_by=_readable_module,
        in_process=True,
    ),
    "openapi": ProtocolRow(
        grammar=_member("openapi.grammar:GRAMMAR"),
        checks=_member("openapi.checks:CHECKS"),
        contract=_member("openapi.contract:JUDGES"),
        invoker=_invoker("openapi.invoker:OpenApi"),
        document=_member("openapi.document:KIND"),
        rules=_member("openapi.rules:RULES"),
        described_by=_documented,
        address_keys=("base_url",),
        path_keys=_path_keys("openapi.path_keys:path_keys"),
        library="httpx",
    ),
    "openrpc": ProtocolRow(
        grammar=_member("openrpc.grammar:GRAMMAR"),
        contract=_member("openrpc.contract:JUDGES"),
        invoker=_invoker("openrpc.invoker:OpenRpc"),
        document=_member("openrpc.document:KIND"),
        rules=_member("openrpc.rules:RULES"),
        described_by=_documented,
        address_keys=("url", "base_url"),
        json_rpc=True,
        library="httpx",
    ),
    "mcp": ProtocolRow(
        grammar=_member("mcp.grammar:GRAMMAR"),
        checks=_member("mcp.checks:CHECKS"),
        contract=_member("mcp.contract:JUDGES"),
        invoker=_invoker("mcp.invoker:Mcp"),
        rules=_member("mcp.rules:RULES"),
        described_by=_locked_unless_shipped,
        address_keys=("url",),
        json_rpc=True,
        called_method="tools/call",
        library="mcp",
        extra="mcp",
    ),
}
