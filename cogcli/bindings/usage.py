"""What a reply says about the model behind it: counted tokens, its name, why it stopped (protocols.md 1)."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from cogcli.core.jsonvalue import MAX_INTEGER

_LONGEST_NAME: Final = 128


class Told(NamedTuple):
    """What a body tells at its top, each None where it does not, or not in a form that can be counted."""

    usage: dict[str, int] | None = None
    model: str | None = None
    finish_reason: str | None = None


def told_by(body: Any) -> Told:
    """What a reply tells about itself. Never raises: a service may write there what it likes."""
    if not isinstance(body, dict):
        return Told()
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    reason = first.get("finish_reason") if isinstance(first, dict) else body.get("finish_reason")
    return Told(counted(body.get("usage")), _name(body.get("model")), _name(reason))


def counted(usage: Any) -> dict[str, int] | None:
    """The whole token counts of a usage object; anything else is not counted."""
    if not isinstance(usage, dict):
        return None
    counts = {
        key: value
        for key, value in usage.items()
        if key.endswith("_tokens") and type(value) is int and 0 <= value <= MAX_INTEGER
    }
    return counts or None


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME else None
