"""The progress of a loop: candidate, effects, and the end of the run. Only the steps of the loop change it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cogcli.agent.cognition.ends import (
    Denial,
    LoopEnding,
    denial_ending,
    refusal_ending,
    unplanned_ending,
)
from cogcli.agent.cognition.escalation import Escalation
from cogcli.agent.cognition.invocation import Invocation
from cogcli.agent.cognition.observer import Observer
from cogcli.agent.cognition.phase_times import PhaseTimes
from cogcli.agent.cognition.planner import Candidate, Planner, TurnPlan, decision_of
from cogcli.agent.cognition.reasoning import Reasoning
from cogcli.agent.cognition.turn_record import TurnRecord
from cogcli.agent.context.contradictions import KnownContradictions
from cogcli.agent.prompts import LOOP
from cogcli.agent.withheld import withheld
from cogcli.base.canonical import digest_of
from cogcli.base.errors import CogcliError
from cogcli.base.jsonvalue import NOTHING
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.agent_events import LoopDetected
from cogcli.declarations.envelope import Event, draft_of
from cogcli.declarations.governance_events import BudgetExceeded
from cogcli.declarations.pack_spec import Guardrail
from cogcli.declarations.run_start import LATEST_EDITION
from cogcli.declarations.value_types import Json
from cogcli.policy.approvals import ApprovalAnswer
from cogcli.policy.budgets import BudgetOverrun
from cogcli.policy.guardrails import find_guardrails_for_text
from cogcli.policy.loop_guard import LoopGuard, LoopTrip
from cogcli.policy.verdict import is_above
from cogcli.run.engine.outcome import RunOutcome
from cogcli.run.engine.run import RootRun

Remember = Callable[[Json, str, str], CogcliError | None]
"""Stores the results of a turn: `turn`, `calls` and `proposals`, with the id of the run and the time. Returns the
error if the store cannot be written; the run then continues, because its log is complete.
"""


class EndedRun(NamedTuple):
    """The data of an ended run for the stores. `event_id` is the id of its decision event.
    `messages` are the new messages of the conversation."""

    run_id: str
    episode_id: str
    event_id: str
    at: str
    response: str
    success: bool
    mode: str
    turns: int
    calls: int
    template: str
    failure_code: str
    messages: tuple[Json, ...]
    reasoning: Json | None
    """None for a run without a model."""
    withheld: str = ""
    """The reason why no store keeps the text of the message. Empty if the stores keep it."""
    data_class: str = "internal"
    """The highest classification of the outputs of the run's calls."""


Finish = Callable[[EndedRun], CogcliError | None]
"""Stores the results of a run. Returns the error as `Remember` does."""


