"""The three checks before a call: permission, rule, situation (docs/reference/pack.md#checks). Pure.

A rule that reads neither facts nor arguments belongs to the second check, any other to the third. The strictest
enforced match counts; a rule without a result denies. Rules are compiled once, and found by capability.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from cogcli.core.jsonvalue import equal
from cogcli.governance.jsonlogic import Matched, Rule, RuleError, compile_rule, evaluate
from cogcli.governance.verdict import Verdict, is_above, is_stricter
from cogcli.specs.pack import BUILT_IN_GATE, Pack, PackIntent, PolicyRule

KNOWN_BEFORE: Final = frozenset(("request", "user", "agent", "run", "call"))
"""The parts of a rule's data that are known before any fact and any argument."""
STATE_PARTS: Final = frozenset(("goal", "plan", "memory", "outcomes"))
"""The parts of a run's `state` that rules may read."""
OBLIGATIONS: Final = frozenset(("idempotency_key", "named_user", "evidence"))
MASK: Final = "mask:"
"""Begins an obligation that masks a path of the output."""


class GovernedCall(NamedTuple):
    """A call as the checks see it. `arguments` None: they are not known yet, so rules on them wait."""

    capability: str
    approval_mode: str
    role: str
    safety_mode: str
    arguments: Mapping[str, Any] | None = None
    named_user: bool = True
    """Whether a user is named, other than the default one."""
    host: str = ""
    """The host that the call goes to; empty for one that stays on this machine."""


class CompiledPolicyRule(NamedTuple):
    """A rule of a pack with its compiled condition."""

    declared: PolicyRule
    condition: Rule
    stage: str
    """`rule`, or `situation` where it reads facts or arguments, or limits arguments."""
    needs_arguments: bool
    """Whether it reads or limits arguments."""
    state_parts: frozenset[str]
    """The parts of the run's `state` that it may read."""


def _compiled(declared: PolicyRule) -> CompiledPolicyRule:
    condition = compile_rule(declared.condition)
    heads = {path.split(".", 1)[0] for path in condition.paths}
    situational = condition.computed or bool(declared.limits) or not heads <= KNOWN_BEFORE
    stage = "situation" if situational else "rule"
    needs_arguments = bool(declared.limits) or "args" in heads
    return CompiledPolicyRule(declared, condition, stage, needs_arguments, _state_parts(condition))


def _state_parts(condition: Rule) -> frozenset[str]:
    """What of `state` a condition may read: what it names, all of it where it names the whole, or works names out."""
    if condition.computed or not condition.paths.isdisjoint(("", "state")):
        return STATE_PARTS
    named = (path.split(".") for path in condition.paths)
    return STATE_PARTS & {segments[1] for segments in named if segments[0] == "state"}


class Policy:
    """The permissions, intents and rules of the packs of a run."""

    def __init__(
        self,
        *,
        permissions: Mapping[str, Sequence[str]],
        intents: Mapping[str, PackIntent],
        rules: Sequence[PolicyRule],
        hosts: Sequence[str] | None = None,
    ) -> None:
        self._permissions = {role: frozenset(allowed) for role, allowed in permissions.items()}
        self._intents = intents
        self._hosts = None if hosts is None else frozenset(hosts)
        self._rules = tuple(map(_compiled, rules))
        self._by_call: dict[tuple[str, str], tuple[CompiledPolicyRule, ...]] = {}

    @classmethod
    def of(cls, pack: Pack) -> Policy:
        """The policy of one pack."""
        layer, intents = pack.policy, pack.decisions.intents
        return cls(
            permissions=layer.permissions, intents=intents, rules=layer.rules, hosts=pack.tooling.hosts
        )

    @property
    def state_parts(self) -> frozenset[str]:
        """The parts of the run's `state` that any rule may read."""
        return frozenset[str]().union(*[rule.state_parts for rule in self._rules])

    def rules_for(self, intent: str, capability: str) -> tuple[CompiledPolicyRule, ...]:
        """The rules that apply to a capability under an intent, in the order of the pack."""
        key = intent, capability
        if key not in self._by_call:
            self._by_call[key] = tuple(
                rule
                for rule in self._rules
                if applies(rule.declared.scope.intents, intent)
                and applies(rule.declared.scope.capabilities, capability)
            )
        return self._by_call[key]

    def decide(self, intent: str, call: GovernedCall, data: Mapping[str, Any]) -> Verdict:
        """The verdict on a call. Rules see `data`: what is known before, slots with their facts, `args`, run state."""
        refusal = self._permission(call)
        if refusal:
            return self._no("permission", refusal, call)
        listed = self._intents.get(intent)
        if listed is None or call.capability not in listed.capabilities:
            return self._no("rule", "not_in_intent", call)
        judged = _Judgment(call, data)
        rules = self.rules_for(intent, call.capability)
        for stage in ("rule", "situation"):
            for rule in rules:
                if rule.stage == stage:
                    judged.judge(rule)
            if judged.verdict in ("deny", "refuse"):
                break
        return judged.result(self._hosts)

    def _permission(self, call: GovernedCall) -> str:
        if call.capability not in self._permissions.get(call.role, ()):
            return "permission_denied"
        return "above_safety_mode" if is_above(call.approval_mode, call.safety_mode) else ""

    @staticmethod
    def _no(stage: str, reason: str, call: GovernedCall) -> Verdict:
        return Verdict("deny", stage, reason, approval_mode=call.approval_mode)


