"""One episode of a million steps: a loop over a loop, killed half-way, resumed to its end, and then read.

Each command is a process of its own, whose memory the system measures.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

INNER = 1_000
"""Rounds of the inner loop."""
SAMPLE = 1_000
"""Steps at the beginning and at the end that are compared."""
READERS = {
    "verify": ("verify", "@last"),
    "trace": ("trace", "@last"),
    "state show": ("state", "show", "@last"),
    "state show --json": ("state", "show", "@last", "--json"),
    "state show --project": ("state", "show", "@last", "--project"),
    "report": ("report", "@last", "-o", "report.html"),
}
"""The commands that read the episode when it has ended."""
_PATIENCE = 6 * 3600.0
_CAPABILITY = """
id: n.same
version: "1.0.0"
description: Gives the text back.
inputs: {t: {type: string, required: true}}
outputs: {t: {type: string, required: true}}
properties: {side_effects: false}
"""
_BINDING = """
id: n_same
capability: n.same
service: official_text
protocol: pythoncall
operation: normalize
request: {text: input.t}
response: {t: response.text}
"""
_SKILL = """
id: %(id)s
version: "1.0.0"
name: Loop
description: Repeats one step.
inputs: {t: {type: string, required: true}}
outputs: {t: {type: string, required: true}}
steps:
  - id: %(step)s
    uses: %(uses)s
    input: {t: inputs.t}
    output: {t: outputs.t}
    config: {while: {condition: true, max_iterations: %(rounds)d}}
"""


class Command(NamedTuple):
    """What one process took."""

    seconds: float
    megabytes: float
    code: int


def write_project(project: Path, steps: int) -> int:
    """Write two nested loops of at least so many steps in all, and return their number."""
    inner = min(steps, INNER)
    outer = -(-steps // inner)
    files = {
        "capabilities/n.same.yaml": _CAPABILITY,
        "bindings/local/n.same/n_same.yaml": _BINDING,
        "skills/local/n/in/skill.yaml": _SKILL
        % {"id": "n.in", "step": "s", "uses": "n.same", "rounds": inner},
        "skills/local/n/out/skill.yaml": _SKILL
        % {"id": "n.out", "step": "s", "uses": "skill:n.in", "rounds": outer},
    }
    for name, text in files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return inner * outer


class Bench:
    """The commands over one project."""

    def __init__(self, folder: Path, steps: int) -> None:
        self.project = folder / "project"
        self.steps = write_project(self.project, steps)
        self._home = {
            "HOME": str(folder),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
            "PATH": os.environ["PATH"],
        }

    @property
    def episode(self) -> Path:
        return next((self.project / ".cogcli" / "episodes").glob("ep_*"))

    @property
    def log(self) -> Path:
        return self.episode / "events.jsonl"

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "cogcli", *arguments]
        return subprocess.Popen(
            command,
            cwd=self.project,
            env=self._home,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def run(self, *arguments: str) -> Command:
        started = time.perf_counter()
        return wait_for(self.start(*arguments), started)


def wait_for(process: subprocess.Popen[bytes], started: float) -> Command:
    """Wait for a process, and return what it took."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Command(time.perf_counter() - started, usage.ru_maxrss / 1024, process.returncode)


