"""The action log of `state.json`: one record per act event that names a tool or an action."""

from __future__ import annotations

from typing import Final

from cogcli.base.json_text import excerpt_of_json
from cogcli.declarations.envelope import Event
from cogcli.declarations.events import StepFinished
from cogcli.declarations.field import fields_of
from cogcli.declarations.shared_events import SharedActivity
from cogcli.declarations.value_types import Json
from cogcli.episode.document_bytes import measured_ms
from cogcli.episode.layout import EXCERPT

_MEMBERS: Final = (
    "id", "kind", "tool", "input_excerpt", "output_excerpt", "result_status", "step_id", "provenance",
    "result_artifacts", "duration_ms", "timestamp",
)  # fmt: skip
"""The members of an action, in their order."""
_DECLARED: Final = frozenset(field.name for field in fields_of(StepFinished))
"""The members of our closing events, none of which begins with `x-`."""


def action_from(event: Event, act: SharedActivity, position: int) -> Json | None:
    """Return the record of an act event, or None if it names no action and no tool.

    `act` is the payload, and `position` is the number of the action, from 1.
    """
    if act.action_id is None and act.tool is None:
        return None
    json = act.json
    members = (
        f"action_{position}" if act.action_id is None else act.action_id,
        act.kind,
        act.tool,
        _action_excerpt(act.input_excerpt, json, "input"),
        _action_excerpt(act.output_excerpt, json, "output"),
        act.result_status,
        event.step_id or act.step_id,
        act.provenance or event.agent_id,
        act.result_artifacts,
        _first_duration(event, act),
        event.timestamp,
    )
    named = zip(_MEMBERS, members, strict=True)
    action = {name: value for name, value in named if value is not None}
    if not _DECLARED.issuperset(json):
        action.update({key: value for key, value in json.items() if key[:2] == "x-"})
    return action


def _first_duration(event: Event, act: SharedActivity) -> int | float | None:
    """Return the duration from the event's metrics, or else from its payload."""
    measured = None if event.metrics is None else measured_ms(event)
    if measured is None:
        measured = act.duration_ms if act.latency_ms is None else act.latency_ms
    return measured


def _action_excerpt(value: object, json: Json, whole: str) -> str | None:
    """Return the recorded excerpt, or else a truncated JSON text of the whole value. None without either."""
    if type(value) is str:
        return value[:EXCERPT]
    if value is None:
        if whole not in json:
            return None
        value = json[whole]
    return excerpt_of_json(value, EXCERPT)
