"""What must hold after any kill and any failing call (the durability promise), checked without the code under test
where that is possible: lines, chain and ledger are read here by themselves."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crash_flows import SECRET, Sandbox

from cogcli.core.errors import CogcliError
from cogcli.episode.verify import verify

CALLS = ("crash.effect", "crash.again", "crash.large", "crash.gated", "crash.approved")
ONCE = ("crash.effect", "crash.large", "crash.gated", "crash.approved")
LEFT = (".ballast", ".tmp-")


def broken(sandbox: Sandbox, *, finished: bool = False) -> list[str]:
    """Every invariant that does not hold. `finished`: the run was gone on with to its end."""
    found = [f"outside the episode: {name}" for name in sorted(sandbox.files())]
    found += [f"still alive: {process}" for process in _alive(sandbox)]
    if len(sandbox.episodes) > 1:
        found.append(f"{len(sandbox.episodes)} episodes")
    for episode in sandbox.episodes:
        found += _in_episode(episode, sandbox, finished=finished)
    if not sandbox.episodes and sandbox.ledger:
        found.append("effects without an episode")
    return found


def _in_episode(episode: Path, sandbox: Sandbox, *, finished: bool) -> Iterator[str]:
    names = {path.name for path in episode.iterdir()}
    if "events.jsonl" not in names:
        if names or sandbox.ledger:
            yield f"no log, but {sorted(names)} and effects {sandbox.ledger}"
        return
    events: list[dict[str, Any]] = []
    yield from _lines(episode, events)
    yield from _effects(events, sandbox.ledger)
    yield from _documents(names, events, finished=finished)
    yield from _verified(episode, finished=finished)
    yield from _files(episode, finished=finished)


def _lines(episode: Path, events: list[dict[str, Any]]) -> Iterator[str]:
    """Every line but possibly the last parses; sequence and chain hold."""
    head = "sha256:" + hashlib.sha256(f"cogcli/events/1:{episode.name}".encode()).hexdigest()
    *lines, _ = (episode / "events.jsonl").read_bytes().split(b"\n")
    for number, line in enumerate(lines):
        try:
            event = json.loads(line)
        except ValueError:
            if number < len(lines) - 1:
                yield f"line {number + 1} does not parse"
            return
        if (event["seq"], event["prev"]) != (number, head):
            yield f"line {number + 1} breaks the chain"
        head = "sha256:" + hashlib.sha256(line).hexdigest()
        events.append(event)


def _effects(events: list[dict[str, Any]], ledger: list[str]) -> Iterator[str]:
    """No effect without its intent, no result without its effect, nothing twice that must not be."""
    intents, results, once = set(), set(), set()
    for event in events:
        payload = event["payload"]
        if event["event_type"] == "step.started" and payload.get("capability") in CALLS:
            intents.add(_key(event))
            if payload["capability"] in ONCE:
                once.add(_key(event))
        if event["event_type"] in ("step.completed", "step.answered") and _called(payload):
            results.add(_key(event))
    yield from (f"effect `{key}` without an intent" for key in set(ledger) - intents)
    yield from (f"result of `{key}` without an effect" for key in results - set(ledger))
    for key, count in Counter(ledger).items():
        if key in once and count > 1:
            yield f"effect `{key}` {count} times"


def _key(event: dict[str, Any]) -> str:
    """The steps of the flows use their own name as the key of their effect."""
    step: str = event["step_id"]
    return step.rpartition("/")[2]


def _called(payload: dict[str, Any]) -> bool:
    return payload.get("capability") in CALLS or ("output" in payload and "uses" not in payload)


def _documents(names: set[str], events: list[dict[str, Any]], *, finished: bool) -> Iterator[str]:
    kinds = [event["event_type"] for event in events]
    ended = Counter(event["run_id"] for event in events if event["phase"] == "terminate")
    yield from (f"run {run} ended {count} times" for run, count in ended.items() if count > 1)
    root_ended = bool(events) and events[0]["run_id"] in ended
    if "state.json" in names and "run.state_projection" not in kinds:
        yield "a state document that no event tells of"
    for name in ("summary.json", "manifest.json"):
        if name in names and not root_ended:
            yield f"{name} before the end"
    if finished and not (root_ended and "manifest.json" in names):
        yield "gone on with, but not finished and sealed"


def _verified(episode: Path, *, finished: bool) -> Iterator[str]:
    try:
        findings = verify(episode)
    except CogcliError as error:
        yield f"verify: {error.code}: {error.message}"
        return
    for finding in findings:
        if finding.severity == "error" or (finished and finding.code not in ("signature.none",)):
            yield f"verify: {finding.file}:{finding.line}: {finding.code}: {finding.message}"


def _files(episode: Path, *, finished: bool) -> Iterator[str]:
    for path in episode.rglob("*"):
        if finished and path.name.startswith(LEFT):
            yield f"left behind: {path.name}"
        if path.is_file() and SECRET.encode() in path.read_bytes():
            yield f"a secret in {path.name}"
    with open(episode / "events.jsonl", "rb") as log:
        try:
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield "the lock is held"


def _alive(sandbox: Sandbox) -> Iterator[str]:
    """Processes that work in the sandbox."""
    place = str(sandbox.project)
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                if os.readlink(f"/proc/{entry.name}/cwd") == place:
                    yield Path(f"/proc/{entry.name}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
