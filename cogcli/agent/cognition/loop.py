"""The cognitive loop: turns over the layers of ORDER until one ends the run (docs/reference/agent-run.md#loop).

The loop is the program of the engine's root run. Plans are driven in the root run, so journal, approvals, resume and
replay are those of any run. Decisions depend on recorded events alone; the time is that of the last event.
"""

from __future__ import annotations

import time
from typing import Final

from cogcli.agent.cognition.ends import LoopEnding, external_ending
from cogcli.agent.cognition.invocation import Invocation
from cogcli.agent.cognition.model_planner import ModelPlanner
from cogcli.agent.cognition.planner import TEMPLATE, Planner
from cogcli.agent.cognition.progress import Finish, Progress, Remember
from cogcli.agent.cognition.reasoning import ModelAccess, Reasoning, initial_state
from cogcli.agent.cognition.turn import pass_turn
from cogcli.agent.cognition.turn_record import milliseconds
from cogcli.base.errors import BudgetExceededError, CogcliError, PolicyApprovalError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.redact import BY_NAME
from cogcli.declarations.agent_events import DecisionRecorded
from cogcli.declarations.envelope import draft_of
from cogcli.declarations.events import RunHeartbeat
from cogcli.declarations.governance_events import BudgetExceeded
from cogcli.declarations.run_start import LATEST_EDITION
from cogcli.episode.decision import decision_of_log
from cogcli.policy.budgets import budget_hint
from cogcli.run.engine.context import Engine
from cogcli.run.engine.effects import AwaitWake, Effects, Sleep, Spawn
from cogcli.run.engine.outcome import RunOutcome
from cogcli.run.engine.run import Limit, RootRun, run_limit
from cogcli.run.prepare import AgentRun

WALL_CLOCK: Final = "wall_clock_ms"
"""The budget of active time."""
MIN_HEARTBEAT_MS: Final = 100
"""The least interval of signs of life, since each is an event of the log."""


class Stores(NamedTuple):
    """The functions that store the turns and the end of a run."""

    remember: Remember
    finish: Finish


class AgentProgram:
    """The program of one agent's run. `stores` is None on replay, `model` is None if templates plan."""

    def __init__(
        self,
        invocation: Invocation,
        planner: Planner,
        stores: Stores | None,
        model: ModelAccess | None = None,
    ) -> None:
        self._invocation, self._planner, self._stores, self._model = (
            invocation,
            planner,
            stores,
            model,
        )
        self._loop: Progress | None = None

    def limit(self, engine: Engine) -> Limit | None:
        """Return the earlier of the run's time limit and the budget of wall-clock time, which includes all active
        time.
        """
        total = int(self._invocation.limits[WALL_CLOCK])
        ours = max(0, total - (engine.spent_ms or 0)) / 1000
        own = run_limit(engine)
        if own is not None and own.seconds <= ours:
            return own
        text = f"{WALL_CLOCK}: {total} of {total} are used"
        hint = budget_hint(WALL_CLOCK, pack=True)
        return Limit(ours, lambda: BudgetExceededError("budget.exceeded", text, hint=hint))

    def run(self, root: RootRun) -> Effects:
        """Run turns until one ends the run."""
        loop = self._find_or_create_loop(root)
        root.engine.observe(loop.seen.apply)
        root.begin_snapshots()
        if root.engine.is_live:
            yield Spawn(self._emit_heartbeats(root))
        try:
            while loop.ending is None:
                waiting: RunOutcome | None = yield from pass_turn(loop)
                if waiting is not None:
                    return waiting
        except PolicyApprovalError as error:
            return RunOutcome("pending", error, dict(root.run.state.outputs))
        return RunOutcome(
            loop.ending.run_status(goal_met=loop.goal_met), loop.ending.error, loop.outputs()
        )

    def end(self, root: RootRun, outcome: RunOutcome) -> RunOutcome:
        """Append the decision. If the run was ended from outside the loop, that is its reason."""
        loop = self._find_or_create_loop(root)
        ending: LoopEnding = loop.ending or external_ending(outcome, root.engine.loop.signal)
        if loop.ending is None and loop.policy.edition >= LATEST_EDITION:
            outcome = self._end_by_budget(root, outcome)
        made = {
            "decision_key": loop.decision_key,
            "status": ending.status,
            "status_reason": ending.reason,
            "outcome": loop.outcome_word(ending),
            "outputs": BY_NAME.mask(loop.outputs()),
        }
        decision = decision_of_log(root.engine.sink.history(), made)
        payload = DecisionRecorded(
            decision_id=decision["decision_id"], **made, record_hash=decision["record_hash"]
        )
        event = root.run.emit(draft_of(payload, root.run.state.run_id))
        if self._stores is not None and ending.status != "aborted":
            root.engine.not_stored = self._stores.finish(loop.ended_run(event, outcome))
        return outcome._replace(outputs=loop.outputs())

    def _end_by_budget(self, root: RootRun, outcome: RunOutcome) -> RunOutcome:
        """Return the outcome of a run that an exhausted budget of time ended: vetoed, as of any other budget. The event
        about it is the last one that counts as active time.
        """
        if not isinstance(outcome.error, BudgetExceededError):
            return outcome
        limit = int(self._invocation.limits[WALL_CLOCK])
        payload = BudgetExceeded(key=WALL_CLOCK, used=limit, limit=limit)
        root.run.emit(draft_of(payload, root.run.state.run_id))
        return outcome._replace(status="vetoed")

    def _find_or_create_loop(self, root: RootRun) -> Progress:
        """Return the loop of this run, created once."""
        if self._loop is None:
            self._loop = Progress(
                self._invocation,
                self._planner,
                root,
                self._stores.remember if self._stores else None,
            )
            if self._model is not None:
                state = initial_state(self._invocation, self._model.mode, root.first.timestamp)
                self._loop.reasoning = Reasoning(state, self._model, root)
        return self._loop

    def _emit_heartbeats(self, root: RootRun) -> Effects:
        """Emit heartbeats while calls run."""
        every, run = max(MIN_HEARTBEAT_MS, self._invocation.limits["heartbeat_ms"]) / 1000, root.run
        while True:
            due = time.monotonic() + every
            yield Sleep(due)
            if not run.state.running or time.monotonic() < due:  # a signal wakes sleeping tasks
                continue
            payload = RunHeartbeat(
                elapsed_ms=milliseconds(root.first.timestamp, root.engine.clock.now()),
                waiting_on=sorted(run.state.running),
                remaining=self._invocation.policy.budgets.remaining(),
            )
            try:
                run.emit(draft_of(payload, run.state.run_id))
            except CogcliError:
                yield AwaitWake()  # the log cannot be written: the next event of the run reports it


def build_agent_run(
    invocation: Invocation, *, planner: Planner | None = None, stores: Stores | None = None,
    model: ModelAccess | None = None,
) -> AgentRun:  # fmt: skip
    """Return the run of an invocation: planned by the model if there is one, else by templates. `stores` is None
    for a run that stores nothing.
    """
    if planner is None:
        planner = ModelPlanner(model.info) if model else TEMPLATE
    program = AgentProgram(invocation, planner, stores, model)
    if model is None:
        return AgentRun(
            invocation.request.message,
            invocation.to_payload(),
            invocation.pins,
            program,
            invocation.policy,
        )
    pins = {**invocation.pins, "model": model.info.to_payload()}
    payload = {**invocation.to_payload(), "mode": model.mode, "timeout_s": model.timeout_s}
    payload |= model.prices._asdict() if model.prices else {}
    return AgentRun(
        invocation.request.message, payload, pins, program, invocation.policy, model.secrets
    )
