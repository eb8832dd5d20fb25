"""The table of all types of events (docs/reference/episode.md#types)."""

from __future__ import annotations

from typing import Final

from cogcli.declarations import agent_events, governance_events, session_events
from cogcli.declarations.event_type import EventType, Payload
from cogcli.declarations.events import END_PAYLOADS, PROCESS_PAYLOADS, STEP_PAYLOADS

PAYLOADS: Final[tuple[type[Payload], ...]] = (
    *STEP_PAYLOADS,
    *governance_events.PAYLOADS,
    *PROCESS_PAYLOADS,
    *agent_events.PAYLOADS,
    *session_events.PAYLOADS,
    *END_PAYLOADS,
)
PAYLOAD_OF: Final[dict[str, type[Payload]]] = {each.event.name: each for each in PAYLOADS}
EVENT_TYPES: Final[dict[str, EventType]] = {each.event.name: each.event for each in PAYLOADS}
"""The types of events by name. Nothing else lists them."""
