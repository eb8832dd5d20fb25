"""Checks of a pack as a whole: references, rules, contradictions, and the tests of its rules
(docs/reference/pack.md#check). Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from cogcli.base.canonical import canonical
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import suggestion
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.pack_spec import (
    BUILT_IN_GATE,
    CumulativeLimit,
    Pack,
    PolicyRule,
    RuleExample,
    RuleScope,
)
from cogcli.declarations.spec_types import NESTED
from cogcli.policy.customer_text import render_rule_text
from cogcli.policy.jsonlogic import compile_rule, evaluate
from cogcli.policy.limits import ARGUMENT
from cogcli.policy.pack_policy import OBLIGATIONS, applies
from cogcli.policy.verdict import MASK
from cogcli.specs.problem_report import ProblemReport

_RULES: Final = ("policy_layer", "rules")
_LIMITS: Final = ("policy_layer", "limits")
_DECISIONS: Final = "decision_layer"

Path = tuple[str | int, ...]


def check_references(
    pack: Pack, report: ProblemReport, capabilities: Collection[str] | None
) -> None:
    """Report unknown names of capabilities, skills, gates, intents, decisions, templates, outcomes and slots.

    If `capabilities` is None, the names of capabilities and skills are not checked.
    """
    for path, kind, name, known in _find_references(pack, capabilities):
        if known is not None and name not in known:
            hint = suggestion(name, known)
            report.error("pack.reference", path, f"no {kind} `{name}`", hint=hint)


_Reference = tuple[Path, str, str, Collection[str] | None]
"""A name in a pack that refers to another part: path, kind, name, and the existing names, or None if they are
unknown."""


def _find_references(pack: Pack, capabilities: Collection[str] | None) -> Iterator[_Reference]:
    yield from _find_policy_references(pack, capabilities)
    yield from _find_limit_references(pack, capabilities)
    for id in pack.tooling.capabilities:
        yield ("tooling_layer", "capabilities", id), _kind_of_name(id), id, capabilities
    yield from _find_intent_references(pack, capabilities)
    yield from _find_slot_references(pack)
    yield from _find_template_references(pack)
    intents = pack.decisions.intents
    for number, objective in enumerate(pack.decisions.objectives):
        for place, intent in enumerate(objective.intents):
            yield (_DECISIONS, "objectives", number, "intents", place), "intent", intent, intents
    for number, target in enumerate(pack.evaluation.targets):
        if target.intent:
            yield (
                ("evaluation_layer", "targets", number, "intent"),
                "intent",
                target.intent,
                intents,
            )


def _find_policy_references(
    pack: Pack, capabilities: Collection[str] | None
) -> Iterator[_Reference]:
    policy = pack.policy
    gates = (*policy.gates, BUILT_IN_GATE)
    for number, (role, permission) in enumerate(policy.permissions.items()):
        for place, id in enumerate(permission.allow):
            path: Path = ("policy_layer", "permissions", number, "allow", place)
            yield path, f"{_kind_of_name(id)} for `{role}`", id, capabilities
    for kind, guardrails in (
        ("must_refuse", policy.guardrails.must_refuse),
        ("must_escalate", policy.guardrails.must_escalate),
    ):
        for number, guardrail in enumerate(guardrails):
            yield ("policy_layer", "guardrails", kind, number), "gate", guardrail.gate, gates
    for number, rule in enumerate(policy.rules):
        yield from _find_rule_references(pack, number, rule, gates)


def _find_rule_references(
    pack: Pack, number: int, rule: PolicyRule, gates: Collection[str]
) -> Iterator[_Reference]:
    if rule.then.gate:
        yield (*_RULES, number, "then", "gate"), "gate", rule.then.gate, gates
    if rule.then.without_gate:
        limits = [limit.id for limit in pack.policy.limits]
        path = (*_RULES, number, "then", "without_gate")
        yield path, "limit", rule.then.without_gate, limits
    # Rules of a pack without intents apply to the intents of another pack.
    intents = pack.decisions.intents or None
    for place, intent in enumerate(rule.scope.intents):
        if "*" not in intent:
            yield (*_RULES, number, "applies_to", "intents", place), "intent", intent, intents


def _find_limit_references(
    pack: Pack, capabilities: Collection[str] | None
) -> Iterator[_Reference]:
    layer, intents = pack.policy, pack.decisions.intents
    owners = {"user", "tenant", *(slot for intent in intents.values() for slot in intent.slots)}
    for number, limit in enumerate(layer.limits):
        path = (*_LIMITS, number)
        yield (*path, "gate"), "gate", limit.gate, (*layer.gates, BUILT_IN_GATE)
        if not limit.per.startswith(ARGUMENT):
            yield (*path, "per"), "slot", limit.per, owners
        for place, intent in enumerate(limit.scope.intents):
            if "*" not in intent:
                yield (*path, "applies_to", "intents", place), "intent", intent, intents
        for place, id in enumerate(limit.scope.capabilities):
            if "*" not in id:
                yield (*path, "applies_to", "capabilities", place), "capability", id, capabilities


def _find_intent_references(
    pack: Pack, capabilities: Collection[str] | None
) -> Iterator[_Reference]:
    for number, intent in enumerate(pack.decisions.intents.values()):
        path: Path = (_DECISIONS, "intents", number)
        for place, id in enumerate(intent.capabilities):
            yield (*path, "capabilities", place), _kind_of_name(id), id, capabilities
        for place, id in enumerate(intent.templates):
            yield (*path, "templates", place), "template", id, pack.decisions.task_templates


def _find_slot_references(pack: Pack) -> Iterator[_Reference]:
    slots = {slot for intent in pack.decisions.intents.values() for slot in intent.slots}
    for id, tool in pack.tooling.capabilities.items():
        for name in tool.facts:
            yield (
                ("tooling_layer", "capabilities", id, "facts", name),
                "slot",
                name.partition(".")[0],
                slots,
            )
    for number, decision in enumerate(pack.decisions.decisions.values()):
        for place, name in enumerate(decision.required_evidence):
            path: Path = (_DECISIONS, "decisions", number, "required_evidence", place)
            yield path, "slot", name.partition(".")[0], slots


def _find_template_references(pack: Pack) -> Iterator[_Reference]:
    decisions = pack.decisions.decisions
    for number, template in enumerate(pack.decisions.task_templates.values()):
        path: Path = (_DECISIONS, "task_templates", number)
        if template.decision:
            yield (*path, "decision"), "decision", template.decision, decisions
        decision = decisions.get(template.decision)
        if decision:
            for key, outcome in template.outcome.items():
                yield (*path, "outcome", key), "outcome", outcome, decision.outcomes


def _kind_of_name(id: str) -> str:
    return "skill" if id.startswith(NESTED) else "capability"


def check_rules(
    pack: Pack, report: ProblemReport, capabilities: Mapping[str, Capability | None]
) -> None:
    """Report obligations that are not kept, rules that never apply, and rules that contradict each other.

    `capabilities` are those of the registry by name, and None for each skill.
    """
    seen: dict[bytes, PolicyRule] = {}
    for number, rule in enumerate(pack.policy.rules):
        path: Path = (*_RULES, number)
        about = report.part(f"rule `{rule.rule_id}`", *path)
        for place, each in enumerate(rule.then.obligations):
            message, hint = _find_obligation_fault(pack, rule, each, capabilities)
            if message:
                about.error("policy.obligation", ("then", "obligations", place), message, hint=hint)
        if not any(applies(rule.scope.capabilities, id) for id in capabilities):
            about.warn(
                "policy.unused", ("applies_to",), "no capability of the registry fits", key=True
            )
        _check_contradiction(rule, seen, about)


def _check_counter(
    limit: CumulativeLimit, about: ProblemReport, capabilities: Mapping[str, Capability | None]
) -> None:
    """Report a limit whose calls have no counter: they are skills, or they lack an argument that is counted."""
    scope = limit.scope.capabilities
    if not scope or any(name.startswith(NESTED) for name in scope):
        text = "a skill adds nothing, its calls do" if scope else "names no capability"
        hint = "name the capabilities whose calls count"
        about.error("policy.limit", ("applies_to",), text, hint=hint)
        return
    counted = {id: each for id, each in capabilities.items() if each and applies(scope, id)}
    for key, argument in _find_counted_arguments(limit):
        lacking = _find_lacking(counted, argument)
        if lacking:
            about.error("policy.limit", (key,), f"`{lacking}` has no argument `{argument}`")


def _find_lacking(capabilities: Mapping[str, Capability], argument: str) -> str:
    """Return the first capability without an argument. Empty if all have it."""
    return next((id for id, each in capabilities.items() if argument not in each.inputs), "")


def _find_counted_arguments(limit: CumulativeLimit) -> Iterator[tuple[str, str]]:
    """Yield the keys of a limit that read an argument of the call, each with the argument."""
    if limit.sum:
        yield "sum", limit.sum.partition(".")[0]
    if limit.per.startswith(ARGUMENT):
        yield "per", limit.per.removeprefix(ARGUMENT).partition(".")[0]


def check_limits(
    pack: Pack, report: ProblemReport, capabilities: Mapping[str, Capability | None]
) -> None:
    """Report limits that would deny every call or count none, and rules that waive a gate within such a limit.
    `capabilities` maps each name in the registry to its capability, and each skill to None.
    """
    for number, limit in enumerate(pack.policy.limits):
        _check_counter(limit, report.part(f"limit `{limit.id}`", *_LIMITS, number), capabilities)
    limits = {limit.id: limit for limit in pack.policy.limits}
    for number, rule in enumerate(pack.policy.rules):
        named = limits.get(rule.then.without_gate)
        if named is not None:
            about = report.part(f"rule `{rule.rule_id}`", *_RULES, number)
            _check_waived_gate(rule, named, about, capabilities)


def _check_waived_gate(
    rule: PolicyRule,
    limit: CumulativeLimit,
    about: ProblemReport,
    capabilities: Mapping[str, Capability | None],
) -> None:
    """Report a rule that waives the built-in gate within a limit, but not for each call that the limit allows."""
    place = ("then", "without_gate")
    if rule.then.verdict != "allow":
        text = f"lifts no gate, as the verdict is {rule.then.verdict}"
        about.error("policy.limit", place, text, hint="the verdict is `allow`")
    called = [id for id in _find_permitted_by(rule.scope, capabilities) if capabilities[id]]
    missed = [id for id in called if not applies(limit.scope.capabilities, id)]
    if missed:
        text = f"limit `{limit.id}` does not count calls of `{missed[0]}`, so their gate stands"
        about.error("policy.limit", place, text, hint="let both name the same capabilities")


def _find_permitted_by(scope: RuleScope, capabilities: Iterable[str]) -> list[str]:
    """Return the capabilities that a scope names in full."""
    return [id for id in capabilities if id in scope.capabilities]


def _find_obligation_fault(
    pack: Pack, rule: PolicyRule, obligation: str, capabilities: Mapping[str, Capability | None]
) -> tuple[str, str]:
    """Return why an obligation of a rule would not be kept, with a hint. Both are empty if it is kept."""
    is_mask = obligation.startswith(MASK)
    if obligation not in OBLIGATIONS and not is_mask:
        return f"no obligation `{obligation}`", suggestion(obligation, OBLIGATIONS)
    if rule.then.verdict in ("deny", "refuse"):
        text = f"`{obligation}` binds no call, as the verdict is {rule.then.verdict}"
        return text, "obligations are for allow, allow_with_gate and escalate"
    called = _find_permitted_capabilities(pack, rule, capabilities)
    if is_mask:
        return _find_mask_fault(obligation.removeprefix(MASK), called)
    if obligation == "evidence" and _lacks_evidence(pack, rule):
        return "no decision of its intents has `required_evidence`", ""
    if obligation == "idempotency_key" and _lacks_effect(called):
        return "none of its capabilities has an effect, so no call has a key", ""
    return "", ""


def _lacks_evidence(pack: Pack, rule: PolicyRule) -> bool:
    """Return whether the rule applies to intents, and no decision of them requires evidence."""
    intents = [id for id in pack.decisions.intents if applies(rule.scope.intents, id)]
    return bool(intents) and not any(map(pack.decisions.required_evidence, intents))


def _lacks_effect(capabilities: Mapping[str, Capability | None]) -> bool:
    """Return whether at least one of these capabilities is known, and none of the known ones has an effect."""
    known = [each for each in capabilities.values() if each is not None]
    return bool(known) and all(each.effect == "none" for each in known)


def _find_mask_fault(path: str, capabilities: Mapping[str, Capability | None]) -> tuple[str, str]:
    """Return why a path of the outputs of these capabilities cannot be masked, with a hint."""
    if "" in path.split("."):
        return f"no path `{path}`", "name a path of the output, as mask:receipt.card"
    skills = [id for id in capabilities if id.startswith(NESTED)]
    if skills:
        text = f"an output of `{skills[0]}` cannot be masked: its steps are recorded before"
        return text, "let `applies_to` name the capabilities that the skill calls"
    known = [each for each in capabilities.values() if each is not None]
    names = {name for each in known for name in each.outputs}
    first = path.partition(".")[0]
    if known and first not in names:
        return f"none of its capabilities has an output `{first}`", suggestion(first, names)
    return "", ""


def _find_permitted_capabilities(
    pack: Pack, rule: PolicyRule, capabilities: Mapping[str, Capability | None]
) -> dict[str, Capability | None]:
    """Return the capabilities and skills that a rule applies to: those that the pack permits, else all of them."""
    scope = rule.scope.capabilities
    permitted = {id for each in pack.policy.permissions.values() for id in each.allow}
    found = {id: each for id, each in capabilities.items() if applies(scope, id)}
    return {id: each for id, each in found.items() if id in permitted} or found


def _check_contradiction(
    rule: PolicyRule, seen: dict[bytes, PolicyRule], report: ProblemReport
) -> None:
    """Report an enforced rule if an earlier rule has the same scope and condition but another verdict."""
    if not rule.is_enforced:
        return
    key = canonical([rule.condition, rule.scope.intents, rule.scope.capabilities])
    earlier = seen.setdefault(key, rule)
    if earlier.then.verdict != rule.then.verdict:
        message = f"says {rule.then.verdict} where `{earlier.rule_id}` says {earlier.then.verdict}"
        report.warn(
            "policy.contradiction",
            ("then", "verdict"),
            message,
            hint="the strictest one counts; remove the other",
        )


class RuleTestResult(NamedTuple):
    """The result of one test of a rule. `expected` is match, no_match, error, or a text as `say: TEXT`; `found` may
    also be absent.
    """

    rule_id: str
    number: int
    expected: str
    found: str
    message: str = ""

    @property
    def passed(self) -> bool:
        """Whether the rule returned the expected result."""
        return self.found == self.expected


def expects_texts(rules: Iterable[PolicyRule]) -> bool:
    """Return whether a test of these rules expects a text for the customer."""
    return any(test.expected_text is not None for rule in rules for test in rule.tests)


def run_tests(rules: Iterable[PolicyRule], shown: Collection[str] = ()) -> list[RuleTestResult]:
    """Run the tests of all rules and return their results.

    An enforced rule without a test for a match, or without one for no match, has a failed result with number 0. `shown`
    are the names of the values that texts for customers may show.
    """
    return [
        test
        for rule in rules
        for test in (*_run_rule_tests(rule, shown), *_find_missing_tests(rule))
    ]


def _run_rule_tests(rule: PolicyRule, shown: Collection[str]) -> Iterator[RuleTestResult]:
    compiled = compile_rule(rule.condition)
    for number, test in enumerate(rule.tests, 1):
        expected = _describe_expectation(test)
        result = evaluate(compiled, test.data)
        if result.error is not None:
            yield RuleTestResult(rule.rule_id, number, expected, "error", result.error.message)
            continue
        found = "match" if result.result else "no_match"
        if result.result and test.expected_text is not None:
            found = f"say: {render_rule_text(rule, test.data, shown)}"
        yield RuleTestResult(rule.rule_id, number, expected, found)


def _describe_expectation(test: RuleExample) -> str:
    text = test.expected_text
    return test.expected_result if text is None else f"say: {text}"


def _find_missing_tests(rule: PolicyRule) -> Iterator[RuleTestResult]:
    expected = {test.expected_result for test in rule.tests}
    for needed in ("match", "no_match"):
        if rule.is_enforced and needed not in expected:
            yield RuleTestResult(
                rule.rule_id, 0, needed, "absent", f"no test that expects {needed}"
            )