class Progress:
    """The state of one loop over all its turns."""

    def __init__(
        self,
        invocation: Invocation,
        planner: Planner,
        root: RootRun,
        remember: Remember | None = None,
    ) -> None:
        self.invocation, self.planner, self.root, self.remember = (
            invocation,
            planner,
            root,
            remember,
        )
        self.policy = invocation.policy
        self.seen = Observer(root.first, invocation)
        self.guard = LoopGuard()
        self.turn = 0
        self.record = TurnRecord(root, 0, {})
        self.reasoning: Reasoning | None = None
        """The state of an agent with a model, or None if templates plan."""
        self.ending: LoopEnding | None = None
        self.withheld = ""
        """The reason why the text of the message is neither stored nor learned from. Empty if a model may read it."""
        self.candidate = Candidate(planner.name)
        self.plan: TurnPlan | None = None
        self.response = ""
        self.goal_met = False
        self.effects: list[Json] = []
        """The effects of the calls of this turn."""
        self.notices: list[Json] = []
        """The notices for the next proposal: fails, denials, loops."""
        self.new_notices: list[Json] = []
        """The notices that the state of the agent does not have yet."""
        self.last_gap = ""
        """The need that the last replan did not meet: a capability, or the goal."""
        started = root.engine.sink.history() if root.engine.dispatcher is not None else ()
        self.stages = PhaseTimes(started)
        """The times of the lifecycle phases of this turn."""
        self.denied_gap = ""
        """The capability that the policy gate denied in this turn. Empty if there is none."""
        self.open_denials: dict[str, Denial] = {}
        """The reason by capability above `read_only` whose last call was denied, so that it had no effect."""
        self.has_acted = False
        """Whether a call above `read_only` was done."""
        self.contradictions = KnownContradictions()
        """The contradictions between graph and memory, as of the context of this turn."""
        self.replans = 0
        self._noted_answers = 0
        """The number of answers of people that the planner has a notice of."""
        self.failing = 0
        """The number of consecutive failed calls."""

    @property
    def skips_action(self) -> bool:
        """Whether the safety mode skips the action layer."""
        return (
            self.invocation.safety_mode == "read_only"
            and not self.invocation.pack.policy.read_only_actions
        )

    @property
    def risk(self) -> str:
        """The risk class of the intent."""
        intent = self.invocation.pack.decisions.intents.get(self.invocation.intent.intent)
        return intent.risk if intent else "read_only"

    def may_act(self, capability: str) -> bool:
        """Return whether calls of a capability or a skill are above `read_only`."""
        known = self.invocation.capabilities.get(capability)
        return known is not None and is_above(self.policy.mode_of(known), "read_only")

    @property
    def denies_goal(self) -> bool:
        """Whether a model answered after a denied effect without any later successful call for it."""
        is_new = self.policy.edition >= LATEST_EDITION
        return is_new and self.planner.replans and bool(self.open_denials)

    def record_denial(self, capability: str, denial: Denial) -> None:
        """Store the denial of a call that would have had an effect."""
        if self.may_act(capability):
            self.open_denials[capability] = denial

    @property
    def decision_key(self) -> str:
        """The key of the decision of the run."""
        return decision_of(self.invocation, self.candidate).key

    def outputs(self) -> Json:
        """Return the outputs of the run: the outputs of its steps, and the response."""
        written = dict(self.root.run.state.outputs)
        return {**written, "response": self.response} if self.response else written

    def outcome_word(self, ending: LoopEnding) -> str:
        """Return the template's word for the outcome; the status if the run is not completed."""
        if ending.status != "completed":
            return ending.status
        met = "met" if self.goal_met else "unmet"
        words = self.plan.template.outcome if self.plan and self.plan.template else {}
        return words.get(met) or met

    def ended_run(self, decision: Event, outcome: RunOutcome) -> EndedRun:
        """Return the data of the run for the stores, after its decision was recorded."""
        request, success = self.invocation.request, outcome.status == "ok"
        messages = [self._build_message("user", request.message, self.root.first.timestamp)]
        if self.response:
            messages.append(self._build_message("assistant", self.response, decision.timestamp))
        state = self.reasoning.state if self.reasoning else None
        if self.withheld:
            digest = request.message_hash or digest_of(request.message)
            notice = {"content": withheld(self.withheld), "message_hash": digest}
            messages[0] |= notice
        return EndedRun(
            self.root.run.state.run_id,
            decision.episode_id,
            decision.id,
            decision.timestamp,
            self.response,
            success,
            state.execution.mode if state else "",
            self.turn,
            self.seen.calls,
            self.candidate.template,
            outcome.error.code if outcome.error else "",
            tuple(messages),
            state.reasoning.to_payload() if state and not self.withheld else None,
            self.withheld,
            self.seen.data_class,
        )

    @staticmethod
    def _build_message(role: str, text: str, at: str) -> Json:
        return {"role": role, "content": text, "timestamp": at}

    # -- the end of a loop, and replans -------------------------------------------------------------------------------

    def refuse(self, guardrails: Iterable[Guardrail]) -> bool:
        """End the run if there is a guardrail, with the first one as the reason. Return whether there is one."""
        first = next(iter(guardrails), None)
        if first is None:
            return False
        reason = f"must_refuse:{first.id}"
        why, say = self.explain_guardrail(reason), self.policy.find_say(reason)
        self.response, self.ending = "", refusal_ending(reason, why=why, say=say)
        return True

    def explain_guardrail(self, name: str) -> str:
        """Return why the pack has a guardrail, which is named as `must_refuse:ID` or `must_escalate:ID`."""
        if self.policy.edition < LATEST_EDITION:
            return ""
        guardrails = self.invocation.pack.policy.guardrails
        reasons = {f"must_refuse:{each.id}": each.reason for each in guardrails.must_refuse}
        reasons |= {f"must_escalate:{each.id}": each.reason for each in guardrails.must_escalate}
        return reasons.get(name, "")

    def end_by_budget(self, overrun: BudgetOverrun) -> None:
        """End the run for an exhausted budget."""
        payload = BudgetExceeded(key=overrun.key, used=overrun.used, limit=overrun.limit)
        draft = draft_of(payload, self.root.run.state.run_id, step_id=f"t{self.turn}")
        self.root.run.emit(draft)
        self.ending = denial_ending(f"budget_exceeded:{overrun.key}")

    def notify(self, notice: Json) -> None:
        """Add a notice for the next proposal, which the state of the agent keeps as a notification."""
        self.notices.append(notice)
        self.new_notices.append(notice)

    def replan(self, reason: str, details: list[Json]) -> None:
        """Let the planner propose another candidate, if the limit of replans allows one."""
        reserved = self.policy.budgets.reserve({"replans": 1})
        if reserved.overrun is not None:
            used = reserved.overrun.used
            self.ending = unplanned_ending(reason, used, self.candidate.fault_detail)
            return
        reserved.commit()
        self.replans += 1
        self.notify({"type": "replan", "text": reason, "details": details})

    def record_trip(self, trip: LoopTrip) -> None:
        """Append a trip of the loop guard, with a notice for the planner."""
        self.record.emit(LoopDetected(turn=self.turn, **trip.to_payload()))
        self.notify({"type": LOOP, "text": trip.hint, **trip.to_payload()})

    @property
    def unnoted_answers(self) -> list[ApprovalAnswer]:
        """The answers of people that the run followed in this turn."""
        return self.root.engine.approvals.used[self._noted_answers :]

    def add_answer_notices(self) -> None:
        """Add a notice for the planner for each answer of a person since the last turn."""
        answers = self.unnoted_answers
        self._noted_answers += len(answers)
        for answer in answers:
            word = "granted" if answer.granted else "rejected"
            about = answer.asked.capability or "the turn"
            notice = {"type": f"approval_{word}", "text": f"a person {word} {about}"}
            reason = {"reason": answer.reason} if answer.reason else {}
            self.notify({**notice, "step": answer.asked.step_id, **reason})

    def ask_for(self, text: str) -> None:
        """Request a person's decision if a guardrail requires that for this text."""
        guardrails = self.invocation.pack.policy.guardrails.must_escalate
        for guardrail in find_guardrails_for_text(guardrails, text, self.policy.edition)[:1]:
            self.ask(guardrail.gate, f"must_escalate:{guardrail.id}")

    def ask(self, gate: str, reason: str, plan: Json = NOTHING) -> None:
        """Request a person's decision. A rejection ends the run. Raise PolicyApprovalError without an answer."""
        why = self.explain_guardrail(reason)
        say = self.policy.find_say(reason)
        escalation = Escalation(f"t{self.turn}", gate, reason, plan, why, say)
        rejected = escalation.require(self.root, self.invocation.pack, self.policy.name)
        if rejected is not None:
            self.ending = LoopEnding("denied", rejected.code, rejected)