def memory_mb(process: subprocess.Popen[bytes]) -> float:
    """The memory that a process has now, in MB."""
    fields = Path(f"/proc/{process.pid}/status").read_text().split("\n")
    line = next(line for line in fields if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


class LogFigures(NamedTuple):
    """What a log says of its run."""

    first_us: float
    """Microseconds a step, the median of the first steps. A mean would count the pauses of a busy machine."""
    last_us: float
    snapshots: int
    snapshot_share: float
    """At most so much of the time of the run went to snapshots."""


def read_log(log: Path) -> LogFigures:
    """Read the times of a log. Lines are taken apart as text: there are millions."""
    first: list[datetime] = []
    last: deque[datetime] = deque(maxlen=SAMPLE + 1)
    before = begun = ended = None
    snapshots, taken = 0, 0.0
    with log.open("rb") as lines:
        for line in lines:
            at = datetime.fromisoformat(line.split(b'"timestamp":"', 1)[1][:27].decode())
            begun = begun or at
            if b'"event_type":"run.state_projection"' in line[:400] and b'"snapshot":true' in line:
                snapshots += 1
                taken += (at - (before or at)).total_seconds()
            elif b'"event_type":"step.completed"' in line[:400] and b'"attempts":[{' in line:
                if len(first) <= SAMPLE:
                    first.append(at)
                last.append(at)
            before = ended = at
    share = taken / max((ended - begun).total_seconds(), 1e-9) if begun and ended else 0.0
    return LogFigures(_step_us(first), _step_us(list(last)), snapshots, share)


def _step_us(times: list[datetime]) -> float:
    if len(times) < 2:
        return 0.0
    return 1e6 * statistics.median((b - a).total_seconds() for a, b in pairwise(times))


def wait_until_grown(process: subprocess.Popen[bytes], log: Path, size: int) -> None:
    """Wait until a log has so many bytes."""
    until = time.monotonic() + _PATIENCE
    while process.poll() is None and time.monotonic() < until:
        if log.exists() and log.stat().st_size >= size:
            return
        time.sleep(0.002)
    raise SystemExit(f"the run ended with {process.returncode} before its log had {size:,} bytes")


def wait_for_step(process: subprocess.Popen[bytes], log: Path, size: int) -> None:
    """Wait until a resumed run has ended a step of its own after `size` bytes of its log."""
    until = time.monotonic() + _PATIENCE
    while process.poll() is None and time.monotonic() < until:
        with log.open("rb") as file:
            file.seek(size)
            _, found, later = file.read(1 << 20).partition(b'"event_type":"run.resumed"')
        if found and b'"event_type":"step.completed"' in later:
            return
        time.sleep(0.002)
    raise SystemExit(f"the resumed run ended with {process.returncode} before a step of its own")


def measure(folder: Path, steps: int) -> Iterator[tuple[str, float, str, float | None, str]]:
    """Yield name, value, unit, goal and note of each figure."""
    bench = Bench(folder, steps)
    whole = bench.steps * 1900
    started = time.perf_counter()
    process = bench.start("run", "n.out", "-p", "t=x", "-q")
    while process.poll() is None and not list(bench.project.glob(".cogcli/episodes/ep_*")):
        time.sleep(0.002)
    wait_until_grown(process, bench.log, whole // 20)
    early = memory_mb(process)
    wait_until_grown(process, bench.log, whole // 2)
    late = memory_mb(process)
    process.send_signal(signal.SIGKILL)
    wait_for(process, started)
    size = bench.log.stat().st_size
    lines = _complete_lines(bench.log)
    resumed = time.perf_counter()
    process = bench.start("resume", "@last", "-q")
    wait_for_step(process, bench.log, size)
    quick, small = time.perf_counter() - resumed, memory_mb(process)
    rest = wait_for(process, resumed)
    if rest.code != 0:
        raise SystemExit(f"the resumed run ended with {rest.code}")
    found = read_log(bench.log)
    yield "steps", bench.steps, "", None, f"killed after {lines:,} events"
    ratio = found.last_us / max(found.first_us, 1e-9)
    note = f"{found.last_us:.0f} us beside {found.first_us:.0f} us a step"
    yield f"the last {SAMPLE} steps over the first", ratio, "x", 1.1, note
    yield "disk without state.json, a step", _disk(bench.episode) / bench.steps, "B", 2048, ""
    note = f"{found.snapshots} snapshots"
    yield "snapshots of the run's time, at most", 100 * found.snapshot_share, "%", 1, note
    yield "memory at half over a tenth of that", late / early, "x", 1.1, f"{late:.0f} MB"
    yield "resume, until a step of its own", quick, "s", 1, ""
    yield "resume, memory then", small, "MB", 80, ""
    yield "resume to the end, sealed", rest.megabytes, "MB", None, f"{rest.seconds:.0f} s"
    for name, words in READERS.items():
        took = bench.run(*words)
        note = f"{took.seconds:.0f} s, exit {took.code}"
        yield f"{name}, memory", took.megabytes, "MB", 200, note


def _complete_lines(log: Path) -> int:
    with log.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))


def _disk(episode: Path) -> int:
    files: Mapping[Path, int] = {
        path: path.stat().st_size
        for path in episode.rglob("*")
        if path.is_file() and path.name != "state.json"
    }
    return sum(files.values())


if __name__ == "__main__":
    print(json.dumps([*measure(Path(sys.argv[1]), int(sys.argv[2]))]))
