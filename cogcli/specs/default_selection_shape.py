"""The table of `official_default_selection.yaml` (formats.md 8)."""

from __future__ import annotations

from typing import Final

from cogcli.specs.shape import MapOf, Record, Text, need

DEFAULTS: Final = Record({"defaults": need(MapOf(Text(empty=False)), nullable=True)})
