"""The program of a gateway's run: its calls come from a client, one step each (docs/reference/gateway.md#session).

1. Everything here runs on the coordinator of the run. Other threads pass values with `SessionInbox.post`.
2. A call is recorded as the client made it, before anything is decided. Over a log, the recorded calls take the place
   of the client's, in their order.
3. A call that needs an approval waits for it, and other calls go on. An answer is recorded by this process, since it
   holds the log.
4. A call that may have happened waits for a person's decision as long as the session lives. Its callers get the
   doubt at once.
5. After the end of a session no call begins. Calls that wait for a person end at once. Running ones get a grace
   period; an effect that is cut off then is in doubt, and the run waits for a person.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Final

from cogcli.base.errors import (
    CogcliError,
    EffectInDoubtError,
    InputMappingError,
    RejectedError,
    RuntimeErrorBase,
)
from cogcli.base.jsonvalue import deep_copy
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.step_path import StepPath
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.envelope import Event, draft_of
from cogcli.declarations.events import PlanCreated, StepStarted
from cogcli.declarations.governance_events import ApprovalRequested
from cogcli.declarations.session_events import (
    CallRequested,
    CallWitnessed,
    SessionEnded,
    SessionEnding,
)
from cogcli.declarations.value_types import Json
from cogcli.gateway.calls import (
    CallResult,
    ClientCall,
    DoubtDecision,
    PersonAnswer,
    SessionInbox,
    SessionStop,
    WitnessReport,
)
from cogcli.gateway.tool_record import ToolRecord
from cogcli.gateway.tool_specs import OUTPUTS
from cogcli.run.answers import RequestAnswer, draft_answer, require_approvers
from cogcli.run.doubt_decisions import draft_decision
from cogcli.run.engine.call import attempt_from_answer, governed_call, record_failure
from cogcli.run.engine.context import Engine
from cogcli.run.engine.doubt import DoubtResolution, find_replacement_answer
from cogcli.run.engine.effects import (
    AwaitWake,
    Cancel,
    Cancelled,
    Effects,
    Next,
    Posted,
    Spawn,
    Task,
    Turn,
    Wake,
)
from cogcli.run.engine.ending import end_early
from cogcli.run.engine.outcome import CallSkipped, RunOutcome
from cogcli.run.engine.output_masks import mask_answer
from cogcli.run.engine.policy import learn_facts
from cogcli.run.engine.run import Limit, RootRun, run_limit
from cogcli.run.engine.step_recorder import StepRecord
from cogcli.run.engine.tasks import GRACE_SECONDS
from cogcli.run.recorded_answers import answer_from_events
from cogcli.specs.fields import fit_values

IDLE_SECONDS: Final = 1800.0
MOST_CALLS: Final = 10_000
MOST_SECONDS: Final = 86_400.0


class SessionLimits(NamedTuple):
    """The limits after which a session is sealed."""

    idle_seconds: float = IDLE_SECONDS
    calls: int = MOST_CALLS
    seconds: float = MOST_SECONDS


NO_OTHER_LIMITS: Final = SessionLimits()
_NO_DOUBT: Final = DoubtResolution("", "")
"""Of a step without a call in doubt."""


class SessionProgram:
    """The `RunProgram` of a session. `inbox` is None over a log."""

    def __init__(
        self, inbox: SessionInbox | None = None, limits: SessionLimits = NO_OTHER_LIMITS
    ) -> None:
        self._inbox = inbox
        self._limits = limits

    def limit(self, engine: Engine) -> Limit | None:
        """Return the time limit of the run's options."""
        return run_limit(engine)

    def run(self, root: RootRun) -> Effects:
        """Make the calls of the client until its session ends."""
        desk = _Desk(root, self._inbox, self._limits)
        root.engine.parks_for_answers = True
        root.engine.observe(desk.receive_event)
        payload = PlanCreated(
            source="planner.client",
            rationale="the client of the gateway decides",
            step_records=[],
            steps=[],
        )
        root.run.emit(draft_of(payload, root.run.state.run_id, speaker="planner.client"))
        root.begin_snapshots()
        if root.engine.dispatcher is not None:
            yield Spawn(_post_recorded(root))
        if self._inbox is not None:
            self._inbox.open(root.first.episode_id or "", root.engine.loop.post)
        try:
            yield from desk.serve()
        finally:
            desk.close()
        doubt = root.engine.in_doubt
        return RunOutcome("pending" if doubt else "ok", doubt, dict(root.run.state.outputs))

    def end(self, root: RootRun, outcome: RunOutcome) -> RunOutcome:
        """Return the outcome unchanged."""
        return outcome


