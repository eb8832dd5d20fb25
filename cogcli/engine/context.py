"""What the parts of a run share: the frozen options, the run tree's machinery, and each run's own state."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from cogcli.core.errors import EffectInDoubtError, RuntimeErrorBase, StepTimeoutError
from cogcli.core.ports import Clock, IdSource
from cogcli.core.step_path import StepPath
from cogcli.engine.plan import PlannedStep, StepPlan, plan_skill
from cogcli.engine.ports import CapabilityRunner, EventOrder, EventSink
from cogcli.engine.tasks import Effects, Loop, Spawn
from cogcli.events.envelope import Draft, Event
from cogcli.governance.approvals import Approvals, Asked
from cogcli.mapping.apply import ReusedResult, apply
from cogcli.specs.capability import Capability
from cogcli.specs.skill import Skill
from cogcli.state.execution import ExecutionState

if TYPE_CHECKING:
    from cogcli.engine.doubt import Doubts, EarlierCalls


class RunOptions(NamedTuple):
    """Fixed for the whole run tree, out of reach of data (docs/reference/execution.md#options)."""

    trust_level: str = "standard"
    confirmed_capabilities: frozenset[str] = frozenset()
    fail_fast: bool = True
    max_workers: int = 8
    step_timeout_seconds: float = 60.0
    timeout_seconds: float | None = None
    binds: Mapping[str, str] = {}
    required_conformance_profile: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The options as they stand in `run.started`."""
        return {
            **self._asdict(),
            "confirmed_capabilities": sorted(self.confirmed_capabilities),
            "binds": dict(self.binds),
        }


class LiveOrder:
    """The order of a run that begins: nothing of it is in a log yet."""

    def wrote_at(self, run_id: str, path: str) -> None:
        """Nowhere."""

    def before(self, run_id: str, path: str) -> None:
        """Nothing."""

    def repeated(self, run_id: str, path: str, number: int) -> bool:
        """Never."""
        return False


class Engine:
    """The machinery of one run tree."""

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
        order: EventOrder | None = None,
        doubts: Doubts | None = None,
        asked: Mapping[str, Asked] | None = None,
        earlier: EarlierCalls | None = None,
    ) -> None:
        self.sink = sink
        self.runner = runner
        self.clock = clock
        self.ids = ids
        self.options = options
        self.capabilities = capabilities
        self.skills = skills
        self.listener = listener
        self.approvals = approvals or Approvals()
        self.taken_over = taken_over or {}
        """By step path: what need not be done again."""
        self.order = order or LiveOrder()
        self.doubts = doubts
        """Who decides about calls that may have happened, where a run is gone on with."""
        self.asked = asked or {}
        """By step path: what a person was asked about before, though the step may call something else by now."""
        self.earlier = earlier
        """What the run did that this one runs again."""
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
        self.spent_ms: int | None = None
        """How long earlier sittings of a run took that is gone on with."""
        self.loop = Loop(options.max_workers)
        self._plans: dict[str, StepPlan] = {}

    def append_held(self, below: str = "") -> None:
        """Tell the ends that were held back, in order: those of this step path and its parts, or all."""
        if not self.held:
            return
        parts = tuple(f"{below}{mark}" for mark in "/#@")
        due = [each for each in self.held if not below or each.path == below or each.path.startswith(parts)]
        self.held = [each for each in self.held if each not in due]
        for each in due:
            each.run.emit(each.draft, durable=each.durable)

    @property
    def stopping(self) -> bool:
        """Whether a signal came: nothing new starts in any run of the tree."""
        return self.loop.signal is not None

    def plan_of(self, skill_id: str) -> StepPlan:
        """The plan of a skill, made once."""
        if skill_id not in self._plans:
            self._plans[skill_id] = plan_skill(self.skills[skill_id], self.capabilities, self.skills)
        return self._plans[skill_id]

    def append(self, draft: Draft, *, durable: bool = False) -> Event:
        """Append an event and tell the listener; no state is changed."""
        event = self.sink.append(draft, durable=durable)
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
    """One run of the tree: its plan, its state and where it hangs. `prefix` is empty for the root."""

    def __init__(
        self, engine: Engine, plan: StepPlan, state: ExecutionState, prefix: str, depth: int
    ) -> None:
        self.engine = engine
        self.plan = plan
        self.state = state
        self.prefix = prefix
        self.depth = depth
        self.in_doubt: EffectInDoubtError | None = None
        """An effect of this run, or of a run below it, that may have happened."""
        self.effect_left = False
        """Whether anything that must not happen twice may have happened in it or below it."""

    def path(self, step_id: str) -> str:
        """The step id as events bear it: `outer/inner` in a nested run."""
        return StepPath(self.prefix).step(step_id) if self.prefix else step_id

    def wrote_at(self, position: int) -> int | None:
        """Where a log that is told again tells of what the step at a position in plan order wrote."""
        return self.engine.order.wrote_at(self.state.run_id, self.path(self.plan.steps[position].step.id))

    def emit(self, draft: Draft, *, durable: bool = False) -> Event:
        """Append an event, tell the listener, change the state by it."""
        event = self.engine.append(draft, durable=durable)
        apply(self.state, event)
        return event

    def hold(self, path: str, draft: Draft, *, durable: bool = False) -> None:
        """Hold back how the step at this path ends, or the run nested in it."""
        self.engine.held.append(Held(self, path, draft, durable))

    def step_limit(self, planned: PlannedStep) -> float | None:
        """The seconds one invocation of a step may take; one of a nested skill is bounded only where it says so."""
        declared = planned.step.config.timeout_seconds
        targets = planned.all_targets
        if declared is not None or any(target.capability is None for target in targets):
            return declared
        longest = [self._longest_attempt(target.uses) for target in targets]
        return max([self.engine.options.step_timeout_seconds, *longest])

    def _longest_attempt(self, capability_id: str) -> float:
        try:
            chain = self.engine.runner.chain(capability_id)
        except RuntimeErrorBase:
            return 0.0  # told when the step asks for it
        return max(member.limit for member in chain.members)

    def spawn(self, steps: Effects, *, label: Any, limit: float | None) -> Spawn:
        """A child task bounded to `limit` seconds."""
        if limit is None:
            return Spawn(steps, label)
        return Spawn(
            steps,
            label,
            time.monotonic() + limit,
            lambda: StepTimeoutError("step.timeout", f"exceeded {limit:g} s"),
        )
