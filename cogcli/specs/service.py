"""Services: who does the work (docs/reference/service.md#keys)."""

from __future__ import annotations

from typing import Any, NamedTuple

from cogcli.core.jsonvalue import NOTHING


class Service(NamedTuple):
    """A service as its file declares it.

    `trusted` tells whether its layer may start code and read the environment
    (docs/reference/service.md#trust); `root` is the directory that holds the layer, where a pythoncall module
    may be found; both follow from its place.
    """

    id: str
    kind: str
    module: str | None = None
    isolation: str | None = None
    network: str = "public"
    metadata: dict[str, Any] = NOTHING
    settings: dict[str, Any] = NOTHING
    """The keys of the other protocols as written: base_url, url, spec_ref, auth_ref, command, args, env, cwd."""
    layer: str = ""
    root: str = ""
    trusted: bool = False
    file: str = ""
    at: tuple[str, ...] = ()
    """Where in its file it is described; at the root if the file holds nothing else."""
    distrust: str = ""
    """Why its layer is not trusted, where there is more to say than that it is not."""


def is_shipped(module: str) -> bool:
    """Whether a module name belongs to the service modules in the package."""
    return module.startswith("cogcli.official.")


def network_of(service: Service) -> str:
    """Which addresses a service may be reached at: private ones where a trusted layer says so."""
    return service.network if service.trusted else "public"


_OWN = ("id", "kind", "module", "isolation", "network", "metadata")


def service_from(
    raw: dict[str, Any],
    file: str = "",
    *,
    layer: str = "",
    root: str = "",
    trusted: bool = False,
    at: tuple[str, ...] = (),
    distrust: str = "",
) -> Service:
    """A service from its checked mapping."""
    return Service(
        id=raw["id"],
        kind=raw["kind"],
        module=raw.get("module"),
        isolation=raw.get("isolation"),
        network=raw.get("network") or "public",
        metadata=raw.get("metadata") or {},
        settings={k: v for k, v in raw.items() if k not in _OWN and not k.startswith("x-")},
        layer=layer,
        root=root,
        trusted=trusted,
        file=file,
        at=at,
        distrust=distrust,
    )
