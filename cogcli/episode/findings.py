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


def error_finding(code: str, file: str, line: int, message: str) -> Finding:
    """A finding of severity error; of the name of a file, which anybody may have chosen, at most 200 characters."""
    return Finding(code, "error", file[:200], line, message)


FindingSink = Callable[[str], None]
"""What takes the messages of the repairs that a projection makes."""


def ignore_message(message: str) -> None:
    """A sink for those who do not ask."""
