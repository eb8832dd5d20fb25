"""The decisions of a log, decided again: under the pack of the run, or under another one
(docs/reference/pack.md#explain).

A fold over the events of the run: what rules saw of inputs, variables, outputs and state comes from the events
before the decision, arguments and facts from the decision itself. Nothing is called, and no engine runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from cogcli.core.jsonvalue import object_of, text_of
from cogcli.core.redact import MASK
from cogcli.declarations.events import row_of
from cogcli.declarations.governance_events import IN_DOUBT
from cogcli.events.envelope import Event
from cogcli.governance.run_policy import (
    Facts,
    JudgedCall,
    KnownFacts,
    OwnSkill,
    Requester,
    RunPolicy,
    RunState,
)
from cogcli.governance.verdict import Verdict, is_above
from cogcli.mapping.apply import RunStates, apply_to_runs
from cogcli.runs.policy import governed_by, slots_of
from cogcli.runs.policy_request import PolicyRequest
from cogcli.specs.catalog import Catalog
from cogcli.specs.pack import Pack
from cogcli.specs.skill import NESTED
from cogcli.specs.skill_tools import called_by, find_tool


class Redecided(NamedTuple):
    """A recorded decision, and what a policy says of the same call. `case` is None, and `why` says so, where the log
    does not hold what a decision needs."""

    event: Event
    case: JudgedCall | None
    verdict: Verdict | None
    lifted: frozenset[tuple[str, str]] = frozenset()
    """What people had answered before: a verdict and its gate each."""
    why: str = ""

    @property
    def is_changed(self) -> bool:
        """Whether the call is decided otherwise than the log says: another verdict, gate or obligations."""
        if self.verdict is None:
            return False
        recorded = self.event.payload
        before = recorded["verdict"], recorded.get("gate") or "", set(recorded.get("obligations") or ())
        return before != (self.verdict.verdict, self.verdict.gate, set(self.verdict.obligations))


def policy_under(catalog: Catalog, pack: Pack, started: Event) -> RunPolicy:
    """What would decide about the calls of a recorded run under a pack. Where the pack has not the intent, or a lower
    ceiling, its calls are denied: nothing is refused."""
    request = PolicyRequest.recorded(started.payload) or PolicyRequest()
    own, given = pack.defaults.safety_mode, request.safety_mode
    requester = _requester(pack, request, object_of(started.payload.get("agent")))
    intent = pack.decisions.intents.get(requester.intent)
    mode = own if not given or is_above(given, own) else given
    slots = slots_of(intent, started.payload["inputs"]) if intent else {}
    tool = NESTED + started.payload["skill"]["id"]
    of_skill = None if started.payload.get("agent") else OwnSkill(tool, started.payload["inputs"])
    return governed_by(catalog, pack, requester, {}, mode, slots, of_skill)


def _requester(pack: Pack, request: PolicyRequest, agent: Mapping[str, Any]) -> Requester:
    """Who asked, as the log says it; the agent is the pack's."""
    asked = object_of(agent.get("request"))
    user = object_of(asked.get("user"))
    return Requester(
        request.intent,
        request.user or text_of(user.get("user_id")) or "default",
        text_of(user.get("role")),
        tuple(user.get("consent") or ()),
        pack.tone.role,
        pack.tone.voice,
        *[text_of(asked.get(name)) for name in ("message", "channel", "locale")],
    )


def decide_again(
    events: Iterable[Event], catalog: Catalog, recorded: RunPolicy, policy: RunPolicy
) -> Iterator[Redecided]:
    """The decisions of a log in order, each decided again by a policy; `recorded` is that of the run."""
    fold = _DecisionFold(catalog, recorded, policy)
    for event in events:
        if event.event_type == "policy.decided" and event.payload.get("rule") != IN_DOUBT:
            yield fold.redecide(event)
        fold.apply(event)


