"""The episode of a session as a resource of its own client (docs/reference/gateway.md#resources).

It has what the client knows already: its calls and how they ended. Reading it is no call, and is not recorded.
"""

from __future__ import annotations

import json
from typing import Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

from cogcli.app.episodes import find
from cogcli.app.settings import Settings
from cogcli.declarations.envelope import row_of
from cogcli.declarations.events import StepFinished
from cogcli.declarations.session_events import CallRequested
from cogcli.declarations.value_types import Json
from cogcli.episode.log_reader import iterate_events
from cogcli.gateway.session import GatewaySession

PREFIX: Final = "cogcli://episodes/"
MOST_CALLS: Final = 1000
"""The most calls in the resource, the newest ones."""
_JSON: Final = "application/json"


def list_own(session: GatewaySession | None) -> list[types.Resource]:
    """Return the resource of a session's episode; none before its first call."""
    id = session.episode_id if session is not None else ""
    if not id:
        return []
    text = "The calls of this session, and how each ended."
    return [types.Resource(uri=f"{PREFIX}{id}", name=id, description=text, mime_type=_JSON)]


def read_own(
    settings: Settings, session: GatewaySession | None, uri: str
) -> types.ReadResourceResult:
    """Return the calls of a session's episode. Raise MCPError for any other episode, CogcliError for a log that cannot
    be read. Blocks.
    """
    id = uri.removeprefix(PREFIX)
    if session is None or not id or session.episode_id != id:
        text = "Unknown resource: only the present episode of this session may be read"
        raise MCPError(code=types.INVALID_PARAMS, message=text)
    text = json.dumps({"episode_id": id, "calls": _read_calls(settings, id)}, ensure_ascii=False)
    contents = types.TextResourceContents(uri=uri, mime_type=_JSON, text=text)
    return types.ReadResourceResult(contents=[contents])


def _read_calls(settings: Settings, episode_id: str) -> list[Json]:
    calls: dict[str, Json] = {}
    for event in iterate_events(find(settings, episode_id)):
        if event.event_type == CallRequested.event.name:
            asked = CallRequested.of(event.payload)
            calls[asked.step_id] = {"step": asked.step_id, "tool": asked.tool, "status": "open"}
        elif event.step_id in calls and row_of(event.event_type).closes:
            ended = StepFinished.of(event.payload)
            call = calls[event.step_id]
            call["status"] = ended.step_status
            if ended.error is not None:
                call["code"] = ended.error.code
    return list(calls.values())[-MOST_CALLS:]
