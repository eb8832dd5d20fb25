"""The open approval requests of a paused run, from its log."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from cogcli.episode.log_reader import iterate_events
from cogcli.runs.log_index import LogIndex


class PendingApproval(NamedTuple):
    """An action that waits for approval. `input` is the recorded one: secrets are masked."""

    approval_id: str
    step_id: str
    capability: str
    binding: str
    gate: str
    input: dict[str, Any]
    reason: str
    expires_at: str


def find_pending(directory: Path) -> list[PendingApproval]:
    """The unanswered requests, the latest of each step. Raises EnvironmentRefusal."""
    asked = (event.payload for event in LogIndex(iterate_events(directory)).open_requests)
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
