"""What the parts of a run share: its frozen options, the engine of the run tree, and the state of each run."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from cogcli.base.calls import STEP_SECONDS, ServiceNotice
from cogcli.base.errors import CogcliError, EffectInDoubtError, RuntimeErrorBase, StepTimeoutError
from cogcli.base.step_path import StepPath
from cogcli.base.system import Clock, IdSource
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.envelope import Draft, Event, draft_of
from cogcli.declarations.events import ServiceStarted, ServiceStopped, row_of
from cogcli.declarations.options import RunOptions
from cogcli.declarations.skill_spec import Skill
from cogcli.policy.approvals import Approvals, Asked
from cogcli.run.engine.doubt import EarlierCalls
from cogcli.run.engine.plan import PlannedStep, StepPlan, plan_skill
from cogcli.run.engine.ports import (
    CallPolicy,
    CapabilityRunner,
    Dispatcher,
    EventSink,
    SnapshotWriter,
)
from cogcli.run.engine.tasks import Effects, Loop, Spawn
from cogcli.run.engine.write_order import WriteOrder
from cogcli.specs.contradictions import NO_CONTRADICTIONS, Contradictions
from cogcli.state.execution import ExecutionState
from cogcli.state.reducer import ReusedResult, apply


class Fallback(NamedTuple):
    """A call that another binding answered than the first of its chain: the step, both bindings, and why."""

    step: str
    binding: str
    instead_of: str
    reason: str


class Doubts(Protocol):
    """The calls of a resumed run that may have happened before."""

    def settle(self, run: Run, path: str, key: str, capability: Capability, number: int) -> Effects:
        """Decide about this attempt of a step, if it is in doubt, and append that; gives the idempotency key that it is
        sent with, `key` unless the service has closed that. A probe that it calls is a governed call."""
        ...

    def open(self, run_id: str, step: str) -> bool:
        """Whether the log has an undecided call of this step that may have happened."""
        ...

    def first_open(self) -> EffectInDoubtError | None:
        """The error of the first such call in the log; None without one."""
        ...


class Engine:
    """What all runs of one tree use: sink, runner, options, specs, loop."""

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
        taken_over: Mapping[str, ReusedResult] | None = None,
        dispatcher: Dispatcher | None = None,
        doubts: Doubts | None = None,
        asked: Mapping[str, Asked] | None = None,
        earlier: EarlierCalls | None = None,
        policy: CallPolicy | None = None,
        contradictions: Contradictions = NO_CONTRADICTIONS,
        service_changes: deque[ServiceNotice] | None = None,
        snapshots: SnapshotWriter | None = None,
    ) -> None:
        self.sink = sink
        self._service_changes = service_changes if service_changes is not None else deque()
        """Starts and stops of services that are not in the log yet; invokers append to it from any thread."""
        self.runner = runner
        self.clock = clock
        self.ids = ids
        self.options = options
        self.capabilities = capabilities
        self.skills = skills
        self.listener = listener
        if policy is not None and policy.observe is not None:
            self.observe(policy.observe)
        self.approvals = approvals or Approvals()
        self.taken_over = taken_over or {}
        """By step path: results of an earlier episode, used instead of running the step."""
        self.dispatcher = dispatcher
        """On resume and replay: the order of the log."""
        self.doubts = doubts
        """On resume: decides about calls that may have happened."""
        self.asked = asked or {}
        """By step path: what a person was asked before the specs changed; the step may call another capability now."""
        self.policy = policy
        """What decides about calls beside their safety levels; None for the default policy, which leaves it to them."""
        self.contradictions = contradictions
        """What specs of lenient roots declare that does not fit together."""
        self.now = ""
        """The timestamp of the last event, which rules see instead of a clock."""
        self.earlier = earlier
        """On rerun: the calls of the source run."""
        self.waits_in_doubt = True
        """Whether a run that is cut off from outside waits where an effect in it may have happened; one that is closed
        ends instead."""
        self.passes_null = False
        """Whether an optional `any` that was not given is null for the step, as it was under the first rules."""
        self.in_doubt: EffectInDoubtError | None = None
        """The first effect of the tree that may have happened and that nobody has decided about."""
        self.held: list[Held] = []
        """How what was cut off from outside, or waits for a person, ends: appended before what it is a part of ends, at
        the latest the root. A root that waits appends none of it: whoever resumes it begins that again."""
        self.fallbacks: list[Fallback] = []
        """The calls that another binding answered than the first of their chain, in order."""
        self.not_stored: CogcliError | None = None
        """Why the store lacks a part of what the run learned; None if it has all of it."""
        self.spent_ms: int | None = None
        """On resume: milliseconds that the run took before."""
        self.timeout_seconds = options.timeout
        """The limit of time of the root run; on resume the one that was given last."""
        self.timed_ms = 0
        """On resume: milliseconds of that limit that were used before."""
        self.snapshots = snapshots
        """Writes `state.json` while the run is alive; None for a replay, and for a run that is being closed."""
        self.loop = Loop(options.max_workers, live=self.is_live, snapshots=snapshots)
        self._plans: dict[str, StepPlan] = {}

    def append_held(self, below: str = "") -> None:
        """Append the ends that were held back, in order: those of this step path and its parts, or all."""
        if not self.held:
            return
        parts = tuple(f"{below}{mark}" for mark in "/#@")
        due = [
            each
            for each in self.held
            if not below or each.path == below or each.path.startswith(parts)
        ]
        self.held = [each for each in self.held if each not in due]
        for each in due:
            each.run.emit(each.draft, durable=each.durable)

    def append_service_changes(self, run_id: str) -> None:
        """Append the starts and stops of services so far; `run_id` is the run of those that no call caused."""
        while self._service_changes:
            change = self._service_changes.popleft()
            service, protocol = change.service_id, change.protocol
            if change.step_id:
                started = ServiceStarted(service=service, protocol=protocol)
                self._append(draft_of(started, change.run_id, step_id=change.step_id))
            else:
                reason = change.reason or None
                stopped = ServiceStopped(service=service, protocol=protocol, reason=reason)
                self._append(draft_of(stopped, run_id))

    def observe(self, apply: Callable[[Event], None]) -> None:
        """Pass each further event to `apply` as well, before the listener."""
        before = self.listener

        def both(event: Event) -> None:
            apply(event)
            if before is not None:
                before(event)

        self.listener = both

    @property
    def is_live(self) -> bool:
        """Whether calls that no log has are made."""
        return self.dispatcher is None or self.dispatcher.live

    @property
    def stopping(self) -> bool:
        """Whether a signal came: nothing new starts in any run of the tree."""
        return self.loop.signal is not None

    def plan_of(self, skill_id: str) -> StepPlan:
        """The plan of a skill, made once."""
        if skill_id not in self._plans:
            self._plans[skill_id] = plan_skill(
                self.skills[skill_id], self.capabilities, self.skills
            )
        return self._plans[skill_id]

    def append(self, draft: Draft, *, durable: bool = False) -> Event:
        """Append an event and pass it to the listener; no state is changed. Raises what the sink raises."""
        if self._service_changes:
            self.append_service_changes(draft.run_id)
        return self._append(draft, durable=durable)

    def _append(self, draft: Draft, *, durable: bool = False) -> Event:
        event = self.sink.append(draft, durable=durable)
        if not row_of(draft.event_type).one_process_only:  # no replay sees those
            self.now = event.timestamp
        if self.listener is not None:
            self.listener(event)
        return event


class Held(NamedTuple):
    """An event that ends a step or a nested run, held back until it is decided whether the run waits."""

    run: Run
    path: str
    draft: Draft
    durable: bool


class Run:
    """One run of the tree: its plan and its state. `prefix` is the path of the step that it is nested in, empty for the
    root."""

    def __init__(
        self,
        engine: Engine,
        plan: StepPlan,
        state: ExecutionState,
        prefix: str,
        depth: int,
        run_step: Callable[[Run, PlannedStep, WriteOrder], Effects],
        inside: tuple[str, ...] = (),
    ) -> None:
        self.engine = engine
        self.plan = plan
        self.state = state
        self.prefix = prefix
        self.depth = depth
        self.run_step = run_step
        self.inside = inside
        """The skill tools of a pack that it is in, as `skill:ID`."""
        self.in_doubt: EffectInDoubtError | None = None
        """An effect of this run, or of a run below it, that may have happened."""
        self.effect_left = False
        """Whether anything that must not happen twice may have happened in it or below it."""

    @property
    def is_lenient(self) -> bool:
        """Whether its skill is of a lenient root."""
        return self.engine.contradictions.holds_skill(self.plan.skill.id)

    def path(self, step_id: str) -> str:
        """The step id as events bear it: `outer/inner` in a nested run."""
        return StepPath(self.prefix).step(step_id) if self.prefix else step_id

    def wrote_at(self, position: int) -> int | None:
        """On resume and replay: the log position of the writes of the step at a position in plan order; else None."""
        dispatcher = self.engine.dispatcher
        if dispatcher is None:
            return None
        return dispatcher.wrote_at(self.state.run_id, self.path(self.plan.steps[position].step.id))

    def emit(self, draft: Draft, *, durable: bool = False) -> Event:
        """Append an event, pass it to the listener, and apply it to the state."""
        event = self.engine.append(draft, durable=durable)
        apply(self.state, event)
        return event

    def hold(self, path: str, draft: Draft, *, durable: bool = False) -> None:
        """Hold back the event that ends the step at this path, or the run nested in it."""
        self.engine.held.append(Held(self, path, draft, durable))

    def step_limit(self, planned: PlannedStep, path: str) -> float | None:
        """The seconds one invocation of a step may take: the least that the step and the options of the run give, else
        60, or more where one attempt may take more. One of a nested skill is bounded only where the step says so, one
        that the log has as cut off from outside is not: on replay it would reach its own limit first."""
        dispatcher = self.engine.dispatcher
        if dispatcher is not None and dispatcher.is_cut_off(self.state.run_id, path):
            return None
        declared, most = (
            planned.step.config.timeout_seconds,
            self.engine.options.step_timeout,
        )
        if any(target.capability is None for target in planned.all_targets):
            return declared
        if declared is None and most is None:
            return self._longest_attempt(planned)
        return min(limit for limit in (declared, most) if limit is not None)

    def _longest_attempt(self, planned: PlannedStep) -> float:
        limit = STEP_SECONDS
        for target in planned.all_targets:
            try:
                chain = self.engine.runner.chain(target.uses)
            except RuntimeErrorBase:
                continue  # raised again when the step asks for it
            limit = max(limit, *[member.limit for member in chain.members])
        return limit

    def spawn(self, steps: Effects, *, label: Any, limit: float | None) -> Spawn:
        """A child task bounded to `limit` seconds."""
        if limit is None:
            return Spawn(steps, label)

        def late() -> StepTimeoutError:
            return StepTimeoutError("step.timeout", f"exceeded {limit:g} s")

        return Spawn(steps, label, time.monotonic() + limit, late)
