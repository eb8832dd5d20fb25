"""Comparing states of runs."""

from __future__ import annotations

from typing import Any


def whole(value: Any) -> Any:
    """Everything that a state, or a block of one, holds."""
    return (
        {name: whole(member) for name, member in vars(value).items()}
        if hasattr(value, "__dict__")
        else value
    )
