"""Parts of a pack that cannot work, or are not governed (docs/reference/pack.md#gaps)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fakes.support_desk import PACK_FILE, pack, raw_pack

from cogcli.base.yaml import reader
from cogcli.declarations.capability_spec import Capability
from cogcli.policy.budgets import Budgets
from cogcli.policy.pack_check import check_limits, check_references
from cogcli.policy.pack_composition import compose
from cogcli.policy.pack_gaps import check_gaps
from cogcli.policy.run_policy import LimitsPolicy
from cogcli.specs.problem_report import ProblemReport

LIMIT: dict[str, Any] = {
    "id": "total",
    "applies_to": {"capabilities": ["payments.refund"]},
    "sum": "amount",
    "max": 100,
    "per": "args.order_id",
}


def capability(id: str, properties: dict[str, Any]) -> Capability:
    inputs = {name: {"type": "any", "required": True} for name in ("order_id", "amount")}
    raw = {"id": id, "version": "1.0.0", "description": "x", "inputs": inputs, "outputs": {}}
    return Capability.of({**raw, "properties": properties})


KNOWN = {
    "orders.lookup": capability("orders.lookup", {"side_effects": False}),
    "policy.eval": capability("policy.eval", {"side_effects": False}),
    "payments.refund": capability("payments.refund", {"side_effects": True}),
    "skill:x.y": None,
}
Change = Callable[[dict[str, Any]], object]


def problems(change: Change) -> list[str]:
    raw = raw_pack()
    change(raw)
    report = ProblemReport("pack.yaml", None, subject="pack")
    check_gaps(pack(**raw), report, KNOWN)
    check_limits(pack(**raw), report, KNOWN)
    return [problem.message for problem in report.problems]


def limits(*changed: dict[str, Any]) -> Change:
    found = [{**LIMIT, **each} for each in changed]
    return lambda raw: raw["policy_layer"].update(limits=found)


def lifting(**then: Any) -> Change:
    def change(raw: dict[str, Any]) -> None:
        limits({})(raw)
        rule = raw["policy_layer"]["rules"][0]
        rule["applies_to"] = {"capabilities": ["orders.lookup", "payments.refund"]}
        rule["then"] = {"verdict": "allow", "without_gate": "total", **then}

    return change


def intent(**members: Any) -> Change:
    return lambda raw: raw["decision_layer"]["intents"][0].update(members)


def rule(**members: Any) -> Change:
    return lambda raw: raw["policy_layer"]["rules"][0].update(members)


def with_a_lane(raw: dict[str, Any]) -> None:
    template = raw["decision_layer"]["task_templates"][0]
    template["steps"] = [*template["steps"], {"id": "other", "uses": "lane:other"}]


def test_a_lane_is_no_gap() -> None:
    assert problems(with_a_lane) == problems(lambda raw: None)


def test_a_further_pack_keeps_its_rules_and_lifts_no_gate() -> None:
    raw = raw_pack()
    lifting()(raw)
    raw["pack_meta"]["pack_id"] = "other"
    for number, each in enumerate(raw["policy_layer"]["rules"]):
        each["rule_id"] = f"other_{number}"
    raw["policy_layer"]["guardrails"] = {}
    raw["policy_layer"]["gates"] = {}
    raw["business_context"] = {}
    rules = compose(pack(), [pack(**raw)]).policy.rules
    added = [each for each in rules if each.rule_id.startswith("other_")]
    assert len(added) == len(raw["policy_layer"]["rules"])
    assert not any(each.then.without_gate for each in added)


def test_references_of_limits_are_checked() -> None:
    raw = raw_pack()
    scope = {"capabilities": ["payments.*", "no.such"], "intents": ["support.*", "no.intent"]}
    limits({"applies_to": scope, "per": "user", "gate": "NO_GATE"})(raw)
    lifts = raw["policy_layer"]["rules"][0]["then"]
    lifts["without_gate"] = "none"
    report = ProblemReport("pack.yaml", None, subject="pack")
    check_references(pack(**raw), report, KNOWN)
    limit, waived = "/policy_layer/limits/0", "/policy_layer/rules/0/then/without_gate"
    assert [(problem.path, problem.message) for problem in report.problems] == [
        (waived, "pack: no limit `none`"),
        (f"{limit}/gate", "pack: no gate `NO_GATE`"),
        (f"{limit}/applies_to/intents/1", "pack: no intent `no.intent`"),
        (f"{limit}/applies_to/capabilities/1", "pack: no capability `no.such`"),
    ]


def test_without_limits_nothing_is_claimed() -> None:
    assert LimitsPolicy(Budgets({})).find_claims("payments.refund", {}) == ()


def test_limits_that_count_are_no_gap() -> None:
    before = problems(lambda raw: None)
    assert problems(limits({}, {"id": "count", "sum": "", "per": "user"})) == before


def found_gaps(change: Change) -> list[tuple[str, str]]:
    """The path and the message of each gap."""
    raw = raw_pack()
    change(raw)
    report = ProblemReport("pack.yaml", None, subject="pack")
    check_gaps(pack(**raw), report, KNOWN)
    assert {problem.code for problem in report.problems} <= {"pack.gap"}
    return [(problem.path, problem.message) for problem in report.problems]


def test_a_gap_is_reported_where_it_is_and_nothing_else_is() -> None:
    assert found_gaps(lambda raw: None) == []
    refund = "/policy_layer/permissions/0/allow/2"
    (found,) = found_gaps(lambda raw: raw["policy_layer"].update(rules=[]))
    assert found == (
        refund,
        "pack: `payments.refund` has an effect, and no rule or limit is about it",
    )
    counted = limits({})
    (found,) = [
        *found_gaps(lambda raw: (raw["policy_layer"].update(rules=[]), counted(raw))),
        ("", ""),
    ]
    assert found == ("", "")


def test_facts_that_rules_may_read_are_no_gap() -> None:
    for path in ("order.id", "order.age_days", "order.total.cents", "user.role", "args.amount"):
        assert found_gaps(rule(**{"if": {"==": [{"var": path}, 5]}})) == [], path


def test_only_intents_that_list_a_template_must_list_its_capabilities() -> None:
    def unrelated(raw: dict[str, Any]) -> None:
        listed = raw["decision_layer"]["intents"]
        listed.append({"id": "other", "capabilities": ["orders.lookup"]})

    assert found_gaps(unrelated) == []


@pytest.mark.parametrize(
    ("per", "is_known"), [("user", True), ("tenant", True), ("order", True), ("nobody", False)]
)
def test_a_counter_is_of_a_user_a_tenant_or_a_slot(per: str, is_known: bool) -> None:
    raw = raw_pack()
    limits({"per": per})(raw)
    report = ProblemReport("pack.yaml", None, subject="pack")
    check_references(pack(**raw), report, KNOWN)
    assert [(problem.path, problem.message) for problem in report.problems] == (
        [] if is_known else [("/policy_layer/limits/0/per", "pack: no slot `nobody`")]
    )


RULES = "/policy_layer/rules/0"
TEMPLATE = "/decision_layer/task_templates/0"


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (intent(templates=[]), TEMPLATE),
        (intent(capabilities=["policy.eval"]), f"{TEMPLATE}/steps"),
        (intent(capabilities=[]), "/decision_layer/intents/0"),
        (rule(**{"if": {">": [{"var": "order.often"}, 5]}}), f"{RULES}/if"),
        (lifting(), f"{RULES}/then/without_gate"),
        (lifting(verdict="deny"), f"{RULES}/then/without_gate"),
        (limits({}, {"id": "b", "applies_to": {}}), "/policy_layer/limits/1/applies_to"),
        (
            limits({}, {"id": "b", "applies_to": {"capabilities": ["skill:x.y"]}}),
            "/policy_layer/limits/1/applies_to",
        ),
        (limits({}, {"id": "b", "sum": "amuont"}), "/policy_layer/limits/1/sum"),
        (limits({}, {"id": "b", "per": "args.oder"}), "/policy_layer/limits/1/per"),
    ],
)
def test_a_problem_is_at_the_key_that_must_change(change: Change, path: str) -> None:
    raw = raw_pack()
    change(raw)
    report = ProblemReport("pack.yaml", None, subject="pack")
    check_gaps(pack(**raw), report, KNOWN)
    check_limits(pack(**raw), report, KNOWN)
    assert path in [problem.path for problem in report.problems]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (intent(templates=[]), ("decision_layer", "task_templates", 0)),
        (intent(capabilities=[]), ("decision_layer", "intents", 0)),
    ],
)
def test_a_gap_of_a_whole_part_stands_where_the_part_begins(
    change: Change, path: tuple[str | int, ...]
) -> None:
    raw = raw_pack()
    change(raw)
    places = reader.parse(PACK_FILE.read_bytes(), file="pack.yaml").places
    report = ProblemReport("pack.yaml", places, subject="pack")
    check_gaps(pack(**raw), report, KNOWN)
    at = places.key(path)
    assert (at.line, at.column) in [(each.line, each.column) for each in report.problems]


def test_a_rule_over_a_whole_entity_is_no_gap() -> None:
    """A slot is itself an object with the entity's id, whatever calls add to it."""
    assert found_gaps(rule(**{"if": {"!!": [{"missing": ["order"]}]}})) == []


