"""An index of a log as the source of answers. Resume and replay pass it to the engine instead of services and an empty
log.

1. An attempt is identified by its run, its step path and its number. Its result is in the closing event, in
   `step.answered`, or, if another attempt followed, in that attempt's `call.retried`.
2. A write-ahead record without a result is in doubt. This module does not decide about doubts.
3. A person's decision about a call in doubt stays valid. The repeated call uses up a `rerun` decision.
4. When the engine drafts a recorded event again, it gets the recorded one and applies that to the state. A step ends as
   recorded, even if the engine computes another end now.
5. Events of one process only (pauses, signals, approvals, probes, projections) are never matched. A probe that was
   interrupted is continued.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from cogcli.base.calls import HARMLESS, Answer, Continuation
from cogcli.base.errors import InputRequiredError, RuntimeErrorBase
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.refs import parse_target
from cogcli.base.step_path import StepPath
from cogcli.declarations.call_records import AttemptMade, ResultOrigin, RunError, error_from_payload
from cogcli.declarations.envelope import ActiveTime, Draft, Event, row_of
from cogcli.declarations.event_type import Payload
from cogcli.declarations.events import (
    CallRetried,
    CallSampled,
    RunResumed,
    RunStarted,
    RunTerminated,
    StepAnswered,
    StepFinished,
    StepStarted,
)
from cogcli.declarations.governance_events import (
    IN_DOUBT,
    Approval,
    ApprovalGranted,
    ApprovalRejected,
    ApprovalRequested,
    InputGiven,
    InputRequested,
    PolicyDecided,
)
from cogcli.declarations.reading import read_record
from cogcli.declarations.shared_events import InteropTimeLimits
from cogcli.declarations.typed_payload import recorded_payload
from cogcli.declarations.value_types import Json
from cogcli.policy.approvals import ApprovalAnswer, RequestedAction
from cogcli.run.closed_scopes import FULL_DISK, ClosedScopes, ScopeKey
from cogcli.run.recorded_answers import action_from_request, answer_from_events
from cogcli.state.reducer import ReusedResult, Write

if TYPE_CHECKING:
    from cogcli.episode.waypoint_reading import LogFromWaypoint
    from cogcli.policy.limits import CallAttempt

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
        "say",
    )
)


class Grant(NamedTuple):
    """A person's approval, and the event that describes the request."""

    request: Event
    event: Event
    answer: Approval


class AttemptResult(NamedTuple):
    """The recorded result of an attempt: its answer, or its error. The other one is None."""

    output: Answer | None = None
    error: RuntimeErrorBase | None = None

    def answer(self) -> Answer:
        """Return the answer. Raise the error."""
        if self.output is not None:
            return self.output
        raise self.error or ValueError("a result has an answer or an error")


