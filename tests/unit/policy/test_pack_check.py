"""What is wrong with a pack as a whole, and the tests of its rules (docs/reference/pack.md#check)."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest
from fakes.support_desk import CAPABILITIES, PACK_FILE, pack, raw_pack

from cogcli.base.yaml import reader
from cogcli.declarations.pack_spec import Pack, PolicyRule, RuleExample
from cogcli.policy.pack_check import (
    RuleTestResult,
    check_references,
    check_rules,
    expects_texts,
    run_tests,
)
from cogcli.policy.pack_policy import STATE_PARTS
from cogcli.policy.read_check import check_reads
from cogcli.specs.problem_report import ProblemReport


def _problems(change: Callable[[dict[str, Any]], None]) -> list[tuple[str, str]]:
    return [(problem.code, problem.path) for problem in _report(change).problems]


def _report(change: Callable[[dict[str, Any]], None]) -> ProblemReport:
    report = ProblemReport("pack.yaml", None)
    changed = _changed(change)
    check_references(changed, report, CAPABILITIES)
    check_rules(changed, report, CAPABILITIES)
    check_reads(changed, report)
    return report


def _set(raw: Any, path: str, value: Any) -> None:
    *above, last = [int(part) if part.isdigit() else part for part in path.split("/")]
    for part in above:
        raw = raw[part]
    raw[last] = value


def _changed(change: Callable[[dict[str, Any]], None]) -> Pack:
    raw = copy.deepcopy(raw_pack())
    change(raw)
    return pack(**raw)


def test_the_support_desk_has_no_problem() -> None:
    assert _problems(lambda raw: None) == []


RULES = "/policy_layer/rules"
LAYER = "/decision_layer"


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("policy_layer/permissions/0/allow/2", "a.b", "/policy_layer/permissions/0/allow/2"),
        ("policy_layer/rules/1/then/gate", "GATE", f"{RULES}/1/then/gate"),
        ("policy_layer/rules/0/applies_to", {"intents": ["x"]}, f"{RULES}/0/applies_to/intents/0"),
        (
            "policy_layer/guardrails/must_refuse/0/gate",
            "GATE",
            "/policy_layer/guardrails/must_refuse/0",
        ),
        (
            "policy_layer/guardrails/must_escalate/0/gate",
            "GATE",
            "/policy_layer/guardrails/must_escalate/0",
        ),
        ("tooling_layer/capabilities/a.b", {}, "/tooling_layer/capabilities/a.b"),
        ("decision_layer/intents/0/templates", ["x"], f"{LAYER}/intents/0/templates/0"),
        ("decision_layer/intents/0/capabilities/0", "a.b", f"{LAYER}/intents/0/capabilities/0"),
        (
            "decision_layer/decisions/0/required_evidence/1",
            "parcel.size",
            f"{LAYER}/decisions/0/required_evidence/1",
        ),
        ("decision_layer/task_templates/0/decision", "x", f"{LAYER}/task_templates/0/decision"),
        (
            "decision_layer/task_templates/0/outcome",
            {"met": "paid"},
            f"{LAYER}/task_templates/0/outcome/met",
        ),
        ("decision_layer/objectives/0/intents", ["x"], f"{LAYER}/objectives/0/intents/0"),
    ],
)
def test_names_that_nothing_has(path: str, value: Any, expected: str) -> None:
    assert _problems(lambda raw: _set(raw, path, value)) == [("pack.reference", expected)]


@pytest.mark.parametrize(
    ("path", "value", "kind"),
    [
        ("policy_layer/rules/1/then/gate", "x.y", "gate"),
        ("policy_layer/rules/1/then/without_gate", "x.y", "limit"),
        ("policy_layer/rules/0/applies_to", {"intents": ["x.y"]}, "intent"),
        ("policy_layer/guardrails/must_refuse/0/gate", "x.y", "gate"),
        ("policy_layer/guardrails/must_escalate/0/gate", "x.y", "gate"),
        ("tooling_layer/capabilities/x.y", {}, "capability"),
        ("decision_layer/intents/0/templates", ["x.y"], "template"),
        ("decision_layer/intents/0/capabilities/0", "x.y", "capability"),
        ("decision_layer/task_templates/0/decision", "x.y", "decision"),
        ("decision_layer/task_templates/0/outcome", {"met": "x.y"}, "outcome"),
        ("decision_layer/objectives/0/intents", ["x.y"], "intent"),
    ],
)
def test_a_name_that_nothing_has_is_told_with_its_kind(path: str, value: Any, kind: str) -> None:
    (problem,) = _report(lambda raw: _set(raw, path, value)).problems
    assert problem.message == f"no {kind} `x.y`"


def test_facts_and_evidence_are_of_slots() -> None:
    def change(raw: dict[str, Any]) -> None:
        _set(raw, "tooling_layer/capabilities/orders.lookup/facts", {"ordr.age": "output.age"})
        _set(raw, "decision_layer/decisions/0/required_evidence", ["parcel.size"])

    found = [each.message for each in _report(change).problems if each.code == "pack.reference"]
    assert found[:2] == ["no slot `ordr`", "no slot `parcel`"]


def test_what_a_whole_problem_says() -> None:
    def change(raw: dict[str, Any]) -> None:
        raw["policy_layer"]["permissions"][0]["allow"] = ["orders.lokup"]
        rules = raw["policy_layer"]["rules"]
        rules[0]["then"]["obligations"] = ["evidense"]
        rules[1]["applies_to"] = {"intents": ["support.*"], "capabilities": ["payment.*"]}
        rules.append({**rules[0], "rule_id": "other", "then": {"verdict": "allow"}})
        rules.append(
            {**rules[0], "rule_id": "ghost", "mode": "shadow", "then": {"verdict": "refuse"}}
        )

    assert [(p.code, p.severity, p.path, p.message, p.hint) for p in _report(change).problems] == [
        (
            "pack.reference",
            "E",
            "/policy_layer/permissions/0/allow/0",
            "no capability for `support_agent` `orders.lokup`",
            "did you mean `orders.lookup`?",
        ),
        (
            "policy.obligation",
            "E",
            f"{RULES}/0/then/obligations/0",
            "rule `refund_window`: no obligation `evidense`",
            "did you mean `evidence`?",
        ),
        ("policy.unused", "W", f"{RULES}/1/applies_to", "rule `refund_limit`: no capability of the registry fits", ""),
        (
            "policy.contradiction",
            "W",
            f"{RULES}/2/then/verdict",
            "rule `other`: says allow where `refund_window` says deny",
            "the strictest one counts; remove the other",
        ),
    ]  # fmt: skip


KINDS = [
    ("policy_layer/guardrails/must_refuse/0/gate", "GATE", "gate"),
    ("policy_layer/rules/1/then/gate", "GATE", "gate"),
    ("policy_layer/rules/0/applies_to", {"intents": ["x"]}, "intent"),
    ("tooling_layer/capabilities/a.b", {}, "capability"),
    ("decision_layer/intents/0/capabilities/0", "a.b", "capability"),
    ("decision_layer/intents/0/templates", ["x"], "template"),
    ("decision_layer/decisions/0/required_evidence/1", "parcel.size", "slot"),
    ("decision_layer/task_templates/0/decision", "x", "decision"),
    ("decision_layer/task_templates/0/outcome", {"met": "paid"}, "outcome"),
    ("decision_layer/objectives/0/intents", ["x"], "intent"),
]


@pytest.mark.parametrize(("path", "value", "kind"), KINDS)
def test_what_kind_of_name_nothing_has(path: str, value: Any, kind: str) -> None:
    (problem,) = _report(lambda raw: _set(raw, path, value)).problems
    name = {"decision_layer/decisions/0/required_evidence/1": "parcel"}.get(path)
    if name is None:
        first = next(iter(value.values())) if isinstance(value, dict) and value else value
        name = first[0] if isinstance(first, list) else "a.b" if value == {} else first
    assert problem.message == f"no {kind} `{name}`"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("policy_layer/rules/1/then", {"verdict": "allow_with_gate", "gate": "GATE_OPERATOR"}),
        ("policy_layer/rules/0/applies_to", {"intents": ["support.*"]}),
        ("decision_layer/task_templates/0", {"id": "refund_with_eligibility", "steps": [], "outcome": {"met": "x"}}),
    ],
)  # fmt: skip
def test_names_that_need_nothing_behind_them(path: str, value: Any) -> None:
    assert _report(lambda raw: _set(raw, path, value)).problems == []


def test_rules_of_other_scopes_or_conditions_do_not_contradict() -> None:
    def change(raw: dict[str, Any]) -> None:
        rules = raw["policy_layer"]["rules"]
        base = {**rules[0], "then": {"verdict": "allow"}}
        rules.append({**base, "rule_id": "intents", "applies_to": {"capabilities": ["payments.*"]}})
        rules.append({**base, "rule_id": "names", "applies_to": {"intents": ["support.refund"]}})
        rules.append({**base, "rule_id": "condition", "if": {">": [{"var": "order.age_days"}, 31]}})
        rules.append({**rules[0], "rule_id": "same"})

    assert _report(change).problems == []


def test_rules_nest_to_twenty_four() -> None:
    def nested(depth: int) -> Any:
        return {"!": [nested(depth - 1)]} if depth else True

    for depth, codes in ((24, []), (25, ["policy.rule"])):
        found = _report(
            lambda raw, depth=depth: _set(raw, "policy_layer/rules/0/if", nested(depth))
        )
        assert [problem.code for problem in found.problems] == codes


def test_conditions_that_are_no_rules() -> None:
    def change(raw: dict[str, Any]) -> None:
        raw["policy_layer"]["rules"][0]["if"] = {"and": [{"log": "x"}, {"==": [1]}]}

    assert _problems(change) == [
        ("policy.rule", f"{RULES}/0/if/and/0/log"),
        ("policy.rule", f"{RULES}/0/if/and/1/=="),
    ]


def test_obligations_scopes_and_contradictions() -> None:
    def change(raw: dict[str, Any]) -> None:
        rules = raw["policy_layer"]["rules"]
        obligations = ["evidense", "mask:receipt.card", "evidence"]
        rules[0]["then"] = {"verdict": "allow_with_gate", "obligations": obligations}
        rules[1]["applies_to"] = {"capabilities": ["payment.*"]}
        rules.append({**rules[0], "rule_id": "other", "then": {"verdict": "allow"}})

    assert _problems(change) == [
        ("policy.obligation", f"{RULES}/0/then/obligations/0"),
        ("policy.unused", f"{RULES}/1/applies_to"),
        ("policy.contradiction", f"{RULES}/2/then/verdict"),
    ]


def test_a_rule_for_no_capability_is_told_at_the_key_of_its_scope() -> None:
    places = reader.parse(PACK_FILE.read_bytes(), file="pack.yaml").places
    report = ProblemReport("pack.yaml", places)
    scope = {"capabilities": ["payment.*"]}
    check_rules(
        _changed(lambda raw: _set(raw, "policy_layer/rules/1/applies_to", scope)),
        report,
        CAPABILITIES,
    )
    at = places.key(("policy_layer", "rules", 1, "applies_to"))
    assert [(found.line, found.column) for found in report.problems] == [(at.line, at.column)]


def test_tests_beside_rules() -> None:
    tests = run_tests(pack().policy.rules)
    assert [(test.rule_id, test.number, test.found) for test in tests] == [
        ("refund_window", 1, "match"),
        ("refund_window", 2, "no_match"),
        ("refund_window", 3, "error"),
        ("refund_limit", 1, "match"),
        ("refund_limit", 2, "no_match"),
    ]
    assert all(test.passed for test in tests)


def test_a_test_that_fails_and_one_that_is_lacking() -> None:
    rule = pack().policy.rules[0]
    wrong = rule.replace(tests=(RuleExample(data={"order": {"age_days": 40}}, expect="no_match"),))
    found = [(test.number, test.expected, test.found, test.passed) for test in run_tests([wrong])]
    assert found == [(1, "no_match", "match", False), (0, "match", "absent", False)]
    assert run_tests([wrong.replace(mode="shadow", tests=())]) == []


def test_what_a_test_of_a_rule_says() -> None:
    rule = pack().policy.rules[0].replace(tests=(RuleExample(data={}, expect="match"),))
    assert run_tests([rule]) == [
        RuleTestResult("refund_window", 1, "match", "error", "no value at `order.age_days`"),
        RuleTestResult("refund_window", 0, "no_match", "absent", "no test that expects no_match"),
    ]
    shadow = rule.replace(mode="shadow")
    assert [test.number for test in run_tests([shadow, rule])] == [1, 1, 0]
    assert RuleTestResult("r", 1, "match", "match") == RuleTestResult("r", 1, "match", "match", "")


def _test_text(test: dict[str, Any], then: dict[str, Any], shown: tuple[str, ...] = ()) -> Any:
    rule = PolicyRule.of(
        {
            "rule_id": "window",
            "mode": "shadow",
            "if": {">": [{"var": "order.age_days"}, 30]},
            "then": then,
            "say": "Order ${order.id} is ${order.age_days} days old.",
            "tests": [test],
        }
    )
    assert expects_texts([rule])
    (found,) = run_tests([rule], shown)
    return found


OLD = {"order": {"id": "ord_1", "age_days": 31}}


@pytest.mark.parametrize(
    ("data", "then", "shown", "found"),
    [
        (OLD, {"verdict": "deny"}, ("order.id", "order.age_days"), "say: Order ord_1 is 31 days old."),
        (OLD, {"verdict": "deny"}, ("order.id",), "say: Order ord_1 is days old."),
        (OLD, {"verdict": "deny"}, (), "say: Order is days old."),
        (OLD, {"verdict": "allow"}, ("order.id", "order.age_days"), "say: "),
        (
            OLD,
            {"verdict": "allow", "args": {"amount": {"max": 5}}},
            ("order.id", "order.age_days"),
            "say: Order ord_1 is 31 days old.",
        ),
        (OLD | {"args": {"amount": 5}}, {"verdict": "allow", "args": {"amount": {"max": 5}}}, (), "say: "),
        ({"order": {"age_days": 30}}, {"verdict": "deny"}, (), "no_match"),
        ({"order": {}}, {"verdict": "deny"}, (), "error"),
    ],
)  # fmt: skip
def test_what_a_customer_reads_is_the_whole_text_of_the_rule_that_decides(
    data: dict[str, Any], then: dict[str, Any], shown: tuple[str, ...], found: str
) -> None:
    right = found.removeprefix("say: ")
    result = _test_text({"data": data, "expect": {"say": right}}, then, shown)
    assert (result.found, result.expected) == (found, f"say: {right}")
    assert result.passed is found.startswith("say: ")
    wrong = _test_text({"data": data, "expect": {"say": f"{right}!"}}, then, shown)
    assert not wrong.passed


def test_a_test_of_a_text_is_one_that_matches() -> None:
    rule = pack().policy.rules[0]
    tests = (
        {"data": OLD, "expect": {"say": ""}},
        {"data": {"order": {"age_days": 1}}, "expect": "no_match"},
    )
    assert all(
        test.passed for test in run_tests([rule.replace(tests=tuple(map(RuleExample.of, tests)))])
    )
    assert not expects_texts(pack().policy.rules)


def test_a_target_names_an_intent_of_the_pack() -> None:
    def change(raw: Any) -> None:
        raw["evaluation_layer"] = {
            "targets": [
                {"metric": "recovery_rate", "min": 1},
                {**raw["evaluation_layer"]["targets"][0], "intent": "support.refunds"},
            ]
        }

    (problem,) = _report(change).problems
    assert (problem.code, problem.path) == ("pack.reference", "/evaluation_layer/targets/1/intent")
    assert problem.message == "no intent `support.refunds`"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("policy_layer/permissions/0/allow/0", "no skill for `support_agent` `skill:text.brif`"),
        ("decision_layer/intents/0/capabilities/0", "no skill `skill:text.brif`"),
    ],
)
def test_a_skill_that_is_not_there_is_told_at_its_place(path: str, expected: str) -> None:
    report = ProblemReport("pack.yaml", None)
    changed = _changed(lambda raw: _set(raw, path, "skill:text.brif"))
    check_references(changed, report, {**CAPABILITIES, "skill:text.brief": None})
    (problem,) = report.problems
    assert (problem.path, problem.message) == (f"/{path}", expected)
    assert problem.hint == "did you mean `skill:text.brief`?"


def test_a_tool_of_a_pack_is_no_problem() -> None:
    report = ProblemReport("pack.yaml", None)
    changed = _changed(
        lambda raw: _set(
            raw, "tooling_layer/capabilities/skill:text.brief", {"approval_mode": "network"}
        )
    )
    check_references(changed, report, {**CAPABILITIES, "skill:text.brief": None})
    check_rules(changed, report, {**CAPABILITIES, "skill:text.brief": None})
    assert report.problems == []


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("arg.amount", "did you mean `args.amount`?"),
        ("ordr.age_days", "did you mean `order.age_days`?"),
        ("user.user_id", "it has consent, id, role"),
        ("run.safety_mod", "did you mean `run.safety_mode`?"),
        ("state.plann.steps", "did you mean `state.plan.steps`?"),
        ("\u0430rgs.amount", "did you mean `args.amount`?"),
        ("args..amount", ""),
        (".args", ""),
        ("__proto__.x", "it has agent, args, "),
    ],
)
@pytest.mark.parametrize("written", ["path", [0, "path"], "missing"])
def test_a_rule_that_reads_what_is_never_there(path: str, hint: str, written: Any) -> None:
    read = (
        {"missing": [path]}
        if written == "missing"
        else {"var": [path, 0] if written != "path" else path}
    )
    (problem,) = _report(lambda raw: _set(raw, "policy_layer/rules/1/if", {"!!": [read]})).problems
    assert (problem.code, problem.path) == ("pack.reference", f"{RULES}/1/if")
    assert problem.message == f"rule `refund_limit`: reads `{path}`, which is never there"
    assert hint in problem.hint


@pytest.mark.parametrize(
    "path",
    ["", "args", "args.x.y", "order.seen", "user", "user.consent.0", "request.params.x", "vars.x"],
)
def test_a_rule_may_read_what_a_run_may_have(path: str) -> None:
    assert (
        _report(lambda raw: _set(raw, "policy_layer/rules/1/if", {"!!": [{"var": path}]})).problems
        == []
    )


def test_a_rule_may_read_all_that_the_reference_lists() -> None:
    page = (PACK_FILE.parents[4] / "reference/pack.md").read_text(encoding="utf-8")
    rules = page[page.index('<a id="rules"></a>') : page.index('<a id="guardrails"></a>')]
    listed = re.findall(r"`(\w+) \{([\w, ]+)\}`", rules)
    assert [head for head, _ in listed if head != "then"][1:] == [
        "request",
        "user",
        "agent",
        "run",
        "call",
    ]
    paths = [f"{head}.{name}" for head, names in listed[2:] for name in names.split(", ")]
    paths += [
        "args.x",
        "inputs.x",
        "vars.x",
        "outputs.x",
        *[f"state.{part}" for part in sorted(STATE_PARTS)],
    ]
    assert (
        _problems(lambda raw: _set(raw, "policy_layer/rules/1/if", {"!!": [{"missing": paths}]}))
        == []
    )


def test_rules_of_a_pack_without_intents_are_for_those_of_another_one() -> None:
    def change(raw: dict[str, Any]) -> None:
        raw.update(decision_layer={}, evaluation_layer={}, tooling_layer={})
        raw["policy_layer"]["rules"] = raw["policy_layer"]["rules"][:1]
        raw["policy_layer"]["rules"][0]["applies_to"] = {}

    assert _report(change).problems == []


@pytest.mark.parametrize("condition", ["x", 1, [], [True], None])
def test_a_condition_is_an_operator_or_a_boolean(condition: Any) -> None:
    assert _problems(lambda raw: _set(raw, "policy_layer/rules/1/if", condition)) == [
        ("policy.rule", f"{RULES}/1/if")
    ]


TEMPLATE = "decision_layer/task_templates/0"


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("success", {"log": "x"}, "policy.rule"),
        ("success", "done", "policy.rule"),
        ("success", {"==": [{"var": "output.receipt"}, 1]}, "pack.reference"),
        ("success", {"==": [{"var": "args.amount"}, 1]}, "pack.reference"),
        ("reply", "to ${inputs.order_id", "request.template"),
        ("reply", "to ${secrets.KEY}", "request.template"),
        ("reply", "to ${}", "request.template"),
        ("reply", "to ${vars.age}", "request.template"),
        ("reply", "to ${inputs.order}", "pack.reference"),
        ("reply", "to ${input.order_id}", "pack.reference"),
        ("reply", "to ${outputs.recipt.id}", "pack.reference"),
    ],
)
def test_the_goal_and_the_reply_of_a_template_read_what_it_has(
    key: str, value: Any, code: str
) -> None:
    (problem, *_) = _problems(lambda raw: _set(raw, f"{TEMPLATE}/{key}", value))
    assert problem[0] == code
    assert problem[1].startswith(f"/{TEMPLATE}/{key}")


@pytest.mark.parametrize(
    ("success", "problems"),
    [
        ({"==": [{"var": "order.age_days"}, 1]}, []),
        ({"==": [{"var": "outputs.receipt.status"}, "done"]}, []),
        ({"==": [{"var": "parcel.age_days"}, 1]}, ["pack.reference"]),
        ({"==": [{"var": "args.amount"}, 1]}, ["pack.reference"]),
        ("done", ["policy.rule"]),
    ],
)
def test_the_goal_of_a_decision_reads_facts_and_outputs(success: Any, problems: list[str]) -> None:
    place = "decision_layer/decisions/0/success"
    found = _problems(lambda raw: _set(raw, place, success))
    assert [code for code, at in found if at.startswith(f"/{place}")] == problems


@pytest.mark.parametrize(
    ("reply", "said", "hint"),
    [
        (
            "${inputs.order}",
            "reads `inputs.order`, which is never there",
            "did you mean `inputs.order_id`?",
        ),
        (
            "${inputs.zzz.zzz}",
            "reads `inputs.zzz.zzz`, which is never there",
            "it has inputs.order_id, ",
        ),
        ("${secrets.KEY}", "`inputs` or `outputs`", ""),
        (
            "for {{ inputs.order_id }}",
            "`{{ inputs.order_id }}` is not filled in",
            "write ${inputs.order_id}",
        ),
    ],
)
def test_what_is_said_of_a_reply_that_reads_what_is_not_there(
    reply: str, said: str, hint: str
) -> None:
    def change(raw: dict[str, Any]) -> None:
        template = raw["decision_layer"]["task_templates"][0]
        del template["steps"][0]["output"]
        template["reply"] = reply

    (problem,) = _report(change).problems
    assert said in problem.message
    assert hint in problem.hint


@pytest.mark.parametrize(
    "reply", ["", "done", "$${x}", "${inputs.order_id} ${outputs.receipt.id:-none}"]
)
def test_a_reply_of_what_a_template_has(reply: str) -> None:
    assert _problems(lambda raw: _set(raw, f"{TEMPLATE}/reply", reply)) == []


@pytest.mark.parametrize(
    "reply",
    [
        "costs {{ money }} and ${inputs.order_id}",
        "{amount} of ${inputs.order_id}",
        "{{ other.order_id }}",
    ],
)
def test_braces_around_what_no_reply_could_read_are_text(reply: str) -> None:
    assert _problems(lambda raw: _set(raw, f"{TEMPLATE}/reply", reply)) == []


@pytest.mark.parametrize("written", ["{{ inputs.order_id }}", "$${{ inputs.order_id }}"])
def test_a_placeholder_that_stays_in_a_reply_is_told_where_it_stands(written: str) -> None:
    found = _report(lambda raw: _set(raw, f"{TEMPLATE}/reply", f"for {written}")).problems
    assert [(each.code, each.path, each.hint) for each in found] == [
        ("request.template", f"/{TEMPLATE}/reply", "write ${inputs.order_id}")
    ]


def test_a_step_that_does_not_say_what_it_writes_may_write_any_output() -> None:
    def change(raw: dict[str, Any]) -> None:
        template = raw["decision_layer"]["task_templates"][0]
        del template["steps"][0]["output"]
        template["reply"] = "${outputs.anything}"

    assert _problems(change) == []


def test_a_fact_is_of_a_slot() -> None:
    path = "tooling_layer/capabilities/orders.lookup/facts"
    found = _problems(lambda raw: _set(raw, path, {"ordr.age_days": "output.age_days"}))
    assert found == [
        ("pack.reference", "/tooling_layer/capabilities/orders.lookup/facts/ordr.age_days")
    ]


@pytest.mark.parametrize(
    ("obligation", "then", "scope", "message"),
    [
        ("mask:receipt.card", {}, ["payments.refund"], ""),
        ("mask:receipt", {}, [], ""),
        ("mask:", {}, ["payments.refund"], "no path ``"),
        ("mask:receipt..card", {}, ["payments.refund"], "no path `receipt..card`"),
        ("mask:card", {}, ["payments.*"], "none of its capabilities has an output `card`"),
        ("mask:ok", {}, ["skill:text.brief"], "an output of `skill:text.brief` cannot be masked"),
        ("mask:receipt", {"verdict": "deny"}, [], "binds no call, as the verdict is deny"),
        ("named_user", {"verdict": "refuse"}, [], "binds no call, as the verdict is refuse"),
        ("evidence", {}, ["payments.refund"], ""),
        ("idempotency_key", {}, ["payments.refund"], ""),
        ("idempotency_key", {}, ["orders.lookup"], "none of its capabilities has an effect"),
    ],
)
def test_an_obligation_that_is_not_kept_is_an_error(
    obligation: str, then: dict[str, str], scope: list[str], message: str
) -> None:
    def change(raw: dict[str, Any]) -> None:
        rule = raw["policy_layer"]["rules"][0]
        rule["applies_to"] = {"capabilities": scope}
        rule["then"] = {"verdict": "allow", **then, "obligations": [obligation]}

    report = ProblemReport("pack.yaml", None)
    check_rules(_changed(change), report, {**CAPABILITIES, "skill:text.brief": None})
    found = [each for each in report.problems if each.code == "policy.obligation"]
    assert [message in each.message for each in found] == ([True] if message else [])


def test_evidence_that_no_decision_requires_is_an_error() -> None:
    def change(raw: dict[str, Any]) -> None:
        rule = raw["policy_layer"]["rules"][0]
        rule["applies_to"] = {"intents": ["support.order_status"]}
        rule["then"] = {"verdict": "allow", "obligations": ["evidence"]}

    (problem,) = [each for each in _report(change).problems if each.code == "policy.obligation"]
    assert "no decision of its intents has `required_evidence`" in problem.message
    assert problem.hint == ""