def _post_recorded(root: RootRun) -> Effects:
    """Post the calls of a log and the end of its session, each at its recorded position."""
    for position, value in list(_recorded_values(root.engine.sink.history())):
        yield Turn(position)
        root.engine.loop.post(value)
    yield Turn(float("inf"))
    root.engine.loop.post(SessionStop("signal"))


def _recorded_values(
    events: Iterable[Event],
) -> Iterator[tuple[int, ClientCall | WitnessReport | SessionStop]]:
    for event in events:
        if event.event_type == CallRequested.event.name:
            asked = CallRequested.of(event.payload)
            yield event.seq or 0, ClientCall(asked.tool, asked.capability, asked.input, asked.key)
        elif event.event_type == CallWitnessed.event.name:
            yield event.seq or 0, WitnessReport(CallWitnessed.of(event.payload))
        elif event.event_type == SessionEnded.event.name:
            yield event.seq or 0, SessionStop(SessionEnded.of(event.payload).reason)


class _Desk:
    """The calls of a session that are not over."""

    def __init__(self, root: RootRun, inbox: SessionInbox | None, limits: SessionLimits) -> None:
        self._root = root
        self._inbox = inbox
        self._limits = limits
        self._tasks: dict[str, Task] = {}
        self._calls: dict[str, ClientCall] = {}
        self._requests: dict[str, Event] = {}
        """The open requests for approval, by id."""
        self._intents: dict[str, Event] = {}
        """The write-ahead records of the calls that are not over, by step."""
        self._decisions: dict[str, DoubtResolution | None] = {}
        """The calls in doubt by step, each with the decision of a person."""
        self._count = 0
        self._ended = False
        self._cut_at: float | None = None
        self._over_at = time.monotonic() + limits.seconds
        self._idle_at = time.monotonic() + limits.idle_seconds

    def serve(self) -> Effects:
        """Handle calls, answers and ends of calls until the session has ended."""
        while not self._ended or self._tasks:
            event: Task | Posted | None = yield Next(posts=True, until=self._find_deadline())
            if event is None:
                yield from self._reach_deadline()
            elif isinstance(event, Posted):
                yield from self._receive_value(event.value)
            else:
                self._handle_end(event)

    def close(self) -> None:
        """Refuse all further calls, and notify the waiting callers."""
        if self._inbox is not None:
            self._inbox.close()

    def receive_event(self, event: Event) -> None:
        """Index a write-ahead record. For a request for approval, notify the caller of the waiting call."""
        if event.event_type == StepStarted.event.name and event.step_id in self._tasks:
            self._intents[event.step_id or ""] = event
        if event.event_type == ApprovalRequested.event.name and event.run_id == self._run_id:
            asked = ApprovalRequested.of(event.payload)
            step = _top_step(asked.step_id)
            for id in [id for id, each in self._requests.items() if each.step_id == event.step_id]:
                del self._requests[id]  # a second request replaces the first
            self._requests[asked.approval_id] = event
            call = self._calls.get(step)
            if call is not None:
                call.listener.on_wait(asked)

    @property
    def _run_id(self) -> str:
        return self._root.run.state.run_id

    # -- what comes in ------------------------------------------------------------------------------------------------

    def _receive_value(self, value: object) -> Effects:
        match value:
            case ClientCall() if self._ended:
                value.listener.on_missed()
            case ClientCall():
                yield from self._begin_call(value)
            case PersonAnswer():
                yield from self._apply_answer(value)
            case DoubtDecision():
                yield from self._apply_decision(value)
            case WitnessReport():
                self._root.run.emit(draft_of(value.payload, self._run_id), durable=True)
            case SessionStop() if not self._ended:
                yield from self._end_session(value.reason)

    def _begin_call(self, call: ClientCall) -> Effects:
        """Record a call and start its step."""
        run = self._root.run
        self._count += 1
        step = f"c{self._count}"
        self._idle_at = time.monotonic() + self._limits.idle_seconds
        requested = CallRequested(
            step_id=step, tool=call.tool, capability=call.capability, input=call.input, key=call.key
        )
        run.emit(draft_of(requested, self._run_id, step_id=step, speaker="client"))
        self._calls[step] = call
        call.listener.on_begin(step)
        self._tasks[step] = yield run.spawn(self._make_call(step, call), label=step, limit=None)
        if self._inbox is not None and self._count >= self._limits.calls:
            yield from self._end_session("calls")

    def _apply_answer(self, answer: PersonAnswer) -> Effects:
        """Record a person's answer, and resume the call that waits for it."""
        asked = self._requests.get(answer.approval_id)
        if asked is None:
            return
        run, engine = self._root.run, self._root.engine
        named = RequestAnswer(asked, answer.granted)
        try:
            require_approvers(
                self._root.first, [named], answer.approver, engine.signatures, engine.clock.now()
            )
        except CogcliError:
            return  # the request stays open; the command of the approver has reported the reason
        del self._requests[answer.approval_id]
        draft = draft_answer(named, answer.approver)
        event = run.emit(draft, durable=True)
        engine.approvals.add(answer_from_events(asked, event))
        call = self._calls.get(_top_step(asked.step_id))
        if call is not None:
            call.listener.on_resume()
        task = self._tasks.get(_top_step(asked.step_id))
        if task is not None:
            yield Wake(task)

    def _apply_decision(self, decision: DoubtDecision) -> Effects:
        """Record a person's decision about a call in doubt, and end the call by it."""
        step, task = decision.step_id, self._tasks.get(decision.step_id)
        if task is None or self._decisions.get(step, _NO_DOUBT) is not None:
            return  # the call is not in doubt: the command of the person reports that no one took the decision
        if not _is_allowed(decision, self._root.engine.capabilities[self._calls[step].capability]):
            return
        by = f"human:{decision.by}"
        resolution = DoubtResolution(decision.choice, by, decision.reason, decision.output)
        self._root.run.emit(draft_decision(self._intents[step], resolution), durable=True)
        self._decisions[step] = resolution
        yield Wake(task)

    # -- calls --------------------------------------------------------------------------------------------------------

    def _make_call(self, step: str, call: ClientCall) -> Effects:
        """Make one governed call as a step of the run, and return its CallResult."""
        run = self._root.run
        capability = run.engine.capabilities[call.capability]
        kind = ToolRecord if capability.outputs.keys() == OUTPUTS.keys() else StepRecord
        record = kind(run, step, capability.id, capability, capability.step_kind)
        try:
            kept, violations = fit_values(capability.inputs, deep_copy(call.input))
            if violations:
                raise InputMappingError("input.contract", "; ".join(v.message for v in violations))
            record.set_target(capability.id, capability, kept)
            output: Json = yield from governed_call(record, capability, deep_copy(kept))
        except CallSkipped as skipped:
            return _finish_skipped(record, skipped)
        except (Cancelled, RuntimeErrorBase) as error:
            cause = record.in_doubt or error
            if isinstance(cause, EffectInDoubtError) and self._may_wait:
                return (yield from self._wait_for_decision(record, call, cause))
            return _end_failed(record, cause)
        record.finish("done", output=output)
        return CallResult(step, "done", output, is_masked=bool(record.masks))

    @property
    def _may_wait(self) -> bool:
        """Whether a call in doubt may wait for a person. It does not over a log, and after the end of the session."""
        return self._inbox is not None and not self._ended

    def _wait_for_decision(
        self, record: StepRecord, call: ClientCall, doubt: EffectInDoubtError
    ) -> Effects:
        """Report a call's doubt to its callers, and wait for a person's decision. Return the CallResult that follows.
        At the end of the session the call stays in doubt.
        """
        step = record.path
        record.locate(doubt)
        call.listener.on_end(CallResult(step, "pending", error=doubt))
        self._decisions[step] = None
        try:
            while (resolution := self._decisions[step]) is None:
                yield AwaitWake()
        except Cancelled:
            return _end_failed(record, doubt)
        finally:
            del self._decisions[step]
        return _finish_decided(record, resolution)

    # -- what ends ----------------------------------------------------------------------------------------------------

    def _handle_end(self, task: Task) -> None:
        """Pass the result of a call to its caller. Raise the error of a task that could not write the log."""
        if task.error is not None:
            raise task.error
        if task.label is None:
            return  # the feeder of a log
        step: str = task.label
        del self._tasks[step]
        self._intents.pop(step, None)
        self._calls.pop(step).listener.on_end(task.result)

    def _end_session(self, reason: SessionEnding) -> Effects:
        """End the session. Calls that wait for a person end immediately; running calls receive a grace period."""
        self._ended = True
        payload = SessionEnded(reason=reason, calls=self._count)
        self._root.run.emit(draft_of(payload, self._run_id))
        self._cut_at = time.monotonic() + GRACE_SECONDS
        waiting = {_top_step(event.step_id) for event in self._requests.values()}
        waiting |= self._decisions.keys()
        for step in [step for step in self._tasks if step in waiting]:
            yield Cancel(self._tasks[step], force=True)

    def _find_deadline(self) -> float | None:
        if self._ended:
            return self._cut_at
        if self._inbox is None:
            return None
        return self._over_at if self._tasks else min(self._idle_at, self._over_at)

    def _reach_deadline(self) -> Effects:
        if self._ended:
            self._cut_at = None
            for task in list(self._tasks.values()):
                yield Cancel(task, force=True)
        elif time.monotonic() >= self._over_at:
            yield from self._end_session("age")
        else:
            yield from self._end_session("idle")


