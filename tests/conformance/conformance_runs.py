"""Running a case with the installed command, and what can be read afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from conformance_cases import REGISTRY, Case, write_project

COGCLI = str(Path(sys.executable).parent / "cogcli")


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
            if event.get("step_id") == step and event["payload"].get("step_status") not in (None, "running"):
                found = event["payload"]
        return found


def run_case(case: Case, home: Path, root: Path) -> Ran:
    """Run a case in a project of its own."""
    root.mkdir(parents=True)
    write_project(case, root)
    flags = [str(flag) for flag in case.raw.get("flags", [])]
    words = ["run", "case.main", "--json", "-q", "--registry", str(REGISTRY)]
    given = ["--input", json.dumps(case.raw.get("input", {}))]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "COGCLI_TRUST_PROJECT": "1",
        "CONFORMANCE_DIR": str(root),
    }
    done = subprocess.run(
        [COGCLI, *words, *given, *flags],
        cwd=root,
        env=environment,
        capture_output=True,
        timeout=180,
        check=False,
    )
    return _read(root, done)


def _read(root: Path, done: subprocess.CompletedProcess[bytes]) -> Ran:
    assert done.stdout, done.stderr.decode()
    episodes = root / ".cogcli" / "episodes"
    found = [path for path in episodes.glob("ep_*") if path.is_dir()]
    episode = found[0] if found else None
    events, state = [], {}
    if episode is not None:
        events = [orjson.loads(line) for line in (episode / "events.jsonl").read_bytes().splitlines()]
        state = orjson.loads((episode / "state.json").read_bytes())["x-cognitive"]
    ledger = root / "ledger"
    lines = ledger.read_text().splitlines() if ledger.exists() else []
    envelope = orjson.loads(done.stdout)
    return Ran(envelope, done.returncode, done.stderr.decode(), episode, events, state, lines)
