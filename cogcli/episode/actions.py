"""The action log of `state.json`: one record per act event that names a tool or an action."""

from __future__ import annotations

from typing import Any

import orjson

from cogcli.declarations.envelope import Event
from cogcli.episode.layout import EXCERPT


def action_of(event: Event, position: int) -> dict[str, Any] | None:
    """The record of an act event, None if it names no action and no tool. `position` counts actions from 1."""
    payload = event.payload
    if type(payload) is not dict:
        return None
    action_id, tool = payload.get("action_id"), payload.get("tool")
    if type(action_id) is not str and type(tool) is not str:
        return None
    action: dict[str, Any] = {"id": action_id if type(action_id) is str else f"action_{position}"}
    texts = {
        "kind": payload.get("kind"),
        "tool": tool,
        "input_excerpt": _excerpt(payload, "input_excerpt", "input"),
        "output_excerpt": _excerpt(payload, "output_excerpt", "output"),
        "result_status": payload.get("result_status"),
        "step_id": event.step_id or payload.get("step_id"),
        "provenance": payload.get("provenance") or event.agent_id,
    }
    action.update({key: value for key, value in texts.items() if type(value) is str})
    if type(payload.get("result_artifacts")) is list:
        action["result_artifacts"] = payload["result_artifacts"]
    measured = (
        (event.metrics or {}).get("duration_ms"),
        payload.get("latency_ms"),
        payload.get("duration_ms"),
    )
    durations = [value for value in measured if type(value) in (int, float)]
    if durations:
        action["duration_ms"] = durations[0]
    action["timestamp"] = event.timestamp
    action.update({key: value for key, value in payload.items() if key[:2] == "x-"})
    return action


def _excerpt(payload: dict[str, Any], excerpt: str, whole: str) -> str | None:
    """The excerpt as recorded, else the whole value's JSON, cut."""
    value = payload.get(excerpt)
    if type(value) is str:
        return value[:EXCERPT]
    if value is None:
        if whole not in payload:
            return None
        value = payload[whole]
    # No character takes more than four bytes.
    return orjson.dumps(value)[: EXCERPT * 4].decode(errors="ignore")[:EXCERPT]
