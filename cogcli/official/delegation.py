"""Delegates tasks to agents that the host names, over A2A."""

from __future__ import annotations

import uuid
from typing import Any

from cogcli.official.receivers import address_of, post_json
from cogcli.sdk import Refused

_TAKEN = frozenset(("submitted", "working", "completed", "input-required"))


def delegate_task(
    task: dict[str, Any], agent: str, timeout_seconds: float | None = None
) -> dict[str, object]:
    """Send a task to an agent over A2A (`message/send`). Return whether it accepted, with the id or
    the reason.

    `timeout_seconds` tells the agent how long the result is of use. This call does not wait for the
    result. Raise Refused for a reply that does not follow A2A.
    """
    message: dict[str, Any] = {"kind": "message", "role": "user", "messageId": uuid.uuid4().hex}
    message["parts"] = [{"kind": "data", "data": task}]
    if timeout_seconds is not None:
        if not timeout_seconds > 0:
            raise Refused("bad-data", "timeout_seconds is above 0")
        message["metadata"] = {"timeout_seconds": timeout_seconds}
    params = {"message": message, "configuration": {"blocking": False}}
    request = {
        "jsonrpc": "2.0",
        "id": message["messageId"],
        "method": "message/send",
        "params": params,
    }
    reply = post_json(address_of(agent, "agent"), agent, request)
    if isinstance(reply, dict) and isinstance(error := reply.get("error"), dict):
        return {"accepted": False, "reason": str(error.get("message") or error.get("code"))[:500]}
    result = reply.get("result") if isinstance(reply, dict) else None
    if isinstance(result, dict) and result.get("kind") == "message":
        return {
            "accepted": True,
            "delegation_id": str(result.get("messageId") or message["messageId"]),
        }
    status = result.get("status") if isinstance(result, dict) else None
    state = status.get("state") if isinstance(status, dict) else None
    if (
        not isinstance(result, dict)
        or not isinstance(state, str)
        or not isinstance(result.get("id"), str)
    ):
        raise Refused("bad-data", f"agent `{agent}` did not answer with a task or a message of A2A")
    if state in _TAKEN:
        return {"accepted": True, "delegation_id": result["id"]}
    return {"accepted": False, "delegation_id": result["id"], "reason": f"the task is {state[:60]}"}