class LogIndex:
    """The calls of a log, and its events in order per step."""

    def __init__(self, events: Iterable[Event], waypoint: LogFromWaypoint | None = None) -> None:
        """Index the events of a log. With `waypoint`, the events of skipped rounds are missing."""
        self.ended = ClosedScopes()
        self.closings = self.ended.steps
        self.intents: dict[ScopeKey, Event] = {}
        self.repeats: dict[ScopeKey, list[Event]] = {}
        self.resumptions: dict[ScopeKey, int] = {}
        """The number of later sessions that repeated a call in doubt: the same attempt, sent once more."""
        self.answers: dict[ScopeKey, StepAnswered] = {}
        """Results that were on disk before their steps ended."""
        self.answered_at: dict[ScopeKey, int] = {}
        """By step: the position at which its result was first in the log."""
        self.sampled: Counter[str] = Counter()
        """By budget the usage of the model that services asked."""
        self.active_time = ActiveTime()
        self.timeout: float | None = None
        """The time limit of the run in seconds: the one that a resumption set last, otherwise that of its options."""
        self._timed_from = 0
        self.started: Event | None = None
        self.last: Event | None = None
        self.changed: Event | None = None
        """The first resumption with other specs than the run started with."""
        self.decisions: dict[ScopeKey, Event] = {}
        """A person's or a probe's decisions about calls in doubt, unless they are used up."""
        self.requests: dict[str, Event] = {}
        """Requests for approval by id."""
        self._answered: list[Event] = []
        self._resumed: list[Event] = []
        self.redeemed: dict[str, int] = {}
        """By event id of a person's answer: the position of the decision about the call that it led to. For an
        escalation: the position of the next event."""
        self._stale: set[str] = set()
        """The ids of answers that were invalid when they were used."""
        self._escalations: dict[str | None, str] = {}
        """By step: the id of the latest answer to an escalation, until the engine drafts an event."""
        self.inputs: dict[tuple[str, str, int], Event] = {}
        """Requests of services for input, by run, step path and number of the attempt that was left unfinished."""
        self._given: dict[str, Continuation] = {}
        """People's answers to them, by the ids of the requests."""
        self.keys: dict[ScopeKey, str] = {}
        """The last idempotency key of a call, if the service had closed an earlier one."""
        self.probes: Counter[ScopeKey] = Counter()
        """By step: the number of completed probes about its call."""
        self._queues: dict[tuple[str | None, ...], deque[Event]] = {}
        self._probe_queues: dict[tuple[str | None, ...], deque[Event]] = {}
        self._left = 0
        """The number of queued events that no draft has matched."""
        self.unvouched_events: set[str] = set()
        """The ids of the events without a proof of origin."""
        self.unvouched_steps: set[str | None] = set()
        """Their step paths."""
        self.is_only_answered = False
        """Whether they only record answers of people, without continuing the run."""
        self._folded: dict[ScopeKey, Event] = {}
        """The closing events of steps without another event in this log, until they are used."""
        folded = waypoint.folded if waypoint else ()
        times = dict(waypoint.waypoint.times) if waypoint else {}
        if waypoint is not None:
            times[waypoint.waypoint.events] = waypoint.waypoint.last
        for event in events:
            if event.seq in times:
                self.active_time.advance(times[event.seq])
            self._index_event(event)
            if event.seq in folded:
                self._folded[event.run_id, event.step_id] = event

    def take_folded(self, run_id: str, step_id: str) -> Event | None:
        """Remove and return the closing event of a step whose other events are left out. None for any other step."""
        event = self._folded.pop((run_id, step_id), None)
        if event is not None:
            self._queues[_matching_key(event)].popleft()
            self._left -= 1
        return event

    def _index_event(self, event: Event) -> None:
        payload, key = recorded_payload(event), (event.run_id, event.step_id)
        self.last = event
        self.active_time.apply(event)
        self.ended.apply(event)
        if isinstance(payload, StepAnswered | StepFinished) and not is_of_probe(event):
            self.answered_at.setdefault(key, event.seq or 0)
        if self._index_by_type(event, payload, key):
            self._queue_for_replay(event, payload)

    def _index_by_type(self, event: Event, payload: Payload, key: ScopeKey) -> bool:
        """Index an event by its type. Return False if no replay drafts it again, as for a person's decision."""
        match payload:
            case RunStarted() if self.started is None:
                self.started = event
                self.timeout = InteropTimeLimits.of(payload.options).timeout_seconds
            case RunResumed():
                self._index_resumption(event, payload)
            case CallSampled():
                self.sampled += payload.spent
            case StepStarted():
                self.intents[key] = event
            case CallRetried():
                return self._index_repeat(event, payload, key)
            case StepAnswered():
                self.answers[key] = payload
            case PolicyDecided():
                return self._index_decision(event, payload, key)
            case ApprovalRequested():
                self._index_request(event, payload, key)
            case ApprovalGranted() | ApprovalRejected():
                self.index_answer(event)
            case InputRequested() if (
                payload.made is not None
            ):  # else the open call had its answer at once
                self.inputs[event.run_id or "", payload.step_id, payload.attempt] = event
            case InputGiven():
                self.index_input(payload.input_id, payload.action, payload.answers)
        return True

    def index_input(self, input_id: str, action: str, answers: Json) -> None:
        """Index a person's answer to a service, which may come from this command."""
        is_given = action == "accept"
        self._given[input_id] = Continuation(
            {
                name: {"action": action, "content": content} if is_given else {"action": action}
                for name, content in answers.items()
            }
        )

    def is_unfinished(self, run_id: str, step_id: str) -> bool:
        """Return whether the service left the last attempt of a call unfinished, and waits for a person's answer."""
        repeats = self.repeats.get((run_id, step_id), ())
        last = max((CallRetried.of(event.payload).attempt for event in repeats), default=1)
        return (run_id, step_id, last) in self.inputs

    @property
    def form_answers(self) -> dict[tuple[str, str, int], Continuation]:
        """People's answers to services, by the same keys as `inputs`."""
        found = {}
        for key, event in self.inputs.items():
            asked = InputRequested.of(event.payload)
            given = self._given.get(asked.input_id)
            if given is not None:
                found[key] = given._replace(request_state=asked.request_state)
        return found

    @property
    def open_inputs(self) -> list[Event]:
        """The unanswered requests of services for input, in order, of calls that are open."""
        return [
            event
            for (run_id, step_id, _), event in self.inputs.items()
            if InputRequested.of(event.payload).input_id not in self._given
            and self.ended.find_end(run_id, step_id) is None
        ]

    def _index_decision(self, event: Event, decided: PolicyDecided, key: ScopeKey) -> bool:
        """Index a decision. Return False for one of a person about a call in doubt, which no replay drafts again."""
        if decided.rule == IN_DOUBT:
            self.decisions[key] = event
            return False
        if event.caused_by:
            self.redeemed[event.caused_by] = event.seq or 0
        return True

    def _index_request(self, event: Event, request: ApprovalRequested, key: ScopeKey) -> None:
        """Index a request. If it is a second one for the step, earlier answers that led to no decision were invalid."""
        self.requests[request.approval_id] = event
        self._escalations.pop(event.step_id, None)
        same = [each for each in self._answered if (each.run_id, each.step_id) == key]
        self._stale.update(each.id for each in same if not self._is_used(each))

    def record_resumption(self, event: Event) -> None:
        """Index a resumption, which may be the one of this command."""
        self._resumed.append(event)

    def _index_resumption(self, event: Event, payload: RunResumed) -> None:
        self.record_resumption(event)
        if payload.changed_specs:
            self.changed = self.changed or event
        if payload.timeout_seconds is not None:
            self.timeout, self._timed_from = (
                payload.timeout_seconds,
                self.active_time.milliseconds or 0,
            )

    def _index_repeat(self, event: Event, payload: CallRetried, key: ScopeKey) -> bool:
        if payload.idempotency_key is not None:
            self.keys[key] = payload.idempotency_key
        if payload.reason == "resumed":
            self.resumptions[key] = self.resumptions.get(key, 0) + 1
            self.decisions.pop(key, None)
            return False
        self.repeats.setdefault(key, []).append(event)
        return True

    def _queue_for_replay(self, event: Event, payload: Payload) -> None:
        if payload.event.one_process_only:
            return
        self.redeemed |= dict.fromkeys(self._escalations.values(), event.seq or 0)
        self._escalations.clear()
        path = StepPath(event.step_id or "")
        if path.is_probe and payload.event.closes:
            self.probes[event.run_id, path.owner] += 1
        queues = self._probe_queues if path.in_probe else self._queues
        queues.setdefault(_matching_key(event), deque()).append(event)
        self._left += 1

    @property
    def root(self) -> str | None:
        """The id of the root run, or None for a log without a first event."""
        return self.started.run_id if self.started else None

    @property
    def timed_ms(self) -> int:
        """The milliseconds of `timeout` that are used: all active time since the limit was set."""
        return max(0, (self.active_time.milliseconds or 0) - self._timed_from)

    @property
    def full_disk_end(self) -> Event | None:
        """The last event of the run if a full disk ended it, otherwise None."""
        end = self.ended.runs.get(self.root)
        is_full = end is not None and RunTerminated.of(end.payload).status_reason == FULL_DISK
        return end if is_full else None

    @property
    def stops_early(self) -> bool:
        """Whether the log stops before the end of its run, because it was interrupted, it waits, or the disk was
        full.
        """
        return self.started is not None and self.ended.runs.get(self.root) in (
            None,
            self.full_disk_end,
        )

    @property
    def approvals(self) -> tuple[ApprovalAnswer, ...]:
        """People's answers in order, except those that were invalid when they were used."""
        return tuple(
            answer_from_events(request, event, used=self._is_used(event))._replace(
                continued_at=self._find_continuation(event)
            )
            for event in self._answered
            if event.id not in self._stale and (request := self._find_request(event)) is not None
        )

    def _find_request(self, answer: Event) -> Event | None:
        """Return the request that a person answered. An approval transferred by a rerun contains its own description,
        so it is returned itself.
        """
        if Approval.of(answer.payload).taken_from is not None:
            return answer
        return self.requests.get(find_request_id(answer))

    def unused_grants(self, may_have_left: Callable[[LogIndex, Event], bool]) -> list[Grant]:
        """Return the approvals of this log whose call cannot have left, in order.

        Approvals of a step with a rejection are excluded, and so are those that this run received from another one.
        `may_have_left` returns whether the call of a write-ahead record may have left.
        """
        rejected = {
            (event.run_id, event.step_id)
            for event in self._answered
            if event.event_type == ApprovalRejected.event.name
        }
        found = []
        for event in self._answered:
            key, request = (event.run_id, event.step_id), self.requests.get(find_request_id(event))
            intent = self.intents.get(key)
            is_spent = key in rejected or event.id in self._stale
            if request is None or is_spent or (intent and may_have_left(self, intent)):
                continue
            found.append(Grant(request, event, Approval.of(event.payload)))
        return found

    def _find_continuation(self, answer: Event) -> str:
        """Return the time when the run continued after an answer that was recorded without continuing it. That is the
        latest resumption before the answer was used. Empty for any other answer.
        """
        if not Approval.of(answer.payload).deferred:
            return ""
        given, used = answer.seq or 0, self.redeemed.get(answer.id)
        later = [
            event.timestamp
            for event in self._resumed
            if (event.seq or 0) > given and (used is None or (event.seq or 0) < used)
        ]
        return later[-1] if later else ""

    def index_answer(self, event: Event) -> None:
        """Index a person's answer, which may come from this command. Its request is no longer open."""
        self._answered.append(event)
        if Approval.of(event.payload).capability == "":
            self._escalations[event.step_id] = event.id

    @property
    def unused_answers(self) -> list[tuple[Event, Event]]:
        """The requests that were answered without continuing the run since, each with its answer."""
        return [
            (request, event)
            for event in self._answered
            if Approval.of(event.payload).deferred
            and not self._is_used(event)
            and event.id not in self._stale
            and (request := self._find_request(event)) is not None
        ]

    @property
    def answered_requests(self) -> list[tuple[Event, Event]]:
        """All requests that were answered, each with its answer, in order."""
        found = ((self._find_request(event), event) for event in self._answered)
        return [(request, event) for request, event in found if request is not None]

    @property
    def open_requests(self) -> list[Event]:
        """The unanswered requests for approval, only the latest of each step."""
        done = {find_request_id(event) for event in self._answered}
        latest = {e.step_id: e for id, e in self.requests.items() if id not in done}
        return list(latest.values())

    @property
    def requested_actions(self) -> dict[str, RequestedAction]:
        """The latest request for approval by step path, unless the step made a call after it."""
        waiting = (event for event in self.requests.values() if not self._is_used(event))
        return {event.step_id or "": action_from_request(event) for event in waiting}

    def _is_used(self, answer: Event) -> bool:
        """Return whether work that an answer approved has started after the answer."""
        if answer.id in self.redeemed:
            return True
        intent = self.intents.get((answer.run_id, answer.step_id))
        closing = self.closings.get((answer.run_id, answer.step_id))
        return any(e is not None and (e.seq or 0) > (answer.seq or 0) for e in (intent, closing))

    @property
    def gates_passed(self) -> list[str]:
        """The step paths of gates whose positive answer still applies: of a pre-gate while its call has no
        answer, of a post-gate while its step is open.

        A gate that refused is not included, since a stricter spec would not change its answer.
        """
        found = []
        for run_id, path in {**self.closings, **self.answers}:
            gate = StepPath(path or "")
            gone = gate.is_gate_before and (run_id, gate.owner) in self.answered_at
            if gate.is_gate and not gone and self.ended.find_end(run_id, gate.owner) is None:
                output = self._find_output((run_id, path))
                if isinstance(output, dict) and output.get("allowed") is not False:
                    found.append(path or "")
        return found

    @property
    def results(self) -> dict[str, ReusedResult]:
        """The results of the root's completed steps, by step path."""
        return {
            step_id or "": _build_reused_result(
                StepFinished.of(closing.payload),
                {"episode": closing.episode_id, "event": closing.id, "at": closing.timestamp},
            )
            for (run_id, step_id), closing in self.closings.items()
            if run_id == self.root and closing.event_type == "step.completed"
        }

    @property
    def result_source_by_step(self) -> dict[str, str]:
        """The source of each step's result, by step path. The source is the event of the reused earlier call, or the
        idempotency key of the call.
        """
        made = {
            step: StepStarted.of(event.payload).idempotency_key
            for (_, step), event in self.intents.items()
        }
        origins = {
            step: _find_origin(StepFinished.of(event.payload))
            for (_, step), event in self.closings.items()
        }
        taken = {step: origin.event for step, origin in origins.items()}
        every = [*made.items(), *taken.items()]
        return {step: name for step, name in every if step is not None and name}

    @property
    def reused(self) -> dict[str, ReusedResult]:
        """The results of an earlier run that this run reused, or would have reused."""
        if self.started is None:
            return {}
        start = RunStarted.of(self.started.payload)
        taken_over, calls = start.taken_over, start.effects
        marked = {
            path
            for (run, path), c in self.closings.items()
            # If only the answer of a call was reused, the step itself did the other work.
            if run == self.root
            and "reused_from" in c.payload
            and path not in calls.keys() - taken_over.keys()
        }
        done = {path: result for path, result in self.results.items() if path in marked}
        earlier = {
            path: _build_reused_result(StepFinished.of(result))
            for path, result in taken_over.items()
        }
        return earlier | done

    def wrote_at(self, run_id: str, step_id: str) -> int | None:
        """Return the position of a step's writes, or None if the step did not end with writes."""
        closing = self.closings.get((run_id, step_id))
        if closing is None or row_of(closing.event_type).fails:
            return None
        reason = StepFinished.of(closing.payload).reason
        return None if reason in ("cancelled", "dependency") else closing.seq

    def take_recorded_event(self, draft: Draft) -> Event | None:
        """Remove and return the next recorded event that matches this draft, or None if no event is left."""
        slot = _matching_key(draft)
        queue = self._queues.get(slot) or self._probe_queues.get(slot)
        if not queue:
            return None
        self._left -= 1
        return queue.popleft()

    @property
    def is_passed(self) -> bool:
        """Whether a run has drafted all events of the log again, and no person, no signal and no changed spec decided
        in it.
        """
        ended = self.ended
        has_decisions = self.requests or self.inputs or self.decisions or self.changed
        return not (self._left or has_decisions or ended.aborting or ended.has_cancelled)

    @property
    def open_calls(self) -> set[ScopeKey]:
        """The steps whose call is begun and that have no closing event."""
        open_steps = self.intents.keys() - self.closings.keys()
        return {key for key in open_steps if StepStarted.of(self.intents[key].payload).capability}

    def next_recorded(
        self, event_type: str, run_id: str, path: str | None, cause: str | None
    ) -> Event | None:
        """Return the recorded event that the next draft of this type will match, or None. The event stays in the
        index.
        """
        answer = cause if event_type == "policy.decided" else None
        queue = self._queues.get((event_type, run_id, path, answer))
        return queue[0] if queue else None

    def did_not_leave(self, attempt: CallAttempt) -> bool:
        """Return whether the request of an attempt did not leave: the log has no intent, or a result that proves it."""
        _, run_id, step_id, number = attempt
        key = (run_id, step_id)
        numbers = {CallRetried.of(event.payload).attempt for event in self.repeats.get(key, ())}
        if number not in numbers and not (number == 1 and key in self.intents):
            return True
        if (run_id, step_id, number) in self.inputs:
            return True  # the call is not completed: its next attempt reserves for it
        result = self.result(run_id, step_id, number)
        return result is not None and result.error is not None and result.error.left is False

    @property
    def unmatched(self) -> list[Event]:
        """Recorded events that no draft has matched, in order."""
        left = [event for queue in self._queues.values() for event in queue]
        return sorted(left, key=lambda event: event.seq or 0)

    def result(self, run_id: str, step_id: str, number: int) -> AttemptResult | None:
        """Return the recorded result of an attempt, or None if the log has none."""
        key = (run_id, step_id)
        asked = self.inputs.get((run_id, step_id, number))
        if asked is not None:
            return AttemptResult(error=_demand_from(InputRequested.of(asked.payload)))
        return (
            self._result_from_attempts(key, number)
            or self._result_from_repeat(key, number)
            or self._result_from_older_log(key, number)
        )

    def _result_from_attempts(self, key: ScopeKey, number: int) -> AttemptResult | None:
        """Return the result of an attempt from the list of attempts in the closing event, or in the early answer."""
        last = self._find_closing(key) or self.answers.get(key)
        recorded = last.attempts or () if last else ()
        attempts = [each for each in recorded if each.status != "skipped"]
        if number > len(attempts):
            return None
        return self._result_from_closing_event(key, attempts[number - 1])

    def _result_from_repeat(self, key: ScopeKey, number: int) -> AttemptResult | None:
        """Return the error of an attempt from the event of the attempt that followed it."""
        for event in self.repeats.get(key, ()):
            repeat = CallRetried.of(event.payload)
            if repeat.attempt == number + 1:
                return AttemptResult(error=error_of(repeat.error or {}))
        return None

    def _result_from_older_log(self, key: ScopeKey, number: int) -> AttemptResult | None:
        """Return the early answer of the last attempt. Older logs do not list the attempts."""
        early = self.answers.get(key)
        if early and number == self._attempts_begun(key):
            return AttemptResult(Answer(early.output))
        return None

    def _find_closing(self, key: ScopeKey) -> StepFinished | None:
        """Return the closing payload of a step, or None if the step is open."""
        closing = self.closings.get(key)
        return StepFinished.of(closing.payload) if closing else None

    def attempt_in_doubt(self, run_id: str, step_id: str) -> int:
        """Return the number of the step's attempt that is in doubt, or 0 if there is none."""
        key = (run_id, step_id)
        begun = self._attempts_begun(key)
        if not begun or key in self.closings or self.ended.find_end(run_id, step_id) is not None:
            return 0
        return begun if self.result(run_id, step_id, begun) is None else 0

    @property
    def doubts(self) -> list[Event]:
        """The write-ahead records, in order, of calls in doubt that must not be repeated without a decision.
        Decided ones are included.
        """
        found = [
            intent
            for (run_id, step_id), intent in self.intents.items()
            if may_have_effect(StepStarted.of(intent.payload))
            and self.attempt_in_doubt(run_id or "", step_id or "")
        ]
        return sorted(found, key=lambda event: event.seq or 0)

    @property
    def open_doubts(self) -> list[Event]:
        """The write-ahead records of calls in doubt without a decision."""
        return [
            event for event in self.doubts if (event.run_id, event.step_id) not in self.decisions
        ]

    def _attempts_begun(self, key: ScopeKey) -> int:
        return (key in self.intents) + len(self.repeats.get(key, ()))

    def _result_from_closing_event(
        self, key: ScopeKey, attempt: AttemptMade
    ) -> AttemptResult | None:
        if attempt.status != "success":
            closing = self._find_closing(key)
            final = closing.error if closing else None
            is_same = final and (attempt.code, attempt.message) == (final.code, final.message)
            more = {"hint": final.hint, "reason": final.reason} if final and is_same else {}
            return AttemptResult(error=error_of({**attempt.json, **more}))
        output = self._find_output(key)
        if output is None:
            return None
        return AttemptResult(Answer(output, attempt.usage, _find_wire_record(attempt.json)))

    def _find_output(self, key: ScopeKey) -> Json | None:
        """Return the recorded output of a call, regardless of how its step ended."""
        last = self.answers.get(key) or self._find_closing(key)
        return last.output if last else None


