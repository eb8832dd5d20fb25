"""The example of the shared format (docs/reference/episode.md#shared-format)."""

from __future__ import annotations

from typing import Any

COMPLETE: dict[str, Any] = {
    "version": "1.0",
    "state_schema_version": "1.0.0",
    "episode": {
        "id": "ep_2024_abc123_s0",
        "seed": 0,
        "tags": {"team": "platform"},
        "using": "baseline",
        "started_at": "2024-01-15T10:30:00Z",
    },
    "goal": {"task": "Draft release notes for v1.2.0", "type": "task"},
    "beliefs": [
        {
            "statement": "Version 1.2.0 includes 3 new features",
            "confidence": 0.9,
            "provenance": "changelog_analysis",
        }
    ],
    "plan": {
        "source": "direction",
        "updated_at": "2024-01-15T10:30:01Z",
        "steps": [
            {"id": "step_1", "kind": "detect", "description": "Read changelog", "status": "done"},
            {"id": "step_2", "kind": "act", "description": "Generate notes", "status": "done"},
        ],
    },
    "memory": {
        "facts": [{"key": "format", "value": "keep-a-changelog", "provenance": "detection"}],
        "scratchpad": "3 breaking changes found",
    },
    "outcomes": {
        "status": "ok",
        "actions": [{"id": "action_1", "tool": "reader", "timestamp": "2024-01-15T10:30:01Z"}],
        "metrics": {"task_score": 0.95},
        "artifacts": ["release_notes.md"],
    },
}
"""The complete example."""
