"""How one step of a graph ended."""

from __future__ import annotations

from typing import Final, NamedTuple

from cogcli.core.errors import RuntimeErrorBase

LEFT_OUT: Final = "left-out"
"""Why an item of a foreach has no output, where somebody decided so."""


class Degraded(Exception):
    """A gate or a person asked to go on without this call."""


class Ending(NamedTuple):
    """How a step ended: done, failed, skipped, vetoed or pending; `error` for failed, vetoed and pending."""

    status: str
    reason: str | None = None
    error: RuntimeErrorBase | None = None


RELEASING: Final = frozenset(("condition", "degraded"))
"""Reasons of a skip after which dependents run."""
