"""How one step of a graph ended."""

from __future__ import annotations

from typing import Final, NamedTuple

from cogcli.core.errors import RuntimeErrorBase


class Ending(NamedTuple):
    """How a step ended: done, failed, skipped, vetoed or pending; `error` for failed, vetoed and pending."""

    status: str
    reason: str | None = None
    error: RuntimeErrorBase | None = None


RELEASING: Final = frozenset(("condition", "degraded"))
"""Reasons of a skip after which dependents run."""