def _demand_from(asked: InputRequested) -> InputRequiredError:
    """Return the error of an attempt that its service left unfinished."""
    made = asked.made
    error = InputRequiredError("input.required", asked.reason, left=True)
    if made is not None:
        error.record, error.usage = _find_wire_record(made.json), made.usage
    error.forms = [form.json for form in asked.forms]
    error.request_state = asked.request_state
    return error


def is_of_probe(event: Event) -> bool:
    """Return whether an event belongs to a probe. Such an event belongs to one process only, so no later run
    drafts it again.
    """
    return StepPath(event.step_id or "").in_probe


def find_request_id(answer: Event) -> str:
    """Return the id of the request that a person answered."""
    return Approval.of(answer.payload).approval_id


def may_have_effect(intent: StepStarted) -> bool:
    """Return whether a call may have had an external effect that must not be repeated."""
    return bool(intent.capability) and intent.side_effects not in HARMLESS


def _find_origin(closing: StepFinished) -> ResultOrigin:
    """Return the event from which a result was reused. Empty if this run produced the result."""
    return read_record(ResultOrigin, closing.reused_from)


def _build_reused_result(
    closing: StepFinished, place: dict[str, str] | None = None
) -> ReusedResult:
    """Return the result in a closing event, or in a first event, with its original place. `place` is used for a
    result that was not reused itself.
    """
    writes = [(parse_target(write.target), write) for write in closing.writes]
    return ReusedResult(
        closing.output or {},
        tuple(Write(target, write.strategy, write.value) for target, write in writes if target),
        _find_origin(closing).json or place or {},
    )


