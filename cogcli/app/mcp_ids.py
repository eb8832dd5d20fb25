"""The ids of requests that `serve mcp` gets: MCP allows a string or an integer, never null.

The SDK takes a request with any other id for a notification and never answers: its client would wait forever.
"""

from __future__ import annotations

from typing import Any, Final

BAD_ID: Final = "the id of a request is a string or an integer"


def has_bad_id(message: Any) -> bool:
    """Whether a message is a request whose id MCP does not allow; it is answered with an error of id null."""
    if not isinstance(message, dict) or not {"id", "method"} <= message.keys():
        return False
    return not isinstance(message["id"], str) and type(message["id"]) is not int
