"""The three checks before a call: permission, rule, situation (docs/reference/pack.md#checks). Pure.

A rule that reads neither facts nor arguments belongs to the second check, any other rule to the third. The strictest
enforced rule that matches decides; a rule without a result denies. Rules are compiled once, and indexed by capability.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from cogcli.base.canonical import canonical
from cogcli.base.jsonvalue import equal
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.pack_spec import (
    BUILT_IN_GATE,
    ArgumentLimit,
    Pack,
    PackIntent,
    PolicyRule,
)
from cogcli.declarations.value_types import IntuitionMode, Json
from cogcli.policy.evaluation import Evaluation, is_number
from cogcli.policy.jsonlogic import Rule, RuleError, compile_rule, evaluate_in
from cogcli.policy.verdict import MASK, Verdict, is_above, is_stricter

KNOWN_BEFORE: Final = frozenset(("request", "user", "agent", "run", "call"))
"""The parts of a rule's data that are known before facts and arguments."""
STATE_PARTS: Final = frozenset(("goal", "plan", "memory", "outcomes"))
"""The parts of a run's `state` that rules may read."""
OBLIGATIONS: Final = frozenset(("idempotency_key", "named_user", "evidence"))


class GovernedCall(NamedTuple):
    """The data of a call that the checks read.

    `arguments` is None while the arguments are unknown. Rules that read arguments are then not evaluated.
    """

    capability: str
    approval_mode: str
    role: str
    safety_mode: str
    arguments: Mapping[str, object] | None = None
    named_user: bool = True
    """Whether the request names a user other than the default one."""
    host: str = ""
    """The host that the call goes to. Empty for a call that stays on this machine."""
    inside: tuple[str, ...] = ()
    """The skill tools that the call is nested in."""
    asks_inside: bool = False
    """Whether only calls nested in this one make it destructive. Those calls have their own gates."""
    unknown: tuple[str, ...] = ()
    """The paths of the data whose values are not known yet. Rules that may read one of them are left out."""


class CompiledPolicyRule(NamedTuple):
    """A rule of a pack with its compiled condition."""

    declared: PolicyRule
    condition: Rule
    stage: str
    """`situation` if it reads facts or arguments, or limits arguments; otherwise `rule`."""
    needs_arguments: bool
    """Whether it reads or limits arguments."""

    def may_read(self, unknown: Sequence[str]) -> bool:
        """Return whether the rule may read a value at, above or below one of these paths."""
        if self.condition.computed:
            return bool(unknown)
        limited = (f"args.{name}" for name in self.declared.then.limits)
        paths = (*self.condition.paths, *limited)
        return any(paths_overlap(one, other) for one in paths for other in unknown)


_Rules = tuple[CompiledPolicyRule, ...]


def _compile_rule(declared: PolicyRule) -> CompiledPolicyRule:
    condition = compile_rule(declared.condition)
    heads = {path.partition(".")[0] for path in condition.paths}
    situational = condition.computed or bool(declared.then.limits) or not heads <= KNOWN_BEFORE
    stage = "situation" if situational else "rule"
    return CompiledPolicyRule(
        declared, condition, stage, bool(declared.then.limits) or "args" in heads
    )


def _may_read_state(declared: PolicyRule) -> bool:
    """Return whether the text of a condition suggests that it reads `state`: by the word, the empty path, or computed
    paths. Compiling each rule of a large pack would take longer than a run.
    """
    text = canonical(declared.condition)
    return any(part in text for part in (b'"state', b'""', b'"missing'))


def _state_parts(condition: Rule) -> frozenset[str]:
    """Return the parts of `state` that a condition may read.

    All parts are returned if the condition reads the whole of `state`, or computes paths.
    """
    if condition.computed or not condition.paths.isdisjoint(("", "state")):
        return STATE_PARTS
    named = (path.split(".") for path in condition.paths)
    return STATE_PARTS & {segments[1] for segments in named if segments[0] == "state"}


