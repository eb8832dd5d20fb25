"""A call that two policies decide differently: from the answer of a solver to data that the evaluator confirms
(docs/reference/pack.md#prove). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from typing import Final

from cogcli.base.jsonvalue import MAX_INTEGER, deep_copy
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.pack_spec import MODES, Pack, PackTool
from cogcli.declarations.value_types import Json, Number
from cogcli.policy.budgets import Budgets
from cogcli.policy.evaluation import is_number
from cogcli.policy.limits import amount_of, apply_limits, find_claims
from cogcli.policy.pack_policy import GovernedCall, Policy
from cogcli.policy.policy_effect import compare_verdicts
from cogcli.policy.run_policy import JudgedCall, Requester, RunPolicy, with_value
from cogcli.policy.verdict import Verdict, mode_under
from cogcli.specs.unchecked import text_at, value_at

USER: Final = "user.id"
_TURN: Final = "run.turn"
_NOBODY: Final = "user-1"
"""The user of a call whose user does not matter."""


class CallKind(NamedTuple):
    """An intent and a capability. `inside` is the skill tool that makes the call, or empty."""

    intent: str
    capability: Capability
    inside: str = ""


class CallCase(NamedTuple):
    """One call with all facts that decide it."""

    kind: CallKind
    facts: Mapping[str, object]
    """Values by path of a rule's data. What it lacks is absent."""
    ceilings: tuple[str, str]
    """The safety modes of the run under the old and the new pack."""
    host: str = ""
    used: tuple[Mapping[str, Number], Mapping[str, Number]] = ({}, {})
    """The values of the counters under the old and the new pack, by limit."""

    def to_payload(self) -> Json:
        """Return the call as JSON. Its data can be given to `policy eval`."""
        data: Json = {}
        for path, value in self.facts.items():
            data = with_value(data, path, value)
        before, after = self.used
        counts_alike = all(before[id] == after[id] for id in before.keys() & after.keys())
        if any(self.used) and counts_alike:
            data["limits"] = {**before, **after}
        data = with_value(data, "request.intent", self.kind.intent)
        data = with_value(data, USER, self.facts.get(USER, _NOBODY))
        old, new = self.ceilings
        where = {"inside": self.kind.inside, "host": self.host}
        modes = {"before": old, "after": new} if old != new else None
        return {
            "intent": self.kind.intent,
            "capability": self.kind.capability.id,
            **{name: value for name, value in where.items() if value},
            **({"safety_mode": modes} if modes else {}),
            **({} if counts_alike else {"limits": {"before": before, "after": after}}),
            "data": data if old != new else with_value(data, "run.safety_mode", old),
        }


class ComparedPacks(NamedTuple):
    """Two packs whose verdicts are compared, each with its compiled policy."""

    old: Pack
    new: Pack
    policies: tuple[Policy, Policy]

    @classmethod
    def of(cls, old: Pack, new: Pack) -> ComparedPacks:
        """Return two packs with their policies."""
        return cls(old, new, (Policy.of(old), Policy.of(new)))

    def decide(self, case: CallCase) -> tuple[Verdict, Verdict]:
        """Return the verdicts of the old and the new pack on a call."""
        old, new = (
            _decide_case(pack, policy, case, number)
            for number, (pack, policy) in enumerate(
                zip((self.old, self.new), self.policies, strict=True)
            )
        )
        return old, new

    def compare(self, case: CallCase) -> frozenset[str]:
        """Return in which ways the new pack permits more, less or something else."""
        old, new = self.decide(case)
        return compare_verdicts(self.old, old, self.new, new)


def _decide_case(pack: Pack, policy: Policy, case: CallCase, number: int) -> Verdict:
    """Return the verdict of one pack on a call, computed as in a run."""
    kind, mode = case.kind, case.ceilings[number]
    data = build_data(pack, case, mode)
    requester = Requester(
        kind.intent,
        text_at(data["user"], "id") or _NOBODY,
        role=pack.tone.agent.role,
        voice=pack.tone.agent.voice,
    )
    evidence = pack.decisions.required_evidence(kind.intent)
    run = RunPolicy(pack, policy, Budgets({}), requester, safety_mode=mode, required=evidence)
    verdict = run.decide(JudgedCall(_build_call(pack, case, mode, data, requester), data))
    owners = {slot: value_at(each, "id") for slot, each in data.items()}
    owners |= {"user": requester.user_id, "tenant": pack.tenant}
    claims = find_claims(pack, kind.intent, kind.capability.id, data["args"], owners)
    held = {claim.limit.id: case.used[number].get(claim.limit.id, 0) for claim in claims}
    amounts = {id: amount_of(value) or Decimal(0) for id, value in held.items()}
    return apply_limits(verdict, claims, amounts)


