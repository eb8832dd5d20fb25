"""Sends messages to people whom the host names."""

from __future__ import annotations

from cogcli.official.receivers import address_of, post_json
from cogcli.sdk import Refused

_MAX_MESSAGE = 64 * 1024


def send_notification(recipient: str, message: str) -> dict[str, object]:
    """Post `{"text": message}` to the webhook of a receiver. `sent` is true after a successful
    reply.
    """
    if len(message) > _MAX_MESSAGE:
        raise Refused("too-large", f"a message has at most {_MAX_MESSAGE} characters")
    post_json(address_of(recipient, "recipient"), recipient, {"text": message})
    return {"sent": True}
