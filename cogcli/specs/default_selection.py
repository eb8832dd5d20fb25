"""The default binding of each capability (docs/reference/binding.md#default-selection)."""

from __future__ import annotations

from typing import NamedTuple

from cogcli.core.jsonvalue import NOTHING


class Defaults(NamedTuple):
    """The folded `official_default_selection.yaml` files: capability id to binding id, and the file of each."""

    bindings: dict[str, str] = NOTHING
    files: dict[str, str] = NOTHING
