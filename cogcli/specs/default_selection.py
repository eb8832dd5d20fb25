"""Which binding a capability gets by default (docs/reference/binding.md#default-selection)."""

from __future__ import annotations

from typing import NamedTuple

from cogcli.core.jsonvalue import NOTHING


class Defaults(NamedTuple):
    """The folded `official_default_selection.yaml` files: capability id to binding id, and where it is said."""

    bindings: dict[str, str] = NOTHING
    files: dict[str, str] = NOTHING
