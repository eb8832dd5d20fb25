"""A run that hangs in a call, as a process of its own."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

COGCLI = str(Path(sys.executable).parent / "cogcli")
SLOW = """
import time

def wait(text: str) -> dict[str, object]:
    time.sleep(60)
    return {"text": text}
"""


def slow_run(project: Any) -> subprocess.Popen[bytes]:
    """A run in the middle of a call that takes a minute."""
    project.services(SLOW)
    project.capability("demo.text.wait", "wait")
    project.skill(
        "demo.slow",
        "- {id: a, uses: demo.text.wait, input: {text: {$literal: x}}, output: {text: vars.t}}",
    )
    process = subprocess.Popen([COGCLI, "run", "demo.slow"], cwd=project.root, env=project.env,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if project.episodes and b"step.started" in (project.episode / "events.jsonl").read_bytes():
            return process
        time.sleep(0.05)
    process.kill()
    raise AssertionError(process.communicate()[1])
