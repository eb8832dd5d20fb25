"""The verdict of a pack on one kind of call, as terms for a solver (docs/adr/0038-proofs.md). Pure.

It follows `Policy.decide`, `RunPolicy.decide` and `apply_limits` step by step. The evaluator confirms each difference,
and a property test holds each proof against it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from cogcli.base.canonical import compact
from cogcli.base.jsonvalue import MAX_INTEGER, kind_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.pack_spec import (
    BUILT_IN_GATE,
    MODES,
    ArgumentLimit,
    CumulativeLimit,
    Pack,
    PackTool,
)
from cogcli.declarations.spec_types import NESTED, VERDICTS
from cogcli.policy.counterexample import CallKind
from cogcli.policy.evaluation import is_number
from cogcli.policy.pack_policy import OBLIGATIONS, CompiledPolicyRule, Policy, applies
from cogcli.policy.smt_script import (
    FALSE,
    TRUE,
    all_of,
    any_of,
    either,
    equals,
    negated,
    number_term,
)
from cogcli.policy.symbolic_rules import Readings, RuleReader
from cogcli.policy.symbolic_values import Unknown
from cogcli.policy.verdict import MASK, is_above, mode_under

_NO: Final = ("deny", "refuse")
"""The verdicts after which no further rule is evaluated."""


class SymbolicCaller(NamedTuple):
    """The caller and the host of a call, which both policies share."""

    named_user: str
    host: str
    hosts: tuple[str, ...]
    """The hosts that a pack lists. A host is written as its position, counted from 1; 0 is no host."""


class PolicySide(NamedTuple):
    """One of the two policies, for one kind of call."""

    pack: Pack
    policy: Policy
    ceiling: str
    """The position of the safety mode of the run."""
    reader: RuleReader
    limits: Mapping[str, str]
    """The values of the limits' counters."""


class SymbolicVerdict(NamedTuple):
    """The conditions, as solver terms, under which a call gets each verdict, obligation and gate."""

    levels: Mapping[str, str]
    """By verdict: when it is the result. Exactly one of them is."""
    obligations: Mapping[str, str]
    gates: Mapping[str, str]
    """Gates, each with the condition under which it must decide."""

    @property
    def rank(self) -> str:
        """The strictness of the verdict, as a term: 0 for `allow`, the highest number for `deny`."""
        found = "0"
        for rank, verdict in enumerate(reversed(VERDICTS)):
            found = either(self.levels[verdict], str(rank), found)
        return found

    @property
    def asks(self) -> str:
        """The condition under which a person must decide."""
        return any_of(self.levels["allow_with_gate"], self.levels["escalate"])

    @property
    def binds(self) -> str:
        """The condition under which the call may be made, possibly after a person's decision."""
        return any_of(self.levels["allow"], self.asks)

    def deny(self, condition: str) -> SymbolicVerdict:
        """Return the verdict that is `deny` under a further condition."""
        kept = negated(condition)
        levels = {name: all_of(term, kept) for name, term in self.levels.items()}
        levels["deny"] = any_of(self.levels["deny"], condition)
        return self._replace(levels=levels)


DENIED: Final = SymbolicVerdict(
    {verdict: TRUE if verdict == "deny" else FALSE for verdict in VERDICTS}, {}, {}
)


class _RuleOutcome(NamedTuple):
    """The conditions under which a rule matches, and under which it has each verdict."""

    rule: CompiledPolicyRule
    matches: str
    denies: str
    """The condition under which the rule denies: it fails with an error, or its limits or obligations are violated."""

    def condition_of(self, verdict: str) -> str:
        """Return the condition under which the rule has a verdict."""
        then = self.rule.declared.then
        declared = all_of(self.matches, negated(self.denies)) if then.verdict == verdict else FALSE
        return any_of(declared, self.denies) if verdict == "deny" else declared


