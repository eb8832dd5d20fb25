"""The objects that the parts of a run share: the engine of the run tree, and each run's plan and state."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from cogcli.base.calls import (
    STEP_SECONDS,
    Continuation,
    PageNotice,
    QuestionNotice,
    SampleNotice,
    SampleReply,
    SampleRequest,
    ServiceChange,
    ServiceNotice,
)
from cogcli.base.errors import CogcliError, EffectInDoubtError, RuntimeErrorBase, StepTimeoutError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.step_path import StepPath
from cogcli.base.system import Clock, IdSource, current_user
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.envelope import Draft, Event, draft_of, row_of
from cogcli.declarations.events import CallPage, CallSampled, ServiceStarted, ServiceStopped
from cogcli.declarations.governance_events import InputForm, InputGiven, InputRequested
from cogcli.declarations.options import RunOptions
from cogcli.declarations.skill_spec import Skill
from cogcli.policy.approvals import UNCHECKED, AnswerSignatures, Approvals, RequestedAction
from cogcli.run.engine.doubt import EarlierCalls
from cogcli.run.engine.effects import CallSpeed, Effects, Spawn
from cogcli.run.engine.plan import PlannedStep, StepPlan, plan_skill
from cogcli.run.engine.tasks import Loop
from cogcli.run.engine.write_order import WriteOrder
from cogcli.specs.contradictions import NO_CONTRADICTIONS, Contradictions
from cogcli.state.execution import ExecutionState
from cogcli.state.inputs import Scope
from cogcli.state.reducer import ReusedResult, apply

if TYPE_CHECKING:
    from cogcli.declarations.event_line import EventLine
    from cogcli.run.engine.plain_call import PlainCall
    from cogcli.run.engine.plan import PlainKey, PlannedStep
    from cogcli.run.engine.ports import (
        CallPolicy,
        CapabilityRunner,
        Dispatcher,
        EarlierApprovals,
        EventSink,
        LimitLedger,
        LineSink,
        SnapshotWriter,
    )
    from cogcli.run.engine.write_order import WriteOrder

    SpawnStep = Callable[["Run", PlannedStep, WriteOrder, Any], Spawn]
    """The function `run.engine.step.spawn_step`. Its last argument is a `StepStart`."""


class Fallback(NamedTuple):
    """A call that a fallback binding answered, with its step, both bindings, and the reason for the fallback."""

    step: str
    binding: str
    instead_of: str
    reason: str


class LimitAccount(NamedTuple):
    """The counters of cumulative limits, as one episode uses them."""

    ledger: LimitLedger
    episode_id: str


class Doubts(Protocol):
    """Decides about the calls of a resumed run that may have happened before the interruption."""

    def settle(self, run: Run, path: str, key: str, capability: Capability, number: int) -> Effects:
        """Decide about this attempt if it is in doubt, append the decision, and return the idempotency key to call
        with.

        The key is `key`, or a new one if the service closed `key`. A probe is called as a governed call.
        """
        ...

    def is_open(self, run_id: str, step: str) -> bool:
        """Return whether the log has a call of this step that may have happened and is undecided."""
        ...

    def first_open(self) -> EffectInDoubtError | None:
        """Return the error of the first undecided call in doubt in the log, or None."""
        ...


class Engine:
    """The objects that all runs of one tree share, such as the sink, the runner, the options and the loop."""

    def __init__(
        self,
        *,
        sink: EventSink,
        runner: CapabilityRunner,
        clock: Clock,
        ids: IdSource,
        options: RunOptions,
        capabilities: Mapping[str, Capability],
        skills: Mapping[str, Skill],
        listener: Callable[[Event], None] | None = None,
        approvals: Approvals | None = None,
        earlier_approvals: EarlierApprovals | None = None,
        taken_over: Mapping[str, ReusedResult] | None = None,
        dispatcher: Dispatcher | None = None,
        doubts: Doubts | None = None,
        requested_actions: Mapping[str, RequestedAction] | None = None,
        earlier_calls: EarlierCalls | None = None,
        policy: CallPolicy | None = None,
        contradictions: Contradictions = NO_CONTRADICTIONS,
        service_changes: deque[ServiceChange] | None = None,
        snapshots: SnapshotWriter | None = None,
        lines: LineSink | None = None,
        limits: LimitAccount | None = None,
        signatures: AnswerSignatures = UNCHECKED,
        form_answers: Mapping[tuple[str, str, int], Continuation] | None = None,
    ) -> None:
        self.sink = sink
        self._service_changes = service_changes if service_changes is not None else deque()
        """Starts and stops of services, and pages, that are not in the log yet. Calls append to it from any thread."""
        self.runner = runner
        self.clock = clock
        self.ids = ids
        self.options = options
        self.capabilities = capabilities
        self.skills = skills
        self.listener = listener
        self._ignored: frozenset[str | None] = getattr(listener, "ignored", frozenset())
        """The types of the events that the listener ignores. Plain steps do not build these events for it."""
        if policy is not None and policy.observe is not None:
            self.observe(policy.observe)
        self.approvals = approvals or Approvals()
        self.signatures = signatures
        """Verifies the signatures of answers."""
        self.form_answers = form_answers or {}
        """On resume and replay: people's answers to services, by run, step path and number of the attempt."""
        self.earlier_approvals = earlier_approvals
        """On rerun: the unused approvals of the source run. None for a replay, because its log contains the reused
        ones.
        """
        self.taken_over = taken_over or {}
        """By step path: results of an earlier episode, used instead of running the step."""
        self.dispatcher = dispatcher
        """On resume and replay: the order of the log."""
        self.doubts = doubts
        """On resume: decides about calls that may have happened."""
        self.requested_actions = requested_actions or {}
        """By step path: the pending approval request from before the specs changed. The step may call another
        capability now."""
        self.policy = policy
        """Decides about calls in addition to their safety levels. None for the default policy, which adds no rule."""
        self.limits = limits
        """The counters of the policy's limits. None if it has no limits, and for a replay."""
        self.contradictions = contradictions
        """Mismatches between the specs of lenient roots."""
        self.now = ""
        """The timestamp of the last event. Rules see it instead of a clock."""
        self.earlier_calls = earlier_calls
        """On rerun: the calls of the source run."""
        self.waits_in_doubt = True
        """Whether a run waits if it was cancelled from outside and an effect in it may have happened. A run that
        `resume --abort` closes ends instead."""
        self.parks_for_answers = False
        """Whether a call that needs an approval waits for it while the run goes on with other calls, as in a session
        of a gateway. If not, the run waits."""
        self.passes_null = False
        """Whether an absent optional `any` input is passed as null, as under the first version of the log rules."""
        self.in_doubt: EffectInDoubtError | None = None
        """The first undecided effect of the tree that may have happened."""
        self.deferred: list[DeferredEnding] = []
        """Deferred closing events of steps and nested runs that wait for a person or were cancelled by a signal or a
        time limit.

        Each is appended before the end of its enclosing scope, at the latest before the end of the root. A root that
        waits appends none of them, since a resume starts those steps again.
        """
        self.fallbacks: list[Fallback] = []
        """The calls that a fallback binding answered, in order."""
        self.not_stored: CogcliError | None = None
        """The error that kept a part of the learned facts out of the store. None if all are stored."""
        self.spent_ms: int | None = None
        """On resume: milliseconds of active time before this session. None for a new run."""
        self.timeout_seconds = options.timeout
        """The time limit of the root run. On resume the limit that was given last."""
        self.timed_ms = 0
        """On resume: milliseconds of that limit that are already used."""
        self.snapshots = snapshots
        """Writes `state.json` while the run is alive. None for a replay and for a run that is being closed."""
        self.loop = Loop(options.max_workers, live=self.is_live, snapshots=snapshots)
        self._plans: dict[str, StepPlan] = {}
        self._attempt_seconds: dict[str, float] = {}
        self._call_speeds: dict[str, CallSpeed] = {}
        self._allows_plain_steps = not (
            earlier_calls is not None or requested_actions or taken_over or contradictions.lenient
        )
        follows_log = dispatcher is not None or doubts is not None
        self.lines = lines if self._allows_plain_steps and not follows_log else None
        """The log, for plain steps. None if each step of this run uses the general path."""

    def leave_log(self, sink: EventSink, lines: LineSink) -> None:
        """Continue as a new run does, because nothing of the log is left that the run follows."""
        self.sink, self.dispatcher, self.doubts = sink, None, None
        self.lines = lines if self._allows_plain_steps else None

    def append_deferred(self, below: str = "") -> None:
        """Append the deferred closing events in order: those of this step path and of the paths below it. Without a
        path append all of them.
        """
        if not self.deferred:
            return
        parts = tuple(f"{below}{mark}" for mark in "/#@")
        due = [
            each
            for each in self.deferred
            if not below or each.path == below or each.path.startswith(parts)
        ]
        self.deferred = [each for each in self.deferred if each not in due]
        for each in due:
            each.run.emit(each.draft, durable=each.durable)

    def append_service_changes(self, run_id: str, *, has_ended: bool = False) -> None:
        """Append the pending starts and stops of services, the pages that calls have read, the answered
        questions and the requests to the model. A change without a call is assigned to the run `run_id`. If the run
        `has_ended`, what an abandoned call reports late is dropped: only services stop after the end of a run.
        """
        while self._service_changes:
            change = self._service_changes.popleft()
            is_stop = isinstance(change, ServiceNotice) and not change.step_id
            for draft in self._change_drafts(change, run_id) if is_stop or not has_ended else ():
                self._append_to_sink(draft)

    def _change_drafts(self, change: ServiceChange, run_id: str) -> Sequence[Draft]:
        """Return the events of a change."""
        if isinstance(change, PageNotice):
            read = CallPage(**change.to_payload())
            return (draft_of(read, change.run_id, step_id=change.step_id),)
        if isinstance(change, QuestionNotice):
            return _answered_question_drafts(change, f"in_{self.ids.ulid()}")
        if isinstance(change, SampleNotice):
            return (_sample_draft(change),)
        service, protocol = change.service_id, change.protocol
        if change.step_id:
            started = ServiceStarted(service=service, protocol=protocol)
            return (draft_of(started, change.run_id, step_id=change.step_id),)
        stopped = ServiceStopped(service=service, protocol=protocol, reason=change.reason or None)
        return (draft_of(stopped, run_id),)

    def observe(self, apply: Callable[[Event], None]) -> None:
        """Pass each further event to `apply` before the listener receives it."""
        before = self.listener
        self._ignored = frozenset()

        def both(event: Event) -> None:
            apply(event)
            if before is not None:
                before(event)

        self.listener = both

    @property
    def is_live(self) -> bool:
        """Whether calls without a recorded answer are sent to services."""
        return self.dispatcher is None or self.dispatcher.live

    @property
    def stopping(self) -> bool:
        """Whether a signal was received, so that no run of the tree starts further work."""
        return self.loop.signal is not None

    def plan_of(self, skill_id: str) -> StepPlan:
        """Return the plan of a skill. Each plan is computed once."""
        if skill_id not in self._plans:
            self._plans[skill_id] = plan_skill(
                self.skills[skill_id], self.capabilities, self.skills
            )
        return self._plans[skill_id]

    def append_line(
        self, lines: LineSink, run: Run, line: EventLine, values: tuple[object, ...], names: tuple[str, ...] = ()
    ) -> str | None:  # fmt: skip
        """Append an event of a plain step of `run` as `append` does, and return its id. Return None if the event must
        take the general path.
        """
        if self._service_changes:
            self.append_service_changes(run.state.run_id)
        identifier = lines.append_line(line, values, names)
        if identifier is not None:
            self.now = run.state.updated_at = line.members["timestamp"]
            if self.listener is not None and line.event_type not in self._ignored:
                self.listener(line.to_event())
        return identifier

    def find_call_speed(self, capability_id: str) -> CallSpeed:
        """Return the speed record of a capability's calls."""
        speed = self._call_speeds.get(capability_id)
        if speed is None:
            speed = self._call_speeds[capability_id] = CallSpeed()
        return speed

    def longest_attempt(self, capability_id: str) -> float:
        """Return the longest time limit in seconds of one attempt at a capability.

        Return 0 if the capability has no binding, since the step that calls it raises that error.
        """
        known = self._attempt_seconds.get(capability_id)
        if known is None:
            try:
                members = self.runner.chain(capability_id).members
            except RuntimeErrorBase:
                return 0.0
            known = max((member.limit for member in members), default=0.0)
            self._attempt_seconds[capability_id] = known
        return known

    def append(self, draft: Draft, *, durable: bool = False) -> Event:
        """Append an event and pass it to the listener, but do not apply it to the state. Raise the errors of the
        sink.
        """
        if self._service_changes:
            self.append_service_changes(draft.run_id)
        return self._append_to_sink(draft, durable=durable)

    def _append_to_sink(self, draft: Draft, *, durable: bool = False) -> Event:
        event = self.sink.append(draft, durable=durable)
        if not row_of(draft.event_type).one_process_only:  # a replay does not see those
            self.now = event.timestamp
        if self.listener is not None:
            self.listener(event)
        return event


