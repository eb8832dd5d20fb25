"""What a terminal shows while a run goes on, as files for 80 and 120 columns. `COGCLI_UPDATE_GOLDENS=1` writes them.

The functions of the runs wait for a file of their own, so that a frame stays until it was looked at.
"""

from __future__ import annotations

import os
import re
import sys
import time
from typing import Any

import pytest

if sys.platform == "win32":
    pytest.skip("no pseudo-terminals here", allow_module_level=True)
from support.terminal import Terminal
from test_goldens import FAKES, GOLDENS

pytestmark = [pytest.mark.slow, pytest.mark.sampled(8)]
PATIENCE = 60.0

WAITS = """
import time
from pathlib import Path

def wait(text: str) -> dict[str, object]:
    gate, end = Path(__file__).with_name(f"go-{text}"), time.monotonic() + 60
    while not gate.exists() and time.monotonic() < end:
        time.sleep(0.01)
    return {"text": text.upper()}
"""
CALL = "uses: demo.text.wait, input: {text: {$literal: %s}}, output: {text: %s}"


def begun(
    project: Any, steps: str, columns: int, *, rows: int = 24, go: str = "", more: str = ""
) -> Terminal:
    """A run on a terminal, whose functions with these texts go on at once."""
    project.services(WAITS)
    project.capability("demo.text.wait", "wait", extra=more)
    project.skill("demo.live", steps, outputs="{letters: {type: array}, word: {type: string}}")
    for text in go.split():
        project.write(f"go-{text}", "")
    project.env |= FAKES
    return Terminal(
        project, "run", "demo.live", "--trace-id", "trace-001", rows=rows, columns=columns
    )


def assert_frame(terminal: Terminal, name: str, columns: int, *marks: str) -> None:
    """The screen comes to be the golden one; `marks` stand on it, so that a golden is written from the right moment."""
    path, end, shown = GOLDENS / f"{name}.{columns}.txt", time.monotonic() + PATIENCE, ""
    if os.environ.get("COGCLI_UPDATE_GOLDENS"):
        for mark in marks:
            terminal.until(mark)
        path.write_text(frame(terminal), encoding="utf-8")
    golden = path.read_text(encoding="utf-8")
    assert all(mark in golden for mark in marks)
    while (shown := frame(terminal)) != golden and time.monotonic() < end:
        if terminal.process.closed or not terminal.draw():
            break
    assert shown == golden


def frame(terminal: Terminal) -> str:
    """The screen without its empty end; times of each machine become one, at the same width."""
    text = "\n".join(line.rstrip() for line in terminal.screen.display).rstrip() + "\n"
    text = re.sub(r"aborted in \S+", "aborted in a while", re.sub(r"~\d+s left", "~1s left", text))
    return re.sub(r" *\b\d+ms", lambda found: "1ms".rjust(len(found[0])), text)


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_steps_and_items_of_a_loop_that_run(project: Any, columns: int) -> None:
    steps = f"""
    - {{id: read, {CALL % ("read", "vars.read")}}}
    - id: each
      uses: demo.text.wait
      input: {{text: item}}
      output: {{text: outputs.letters}}
      config: {{foreach: {{items: "['a', 'b', 'c', 'd', 'e', 'f']", max_parallel: 2}}, depends_on: [read]}}
    - {{id: aside, {CALL % ("aside", "vars.aside")}, config: {{depends_on: [read]}}}}
    - {{id: after, uses: demo.text.wait, input: {{text: vars.aside}}, output: {{text: outputs.word}}}}
    """
    terminal = begun(project, steps, columns, go="read a b c")
    assert_frame(
        terminal,
        "live-running",
        columns,
        "✓ read",
        "● each",
        "3/6 done",
        "left",
        "● aside",
        "· after",
    )
    terminal.process.sendintr()
    terminal.until("stopping")
    project.write("go-aside", "")  # what ends in the time that is given is shown so
    terminal.until("✓ aside")
    for text in "de":
        project.write(f"go-{text}", "")
    terminal.finish()
    ended = ("stopping, up to 5s", "✓ aside", "aborted in", "next: cogcli rerun @last")
    if columns >= 80:  # a narrower one folds at figures that are each machine's own
        assert_frame(terminal, "live-stopped", columns, *ended)
    assert terminal.process.exitstatus == 130


@pytest.mark.parametrize("columns", [80, 120])
def test_a_run_that_is_too_tall(project: Any, columns: int) -> None:
    chain = "\n".join(f"    - {{id: s{n:02}, {CALL % (f's{n}', f'vars.s{n}')}}}" for n in range(20))
    terminal = begun(
        project, chain, columns, rows=12, go=" ".join(f"s{n}" for n in range(20) if n != 7)
    )
    assert_frame(terminal, "live-tall", columns, "7 of 20 done", "● s07")
    project.write("go-s7", "")
    terminal.finish()
    assert terminal.process.exitstatus == 0


@pytest.mark.parametrize("columns", [80, 120])
def test_a_question(project: Any, columns: int) -> None:
    terminal = begun(
        project,
        f"- {{id: send, {CALL % ('hello', 'outputs.word')}}}",
        columns,
        more="safety: {requires_confirmation: true}\n",
    )
    assert_frame(terminal, "live-question", columns, "Approve?", "decide later")
    terminal.process.send("d\r")
    terminal.finish()
    assert_frame(
        terminal, "live-decided-later", columns, "is saved and waits", "next: cogcli resume @last"
    )
    assert terminal.process.exitstatus == 5
