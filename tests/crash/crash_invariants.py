"""What must hold after any kill and any failing call: the durability promise, each sentence beside the code that checks
it. Lines, chain, hashes and ledger are read here, without the code under test.

`INVARIANTS` look at an episode as it lies there. Those over the course of a run (nothing acknowledged is missing,
nothing that has ended happens again, outputs equal those of an undisturbed run, resuming a finished run changes no
byte, replay equals) are in `crash_points.COURSE`.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from crash_flows import Sandbox
from crash_service import SECRET

from cogcli.base.canonical import digest_of
from cogcli.base.errors import CogcliError
from cogcli.episode.layout import CHECKPOINT
from cogcli.episode.log_reader import EventLog
from cogcli.episode.projection import project_bytes
from cogcli.episode.verify.check import verify
from cogcli.state.execution import ExecutionState
from cogcli.state.reducer import apply, initial_state

Event = dict[str, Any]
ONCE: Final = (
    "crash.effect",
    "crash.posted",
    "crash.large",
    "crash.gated",
    "crash.approved",
    "crash.fails",
)
"""Capabilities whose effect must not happen twice."""
CALLS: Final = (
    *ONCE,
    "crash.again",
    "crash.flaky",
    "crash.read",
    "crash.plain",
    "crash.slow",
    "crash.fast",
)
TEMPORARY: Final = (".ballast", ".tmp-")
CLOSINGS: Final = ("step.completed", "step.failed", "step.skipped", "step.degraded", "step.vetoed")


class Scene:
    """An episode, and what the service outside says. `finished`: the run was continued with to its end. `secrets`: what
    must not be in it."""

    def __init__(
        self, episode: Path, ledger: list[str], *, finished: bool, secrets: Sequence[str] = ()
    ) -> None:
        self.episode = episode
        self.ledger = ledger
        self.finished = finished
        self.secrets = [secret.encode() for secret in secrets]
        self.names = {path.name for path in episode.iterdir()}
        self.lines = (episode / "events.jsonl").read_bytes().split(b"\n")[:-1]

    @cached_property
    def events(self) -> list[Event]:
        """The events of all lines but a last one that is not JSON."""
        found = []
        for line in self.lines:
            try:
                found.append(json.loads(line))
            except ValueError:
                break
        return found

    def of(self, *kinds: str) -> list[Event]:
        """The events of some types."""
        return [event for event in self.events if event["event_type"] in kinds]

    @property
    def intents(self) -> list[Event]:
        """The intents of calls of the service outside."""
        return [
            event
            for event in self.of("step.started")
            if event["payload"].get("capability") in CALLS
        ]

    @property
    def ends(self) -> dict[str, int]:
        """How often each run ended."""
        return Counter(event["run_id"] for event in self.of("run.terminated"))

    @property
    def ended(self) -> bool:
        """Whether the root run did."""
        return bool(self.events) and self.events[0]["run_id"] in self.ends

    @property
    def ended_well(self) -> bool:
        """Whether the last run to end, the root, did without an error."""
        return any(event["payload"]["status"] == "ok" for event in self.of("run.terminated")[-1:])

    @property
    def ended_by_disk(self) -> bool:
        """Whether the run ended where its log could not go on."""
        return any(
            event["payload"]["status_reason"] == "env.disk" for event in self.of("run.terminated")
        )


def key_of(event: Event) -> str:
    """The steps of the flows use their own name as the key of their effect."""
    step: str = event["step_id"]
    return step.rpartition("/")[2]


def _chain(scene: Scene) -> Iterator[str]:
    head = "sha256:" + hashlib.sha256(f"cogcli/events/1:{scene.episode.name}".encode()).hexdigest()
    if len(scene.events) < len(scene.lines) - 1:
        yield f"line {len(scene.events) + 1} does not parse"
    for number, event in enumerate(scene.events):
        if (event["seq"], event["prev"]) != (number, head):
            yield f"line {number + 1} breaks the chain"
        head = "sha256:" + hashlib.sha256(scene.lines[number]).hexdigest()


def _intent_before_effect(scene: Scene) -> Iterator[str]:
    begun = {key_of(event) for event in scene.intents}
    yield from (f"effect `{key}` without an intent" for key in scene.ledger if key not in begun)


def _result_after_effect(scene: Scene) -> Iterator[str]:
    for event in scene.of("step.completed", "step.answered"):
        payload = event["payload"]
        is_loop = payload.get("attempts") == []
        called = (payload.get("capability") in CALLS and not is_loop) or (
            "output" in payload and "uses" not in payload
        )
        if called and key_of(event) not in scene.ledger:
            yield f"result of `{key_of(event)}` without an effect"


def _once(scene: Scene) -> Iterator[str]:
    once = {key_of(event) for event in scene.intents if event["payload"]["capability"] in ONCE}
    for key, count in Counter(scene.ledger).items():
        if key in once and count > 1:
            yield f"effect `{key}` {count} times"


def _result_or_doubt(scene: Scene) -> Iterator[str]:
    """Once a run is finished well a step has a closing event; in one that failed beside it an effect may stay in doubt.
    A closing event without an answer: cut off where a repeat is harmless, or a person decided."""
    if not scene.finished or scene.ended_by_disk:
        return
    closings = {(event["run_id"], event["step_id"]): event for event in scene.of(*CLOSINGS)}
    decided = {(event["run_id"], event["step_id"]) for event in scene.of("policy.decided")}
    for event in scene.intents:
        place = (event["run_id"], event["step_id"])
        closing = closings.get(place)
        if closing is None and (scene.ended_well or event["payload"]["side_effects"] != "effect"):
            yield f"the intent of `{event['step_id']}` has no end"
        elif closing is None or closing["payload"].get("attempts") or place in decided:
            continue
        elif (
            event["payload"]["side_effects"] == "effect"
            or closing["payload"].get("reason") != "cancelled"
        ):
            yield f"`{event['step_id']}` has neither an answer nor anybody's decision"


def _state(scene: Scene) -> Iterator[str]:
    if "state.json" not in scene.names:
        return
    state = (scene.episode / "state.json").read_bytes()
    events = [event for _, event in EventLog(scene.episode)]
    places = [n for n, event in enumerate(events) if event.event_type == "run.state_projection"]
    if not any(project_bytes(events[: place + 1]) == state for place in places):
        yield "state.json is no projection that an event tells of"


def _sealed_at_the_end(scene: Scene) -> Iterator[str]:
    for name in ("summary.json", "manifest.json"):
        if name in scene.names and not scene.ended:
            yield f"{name} before the end"
    if scene.finished and not (scene.ended and "manifest.json" in scene.names):
        yield "continued with, but not finished and sealed"


def _manifest(scene: Scene) -> Iterator[str]:
    if "manifest.json" not in scene.names:
        return
    manifest = json.loads((scene.episode / "manifest.json").read_bytes())
    told = {entry["name"]: (entry["sha256"], entry["size_bytes"]) for entry in manifest["files"]}
    found = {}
    for path in scene.episode.rglob("*"):
        if path.is_file() and path.name not in ("manifest.json", CHECKPOINT):
            data = path.read_bytes()
            found[str(path.relative_to(scene.episode))] = (
                hashlib.sha256(data).hexdigest(),
                len(data),
            )
    if {
        name: (digest.removeprefix("sha256:"), size) for name, (digest, size) in told.items()
    } != found:
        yield "the manifest tells of other files"
    head = "sha256:" + hashlib.sha256(scene.lines[-1]).hexdigest()
    if manifest["chain"] != {"events": len(scene.lines), "head": head}:
        yield "the manifest tells of another chain"


def _one_end(scene: Scene) -> Iterator[str]:
    yield from (f"run {run} ended {count} times" for run, count in scene.ends.items() if count > 1)
    if scene.finished and not scene.ended_by_disk:
        begun = {event["run_id"] for event in scene.of("run.started")}
        yield from (f"run {run} has no end" for run in begun - set(scene.ends))


def _waits_in_doubt(scene: Scene) -> Iterator[str]:
    """Neither a full disk nor a signal ends a run while an effect is in doubt: who would be asked about it?"""
    last = scene.of("run.terminated")[-1:]
    if not any(e["payload"]["status"] == "aborted" or scene.ended_by_disk for e in last):
        return
    over = {
        (e["run_id"], e["step_id"]) for e in scene.of(*CLOSINGS, "step.answered", "policy.decided")
    }
    for intent in scene.intents:
        if (
            intent["payload"]["side_effects"] == "effect"
            and (intent["run_id"], intent["step_id"]) not in over
        ):
            yield f"ended, and `{intent['step_id']}` may have happened"


def _approved_once(scene: Scene) -> Iterator[str]:
    granted = scene.of("approval.granted")
    for approval, count in Counter(event["payload"]["approval_id"] for event in granted).items():
        if count > 1:
            yield f"approval {approval} was given {count} times"
    steps = {event["step_id"]: event["seq"] for event in granted}
    for event in scene.intents:
        step = event["step_id"]
        if (
            event["payload"]["capability"] == "crash.approved"
            and steps.get(step, event["seq"]) >= event["seq"]
        ):
            yield f"`{step}` began before anybody approved it"


def _no_temporary(scene: Scene) -> Iterator[str]:
    for path in scene.episode.rglob("*") if scene.finished else ():
        if path.name.startswith(TEMPORARY):
            yield f"left behind: {path.name}"


def _no_secret(scene: Scene) -> Iterator[str]:
    for path in scene.episode.rglob("*"):
        if path.is_file() and any(secret in path.read_bytes() for secret in scene.secrets):
            yield f"a secret in {path.name}"


def _lock_free(scene: Scene) -> Iterator[str]:
    with open(scene.episode / "events.jsonl", "rb") as log:
        try:
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield "the lock is held"


def _verifies(scene: Scene) -> Iterator[str]:
    try:
        findings = verify(scene.episode)
    except CogcliError as error:
        yield f"verify: {error.message}"
        return
    for finding in findings:
        being_sealed = finding.code == "episode.unsealed" and not scene.finished
        wrong = finding.severity == "error" and not being_sealed
        if wrong or (scene.finished and finding.code != "signature.none"):
            yield f"verify: {finding.file}:{finding.line}: {finding.code}: {finding.message}"


def _given_as_written(scene: Scene) -> Iterator[str]:
    """What a step of the root run was given is what the lines before its intent wrote, in their order."""
    state: ExecutionState | None = None
    mappings: dict[str, Any] = {}
    for _, event in EventLog(scene.episode):
        if state is None:
            state = initial_state(event)
            continue
        if event.run_id != state.run_id:
            continue
        if event.event_type == "plan.created":
            mappings = {record["id"]: record["inputs"] for record in event.payload["step_records"]}
        elif event.event_type == "step.started" and event.step_id in mappings:
            given = event.payload["input"] or {}
            for name, written in mappings[event.step_id].items():
                if name in given and given[name] != (held := _held(written, state)):
                    yield f"`{event.step_id}` was given {given[name]!r:.80}, the log holds {held!r:.80}"
        apply(state, event)


def _held(written: Any, state: ExecutionState) -> Any:
    """What an input says, as written in these flows, after the lines so far."""
    if isinstance(written, list):
        return [_held(each, state) for each in written]
    if isinstance(written, dict):
        return written["$literal"]
    namespace, _, name = written.partition(".")
    return {"vars": state.vars, "inputs": state.inputs}[namespace].get(name) if name else written


BETWEEN: Final = ("run.resumed", "run.recovered", "run.state_projection")
"""What a process that takes the run up again may write between the decision and the end."""


def _recorded_once(scene: Scene) -> Iterator[str]:
    """A decision is recorded once, right before its run ends: never where a run waits."""
    kinds = [event["event_type"] for event in scene.events]
    places = [place for place, kind in enumerate(kinds) if kind == "decision.recorded"]
    agent = bool(scene.events) and bool(scene.events[0]["payload"].get("agent"))
    if len(places) > agent or (agent and scene.ended and not scene.ended_by_disk and not places):
        yield f"{len(places)} decisions"
    for place in places:
        after = [kind for kind in kinds[place + 1 :] if kind not in BETWEEN]
        if after[:1] not in ([], ["run.terminated"]):
            yield f"`{after[0]}` comes after the decision"


def _decision(scene: Scene) -> Iterator[str]:
    """What the documents say of the decision is the same, and what the log holds."""
    if not scene.finished or "decision.json" not in scene.names:
        if scene.finished and scene.of("decision.recorded"):
            yield "no decision.json"
        return
    read = {
        name: json.loads((scene.episode / f"{name}.json").read_bytes())
        for name in ("state", "decision", "context", "summary")
    }
    decision = read["decision"]
    told = read["state"]["x-decision"]
    if told != {name: decision[name] for name in told}:
        yield f"state.json says {told}"
    unhashed = {name: value for name, value in decision.items() if name != "record_hash"}
    if digest_of(unhashed) != decision["record_hash"]:
        yield "the hash is of another record"
    recorded = scene.of("decision.recorded")
    if recorded and recorded[0]["payload"]["record_hash"] != decision["record_hash"]:
        yield "the log recorded another decision"
    hashes = [turn["context_ledger"]["context_hash"] for turn in read["context"]["turns"]]
    if hashes != decision["lineage"]["compiled_context_hashes"] or len(hashes) != len(
        scene.of("context.compiled")
    ):
        yield "context.json has other turns"
    used, limits = decision["budget"]["used"], decision["budget"]["limits"]
    if (
        not len(scene.ledger)
        <= used["tool_calls.per_workflow"]
        <= limits["tool_calls.per_workflow"]
    ):
        yield f"{used} spent, but {len(scene.ledger)} calls of {limits}"
    done = [call["step_id"] for call in decision["calls"] if call["status"] == "done"]
    ended = [
        event["step_id"]
        for event in scene.of("step.completed")
        if event["payload"].get("capability")
    ]
    if done != ended:
        yield f"calls {done}, and the log has {ended}"


INVARIANTS: Final[dict[str, Callable[[Scene], Iterator[str]]]] = {
    "every line but possibly the last parses, sequence and chain hold": _chain,
    "no ledger entry without an intent": _intent_before_effect,
    "no result without a ledger entry": _result_after_effect,
    "a non-idempotent key at most once in the ledger": _once,
    "every intent ends as result or as in doubt": _result_or_doubt,
    "state.json absent or the projection at a run.state_projection": _state,
    "a manifest only after a terminal event": _sealed_at_the_end,
    "and it verifies": _manifest,
    "exactly one terminal event per run": _one_end,
    "a full disk or a signal ends no run with an effect in doubt": _waits_in_doubt,
    "approvals used once stay used": _approved_once,
    "no temporary file left": _no_temporary,
    "no secret in any file": _no_secret,
    "lock free": _lock_free,
    "what a step is given is what the log holds": _given_as_written,
    "a decision is recorded once, right before the end, never on a pause": _recorded_once,
    "the record of a decision is that of the log": _decision,
    "our own verify agrees": _verifies,
}


def broken(sandbox: Sandbox, *, finished: bool = False) -> list[str]:
    """Every invariant that does not hold."""
    found = [f"no file outside the episode: {name}" for name in sorted(sandbox.files())]
    found += [f"no child process alive: {process}" for process in _alive(sandbox)]
    if len(sandbox.episodes) > 1:
        found.append(f"{len(sandbox.episodes)} episodes")
    for episode in sandbox.episodes:
        if (episode / "events.jsonl").exists():
            secrets = (SECRET, sandbox.environment["CRASH_TOKEN"])
            scene = Scene(episode, sandbox.ledger, finished=finished, secrets=secrets)
            found += [
                f"{name}: {what}"
                for name, check in INVARIANTS.items()
                for what in _told(check, scene)
            ]
        elif sandbox.ledger or any(episode.iterdir()):
            found.append(
                f"no log, but {sorted(path.name for path in episode.iterdir())}, {sandbox.ledger}"
            )
    if not sandbox.episodes and sandbox.ledger:
        found.append("effects without an episode")
    return found


def _told(check: Callable[[Scene], Iterator[str]], scene: Scene) -> list[str]:
    """What a check finds. What is in no shape to be checked is found, too."""
    try:
        return list(check(scene))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        return [f"{type(error).__name__}: {error}"]


def _alive(sandbox: Sandbox) -> Iterator[str]:
    """Processes that work in the sandbox."""
    place = str(sandbox.project)
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                if os.readlink(f"/proc/{entry.name}/cwd") == place:
                    yield (
                        Path(f"/proc/{entry.name}/cmdline")
                        .read_bytes()
                        .replace(b"\0", b" ")
                        .decode()
                    )
            except OSError:
                continue
