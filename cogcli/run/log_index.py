"""A log as the source of answers: what resume and replay hand to the engine instead of services and an empty log.

1. An attempt is named by its run, its step path and its number. Its result is in the closing event, in `step.answered`,
   or, where it failed before another attempt, in that attempt's `call.retried`.
2. An intent without a result is in doubt. Nothing here decides what to do about it.
3. What a person decided about a call in doubt stands. A rerun is used up by the call that it allowed.
4. An event that the engine makes again is answered with the recorded one, and changes state as it did then. A step
   ends as it ended, whatever the engine computes now.
5. Events of one process only (pauses, signals, approvals, probes, projections) are matched by none; a probe that was
   cut off is continued.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from cogcli.base.calls import HARMLESS, Answer
from cogcli.base.errors import RuntimeErrorBase, error_from_payload
from cogcli.base.refs import parse_target
from cogcli.base.step_path import StepPath
from cogcli.declarations.call_records import AttemptMade
from cogcli.declarations.envelope import ActiveTime, Draft, Event
from cogcli.declarations.event_type import Payload
from cogcli.declarations.events import (
    EVENT_TYPES,
    CallRetried,
    RunResumed,
    RunStarted,
    RunTerminated,
    StepAnswered,
    StepFinished,
    StepStarted,
    row_of,
)
from cogcli.declarations.governance_events import (
    IN_DOUBT,
    Approval,
    ApprovalGranted,
    ApprovalRejected,
    ApprovalRequested,
    PolicyDecided,
)
from cogcli.declarations.typed_payload import recorded_payload
from cogcli.episode.layout import EVENTS
from cogcli.episode.log_reader import Warn, iterate_events
from cogcli.episode.refusals import another_tools, unreadable
from cogcli.policy.approvals import Answered, Asked
from cogcli.run.closed_scopes import FULL_DISK, ClosedScopes, ScopeKey
from cogcli.state.reducer import ReusedResult, Write

_OWN_OF_ATTEMPT: Final = frozenset(
    (
        "binding_id",
        "service_id",
        "status",
        "code",
        "message",
        "left",
        "usage",
        "hint",
        "reason",
        "retryable",
        "effect",
    )
)


class LogIndex:
    """The calls of a log, and its events in the order of each step."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.ended = ClosedScopes()
        self.closings = self.ended.steps
        self.intents: dict[ScopeKey, Event] = {}
        self.repeats: dict[ScopeKey, list[Event]] = {}
        self.resumptions: dict[ScopeKey, int] = {}
        """How often a call in doubt was made again by a later sitting: the same attempt, sent once more."""
        self.answers: dict[ScopeKey, StepAnswered] = {}
        """Results that were on disk before their steps ended."""
        self.answered_at: dict[ScopeKey, int] = {}
        """By step: the position at which its result was there first."""
        self.sittings = ActiveTime()
        self.timeout: float | None = None
        """The limit of time of the run, in seconds: that of its options, else the one a resumption gave last."""
        self._timed_from = 0
        self.started: Event | None = None
        self.last: Event | None = None
        self.changed: Event | None = None
        """The first resumption with specs that were not those the run began with."""
        self.decisions: dict[ScopeKey, Event] = {}
        """What a person decided about a call in doubt, unless that is used up."""
        self.requests: dict[str, Event] = {}
        """Requests for approval by their id."""
        self._answered: list[Event] = []
        self.redeemed: dict[str, int] = {}
        """By the id of a person's answer: the position of the decision about the call that it led to; of an escalation
        that of whatever came next."""
        self._stale: set[str] = set()
        """The ids of answers that were not valid when they were to be used."""
        self._escalations: dict[str | None, str] = {}
        """By step: the id of the latest answer to an escalation, until the engine drafts an event."""
        self.keys: dict[ScopeKey, str] = {}
        """The idempotency key that a call was sent with last, where a service had closed the one before."""
        self.probes: Counter[ScopeKey] = Counter()
        """By step: how often it was asked whether its call had happened, with an end to it."""
        self._queues: dict[tuple[str | None, ...], deque[Event]] = {}
        self._of_probes: dict[tuple[str | None, ...], deque[Event]] = {}
        for event in events:
            self._take(event)

    def _take(self, event: Event) -> None:
        payload, key = recorded_payload(event), (event.run_id, event.step_id)
        self.last = event
        self.sittings.apply(event)
        self.ended.apply(event)
        if isinstance(payload, StepAnswered | StepFinished) and not is_of_probe(event):
            self.answered_at.setdefault(key, event.seq or 0)
        if self._take_by_type(event, payload, key):
            self._keep_for_replay(event, payload)

    def _take_by_type(self, event: Event, payload: Payload, key: ScopeKey) -> bool:
        """Take up what an event says. False for what a person decided, which no replay makes again."""
        match payload:
            case RunStarted() if self.started is None:
                self.started = event
                self.timeout = payload.options.get("timeout_seconds")
            case RunResumed():
                self._take_resumption(event, payload)
            case StepStarted():
                self.intents[key] = event
            case CallRetried():
                return self._take_repeat(event, payload, key)
            case StepAnswered():
                self.answers[key] = payload
            case PolicyDecided() if payload.rule == IN_DOUBT:
                self.decisions[key] = event
                return False
            case PolicyDecided() if event.caused_by:
                self.redeemed[event.caused_by] = event.seq or 0
            case ApprovalRequested():
                self.requests[payload.approval_id] = event
                self._escalations.pop(event.step_id, None)
                # A second request for the same: the answers before, which led to nothing, were not valid.
                same = [each for each in self._answered if (each.run_id, each.step_id) == key]
                self._stale.update(each.id for each in same if not self._used(each))
            case ApprovalGranted() | ApprovalRejected():
                self.note_answer(event)
        return True

    def _take_resumption(self, event: Event, payload: RunResumed) -> None:
        if payload.changed_specs:
            self.changed = self.changed or event
        if payload.timeout_seconds is not None:
            self.timeout, self._timed_from = (
                payload.timeout_seconds,
                self.sittings.milliseconds or 0,
            )

    def _take_repeat(self, event: Event, payload: CallRetried, key: ScopeKey) -> bool:
        if payload.idempotency_key is not None:
            self.keys[key] = payload.idempotency_key
        if payload.reason == "resumed":
            self.resumptions[key] = self.resumptions.get(key, 0) + 1
            self.decisions.pop(key, None)
            return False
        self.repeats.setdefault(key, []).append(event)
        return True

    def _keep_for_replay(self, event: Event, payload: Payload) -> None:
        if payload.event.one_process_only:
            return
        self.redeemed |= dict.fromkeys(self._escalations.values(), event.seq or 0)
        self._escalations.clear()
        path = StepPath(event.step_id or "")
        if path.is_probe and payload.event.closes:
            self.probes[event.run_id, path.owner] += 1
        queues = self._of_probes if path.in_probe else self._queues
        queues.setdefault(_slot(event), deque()).append(event)

    @property
    def root(self) -> str | None:
        """The id of the root run; None in a log without a beginning."""
        return self.started.run_id if self.started else None

    @property
    def timed_ms(self) -> int:
        """The milliseconds of `timeout` that are used: all sittings since it was given."""
        return max(0, (self.sittings.milliseconds or 0) - self._timed_from)

    @property
    def full(self) -> Event | None:
        """The end of the run, where a full disk made it."""
        end = self.ended.runs.get(self.root)
        is_full = end is not None and RunTerminated.of(end.payload).status_reason == FULL_DISK
        return end if is_full else None

    @property
    def stops(self) -> bool:
        """Whether the log stops before the run's own end: it was interrupted, it waits, or the disk was full."""
        return self.started is not None and self.ended.runs.get(self.root) in (None, self.full)

    @property
    def approvals(self) -> tuple[Answered, ...]:
        """What people answered, in order, but for what was not valid when it was to be used."""
        return tuple(
            answered_request(self.requests[answered_id(event)], event, used=self._used(event))
            for event in self._answered
            if answered_id(event) in self.requests and event.id not in self._stale
        )

    def note_answer(self, event: Event) -> None:
        """Take up a person's answer, one of this sitting, too: its request is open no more."""
        self._answered.append(event)
        if Approval.of(event.payload).capability == "":
            self._escalations[event.step_id] = event.id

    @property
    def open_requests(self) -> list[Event]:
        """Requests that nobody answered yet, the latest of each step."""
        done = {answered_id(event) for event in self._answered}
        latest = {e.step_id: e for id, e in self.requests.items() if id not in done}
        return list(latest.values())

    @property
    def asked(self) -> dict[str, Asked]:
        """By step path: the latest request, as long as nothing was called there since."""
        waiting = (event for event in self.requests.values() if not self._used(event))
        return {event.step_id or "": _asked(event) for event in waiting}

    def _used(self, answer: Event) -> bool:
        """Whether what an answer allowed was begun."""
        if answer.id in self.redeemed:
            return True
        intent = self.intents.get((answer.run_id, answer.step_id))
        closing = self.closings.get((answer.run_id, answer.step_id))
        return any(e is not None and (e.seq or 0) > (answer.seq or 0) for e in (intent, closing))

    @property
    def gates_passed(self) -> list[str]:
        """The step paths of gates whose yes is still to be used: before a call without an answer, after one whose step
        has not ended. A gate that refused is not among them: a stricter spec would not make it say yes."""
        found = []
        for run_id, path in {**self.closings, **self.answers}:
            gate = StepPath(path or "")
            gone = gate.is_gate_before and (run_id, gate.owner) in self.answered_at
            if gate.is_gate and not gone and self.ended.over(run_id, gate.owner) is None:
                output = self._output((run_id, path))
                if isinstance(output, dict) and output.get("allowed") is not False:
                    found.append(path or "")
        return found

    @property
    def results(self) -> dict[str, ReusedResult]:
        """The results of the root's steps that are done, by step path."""
        return {
            step_id or "": _taken_over(
                StepFinished.of(closing.payload),
                {"episode": closing.episode_id, "event": closing.id},
            )
            for (run_id, step_id), closing in self.closings.items()
            if run_id == self.root and closing.event_type == "step.completed"
        }

    @property
    def behind(self) -> dict[str, str]:
        """By step path the source of its result: the event of the call whose answer it took from an earlier run, or the
        idempotency key of the call that it made itself."""
        made = {
            step: StepStarted.of(event.payload).idempotency_key
            for (_, step), event in self.intents.items()
        }
        origins = {
            step: _origin(StepFinished.of(event.payload))
            for (_, step), event in self.closings.items()
        }
        taken = {step: origin.get("event") for step, origin in origins.items()}
        every = [*made.items(), *taken.items()]
        return {step: name for step, name in every if step is not None and name}

    @property
    def reused(self) -> dict[str, ReusedResult]:
        """The results that this log itself took over from an earlier one, or was going to."""
        if self.started is None:
            return {}
        start = RunStarted.of(self.started.payload)
        taken_over, calls = start.taken_over, start.effects
        marked = {
            path
            for (run, path), c in self.closings.items()
            # Where only the answer of a call was taken, its step did the rest itself.
            if run == self.root
            and "reused_from" in c.payload
            and path not in calls.keys() - taken_over.keys()
        }
        done = {path: result for path, result in self.results.items() if path in marked}
        earlier = {
            path: _taken_over(StepFinished.of(result)) for path, result in taken_over.items()
        }
        return earlier | done

    def wrote_at(self, run_id: str, step_id: str) -> int | None:
        """The position of what a step wrote; None where it did not end so that it could."""
        closing = self.closings.get((run_id, step_id))
        if closing is None or row_of(closing.event_type).fails:
            return None
        reason = StepFinished.of(closing.payload).reason
        return None if reason in ("cancelled", "dependency") else closing.seq

    def take_recorded(self, draft: Draft) -> Event | None:
        """The recorded event that matches this draft; each is given once. None where the log has no more."""
        slot = _slot(draft)
        queue = self._queues.get(slot) or self._of_probes.get(slot)
        return queue.popleft() if queue else None

    @property
    def unmatched(self) -> list[Event]:
        """Recorded events that no draft matched, in order."""
        left = [event for queue in self._queues.values() for event in queue]
        return sorted(left, key=lambda event: event.seq or 0)

    def result(self, run_id: str, step_id: str, number: int) -> Answer | RuntimeErrorBase | None:
        """What an attempt gave, or None where the log does not say."""
        key = (run_id, step_id)
        early = self.answers.get(key)
        last = self._closing(key) or early
        recorded = (last.attempts or []) if last else []
        attempts = [
            each for each in recorded if each.status != "skipped"
        ]  # of those no attempt was made
        if number <= len(attempts):
            return self._recorded_at_the_end(key, attempts[number - 1])
        repeats = (CallRetried.of(event.payload) for event in self.repeats.get(key, ()))
        later = next((each for each in repeats if each.attempt == number + 1), None)
        if later is not None:
            return error_of(later.error or {})
        if early and number == self._attempts_begun(key):
            return Answer(early.output)  # of a log that did not say yet how the answer came
        return None

    def _closing(self, key: ScopeKey) -> StepFinished | None:
        """How a step ended; None before."""
        closing = self.closings.get(key)
        return StepFinished.of(closing.payload) if closing else None

    def attempt_in_doubt(self, run_id: str, step_id: str) -> int:
        """The number of the attempt of a step that has no result, though it may still have one; 0 where none has."""
        key = (run_id, step_id)
        begun = self._attempts_begun(key)
        if not begun or key in self.closings or self.ended.over(run_id, step_id) is not None:
            return 0
        return begun if self.result(run_id, step_id, begun) is None else 0

    @property
    def doubts(self) -> list[Event]:
        """The intents of the calls in doubt that nobody may repeat unasked, in order; decided or not."""
        found = [
            intent
            for (run_id, step_id), intent in self.intents.items()
            if may_have_effect(StepStarted.of(intent.payload))
            and self.attempt_in_doubt(run_id or "", step_id or "")
        ]
        return sorted(found, key=lambda event: event.seq or 0)

    @property
    def open_doubts(self) -> list[Event]:
        """Those of them that nobody has decided yet."""
        return [
            event for event in self.doubts if (event.run_id, event.step_id) not in self.decisions
        ]

    def _attempts_begun(self, key: ScopeKey) -> int:
        return (key in self.intents) + len(self.repeats.get(key, ()))

    def _recorded_at_the_end(
        self, key: ScopeKey, attempt: AttemptMade
    ) -> Answer | RuntimeErrorBase | None:
        if attempt.status != "success":
            closing = self._closing(key)
            final = closing.error if closing else None
            is_same = final and (attempt.code, attempt.message) == (final.code, final.message)
            more = {"hint": final.hint, "reason": final.reason} if final and is_same else {}
            return error_of({**attempt.json, **more})
        output = self._output(key)
        return Answer(output, attempt.usage, _record(attempt.json)) if output is not None else None

    def _output(self, key: ScopeKey) -> dict[str, Any] | None:
        """What a call gave, however its step ended."""
        last = self.answers.get(key) or self._closing(key)
        return last.output if last else None


