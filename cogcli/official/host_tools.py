"""Tools that a host program calls itself. A hook allows the call here, and the host makes it."""

from __future__ import annotations

from cogcli.sdk import Refused


def perform(**call: object) -> dict[str, object]:
    """Refuse the call. Raise Refused `unsupported`."""
    hint = "decide about it with --in-doubt done, skip or fail"
    raise Refused("unsupported", "only the host of the agent can make this call", hint=hint)
