"""`state.json` of any tool fits the published schema; what is written here fits the narrower one."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import sample_episode as sample
from support.seed_example import COMPLETE

from cogcli.episode.schemas import SCHEMAS

DOCS = Path(__file__).resolve().parents[3] / "docs" / "schemas"
OUTCOMES: dict[str, Any] = {
    "status": "ok",
    "actions": [
        {
            "id": "action_1",
            "tool": "changelog_reader",
            "input": "CHANGELOG.md",
            "output": {"entries": 15},
            "timestamp": "2024-01-15T10:30:01Z",
            "duration_ms": 150,
        },
        {
            "id": "action_2",
            "tool": "release_notes_generator",
            "input": {"entries": 15, "format": "markdown"},
            "output": {"file": "release_notes.md"},
            "timestamp": "2024-01-15T10:30:03Z",
            "duration_ms": 2500,
        },
    ],
    "metrics": {"task_score": 0.95, "steps_completed": 4, "steps_total": 4},
    "artifacts": ["release_notes.md"],
    "error": None,
}
"""The example of outcomes; those below are its examples of other members."""
PLAN: dict[str, Any] = {
    "source": "planner.minimal",
    "updated_at": "2024-01-15T10:30:01Z",
    "rationale": "minimal planner",
    "steps": [
        {
            "id": "step_1",
            "kind": "detect",
            "description": "Read changelog entries",
            "status": "done",
            "rationale": "Need to gather raw changelog data",
            "inputs": {"file": "CHANGELOG.md"},
            "outputs": {"entries": 15},
        },
        {"id": "step_2", "kind": "verify", "description": "Validate format", "status": "done"},
    ],
}
LINKS = {
    "events": "events.jsonl",
    "learn": "learn.jsonl",
    "summary": "summary.json",
    "manifest": "manifest.json",
}
MEMBERS: dict[str, dict[str, Any]] = {
    "complete": {},
    "outcomes": {"outcomes": OUTCOMES},
    "plan": {"plan": PLAN},
    "links": {"links": LINKS},
    "links of a run that waits": {"links": {"events": "events.jsonl", "learn": "learn.jsonl"}},
    "a belief without a time": {
        "beliefs": [{"statement": "s", "confidence": 1, "provenance": "policy_hint"}]
    },
    "a fact of any type": {"memory": {"facts": [{"key": "n", "value": 3}]}},
    "least outcomes": {"outcomes": {"status": "pending"}},
    "further keys": {"noesis": {"a": 1}, "goal": {"task": "t", "priority": 1}},
}


def published(name: str) -> jsonschema.Draft202012Validator:
    """The schema as it lies in docs/."""
    return jsonschema.Draft202012Validator(json.loads((DOCS / f"{name}.schema.json").read_text()))


@pytest.mark.parametrize("member", MEMBERS)
def test_the_published_schema_accepts_what_the_seed_shows(member: str) -> None:
    published("state").validate({**COMPLETE, **MEMBERS[member]})


@pytest.mark.parametrize("key", ["beliefs", "memory", "links"])
def test_what_the_seed_does_not_require_may_be_absent(key: str) -> None:
    published("state").validate({name: value for name, value in COMPLETE.items() if name != key})


BREACHES: dict[str, Callable[[dict[str, Any]], object]] = {
    "no version": lambda d: d.pop("version"),
    "no schema version": lambda d: d.pop("state_schema_version"),
    "another version": lambda d: d.update(version="2.0"),
    "no id": lambda d: d["episode"].pop("id"),
    "no start": lambda d: d["episode"].pop("started_at"),
    "no task": lambda d: d["goal"].pop("task"),
    "no confidence": lambda d: d["beliefs"][0].pop("confidence"),
    "too much confidence": lambda d: d["beliefs"][0].update(confidence=1.1),
    "no provenance": lambda d: d["beliefs"][0].pop("provenance"),
    "no steps": lambda d: d["plan"].pop("steps"),
    "a kind of its own": lambda d: d["plan"]["steps"][0].update(kind="research"),
    "a status of its own": lambda d: d["plan"]["steps"][0].update(status="finished"),
    "a fact without a value": lambda d: d["memory"]["facts"][0].pop("value"),
    "no outcome": lambda d: d["outcomes"].pop("status"),
    "an outcome of its own": lambda d: d["outcomes"].update(status="success"),
}


@pytest.mark.parametrize("breach", BREACHES)
def test_what_the_seed_requires_is_required(breach: str) -> None:
    document = copy.deepcopy(COMPLETE)
    BREACHES[breach](document)
    assert not published("state").is_valid(document)


def test_what_is_written_here_fits_both(tmp_path: Path) -> None:
    document = json.loads((sample.sealed_episode(tmp_path) / "state.json").read_bytes())
    published("state").validate(document)
    published("state-written").validate(document)


def test_writing_stays_as_strict_as_it_was() -> None:
    strict = jsonschema.Draft202012Validator(SCHEMAS["state-written"]())
    assert not strict.is_valid(COMPLETE)
    assert SCHEMAS["state-written"]()["additionalProperties"] is False
