"""The shape of `official_default_selection.yaml` (docs/reference/binding.md#default-selection)."""

from __future__ import annotations

from typing import Final

from cogcli.specs.shape import MapOf, Record, Text, required_key

DEFAULTS: Final = Record({"defaults": required_key(MapOf(Text(empty=False)), nullable=True)})
