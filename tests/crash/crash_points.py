"""One point of a flow: run it, let it die or fail there, look, continue with it to its end, look again."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

from crash_flows import REGISTRY, Done, Flow, Sandbox, outputs_of, warmed
from crash_invariants import CLOSINGS, ONCE, Scene, broken, key_of
from crash_launcher import concerns
from crash_service import Service
from crash_zygote import INSTALLED, Zygotes
from support.project import INSTALLED_ONLY

ALLOWED = (0, 1, 3, 4, 5, 6)
"""How a command may end whose calls fail: never as a bug, never by a signal."""


class Point(NamedTuple):
    """Where something happens to a run. `at`: the launcher's count; `syscall`: strace's injection instead.

    `resumed`: it happens to the command that continues with the run, which was killed halfway or waits.
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
    """What a point showed. `reached`: whether there was such a call at all; `plain`: whether the fast path of plain
    steps made it.
    """

    point: Point
    violations: list[str]
    reached: bool
    plain: bool = False


class Range:
    """Where points are tried: a directory, a warm home, and what undisturbed runs gave."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.zygotes = INSTALLED
        self.service = Service()
        self.registry = self.service.registry(REGISTRY, root / "registry")
        self.home = warmed(root / "home", self.registry, self.service)
        self._calls: dict[tuple[str, str, bool, bool], list[str]] = {}
        self._halves: dict[tuple[str, bool], int] = {}
        self._outputs: dict[str, Any] = {}

    def of(self, root: Path, zygotes: Zygotes) -> Range:
        """The same range for another package: what undisturbed runs give is known from this one."""
        other = copy.copy(self)
        other.root, other.zygotes = root, zygotes
        return other

    def outputs(self, flow: Flow) -> Any:
        """What an undisturbed run answers."""
        if flow.name not in self._outputs:
            self._measure(flow)
        return self._outputs[flow.name]

    def calls(
        self, flow: Flow, mode: str = "kill", *, resumed: bool = False, doubt: bool = False
    ) -> list[str]:
        """The names of all calls of a flow, or of continuing with it from its half."""
        counting = "EMFILE" if mode.startswith("EMFILE") else "kill"
        leg = (flow.name, counting, resumed, doubt)
        if leg not in self._calls:
            sandbox = self.sandbox("calls " + " ".join(map(str, leg)))
            names, words = sandbox.root / "names", sandbox.asked(flow)
            if resumed:
                self._first_leg(sandbox, flow, doubt=doubt)
                words = _going_on(sandbox, flow)
            sandbox.launch(*words, mode=counting, CRASH_NAMES=str(names))
            self._calls[leg] = names.read_text().split()
            sandbox.remove()
        return self._calls[leg]

    def _measure(self, flow: Flow) -> None:
        """Run a flow undisturbed."""
        sandbox = self.sandbox(f"whole {flow.name}")
        done = sandbox.launch(*sandbox.asked(flow))
        assert done.code == flow.exit_code, done
        last = finished(sandbox, flow, done)
        assert not broken(sandbox, finished=True), broken(sandbox, finished=True)
        self._outputs[flow.name] = outputs_of(last)
        sandbox.remove()

    def _half(self, flow: Flow, *, doubt: bool) -> int:
        """A call in the middle where the run dies with an effect in doubt, or with none; 0 for a run that waits."""
        if flow.answers:
            return 0
        if (flow.name, doubt) not in self._halves:
            middle = len(self.calls(flow)) // 2
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
        place = self.root / name.replace(" ", "-").replace(":", "-")
        sandbox = Sandbox(place, self.registry, self.service, self.zygotes)
        sandbox.environment["HOME"] = str(self.home)
        return sandbox

    def points(
        self, flow: Flow, mode: str = "kill", *, resumed: bool = False, doubt: bool = False
    ) -> list[Point]:
        """Every point of a flow, or of continuing with it, where something of this kind can happen."""
        calls = enumerate(self.calls(flow, mode, resumed=resumed, doubt=doubt), 1)
        return [
            Point(flow, at, mode, resumed=resumed, doubt=doubt)
            for at, name in calls
            if concerns(mode, name)
        ]

    def tried(self, point: Point, *, resume: bool = True) -> Outcome:
        """Try a point; its directory stays only if something is wrong."""
        return self._judged(point, *self._ended(point), resume=resume)

    def _ended(self, point: Point) -> tuple[Sandbox, Done]:
        sandbox = self.sandbox(str(point))
        return sandbox, self._run(sandbox, point)

    def _judged(self, point: Point, sandbox: Sandbox, done: Done, *, resume: bool) -> Outcome:
        violations = [f"after the run: {text}" for text in broken(sandbox)] + _ending(point, done)
        if resume and not violations:
            violations += self._resumed(sandbox, point, done)
        if not violations:
            sandbox.remove()
        reached = done.hit if not point.syscall else _was_hit(point, done)
        return Outcome(point, violations, reached, done.plain)

    def all(self, points: Iterable[Point], *, resume: bool = True) -> list[Outcome]:
        """Try points: their runs a few at once, and what is looked at then in this process, one after another."""
        points = list(points)
        for flow in {point.flow for point in points}:
            self.outputs(flow)
        with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
            if INSTALLED_ONLY:
                return list(pool.map(lambda point: self.tried(point, resume=resume), points))
            ended = list(pool.map(self._ended, points))
        return [
            self._judged(point, *end, resume=resume)
            for point, end in zip(points, ended, strict=True)
        ]

    def _resumed(self, sandbox: Sandbox, point: Point, done: Done) -> list[str]:
        if not _begun(sandbox):
            return []
        acknowledged, happened = _committed(sandbox), len(sandbox.ledger)
        found = [f"replay equals up to where the run was: {text}" for text in differing(sandbox)]
        last = finished(sandbox, point.flow, done)
        found += [f"continued with: {text}" for text in broken(sandbox, finished=True)]
        otherwise = _left_out(sandbox) or _failed_itself(point)
        outputs = None if otherwise else self.outputs(point.flow)
        failed = point.mode.rstrip("+") not in ("kill", "torn", "short")
        return found + wrong_with(Course(sandbox, acknowledged, happened, last, outputs, failed))


class Course(NamedTuple):
    """A run that was continued with to its end: what was acknowledged and how much had happened before, how the last
    command ended, and what an undisturbed run answers, None where this one may answer otherwise."""

    sandbox: Sandbox
    acknowledged: bytes
    happened: int
    last: Done
    outputs: Any
    failed: bool = False
    """Whether a call failed: then the folder of a store may not have been made. What was proposed is in the log."""


def _nothing_missing(course: Course) -> Iterator[str]:
    log = (course.sandbox.episodes[0] / "events.jsonl").read_bytes()
    if not log.startswith(course.acknowledged):
        yield f"{len(course.acknowledged)} bytes were committed, and are not there any more"


def _nothing_again(course: Course) -> Iterator[str]:
    events = map(json.loads, course.acknowledged.splitlines())
    closed = {key_of(event) for event in events if event["event_type"] in CLOSINGS}
    for key in course.sandbox.ledger[course.happened :]:
        if key in closed:
            yield f"`{key}` was called again"


def _same_outputs(course: Course) -> Iterator[str]:
    if course.outputs is not None and _differs(course.outputs, course.last):
        yield course.last.out[:300]


def _sealed_stays(course: Course) -> Iterator[str]:
    before = _bytes_of(course.sandbox)
    again = course.sandbox.command("resume", "@last", *course.sandbox.flags())
    if again.code != 2:
        yield f"exit {again.code}: {again.err[-200:]}"
    if before != _bytes_of(course.sandbox):
        yield "bytes changed"


def _replay_equals(course: Course) -> Iterator[str]:
    yield from differing(course.sandbox)


def differing(sandbox: Sandbox) -> Iterator[str]:
    """How a replay of what lies there differs, be it finished or not."""
    replayed = sandbox.command("replay", "@last", *sandbox.flags())
    if replayed.code:
        yield f"exit {replayed.code}: {replayed.out[:300]}"


def _not_again_unasked(course: Course) -> Iterator[str]:
    """The last look: whoever runs it again without a word makes no effect again that must not happen twice."""
    sandbox = course.sandbox
    scene = Scene(sandbox.episodes[0], [], finished=False)
    once = {key_of(event) for event in scene.intents if event["payload"]["capability"] in ONCE}
    before = len(sandbox.ledger)
    done = sandbox.command("rerun", sandbox.episodes[0].name, *sandbox.flags())
    for key in sandbox.ledger[before:]:
        if key in once:
            yield f"`{key}` was made again by a rerun that ended with {done.code}"


def _stored_once(course: Course) -> Iterator[str]:
    proposed = [
        each
        for event in _events(course.sandbox)
        for each in event["payload"].get("proposals") or ()
    ]
    named = sorted(
        f"{each['candidate']['entity']} {each['candidate']['predicate']}" for each in proposed
    )
    stored = course.sandbox.remembered
    if named != stored and not (course.failed and not stored):
        yield f"proposed: {named}, stored: {stored}"


def _counted_once(course: Course) -> Iterator[str]:
    """A counter holds each call that was made, once; what did not leave is not held."""
    sandbox = course.sandbox
    if course.failed or not sandbox.reserved:
        return
    made = {each["step_id"] for each in _events(sandbox) if each["event_type"] == "step.started"}
    if sandbox.reserved != [(step, 1) for step in sorted(made)]:
        yield f"made: {sorted(made)}, counted: {sandbox.reserved}"


COURSE: Final[dict[str, Callable[[Course], Iterator[str]]]] = {
    "nothing acknowledged is missing": _nothing_missing,
    "a limit counts each call once": _counted_once,
    "nothing that has ended happens again": _nothing_again,
    "outputs equal those of an undisturbed run": _same_outputs,
    "resuming a finished run changes no byte": _sealed_stays,
    "replay equals": _replay_equals,
    "a rerun makes no effect again unasked": _not_again_unasked,
    "what an agent proposed is stored, each once": _stored_once,
}


def wrong_with(course: Course) -> list[str]:
    """What a course shows that must not be."""
    return [f"{name}: {what}" for name, check in COURSE.items() for what in check(course)]


def _committed(sandbox: Sandbox) -> bytes:
    """The lines of a log whose writes returned; one that is not JSON, which no write of ours leaves, is not."""
    data = (sandbox.episodes[0] / "events.jsonl").read_bytes()
    return data[: data.rindex(b"\n") + 1]


def _bytes_of(sandbox: Sandbox) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sandbox.episodes[0].rglob("*") if path.is_file()}


def _going_on(sandbox: Sandbox, flow: Flow) -> list[str]:
    """Going on with a run that was killed halfway, or waits."""
    return ["resume", "@last", *(flow.answers or _skipping(_doubts(sandbox))), *sandbox.flags()]


def _events(sandbox: Sandbox) -> list[dict[str, Any]]:
    return [event for path in sandbox.episodes for event in Scene(path, [], finished=False).events]


def _skipping(steps: list[str]) -> list[str]:
    """How a person leaves out what is in doubt: one word is for one call only."""
    words = [f"{step}=skip" for step in steps] if len(steps) > 1 else ["skip"]
    return [part for word in words for part in ("--in-doubt", word)]


def _doubts(sandbox: Sandbox) -> list[str]:
    """The calls that may have happened and must not happen twice, as far as nobody has decided about them."""
    doubts: dict[str, None] = {}
    for event in _events(sandbox):
        payload, step = event["payload"], event.get("step_id") or ""
        if event["event_type"] == "step.started" and payload.get("side_effects") == "effect":
            doubts[step] = None
        elif event["event_type"] in (*CLOSINGS, "step.answered", "policy.decided"):
            doubts.pop(step, None)
        elif event["event_type"] == "call.retried" and payload["reason"] == "resumed":
            doubts[step] = None
    return list(doubts)


def _in_doubt(sandbox: Sandbox) -> bool:
    """Whether an intent has no end."""
    open_steps: set[str] = set()
    for event in _events(sandbox):
        if event["event_type"] == "step.started":
            open_steps.add(event["step_id"])
        elif event["payload"].get("step_status"):
            open_steps.discard(event["step_id"])
    return any(step.rpartition("/")[2] != "inner" for step in open_steps)


def _left_out(sandbox: Sandbox) -> bool:
    """Whether a person left out what was in doubt."""
    return any(event["payload"].get("rule") == "effect.in-doubt" for event in _events(sandbox))


def _ending(point: Point, done: Done) -> list[str]:
    if point.mode in ("kill", "torn") and "error=" not in point.syscall:
        return []
    # Answers on the screen are writes, too: Python itself ends with 120 where the last of them fails.
    allowed = (*ALLOWED, 120) if point.syscall.startswith("write:error") else ALLOWED
    found = [] if done.code in allowed else [f"ended with {done.code}: {done.err[-300:]}"]
    return found + (["a traceback"] if "Traceback" in done.err else [])


def _was_hit(point: Point, done: Done) -> bool:
    return "KILL" not in point.syscall or done.code in (-9, 137)


def _failed_itself(point: Point) -> bool:
    """Whether the run may have ended by the failing call: then it has no outputs to compare."""
    return point.mode.rstrip("+") not in ("kill", "torn", "short") or "error=" in point.syscall


def _begun(sandbox: Sandbox) -> bool:
    """Whether there is something to continue with: an episode with a committed event."""
    logs = [episode / "events.jsonl" for episode in sandbox.episodes]
    return any(log.exists() and b"\n" in log.read_bytes() for log in logs)


def finished(sandbox: Sandbox, flow: Flow, done: Done) -> Done:
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
            _skipping(_doubts(sandbox))
            if code == "effect.in-doubt"
            else _answers(sandbox, flow)
            if last.code == 5
            else ()
        )
        words = ["resume", "@last", *answer]
    return last


def _answers(sandbox: Sandbox, flow: Flow) -> tuple[str, ...]:
    """How a person says yes to what waits: of an agent's run to the gate that asked last."""
    asked = [e["payload"] for e in _events(sandbox) if e["event_type"] == "approval.requested"]
    if not flow.request or not asked:
        return flow.answers
    return ("--approve", asked[-1]["gate"], "--by", "ann:finance")


def _differs(expected: Any, last: Done) -> bool:
    """A run that was finished by its first process or repaired shows its outputs in its summary only."""
    return bool(last.out) and '"command":"verify"' not in last.out and outputs_of(last) != expected


def _ended_by_disk(sandbox: Sandbox) -> bool:
    """Whether the run ended where its log could not: nothing is continued with."""
    ends = [event for event in _events(sandbox) if event["event_type"] == "run.terminated"]
    return any(event["payload"]["status_reason"] == "env.disk" for event in ends)
