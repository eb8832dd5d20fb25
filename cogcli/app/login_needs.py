"""The logins that a run needs, before it starts anything (docs/reference/mcp.md#tokens)."""

from __future__ import annotations

from collections.abc import Mapping

from cogcli.app.inventory.login import find_login_fault
from cogcli.base.errors import BindingResolutionError
from cogcli.protocols.mcp.login_store import login_error
from cogcli.specs.catalog import Catalog
from cogcli.specs.selection import SelectionOptions, select


def require_logins(
    catalog: Catalog, selection: SelectionOptions, environ: Mapping[str, str], now: str
) -> None:
    """Raise ServiceResolutionError `service.login` for a capability none of whose chosen bindings can be called
    without a login.

    Nothing is sent: whether a server accepts a token is known only from a call.
    """
    for id in catalog.capabilities:
        try:
            chain = select(catalog, id, selection).chain
        except BindingResolutionError:
            continue  # the checks of the run report it
        services = [catalog.services[link.service_id or ""] for link in chain if link.eligible]
        faults = [
            find_login_fault(each, environ, now) if each.keys.login is not None else ""
            for each in services
        ]
        if faults and all(faults):
            raise login_error(services[0], faults[0])
