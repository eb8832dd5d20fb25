"""Checks for parts of a policy that have no effect (docs/reference/pack.md#policy-check). Pure.

These are unreachable rules, rules that a stricter rule always overrules, unused gates, and roles that no agent has.
Only what follows from the pack alone is reported. Of the conditions, only comparisons of numbers with constants, joined
by `and`, are understood.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import pairwise
from math import inf
from typing import Final

from cogcli.base.jsonvalue import NOTHING, list_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.pack_spec import Pack, PolicyRule
from cogcli.policy.comparisons import MIRRORED, path_of
from cogcli.policy.evaluation import is_number
from cogcli.policy.jsonlogic import compile_rule, evaluate
from cogcli.policy.pack_policy import applies
from cogcli.policy.verdict import is_stricter
from cogcli.specs.problem_report import ProblemReport

_LAYER: Final = "policy_layer"
Calls = frozenset[tuple[str, str]]
"""The calls that a rule applies to: pairs of an intent and a capability that it lists."""


class Interval(NamedTuple):
    """Numbers from `low` to `high`. `open_low` and `open_high` exclude the ends."""

    low: float = -inf
    high: float = inf
    open_low: bool = False
    open_high: bool = False

    def contains(self, other: Interval) -> bool:
        """Return whether this interval contains every number of another one."""
        low = self.low < other.low or (self.low == other.low and self.open_low <= other.open_low)
        high = self.high > other.high or (
            self.high == other.high and self.open_high <= other.open_high
        )
        return low and high

    def intersect(self, other: Interval) -> Interval:
        """Return the intersection with another interval."""
        low = max((self.low, self.open_low), (other.low, other.open_low))
        high = min((self.high, not self.open_high), (other.high, not other.open_high))
        return Interval(low[0], high[0], low[1], not high[1])


Bounds = dict[str, Interval]
"""By path: the numbers for which a condition is true."""


def check_reach(
    pack: Pack,
    report: ProblemReport,
    capabilities: Collection[str],
    tools: Mapping[str, Capability] = NOTHING,
) -> None:
    """Report as warnings the parts of a pack's policy that have no effect. `tools` are the contracts of its skills."""
    _check_roles(pack, report)
    _check_gates(pack, report)
    reached = [_find_calls(pack, rule, capabilities, tools) for rule in pack.policy.rules]
    bounds = [
        _find_bounds(rule.condition) if rule.is_enforced else None for rule in pack.policy.rules
    ]
    for number, rule in enumerate(pack.policy.rules):
        about = report.part(f"rule `{rule.rule_id}`", _LAYER, "rules", number)
        fits = any(applies(rule.scope.capabilities, id) for id in capabilities)
        if fits and not reached[number]:
            text = "applies to no capability that an intent of it lists and a role may call"
            about.warn("policy.unreachable", ("applies_to",), text, key=True)
        elif _is_always_false(rule):
            about.warn("policy.unreachable", ("if",), "never holds, whatever the facts are")
        elif above := _find_overruling_rule(pack.policy.rules, reached, bounds, number):
            text = (
                f"says {rule.then.verdict} only where `{above.rule_id}` says {above.then.verdict}"
            )
            about.warn(
                "policy.unreachable",
                ("then", "verdict"),
                text,
                hint="remove it, or narrow the other",
            )


def _check_roles(pack: Pack, report: ProblemReport) -> None:
    own = pack.tone.agent.role
    for number, role in enumerate(pack.policy.permissions):
        if role != own:
            text = f"role `{role}`: the agent's is `{own}`, so nobody has it"
            report.warn("policy.role", (_LAYER, "permissions", number, "role"), text)
    if own not in pack.policy.permissions:
        text = f"the agent's role `{own}` may call nothing"
        report.warn("policy.role", (_LAYER, "permissions"), text, key=True)


