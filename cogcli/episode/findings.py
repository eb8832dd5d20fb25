"""What reading or verifying an episode found: data, not an exception."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

FindingSeverity = Literal["error", "warning", "info"]


class Finding(NamedTuple):
    """One thing seen in an episode. `line` is 1-based, 0 where a file has no lines to speak of."""

    code: str
    severity: FindingSeverity
    file: str
    line: int
    message: str


FindingSink = Callable[[str], None]
"""Who hears of the repairs that a projection makes."""


def unheard(message: str) -> None:
    """For those who do not ask."""