class Policy:
    """The permissions, intents and rules of a pack."""

    def __init__(
        self,
        *,
        permissions: Mapping[str, Sequence[str]],
        intents: Mapping[str, PackIntent],
        rules: Sequence[PolicyRule],
        hosts: Sequence[str] | None = None,
        is_shadow: bool = False,
    ) -> None:
        """With `is_shadow` no rule is enforced. A verdict then only contains what each rule would decide."""
        self.is_shadow = is_shadow
        self._permissions = {role: frozenset(allowed) for role, allowed in permissions.items()}
        self._intents = intents
        self._hosts = None if hosts is None else frozenset(hosts)
        self._rules = tuple(rules)
        self._compiled: dict[int, CompiledPolicyRule] = {}
        """Compiled rules by position in the pack. Most rules of a large pack are for other capabilities and never
        compiled."""
        self._by_name: dict[str, list[int]] = defaultdict(list)
        """By capability: positions of rules that name it in full."""
        self._by_pattern: list[int] = []
        """Positions of the other rules."""
        for place, rule in enumerate(self._rules):
            self._index_rule(place, rule.scope.capabilities)
        self._by_call: dict[tuple[str, str], tuple[_Rules, _Rules]] = {}

    def _index_rule(self, place: int, capabilities: Sequence[str]) -> None:
        if not capabilities or any("*" in name for name in capabilities):
            self._by_pattern.append(place)
        else:
            for name in dict.fromkeys(capabilities):
                self._by_name[name].append(place)

    @classmethod
    def of(cls, pack: Pack, *, is_shadow: bool = False) -> Policy:
        """Return the policy that a pack declares."""
        layer, intents = pack.policy, pack.decisions.intents
        return cls(
            permissions={role: each.allow for role, each in layer.permissions.items()},
            intents=intents,
            rules=layer.rules,
            hosts=pack.tooling.hosts,
            is_shadow=is_shadow,
        )

    @property
    def intuition_mode(self) -> IntuitionMode:
        """The mode of the rules: `interventive` if all are enforced, `hybrid` if some are, otherwise `advisory`."""
        if self.is_shadow:
            return "advisory"
        enforced = {rule.is_enforced for rule in self._rules}
        return "hybrid" if len(enforced) > 1 else "interventive" if True in enforced else "advisory"

    @property
    def state_parts(self) -> frozenset[str]:
        """The parts of the run's `state` that at least one rule may read."""
        able = [place for place, rule in enumerate(self._rules) if _may_read_state(rule)]
        return frozenset[str]().union(
            *[_state_parts(self._compiled_rule(place).condition) for place in able]
        )

    def rules_for(self, intent: str, capability: str) -> _Rules:
        """Return the rules that apply to a capability under an intent, in declared order."""
        places = sorted((*self._by_name.get(capability, ()), *self._by_pattern))
        return tuple(
            self._compiled_rule(place)
            for place in places
            if self._is_applicable(place, intent, capability)
        )

    def _find_rules_by_stage(self, intent: str, capability: str) -> tuple[_Rules, _Rules]:
        """Return the rules for the second check and for the third. The result is cached."""
        key = intent, capability
        if key not in self._by_call:
            rules = self.rules_for(intent, capability)
            second, third = (
                tuple(r for r in rules if r.stage == stage) for stage in ("rule", "situation")
            )
            self._by_call[key] = second, third
        return self._by_call[key]

    def _is_applicable(self, place: int, intent: str, capability: str) -> bool:
        scope = self._rules[place].scope
        return applies(scope.intents, intent) and applies(scope.capabilities, capability)

    def _compiled_rule(self, place: int) -> CompiledPolicyRule:
        if place not in self._compiled:
            self._compiled[place] = _compile_rule(self._rules[place])
        return self._compiled[place]

    def decide(self, intent: str, call: GovernedCall, data: Json) -> Verdict:
        """Return the verdict on a call. `data` is the input of the rules: request, run, slots with their facts, `args`,
        state of the run.
        """
        by_tool = any(self.offers(intent, call.role, tool) for tool in call.inside)
        refusal = self._find_permission_refusal(call, by_tool=by_tool)
        if refusal:
            return self._denial("permission", refusal, call)
        if not by_tool and not self._is_in_intent(intent, call.capability):
            return self._denial("rule", "not_in_intent", call)
        judged = _PolicyDecision(call, data, is_shadow=self.is_shadow)
        for rules in self._find_rules_by_stage(intent, call.capability):
            judged.judge(rules)
            if judged.verdict in ("deny", "refuse"):
                break
        return judged.result(self._hosts)

    def offers(self, intent: str, role: str, id: str) -> bool:
        """Return whether a role is permitted to use a capability or skill that the intent lists."""
        return self._is_permitted(role, id) and self._is_in_intent(intent, id)

    def _is_permitted(self, role: str, id: str) -> bool:
        return id in self._permissions.get(role, ())

    def _is_in_intent(self, intent: str, id: str) -> bool:
        listed = self._intents.get(intent)
        return listed is not None and id in listed.capabilities

    def _find_permission_refusal(self, call: GovernedCall, *, by_tool: bool) -> str:
        if not by_tool and not self._is_permitted(call.role, call.capability):
            return "permission_denied"
        return "above_safety_mode" if is_above(call.approval_mode, call.safety_mode) else ""

    @staticmethod
    def _denial(stage: str, reason: str, call: GovernedCall) -> Verdict:
        return Verdict("deny", stage, reason, approval_mode=call.approval_mode)


