"""What a reply says about the model behind it: counted tokens, its name, why it stopped
(docs/reference/protocols.md#record).

A count that is no whole number from 0 to 2^53 is refused, and that is told in the attempt's notices.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from cogcli.core.jsonvalue import MAX_INTEGER, kind_of
from cogcli.core.terminal_text import visible
from cogcli.protocols.invoker import CallMeta

_LONGEST_NAME: Final = 128
_MOST_NOTICES: Final = 8
_LONGEST_KEY: Final = 40


class ModelUsage(NamedTuple):
    """What a body tells at its top, each None where it does not, or not in a form that can be counted."""

    usage: dict[str, int] | None = None
    model: str | None = None
    finish_reason: str | None = None
    refused: tuple[str, ...] = ()
    """Which counts were refused, and why."""

    def beside(self, meta: CallMeta) -> CallMeta:
        """The record of a call with what its reply tells."""
        return meta._replace(
            usage=self.usage,
            model=self.model,
            finish_reason=self.finish_reason,
            notices=[*(meta.notices or ()), *self.refused] or None,
        )


def usage_of(body: Any, usage: Any = None) -> ModelUsage:
    """What a reply tells about itself. Never raises: a service may write there what it likes.

    `usage` is what the protocol says of it outside the body; where that counts something, the body's is not looked at.
    """
    model, reason, own = None, None, None
    if isinstance(body, dict):
        choices = body.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        reason = first.get("finish_reason") if isinstance(first, dict) else body.get("finish_reason")
        model, own = body.get("model"), body.get("usage")
    counts, refused = _counted(usage)
    if counts is None:
        counts, more = _counted(own)
        refused = (*refused, *more)
    return ModelUsage(counts, _name(model), _name(reason), refused[:_MOST_NOTICES])


def _counted(usage: Any) -> tuple[dict[str, int] | None, tuple[str, ...]]:
    """The whole token counts of a usage object, and what of it is none. Null says nothing."""
    if not isinstance(usage, dict):
        return None, ()
    told = {key: value for key, value in usage.items() if key.endswith("_tokens") and value is not None}
    counts = {key: value for key, value in told.items() if _is_count(value)}
    refused = tuple(_refusal(key, value) for key, value in told.items() if key not in counts)
    return counts or None, refused


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_INTEGER


def _refusal(key: str, value: Any) -> str:
    what = "out of range" if type(value) is int else f"{kind_of(value)}, no whole number"
    return f"usage: `{visible(key[:_LONGEST_KEY])}` is not counted: {what}"


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME else None
