"""The ceilings of spec files that a user may raise, each a setting `limits.NAME`
(docs/reference/spec-files.md#ceilings)."""

from __future__ import annotations

from typing import Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.yaml.limits import SPEC, Limits


class SpecCeilings(NamedTuple):
    """The largest skills and files that a command accepts. The members have the default values."""

    steps: int = 10_000
    """The steps of a skill."""
    max_iterations: int = 10_000
    """The maximum that a `while` may declare."""
    max_items: int = 1_000_000
    """The maximum that a `foreach` may declare."""
    yaml_bytes: int = SPEC.bytes
    """The bytes of a spec file."""
    yaml_nodes: int = SPEC.nodes
    """The keys and values of a spec file."""

    @property
    def yaml(self) -> Limits:
        """Return the limits of a spec file. Its depth is limited for all files alike."""
        settings = {name: setting_name(f"yaml_{name}") for name in ("bytes", "nodes")}
        return SPEC._replace(bytes=self.yaml_bytes, nodes=self.yaml_nodes, settings=settings)


DEFAULT_CEILINGS: Final = SpecCeilings()
HIGHEST: Final = SpecCeilings(
    steps=1_000_000,
    max_iterations=1_000_000_000,
    max_items=100_000_000,
    yaml_bytes=256 * 1024 * 1024,
    yaml_nodes=50_000_000,
)
"""The most that a setting may raise each ceiling to."""


def setting_name(ceiling: str) -> str:
    """Return the name of the setting of a ceiling."""
    return f"limits.{ceiling}"