class VerdictReader:
    """Reads the verdict of one policy on one kind of call."""

    def __init__(
        self, shared: Readings, side: PolicySide, call: CallKind, scene: SymbolicCaller
    ) -> None:
        self._shared, self._side, self._call, self._scene = shared, side, call, scene
        tools, id = side.pack.tooling.capabilities, call.capability.id
        self._mode = mode_under(tools, call.capability)
        declared = tools.get(id, PackTool()).approval_mode
        self._asks_inside = bool(call.capability.reaches) and declared != "destructive"

    def read(self) -> SymbolicVerdict:
        """Return the verdict."""
        side, intent, id = self._side, self._call.intent, self._call.capability.id
        role, tool = side.pack.tone.agent.role, self._call.inside
        if not (side.policy.offers(intent, role, id) or side.policy.offers(intent, role, tool)):
            return DENIED
        rules = side.policy.rules_for(intent, id)
        outcomes = [self._read_rule(rule) for rule in rules if rule.declared.is_enforced]
        outcomes = self._stop_after_no(outcomes)
        above = f"(< {side.ceiling} {MODES.index(self._mode)})"
        verdict = self._apply_mode(self._strictest_verdict(outcomes))
        verdict = verdict.deny(self._find_unmet_condition(verdict, outcomes))
        verdict = self._apply_limits(verdict, outcomes)
        return verdict.deny(above)

    def _read_rule(self, rule: CompiledPolicyRule) -> _RuleOutcome:
        found = self._side.reader.read_rule(rule.condition, rule.declared.condition)
        then = rule.declared.then
        known = all(each in OBLIGATIONS or each.startswith(MASK) for each in then.obligations)
        broken = any_of(*[self._breach_condition(name, each) for name, each in then.limits.items()])
        unkept = broken if known else TRUE
        denies = any_of(found.fails, all_of(found.matches, unkept))
        return _RuleOutcome(rule, found.matches, self._name_term(denies))

    def _breach_condition(self, name: str, limit: ArgumentLimit) -> str:
        """Return the condition under which an argument is beyond its limit, or absent."""
        path = f"args.{name.replace('.', '/')}"  # a dot in a name is no path
        self._side.reader.paths.add(path)
        found = self._shared.facts.fact(path)
        kept = [negated(found.is_kind("absent"))]
        if limit.enum is not None:
            kept.append(any_of(*[self._is_value(found, each) for each in limit.enum]))
        for bound, operator in ((limit.max, "<="), (limit.min, ">=")):
            if bound is not None:
                within = f"({operator} {found.number} {number_term(bound)})"
                kept.append(all_of(found.is_kind("number"), within))
        return negated(all_of(*kept))

    def _is_value(self, found: Unknown, value: object) -> str:
        """Return the condition under which an argument equals a value. Lists and objects are compared by the evaluator
        only.
        """
        if isinstance(value, list | dict):
            self._side.reader.inexact.add("enum")
            same = self._shared.open_condition(compact({found.kind: value}))
            return all_of(found.is_kind(kind_of(value)), same)
        text = self._shared.facts.text
        match value:
            case None:
                return found.is_kind("null")
            case bool():
                same = found.boolean if value else negated(found.boolean)
                return all_of(found.is_kind("boolean"), same)
            case str():
                return all_of(found.is_kind("text"), equals(found.text, text(value)))
        same = equals(found.number, number_term(value)) if is_number(value) else FALSE
        return all_of(found.is_kind("number"), same)

    def _stop_after_no(self, outcomes: list[_RuleOutcome]) -> list[_RuleOutcome]:
        """Return the outcomes in the order of the checks. After a denial, the rules of the third check are not
        evaluated.
        """
        second = [each for each in outcomes if each.rule.stage == "rule"]
        third = [each for each in outcomes if each.rule.stage != "rule"]
        no = self._name_term(
            any_of(*[each.condition_of(verdict) for each in second for verdict in _NO])
        )
        goes_on = negated(no)
        return [
            *second,
            *[
                each._replace(
                    matches=all_of(each.matches, goes_on), denies=all_of(each.denies, goes_on)
                )
                for each in third
            ],
        ]

    def _strictest_verdict(self, outcomes: Sequence[_RuleOutcome]) -> SymbolicVerdict:
        """Return the strictest verdict of the rules, with all obligations and the gate of the first such rule."""
        levels: dict[str, str] = {}
        requested: list[tuple[str, str]] = []
        below = TRUE
        for verdict in VERDICTS:
            given = [self._name_term(each.condition_of(verdict)) for each in outcomes]
            is_given = TRUE if verdict == "allow" else self._name_term(any_of(*given))
            levels[verdict] = self._name_term(all_of(below, is_given))
            below = self._name_term(all_of(below, negated(is_given)))
            if verdict not in _NO:
                requested += self._list_first_gates(outcomes, given, levels[verdict])
        bound = [
            (name, each.matches)
            for each in outcomes
            for name in each.rule.declared.then.obligations
        ]
        return SymbolicVerdict(levels, self._any_by_name(bound), self._any_by_name(requested))

    def _any_by_name(self, terms: Sequence[tuple[str, str]]) -> dict[str, str]:
        """Return by name the condition under which any of its terms is true."""
        grouped: dict[str, list[str]] = {}
        for name, term in terms:
            grouped.setdefault(name, []).append(term)
        return {name: self._name_term(any_of(*each)) for name, each in grouped.items()}

    def _list_first_gates(
        self, outcomes: Sequence[_RuleOutcome], given: Sequence[str], level: str
    ) -> list[tuple[str, str]]:
        """Return the gates of rules with a verdict, each with the condition under which no earlier rule has that
        verdict.
        """
        found, before = [], FALSE
        for each, term in zip(outcomes, given, strict=True):
            if term != FALSE:
                gate = each.rule.declared.then.gate or BUILT_IN_GATE
                found.append((gate, all_of(level, term, negated(before))))
                before = self._name_term(any_of(before, term))
        return [*found, (BUILT_IN_GATE, all_of(level, negated(before)))]

    def _apply_mode(self, verdict: SymbolicVerdict) -> SymbolicVerdict:
        """Add the obligations of the call's approval mode, and deny a host that is not listed."""
        may = any_of(verdict.levels["allow"], verdict.levels["allow_with_gate"])
        obligations = dict(verdict.obligations)
        for name, mode in (("idempotency_key", "read_only"), ("named_user", "network")):
            if is_above(self._mode, mode):
                obligations[name] = any_of(obligations.get(name, FALSE), may)
        return verdict._replace(obligations=obligations).deny(all_of(may, self._unlisted_host()))

    @property
    def _has_built_in_gate(self) -> bool:
        return self._mode == "destructive" and not self._asks_inside

    def _unlisted_host(self) -> str:
        """Return the condition under which the call goes to a host that the pack does not list."""
        hosts = self._side.pack.tooling.hosts
        if hosts is None:
            return FALSE
        listed = [number for number, host in enumerate(self._scene.hosts, 1) if host in hosts]
        return negated(any_of(*[equals(self._scene.host, str(each)) for each in (0, *listed)]))

    def _find_unmet_condition(
        self, verdict: SymbolicVerdict, outcomes: Sequence[_RuleOutcome]
    ) -> str:
        """Return the condition under which an obligation or required evidence is lacking."""
        unnamed, obligations = negated(self._scene.named_user), verdict.obligations
        needs_user = TRUE if is_above(self._mode, "network") else FALSE
        refused = any_of(self._unlisted_host(), all_of(needs_user, unnamed))
        lacking = self._lacks_evidence()
        masked = [term for name, term in obligations.items() if name.startswith(MASK)]
        is_skill = self._call.capability.id.startswith(NESTED)
        above = TRUE if is_above(self._mode, "read_only") else FALSE
        return all_of(
            verdict.binds,
            any_of(
                all_of(verdict.levels["escalate"], refused),
                all_of(lacking, any_of(obligations.get("evidence", FALSE), above)),
                any_of(*masked) if is_skill else FALSE,
                all_of(obligations.get("named_user", FALSE), unnamed),
            ),
        )

    def _lacks_evidence(self) -> str:
        names = self._side.pack.decisions.required_evidence(self._call.intent)
        self._side.reader.paths.update(names)
        return self._name_term(any_of(*[self._shared.facts.fact(name).is_absent for name in names]))

    def _apply_limits(
        self, verdict: SymbolicVerdict, outcomes: Sequence[_RuleOutcome]
    ) -> SymbolicVerdict:
        """Apply the built-in gate and the cumulative limits."""
        limits = limits_on(self._side.pack, self._call)
        claims = [self._read_claim(limit) for limit in limits]
        unknown = any_of(*[negated(known) for known, _ in claims])
        hard = [
            over for limit, (_, over) in zip(limits, claims, strict=True) if limit.over == "deny"
        ]
        verdict = verdict.deny(self._name_term(all_of(verdict.binds, any_of(unknown, *hard))))
        requested, before = [], FALSE
        for limit, (_, over) in zip(limits, claims, strict=True):
            if limit.over != "deny":
                requested.append((limit.gate, all_of(over, negated(before))))
                before = any_of(before, over)
        return self._add_gates(
            verdict, requested, self._name_term(before), self._waiver_condition(outcomes, limits)
        )

    def _add_gates(
        self, verdict: SymbolicVerdict, requested: list[tuple[str, str]], over: str, lifts: str
    ) -> SymbolicVerdict:
        """Return the verdict with the gates of limits, and with the built-in gate unless it is waived."""
        allowed = verdict.levels["allow"]
        built_in = TRUE if self._has_built_in_gate else FALSE
        stays = all_of(built_in, negated(over), negated(lifts))
        asks = all_of(allowed, any_of(over, stays))
        of_rule = negated(all_of(allowed, over))
        gates = [
            *[(gate, all_of(term, of_rule)) for gate, term in verdict.gates.items()],
            *[(gate, all_of(allowed, term)) for gate, term in requested],
        ]
        levels = dict(verdict.levels)
        levels["allow"] = all_of(allowed, negated(asks))
        levels["allow_with_gate"] = any_of(levels["allow_with_gate"], asks)
        return verdict._replace(levels=levels, gates=self._any_by_name(gates))

    def _waiver_condition(
        self, outcomes: Sequence[_RuleOutcome], limits: Sequence[CumulativeLimit]
    ) -> str:
        """Return the condition under which matching rules waive the built-in gate, each within a limit on this call."""
        within = {limit.id for limit in limits}
        lifting = [each for each in outcomes if each.rule.declared.then.without_gate]
        if not limits:
            return FALSE
        beyond = [
            each.matches for each in lifting if each.rule.declared.then.without_gate not in within
        ]
        return all_of(any_of(*[each.matches for each in lifting]), negated(any_of(*beyond)))

    def _read_claim(self, limit: CumulativeLimit) -> tuple[str, str]:
        """Return two conditions: that the call's amount for a counter is known, and that it exceeds the limit."""
        owner_known = self._knows_owner(limit.per)
        most, used = number_term(limit.max), self._side.limits[limit.id]
        if not limit.sum:
            return owner_known, f"(< {most} (+ {used} 1.0))"
        found = self._shared.facts.fact(f"args.{limit.sum}")
        self._side.reader.paths.add(f"args.{limit.sum}")
        fits = f"(<= 0.0 {found.number} {number_term(MAX_INTEGER)})"
        known = all_of(owner_known, found.is_kind("number"), fits)
        return known, f"(< {most} (+ {used} {found.number}))"

    def _knows_owner(self, per: str) -> str:
        if per in ("user", "tenant"):
            return TRUE
        path = per if "." in per else f"{per}.id"
        self._side.reader.paths.add(path)
        found = self._shared.facts.fact(path)
        text = all_of(found.is_kind("text"), negated(equals(found.text, "0")))
        return any_of(text, all_of(found.is_kind("number"), f"(is_int {found.number})"))

    def _name_term(self, term: str) -> str:
        return self._shared.script.shorten(term)


def limits_on(pack: Pack, call: CallKind) -> list[CumulativeLimit]:
    """Return the limits that a call counts for. A skill counts for none: its calls do."""
    id = call.capability.id
    if id.startswith(NESTED):
        return []
    return [
        limit
        for limit in pack.policy.limits
        if applies(limit.scope.intents, call.intent) and applies(limit.scope.capabilities, id)
    ]
