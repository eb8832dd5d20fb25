"""Which binding a capability gets by default (formats.md 8)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Defaults:
    """The folded `official_default_selection.yaml` files: capability id to binding id, and where it is said."""

    bindings: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
