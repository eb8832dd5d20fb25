"""The policy for the calls of a run tree under a pack (docs/reference/pack.md#governed-calls).

It consists of rules, budgets and facts. It is pure except for the lock of its budgets. The pack is fixed when the run
starts. Only facts are added later, from the outputs of calls.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, Protocol

from cogcli.base.jsonvalue import NOTHING, deep_copy
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.refs import MISSING
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.envelope import Event
from cogcli.declarations.pack_spec import Pack, PackGate, PackTool
from cogcli.declarations.run_start import LATEST_EDITION
from cogcli.declarations.spec_types import NESTED
from cogcli.declarations.value_types import IntuitionMode, Json
from cogcli.policy.budgets import Budgets
from cogcli.policy.customer_text import find_text, list_limit_values, render_text
from cogcli.policy.freshness import is_stale
from cogcli.policy.limits import LimitClaim, find_claims
from cogcli.policy.pack_policy import GovernedCall, Policy, paths_overlap
from cogcli.policy.verdict import Verdict, approval_mode, is_above, mode_under
from cogcli.specs.unchecked import value_at
from cogcli.state.execution import RunState
from cogcli.state.namespaces import walk

_UNDECLARED: Final = PackTool()
"""The declaration of a capability that the pack does not list."""
Facts = dict[str, Json]
"""The known facts about the entity in each slot."""


_FactPath = tuple[str, str, tuple[str, ...]]
"""The slot and name of a fact, and its path in an answer."""


class KnownFacts(NamedTuple):
    """The known facts, and the data that determines their age."""

    facts: Facts
    learned_at: Mapping[tuple[str, str], str] = NOTHING
    """By slot and name: when a call of the run returned the fact."""
    stored_at: Callable[[str], Facts] | None = None
    """Returns the facts in the stores as of a time. None if the run read no store."""


class Requester(NamedTuple):
    """The part of a rule's data that is known before a run: the user, the agent's role and the intent."""

    intent: str
    user_id: str = "default"
    user_role: str = ""
    consent: tuple[str, ...] = ()
    role: str = ""
    voice: str = ""
    message: str = ""
    channel: str = ""
    locale: str = ""

    @property
    def is_named(self) -> bool:
        """Whether the request names a user other than the default user."""
        return self.user_id != "default"


class OwnSkill(NamedTuple):
    """The skill that the run executes, as `skill:ID`, with its inputs."""

    tool: str
    inputs: Mapping[str, object]


class JudgedCall(NamedTuple):
    """One call, with the data that rules read."""

    call: GovernedCall
    data: Json

    def with_value(self, path: str, value: object) -> JudgedCall:
        """Return the same call with another value at a path of its data."""
        data = with_value(self.data, path, value)
        return JudgedCall(self.call._replace(arguments=data["args"]), data)


def with_value(data: Json, path: str, value: object) -> Json:
    """Return a copy of a rule's data with another value at a dotted path."""
    head, *rest = path.split(".")
    return {**data, head: _replace_at(data.get(head), rest, value)}


def _replace_at(value: object, path: list[str], new: object) -> object:
    """Return a copy of a value with `new` at a path. Missing parents are created as objects."""
    if not path:
        return new
    first, *rest = path
    if isinstance(value, list) and first.isdigit() and int(first) < len(value):
        at = int(first)
        return [*value[:at], _replace_at(value[at], rest, new), *value[at + 1 :]]
    known = value if isinstance(value, Mapping) else NOTHING
    return {**known, first: _replace_at(known.get(first), rest, new)}


class StateView(Protocol):
    """The parts of `state.json` that rules may read, folded from the log."""

    def apply(self, event: Event) -> None:
        """Fold the next event of the log."""
        ...

    def read(self) -> Mapping[str, object]:
        """Return the parts of the state after the last event."""
        ...


