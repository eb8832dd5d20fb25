"""Receivers that the host names. A run gives a name, never an address."""

from __future__ import annotations

import json
from typing import Any

from cogcli.sdk import Refused, fetch, secret

_MAX_REPLY = 1024 * 1024
_JSON = (("Content-Type", "application/json"), ("Accept", "application/json"))


def address_of(name: str, kind: str) -> str:
    """Return the address of a receiver by name. The service's `auth_ref` refers to a JSON object of names and
    addresses. Raise Refused for an invalid object and for an unknown name.
    """
    try:
        address_by_name = json.loads(secret())
    except ValueError:
        address_by_name = None
    if not isinstance(address_by_name, dict) or not all(
        isinstance(url, str) for url in address_by_name.values()
    ):
        raise Refused(
            "bad-data",
            "what the host configured is not a JSON object of names and addresses",
            'such as {"ops": "https://chat.example.org/hook"}',
        )
    if name not in address_by_name:
        raise Refused(
            "unsupported",
            f"no {kind} `{name[:60]}` is configured",
            f"configured: {', '.join(sorted(address_by_name)) or 'none'}",
        )
    return str(address_by_name[name])


def post_json(url: str, name: str, value: dict[str, Any]) -> Any:
    """Post a value as JSON. Return the JSON value of the reply, or None if the reply is not JSON."""
    body = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    reply = fetch(
        url, method="POST", headers=_JSON, body=body, most=_MAX_REPLY, name=f"to `{name}`"
    )
    try:
        return json.loads(reply.body)
    except (ValueError, RecursionError):
        return None
