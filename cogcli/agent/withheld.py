"""The notice that replaces a message which no model may read (docs/reference/agent-run.md#withheld). Pure."""

from __future__ import annotations


def withheld(reason: str) -> str:
    """Return the notice that replaces the text of a message, without its hash: a model may read the notice later."""
    return f"[withheld: {reason}]"
