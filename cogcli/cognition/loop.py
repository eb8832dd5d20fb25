"""The cognitive loop: turns over the layers of ORDER until one ends the run (docs/reference/agent-run.md#loop).

A program of the engine's root run: plans are driven in the root run, so that journal, approvals, resume and replay are
those of any run. What is decided depends on recorded events alone; time is that of the last event.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, NamedTuple

from cogcli.cognition import critic
from cogcli.cognition.critic import Results, Score, Verification, score, verify
from cogcli.cognition.escalation import Escalation
from cogcli.cognition.invocation import Invocation
from cogcli.cognition.layers import LAYERS, ORDER
from cogcli.cognition.observer import Observer
from cogcli.cognition.planner import (
    TEMPLATE,
    Candidate,
    JudgmentView,
    Planner,
    TurnPlan,
    decision_of,
    to_plan,
)
from cogcli.cognition.reply import is_met, render
from cogcli.context.compiler import CompiledContext, compile_context
from cogcli.core.errors import (
    AgentError,
    BudgetExceededError,
    CogcliError,
    PolicyApprovalError,
    PolicyDeniedError,
    RuntimeErrorBase,
)
from cogcli.engine.context import Engine
from cogcli.engine.outcome import RunOutcome, describe_outcome
from cogcli.engine.plan import plan_skill, record
from cogcli.engine.run import Limit, RootRun, run_limit
from cogcli.engine.tasks import Effects, Park, Sleep, Spawn
from cogcli.events import build
from cogcli.governance.budgets import Exceeded
from cogcli.governance.guardrails import matching
from cogcli.governance.loop_guard import LoopGuard, LoopTrip
from cogcli.governance.pressure import Pressures, budget_pressure, loop_pressure, share
from cogcli.runs.prepare import AgentRun
from cogcli.specs.pack import BUILT_IN_GATE

Remember = Callable[[dict[str, Any], str, str], None]
"""Stores what a turn leaves: `turn`, `calls` and `proposals`; then the id of the run, and the time."""
_SKIPPED: Final = "action_skipped:read_only"
STATUS_OF: Final = {"refused": "vetoed", "denied": "vetoed", "failed": "error"}
"""The status of a run that ends with a decision of this status; one that is completed is ok or partial."""


class LoopEnding(NamedTuple):
    """How the loop ends: the status of the decision, why, and the error of the run where it is none of success."""

    status: str
    reason: str
    error: RuntimeErrorBase | None = None


class AgentProgram:
    """The program of one agent's run."""

    def __init__(
        self,
        invocation: Invocation,
        planner: Planner = TEMPLATE,
        remember: Remember | None = None,
    ) -> None:
        """`remember` is None on replay."""
        self.policy = invocation.policy
        self._given = invocation
        self._planner = planner
        self._remember = remember
        self._guard = LoopGuard()
        self._turn = 0
        self._ending: LoopEnding | None = None
        self._response = ""
        self._goal_met = False
        self._candidate = Candidate(planner.name)
        self._plan: TurnPlan | None = None
        self._effects: list[dict[str, Any]] = []
        self._notices: list[dict[str, Any]] = []
        self._last_gap = ""
        self._replans = 0

    # -- as a program of the engine -----------------------------------------------------------------------------------

    def limit(self, engine: Engine) -> Limit | None:
        """The nearer of the run's limit of time and the budget of wall clock, which counts over all sittings."""
        ours = self._given.limits["wall_clock_ms"] / 1000 - (engine.spent_ms or 0) / 1000
        own = run_limit(engine)
        if own is not None and own.seconds <= ours:
            return own
        limit = int(self._given.limits["wall_clock_ms"])
        text = f"wall_clock_ms: {limit} of {limit} are used"
        return Limit(max(0.0, ours), lambda: BudgetExceededError("budget.exceeded", text))

    def run(self, root: RootRun) -> Effects:
        """Turns until one ends the run."""
        self._root, self._engine = root, root.engine
        self._seen = Observer(root.first, self._given)
        self._engine.observe(self._seen.apply)
        if self._engine.is_live:
            yield Spawn(self._beat())
        try:
            while self._ending is None:
                self._turn += 1
                waiting: RunOutcome | None = yield from self._pass_turn()
                if waiting is not None:
                    return waiting
        except PolicyApprovalError as error:
            return RunOutcome("pending", error, dict(root.run.state.outputs))
        return self._outcome(self._ending)

    def end(self, root: RootRun, outcome: RunOutcome) -> RunOutcome:
        """Append the decision. What ended the run from outside is its reason."""
        ending = self._ending or _ending_of(outcome)
        outputs = self._outputs()
        made = {
            "decision_key": decision_of(self._given, self._candidate).key,
            "status": ending.status,
            "status_reason": ending.reason,
            "outcome": self._outcome_word(ending),
            "outputs": outputs,
        }
        decision = self._seen.decision.record(made)
        payload = {"decision_id": decision["decision_id"], **made, "record_hash": decision["record_hash"]}
        self._emit("decision.recorded", payload)
        return outcome._replace(outputs=outputs)

    def _outcome(self, ending: LoopEnding) -> RunOutcome:
        status = STATUS_OF.get(ending.status) or ("ok" if self._goal_met else "partial")
        return RunOutcome(status, ending.error, self._outputs())

    def _outputs(self) -> dict[str, Any]:
        given = dict(self._root.run.state.outputs)
        return {**given, "response": self._response} if self._response else given

    def _outcome_word(self, ending: LoopEnding) -> str:
        """The word of the template for how it ended; of a run that made nothing the status."""
        words = self._plan.template.outcome if self._plan and self._plan.template else {}
        if ending.status != "completed":
            return ending.status
        return words.get("met" if self._goal_met else "unmet") or ("met" if self._goal_met else "unmet")

    # -- a turn -------------------------------------------------------------------------------------------------------

    def _pass_turn(self) -> Effects:
        """One pass over ORDER; gives a RunOutcome where the run waits, else None."""
        self._open_turn()
        for layer in ORDER[: _place("judgment")]:
            self._pass(layer.name, skipped="off" if layer.name == "focus" and self._focus == "off" else "")
        before, self._effects = self._effects, []
        context = self._compile()
        began = self._engine.now
        self._judge(context, before)
        verification = self._verify(context)
        allowed = self._gate(context, verification)
        late = self._late("plan", began)
        outcome: RunOutcome | None = None
        if self._plan is not None and allowed:
            outcome = yield from self._act(self._plan)
            if outcome.status == "pending":
                return outcome
        self._complete("action", {"effects": self._effects}, skipped=self._skipped(allowed))
        self._settle(verification, outcome, late)
        return None

    def _open_turn(self) -> None:
        """Reserve the turn, and set what its layers read."""
        given, budgets = self._given, self.policy.budgets
        reserved = budgets.reserve({"turns": 1})
        if isinstance(reserved, Exceeded):
            self._exceed(reserved)
        else:
            reserved.commit()
        if self._turn > 1:
            budgets.begin_turn()
        self.policy.turn = self._turn
        self._focus = given.request.focus
        recalls = [
            {
                "id": f"{edge.subject}:{edge.predicate}",
                "text": f"{edge.subject} {edge.predicate}",
                "trust": edge.trust,
            }
            for edge in given.fetched.edges
        ]
        recalls += [
            {"id": each.memory_id, "text": f"{each.entity} {each.predicate} {each.value}", "trust": "verified"}
            for each in given.fetched.memories
        ]  # fmt: skip
        self._known: dict[str, Any] = {
            "ledger": self._ledger(),
            "request": given.request.to_payload(),
            "effects": self._effects,
            "approvals": self._notices,
            "recalls": recalls,
            "goals": [given.request.message],
            "agent": {"role": given.pack.tone.role, "voice": given.pack.tone.voice},
            "tone": list(given.pack.tone.non_negotiables),
            "intents": {"intent": given.intent.intent},
            "objectives": [
                {"id": each.id, "intents": list(each.intents)} for each in given.pack.decisions.objectives
            ],
            "facts": {},
        }

    def _ledger(self) -> dict[str, Any]:
        exceeded = self._ending.reason if self._ending else ""
        return {"exceeded": exceeded, "remaining": self.policy.budgets.remaining()}

    def _pass(self, name: str, *, skipped: str = "") -> None:
        """Run a pure layer on what its row lets it read."""
        layer = LAYERS[name]
        view = {read: self._known[read] for read in layer.reads}
        writes = layer.function(view) if layer.function and not skipped else {}
        self._complete(name, writes, skipped=skipped)

    def _complete(self, name: str, writes: dict[str, Any], *, skipped: str = "") -> None:
        """Take up what a layer wrote, and append it."""
        layer = LAYERS[name]
        layer.require_own(writes)
        self._known.update(writes)
        payload = {"turn": self._turn, "layer": name, "reads": list(layer.reads), "writes": writes}
        if skipped:
            payload["skipped"] = skipped
        self._emit("layer.completed", payload, phase=layer.phase)

    def _compile(self) -> CompiledContext:
        """The context of the turn. A message that needs a person waits for one here; one that is refused ends the
        run."""
        state, given = self._root.run.state, self._given
        context = compile_context(
            given.compile_input(
                self._turn, state.run_id, state.trace_id, self._engine.now, self._seen.learned
            )
        )
        payload = {"turn": self._turn, "context_hash": context.hash, "context": context.payload}
        self._emit("context.compiled", payload)
        self._known["context"] = {"context_hash": context.hash}
        self.policy.note_facts(context.compilation.evidence.facts)
        if self._ending is None and context.refused:
            self._refuse(context.refused)
        elif self._ending is None and context.overpacked:
            text = "policy and tools find no room in the context"
            self._ending = LoopEnding("failed", "context.overpacked", AgentError("context.overpacked", text))
        if self._ending is None and self._turn == 1:
            self._require_person_for(given.request.message)
        return context

    def _judge(self, context: CompiledContext, effects: list[dict[str, Any]]) -> None:
        """Ask the planner, unless the run ends already. `effects` are those of the turn before."""
        self._plan = None
        if self._ending is None:
            view = JudgmentView(self._given, context, self._turn, tuple(effects), tuple(self._notices))
            self._candidate = self._planner.propose(view)
            key = decision_of(self._given, self._candidate).key
            proposed = self._candidate.to_payload(key)
            self._emit("candidate.proposed", {"turn": self._turn, **proposed})
            self._plan = to_plan(self._given, self._candidate, self._turn)
            self._response = self._candidate.response
        self._notices = []
        named = {"candidate_plan_id": self._plan.plan_id} if self._plan else {}
        self._complete("judgment", {"candidate": named or {"response": bool(self._response)}})

    def _verify(self, context: CompiledContext) -> Verification:
        """The critic's verdict on the plan. One that may not run is put aside, and a planner that replans is asked
        again."""
        if self._ending is not None:
            return Verification(())
        trips = self._trips()
        found = verify(
            self._given,
            context,
            self._candidate,
            self._plan,
            remaining=self.policy.budgets.remaining(),
            unresolved=self.policy.unresolved,
            trips=trips,
        )
        fails = [fail.to_payload() for fail in found.fails]
        reason = found.fails[0].reason if found.fails else ""
        verdict = {"turn": self._turn, "verdict": found.verdict, "reason": reason, "fails": fails}
        self._emit("critic.verified", verdict)
        if found.verdict == "ok" or self._skips_action:
            return found
        again = next((trip for trip in trips.values() if trip.again), None)
        if found.verdict == "reject" or not self._planner.replans or again:
            self._deny(_reason_of(context, found, again))
        else:
            self._replan(reason, fails)
        return found

    def _trips(self) -> dict[str, LoopTrip]:
        """By step the trips of the loop guard over the calls of the candidate, each appended."""
        trips = {}
        for call in self._candidate.calls:
            trip = self._guard.propose(call.capability, call.arguments)
            if trip is not None:
                trips[f"t{self._turn}_{call.id}"] = trip
                self._note_trip(trip)
        return trips

    def _note_trip(self, trip: LoopTrip) -> None:
        payload = {"turn": self._turn, **trip.to_payload()}
        self._emit("loop.detected", payload)
        self._notices.append({"type": "loop_detected", "text": trip.hint, **trip.to_payload()})

    def _gate(self, context: CompiledContext, verification: Verification) -> bool:
        """The policy gate: whether the plan may run. The calls themselves are decided again, with their arguments, by
        the governed call."""
        verdict, obligations = "allow", list[str]()
        if self._ending is not None:
            verdict = "refuse" if self._ending.status == "refused" else "deny"
        elif self._response and (met := matching(self._given.pack.policy.must_refuse, self._response)):
            verdict = "refuse"
            self._refuse(f"must_refuse:{met[0].id}")
        elif verification.verdict != "ok":
            verdict = "deny"
        elif self._plan is not None:
            tools = {tool.capability: tool for tool in context.compilation.surface.tools}
            gates = [tools[uses].gate for uses in self._plan.capabilities.values() if uses in tools]
            obligations = list(dict.fromkeys(gate for gate in gates if gate))
            verdict = "allow_with_gate" if obligations else "allow"
        self._complete("policy_gate", {"verdict": verdict, "obligations": obligations})
        return verdict in ("allow", "allow_with_gate") and not self._skips_action

    @property
    def _skips_action(self) -> bool:
        """Whether the action layer is skipped by the safety mode."""
        return self._given.safety_mode == "read_only" and not self._given.pack.policy.read_only_actions

    def _skipped(self, allowed: bool) -> str:
        wanted = self._plan is not None and not allowed
        return "safety_mode" if wanted and self._skips_action else ""

    def _act(self, plan: TurnPlan) -> Effects:
        """Drive the plan in the root run, and give the RunOutcome."""
        engine = self._engine
        steps = plan_skill(plan.skill, engine.capabilities, engine.skills)
        records = [record(step) for step in steps.steps]
        created = build.plan_created(
            self._root.run.state.run_id,
            rationale=f"turn {plan.turn} of {self._given.pack.pack_id}",
            step_records=records,
            steps=[f"{each['kind']}:{each['description']}" for each in records],
            source=f"planner.{self._planner.name}",
            made={"plan_id": plan.plan_id, "plan_hash": plan.plan_hash, "turn": plan.turn},
        )
        del records
        outcome: RunOutcome = yield from self._root.drive(steps, created)
        self._effects = self._seen.effects_of(plan)
        for call in self._candidate.calls:
            result = self._seen.result_of(f"t{plan.turn}_{call.id}")
            if result is not None:
                self._guard.note_result(call.capability, call.arguments, result)
        return describe_outcome(outcome, self._root.run.state.skill_id)

    def _settle(self, verification: Verification, outcome: RunOutcome | None, late: str) -> None:
        """After the action: how it went, what may be remembered, whether the run ends."""
        pressures = self._pressures()
        state = pressures.to_payload(self._risk, self._engine.now)
        self._emit("functional_state.captured", {"turn": self._turn, **state})
        scored = Score("accept", "", False)
        if self._ending is None and verification.verdict == "ok":
            scored = self._score(outcome, late, state["escalation_propensity"])
        self._goal_met = scored.goal_met
        if self._ending is None and (verification.verdict == "ok" or self._skips_action):
            self._decide(scored, outcome)
        if self._ending is None:
            self._count_idle()
        self._consolidate()
        following = "stop" if self._ending else "continue"
        self._known["score"] = {**scored._asdict(), "next": following}
        self._known["ledger"] = self._ledger()
        self._pass("reflection")
        found = self._known["reflection"]
        self._emit("reflection.recorded", {"turn": self._turn, **found})

    def _score(self, outcome: RunOutcome | None, late: str, propensity: float) -> Score:
        """The critic's verdict on the turn; one that needs a person waits for one here."""
        template = self._plan.template if self._plan else None
        success = None
        if template is not None and template.success is not None and not self._skips_action:
            success = is_met(template.success, self._root.run.state)
        if template is not None and success is not False and not self._candidate.asking:
            self._response = render(template.reply, self._root.run.state)
        answered = bool(self._response) and not self._candidate.asking
        if template is not None and success is None and not self._skips_action:
            success = outcome is not None and outcome.status == "ok"
        gap = next(
            (each["step_id"] for each in self._effects if each["status"] in ("failed", "vetoed")), "goal"
        )
        results = Results(
            tuple(self._effects),
            self._seen.post_gate_failed,
            late,
            self._seen.conflicts,
            success,
            answered and not self._skips_action and not self.policy.unresolved,
            self._planner.replans and self.policy.budgets.remaining().get("replans", 0) > 0,
            gap == self._last_gap,
            propensity,
        )
        found = score(results)
        payload = {"turn": self._turn, **found._asdict(), "evidence_gates": self._seen.evidence_gates}
        self._emit("critic.scored", payload)
        if found.verdict == "escalate":
            self._ask(Escalation(f"t{self._turn}", BUILT_IN_GATE, found.reason))
            return Score("accept", found.reason, False)
        self._last_gap = gap
        return found

    def _decide(self, scored: Score, outcome: RunOutcome | None) -> None:
        """Whether the run ends with this turn (docs/reference/agent-run.md#next)."""
        if scored.verdict == "replan":
            self._replan(scored.reason, list(self._effects))
            return
        error = outcome.error if outcome is not None else None
        if error is not None and not self._planner.replans:
            reason = self._seen.denial or error.code
            self._ending = LoopEnding(
                "denied" if outcome and outcome.status == "vetoed" else "failed", reason, error
            )
        elif self._skips_action and self._plan is not None:
            self._ending = LoopEnding("completed", _SKIPPED)
        elif self._response or self._plan is None or self._plan.template is not None:
            self._finish(scored)

    def _count_idle(self) -> None:
        """End a run whose turns bring nothing new, at the second time."""
        proposed = [{"capability": call.capability, "args": call.arguments} for call in self._candidate.calls]
        trip = self._guard.end_turn([*proposed, *(each.get("result") for each in self._effects)])
        if trip is not None:
            self._note_trip(trip)
            if trip.again:
                self._deny(f"loop_guard:{trip.kind}")

    def _finish(self, scored: Score) -> None:
        """End with the response, unless it may not be said."""
        policy = self._given.pack.policy
        if met := matching(policy.must_refuse, self._response):
            self._refuse(f"must_refuse:{met[0].id}")
            return
        for guardrail in matching(policy.must_escalate, self._response)[:1]:
            self._ask(Escalation(f"t{self._turn}", guardrail.gate, f"must_escalate:{guardrail.id}"))
        unresolved = self.policy.unresolved
        reason = "" if scored.goal_met else scored.reason or (unresolved[0] if unresolved else "goal_unmet")
        if self._candidate.asking:
            reason = "input_missing"
        self._ending = LoopEnding("completed", reason)

    def _consolidate(self) -> None:
        given = self._given
        entity = next(iter(given.intent.slots.values()), f"user:{given.request.user.user_id}")
        word = self._outcome_word(self._ending) if self._ending and self._ending.status == "completed" else ""
        self._known["candidate"] = {
            "decision_key": decision_of(given, self._candidate).key,
            "entity": entity,
            "outcome": word if self._plan is not None and not self._skips_action else "",
            "safety_mode": given.safety_mode,
        }
        self._pass("consolidation")
        proposals = self._known["proposals"]
        payload = {"turn": self._turn, "proposals": proposals, "facts": self._seen.take_facts()}
        event = self._emit("memory.proposed", payload)
        if self._remember is not None and given.safety_mode != "read_only":
            calls = [{"capability": each["capability"], "status": each["status"]} for each in self._effects]
            content = {"turn": self._turn, "calls": calls, "proposals": proposals}
            self._remember(content, self._root.run.state.run_id, event)

    # -- ends ---------------------------------------------------------------------------------------------------------

    def _refuse(self, reason: str) -> None:
        self._response = ""
        self._ending = LoopEnding(
            "refused", reason, PolicyDeniedError("policy.refused", f"refused: {reason}")
        )

    def _deny(self, reason: str) -> None:
        error: RuntimeErrorBase = PolicyDeniedError("policy.denied", f"denied: {reason}")
        if reason.startswith("budget_exceeded"):
            error = BudgetExceededError("budget.exceeded", reason.partition(":")[2])
        self._ending = LoopEnding("denied", reason, error)

    def _exceed(self, exceeded: Exceeded) -> None:
        run_id = self._root.run.state.run_id
        self._root.run.emit(build.budget_exceeded(run_id, f"t{self._turn}", **exceeded._asdict()))
        self._deny(f"budget_exceeded:{exceeded.key}")

    def _replan(self, reason: str, notices: list[dict[str, Any]]) -> None:
        """Let the planner propose something else, if it may once more."""
        reserved = self.policy.budgets.reserve({"replans": 1})
        if isinstance(reserved, Exceeded):
            text = f"no plan after {reserved.used} replans: {reason}"
            self._ending = LoopEnding("failed", reason, AgentError("agent.replans", text))
            return
        reserved.commit()
        self._replans += 1
        self._notices += [{"type": "replan", "text": reason, "details": each} for each in notices] or [
            {"type": "replan", "text": reason}
        ]

    def _require_person_for(self, text: str) -> None:
        for guardrail in matching(self._given.pack.policy.must_escalate, text)[:1]:
            self._ask(Escalation(f"t{self._turn}", guardrail.gate, f"must_escalate:{guardrail.id}"))

    def _ask(self, escalation: Escalation) -> None:
        """Go on where a person said yes; a no ends the run. Raises PolicyApprovalError where nobody has answered."""
        rejected = escalation.require(self._root, self._given.pack, self.policy.name)
        if rejected is not None:
            self._ending = LoopEnding("denied", rejected.code, rejected)

    # -- small things -------------------------------------------------------------------------------------------------

    @property
    def _risk(self) -> str:
        intent = self._given.pack.decisions.intents.get(self._given.intent.intent)
        return intent.risk if intent else "read_only"

    def _pressures(self) -> Pressures:
        given, seen = self._given, self._seen
        elapsed = _milliseconds(self._root.first.timestamp, self._engine.now)
        unresolved, required = self.policy.unresolved, len(seen.evidence_gates)
        return Pressures(
            budget_pressure(
                given.limits, self.policy.budgets.usage(), soft=given.limits["soft"], elapsed_ms=elapsed
            ),
            loop_pressure(
                self._guard.most_identical,
                self._replans,
                int(given.limits["replans"]),
                self._guard.idle_turns,
            ),
            share(len(unresolved), required),
            0.0,
            share(len(seen.conflicts), len(seen.conflicts)),
        )

    def _late(self, lifecycle: str, began: str) -> str:
        """The lifecycle phase, if it took longer than the pack allows it."""
        limit = self._given.limits.get(f"stage_latency_ms.{lifecycle}")
        return lifecycle if limit is not None and _milliseconds(began, self._engine.now) > limit else ""

    def _emit(self, event_type: str, payload: dict[str, Any], *, phase: str = "") -> str:
        run = self._root.run
        event = run.emit(build.of_turn(event_type, run.state.run_id, payload, phase=phase))
        return event.timestamp

    def _beat(self) -> Effects:
        """Signs of life while calls are waited for."""
        every = self._given.limits["heartbeat_ms"] / 1000
        run = self._root.run
        while True:
            yield Sleep(time.monotonic() + every)
            if not run.state.running:
                continue
            elapsed = _milliseconds(self._root.first.timestamp, self._engine.clock.now())
            payload = {
                "elapsed_ms": elapsed,
                "waiting_on": sorted(run.state.running),
                "remaining": self.policy.budgets.remaining(),
            }
            try:
                run.emit(build.of_turn("run.heartbeat", run.state.run_id, payload))
            except CogcliError:
                yield Park()  # the log cannot be written: whoever drives the run finds that out