def is_of_probe(event: Event) -> bool:
    """Whether an event is of a probe: it belongs to the process that asked, and no later run makes it again."""
    return StepPath(event.step_id or "").in_probe


def answered_id(answer: Event) -> str:
    """The id of the request that a person answered."""
    return Approval.of(answer.payload).approval_id


def may_have_effect(intent: StepStarted) -> bool:
    """Whether a call may do something outside that must not happen twice."""
    return bool(intent.capability) and intent.side_effects not in HARMLESS


def _origin(closing: StepFinished) -> dict[str, Any]:
    """Where a result was taken from; empty for one of this run."""
    return closing.reused_from if isinstance(closing.reused_from, dict) else {}


def _taken_over(closing: StepFinished, place: dict[str, str] | None = None) -> ReusedResult:
    """What a closing event at this place holds, or a first event, and where that came from first."""
    writes = [(parse_target(write.target), write) for write in closing.writes]
    return ReusedResult(
        closing.output or {},
        tuple(Write(target, write.strategy, write.value) for target, write in writes if target),
        _origin(closing) or place or {},
    )


def answered_request(request: Event, answer: Event, *, used: bool = False) -> Answered:
    """A request and what a person said to it."""
    said = Approval.of(answer.payload)
    granted = answer.event_type == "approval.granted"
    return Answered(
        _asked(request),
        granted,
        said.by or "",
        said.reason or "",
        answer.timestamp,
        used,
        answer.id,
    )