def _answered_question_drafts(notice: QuestionNotice, input_id: str) -> tuple[Draft, Draft]:
    """Return the events of a question that a person at the terminal answered inside an open call."""
    asked, answer, user = notice.asked, notice.answer, current_user()
    fields = InputForm.fields_of_schema(asked.schema)
    form = InputForm(name=_ONLY, message=asked.message, fields=fields, url=asked.url or None)
    requested = InputRequested(
        input_id=input_id,
        step_id=asked.step_id,
        capability=asked.capability_id,
        binding=notice.binding_id,
        service=asked.service_id,
        attempt=notice.attempt,
        forms=[form],
    )
    given = InputGiven(
        input_id=input_id,
        step_id=asked.step_id,
        action=answer.action,
        answers={_ONLY: answer.content or {}},
        by=answer.by,
        os_uid=user.uid,
        os_user=user.name or None,
    )
    step = asked.step_id
    return (
        draft_of(requested, notice.run_id, step_id=step),
        draft_of(given, notice.run_id, step_id=step, speaker=f"human:{answer.by}"),
    )


def _sample_draft(notice: SampleNotice) -> Draft:
    """Return the event of a request of a service to the model."""
    asked = notice.request or SampleRequest((), 0)
    reply = notice.reply or SampleReply("", "", "", 0, 0)
    sampled = CallSampled(
        step_id=notice.step_id,
        capability=notice.capability_id,
        binding=notice.binding_id,
        service=notice.service_id,
        attempt=notice.attempt,
        number=notice.number,
        messages=[{"role": role, "text": text} for role, text in asked.messages],
        max_tokens=asked.max_tokens or None,
        code=notice.code or None,
        message=notice.message or None,
        text=None if notice.code else reply.text,
        finish=None if notice.code else reply.finish,
        model=reply.model or None,
        tokens_in=reply.tokens_in,
        tokens_out=reply.tokens_out,
        cost_microusd=reply.cost_microusd,
        duration_ms=notice.duration_ms,
    )
    return draft_of(sampled, notice.run_id, step_id=notice.step_id)


