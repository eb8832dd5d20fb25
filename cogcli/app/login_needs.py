"""The logins that a run needs, before it starts anything (docs/reference/mcp.md#tokens)."""

from __future__ import annotations

from collections.abc import Mapping

from cogcli.app.inventory.login import find_login_error
from cogcli.base.errors import BindingResolutionError
from cogcli.specs.catalog import Catalog
from cogcli.specs.selection import SelectionOptions, select


def require_logins(
    catalog: Catalog, selection: SelectionOptions, environ: Mapping[str, str], now: str
) -> None:
    """Raise ServiceResolutionError `service.login` if every chosen binding of a capability needs a missing login.
    Nothing is sent, since only a call shows whether a server accepts a token.
    """
    for id in catalog.capabilities:
        try:
            chain = select(catalog, id, selection).chain
        except BindingResolutionError:
            continue  # the checks of the run report it
        services = [catalog.services[link.service_id or ""] for link in chain if link.eligible]
        errors = [
            find_login_error(each, environ, now) if each.keys.login is not None else None
            for each in services
        ]
        first = next(iter(errors), None)
        if first is not None and all(errors):
            raise first
