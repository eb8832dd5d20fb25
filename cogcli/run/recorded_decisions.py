"""Replays the decisions of a log under the pack of the run or another one (docs/reference/pack.md#explain).

This is a fold over the events of the run. Inputs, variables, outputs and state come from the events before a decision,
arguments and facts from the decision itself. No call is made, and no engine runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.redact import MASK
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.envelope import Event
from cogcli.declarations.event_type import Payload
from cogcli.declarations.events import RunStarted, StepCompleted
from cogcli.declarations.governance_events import IN_DOUBT, PolicyDecided
from cogcli.declarations.pack_spec import Pack
from cogcli.declarations.reading import read_record
from cogcli.declarations.run_start import (
    AgentStart,
    PinnedChain,
    RecordedRequest,
    RequestUser,
    start_of,
)
from cogcli.declarations.spec_types import NESTED
from cogcli.declarations.typed_payload import recorded_payload
from cogcli.policy.limits import LimitedCall, recorded_use
from cogcli.policy.run_policy import (
    Facts,
    JudgedCall,
    KnownFacts,
    OwnSkill,
    Requester,
    RunPolicy,
)
from cogcli.policy.verdict import Verdict, is_above
from cogcli.run.policy import build_run_policy, fill_slots
from cogcli.run.policy_request import PolicyRequest
from cogcli.run.replayed_use import ReplayedUse, RuledCall
from cogcli.specs.catalog import Catalog
from cogcli.specs.skill_tools import called_by, find_tool
from cogcli.state.execution import RunState
from cogcli.state.reducer import RunStates, apply_to_runs


class ReplayedDecision(NamedTuple):
    """A recorded decision, and the verdict of a policy on the same call.

    If the log lacks data that the decision needs, `case` is None and `why` contains the reason.
    """

    event: Event
    case: JudgedCall | None
    verdict: Verdict | None
    lifted: frozenset[tuple[str, str]] = frozenset()
    """Gates that people had approved before, each as a verdict and its gate."""
    why: str = ""
    limits: LimitedCall = LimitedCall()

    @property
    def is_changed(self) -> bool:
        """Whether the new verdict, gate or obligations differ from the recorded ones."""
        if self.verdict is None:
            return False
        recorded = read_record(PolicyDecided, self.event.payload)
        before = recorded.verdict, recorded.gate or "", set(recorded.obligations or ())
        return before != (self.verdict.outcome, self.verdict.gate, set(self.verdict.obligations))


def policy_under(
    catalog: Catalog, pack: Pack, started: Event, *, enforces: bool = False
) -> RunPolicy:
    """Return the policy for the calls of a recorded run under a pack.

    With `enforces` its rules decide, also of a run that enforced none. If the pack lacks the intent, or has a lower
    ceiling, calls are denied; no error is raised.
    """
    start = start_of(started)
    request = PolicyRequest.recorded(start) or PolicyRequest()
    own, given = pack.meta.defaults.safety_mode, request.safety_mode
    requester = _rebuild_requester(pack, request, start.agent)
    intent = pack.decisions.intents.get(requester.intent)
    mode = own if not given or is_above(given, own) else given
    slots = fill_slots(intent, start.inputs) if intent else {}
    of_skill = None if start.agent else OwnSkill(NESTED + start.skill.id, start.inputs)
    return build_run_policy(
        catalog,
        pack,
        requester,
        {},
        mode,
        slots,
        of_skill,
        edition=request.edition,
        is_shadow=request.shadow and not enforces,
    )


def _rebuild_requester(pack: Pack, request: PolicyRequest, agent: AgentStart | None) -> Requester:
    """Return the requester that the log records. Its agent comes from the pack."""
    asked = agent.request if agent else RecordedRequest(message="")
    user = asked.user or RequestUser()
    return Requester(
        request.intent,
        request.user or user.user_id or "default",
        user.role,
        tuple(user.consent),
        pack.tone.agent.role,
        pack.tone.agent.voice,
        asked.message,
        asked.channel,
        asked.locale,
    )


def decide_again(
    events: Iterable[Event], catalog: Catalog, recorded: RunPolicy, policy: RunPolicy
) -> Iterator[ReplayedDecision]:
    """Yield a ReplayedDecision by `policy` for each decision of a log, in order. `recorded` is the policy of the
    run.
    """
    fold = RedecisionFold(catalog, recorded, policy)
    for event in events:
        found = fold.step(event)
        if found is not None:
            yield found


_StepKey = tuple[str | None, str | None]
"""The run and the path of a step."""
_GateVerdict = tuple[str, str]
"""A verdict, and the gate at which a person decides."""


class RedecisionFold:
    """Decides the calls of a log again under another policy, event by event.

    With `use`, limits count the calls that this policy allows, and not those that the log records.
    """

    def __init__(
        self,
        catalog: Catalog,
        recorded: RunPolicy,
        policy: RunPolicy,
        use: ReplayedUse | None = None,
    ) -> None:
        self._catalog, self._recorded, self._policy = catalog, recorded, policy
        self._use = use
        self._started: RunStarted | None = None
        self._states: RunStates = {}
        self._answers: dict[str, Event] = {}
        self._last_verdict_by_step: dict[_StepKey, _GateVerdict] = {}
        self._approved_by_step: dict[_StepKey, frozenset[_GateVerdict]] = {}
        self._turn, self._now = 1, ""

    def step(self, event: Event) -> ReplayedDecision | None:
        """Fold the next event. Return the decision by the policy if the event is one."""
        payload, found = recorded_payload(event), None
        if isinstance(payload, PolicyDecided) and payload.rule != IN_DOUBT:
            found = self.redecide(event, payload)
        self.apply(event, payload)
        return found

    def apply(self, event: Event, payload: Payload) -> None:
        """Fold the next event."""
        if self._use is not None:
            self._use.apply(event, payload)
        apply_to_runs(self._states, event)
        if payload.event.resolves:
            self._answers[event.id] = event
        if not payload.event.one_process_only:
            self._now = event.timestamp
        match payload:
            case RunStarted():
                self._started = self._started or payload
            case StepCompleted():
                self._learn_facts(event, payload)
        if type(turn := getattr(payload, "turn", None)) is int:
            self._turn = turn
        for observe in filter(None, {self._recorded.observe, self._policy.observe}):
            observe(event)

    def _learn_facts(self, event: Event, payload: StepCompleted) -> None:
        called = called_by(event.payload)
        if called:
            for each in {id(one): one for one in (self._recorded, self._policy)}.values():
                each.learn(called, payload.output or {}, event.timestamp)

    def redecide(self, event: Event, decided: PolicyDecided) -> ReplayedDecision:
        """Return the decision that the policy makes now about the call of a recorded decision."""
        answer = self._answers.get(event.caused_by or "")
        lifted = self._lift_gates(event, decided, answered=answer is not None)
        capability = find_tool(self._catalog, decided.capability or "")
        state = self._states.get(event.run_id)
        if capability is None or state is None or decided.input is None:
            return ReplayedDecision(
                event, None, None, lifted, "the log does not hold its arguments"
            )
        now = answer.timestamp if answer else self._now
        run_state = RunState(
            state.inputs, state.vars, state.outputs, now, tuple(decided.inside or ())
        )
        case, verdict, limits = self._decide_again(capability, event, decided, run_state)
        if self._use is not None:
            judged = self._use.judge(event, decided, RuledCall(verdict, limits.claims, lifted))
            if why := self._explain_masked_read(case, judged.verdict or verdict):
                return ReplayedDecision(event, case, None, lifted, why)
            return ReplayedDecision(event, case, judged.verdict, lifted, judged.why)
        if limits.lacks_counters(verdict):
            why = "the log does not hold what a limit of the pack counts"
            return ReplayedDecision(event, case, None, lifted, why)
        verdict = limits.apply(verdict)
        if why := self._explain_masked_read(case, verdict):
            return ReplayedDecision(event, case, None, lifted, why)
        if (verdict.outcome, verdict.gate) in lifted:
            verdict = verdict.lifted()
        return ReplayedDecision(event, case, verdict, lifted, limits=limits)

    def _explain_masked_read(self, case: JudgedCall, verdict: Verdict) -> str:
        """Return why a verdict is not known if it reads a value that the log masks. Empty if it reads none."""
        masked = _find_masked_read(self._policy, case, verdict)
        return f"`{masked}` is masked in the log" if masked else ""

    def _decide_again(
        self, capability: Capability, event: Event, decided: PolicyDecided, state: RunState
    ) -> tuple[JudgedCall, Verdict, LimitedCall]:
        """Rebuild the call of a recorded decision. Return the call, the verdict of the policy's rules, and the call's
        limits. Facts and counters are those at the time of the decision.
        """
        self._policy.turn = self._turn
        before = self._policy.replace_facts(KnownFacts(self._facts_at_decision(decided)))
        case = self._policy.build_judged_call(
            capability,
            decided.input or {},
            state,
            event.step_id or "",
            self._chosen_services(capability.id),
            tuple(decided.unknown or ()),
        )
        verdict = self._policy.decide(case)
        claims = self._policy.find_claims(capability.id, decided.input or {})
        self._policy.replace_facts(before)
        if decided.unknown:  # a plan: what is not known yet is left to the call
            claims = tuple(claim for claim in claims if claim.is_known)
        known = [claim for claim in claims if claim.is_known]
        return case, verdict, LimitedCall(claims, recorded_use(decided.reads, known))

    def _lift_gates(
        self, event: Event, decided: PolicyDecided, *, answered: bool
    ) -> frozenset[tuple[str, str]]:
        """Record a decision, and return the gates of its call that people have approved."""
        key = event.run_id, event.step_id
        if answered and key in self._last_verdict_by_step:
            self._approved_by_step[key] = self._approved_by_step.get(key, frozenset()) | {
                self._last_verdict_by_step[key]
            }
        self._last_verdict_by_step[key] = (decided.verdict or "", decided.gate or "")
        return self._approved_by_step.get(key, frozenset())

    def _facts_at_decision(self, decided: PolicyDecided) -> Facts:
        """Return the facts of the decision, together with the facts that this pack reads from the run's earlier
        calls.
        """
        learned, known = self._policy.facts, decided.facts or {}
        if self._policy is self._recorded:
            return {**learned, **known}
        found = {slot: dict(each) for slot, each in known.items()}
        for slot, names in self._recorded.facts.items():
            for name, value in names.items():
                if found.get(slot, {}).get(name) == value:
                    found[slot].pop(name)
        for slot, names in learned.items():
            found.setdefault(slot, {}).update(names)
        return found

    def _chosen_services(self, capability_id: str) -> tuple[str, ...]:
        chosen = self._started.selection.get(capability_id) if self._started else None
        return tuple(member.service_id for member in read_record(PinnedChain, chosen).members)


def _find_masked_read(policy: RunPolicy, case: JudgedCall, verdict: Verdict) -> str:
    """Return the first path that the decision read and whose value is masked in the log, or an empty string."""
    limited = {
        f"args.{name}": (case.call.arguments or {}).get(name)
        for rule in policy.rules.rules_for(policy.requester.intent, case.call.capability)
        for name in rule.declared.then.limits
    }
    return next(
        (path for path, value in {**verdict.reads, **limited}.items() if _is_masked(value)), ""
    )


def _is_masked(value: object) -> bool:
    match value:
        case str():
            return MASK in value
        case dict():
            return any(map(_is_masked, value.values()))
        case list():
            return any(map(_is_masked, value))
    return False