def _is_allowed(decision: DoubtDecision, capability: Capability) -> bool:
    """Return whether a decision is one about a live call, with an output that fits the capability."""
    if decision.choice != "done":
        return decision.choice in ("skip", "fail")
    return not fit_values(capability.outputs, deep_copy(decision.output or {}))[1]


def _finish_skipped(record: StepRecord, skip: CallSkipped) -> CallResult:
    record.finish("degraded", reason="degraded", detail=str(skip))
    return CallResult(record.path, "skipped", detail=str(skip))


def _end_failed(record: StepRecord, cause: Cancelled | RuntimeErrorBase) -> CallResult:
    ending = end_early(record, cause)
    masked = bool(record.masks)
    return CallResult(record.path, ending.status, error=ending.error, is_masked=masked)


def _finish_decided(record: StepRecord, resolution: DoubtResolution) -> CallResult:
    """Close a call in doubt by a person's decision, which replaces the result of the attempt, as on
    resume.
    """
    capability, member = record.capability, record.member
    if capability is None or member is None:
        raise AssertionError("a call in doubt has a capability and a binding")
    if record.attempts and record.attempts[-1].status == "failed":
        record.attempts.pop()
    try:
        answer = find_replacement_answer(resolution, capability.id)
        if answer is None:
            raise AssertionError(f"`{resolution.choice}` is no decision about a live call")
        answer = mask_answer(answer, record.masks)
    except CallSkipped as skipped:
        return _finish_skipped(record, skipped)
    except RejectedError as error:
        record_failure(record, member, error)
        return _end_failed(record, error)
    record.attempts.append(attempt_from_answer(member, answer))
    record.count_call(answer.usage)
    learn_facts(record, capability.id, answer.output)
    record.finish("done", output=answer.output)
    return CallResult(record.path, "done", answer.output, is_masked=bool(record.masks))


def _top_step(step_id: str | None) -> str:
    """Return the step of the call that contains a step, which may be the step of a gate."""
    return StepPath(step_id or "").first().partition("@")[0]