def _matching_key(item: Draft | Event) -> tuple[str | None, ...]:
    """Return the key by which drafts are matched with recorded events.

    The first event of a nested run has a new run id, so its key contains no run id. Each answer of a person leads to
    its own decision.
    """
    kind = "step" if row_of(item.event_type).closes else item.event_type
    answer = item.caused_by if kind == "policy.decided" else None
    return (kind, None if kind == "run.started" else item.run_id, item.step_id, answer)


def _find_wire_record(attempt: Json) -> Json | None:
    """Return the details of the network exchange in a recorded attempt, or None if there are none."""
    return {name: value for name, value in attempt.items() if name not in _OWN_OF_ATTEMPT} or None


def error_of(recorded: Json) -> RuntimeErrorBase:
    """Return the error that a recorded failure describes."""
    error = error_from_payload(recorded)
    error.record, error.usage = _find_wire_record(recorded), AttemptMade.of(recorded).usage
    return error


def located_error(recorded: RunError) -> RuntimeErrorBase:
    """Return the error that ended a recorded run, with its recorded place."""
    error = error_of(recorded.json)
    error.step_id, error.capability_id = recorded.step, recorded.capability
    error.binding_id, error.service_id = recorded.binding, recorded.service
    error.effect = recorded.effect
    return error
