"""The walk of one value in docs/architecture.md: the command enters every function that it names, in its order."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import groupby
from typing import Any

from support.sources import PACKAGE

SCRIPT = """
import atexit, os, sys, threading

package, entered = sys.argv[1] + os.sep, []
def note(frame, event, _):
    if event == "call" and frame.f_code.co_filename.startswith(package):
        entered.append(frame.f_code.co_filename[len(package):] + " " + frame.f_code.co_name)
def tell():
    sys.setprofile(None)
    print("\\n".join(entered), file=sys.stderr)
atexit.register(tell)
threading.setprofile(note)
sys.setprofile(note)
from cogcli.cli import main
main.run(sys.argv[2:])
"""


def test_the_walk_is_true_of_the_code(project: Any) -> None:
    page = (PACKAGE.parent / "docs/architecture.md").read_text(encoding="utf-8")
    command = page.partition("## A walk of one value")[2].partition("`cogcli ")[2].partition("`")[0]
    rows = re.findall(r"^\| (\d+)( ↑)? \| `([\w/]+\.py)` `(\w+)` \|", page, re.MULTILINE)
    assert len(rows) > 15
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(PACKAGE), *command.split(), "-q"],
        cwd=project.root, env=project.env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    entered = iter(done.stderr.splitlines())
    for _, _, file, function in rows:
        assert f"{file} {function}" in entered, f"{file} {function}: not entered, or not after the row before"
    rooms = [room for room, _ in groupby(file.partition("/")[0] for _, up, file, _ in rows if not up)]
    first = rooms[: rooms.index("episode") + 1]
    assert len(set(first)) == len(first), "a room is visited twice on the way"
