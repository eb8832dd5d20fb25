"""One point of a flow: run it, let it die or fail there, look, go on with it to its end, look again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from crash_flows import FLOWS, Done, Flow, Sandbox, outputs_of, warmed
from crash_invariants import broken

ALLOWED = (0, 1, 3, 4, 5, 6)
"""How a command may end whose calls fail: never as a bug, never by a signal."""


class Point(NamedTuple):
    """Where something happens to a run. `at`: the launcher's count; `syscall`: strace's injection instead.

    `resumed`: it happens to the command that goes on with the run, which was killed halfway or waits.
    """

    flow: Flow
    at: int = 0
    mode: str = "kill"
    syscall: str = ""
    resumed: bool = False
    doubt: bool = False
    """Whether it was killed with an effect in doubt."""

    def __str__(self) -> str:
        leg = (" resumed" if self.resumed else "") + (" in doubt" if self.doubt else "")
        return f"{self.flow.name}{leg} {self.syscall or f'{self.mode}@{self.at}'}"


class Outcome(NamedTuple):
    """What a point showed. `reached`: whether there was such a call at all."""

    point: Point
    violations: list[str]
    reached: bool


class Range:
    """Where points are tried: a directory, a warm home, and what undisturbed runs gave."""

    def __init__(self, root: Path, *, package: Path | None = None) -> None:
        self.root = root
        self.package = package
        self.home = warmed(root / "home")
        self.counts: dict[tuple[str, bool], int] = {}
        self._halves: dict[tuple[str, bool], int] = {}
        self._outputs: dict[str, Any] = {}
        for flow in FLOWS:
            self._measure(flow)

    def _measure(self, flow: Flow) -> None:
        """Run a flow undisturbed."""
        count = self.root / "count"
        sandbox = self.sandbox(f"whole-{flow.name}")
        done = sandbox.launch(*sandbox.asked(flow), CRASH_COUNT=str(count))
        assert done.code == flow.exit_code, done
        self.counts[flow.name, False] = int(count.read_text())
        last = _finished(sandbox, flow, done)
        assert not broken(sandbox, finished=True), broken(sandbox, finished=True)
        self._outputs[flow.name] = outputs_of(last)
        sandbox.remove()

    def _count_resumed(self, flow: Flow) -> int:
        """How many calls it takes to go on with a flow from its half."""
        count, sandbox = self.root / "count", self.sandbox(f"half-{flow.name}")
        self._first_leg(sandbox, flow, doubt=False)
        sandbox.launch(*_going_on(sandbox, flow), CRASH_COUNT=str(count))
        sandbox.remove()
        return int(count.read_text())

    def _half(self, flow: Flow, *, doubt: bool) -> int:
        """A call in the middle where the run dies with an effect in doubt, or with none; 0 for a run that waits."""
        if flow.answers:
            return 0
        if (flow.name, doubt) not in self._halves:
            middle = self.counts[flow.name, False] // 2
            for at in range(middle, middle + 20):
                sandbox = self.sandbox(f"probe-{flow.name}")
                sandbox.launch(*sandbox.asked(flow), at=at)
                found = _in_doubt(sandbox)
                sandbox.remove()
                if found == doubt:
                    break
            self._halves[flow.name, doubt] = at
        return self._halves[flow.name, doubt]

    def _first_leg(self, sandbox: Sandbox, flow: Flow, *, doubt: bool) -> None:
        sandbox.launch(*sandbox.asked(flow), at=self._half(flow, doubt=doubt))

    def _run(self, sandbox: Sandbox, point: Point) -> Done:
        words = sandbox.asked(point.flow)
        if point.resumed:
            self._first_leg(sandbox, point.flow, doubt=point.doubt)
            words = _going_on(sandbox, point.flow)
        if point.syscall:
            return sandbox.strace(point.syscall, *words)
        return sandbox.launch(*words, at=point.at, mode=point.mode)

    def sandbox(self, name: str) -> Sandbox:
        """A fresh one, with the shared home."""
        sandbox = Sandbox(self.root / name.replace(" ", "-").replace(":", "-"), package=self.package)
        sandbox.environment["HOME"] = str(self.home)
        return sandbox

    def points(self, flow: Flow, mode: str = "kill", *, resumed: bool = False) -> list[Point]:
        """Every point of a flow, or of going on with it."""
        if (flow.name, resumed) not in self.counts:
            self.counts[flow.name, resumed] = self._count_resumed(flow)
        count = self.counts[flow.name, resumed]
        return [Point(flow, at, mode, resumed=resumed) for at in range(1, count + 1)]

    def tried(self, point: Point, *, resume: bool = True) -> Outcome:
        """Try a point; its directory stays only if something is wrong."""
        sandbox = self.sandbox(str(point))
        done = self._run(sandbox, point)
        violations = [f"after the run: {text}" for text in broken(sandbox)] + _ending(point, done)
        if resume and not violations:
            violations += self._resumed(sandbox, point, done)
        if not violations:
            sandbox.remove()
        return Outcome(point, violations, not point.syscall or _was_hit(point, done))

    def all(self, points: Iterable[Point], *, resume: bool = True) -> list[Outcome]:
        """Try points, a few at once."""
        with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
            return list(pool.map(lambda point: self.tried(point, resume=resume), points))

    def _resumed(self, sandbox: Sandbox, point: Point, done: Done) -> list[str]:
        if not _begun(sandbox):
            return []
        asked: list[str] = ["--in-doubt"] if point.doubt else []
        last = _finished(sandbox, point.flow, done, asked.append)
        found = [f"gone on with: {text}" for text in broken(sandbox, finished=True)]
        if (
            "--in-doubt" not in asked
            and not _failed_itself(point)
            and _differs(self._outputs[point.flow.name], last)
        ):
            found.append(f"outputs differ: {last.out[:300]}")
        return found + _sealed_stays(
            sandbox, replays="--in-doubt" not in asked and not _ended_by_disk(sandbox)
        )


def _going_on(sandbox: Sandbox, flow: Flow) -> list[str]:
    """Going on with a run that was killed halfway, or waits."""
    return ["resume", "@last", *(flow.answers or ("--in-doubt", "skip")), *sandbox.flags()]


def _in_doubt(sandbox: Sandbox) -> bool:
    """Whether an intent has no end."""
    open_steps: set[str] = set()
    for episode in sandbox.episodes:
        for line in (episode / "events.jsonl").read_bytes().split(b"\n")[:-1]:
            event = json.loads(line)
            if event["event_type"] == "step.started":
                open_steps.add(event["step_id"])
            elif event["payload"].get("step_status"):
                open_steps.discard(event["step_id"])
    return any(step.rpartition("/")[2] != "inner" for step in open_steps)


def _ending(point: Point, done: Done) -> list[str]:
    if point.mode == "kill" and "error=" not in point.syscall:
        return []
    # Answers on the screen are writes, too: Python itself ends with 120 where the last of them fails.
    allowed = (*ALLOWED, 120) if point.syscall.startswith("write:error") else ALLOWED
    found = [] if done.code in allowed else [f"ended with {done.code}: {done.err[-300:]}"]
    return found + (["a traceback"] if "Traceback" in done.err else [])


def _was_hit(point: Point, done: Done) -> bool:
    return "KILL" not in point.syscall or done.code in (-9, 137)


def _failed_itself(point: Point) -> bool:
    """Whether the run may have ended by the failing call: then it has no outputs to compare."""
    return point.mode != "kill" or "error=" in point.syscall


def _begun(sandbox: Sandbox) -> bool:
    """Whether there is something to go on with: an episode with a committed event."""
    logs = [episode / "events.jsonl" for episode in sandbox.episodes]
    return any(log.exists() and b"\n" in log.read_bytes() for log in logs)


def _finished(sandbox: Sandbox, flow: Flow, done: Done, told: Callable[[str], Any] = str) -> Done:
    """Go on with an episode until it is sealed, answering what it asks."""
    last, words = done, ["resume", "@last"]
    for _ in range(6):
        if (sandbox.episodes[0] / "manifest.json").exists():
            break
        if _ended_by_disk(sandbox):
            words = ["verify", "@last", "--repair"]
        last = sandbox.command(*words, *sandbox.flags())
        code = (json.loads(last.out).get("error") or {}).get("code") if last.out else None
        answer = (
            ("--in-doubt", "skip") if code == "effect.in-doubt" else flow.answers if last.code == 5 else ()
        )
        for word in answer:
            told(word)
        words = ["resume", "@last", *answer]
    return last


def _differs(expected: Any, last: Done) -> bool:
    """A run that was finished by its first process or repaired shows its outputs in its summary only."""
    return bool(last.out) and '"command":"verify"' not in last.out and outputs_of(last) != expected


def _sealed_stays(sandbox: Sandbox, *, replays: bool) -> list[str]:
    """Resuming a finished run changes no byte; its replay tells the same story."""
    episode = sandbox.episodes[0]
    if not (episode / "manifest.json").exists():
        return []
    before = {path: path.read_bytes() for path in episode.rglob("*") if path.is_file()}
    found = []
    again = sandbox.command("resume", "@last", *sandbox.flags())
    if again.code != 2:
        found.append(f"a finished run was resumed: {again.code} {again.err[-200:]}")
    replayed = sandbox.command("replay", "@last", *sandbox.flags()) if replays else None
    if replayed and replayed.code != 0:
        found.append(f"replay: {replayed.code} {replayed.out[:300]}")
    if before != {path: path.read_bytes() for path in episode.rglob("*") if path.is_file()}:
        found.append("a finished episode was changed")
    return found


def _ended_by_disk(sandbox: Sandbox) -> bool:
    """Whether the run ended where its log could not: nothing is gone on with, and no replay can tell it."""
    lines = (sandbox.episodes[0] / "events.jsonl").read_bytes().split(b"\n")[:-1]
    ends = [event for line in lines if (event := json.loads(line))["event_type"] == "run.terminated"]
    return any(event["payload"]["status_reason"] == "env.disk" for event in ends)


def table(title: str, outcomes: Iterable[Outcome]) -> str:
    """Points tried and violations, by flow."""
    rows = [f"{title:<34} {'points':>7} {'violations':>11}"]
    outcomes = [outcome for outcome in outcomes if outcome.reached]
    for flow in FLOWS:
        own = [outcome for outcome in outcomes if outcome.point.flow == flow]
        if own:
            rows.append(f"  {flow.name:<32} {len(own):>7} {sum(bool(one.violations) for one in own):>11}")
    for outcome in outcomes:
        rows += [f"    {outcome.point}: {text}" for text in outcome.violations]
    return "\n".join(rows)