def _check_gates(pack: Pack, report: ProblemReport) -> None:
    layer, found = pack.policy, pack.policy.guardrails
    used = {rule.then.gate for rule in layer.rules}
    used |= {guardrail.gate for guardrail in (*found.must_refuse, *found.must_escalate)}
    for name, gate in layer.gates.items():
        about = report.part(f"gate `{name}`", _LAYER, "gates", name)
        if set(gate.approver_roles) == {pack.tone.agent.role}:
            text = "only the agent's own role may answer it, and an agent answers nothing"
            about.warn("policy.gate", ("approver_roles",), text)
        if name not in used:
            about.warn("policy.gate", (), "no rule or guardrail asks for it", key=True)


def _find_calls(
    pack: Pack, rule: PolicyRule, capabilities: Collection[str], tools: Mapping[str, Capability]
) -> Calls:
    permitted = {id for each in pack.policy.permissions.values() for id in each.allow}
    usable = permitted.intersection(capabilities)
    return frozenset(
        (intent.id, called)
        for intent in pack.decisions.intents.values()
        if applies(rule.scope.intents, intent.id)
        for id in intent.capabilities
        if id in usable
        for called in _list_called_names(id, tools)
        if applies(rule.scope.capabilities, called)
    )


def _list_called_names(id: str, tools: Mapping[str, Capability]) -> tuple[str, ...]:
    """Return a capability or skill, followed by the capabilities that the skill reaches."""
    reached = tools[id].reaches if id in tools else ()
    return (id, *(each.id for each in reached))


def _is_always_false(rule: PolicyRule) -> bool:
    """Return whether a condition is a constant that is false."""
    compiled = compile_rule(rule.condition)
    is_constant = not compiled.paths and not compiled.computed
    return is_constant and evaluate(compiled, {}).result is False


def _find_overruling_rule(
    rules: tuple[PolicyRule, ...], reached: list[Calls], bounds: list[Bounds | None], number: int
) -> PolicyRule | None:
    """Return a stricter enforced rule that matches whenever this rule does, or None.

    `bounds` are those of the enforced rules. A rule with obligations or limits is never overruled.
    """
    rule, own = rules[number], bounds[number]
    if own is None or rule.then.obligations or rule.then.limits:
        return None
    for other, calls, theirs in zip(rules, reached, bounds, strict=True):
        stricter = is_stricter(other.then.verdict, rule.then.verdict)
        if stricter and reached[number] <= calls and _is_true_throughout(theirs, own):
            return other
    return None


def _is_true_throughout(bounds: Bounds | None, own: Bounds) -> bool:
    """Return whether the condition with these bounds is true for all numbers within `own`."""
    return bounds is not None and all(
        path in own and within.contains(own[path]) for path, within in bounds.items()
    )


def _find_bounds(condition: object) -> Bounds | None:
    """Return, by path, the numbers for which a condition is true. None if the condition is too complex."""
    match condition:
        case True:
            return {}
        case {"and": [*parts], **others} if not others:
            return _intersect_all([_find_bounds(part) for part in parts])
        case dict() if len(condition) == 1:
            operator, given = next(iter(condition.items()))
            return _intersect_all(
                [_find_bound(operator, *pair) for pair in pairwise(list_of(given))]
            )
    return None


def _intersect_all(parts: list[Bounds | None]) -> Bounds | None:
    """Return the intersection of the bounds of a condition's parts. None without parts, or if one part has no
    bounds.
    """
    met: Bounds = {}
    for part in parts:
        if part is None:
            return None
        for path, interval in part.items():
            met[path] = met.get(path, Interval()).intersect(interval)
    return met if parts else None


def _find_bound(operator: str, left: object, right: object) -> Bounds | None:
    path, value, word = path_of(left), right, operator
    if not path:
        path, value, word = path_of(right), left, MIRRORED.get(operator, operator)
    if not path or not is_number(value):
        return None
    intervals = {
        "<": Interval(high=value, open_high=True),
        "<=": Interval(high=value),
        ">": Interval(low=value, open_low=True),
        ">=": Interval(low=value),
        "==": Interval(value, value),
        "===": Interval(value, value),
    }
    return {path: intervals[word]} if word in intervals else None