def _build_call(
    pack: Pack, case: CallCase, mode: str, data: Json, requester: Requester
) -> GovernedCall:
    kind, tools = case.kind, pack.tooling.capabilities
    declared = tools.get(kind.capability.id, PackTool()).approval_mode
    return GovernedCall(
        kind.capability.id,
        mode_under(tools, kind.capability),
        requester.role,
        mode,
        data["args"],
        named_user=requester.is_named,
        host="" if case.host in (pack.tooling.hosts or ()) else case.host,
        inside=(kind.inside,) if kind.inside else (),
        asks_inside=bool(kind.capability.reaches) and declared != "destructive",
    )


def build_data(pack: Pack, case: CallCase, mode: str) -> Json:
    """Return the input data of rules for a call, including the members that every call has."""
    data: Json = {
        "request": {"message": "", "channel": "", "locale": "", "params": {}},
        "user": {"id": _NOBODY, "role": "", "consent": []},
        "run": {"turn": 1, "now": ""},
        "call": {"step": ""},
        **{part: {} for part in ("args", "inputs", "vars", "outputs", "state")},
    }
    for path, value in sorted(case.facts.items()):
        data = with_value(data, path, deep_copy(value))
    data["request"] |= {"intent": case.kind.intent, "params": data["inputs"]}
    data["agent"] = {"role": pack.tone.agent.role, "voice": pack.tone.agent.voice}
    data["run"] |= {"safety_mode": mode}
    capability = case.kind.capability
    data["call"] |= {
        "capability": capability.id,
        "approval_mode": mode_under(pack.tooling.capabilities, capability),
    }
    return data


def _drop_facts(packs: ComparedPacks, case: CallCase, relation: str) -> CallCase:
    """Return the call without its removable facts. Try removing all at once, then halves, finally single facts."""
    size = len(case.facts)
    while size:
        paths = list(case.facts)
        for start in range(0, len(paths), size):
            block = paths[start : start + size]
            rest = {path: each for path, each in case.facts.items() if path not in block}
            case = _find_first_difference(packs, [case._replace(facts=rest)], relation) or case
        size //= 2
    return case


def shrink(packs: ComparedPacks, case: CallCase, relation: str) -> CallCase:
    """Return a smaller call that still differs in this way: with fewer facts and simpler values."""
    case = _drop_facts(packs, case, relation)
    if case.host:
        case = _find_first_difference(packs, [case._replace(host="")], relation) or case
    for id in dict.fromkeys(id for held in case.used for id in held):
        case = _find_first_difference(packs, _with_simpler_use(case, id), relation) or case
    for path in case.facts:
        case = _find_first_difference(packs, _with_simpler_fact(case, path), relation) or case
    return case


def _find_first_difference(
    packs: ComparedPacks, cases: Iterable[CallCase], relation: str
) -> CallCase | None:
    return next((case for case in cases if relation in packs.compare(case)), None)


def _with_simpler_fact(case: CallCase, path: str) -> Iterator[CallCase]:
    """Yield the call with simpler numbers. A value of another kind, or a turn of 0, might be of no call at all."""
    value = case.facts[path]
    if is_number(value) and path != _TURN:
        for simpler in _simpler_numbers(value):
            yield case._replace(facts={**case.facts, path: simpler})


def _with_simpler_use(case: CallCase, id: str) -> Iterator[CallCase]:
    """Yield the call with simpler values of a counter. What both packs count alike stays the same under both."""
    values = dict.fromkeys(held[id] for held in case.used if id in held)
    for value in values:
        for simpler in _simpler_numbers(value):
            old, new = (
                {**held, id: simpler} if held.get(id) == value else held for held in case.used
            )
            yield case._replace(used=(old, new))


def _simpler_numbers(value: Number) -> Iterator[Number]:
    """Yield numbers that are easier to read: 0, whole ones, and then those with fewer digits."""
    rounded = [0, *(floor(value), ceil(value)), round(value, 2)]
    own = _number_weight(value)
    yield from (each for each in dict.fromkeys(rounded) if _number_weight(each) < own)


def _number_weight(value: Number) -> tuple[bool, int]:
    return (value != 0, len(repr(value)))


def number_from(value: Fraction) -> Number:
    """Return a number of a solver as JSON has it: whole, or the nearest one with a fraction."""
    if value.denominator == 1 and abs(value) <= MAX_INTEGER:
        return int(value)
    return float(value)


def mode_at(position: Fraction) -> str:
    """Return the safety mode at a position."""
    return MODES[int(position)]