class _PolicyDecision:
    """The verdict on one call, updated rule by rule."""

    def __init__(self, call: GovernedCall, data: Json, *, is_shadow: bool) -> None:
        self._is_shadow = is_shadow
        self.verdict, self._stage, self._reason = "allow", "situation", "no_rule"
        self._call, self._evaluation = call, Evaluation(data)
        self._rule = self._gate = ""
        self._matched: list[str] = []
        self._would: list[dict[str, str]] = []
        self._errors: list[dict[str, str]] = []
        self._obligations: dict[str, None] = {}
        self._without_gate: dict[str, None] = {}
        self._waiting: list[str] = []

    def judge(self, rules: _Rules) -> None:
        """Evaluate rules and update the verdict."""
        evaluation = self._evaluation
        is_known = self._call.arguments is not None and not self._call.unknown
        for rule in rules:
            if is_known or self._can_evaluate(rule):
                found = evaluate_in(rule.condition, evaluation)
                if found is not False:  # few rules match
                    self._apply_rule(rule, found)

    def _can_evaluate(self, rule: CompiledPolicyRule) -> bool:
        """Return whether all inputs of a rule are known, so that it can be evaluated. If not, add the rule to the
        waiting ones.
        """
        if rule.needs_arguments and self._call.arguments is None:
            return False
        if rule.may_read(self._call.unknown):
            self._waiting.append(rule.declared.rule_id)
            return False
        return True

    def _apply_rule(self, rule: CompiledPolicyRule, found: Literal[True] | RuleError) -> None:
        """Update the verdict by a rule that matches, or that failed with an error."""
        declared, stage = rule.declared, rule.stage
        verdict, reason = self._find_verdict(rule, None if found is True else found)
        if not declared.is_enforced:
            self._would.append({"rule": declared.rule_id, "verdict": verdict})
            return
        if self._is_shadow:
            self._would.append({"rule": declared.rule_id, "verdict": verdict})
            if found is True:
                self._add_masks(declared)
            return
        if found is True:
            self._matched.append(declared.rule_id)
            self._obligations.update(dict.fromkeys(declared.then.obligations))
            if declared.then.without_gate:
                self._without_gate[declared.then.without_gate] = None
        if is_stricter(verdict, self.verdict) or not self._rule:
            self.verdict, self._stage, self._reason = verdict, stage, reason
            self._rule, self._gate = (
                declared.rule_id,
                declared.then.gate if verdict == declared.then.verdict else "",
            )

    def _add_masks(self, declared: PolicyRule) -> None:
        """Add the masks of a rule that is not enforced, because the values that they hide must not reach the log. Its
        other consequences do not apply.
        """
        masks = (each for each in declared.then.obligations if each.startswith(MASK))
        self._obligations.update(dict.fromkeys(masks))

    def _find_verdict(self, rule: CompiledPolicyRule, error: RuleError | None) -> tuple[str, str]:
        """Return the verdict of a rule and its reason. The rule matches, or `error` explains why it has no result."""
        declared = rule.declared
        if error is not None:
            self._errors.append(
                {"rule": declared.rule_id, "code": error.code, "pointer": error.pointer}
            )
            return "deny", _explain_error(error, rule.stage)
        if broken := self._find_broken_obligation(declared):
            return "deny", broken
        return declared.then.verdict, declared.rule_id

    def result(self, hosts: frozenset[str] | None) -> Verdict:
        """Return the final verdict, after the requirements of the call's approval mode are applied."""
        mode = self._call.approval_mode
        if self.verdict in ("allow", "allow_with_gate"):
            self._apply_mode(mode, hosts)
        is_built_in = mode == "destructive" and not self._call.asks_inside
        is_built_in = is_built_in and self.verdict == "allow"
        if is_built_in:
            self.verdict, self._reason = "allow_with_gate", "destructive"
        if self.verdict in ("allow_with_gate", "escalate"):
            self._gate = self._gate or BUILT_IN_GATE
        return Verdict(
            self.verdict,
            self._stage,
            self._reason,
            self._rule,
            self._gate,
            mode,
            tuple(self._matched),
            tuple(self._would),
            tuple(self._errors),
            tuple(self._obligations),
            self._evaluation.reads,
            tuple(self._waiting),
            without_gate=tuple(self._without_gate),
            is_built_in=is_built_in,
            is_shadow=self._is_shadow,
        )

    def _apply_mode(self, mode: str, hosts: frozenset[str] | None) -> None:
        """Add the obligations of an approval mode. Deny the call if the mode forbids it."""
        if is_above(mode, "read_only"):
            self._obligations["idempotency_key"] = None
        if is_above(mode, "network"):
            self._obligations["named_user"] = None
        refusal = ""
        if hosts is not None and self._call.host and self._call.host not in hosts:
            refusal = "host_not_listed"
        elif "named_user" in self._obligations and not self._call.named_user:
            refusal = "named_user"
        if refusal:
            self.verdict, self._stage, self._reason = "deny", "situation", refusal
            self._rule = self._gate = ""

    def _find_broken_obligation(self, rule: PolicyRule) -> str:
        """Return the reason why a matching rule denies: an argument beyond its limit, or an unknown obligation. Empty
        if the rule does not deny.
        """
        if breaks_limits(rule.then.limits, self._call.arguments or {}):
            return rule.rule_id
        if not all(each in OBLIGATIONS or each.startswith(MASK) for each in rule.then.obligations):
            return "policy_eval_error"
        return ""