class _DecisionFold:
    """What is known at one place of a log."""

    def __init__(self, catalog: Catalog, recorded: RunPolicy, policy: RunPolicy) -> None:
        self._catalog, self._recorded, self._policy = catalog, recorded, policy
        self._started: dict[str, Any] = {}
        self._states: RunStates = {}
        self._answers: dict[str, Event] = {}
        self._asked: dict[tuple[str | None, str | None], tuple[str, str]] = {}
        self._lifted: dict[tuple[str | None, str | None], frozenset[tuple[str, str]]] = {}
        self._turn, self._now = 1, ""

    def apply(self, event: Event) -> None:
        """Take up an event."""
        row, payload = row_of(event.event_type), event.payload
        if event.event_type == "run.started":
            self._started = self._started or payload
        apply_to_runs(self._states, event)
        if row.resolves:
            self._answers[event.id] = event
        if not row.one_process_only:
            self._now = event.timestamp
        if event.event_type == "step.completed" and (called := called_by(payload)):
            for each in {id(one): one for one in (self._recorded, self._policy)}.values():
                each.learn(called, payload.get("output") or {}, event.timestamp)
        if type(payload.get("turn")) is int:
            self._turn = payload["turn"]
        for observe in filter(None, {self._recorded.observe, self._policy.observe}):
            observe(event)

    def redecide(self, event: Event) -> Redecided:
        """What the policy says of the call of a recorded decision."""
        payload, key = event.payload, (event.run_id, event.step_id)
        answer = self._answers.get(event.caused_by or "")
        if answer is not None and key in self._asked:
            self._lifted[key] = self._lifted.get(key, frozenset()) | {self._asked[key]}
        self._asked[key] = (payload["verdict"], payload.get("gate") or "")
        lifted = self._lifted.get(key, frozenset())
        capability = find_tool(self._catalog, payload.get("capability") or "")
        state = self._states.get(event.run_id)
        if capability is None or state is None or not isinstance(payload.get("input"), dict):
            return Redecided(event, None, None, lifted, "the log does not hold its arguments")
        now = answer.timestamp if answer else self._now
        self._policy.turn = self._turn
        before = self._policy.replace_facts(KnownFacts(self._facts_now(payload)))
        case = self._policy.case(
            capability,
            payload["input"],
            RunState(state.inputs, state.vars, state.outputs, now, tuple(payload.get("inside") or ())),
            event.step_id or "",
            self._services(capability.id),
        )
        verdict = self._policy.decide(case)
        self._policy.replace_facts(before)
        if masked := _masked_read(self._policy, case, verdict):
            return Redecided(event, case, None, lifted, f"`{masked}` is masked in the log")
        if (verdict.verdict, verdict.gate) in lifted:
            verdict = verdict.lifted()
        return Redecided(event, case, verdict, lifted)

    def _facts_now(self, payload: Mapping[str, Any]) -> Facts:
        """The facts of the decision, with those of the run's calls as this pack declares them."""
        learned, known = self._policy.facts, object_of(payload.get("facts"))
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

    def _services(self, capability_id: str) -> tuple[str, ...]:
        chosen = object_of(object_of(self._started.get("selection")).get(capability_id))
        return tuple(text_of(object_of(member).get("service_id")) for member in chosen.get("members") or ())


def _masked_read(policy: RunPolicy, case: JudgedCall, verdict: Verdict) -> str:
    """The first path that a decision looked at and that the log holds masked; empty where there is none."""
    limited = {
        f"args.{name}": (case.call.arguments or {}).get(name)
        for rule in policy.rules.rules_for(policy.requester.intent, case.call.capability)
        for name in rule.declared.limits
    }
    return next((path for path, value in {**verdict.reads, **limited}.items() if _is_masked(value)), "")


def _is_masked(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_is_masked, value.values()))
    if isinstance(value, list):
        return any(map(_is_masked, value))
    return isinstance(value, str) and MASK in value