class RunPolicy:
    """The policy of a run tree.

    `safety_mode` is the ceiling. `hosts` maps each service to its host, which is empty for a service on this machine.
    `view` is the state that rules read, or None if no rule reads it. `safe_facts` are the facts that a customer may
    see.
    """

    records_allow = True

    def __init__(
        self,
        pack: Pack,
        policy: Policy,
        budgets: Budgets,
        requester: Requester,
        *,
        safety_mode: str,
        slots: Mapping[str, str] = NOTHING,
        hosts: Mapping[str, str] = NOTHING,
        required: Iterable[str] = (),
        view: StateView | None = None,
        retries: int | None = None,
        tools: Mapping[str, Capability] = NOTHING,
        own: OwnSkill | None = None,
        safe_facts: Collection[str] = (),
        edition: int = LATEST_EDITION,
    ) -> None:
        self._safe_facts = safe_facts
        self.pack, self.budgets, self.requester = pack, budgets, requester
        self.safety_mode, self.name, self.edition = safety_mode, pack.ref, edition
        self.rules = policy
        self.has_limits = bool(pack.policy.limits)
        self.turn, self.retries = 1, retries
        self._known = KnownFacts(
            {name: {"id": entity.partition(":")[2]} for name, entity in slots.items()}, {}
        )
        self._now = ""
        self._required, self._hosts = tuple(required), hosts
        self._view = view
        self._modes: dict[str, str] = {}
        self._fact_paths: dict[str, tuple[_FactPath, ...]] = {}
        self._tools = {
            id: tool
            for id, tool in tools.items()
            if policy.offers(requester.intent, requester.role, id)
        }
        self._own = own if own is not None and own.tool in self._tools else None
        self._foreign: dict[tuple[str, ...], str] = {}
        self._asked = {
            "intent": requester.intent,
            "message": requester.message,
            "channel": requester.channel,
            "locale": requester.locale,
        }
        self._parties = {
            "user": {
                "id": requester.user_id,
                "role": requester.user_role,
                "consent": list(requester.consent),
            },
            "agent": {"role": requester.role, "voice": requester.voice},
        }

    @property
    def intuition_mode(self) -> IntuitionMode:
        """The mode of the rules in the run, as `state.json` records it."""
        return self.rules.intuition_mode

    @property
    def observe(self) -> Callable[[Event], None] | None:
        """A function to call with each event of the run, or None if no rule reads the state."""
        return self._view.apply if self._view else None

    @property
    def snapshot(self) -> Mapping[str, object]:
        """The present values of the run's state that rules read."""
        return self._view.read() if self._view else NOTHING

    def judge(
        self,
        capability: Capability,
        arguments: Mapping[str, object],
        state: RunState,
        step: str,
        services: tuple[str, ...] = (),
    ) -> Verdict:
        """Return the verdict on a call that is about to be made. One of `services` will handle the call."""
        return self.decide(self.build_judged_call(capability, arguments, state, step, services))

    def find_claims(
        self, capability_id: str, arguments: Mapping[str, object]
    ) -> tuple[LimitClaim, ...]:
        """Return the amounts that a call would add to the counters of the pack's limits."""
        if not self.has_limits:
            return ()
        slots = {name: facts.get("id") for name, facts in self._known.facts.items()}
        owners = {**slots, "user": self.requester.user_id, "tenant": self.pack.tenant}
        return find_claims(self.pack, self.requester.intent, capability_id, arguments, owners)

    def build_judged_call(
        self,
        capability: Capability,
        arguments: Mapping[str, object],
        state: RunState,
        step: str,
        services: tuple[str, ...] = (),
        unknown: tuple[str, ...] = (),
    ) -> JudgedCall:
        """Return a call with the data that rules read, as of the run's current time. Stale evidence is omitted.

        `unknown` are the paths of the data whose values are not known yet.
        """
        self._now = state.now
        person, declared = self.requester, self._find_tool(capability.id)
        call = GovernedCall(
            capability.id,
            self.mode_of(capability),
            person.role,
            self.safety_mode,
            arguments,
            named_user=person.is_named,
            host=self._find_unlisted_host(services),
            inside=(*((self._own.tool,) if self._own else ()), *state.inside),
            asks_inside=bool(capability.reaches) and declared.approval_mode != "destructive",
            unknown=unknown,
        )
        return JudgedCall(call, self._build_data(call, state, step))

    def decide(self, case: JudgedCall) -> Verdict:
        """Return the verdict on a call whose data is complete."""
        call, data = case
        verdict = self._judge_own_skill(data) or self.rules.decide(
            self.requester.intent, call, data
        )
        unresolved = self._find_unknown_names(data)
        lacking = next((name for name in unresolved if not _is_open(name, call.unknown)), "")
        reason = self._find_unkept_obligation(call, verdict, lacking)
        may_be_made = self._may_be_made(verdict) and is_above(call.approval_mode, "read_only")
        if not reason and may_be_made and lacking:
            reason = f"evidence_missing:{lacking}"
        if reason:
            verdict = verdict._replace(
                outcome="deny", stage="situation", reason=reason, rule="", gate=""
            )
        return self._name_pack(verdict)

    def _name_pack(self, verdict: Verdict) -> Verdict:
        """Return the verdict with the pack whose rule decided, if the run has several packs."""
        if not self.pack.parts:
            return verdict
        return verdict._replace(pack=self.pack.rule_packs.get(verdict.rule, self.pack.parts[0]))

    def _find_unkept_obligation(self, call: GovernedCall, verdict: Verdict, lacking: str) -> str:
        """Return why an obligation of a call is not kept, also of one that a person decides about. Empty if all are
        kept, or if the call is not made. `lacking` is a piece of required evidence without a value.
        """
        if not self._may_be_made(verdict):
            return ""
        if verdict.outcome == "escalate" and (reason := self._find_refusal_by_mode(call)):
            return reason
        obligations = verdict.obligations
        if lacking and "evidence" in obligations:
            return f"evidence_missing:{lacking}"
        if verdict.masks and not self._may_mask(call.capability):
            return "obligation_not_kept"
        return "" if call.named_user or "named_user" not in obligations else "named_user"

    def _may_be_made(self, verdict: Verdict) -> bool:
        """Return whether the verdict allows the call, or would after a person approves it. Edition 1 counts the
        first case only.
        """
        return verdict.allows or (verdict.asks and self.edition >= LATEST_EDITION)

    def _find_refusal_by_mode(self, call: GovernedCall) -> str:
        """Return why the approval mode of a call forbids it even with a person's approval; empty if an approval permits
        it.
        """
        if call.host and self.pack.tooling.hosts is not None:
            return "host_not_listed"
        needs_user = is_above(call.approval_mode, "network") and not call.named_user
        return "named_user" if needs_user else ""

    def _may_mask(self, called_id: str) -> bool:
        """Return whether an output can be masked before it is recorded. The steps of a skill are recorded before the
        skill has an output. Edition 1 masked nothing.
        """
        return self.edition >= LATEST_EDITION and not called_id.startswith(NESTED)

    def _judge_own_skill(self, data: Json) -> Verdict | None:
        """Return the verdict on the skill that the run executes; None if the skill is allowed or is not a tool. The
        verdict applies to each call of the run, since the run itself is not a step.
        """
        if self._own is None:
            return None
        seen = RunState(self._own.inputs, NOTHING, NOTHING, data["run"]["now"])
        call, known = self.build_judged_call(
            self._tools[self._own.tool], self._own.inputs, seen, ""
        )
        verdict = self.rules.decide(self.requester.intent, call, known)
        if verdict.allows and verdict.masks and self.edition >= LATEST_EDITION:
            reason = "obligation_not_kept"
            return verdict._replace(outcome="deny", reason=reason, rule="", gate="")
        return None if verdict.outcome == "allow" else verdict

    def tool(self, skill_id: str) -> Capability | None:
        """Return the contract of a skill that the pack offers as a tool to this run. None for any other skill."""
        return self._tools.get(NESTED + skill_id)

    def tool_by_name(self, uses: str) -> Capability | None:
        """Return the contract of the tool that a step names as `skill:ID`. None for any other text."""
        return self._tools.get(uses)

    def mode_of(self, capability: Capability) -> str:
        """Return the approval mode of a capability under this pack."""
        mode = self._modes.get(capability.id)
        if mode is None:
            mode = self._modes[capability.id] = mode_under(
                self.pack.tooling.capabilities, capability
            )
        return mode

    def gate(self, name: str) -> PackGate:
        """Return the pack's gate of this name, or the built-in gate if the pack does not declare it."""
        return self.pack.policy.gate(name) or PackGate()

    def learn(self, capability_id: str, output: Mapping[str, object], at: str) -> None:
        """Add the facts in a call's output, as declared for the capability. They are observed at the time `at`."""
        learned_at = {}
        for slot, name, path in self._find_fact_paths(capability_id):
            value = walk({"output": output}, path)
            if value is MISSING or value is None:
                continue
            self._known.facts.setdefault(slot, {})[name] = deep_copy(value)
            learned_at[slot, name] = at
        if learned_at:
            facts, before, stored_at = self._known
            self._known = KnownFacts(facts, {**before, **learned_at}, stored_at)

    def _find_fact_paths(self, capability_id: str) -> tuple[_FactPath, ...]:
        """Return the facts that the pack declares for a capability, and their paths in its output."""
        paths = self._fact_paths.get(capability_id)
        if paths is None:
            declared = self._find_tool(capability_id).facts
            paths = tuple(
                (*_split_fact(key), tuple(source.split("."))) for key, source in declared.items()
            )
            self._fact_paths[capability_id] = paths
        return paths

    def _find_tool(self, id: str) -> PackTool:
        return self.pack.tooling.capabilities.get(id, _UNDECLARED)

    def merge_known_facts(
        self,
        facts: Mapping[str, Mapping[str, object]],
        stored_at: Callable[[str], Facts] | None = None,
    ) -> None:
        """Add facts that are known before any call, by slot.

        Facts that calls of this run return take precedence. `stored_at` returns the stored facts as of another time.
        """
        for slot, known in facts.items():
            self._known.facts[slot] = {**known, **self._known.facts.get(slot, {})}
        self._known = self._known._replace(stored_at=stored_at)

    @property
    def unresolved(self) -> tuple[str, ...]:
        """The names of required evidence that is not known."""
        return self._find_unknown_names(self.facts)

    def _find_unknown_names(self, data: Mapping[str, object]) -> tuple[str, ...]:
        return tuple(name for name in self._required if not _is_known(data, name))

    @property
    def facts(self) -> Facts:
        """The known facts about the entities of the request, by slot, as of the last judged call."""
        return self._facts_at(self._now)

    def replace_facts(self, known: KnownFacts) -> KnownFacts:
        """Replace all known facts, and return the previous ones."""
        before, self._known = self._known, known
        return before

    def _facts_at(self, now: str) -> Facts:
        """Return the facts as of a time: current facts from calls, otherwise facts of the stores for that time."""
        known = self._known
        if not now or (known.stored_at is None and not self.pack.knowledge.freshness_s):
            return {slot: dict(facts) for slot, facts in known.facts.items()}
        found = known.stored_at(now) if known.stored_at else {}
        for slot, facts in known.facts.items():
            current = found.setdefault(slot, {})
            for name, value in facts.items():
                if self._is_current(slot, name, now):
                    current[name] = value
        return found

    def _is_current(self, slot: str, name: str, now: str) -> bool:
        """Return whether a known fact may be used at a time. A fact from a call is current within `freshness_s`. Any
        other fact is current unless the run has a store, which may contain a newer one.
        """
        at = self._known.learned_at.get((slot, name))
        if at is None:
            return self._known.stored_at is None
        return not is_stale(at, name, self.pack.knowledge, now)

    def explain_refusal(self, reason: str) -> str:
        """Return a hint if a call was refused because evidence has become stale, otherwise an empty string."""
        name = reason.removeprefix("evidence_missing:")
        if name == reason or not _is_known(self._known.facts, name) or _is_known(self.facts, name):
            return ""
        return f"`{name}` is older than `freshness_s` of the pack allows: start a new run"

    def find_say(self, reason: str, reads: Json = NOTHING) -> str:
        """Return the text for the customer if the pack has one for the reason of a decision, otherwise an empty string.

        `reads` are those of the decision.
        """
        found = find_text(self.pack.policy, reason)
        if found is None:
            return ""
        values = self._list_safe_values()
        if found.limit is not None:
            values |= list_limit_values(found.limit, reads)
        return render_text(found.text, values)

    def _list_safe_values(self) -> Json:
        """Return the ids of the entities of the request, and the safe facts that calls of the run returned, by name."""
        known = self._known
        values: Json = {f"{slot}.id": facts.get("id") for slot, facts in known.facts.items()}
        for slot, name in known.learned_at:
            key = f"{slot}.{name}"
            if key in self._safe_facts and self._is_current(slot, name, self._now):
                values[key] = known.facts[slot][name]
        return values

    def decision_evidence(self, arguments: Mapping[str, object]) -> Json:
        """Return the data of a decision to record in the log, so that other rules can decide the same call later."""
        return {"input": arguments, "facts": self.facts}

    def _find_unlisted_host(self, services: tuple[str, ...]) -> str:
        """Return the first host of these services that the pack does not list, or an empty string.

        The host of an unknown service is not listed. A service on this machine has no host.
        """
        found = self._foreign.get(services)
        if found is None:
            hosts = [host for host in (self._hosts.get(id, "?") for id in services) if host]
            listed = self.pack.tooling.hosts or ()
            found = next((host for host in hosts if host not in listed), "")
            self._foreign[services] = found
        return found

    def _build_data(self, call: GovernedCall, state: RunState, step: str) -> Json:
        """Return the data that rules read (docs/reference/pack.md#rules)."""
        return {
            **self._facts_at(state.now),
            **self._parties,
            "request": {**self._asked, "params": state.inputs},
            "run": {"safety_mode": self.safety_mode, "turn": self.turn, "now": state.now},
            "call": {
                "capability": call.capability,
                "approval_mode": call.approval_mode,
                "step": step,
            },
            "args": call.arguments,
            "inputs": state.inputs,
            "vars": state.vars,
            "outputs": state.outputs,
            "state": self._view.read() if self._view else NOTHING,
        }


