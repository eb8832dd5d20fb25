"""Checkpoints and requests that nobody of ours wrote: each is passed over or refused in words, never with a bug."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.project import Project

SLOT = 2048
GUARDED = "demo.text.guarded"


def _paused(project: Project) -> Path:
    project.capability(GUARDED, "upper", extra="safety: {requires_confirmation: true}\n")
    call = f'- {{id: ask, uses: {GUARDED}, input: {{text: "x"}}, output: {{text: outputs.text}}}}'
    project.skill("demo.waits", call, outputs="{text: {type: string}}")
    project.installed("run", "demo.waits").assert_exit(5)
    return project.episode


@pytest.mark.parametrize(
    "change",
    [
        {"mac": "é"},
        {"mac": "\ud800"},
        {"mac": ""},
        {"mac": None, "signature": {"alg": "é"}},
        {"episode_id": "é"},
    ],
    ids=json.dumps,
)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_record_of_another_beside_the_own_one_changes_nothing(
    demo: Any, change: dict[str, Any], is_first: bool
) -> None:
    file = _paused(demo) / "checkpoint.jsonl"
    own = file.read_bytes()[:SLOT]
    other = json.dumps({**json.loads(own), **change}).encode().ljust(SLOT - 1) + b"\n"
    file.write_bytes(other + own if is_first else own + other)
    assert "nothing altered, not sealed" in demo.installed("verify", "--all").assert_ok().out
    demo.installed("resume", "@last", "--approve", GUARDED).assert_ok()
    assert "nothing altered\n" in demo.installed("verify", "@last").assert_ok().out