def test_the_first_call_that_a_limit_does_not_count_is_named() -> None:
    def change(raw: dict[str, Any]) -> None:
        lifting()(raw)
        scope = {"capabilities": ["orders.lookup", "payments.refund", "policy.eval"]}
        raw["policy_layer"]["rules"][0]["applies_to"] = scope

    (told,) = [each for each in problems(change) if "does not count" in each]
    assert told.endswith("does not count calls of `orders.lookup`, so their gate stands")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (intent(templates=[]), "no intent lists it"),
        (intent(capabilities=["policy.eval"]), "is not among the capabilities of intent"),
        (intent(capabilities=[]), "nothing can fulfil it"),
        (limits({"applies_to": {}}), "names no capability"),
        (limits({"applies_to": {"capabilities": ["skill:x.y"]}}), "a skill adds nothing"),
        (limits({"sum": "amuont"}), "has no argument `amuont`"),
        (limits({"per": "args.oder"}), "has no argument `oder`"),
        (lifting(), "does not count calls of `orders.lookup`"),
        (lifting(verdict="deny"), "lifts no gate"),
        (
            lambda raw: raw["pack_meta"]["defaults"].update(safety_mode="read_only"),
            "above the ceiling",
        ),
        (lambda raw: raw["policy_layer"].update(rules=[]), "has an effect"),
        (rule(**{"if": {">": [{"var": "order.often"}, 5]}}), "no capability gives `order.often`"),
    ],
)
def test_gaps(change: Change, expected: str) -> None:
    assert expected in " | ".join(problems(change))