def _asked(request: Event) -> Asked:
    asked = ApprovalRequested.of(request.payload)
    return Asked(
        asked.approval_id,
        asked.capability or "",
        asked.step_id or "",
        asked.action_hash or "",
        asked.evidence_hash or "",
        asked.expires_at or "",
        asked.gate or "",
    )


def _slot(one: Draft | Event) -> tuple[str | None, ...]:
    """What drafts and events are matched by. A nested run gets its id from its first event, so that has none. Each
    answer of a person leads to a decision of its own."""
    kind = "step" if row_of(one.event_type).closes else one.event_type
    answer = one.caused_by if kind == "policy.decided" else None
    return (kind, None if kind == "run.started" else one.run_id, one.step_id, answer)


def _record(attempt: dict[str, Any]) -> dict[str, Any] | None:
    """What went over the wire, out of an attempt's element."""
    return {name: value for name, value in attempt.items() if name not in _OWN_OF_ATTEMPT} or None


def error_of(told: dict[str, Any]) -> RuntimeErrorBase:
    """The error of a recorded failure."""
    error = error_from_payload(told)
    error.record, error.usage = _record(told), told.get("usage")
    return error


def locate_error(told: dict[str, Any]) -> RuntimeErrorBase:
    """The error that a run ended with, and its place."""
    error = error_of(told)
    error.step_id, error.capability_id = told.get("step"), told.get("capability")
    error.binding_id, error.service_id = told.get("binding"), told.get("service")
    error.effect = told.get("effect")
    return error


