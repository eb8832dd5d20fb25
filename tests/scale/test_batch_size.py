"""The memory of a batch does not grow with its lines: a million results behind a slow first line.

`COGCLI_LONG_TESTS=1` takes a million lines, else twenty thousand.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LONG = bool(os.environ.get("COGCLI_LONG_TESTS"))
MANY = 1_000_000 if LONG else 20_000
MOST_KB = 15 * 1024

PROGRAM = """
import resource
import sys
from functools import partial
from pathlib import Path

from cogcli.declarations.field_spec import FieldSpec
from cogcli.episode.folder import Folder
from cogcli.scale.batch_folder import Shard
from cogcli.scale.coordinator import Coordinator, StopSwitch
from cogcli.scale.executor import LineEnded
from cogcli.scale.identity import LineTask
from cogcli.scale.input_lines import FirstPass, open_input, read_checked_lines, read_lines
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
    digest = FirstPass(fields, "in.jsonl", stops=True).read(read_lines(file))
part = PartFile(str(place / "out.part"))
with Folder.open(place) as folder:
    ledger = Ledger(folder, "ledger.jsonl", "ba_x", "1/1")
    assert list(ledger.entries()) == []
    rows = OrderedRows(part, Shard(), str(place), 1_000_000)
    lines = read_checked_lines(open_source, digest.blocks, "ba_x")
    tasks = (LineTask(line, 1, data) for line, data in lines)
    totals = Totals()
    coordinator = Coordinator(
        Executor(count), ledger, ContinuedRows(part, rows), totals, Display(), StopSwitch()
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


@pytest.mark.slow
def test_memory_is_flat(tmp_path: Path) -> None:
    grown = peak_kb(tmp_path / "many", MANY) - peak_kb(tmp_path / "few", 1_000)
    assert grown <= MOST_KB, f"{grown} KB more for {MANY} lines"
