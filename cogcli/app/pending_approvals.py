"""What a paused run asks a person, out of its log."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple


class PendingApproval(NamedTuple):
    """One exact action that waits for a yes or a no. `input` is what the log holds of it: secrets are masked."""

    approval_id: str
    step_id: str
    capability: str
    binding: str
    gate: str
    input: dict[str, Any]
    reason: str
    expires_at: str


def find_pending(directory: Path) -> list[PendingApproval]:
    """The requests that nobody answered yet, the latest of each step. Raises EnvironmentRefusal."""
    from cogcli.app.logs import each_event
    from cogcli.episode.log_index import LogIndex

    asked = (event.payload for event in LogIndex(each_event(directory)).open_requests)
    return [
        PendingApproval(
            payload["approval_id"],
            payload["step_id"],
            payload["capability"],
            payload.get("binding") or "",
            payload.get("gate") or "",
            payload.get("input") or {},
            payload["reason"],
            payload["expires_at"],
        )
        for payload in asked
    ]
