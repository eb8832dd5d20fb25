"""Services: who does the work (docs/reference/service.md#keys)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from cogcli.base.allowed_hosts import only_hosts
from cogcli.base.jsonvalue import NOTHING
from cogcli.specs.fields import value_from


class Service(NamedTuple):
    """A service as its file declares it.

    `trusted`: whether its layer may start code and read the environment (docs/reference/service.md#trust); `root`: the
    directory of the layer, where a pythoncall module may be. Both follow from the file's path.
    """

    id: str
    kind: str
    module: str | None = None
    isolation: str | None = None
    network: str = "public"
    declares_network: bool = False
    """Whether its file says `network`: functions that do so reach other machines."""
    metadata: dict[str, Any] = NOTHING
    variables: dict[str, dict[str, str]] = NOTHING
    """By name where its value comes from: `env`, `default`."""
    settings: dict[str, Any] = NOTHING
    """The keys of the other protocols as written: base_url, url, spec_ref, auth_ref, command, args, env, cwd;
    addresses with the values of variables."""
    values: dict[str, str] = NOTHING
    """By variable its value; one without is left out."""
    written: dict[str, str] = NOTHING
    """The addresses in which variables stand, as written."""
    address_by_host: bool = False
    """Whether the environment, not the file, says where it is."""
    layer: str = ""
    root: str = ""
    trusted: bool = False
    file: str = ""
    at: tuple[str, ...] = ()
    """Its path in its file; empty if the file holds nothing else."""
    distrust: str = ""
    """Why its layer is not trusted, empty where there is no reason beside that."""
    allow_hosts: tuple[str, ...] = ()
    """The public hosts that calls reach although it is not trusted."""


def is_shipped(module: str) -> bool:
    """Whether a module name belongs to the service modules in the package."""
    return module.startswith("cogcli.official.")


def network_of(service: Service) -> str:
    """The addresses that a service may have: private ones only where a trusted layer declares it, or where the host
    named the address itself; of a layer that is not trusted the allowed hosts alone."""
    if not service.trusted:
        return only_hosts(service.allow_hosts)
    return "private" if service.address_by_host else service.network


_OWN = ("id", "kind", "module", "isolation", "network", "metadata", "variables")


def service_from(raw: dict[str, Any], file: str = "", **place: Any) -> Service:
    """A service from its checked mapping; `place` has the members that follow from where it was found."""
    settings = {k: v for k, v in raw.items() if k not in _OWN and not k.startswith("x-")}
    declares = raw.get("network") is not None
    return value_from(
        Service, raw, settings=settings, declares_network=declares, file=file, **place
    )


IN_ADDRESS: Final = re.compile(r"\{([^{}]*)\}")


def names_in_address(address: str) -> list[str]:
    """The names in braces of an address, in order."""
    return IN_ADDRESS.findall(address)


MODULES: Final = "cogcli.official."

TABLES: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "official_text_tools": {
        "normalize": ("text", "normalize"),
        "split_sections": ("text", "split_sections"),
        "detect_language": ("text", "detect_language"),
        "summarize": ("prose", "summarize_by_frequency"),
        "summarize_by_lead": ("prose", "summarize_by_lead"),
        "extract_keywords": ("prose", "extract_keywords"),
        "score_readability": ("prose", "score_readability"),
        "find_entities": ("extract", "find_entities"),
    },
    "official_data_tools": {
        "parse_json": ("data", "parse_json"),
        "merge_objects": ("data", "merge_objects"),
        "profile_records": ("data", "profile_records"),
        "validate": ("schema", "validate"),
        "summarize_column": ("table", "summarize_column"),
        "total_groups": ("table", "total_groups"),
    },
    "official_web_tools": {
        "extract_content": ("web", "extract_content"),
    },
}
"""By server and tool: module, below `MODULES`, and function. Arguments are the function's own."""
