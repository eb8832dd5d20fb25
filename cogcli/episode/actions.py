"""The action log of `state.json`: one record per act event that names a tool or an action."""

from __future__ import annotations

import orjson

from cogcli.declarations.envelope import Event
from cogcli.declarations.shared_events import SharedAct
from cogcli.declarations.value_types import Json
from cogcli.episode.document_bytes import measured_ms
from cogcli.episode.layout import EXCERPT


def action_from(event: Event, act: SharedAct, position: int) -> Json | None:
    """Return the record of an act event, or None if it names no action and no tool.

    `act` is the payload, and `position` is the number of the action, from 1.
    """
    if act.action_id is None and act.tool is None:
        return None
    duration = _first_duration(event, act)
    members = {
        "id": f"action_{position}" if act.action_id is None else act.action_id,
        "kind": act.kind,
        "tool": act.tool,
        "input_excerpt": _excerpt(act, "input_excerpt", "input"),
        "output_excerpt": _excerpt(act, "output_excerpt", "output"),
        "result_status": act.result_status,
        "step_id": event.step_id or act.step_id,
        "provenance": act.provenance or event.agent_id,
        "result_artifacts": act.result_artifacts,
        "duration_ms": duration,
        "timestamp": event.timestamp,
    }
    action = {name: value for name, value in members.items() if value is not None}
    action.update({key: value for key, value in act.json.items() if key[:2] == "x-"})
    return action


def _first_duration(event: Event, act: SharedAct) -> int | float | None:
    """Return the duration from the event's metrics, or else from its payload."""
    measured = (measured_ms(event), act.latency_ms, act.duration_ms)
    return next((each for each in measured if each is not None), None)


def _excerpt(act: SharedAct, excerpt: str, whole: str) -> str | None:
    """Return the recorded excerpt, or else the JSON of the whole value, truncated."""
    value = getattr(act, excerpt)
    if type(value) is str:
        return value[:EXCERPT]
    if value is None:
        if whole not in act.json:
            return None
        value = getattr(act, whole)
    # No character takes more than four bytes.
    return orjson.dumps(value)[: EXCERPT * 4].decode(errors="ignore")[:EXCERPT]