def breaks_limits(limits: Mapping[str, ArgumentLimit], arguments: Mapping[str, object]) -> bool:
    """Return whether an argument is absent or beyond its limit."""
    return any(
        name not in arguments or not _is_within(arguments[name], limit)
        for name, limit in limits.items()
    )


def _is_within(value: object, limit: ArgumentLimit) -> bool:
    """Return whether an argument is within its limits. Only a number can be within `min` and `max`."""
    if limit.enum is not None and not any(equal(value, allowed) for allowed in limit.enum):
        return False
    if limit.max is None and limit.min is None:
        return True
    if not is_number(value):
        return False
    above = limit.max is not None and value > limit.max
    below = limit.min is not None and value < limit.min
    return not above and not below


def _explain_error(error: RuleError, stage: str) -> str:
    """Return the reason for denying when a rule has no result: missing evidence if that is the cause."""
    if error.code == "missing" and stage == "situation":
        return f"evidence_missing:{error.missing}"
    return "policy_eval_error"


def paths_overlap(path: str, other: str) -> bool:
    """Return whether two dotted paths are equal or one of them contains the other. The empty path is the whole data."""
    shorter, longer = sorted((path, other), key=len)
    return not shorter or shorter == longer or longer.startswith(f"{shorter}.")


def applies(patterns: Sequence[str], name: str) -> bool:
    """Return whether a name matches one of the patterns. `*` matches any string. An empty list matches every name."""
    return not patterns or any(_matches_pieces(pattern.split("*"), name) for pattern in patterns)


def _matches_pieces(pieces: list[str], name: str) -> bool:
    """Return whether a name consists of these pieces in order, with any string between them."""
    first, *rest = pieces
    if not rest:
        return name == first
    at = len(first)
    for piece in rest[:-1]:
        found = name.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return name.startswith(first) and name.endswith(rest[-1]) and len(name) - len(rest[-1]) >= at
