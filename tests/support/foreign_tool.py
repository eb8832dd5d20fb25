"""Episodes as another tool writes them: the fields of the shared format, JSON with blanks, a manifest of its own form.

Each is complete and authentic: log, reflections, state, summary, what it made, and the manifest of all that.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

Event = dict[str, Any]


def event(
    number: int, second: float, episode_id: str, phase: str, payload: Any, **more: Any
) -> Event:
    """One line with the fields of the shared format; `second` counts from half past ten."""
    return {
        "id": f"ev_{number}", "timestamp": at(second), "episode_id": episode_id, "phase": phase,
        "payload": payload, "evidence_ids": [], **more,
    }  # fmt: skip


def at(second: float) -> str:
    """A moment some seconds after half past ten."""
    whole = f"2024-01-15T10:{30 + int(second) // 60:02d}:{int(second) % 60:02d}"
    return f"{whole}.{round(second % 1 * 1000):03d}Z" if second % 1 else f"{whole}Z"


def release_notes(episode_id: str = "ep_2024_abc123_s0") -> list[Event]:
    """A run that ended well: step records, beliefs, facts, artifacts, projection evidence after its end."""
    e = episode_id
    steps = [
        {"id": "step_1", "kind": "detect", "description": "Read changelog", "status": "pending"},
        {"id": "step_2", "kind": "act", "description": "Generate notes", "status": "pending"},
        {"id": "step_3", "kind": "verify", "description": "Validate format", "status": "done"},
    ]
    events = [
        event(1, 0, e, "start", {"task": "Draft release notes", "seed": 0, "tags": {"team": "platform"}}),
        event(2, 0.5, e, "interpret", {"beliefs": [{"statement": "3 features", "confidence": 0.9, "provenance": "x"}]}),
        event(3, 1, e, "plan", {"source": "direction", "step_records": steps}, agent_id="planner"),
        event(4, 1.25, e, "act", {"step_id": "step_1", "step_status": "running"}),
        event(
            5, 1.5, e, "act",
            {"step_id": "step_1", "step_status": "done", "tool": "reader", "input": "LOG.md", "output": {"n": 15}},
            metrics={"duration_ms": 150},
        ),
        event(
            6, 4, e, "act",
            {"step_id": "step_2", "step_status": "done", "action_id": "a2", "tool": "writer", "outcome": "ok",
             "result_artifacts": ["release_notes.md"]},
            metrics={"started_at": at(1.5), "completed_at": at(4), "duration_ms": 2500},
        ),
        event(7, 4.5, e, "terminate", {"status": "ok", "metrics": {"task_score": 0.95}}),
    ]  # fmt: skip
    evidence = {"status": "ok", "outcomes": dict(reversed(outcomes("ok").items())), "links": LINKS}
    return [*events, event(8, 6, e, "runtime", evidence, event_type="run.state_projection")]


def labelled(episode_id: str = "ep_labels") -> list[Event]:
    """A run that failed: plan labels, words of its own (`outcome`, `message`), a re-plan, actions of no step."""
    e = episode_id
    return [
        event(1, 0, e, "start", {"task": "Migrate"}),
        event(2, 1, e, "plan", {"steps": ["act:First thought"]}),
        event(3, 2, e, "act", {"step_id": "step-1", "step_status": "done", "tool": "thinker"}),
        event(4, 3, e, "plan", {"source": "minimal", "steps": ["detect:Read: all", "do it", 7, "act:Write"]}),
        event(5, 4, e, "act", {"step_id": "step-1", "step_status": "done", "tool": "reader", "outcome": "ok"}),
        event(6, 5, e, "act", {"tool": "shell", "input": {"cmd": "ls"}, "outcome": "ok"}),
        event(7, 6, e, "act", {"step_id": "unplanned", "step_status": "done", "tool": "stray"}),
        event(8, 7, e, "act", {"step_id": "step-2", "step_status": "finished"}),
        event(
            9, 9, e, "act",
            {"step_id": "step-4", "step_status": "failed", "tool": "writer", "outcome": "error", "message": "no room"},
            metrics={"started_at": at(7), "completed_at": at(9)},
        ),
        event(10, 10, e, "terminate", {"outcome": "error", "message": "could not write"}),
        event(11, 60, e, "insight", {"note": "long after the end"}),
    ]  # fmt: skip


def paused(episode_id: str = "ep_paused") -> list[Event]:
    """A run that waits: its second step is running, nothing ended it."""
    return release_notes(episode_id)[:5]


LINKS = {
    "events": "events.jsonl",
    "learn": "learn.jsonl",
    "summary": "summary.json",
    "manifest": "manifest.json",
}


def outcomes(status: str) -> dict[str, Any]:
    """Outcomes as that tool tells them."""
    return {
        "status": status,
        "actions": [{"id": "a2", "tool": "writer", "timestamp": at(4), "duration_ms": 2500}],
        "metrics": {"task_score": 0.95},
        "artifacts": ["release_notes.md"],
        "error": None,
    }


def state_of(events: list[Event], status: str = "ok") -> dict[str, Any]:
    """`state.json` with what the shared format requires."""
    return {
        "outcomes": outcomes(status),
        "version": "1.0",
        "state_schema_version": "1.0.0",
        "episode": {"id": events[0]["episode_id"], "started_at": events[0]["timestamp"], "seed": 0},
        "goal": {"task": events[0]["payload"].get("task", "none"), "type": "task"},
        "beliefs": [],
        "plan": {
            "steps": [
                {
                    "id": "step_1",
                    "kind": "detect",
                    "description": "Read changelog",
                    "status": "done",
                },
                {"id": "step_2", "kind": "act", "description": "Generate notes", "status": "done"},
            ]
        },
        "memory": {"facts": [], "scratchpad": ""},
    }


def write(
    directory: Path,
    events: list[Event],
    *,
    status: str = "ok",
    prefix: str = "",
    sealed: bool = True,
) -> Path:
    """The whole episode on disk; `prefix` stands before the hashes of its manifest."""
    directory.mkdir(parents=True)
    write_log(directory, events)
    (directory / "learn.jsonl").write_text('{"lesson": "read first"}\n')
    (directory / "state.json").write_text(
        json.dumps(state_of(events, status), indent=4, sort_keys=True)
    )
    if sealed:
        (directory / "summary.json").write_text(
            json.dumps({"schema_version": "summary/1.0", "status": status})
        )
        (directory / "release_notes.md").write_text("# 1.2.0\n")
        (directory / "artifacts").mkdir()
        (directory / "artifacts" / "raw.bin").write_bytes(bytes(range(256)))
        write_manifest(directory, prefix=prefix)
    return directory


def write_log(directory: Path, events: list[Event]) -> None:
    """The log, each line with blanks, as `json.dumps` writes it."""
    (directory / "events.jsonl").write_text("".join(json.dumps(each) + "\n" for each in events))


def write_manifest(directory: Path, *, prefix: str = "", **changes: Any) -> dict[str, Any]:
    """The manifest of what is there now."""
    paths = sorted(
        path for path in directory.rglob("*") if path.is_file() and path.name != "manifest.json"
    )
    manifest = {
        "schema_version": "manifest/1.0",
        "episode_id": json.loads((directory / "events.jsonl").read_text().splitlines()[0])[
            "episode_id"
        ],
        "files": [entry(path, str(path.relative_to(directory)), prefix=prefix) for path in paths],
        **changes,
    }
    (directory / "manifest.json").write_text(json.dumps(manifest, indent=1))
    return manifest


def entry(path: Path, name: str, *, prefix: str = "") -> dict[str, Any]:
    """One file of a manifest."""
    data = path.read_bytes()
    digest = f"{prefix}{hashlib.sha256(data).hexdigest()}"
    return {"name": name, "sha256": digest, "size_bytes": len(data), "kind": path.stem}
