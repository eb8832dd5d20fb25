"""`services refresh`: what a service offers now, compared with its lock or document
(docs/reference/protocols.md#mcp-pins)."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from cogcli.app.registry import open_registry
from cogcli.app.run_skill import environment_of
from cogcli.app.services_documents import compare_documents, replace
from cogcli.app.settings import Settings
from cogcli.app.settings.user_dirs import state_home
from cogcli.core.calls import Cancellation
from cogcli.core.errors import EnvironmentRefusal, ServiceResolutionError, UsageError
from cogcli.core.problems import ProblemsFound, suggestion
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.invoker import CallLimits, InvokerContext
from cogcli.protocols.live_document import DocumentKind
from cogcli.protocols.mcp.connect import identity
from cogcli.protocols.mcp.invoker import Mcp
from cogcli.protocols.mcp.pins import Pins, find_changed_fields, lock_path, read_locked, write_lock
from cogcli.runs.launch import invoker_context
from cogcli.specs.catalog import Catalog
from cogcli.specs.protocol import LOCK
from cogcli.specs.service import Service

SECONDS = 60.0
"""How long a server may take to start and to list its tools."""


class ServiceChange(NamedTuple):
    """A tool, operation or method that was `added`, `removed` or `changed` (then in these fields).

    `breaking`: whether earlier valid calls may be invalid now; any change of a locked tool is.
    """

    name: str
    change: str
    fields: tuple[str, ...] = ()
    breaking: bool = True


class RefreshResult(NamedTuple):
    """The offer of a service and its changes. `file` is the lock, or the document of `spec_ref`; `known`: whether it
    had this service before; `noun`: tool, operation or method."""

    service: str
    noun: str
    known: bool
    names: tuple[str, ...]
    differences: tuple[ServiceChange, ...]
    accepted: bool
    file: str

    @property
    def verdict(self) -> str:
        """`same`, `compatible` or `breaking`."""
        if not self.differences:
            return "same"
        return "breaking" if any(each.breaking for each in self.differences) else "compatible"


def refresh(settings: Settings, service_id: str, *, accept: bool) -> RefreshResult:
    """Compare a server's tools with its lock, a live document with the one in the project; with `accept` write it.

    Raises UsageError for a service that has nothing to compare, ServiceResolutionError, what the call raises, and
    EnvironmentRefusal where the lock cannot be written.
    """
    service = _service(settings, service_id)
    described = PROTOCOLS[service.kind].document
    if described is not None:
        return _document(settings, service, described(), accept=accept)
    _require_server(service)
    before = read_locked(service.root, service.id)
    now = _tools(settings, service)
    found = _differences({tool["name"]: tool for tool in before or ()}, {tool["name"]: tool for tool in now})
    if before is None:  # without a lock no call relies on anything
        found = tuple(difference._replace(breaking=False) for difference in found)
    if accept:
        _accept(settings, service, now)
    lock = settings.display_path(lock_path(service.root))
    names = tuple(tool["name"] for tool in now)
    return RefreshResult(service.id, "tool", before is not None, names, found, accept, lock)


def _document(settings: Settings, service: Service, kind: DocumentKind, *, accept: bool) -> RefreshResult:
    found = compare_documents(service, kind, _invoker_context(settings), SECONDS)
    if accept and (found.changes or not found.existed):
        replace(settings, found)
    differences = tuple(ServiceChange(*change) for change in found.changes)
    path = settings.display_path(found.path)
    return RefreshResult(service.id, kind.noun, found.existed, found.names, differences, accept, path)


def _service(settings: Settings, service_id: str) -> Service:
    catalog = open_registry(settings).everything()
    service = catalog.services.get(service_id)
    if service is not None:
        return service
    raise _absent(catalog, service_id)


def _absent(catalog: Catalog, service_id: str) -> ServiceResolutionError | ProblemsFound:
    file = catalog.broken.get(f"service:{service_id}")
    if file:
        return ProblemsFound([p for p in catalog.problems if p.file == file])
    hint = suggestion(service_id, catalog.services)
    return ServiceResolutionError("service.unknown", f"there is no service `{service_id}`", hint=hint)


def _require_server(service: Service) -> None:
    if PROTOCOLS[service.kind].described_by(service) == LOCK:
        return
    what = "comes with the package" if "server" in service.settings else f"is of kind {service.kind}"
    raise UsageError(
        "usage.value",
        f"service `{service.id}` {what}",
        expected="an mcp service with a command or a url, or one with spec_ref",
    )


def _tools(settings: Settings, service: Service) -> list[dict[str, Any]]:
    invoker = Mcp(_invoker_context(settings))
    try:
        return invoker.tools(service, CallLimits(time.monotonic() + SECONDS, Cancellation()))
    finally:
        invoker.close(5.0)


def _invoker_context(settings: Settings) -> InvokerContext:
    # Nothing of this is recorded, and messages are masked by what the secrets themselves remember.
    return invoker_context(environment_of(settings), lambda secret: None)


def _differences(before: dict[str, Any], now: dict[str, Any]) -> tuple[ServiceChange, ...]:
    found = []
    for name in sorted({*before, *now}):
        if name not in before:
            found.append(ServiceChange(name, "added"))
        elif name not in now:
            found.append(ServiceChange(name, "removed"))
        elif fields := find_changed_fields(before[name], now[name]):
            found.append(ServiceChange(name, "changed", tuple(fields)))
    return tuple(found)


def _accept(settings: Settings, service: Service, tools: list[dict[str, Any]]) -> None:
    try:
        write_lock(service.root, service.id, tools)
    except OSError as error:
        path = settings.display_path(lock_path(service.root))
        raise EnvironmentRefusal(
            "env.disk", f"{path} cannot be written: {error.strerror}", hint="make the directory writable"
        ) from error
    Pins(state_home(settings.environ)).replace(identity(service), tools)