@pytest.mark.parametrize(
    ("scope", "path", "found"),
    [
        (
            ["payments.refund"],
            "args.amout",
            ["rule `odd`: no call in its scope has the argument `amout`"],
        ),
        (
            ["payments.*"],
            "args.amout.cents",
            ["rule `odd`: no call in its scope has the argument `amout`"],
        ),
        (["payments.refund"], "args.amount.cents", []),
        (["payments.refund"], "args", []),
        (["skill:x.y"], "args.amout", []),
        (["no.such"], "args.amout", []),
        ([], "args.amout", []),
    ],
)
def test_a_rule_over_an_argument_that_no_call_has_is_found(
    scope: list[str], path: str, found: list[str]
) -> None:
    def change(raw: dict[str, Any]) -> None:
        rule = {"rule_id": "odd", "applies_to": {"capabilities": scope}, "mode": "shadow"}
        rule |= {"if": {">": [{"var": path}, 5]}, "then": {"verdict": "deny"}, "rationale": "x"}
        raw["policy_layer"]["rules"].append(rule)

    assert [each for each in problems(change) if "argument" in each] == found


def test_a_capability_that_does_not_say_whether_it_has_an_effect_is_a_gap() -> None:
    raw = raw_pack()
    raw["policy_layer"].update(rules=[])
    report = ProblemReport("pack.yaml", None, subject="pack")
    check_gaps(pack(**raw), report, {**KNOWN, "payments.refund": capability("payments.refund", {})})
    (found,) = report.problems
    assert "`payments.refund` has an effect" in found.message


def test_an_intent_that_nothing_can_fulfil_is_reported_at_its_name() -> None:
    (found, *_) = [each for each in found_gaps(intent(capabilities=[])) if "fulfil" in each[1]]
    assert found[0] == "/decision_layer/intents/0"
