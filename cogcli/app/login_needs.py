"""The logins that a run needs, before it starts anything (docs/reference/mcp.md#tokens)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from cogcli.app.inventory.login import find_login_error
from cogcli.base.errors import BindingResolutionError
from cogcli.specs.catalog import Catalog
from cogcli.specs.selection import SelectionOptions, select


def select_chains(catalog: Catalog, selection: SelectionOptions) -> Iterator[list[str]]:
    """Yield the ids of the services that each capability of a run would be called through, in order."""
    for id in catalog.capabilities:
        try:
            chain = select(catalog, id, selection).chain
        except BindingResolutionError:
            continue  # the checks of the run report it
        yield [link.service_id or "" for link in chain if link.eligible]


def require_logins(
    catalog: Catalog, chains: Iterable[Sequence[str]], environ: Mapping[str, str], now: str
) -> None:
    """Raise ServiceResolutionError `service.login` if every service of a chain needs a missing login. Nothing is sent,
    since only a call shows whether a server accepts a token.
    """
    for chain in chains:
        services = [catalog.services[id] for id in chain if id in catalog.services]
        errors = [
            find_login_error(each, environ, now) if each.keys.login is not None else None
            for each in services
        ]
        first = next(iter(errors), None)
        if first is not None and all(errors):
            raise first
