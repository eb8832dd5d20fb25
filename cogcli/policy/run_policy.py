"""What decides about the calls of one run tree under a pack: its policy, budgets and facts
(docs/reference/pack.md#governed-calls). Pure but for the lock of its budgets.

The pack is fixed when the run begins; only facts grow, from the outputs of calls that were made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from cogcli.base.jsonvalue import NOTHING, deep_copy, object_of
from cogcli.base.refs import MISSING
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.envelope import Event
from cogcli.declarations.pack_spec import Pack, PackGate, PackTool
from cogcli.declarations.spec_types import NESTED
from cogcli.declarations.value_types import IntuitionMode
from cogcli.policy.budgets import Budgets
from cogcli.policy.freshness import is_stale
from cogcli.policy.pack_policy import MASK, GovernedCall, Policy
from cogcli.policy.verdict import Verdict, approval_mode, is_above, mode_under
from cogcli.state.namespaces import walk

_UNDECLARED: Final = PackTool()
"""What a pack says of a capability that it does not declare."""
Facts = dict[str, dict[str, Any]]
"""What is known of the entity in each slot."""


class KnownFacts(NamedTuple):
    """What is known of the entities, and how the age of each fact is found."""

    facts: Facts
    learned_at: Mapping[tuple[str, str], str] = NOTHING
    """By slot and name when a call of the run gave a fact."""
    stored_at: Callable[[str], Facts] | None = None
    """The facts that the stores gave, as of a time; None if the run read no store."""


class Requester(NamedTuple):
    """Who asks, in which role the agent acts, and what for: the part of a rule's data that is known before a run."""

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
        """Whether the user is somebody, and not the default user."""
        return self.user_id != "default"


class RunState(NamedTuple):
    """What of a run rules may read when a call is judged."""

    inputs: Mapping[str, Any]
    vars: Mapping[str, Any]
    outputs: Mapping[str, Any]
    now: str
    inside: tuple[str, ...] = ()
    """The skill tools that the call is made in."""


class OwnSkill(NamedTuple):
    """The skill that a run is of, as `skill:ID`, and what it was given."""

    tool: str
    inputs: Mapping[str, Any]


class JudgedCall(NamedTuple):
    """One call with what its rules see."""

    call: GovernedCall
    data: dict[str, Any]

    def with_value(self, path: str, value: Any) -> JudgedCall:
        """The same call with another value at a path of what its rules see."""
        data = with_value(self.data, path, value)
        return JudgedCall(self.call._replace(arguments=data["args"]), data)


