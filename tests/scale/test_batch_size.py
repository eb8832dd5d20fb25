"""The memory of a batch does not grow with its lines: a million results behind a slow first line, and a million runs.

`COGCLI_LONG_TESTS=1` takes a million lines, which takes an hour or more; `COGCLI_BATCH_LINES=100000` fewer of them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from counted import RUN, batch_folder, make_counted
from support.project import Project

from cogcli.episode.archive.reader import Archive
from cogcli.episode.memory_folder import HAS_FILES_IN_MEMORY

LONG = bool(os.environ.get("COGCLI_LONG_TESTS"))
LINES_IF_LONG = int(os.environ.get("COGCLI_BATCH_LINES", 1_000_000))
MANY = LINES_IF_LONG if LONG else 20_000
MOST_KB = 15 * 1024
COGCLI = str(Path(sys.executable).parent / "cogcli")

PROGRAM = """
import resource
import sys
from functools import partial
from pathlib import Path

from cogcli.declarations.field_spec import FieldSpec
from cogcli.episode.folder import Folder
from cogcli.scale.batch_folder import Shard
from cogcli.scale.coordinator import Coordinator, StopSignals
from cogcli.scale.executor import LineEnded
from cogcli.scale.identity import LineTask
from cogcli.scale.input_lines import InputLineCheck, open_input, read_checked_lines, read_lines
from cogcli.scale.ledger import Ledger, LedgerEntry
from cogcli.scale.line_result import LineResult, row_of
from cogcli.scale.output import ContinuedRows, OrderedRows, PartFile
from cogcli.scale.totals import Totals


class Executor:
    name, workers = "stub", 1

    def __init__(self, last):
        self.last, self.held, self.ends = last, None, []

    @property
    def free(self):
        return 64 - len(self.ends)

    @property
    def running(self):
        return len(self.ends) + (self.held is not None)

    def submit(self, task):
        if task.line == 1:
            self.held = task
        else:
            self.ends.append(task)

    def completed(self, seconds):
        ends, self.ends = self.ends, []
        if self.held and any(task.line == self.last for task in ends):
            ends, self.held = [*ends, self.held], None
        return [LineEnded(task, result(task)) for task in ends]

    def cancel(self):
        return []

    def close(self):
        pass


class Display:
    def begin(self, lines, ended): pass
    def update(self, totals, force=False): pass
    def note(self, text): pass


def result(task):
    episode = "ep_" + "0" * 26
    entry = LedgerEntry(task.line, 1, "0" * 16, episode, "ok", 0, task.line % 97, calls=2)
    return LineResult(entry, row_of(entry, {"text": "x" * 100}, None))


place, count = Path(sys.argv[1]), int(sys.argv[2])
source = place / "in.jsonl"
with source.open("w") as file:
    for line in range(count):
        file.write('{"text": "line %d"}\\n' % line)
open_source = partial(open_input, str(source))
with open_source() as file:
    fields = {"text": FieldSpec(type="string")}
    digest = InputLineCheck(fields, "in.jsonl", stops=True).read(read_lines(file))
part = PartFile(str(place / "out.part"))
with Folder.open(place) as folder:
    ledger = Ledger(folder, "ledger.jsonl", "ba_x", "1/1")
    assert list(ledger.read_lines()) == []
    rows = OrderedRows(part, Shard(), str(place), 1_000_000)
    lines = read_checked_lines(open_source, digest.blocks, "ba_x")
    tasks = (LineTask(line, 1, data) for line, data in lines)
    totals = Totals()
    coordinator = Coordinator(
        Executor(count), ledger, ContinuedRows(part, rows), totals, Display(), StopSignals()
    )
    coordinator.run(tasks)
    ledger.close()
