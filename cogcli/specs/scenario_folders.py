"""The folders of scenarios in a project (docs/reference/protocols.md#scenarios)."""

from __future__ import annotations

from typing import Final

REGISTRY: Final = "registry"
"""A folder next to the scenarios that is an additional layer for them."""
_FOLDER: Final = "tooling"


def directory_of(protocol: str) -> str:
    """Return the directory of a protocol's scenarios, relative to the root of a project."""
    return f"{_FOLDER}/{protocol}_scenarios"
