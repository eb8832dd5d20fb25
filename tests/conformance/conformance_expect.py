"""Comparing what a case gave with what it expects: every difference is one line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from conformance_runs import Ran

from cogcli.app.state_document import project_state, read_stored_state
from cogcli.episode.verify.check import verify

Differences = Iterator[str]


def differences(expected: dict[str, Any], ran: Ran) -> list[str]:
    """Everything that is not as expected, and whatever is wrong with the episode."""
    found = [line for key, value in expected.items() for line in CHECKS[key](value, ran)]
    return [*found, *_sound(ran)]


def _sound(ran: Ran) -> Differences:
    """What holds for every case: no traceback, an episode that verifies and whose state is what its events project."""
    if "Traceback" in ran.stderr:
        yield f"a traceback: {ran.stderr}"
    if ran.exit_code != ran.envelope["exit_code"]:
        yield f"exit {ran.exit_code}, the envelope says {ran.envelope['exit_code']}"
    if ran.episode is None:
        return
    yield from (
        f"verify: {f.code} {f.message}" for f in verify(ran.episode) if f.severity == "error"
    )
    if read_stored_state(ran.episode) != project_state(ran.episode).to_bytes():
        yield "state.json is not what the events project"


def _same(what: str, found: Any, expected: Any) -> Differences:
    if found != expected or (found is True) is not (expected is True):
        yield f"{what}: found {found!r}, expected {expected!r}"


def _exit(expected: int, ran: Ran) -> Differences:
    yield from _same("exit", ran.exit_code, expected)
    if expected in (2, 3) and "run_id" not in ran.envelope and ran.episode is not None:
        yield "an episode was written"


def _code(expected: str, ran: Ran) -> Differences:
    yield from _same("error code", (ran.envelope["error"] or {}).get("code"), expected)


def _message(expected: Any, ran: Ran) -> Differences:
    message = (ran.envelope["error"] or {}).get("message", "")
    for part in [expected] if isinstance(expected, str) else expected:
        if part not in message:
            yield f"message: `{part}` is not in `{message}`"


def _problems(expected: list[str], ran: Ran) -> Differences:
    problems = ran.envelope.get("problems", [])
    yield from _same(
        "problems", sorted({p["code"] for p in problems if p["severity"] != "W"}), sorted(expected)
    )
    if ran.episode is not None:
        yield "an episode was written"


def _warnings(expected: list[str], ran: Ran) -> Differences:
    codes = {warning["code"] for warning in ran.envelope["warnings"]}
    yield from (f"warning {code} is missing" for code in expected if code not in codes)


def _state(expected: dict[str, Any], ran: Ran) -> Differences:
    for path, value in expected.items():
        yield from _same(path, _at(ran.state, path), value)


def _absent(expected: list[str], ran: Ran) -> Differences:
    for path in expected:
        if _at(ran.state, path) != ABSENT:
            yield f"{path}: found {_at(ran.state, path)!r}, expected nothing"


ABSENT = "(absent)"


def _at(value: Any, path: str) -> Any:
    """The value at a dotted path; the longest key that fits goes first, so that `vars.a.b` finds the key `a.b`."""
    if not path:
        return value
    if isinstance(value, list):
        head, _, rest = path.partition(".")
        return _at(value[int(head)], rest) if int(head) < len(value) else ABSENT
    if not isinstance(value, dict):
        return ABSENT
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        key = ".".join(parts[:end])
        if key in value:
            return _at(value[key], ".".join(parts[end:]))
    return ABSENT


def _steps(expected: dict[str, str], ran: Ran) -> Differences:
    """How steps ended; the reason, where one is expected, and always that of a skip."""
    for step, status in expected.items():
        closing = ran.closing(step)
        word = closing.get("step_status", "pending")
        if word == "skipped" or "(" in status:
            word = f"{word} ({closing.get('reason')})"
        yield from _same(f"step {step}", word, status)


def _reads(expected: dict[str, list[str]], ran: Ran) -> Differences:
    for step, reads in expected.items():
        yield from _same(f"reads of {step}", ran.closing(step).get("reads"), reads)


def _writes(expected: dict[str, list[str]], ran: Ran) -> Differences:
    for step, writes in expected.items():
        found = [write["target"] for write in ran.closing(step).get("writes", [])]
        yield from _same(f"writes of {step}", found, writes)


def _events(expected: list[str], ran: Ran) -> Differences:
    """Type and step of the events between the plan and the end of the run, `step.started a`."""
    outside = (
        "run.started",
        "plan.created",
        "run.terminated",
        "run.paused",
        "run.state_projection",
    )
    found = [
        f"{e['event_type']} {e['step_id']}" for e in ran.events if e["event_type"] not in outside
    ]
    yield from _same("events", found, expected)


def _calls(expected: dict[str, int], ran: Ran) -> Differences:
    """How many attempts each step or part of a step left intents for, repeats by their number."""
    for step, count in expected.items():
        kinds = ("step.started", "call.retried")
        found = [e for e in ran.events if e.get("step_id") == step and e["event_type"] in kinds]
        yield from _same(f"calls of {step}", len(found), count)


def _ledger(expected: list[str], ran: Ran) -> Differences:
    yield from _same("ledger", ran.ledger, expected)


def _bindings(expected: dict[str, Any], ran: Ran) -> Differences:
    """The bindings tried by a step, in order; not those passed over."""
    for step, names in expected.items():
        attempts = ran.closing(step).get("attempts", [])
        found = [attempt["binding_id"] for attempt in attempts if attempt["status"] != "skipped"]
        yield from _same(f"bindings of {step}", found, [names] if isinstance(names, str) else names)


def _seconds(expected: list[float], ran: Ran) -> Differences:
    """Bounds of the run's own wall time."""
    (end,) = [
        e
        for e in ran.events
        if e["event_type"] == "run.terminated" and e["run_id"] == ran.envelope["run_id"]
    ]
    took = end["metrics"]["duration_ms"] / 1000
    if not expected[0] <= took <= expected[1]:
        yield f"the run took {took} s, expected {expected[0]} to {expected[1]} s"


def _field(name: str) -> Callable[[Any, Ran], Differences]:
    return lambda expected, ran: _same(name, ran.envelope.get(name), expected)


CHECKS: dict[str, Callable[[Any, Ran], Differences]] = {
    "exit": _exit,
    "status": _field("status"),
    "code": _code,
    "message": _message,
    "problems": _problems,
    "warnings": _warnings,
    "outputs": _field("outputs"),
    "state": _state,
    "absent": _absent,
    "steps": _steps,
    "reads": _reads,
    "writes": _writes,
    "events": _events,
    "calls": _calls,
    "ledger": _ledger,
    "bindings": _bindings,
    "seconds": _seconds,
}
