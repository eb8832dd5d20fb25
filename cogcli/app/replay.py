"""Replay: the engine runs again from the first event, answered from the log, and has to tell the same story."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cogcli.app.closing import ABORT, BEGINNINGS
from cogcli.app.recorded import recorded
from cogcli.app.turns import Turns
from cogcli.core.calls import Answer, Attempt, Chain, recorded_chain
from cogcli.core.errors import (
    BindingResolutionError,
    CogcliError,
    EffectInDoubtError,
    EnvironmentRefusal,
)
from cogcli.engine.tasks import Cancelled
from cogcli.events.envelope import Draft, Event

if TYPE_CHECKING:
    from cogcli.app.settings import Settings
    from cogcli.core.redact import Redactor
    from cogcli.engine.tasks import Loop
    from cogcli.episode.recording import Recording
    from cogcli.specs.catalog import Catalog

_TIMELESS: Final = frozenset(("latency_ms", "action_id"))
"""Payload members that a clock or a source of ids decides."""
_BY_TIMING: Final = frozenset(("run.paused", "run.aborting", "step.answered", "approval.requested"))
"""Events that are there or not, depending on who was faster, or on when somebody answered."""


CHOICES: Final = ("active:", "override:")
"""How the pins begin that tell what was chosen for this host."""


class Difference(NamedTuple):
    """The first thing that a replay told otherwise than the log: where, and both sides."""

    seq: int | None
    step_id: str | None
    what: str
    recorded: Any
    replayed: Any

    def as_dict(self) -> dict[str, Any]:
        """The difference as it stands in the envelope."""
        return self._asdict()


class Replayed(NamedTuple):
    """How a replay went; `difference` None means that it equals."""

    episode_id: str
    events: int
    difference: Difference | None
    changed_specs: tuple[str, ...] = ()


class Diverged(CogcliError):
    """Ends a replay at its first difference."""

    def __init__(self, difference: Difference) -> None:
        super().__init__("replay.differs", difference.what)
        self.difference = difference


def replay(settings: Settings, directory: Path) -> Replayed:
    """Run an episode again from its log and its pinned specs; no service is called, no clock or random source read.

    Raises EnvironmentRefusal `episode.unreadable` where the log has no beginning or its specs are missing.
    """
    from cogcli.app.wire import engine_of, options_from
    from cogcli.core.redact import Redactor
    from cogcli.core.system import FakeClock, FakeIds
    from cogcli.engine.run import execute
    from cogcli.episode.reading import read_events
    from cogcli.episode.recording import Recording
    from cogcli.governance.approvals import Approvals

    events = [event for _, event in read_events(directory)]
    recording = Recording(events)
    started, catalog = _beginning(recording, directory)
    changed = changed_specs(settings, started)
    step = _first_step_using(changed, catalog, started)
    if step is not None:
        spec, current = next(iter(changed.items()))
        recorded = started.payload["pins"]["specs"][spec]
        difference = Difference(None, step, f"`{spec}` was changed since", recorded, current)
        return Replayed(started.episode_id, len(events), difference, tuple(changed))
    cut, turns = _CutOff(recording.signal), Turns(recording)
    sink, runner = _Retold(recording, Redactor(()), cut, turns), _Recorded(recording, cut, turns)
    engine = engine_of(
        catalog,
        options=options_from(started.payload["options"]),
        sink=sink,
        runner=runner,
        clock=FakeClock(0),
        ids=FakeIds(0),
        approvals=Approvals(recording.approvals),
        taken_over=recording.reused,
        order=turns,
    )
    cut.loop = engine.loop
    plan = engine.plan_of(started.payload["skill"]["id"])
    try:
        execute(engine, plan, request_of(started), started.run_id or "")
    except Diverged as diverged:
        return Replayed(started.episode_id, len(events), diverged.difference, tuple(changed))
    return Replayed(started.episode_id, len(events), sink.untold(), tuple(changed))


def _beginning(recording: Recording, directory: Path) -> tuple[Event, Catalog]:
    from cogcli.specs.pinned import catalog_of

    started = recording.started
    name = started.payload.get("pins", {}).get("specs_blob") if started else None
    if started is None or name is None:
        raise EnvironmentRefusal("episode.unreadable", "this log does not say which specs it ran on")
    try:
        return started, catalog_of(_pinned_specs(directory, name))
    except (ValueError, KeyError, TypeError) as error:
        raise EnvironmentRefusal(
            "episode.unreadable", f"the specs of this run cannot be read: {error}"
        ) from error


def _pinned_specs(directory: Path, digest: str) -> Any:
    from cogcli.episode.blobs import BlobFolder, parsed
    from cogcli.episode.reading import opened

    with opened(directory) as folder:
        blobs = BlobFolder(folder)
        try:
            data = blobs.get(digest)
        finally:
            blobs.close()
    if data is None:
        raise EnvironmentRefusal("episode.unreadable", f"the specs of this run are missing: {digest}")
    return parsed(data)


def request_of(started: Event) -> Any:
    """What a run was asked, out of its first event."""
    from cogcli.engine.run import Request

    payload = started.payload
    return Request(
        task=payload["task"],
        inputs=payload["inputs"],
        frame=payload["frame"],
        seed=payload["seed"],
        tags=payload["tags"],
        pins=payload["pins"],
        selection=payload.get("selection") or {},
    )


def changed_specs(settings: Settings, started: Event) -> dict[str, str]:
    """The pinned specs that read otherwise now, with their digest, where the registry still holds the skill.

    What somebody has chosen for this host is none of them: a replay asks for no choice.
    """
    recorded: dict[str, str] = started.payload["pins"]["specs"]
    current = _pins_now(settings, started)
    return {
        key: current[key]
        for key, digest in recorded.items()
        if current.get(key, digest) != digest and not key.startswith(CHOICES)
    }


def differing_specs(started: Event, current: Mapping[str, str]) -> list[str]:
    """Everything a run that goes on with these pins would meet otherwise than it began: what was changed, added, taken
    away or cannot be read, and what was chosen since."""
    recorded: dict[str, str] = started.payload["pins"]["specs"]
    return sorted(key for key in recorded.keys() | current.keys() if recorded.get(key) != current.get(key))


def _pins_now(settings: Settings, started: Event) -> dict[str, str]:
    from cogcli.app.registry import opened

    try:
        return opened(settings).reach(started.payload["skill"]["id"]).pins
    except CogcliError:
        return {}


def _first_step_using(changed: Mapping[str, str], catalog: Catalog, started: Event) -> str | None:
    """The first step in plan order that a changed spec concerns; the first one where a skill changed."""
    from cogcli.specs.targets import targets_of

    touched = {name.partition(":")[2] for name in changed}
    if not touched:
        return None
    skill = catalog.skills[started.payload["skill"]["id"]]
    for step in skill.steps:
        for _, target in targets_of(step):
            capability = catalog.aliases.get(target, target).removeprefix("skill:")
            bindings = catalog.bindings_of.get(capability, ())
            services = {catalog.bindings[id].service for id in bindings}
            if touched & {capability, *bindings, *services}:
                return step.id
    return skill.steps[0].id


class _CutOff:
    """Ends the engine's run where a signal ended the recorded one."""

    def __init__(self, signal: str | None) -> None:
        self.signal = signal
        self.loop: Loop | None = None
        self.beginnings = BEGINNINGS if signal == ABORT else frozenset(("step.started",) if signal else ())
        """What began after that, had the run gone on. A run that was closed asked nobody any more, either."""

    def __call__(self) -> None:
        """The log goes no further here: it was cut off by the signal, if one came; now as then, without grace."""
        if self.signal is not None and self.loop is not None:
            self.loop.interrupt(self.signal)
            self.loop.interrupt(self.signal)


