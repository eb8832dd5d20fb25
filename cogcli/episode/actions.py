"""The action log of `state.json`: one record per act event that names a tool or an action."""

from __future__ import annotations

from typing import Final

import orjson

from cogcli.declarations.envelope import Event
from cogcli.declarations.events import StepFinished
from cogcli.declarations.field import fields_of
from cogcli.declarations.shared_events import SharedActivity
from cogcli.declarations.value_types import Json
from cogcli.episode.document_bytes import measured_ms
from cogcli.episode.layout import EXCERPT

_DECLARED: Final = frozenset(field.name for field in fields_of(StepFinished))
"""The members of our closing events, none of which begins with `x-`."""


def action_from(event: Event, act: SharedActivity, position: int) -> Json | None:
    """Return the record of an act event, or None if it names no action and no tool.

    `act` is the payload, and `position` is the number of the action, from 1.
    """
    if act.action_id is None and act.tool is None:
        return None
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
        "duration_ms": _first_duration(event, act),
        "timestamp": event.timestamp,
    }
    action = {name: value for name, value in members.items() if value is not None}
    if not _DECLARED.issuperset(act.json):
        action.update({key: value for key, value in act.json.items() if key[:2] == "x-"})
    return action


def _first_duration(event: Event, act: SharedActivity) -> int | float | None:
    """Return the duration from the event's metrics, or else from its payload."""
    measured = measured_ms(event)
    if measured is None:
        measured = act.duration_ms if act.latency_ms is None else act.latency_ms
    return measured


def _excerpt(act: SharedActivity, excerpt: str, whole: str) -> str | None:
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
