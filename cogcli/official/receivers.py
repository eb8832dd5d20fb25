"""Receivers that the host names. What a run gives is a name, never an address."""

from __future__ import annotations

import json
from typing import Any

from cogcli.sdk import Refused, fetch, secret

_MAX_REPLY = 1024 * 1024
_JSON = (("Content-Type", "application/json"), ("Accept", "application/json"))


def address_of(name: str, what: str) -> str:
    """Return the address of a receiver, from the JSON object of names and addresses that `auth_ref` of the service
    names.
    """
    try:
        known = json.loads(secret())
    except ValueError:
        known = None
    if not isinstance(known, dict) or not all(isinstance(url, str) for url in known.values()):
        raise Refused(
            "bad-data",
            "what the host configured is not a JSON object of names and addresses",
            'such as {"ops": "https://chat.example.org/hook"}',
        )
    if name not in known:
        raise Refused(
            "unsupported",
            f"no {what} `{name[:60]}` is configured",
            f"configured: {', '.join(sorted(known)) or 'none'}",
        )
    return str(known[name])


def post_json(url: str, name: str, value: dict[str, Any]) -> Any:
    """Return the JSON value of the reply, None for another one."""
    body = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    reply = fetch(
        url, method="POST", headers=_JSON, body=body, most=_MAX_REPLY, name=f"to `{name}`"
    )
    try:
        return json.loads(reply.body)
    except (ValueError, RecursionError):
        return None