class _Recorded:
    """A runner that answers from a log."""

    def __init__(self, recording: Recording, cut_off: _CutOff, turns: Turns) -> None:
        self._recording = recording
        self._cut_off = cut_off
        self._turns = turns
        self._ended = threading.Event()

    def chain(self, capability_id: str) -> Chain:
        started = self._recording.started
        pinned = (started.payload.get("selection") or {}).get(capability_id) if started else None
        if pinned is None:
            raise BindingResolutionError("binding.none", f"capability `{capability_id}`: none was pinned")
        return recorded_chain(pinned)

    def attempt(self, attempt: Attempt) -> Answer:
        self._turns.wait(attempt)
        result = recorded(self._recording, attempt)
        if result is None:
            # It was cancelled then, by a failure beside it or by a signal; so it is now.
            end = self._recording.ended.over(attempt.run_id, attempt.step_id)
            if end is None or self._recording.ended.by_signal(end):
                self._cut_off()
            elif (attempt.run_id, attempt.step_id) not in self._recording.closings:
                self._turns.wait_before(end)
                raise EffectInDoubtError("effect.in-doubt", "nobody ever knew whether it happened", left=True)
            self._ended.wait(max(0.0, attempt.deadline - time.monotonic()))
            raise EnvironmentRefusal("episode.unreadable", f"the log has no answer for `{attempt.step_id}`")
        return result

    def close(self, grace: float) -> None:
        self._ended.set()


class _Retold:
    """A sink that holds each event told again against the recorded one."""

    def __init__(self, recording: Recording, redactor: Redactor, cut_off: _CutOff, turns: Turns) -> None:
        self._recording = recording
        self._cut_off = cut_off
        self._turns = turns
        self._redactor = redactor

    def append(self, draft: Draft, *, durable: bool = False) -> Event:
        recorded = self._recording.told(draft)
        if recorded is None:
            if draft.event_type in self._cut_off.beginnings:
                self._cut_off()
                raise Cancelled
            if draft.event_type in _BY_TIMING:
                return _unrecorded(draft)
            what = f"`{draft.event_type}` of `{draft.step_id or 'the run'}` is not in the log"
            raise Diverged(Difference(None, draft.step_id, what, None, draft.payload))
        mine = _timeless(self._redactor.mask(draft.payload))
        theirs = _timeless(recorded.payload)
        if mine != theirs:
            raise Diverged(_difference(recorded, theirs, mine))
        self._turns.told(recorded)
        return recorded

    def untold(self) -> Difference | None:
        left = [event for event in self._recording.untold if event.event_type not in _BY_TIMING]
        if not left:
            return None
        event = left[0]
        what = f"`{event.event_type}` of `{event.step_id or 'the run'}` is in the log only"
        return Difference(event.seq, event.step_id, what, event.payload, None)


def _unrecorded(draft: Draft) -> Event:
    return Event(None, "", "", "", draft.run_id, None, draft.phase, draft.event_type, draft.payload)


def _timeless(payload: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in payload.items() if name not in _TIMELESS}


def _difference(recorded: Event, theirs: dict[str, Any], mine: dict[str, Any]) -> Difference:
    for name in [*theirs, *mine]:
        if theirs.get(name) != mine.get(name):
            what = f"`{recorded.event_type}` of `{recorded.step_id or 'the run'}`: `{name}` differs"
            return Difference(recorded.seq, recorded.step_id, what, theirs.get(name), mine.get(name))
    raise AssertionError("equal payloads do not differ")
