"""The limits of one YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cogcli.base.jsonvalue import NOTHING
from cogcli.base.named_tuple import NamedTuple

MAX_BYTES: Final = 256 * 1024
MAX_DEPTH: Final = 32
MAX_NODES: Final = 50_000


class Limits(NamedTuple):
    """The limits of one file."""

    bytes: int = MAX_BYTES
    depth: int = MAX_DEPTH
    nodes: int = MAX_NODES
    settings: Mapping[str, str] = NOTHING
    """The settings that raise a limit, by its member here."""
    wide_integers: bool = False
    """Whether an integer beyond 2^53 is the nearest float, and no problem."""

    def hint(self, cure: str, member: str) -> str:
        """Return the hint for a file beyond a limit: how to mend it, and the setting if there is one."""
        setting = self.settings.get(member)
        return f"{cure}, or raise the setting {setting}" if setting else cure


SPEC: Final = Limits()
DOCUMENT: Final = Limits(64 * 1024 * 1024, 100, 5_000_000, wide_integers=True)
"""The limits of API documents (docs/reference/spec-files.md#yaml)."""
