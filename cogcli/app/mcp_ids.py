"""The ids of requests that `serve mcp` gets: MCP allows a string or an integer, never null.

The SDK takes a request with any other id for a notification, and whoever sent it waits for an answer for ever.
"""

from __future__ import annotations

from typing import Any, Final

BAD_ID: Final = "the id of a request is a string or an integer"


def has_bad_id(message: Any) -> bool:
    """Whether this is a request that cannot be answered by its id: its answer is an error whose id is null."""
    if not isinstance(message, dict) or not {"id", "method"} <= message.keys():
        return False
    return not isinstance(message["id"], str) and type(message["id"]) is not int