def with_value(data: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of the data of a rule with another value at a path."""
    head, *rest = path.split(".")
    return {**data, head: _with(data.get(head), rest, value)}


def _with(value: Any, path: list[str], new: Any) -> Any:
    """A copy of a value with another one at a path; a part that is not there is made an object."""
    if not path:
        return new
    first, *rest = path
    if isinstance(value, list) and first.isdigit() and int(first) < len(value):
        at = int(first)
        return [*value[:at], _with(value[at], rest, new), *value[at + 1 :]]
    known = value if isinstance(value, Mapping) else NOTHING
    return {**known, first: _with(known.get(first), rest, new)}


class StateView(Protocol):
    """What `state.json` says of the run at this point of its log."""

    def apply(self, event: Event) -> None:
        """Take up an event, in order of the log."""
        ...

    def read(self) -> Mapping[str, Any]:
        """The parts of the document that rules read."""
        ...


class RunPolicy:
    """The policy of a run tree. `safety_mode` is the ceiling, `hosts` the host of each service, empty for one on this
    machine; `view` the state that rules read, None where none does."""

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
    ) -> None:
        self.pack, self.budgets, self.requester = pack, budgets, requester
        self.safety_mode, self.name = safety_mode, pack.ref
        self.rules = policy
        self.turn, self.retries = 1, retries
        self._known = KnownFacts(
            {name: {"id": entity.partition(":")[2]} for name, entity in slots.items()}, {}
        )
        self._now = ""
        self._required, self._hosts = tuple(required), hosts
        self._view = view
        self._modes: dict[str, str] = {}
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
        """How the rules take part in the run, as `state.json` says it."""
        return self.rules.intuition_mode

    @property
    def observe(self) -> Callable[[Event], None] | None:
        """What is given each event of the run; None where no rule reads the state."""
        return self._view.apply if self._view else None

    @property
    def snapshot(self) -> Mapping[str, Any]:
        """What rules read of the run's state."""
        return self._view.read() if self._view else NOTHING

    def judge(
        self,
        capability: Capability,
        arguments: Mapping[str, Any],
        state: RunState,
        step: str,
        services: tuple[str, ...] = (),
    ) -> Verdict:
        """The verdict on a call that is about to be made, through one of these services."""
        return self.decide(self.case(capability, arguments, state, step, services))

    def case(
        self,
        capability: Capability,
        arguments: Mapping[str, Any],
        state: RunState,
        step: str,
        services: tuple[str, ...] = (),
    ) -> JudgedCall:
        """A call with what its rules see at the time of the run's state: evidence that is stale then is not known."""
        self._now = state.now
        asked, declared = self.requester, self._declared(capability.id)
        call = GovernedCall(
            capability.id,
            self.mode_of(capability),
            asked.role,
            self.safety_mode,
            arguments,
            named_user=asked.is_named,
            host=self._foreign_host(services),
            inside=(*((self._own.tool,) if self._own else ()), *state.inside),
            asks_inside=bool(capability.reaches) and declared.approval_mode != "destructive",
        )
        return JudgedCall(call, self._data(call, state, step))

    def decide(self, case: JudgedCall) -> Verdict:
        """The verdict on a case."""
        call, data = case
        verdict = self._verdict_on_own(data) or self.rules.decide(self.requester.intent, call, data)
        lacking = next(iter(self._unresolved_of(data)), "")
        reason = ""
        if lacking and (
            is_above(call.approval_mode, "read_only") or "evidence" in verdict.obligations
        ):
            reason = f"evidence_missing:{lacking}"
        elif any(each.startswith(MASK) for each in verdict.obligations):
            reason = "obligation_not_kept"  # nothing masks an output yet: what was promised is not let through
        if verdict.allows and reason:
            return verdict._replace(
                verdict="deny", stage="situation", reason=reason, rule="", gate=""
            )
        return verdict

    def _verdict_on_own(self, data: dict[str, Any]) -> Verdict | None:
        """What is said of the skill that the run is of, where that is a tool and not simply allowed: it counts for each
        call, for the run of a skill has no step that could be decided about."""
        if self._own is None:
            return None
        seen = RunState(self._own.inputs, NOTHING, NOTHING, data["run"]["now"])
        call, known = self.case(self._tools[self._own.tool], self._own.inputs, seen, "")
        verdict = self.rules.decide(self.requester.intent, call, known)
        return None if verdict.verdict == "allow" else verdict

    def tool(self, skill_id: str) -> Capability | None:
        """The contract of a skill that the pack offers as a tool to this run; None for any other skill."""
        return self._tools.get(NESTED + skill_id)

    def mode_of(self, capability: Capability) -> str:
        """The approval mode of a capability under this pack."""
        mode = self._modes.get(capability.id)
        if mode is None:
            mode = self._modes[capability.id] = mode_under(
                self.pack.tooling.capabilities, capability
            )
        return mode

    def gate(self, name: str) -> PackGate:
        """The gate of a verdict; one that the pack does not have is the built-in one."""
        return self.pack.policy.gate(name) or PackGate()

    def learn(self, capability_id: str, output: Mapping[str, Any], at: str) -> None:
        """Take up the facts that a call's output declares, as of this time."""
        declared = self._declared(capability_id).facts
        learned_at = {}
        for key, source in declared.items():
            value = walk({"output": output}, tuple(source.split(".")))
            if value is MISSING or value is None:
                continue
            slot, _, name = key.partition(".")
            self._known.facts.setdefault(slot, {})[name] = deep_copy(value)
            learned_at[slot, name] = at
        self._known = self._known._replace(learned_at={**self._known.learned_at, **learned_at})

    def _declared(self, id: str) -> PackTool:
        return self.pack.tooling.capabilities.get(id, _UNDECLARED)

    def note_facts(
        self,
        facts: Mapping[str, Mapping[str, Any]],
        stored_at: Callable[[str], Facts] | None = None,
    ) -> None:
        """Take up what is known before any call, by slot; what calls of this run gave stands above it. `stored_at`
        returns the same facts as of another time."""
        for slot, known in facts.items():
            self._known.facts[slot] = {**known, **self._known.facts.get(slot, {})}
        self._known = self._known._replace(stored_at=stored_at)

    @property
    def unresolved(self) -> tuple[str, ...]:
        """The required evidence that is not known."""
        return self._unresolved_of(self.facts)

    def _unresolved_of(self, data: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(name for name in self._required if not _is_known(data, name))

    @property
    def facts(self) -> Facts:
        """What is known of the entities of the request, by slot, as of the last call that was judged."""
        return self._facts_at(self._now)

    def replace_facts(self, known: KnownFacts) -> KnownFacts:
        """Replace all that is known; return what was known before."""
        before, self._known = self._known, known
        return before

    def _facts_at(self, now: str) -> Facts:
        """What is known as of a time: facts of calls within `freshness_s`, the others as the stores give them then."""
        known = self._known
        if not now or (known.stored_at is None and not self.pack.knowledge.freshness_s):
            return {slot: dict(facts) for slot, facts in known.facts.items()}
        found = known.stored_at(now) if known.stored_at else {}
        for slot, facts in known.facts.items():
            current = found.setdefault(slot, {})
            for name, value in facts.items():
                at = known.learned_at.get((slot, name))
                is_undated = at is None and known.stored_at is None
                if is_undated or (
                    at is not None and not is_stale(at, name, self.pack.knowledge, now)
                ):
                    current[name] = value
        return found

    def explain_refusal(self, reason: str) -> str:
        """A hint for a call that was refused for evidence that was known and has gone stale."""
        name = reason.removeprefix("evidence_missing:")
        if name == reason or not _is_known(self._known.facts, name) or _is_known(self.facts, name):
            return ""
        return f"`{name}` is older than `freshness_s` of the pack allows: start a new run"

    def basis(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What of a decision the log holds, so that it can be told what other rules would decide."""
        return {"input": arguments, "facts": self.facts}

    def _foreign_host(self, services: tuple[str, ...]) -> str:
        """The first host of these services that the pack does not list; of a service that is not known a name that no
        list holds; empty where nothing leaves this machine for another one."""
        found = self._foreign.get(services)
        if found is None:
            hosts = [host for host in (self._hosts.get(id, "?") for id in services) if host]
            listed = self.pack.tooling.hosts or ()
            found = next((host for host in hosts if host not in listed), "")
            self._foreign[services] = found
        return found

    def _data(self, call: GovernedCall, state: RunState, step: str) -> dict[str, Any]:
        """What rules see (docs/reference/pack.md#rules)."""
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


def _is_known(data: Mapping[str, Any], name: str) -> bool:
    """Whether a fact of a slot is known."""
    slot, _, fact = name.partition(".")
    return object_of(data.get(slot)).get(fact) is not None


class LimitsPolicy:
    """The policy of a run without a pack whose ceiling or budgets were given: only those are held."""

    records_allow = False
    intuition_mode: Final = None
    observe: Final = None
    name = "builtin.default"
    retries: int | None = None

    def __init__(self, budgets: Budgets, safety_mode: str = "") -> None:
        self.budgets = budgets
        self._ceiling = safety_mode

    def judge(
        self,
        capability: Capability,
        arguments: Mapping[str, Any],
        state: RunState,
        step: str,
        services: tuple[str, ...] = (),
    ) -> Verdict:
        """Deny what is above the ceiling."""
        mode = approval_mode(capability)
        above = bool(self._ceiling) and is_above(mode, self._ceiling)
        reason = "above_safety_mode" if above else "no_rule"
        return Verdict("deny" if above else "allow", "permission", reason, approval_mode=mode)

    def tool(self, skill_id: str) -> Capability | None:
        """None: without a pack no skill is a tool."""
        return None

    def gate(self, name: str) -> PackGate:
        """The built-in gate; nothing here asks for one."""
        return PackGate()

    def learn(self, capability_id: str, output: Mapping[str, Any], at: str) -> None:
        """Nothing: without a pack no output is a fact."""

    def explain_refusal(self, reason: str) -> str:
        """Nothing: without a pack no evidence is required."""
        return ""

    def basis(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Nothing: only the mode of the capability counts."""
        return {}