def read_log_index(directory: Path, warn: Warn | None = None) -> tuple[list[Event], LogIndex]:
    """The events of a whole log of cogcli, and their index.

    Raises EnvironmentRefusal `episode.unreadable` for a damaged log and for one of another tool.
    """
    events = list(iterate_events(directory, warn, whole=True))
    if events[0].seq is None:
        raise another_tools(directory, events[0])
    return events, index_events(directory, events, events)


def index_events(directory: Path, events: Sequence[Event], foreign: Iterable[Event]) -> LogIndex:
    """The index of the events of a log. Those that are `foreign`, since nothing vouches for them, are checked first.

    Raises EnvironmentRefusal `episode.unreadable` for an event that no log of ours has.
    """
    for event in foreign:
        require_known_payload(directory, event)
    try:
        return LogIndex(events)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        why = f"an event is none of ours ({type(error).__name__}: {error!s:.60})"
        raise unreadable(directory, why, file=EVENTS) from error


def require_known_payload(directory: Path, event: Event) -> None:
    """Raise EnvironmentRefusal `episode.unreadable` for an event whose payload is not one of its type."""
    from cogcli.run.recorded_start import problem_of_recorded

    kind = event.event_type or ""
    row = EVENT_TYPES.get(kind)
    if row is None:
        return
    problem = problem_of_recorded(kind, event.payload)
    if row.phase and row.phase != event.phase:
        problem = f"its phase is `{event.phase:.40}`"
    if problem:
        line = (event.seq or 0) + 1
        raise unreadable(
            directory, f"{kind} is not an event of ours: {problem}", file=EVENTS, line=line
        )