def _split_fact(key: str) -> tuple[str, str]:
    """Return slot and name of a fact."""
    slot, _, name = key.partition(".")
    return slot, name


def _is_open(name: str, unknown: tuple[str, ...]) -> bool:
    """Return whether a fact may still become known before its call."""
    return any(paths_overlap(name, path) for path in unknown)


def _is_known(data: Mapping[str, object], name: str) -> bool:
    """Return whether `data` has a value for the fact `name`, which is written as `slot.fact`."""
    slot, _, fact = name.partition(".")
    return value_at(data.get(slot), fact) is not None


class LimitsPolicy:
    """The policy of a run without a pack. It enforces only a ceiling and budgets."""

    records_allow = False
    intuition_mode: Final = None
    observe: Final = None
    name = "builtin.default"
    has_limits = False
    retries: int | None = None

    def __init__(self, budgets: Budgets, safety_mode: str = "") -> None:
        self.budgets = budgets
        self._ceiling = safety_mode

    def judge(
        self,
        capability: Capability,
        arguments: Mapping[str, object],
        state: RunState,
        step: str,
        services: tuple[str, ...] = (),
    ) -> Verdict:
        """Return a verdict that denies a call above the ceiling, and allows any other call."""
        mode = approval_mode(capability)
        above = bool(self._ceiling) and is_above(mode, self._ceiling)
        reason = "above_safety_mode" if above else "no_rule"
        return Verdict("deny" if above else "allow", "permission", reason, approval_mode=mode)

    def find_claims(
        self, capability_id: str, arguments: Mapping[str, object]
    ) -> tuple[LimitClaim, ...]:
        """Return nothing: without a pack no limit counts calls."""
        return ()

    def tool(self, skill_id: str) -> Capability | None:
        """Return None: without a pack no skill is a tool."""
        return None

    def gate(self, name: str) -> PackGate:
        """Return the built-in gate. Verdicts of this policy never name a gate."""
        return PackGate()

    def learn(self, capability_id: str, output: Mapping[str, object], at: str) -> None:
        """Do nothing, since without a pack no output is a fact."""

    def explain_refusal(self, reason: str) -> str:
        """Return an empty string: without a pack no evidence is required."""
        return ""

    def find_say(self, reason: str, reads: Json = NOTHING) -> str:
        """Return an empty string: only a pack has texts for customers."""
        return ""

    def decision_evidence(self, arguments: Mapping[str, object]) -> Json:
        """Return an empty object: the verdict depends only on the capability's mode."""
        return {}