_ONLY: Final = "question"
"""The name of the form of a question inside an open call, which has none of its own."""


class DeferredEnding(NamedTuple):
    """A deferred closing event of a step or a nested run. It is appended only if the root run does not wait."""

    run: Run
    path: str
    draft: Draft
    durable: bool


class Run:
    """One run of the tree, with its plan and its state. `prefix` is the path of the step that started it, empty for the
    root.
    """

    def __init__(
        self,
        engine: Engine,
        plan: StepPlan,
        state: ExecutionState,
        prefix: str,
        depth: int,
        spawn_step: SpawnStep,
        enclosing_tools: tuple[str, ...] = (),
    ) -> None:
        self.engine = engine
        self.plan = plan
        self.state = state
        self.scope = Scope(state)
        """The scope for the inputs of its steps, outside of loops."""
        self.prefix = prefix
        self.depth = depth
        self.spawn_step = spawn_step
        self.enclosing_tools = enclosing_tools
        """The skill tools of a pack that contain this run, as `skill:ID`."""
        self.in_doubt: EffectInDoubtError | None = None
        """An effect of this run, or of a run below it, that may have happened and is undecided."""
        self.effect_left = False
        """Whether a call that must not be repeated may have happened in this run or below it."""
        allows_plain_steps = not plan.writes_after and engine.options.step_timeout is None
        self.plain_calls: dict[PlainKey, PlainCall | Literal[False] | None] | None = (
            {} if allows_plain_steps else None
        )
        """The cache of `run.engine.plain_invocation` between the calls of this run. None if all use the general
        path.
        """

    @property
    def is_lenient(self) -> bool:
        """Whether the skill of this run is in a lenient root."""
        return self.engine.contradictions.holds_skill(self.plan.skill.id)

    def path(self, step_id: str) -> str:
        """Return the step path of a step id: `outer/inner` in a nested run."""
        return StepPath(self.prefix).step(step_id) if self.prefix else step_id

    def wrote_at(self, position: int) -> int | None:
        """On resume and replay, return the log position of the writes of the step at this position in plan order.

        Return None in a new run, and if the log has no writes of the step.
        """
        dispatcher = self.engine.dispatcher
        if dispatcher is None:
            return None
        return dispatcher.wrote_at(self.state.run_id, self.path(self.plan.steps[position].step.id))

    def emit(self, draft: Draft, *, durable: bool = False) -> Event:
        """Append an event, pass it to the listener, and apply it to the state."""
        event = self.engine.append(draft, durable=durable)
        apply(self.state, event)
        return event

    def defer_ending(self, path: str, draft: Draft, *, durable: bool = False) -> None:
        """Defer the closing event of the step at this path, or of the run nested in it."""
        self.engine.deferred.append(DeferredEnding(self, path, draft, durable))

    def step_limit(self, planned: PlannedStep, path: str) -> float | None:
        """Return the time limit in seconds of one invocation of a step, or None for no limit.

        The limit is the smaller of the step's and the run's limits. If neither is set, it is 60, or more if one attempt
        may take longer. A nested skill has only the limit that its step declares. An invocation that the log records as
        cancelled has no limit, since on replay it would reach the limit too early.
        """
        dispatcher = self.engine.dispatcher
        if dispatcher is not None and dispatcher.is_cancelled(self.state.run_id, path):
            return None
        if any(target.capability is None for target in planned.all_targets):
            return planned.step.config.timeout_seconds
        given = self.effective_limit(planned)
        return self._longest_attempt_seconds(planned) if given is None else given

    def effective_limit(self, planned: PlannedStep) -> float | None:
        """Return the smaller of the step's and the run's limits in seconds, or None if neither is set."""
        declared, most = planned.step.config.timeout_seconds, self.engine.options.step_timeout
        if declared is None or most is None:
            return most if declared is None else declared
        return min(declared, most)

    def _longest_attempt_seconds(self, planned: PlannedStep) -> float:
        limit = STEP_SECONDS
        for target in planned.all_targets:
            limit = max(limit, self.engine.longest_attempt(target.uses))
        return limit

    def spawn(
        self, steps: Effects, *, label: Any, limit: float | None, at_once: bool = False
    ) -> Spawn:
        """Return the effect that starts a child task with a time limit of `limit` seconds."""
        if limit is None:
            return Spawn(steps, label, at_once=at_once)

        def timeout_error() -> StepTimeoutError:
            return StepTimeoutError("step.timeout", f"exceeded {limit:g} s")

        return Spawn(steps, label, time.monotonic() + limit, timeout_error, at_once)
