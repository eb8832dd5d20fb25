"""Services: their network access, addresses and modules (docs/reference/service.md#keys)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cogcli.base.allowed_hosts import only_hosts
from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.declarations.service_spec import Service


def is_shipped(module: str) -> bool:
    """Return whether a module is one of the service modules that this package ships."""
    return module.startswith("cogcli.official.")


def network_of(service: Service) -> str:
    """Return which network addresses a service may call.

    Private addresses require a declaration in a trusted layer, or an address that the host itself sets. A service of an
    untrusted layer may call only the allowed hosts.
    """
    if not service.trusted:
        return only_hosts(service.allow_hosts)
    return "private" if service.address_by_host else service.network


IN_ADDRESS: Final = lazy_pattern(r"\{([^{}]*)\}")


def names_in_address(address: str) -> list[str]:
    """Return the names in braces in an address template, in order."""
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
"""By server and tool: the module below `MODULES`, and the function. Arguments are the function's own."""
