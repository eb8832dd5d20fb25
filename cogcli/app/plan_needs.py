"""The needs of a planned run: variables, network, trust, approvals
(docs/reference/command-line.md#views)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from cogcli.core.errors import BindingResolutionError
from cogcli.runs.prepare import RunRequest
from cogcli.specs.binding import Binding
from cogcli.specs.capability import TRUST_RANKS, Capability
from cogcli.specs.catalog import Catalog
from cogcli.specs.eligibility import variables_of
from cogcli.specs.selection import SelectionOptions, named_binding
from cogcli.specs.service import Service


class PlannedCalls:
    """The capabilities that a run may call, gates included, and their bindings."""

    def __init__(self, catalog: Catalog, options: SelectionOptions) -> None:
        self.capabilities: dict[str, Capability] = {}
        self.options = options
        self._catalog = catalog

    def add(self, capability: Capability) -> None:
        """Add a capability, its gates and its probe."""
        if capability.id in self.capabilities:
            return
        self.capabilities[capability.id] = capability
        for id in capability.asks:
            asked = self._catalog.capability(id)
            if asked:
                self.add(asked)

    def tool(self, capability_id: str) -> str | None:
        """`protocol:service` of the binding that is called first; None where none can be selected."""
        found = next(self.bindings(capability_id), None)
        return f"{found[0].protocol}:{found[0].service}" if found else None

    def bindings(self, capability_id: str) -> Iterator[tuple[Binding, Service]]:
        """The bindings that may be called, in the order of their turn; else the one that cannot be."""
        try:
            chain = named_binding(self._catalog, capability_id, self.options).chain
        except BindingResolutionError:
            return
        for link in [link for link in chain if link.eligible] or chain[:1]:
            binding = self._catalog.bindings.get(link.binding_id)
            service = self._catalog.services.get(link.service_id or "")
            if binding and service:
                yield binding, service


def needs(calls: PlannedCalls, request: RunRequest) -> dict[str, Any]:
    """The needs of all calls together, each with whether it is met."""
    called = calls.capabilities.values()
    levels = [c.safety.trust_level for c in called if c.safety]
    needed, given = max(levels, key=TRUST_RANKS.__getitem__, default="sandbox"), request.trust_level
    asking = [c.id for c in called if c.safety and c.safety.requires_confirmation]
    return {
        "variables": list(_variables(calls)),
        "network": sorted(set(_hosts(calls))),
        "trust": {"needed": needed, "given": given, "enough": TRUST_RANKS[needed] <= TRUST_RANKS[given]},
        "approvals": [{"capability": id, "confirmed": id in request.confirmed} for id in asking],
        "may_ask": [
            {"capability": capability.id, "gate": gate.capability}
            for capability in called
            for gate in capability.gates
            if gate.on_fail == "require_human"
        ],
    }


def _variables(calls: PlannedCalls) -> Iterator[dict[str, Any]]:
    """The variables of the bindings called first; a fallback whose variables are not set is skipped."""
    told = set()
    for capability_id in calls.capabilities:
        for binding, service in list(calls.bindings(capability_id))[:1]:
            for name in variables_of(binding, service):
                if name not in told:
                    told.add(name)
                    yield {"name": name, "set": bool(calls.options.environ.get(name)), "service": service.id}


def _hosts(calls: PlannedCalls) -> Iterator[str]:
    """The hosts of all callable bindings."""
    for capability_id in calls.capabilities:
        for _, service in calls.bindings(capability_id):
            host = urlsplit(service.settings.get("base_url") or service.settings.get("url") or "").hostname
            if host:
                yield host