part.finish(str(place / "out.jsonl"))
assert totals.done.count == count
with (place / "out.jsonl").open() as file:
    assert all(text.startswith('{"line":%d,' % line) for line, text in enumerate(file, 1))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak_kb(place: Path, lines: int) -> int:
    place.mkdir()
    command = [sys.executable, "-c", PROGRAM, str(place), str(lines)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.sampled(6)
@pytest.mark.slow
@pytest.mark.usefixtures("hours_in_a_long_run")
def test_memory_is_flat(tmp_path: Path) -> None:
    grown = peak_kb(tmp_path / "many", MANY) - peak_kb(tmp_path / "few", 1_000)
    assert grown <= MOST_KB, f"{grown} KB more for {MANY} lines"


EACH = LINES_IF_LONG if LONG else 240
FEW = 1_000 if LONG else 60
KILLS = 3 if LONG else 1
ECHO = "def count(text: str) -> dict[str, object]:\n    return {'text': text.upper()}\n"
"""A function that keeps no list of its calls: that would be the largest file of the batch."""


class RunningBatch:
    """A batch of a skill without an effect, in a process of its own."""

    def __init__(self, project: Any, lines: int) -> None:
        command = [COGCLI, *RUN, "--keep", "archived", "--jobs", "2", "-q"]
        self._project = project
        self._lines = lines
        self._process = subprocess.Popen(command, cwd=project.root, env=project.env)
        self.peak_kb = 0

    def wait_for(self, lines: int) -> bool:
        """Wait until the ledger has about so many lines. Return whether the process still runs."""
        while self._process.poll() is None:
            status = Path(f"/proc/{self._process.pid}/status")
            with suppress(OSError, TypeError):  # a process that just ended has no such line
                self.peak_kb = int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1])  # type: ignore[index]
            with suppress(OSError, ValueError):
                if (batch_folder(self._project) / "ledger.jsonl").stat().st_size > 280 * lines:
                    return True
            time.sleep(0.02)
        return False

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def finish(self) -> None:
        self.wait_for(2 * self._lines)
        assert self._process.wait() == 0


def prepare(project: Any, lines: int) -> None:
    make_counted(project, "none")
    project.write("demo_services.py", ECHO)
    with (project.root / "in.jsonl").open("w") as file:
        file.writelines(f'{{"text": "line {number}"}}\n' for number in range(lines))


@pytest.mark.sampled(6)
@pytest.mark.slow
@pytest.mark.usefixtures("hours_in_a_long_run")
@pytest.mark.skipif(not HAS_FILES_IN_MEMORY, reason="memory is read from /proc")
def test_a_large_batch_survives_kills_in_little_memory(
    project: Any, tmp_path_factory: pytest.TempPathFactory, warm_cache: Path
) -> None:
    small = Project(tmp_path_factory.mktemp("few"), warm_cache)
    prepare(small, FEW)
    few = RunningBatch(small, FEW)
    few.finish()
    prepare(project, EACH)
    peak = 0
    for kill in range(1, KILLS + 1):
        running = RunningBatch(project, EACH)
        if running.wait_for(EACH * kill // (KILLS + 1)):
            running.kill()
        peak = max(peak, running.peak_kb)
    last = RunningBatch(project, EACH)
    last.finish()
    grown = max(peak, last.peak_kb) - few.peak_kb
    assert grown <= MOST_KB, f"{grown} KB more for {EACH} lines"
    with (project.root / "out.jsonl").open() as file:
        assert all(text.startswith(f'{{"line":{line},') for line, text in enumerate(file, 1))
    assert text_count(project.root / "out.jsonl") == EACH
    assert text_count(batch_folder(project) / "ledger.jsonl") == EACH
    found = 0
    for path in (batch_folder(project) / "archives").glob("*.cogarchive"):
        with Archive.open(path) as archive:
            found += len(archive.episode_ids())
    assert EACH <= found <= EACH + 2 * KILLS  # a worker of a killed batch may end its line late
    project.started("report", batch_folder(project).name, "-o", "page.html").assert_ok()
    assert (project.root / "page.html").stat().st_size < 2_000_000


def text_count(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)
