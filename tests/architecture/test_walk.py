"""The walk of one value in docs/architecture.md: the command enters every function that it names, in its order."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest
from support.sources import PACKAGE

ROW = re.compile(r"^\| (\d+)( ↑)? \| `([\w/]+\.py)` `(\w+)` \|", re.MULTILINE)
PAGE = (PACKAGE.parent / "docs/architecture.md").read_text(encoding="utf-8")
ROWS = [(up, f"{file} {function}") for _, up, file, function in ROW.findall(PAGE)]
SCRIPT = """
import atexit, os, sys, threading

package, entered, visits = sys.argv[1] + os.sep, [], {}
def name_of(code):
    if code.co_filename.startswith(package):
        return code.co_filename[len(package):] + " " + code.co_name
def stack_of(frame):
    rooms, thread = [], threading.get_ident()
    while frame is not None and (not rooms or rooms[-1][1].f_code.co_name != "run_skill"):
        name = name_of(frame.f_code)
        room = name and name.partition("/")[0]
        if room and (not rooms or rooms[-1][0] != room):
            rooms.append((room, frame))
        elif room:
            rooms[-1] = (room, frame)
        frame = frame.f_back
    numbers = [visits.setdefault((room, held), len(visits)) for room, held in rooms]
    return [str(thread), *(f"{room}#{number}" for (room, _), number in zip(rooms[::-1], numbers[::-1]))]
def note(frame, event, _):
    name = name_of(frame.f_code) if event == "call" else None
    if name:
        entered.append(" ".join([name, *(stack_of(frame) if name in wanted else ())]))
def report():
    sys.setprofile(None)
    print("\\n".join(entered), file=sys.stderr)
wanted = set(sys.argv[2].split(","))
atexit.register(report)
threading.setprofile(note)
sys.setprofile(note)
from cogcli.cli import main
main.run(sys.argv[3:])
"""


@pytest.fixture
def entered(project: Any) -> list[list[str]]:
    """The functions that the command of the page enters, in order: file, name. For one of the page also its thread and
    the rooms on the stack, from the command down, each with the number of the visit."""
    command = PAGE.partition("## A walk of one value")[2].partition("`cogcli ")[2].partition("`")[0]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(PACKAGE), ",".join(name for _, name in ROWS), *command.split(), "-q"],
        cwd=project.root, env=project.env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return [line.split() for line in done.stderr.splitlines()]


def test_the_walk_is_true_of_the_code(entered: list[list[str]]) -> None:
    assert len(ROWS) > 15
    names = (" ".join(words[:2]) for words in entered)
    for _, name in ROWS:
        assert name in names, f"{name}: not entered, or not after the row before"


def test_no_room_is_entered_twice_on_the_walk(entered: list[list[str]]) -> None:
    stacks = {
        name: next(words[2:] for words in entered if " ".join(words[:2]) == name)
        for _, name in ROWS
    }
    for name, (_, *stack) in stacks.items():
        rooms = [word.partition("#")[0] for word in stack]
        assert len(set(rooms)) == len(rooms), (
            f"{name}: a room called itself through another: {stack}"
        )
    visits: dict[tuple[str, str], str] = {}
    for up, name in ROWS:
        thread, *stack = stacks[name]
        called_on_the_way_back = up and stack[-1].startswith(("state#", "episode#"))
        for word in stack[:-1] if called_on_the_way_back else stack:
            room = word.partition("#")[0]
            first = visits.setdefault((thread, room), word)
            assert word == first, f"{name}: {room} had returned, and is entered again"
