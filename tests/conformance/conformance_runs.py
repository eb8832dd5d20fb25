"""Running a case, and what can be read afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from conformance_cases import REGISTRY, Case, write_project
from support.project import Project, Result


class Ran(NamedTuple):
    """What a case gave. `events` and `state` are empty where no episode was written."""

    envelope: dict[str, Any]
    exit_code: int
    stderr: str
    episode: Path | None
    events: list[dict[str, Any]]
    state: dict[str, Any]
    ledger: list[str]

    @property
    def sealed(self) -> bool:
        """Whether an episode was written to its end."""
        return any(event["event_type"] == "run.terminated" for event in self.events)

    def closing(self, step: str) -> dict[str, Any]:
        """The payload of a step's closing event, nested steps as `outer/inner`; empty while it has none."""
        found: dict[str, Any] = {}
        for event in self.events:
            if event.get("step_id") == step and event["payload"].get("step_status") not in (
                None,
                "running",
            ):
                found = event["payload"]
        return found


def run_case(case: Case, cache: Path, folder: Path) -> Ran:
    """Run a case in a project of its own."""
    project = Project(folder, cache)
    write_project(case, project.root)
    flags = [str(flag) for flag in case.raw.get("flags", [])]
    words = ["run", "case.main", "--json", "-q", "--registry", str(REGISTRY)]
    given = ["--input", json.dumps(case.raw.get("input", {}))]
    run = project.installed if case.raw.get("installed") else project.run
    done = run(*words, *given, *flags, env={"CONFORMANCE_DIR": str(project.root)})
    return _read(project.root, done)


def _read(root: Path, done: Result) -> Ran:
    assert done.out, done.err
    episodes = root / ".cogcli" / "episodes"
    found = [path for path in episodes.glob("ep_*") if path.is_dir()]
    episode = found[0] if found else None
    events, state = [], {}
    if episode is not None:
        events = [
            orjson.loads(line) for line in (episode / "events.jsonl").read_bytes().splitlines()
        ]
        state = orjson.loads((episode / "state.json").read_bytes())["x-cognitive"]
    ledger = root / "ledger"
    lines = ledger.read_text().splitlines() if ledger.exists() else []
    envelope = orjson.loads(done.out_bytes)
    return Ran(envelope, done.code, done.err, episode, events, state, lines)
