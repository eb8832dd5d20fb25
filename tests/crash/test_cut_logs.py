"""A log that ends after any of its events: what has ended in it stays ended, and is not called again.

Each log of a whole run is cut after its first event, its second, ..., as a kill right there leaves it, every call that
had begun having happened. Beside the flows that are killed: writes that wait for plan order, writes that do not because
an earlier step waits for a person, a race, items of which one fails, repeats, a failure beside running calls and a
nested run, and a run that a signal ended.

`COGCLI_LONG_TESTS=1` cuts after every event; else a sample.
"""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from crash_flows import COGCLI, FLOWS, MORE, Flow, Sandbox
from crash_invariants import CALLS, broken, key_of
from crash_points import Course, Range, differing, finished, wrong_with
from crash_verdicts import LONG, Tell
from support.checkpoints import vouch

pytestmark = pytest.mark.sampled(8)

DERIVED = ("state.json", "summary.json", "manifest.json")


def _tried(flow: Flow, places: range) -> range:
    """A sample of the places, of long logs a smaller one; all of them in a long run."""
    step = 10 if len(places) > 60 else 4
    return places if LONG else places[len(flow.name) % step :: step]


@pytest.mark.sampled(16)
@pytest.mark.parametrize("flow", [*FLOWS, *MORE], ids=lambda flow: flow.name)
def test_what_has_ended_stays_ended(shooting_range: Range, tell: Tell, flow: Flow) -> None:
    whole = shooting_range.sandbox(f"cut {flow.name}")
    done = (
        stopped(whole, flow) if flow.name == "stopped" else whole.command(*whole.asked(flow)).code
    )
    assert done == flow.exit_code
    finished(whole, flow, whole.command("ls", *whole.flags()))
    assert broken(whole, finished=True) == []
    lines = (whole.episodes[0] / "events.jsonl").read_bytes().splitlines(keepends=True)
    places = range(1, len(lines) + 1)
    wrong = [
        f"cut after event {place - 1}: {text}"
        for place in _tried(flow, places)
        for text in gone_on_with(shooting_range, whole, flow, lines[:place])
    ]
    tell(
        "a log cut after an event",
        flow.name,
        len(_tried(flow, places)),
        len(wrong),
    )
    assert wrong == []


def stopped(sandbox: Sandbox, flow: Flow) -> int:
    """End a run by two signals, while it waits for an answer. How it ended."""
    words = [COGCLI, *sandbox.asked(flow)]
    quiet = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
    }
    process = subprocess.Popen(words, cwd=sandbox.project, env=sandbox.environment, **quiet)  # type: ignore[call-overload]
    late = time.monotonic() + 30
    while "b" not in sandbox.ledger and time.monotonic() < late:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    code: int = process.wait(30)
    return code


def gone_on_with(
    shooting_range: Range, whole: Sandbox, flow: Flow, lines: list[bytes]
) -> list[str]:
    """What is wrong once somebody continued with the first lines of a log."""
    events: list[dict[str, Any]] = [json.loads(line) for line in lines]
    sandbox = shooting_range.sandbox(f"cut {flow.name} {len(lines)}")
    episode = sandbox.runs / whole.episodes[0].name
    _left_behind(whole.episodes[0], episode, lines, sandbox.environment["HOME"])
    if any(event["event_type"] == "memory.proposed" for event in events[:-1]):
        shutil.copytree(
            whole.root / "state", sandbox.root / "state"
        )  # it was stored before the next event
    if flow.name == "limited":
        shutil.copytree(whole.root / "state", sandbox.root / "state")
        _forget_later_calls(sandbox.root / "state/cogcli/limits.db", events)
    begun = {key_of(event) for event in events if _begins(event)}
    happened = [key for key in whole.ledger if key in begun]
    sandbox.environment["CRASH_SOON"] = "1"
    sandbox.ledger_file.write_text("".join(f'{{"key": "{key}"}}\n' for key in happened))
    found = [f"replay equals up to the cut: {text}" for text in differing(sandbox)]
    last = finished(sandbox, flow, sandbox.command("ls", *sandbox.flags()))
    found += broken(sandbox, finished=True)
    found += wrong_with(Course(sandbox, b"".join(lines), len(happened), last, None))
    if not found:
        sandbox.remove()
    return found


def _left_behind(whole: Path, episode: Path, lines: list[bytes], home: str) -> None:
    """An episode of the user with this home, as a kill after these lines leaves it."""
    shutil.copytree(whole, episode)
    (episode / "events.jsonl").write_bytes(b"".join(lines))
    (episode / "learn.jsonl").write_bytes(b"")
    for name in DERIVED:
        (episode / name).unlink(missing_ok=True)
    vouch(episode, home)


def _forget_later_calls(limits: Path, events: list[dict[str, Any]]) -> None:
    """Leave only the counted calls that these events begin."""
    begun = {event["step_id"] for event in events if event["event_type"] == "step.started"}
    with closing(sqlite3.connect(limits)) as store, store:
        for (step,) in store.execute("SELECT DISTINCT step_id FROM reservation").fetchall():
            if step not in begun:
                store.execute("DELETE FROM reservation WHERE step_id = ?", (step,))


def _begins(event: dict[str, Any]) -> bool:
    return event["event_type"] == "step.started" and event["payload"].get("capability") in CALLS


def test_a_run_that_a_signal_cut_off_ends_as_aborted_and_begins_nothing(
    shooting_range: Range,
) -> None:
    flow = MORE[-1]
    whole = shooting_range.sandbox("aborted")
    assert stopped(whole, flow) == 143
    lines = (whole.episodes[0] / "events.jsonl").read_bytes().splitlines(keepends=True)
    kinds = [json.loads(line)["event_type"] for line in lines]
    place = kinds.index("step.skipped") + 1
    assert kinds[place:] == ["run.terminated", "run.state_projection"]
    sandbox = shooting_range.sandbox("aborted again")
    home = sandbox.environment["HOME"]
    _left_behind(whole.episodes[0], sandbox.runs / whole.episodes[0].name, lines[:place], home)
    assert list(differing(sandbox)) == []
    assert sandbox.command("resume", "@last", *sandbox.flags()).code == 143
    assert sandbox.ledger == []
    summary = json.loads((sandbox.episodes[0] / "summary.json").read_bytes())
    assert summary["status"] == "aborted"