class _Judgment:
    """The verdict on one call while its rules are judged."""

    def __init__(self, call: GovernedCall, data: Mapping[str, Any]) -> None:
        self.verdict, self._stage, self._reason = "allow", "situation", "no_rule"
        self._call, self._data = call, dict(data)
        self._rule = self._gate = ""
        self._matched: list[str] = []
        self._would: list[dict[str, str]] = []
        self._errors: list[dict[str, str]] = []
        self._obligations: dict[str, None] = {}
        self._reads: dict[str, Any] = {}

    def judge(self, rule: CompiledPolicyRule) -> None:
        """Take up one rule."""
        declared, stage = rule.declared, rule.stage
        if rule.needs_arguments and self._call.arguments is None:
            return
        found = evaluate(rule.condition, self._data)
        self._reads.update(found.reads)
        if isinstance(found, RuleError):
            self._errors.append({"rule": declared.rule_id, "code": found.code, "pointer": found.pointer})
            verdict, reason = "deny", _reason_of(found, stage)
        elif not found.result:
            return
        elif broken := self._broken_obligation(declared):
            verdict, reason = "deny", broken
        else:
            verdict, reason = declared.verdict, declared.rule_id
        if not declared.is_enforced:
            self._would.append({"rule": declared.rule_id, "verdict": verdict})
            return
        if isinstance(found, Matched):
            self._matched.append(declared.rule_id)
            self._obligations.update(dict.fromkeys(declared.obligations))
        if is_stricter(verdict, self.verdict) or (verdict == self.verdict and not self._rule):
            self.verdict, self._stage, self._reason = verdict, stage, reason
            self._rule, self._gate = declared.rule_id, declared.gate if verdict == declared.verdict else ""

    def result(self, hosts: frozenset[str] | None) -> Verdict:
        """The verdict, with what its approval mode adds."""
        mode = self._call.approval_mode
        if self.verdict in ("allow", "allow_with_gate"):
            self._require_of_mode(mode, hosts)
        if self.verdict == "allow" and mode == "destructive":
            self.verdict, self._gate = "allow_with_gate", self._gate or BUILT_IN_GATE
            self._reason = "destructive"
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
            self._reads,
        )

    def _require_of_mode(self, mode: str, hosts: frozenset[str] | None) -> None:
        """Add the obligations of an approval mode; deny what it forbids."""
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

    def _broken_obligation(self, rule: PolicyRule) -> str:
        """Why a matching rule denies whatever its verdict: an unknown obligation, or a limit that is broken."""
        arguments = self._call.arguments or {}
        for name, limit in rule.limits.items():
            if name not in arguments or not _within(arguments[name], limit):
                return rule.rule_id
        if not all(each in OBLIGATIONS or each.startswith(MASK) for each in rule.obligations):
            return "policy_eval_error"
        return ""


def _within(value: Any, limit: Mapping[str, Any]) -> bool:
    """Whether an argument keeps its limits; one that is no number keeps no bound."""
    if "enum" in limit and not any(equal(value, allowed) for allowed in limit["enum"]):
        return False
    if "max" not in limit and "min" not in limit:
        return True
    if type(value) is not int and type(value) is not float:
        return False
    return bool(limit.get("min", value) <= value <= limit.get("max", value))


def _reason_of(error: RuleError, stage: str) -> str:
    """The reason of a rule without a result: the evidence that it lacks, if that is why."""
    if error.code == "missing" and stage == "situation":
        return f"evidence_missing:{error.missing}"
    return "policy_eval_error"


def applies(patterns: Sequence[str], name: str) -> bool:
    """Whether a name fits one of some patterns in which `*` stands for any text; no patterns fit all."""
    return not patterns or any(_fits(pattern.split("*"), name) for pattern in patterns)


def _fits(pieces: list[str], name: str) -> bool:
    """Whether a name is these pieces in order with any text between them; the earliest place of each piece will do."""
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