def _place(name: str) -> int:
    return [layer.name for layer in ORDER].index(name)


def _reason_of(context: CompiledContext, found: Verification, again: LoopTrip | None) -> str:
    """Why a plan is denied: for a capability that is kept from the model the reason of that."""
    if again is not None:
        return f"loop_guard:{again.kind}"
    rejects = [fail for fail in found.fails if fail.code in critic.REJECTED]
    fail = (rejects or found.fails)[0]
    redacted = {each.capability: each for each in context.compilation.surface.redactions}
    if fail.code == "unknown_capability" and fail.detail in redacted:
        return redacted[fail.detail].rule_id or redacted[fail.detail].reason
    return fail.reason


def _ending_of(outcome: RunOutcome) -> LoopEnding:
    """How a run ends that was cut off from outside."""
    error = outcome.error
    if outcome.status == "aborted":
        return LoopEnding("aborted", "signal")
    if isinstance(error, BudgetExceededError):
        return LoopEnding("denied", "budget_exceeded:wall_clock_ms", error)
    return LoopEnding("failed", error.code if error else "", error)


def _milliseconds(start: str, end: str) -> int:
    span = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    return max(0, round(span.total_seconds() * 1000))


def agent_run(
    invocation: Invocation,
    *,
    planner: Planner = TEMPLATE,
    remember: Remember | None = None,
) -> AgentRun:
    """The run of an invocation, as `runs` starts it. `remember` stores proposals; None where nothing is stored."""
    return AgentRun(
        invocation.request.message,
        invocation.to_payload(),
        invocation.pins,
        AgentProgram(invocation, planner, remember),
        invocation.policy,
    )
