"""The evaluator of policy rules (docs/reference/pack.md#rules)."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.governance.jsonlogic import Matched, RuleError, compile_rule, evaluate

FACTS: dict[str, Any] = {
    "order": {"age_days": 12, "total": 240.5, "tags": ["gift", "late"], "note": "", "none": None},
    "lines": [{"qty": 2, "price": 10}, {"qty": 1, "price": 5}],
    "args": {"amount": 240, "currency": "EUR", "express": False},
    "user": {"role": "finance"},
    "empty": [],
}

TRUE: list[Any] = [
    True,
    {"==": [{"var": "order.age_days"}, 12]},
    {"===": [{"var": ["order.age_days"]}, 12.0]},
    {"!=": [{"var": "user.role"}, "support"]},
    {"!==": [1, 2]},
    {"==": [{"var": "order.tags.0"}, "gift"]},
    {"==": [{"var": ["order.unknown", 7]}, 7]},
    {"==": [{"var": ["order.none", 7]}, 7]},
    {"==": [{"var": "order.tags"}, ["gift", "late"]]},
    {"<": [0, {"var": "order.age_days"}, 30]},
    {"<=": [12, 12, 12]},
    {">=": [{"var": "order.total"}, 240]},
    {"!": False},
    {"!": [{"var": "args.express"}]},
    {"!": {"missing": ["user.role"]}},
    {"!!": {"missing": ["user.role", "user.name"]}},
    {"!": {"missing": {"merge": ["user.role", {"if": [{"var": "args.express"}, ["order.carrier"], []]}]}}},
    {"==": [{"missing": ["order.note", "order.none"]}, ["order.none"]]},
    {"==": [{"missing_some": [1, ["user.role", "user.name"]]}, []]},
    {"==": [{"missing_some": [2, ["user.role", "user.name"]]}, ["user.name"]]},
    {"and": [True, {"<": [1, 2]}]},
    {"or": [False, {"<": [1, 2]}]},
    {"if": [False, False, {"<": [1, 2]}, True, False]},
    {"?:": [{"var": "args.express"}, False, True]},
    {"==": [{"+": [1, 2, 3]}, 6]},
    {"==": [{"+": 4}, 4]},
    {"==": [{"-": [5, 2]}, 3]},
    {"==": [{"-": 5}, -5]},
    {"==": [{"*": [2, 3, 4]}, 24]},
    {"==": [{"/": [7, 2]}, 3.5]},
    {"==": [{"/": [6, 2]}, 3]},
    {"==": [{"%": [7, 3]}, 1]},
    {"==": [{"%": [-7, 3]}, -1]},
    {"==": [{"min": [3, 1, 2]}, 1]},
    {"==": [{"max": [3, 1, 2]}, 3]},
    {"==": [{"map": [{"var": "lines"}, {"*": [{"var": "qty"}, {"var": "price"}]}]}, [20, 5]]},
    {"==": [{"filter": [[1, 2, 3], {">": [{"var": ""}, 1]}]}, [2, 3]]},
    {"==": [
        {"reduce": [{"var": "lines"}, {"+": [{"var": "accumulator"}, {"var": "current.qty"}]}, 0]},
        3,
    ]},
    {"all": [{"var": "lines"}, {">": [{"var": "qty"}, 0]}]},
    {"some": [{"var": "lines"}, {">": [{"var": "qty"}, 1]}]},
    {"none": [{"var": "lines"}, {">": [{"var": "qty"}, 2]}]},
    {"none": [{"var": "empty"}, {">": [{"var": "qty"}, 2]}]},
    {"!": {"all": [{"var": "empty"}, True]}},
    {"!": {"some": [{"var": "empty"}, True]}},
    {"==": [{"merge": [[1], [2, 3], 4]}, [1, 2, 3, 4]]},
    {"in": ["late", {"var": "order.tags"}]},
    {"in": ["UR", {"var": "args.currency"}]},
    {"!": {"in": [4, []]}},
    {"==": [{"cat": ["a", {"var": "args.currency"}]}, "aEUR"]},
    {"==": [{"substr": ["policy", 2]}, "licy"]},
    {"==": [{"substr": ["policy", -2]}, "cy"]},
    {"==": [{"substr": ["policy", 1, 3]}, "oli"]},
    {"==": [{"substr": ["policy", 1, -2]}, "oli"]},
]  # fmt: skip

ERRORS: list[tuple[Any, str, str]] = [
    ({">": [{"var": "order.amont"}, 100]}, "missing", "/>/0/var"),
    ({">": [{"var": "order.none"}, 100]}, "missing", "/>/0/var"),
    ({"<": [{"var": "order.none"}, 100]}, "missing", "/</0/var"),
    ({"<": ["50", 100]}, "type", "/<"),
    ({"<": [True, 100]}, "type", "/<"),
    ({"==": ["50", 50]}, "type", "/=="),
    ({"!=": ["50", 50]}, "type", "/!="),
    ({"==": [None, 0]}, "type", "/=="),
    ({"==": [True, 1]}, "type", "/=="),
    ({"in": [5, ["5"]]}, "type", "/in"),
    ({"in": [5, "5"]}, "type", "/in"),
    ({"!": [{"var": "user.role"}]}, "type", "/!"),
    ({"!": [{"var": "empty"}]}, "type", "/!"),
    ({"!!": "yes"}, "type", "/!!"),
    ({"and": [1, True]}, "type", "/and"),
    ({"if": ["x", True, False]}, "type", "/if"),
    ({"none": [{"var": "user.role"}, True]}, "type", "/none"),
    ({"some": [[1, "2"], {">": [{"var": ""}, 0]}]}, "type", "/some/1/>"),
    ({"!": {"merge": [{"var": "user.role"}]}}, "type", "/!/merge"),
    ({"cat": ["a", 5]}, "type", "/cat"),
    ({"==": [{"substr": [5, 1]}, ""]}, "type", "/==/0/substr"),
    ({"==": [{"substr": ["policy", 2.5]}, ""]}, "type", "/==/0/substr"),
    ({"==": [{"substr": ["policy", 2, None]}, ""]}, "type", "/==/0/substr"),
    ({"==": [{"-": [5, None]}, -5]}, "type", "/==/0/-"),
    ({"<": [1, 2, None]}, "type", "/<"),
    ({"<": [2, 1, "3"]}, "type", "/<"),
    ({"+": [1, 2]}, "type", ""),
    ("allow", "type", ""),
    (1, "type", ""),
    ([], "type", ""),
    (None, "type", ""),
    ({"==": [{"/": [1, 0]}, 1]}, "range", "/==/0/~1"),
    ({"==": [{"%": [1, 0]}, 1]}, "range", "/==/0/%"),
    ({"==": [{"*": [1e300, 1e300]}, 1]}, "range", "/==/0/*"),
    ({"==": [{"*": [2**40, 2**40, 1.5]}, 1]}, "range", "/==/0/*"),
    ({"if": [False, True]}, "type", ""),
    # no operators, or operators that are not written as they must be
    ({"log": "x"}, "invalid", "/log"),
    ({"val": "x"}, "invalid", "/val"),
    ({"and": []}, "invalid", "/and"),
    ({"or": []}, "invalid", "/or"),
    ({"if": []}, "invalid", "/if"),
    ({}, "invalid", ""),
    ({"==": [1, 1], "!": False}, "invalid", ""),
    ({"==": [1]}, "invalid", "/=="),
    ({"var": {"cat": ["a", "b"]}}, "invalid", "/var"),
    ({"var": [{"cat": ["a", "b"]}]}, "invalid", "/var"),
    ({"var": True}, "invalid", "/var"),
    ({"==": [{"cat": ["x" * 20000]}, ""]}, "invalid", ""),
]


@pytest.mark.parametrize("rule", TRUE, ids=str)
def test_rules_that_match(rule: Any) -> None:
    found = evaluate(compile_rule(rule), FACTS)
    assert isinstance(found, Matched), found
    assert found.result is True
    negated = evaluate(compile_rule({"!": [rule]}), FACTS)
    assert isinstance(negated, Matched)
    assert negated.result is False


@pytest.mark.parametrize(("rule", "code", "pointer"), ERRORS, ids=str)
def test_rules_without_a_result(rule: Any, code: str, pointer: str) -> None:
    found = evaluate(compile_rule(rule), FACTS)
    assert isinstance(found, RuleError), found
    assert (found.code, found.pointer) == (code, pointer)


def test_reads_hold_each_fact_that_was_looked_at() -> None:
    rule = {"and": [{">": [{"var": "args.amount"}, 200]}, {"!": {"missing": ["user.role", "user.name"]}}]}
    found = evaluate(compile_rule(rule), FACTS)
    assert found.reads == {"args.amount": 240, "user.role": "finance", "user.name": None}


def test_reads_stop_where_the_rule_was_decided() -> None:
    rule = {"and": [{">": [{"var": "args.amount"}, 900]}, {"==": [{"var": "user.role"}, "x"]}]}
    found = evaluate(compile_rule(rule), FACTS)
    assert found == Matched(False, {"args.amount": 240})


def test_paths_are_those_of_facts_and_not_of_items() -> None:
    rule = {"some": [{"var": "lines"}, {">": [{"var": "qty"}, {"var": ["limit", 1]}]}]}
    compiled = compile_rule(rule)
    assert compiled.paths == {"lines"}
    assert not compiled.computed
    assert compile_rule({"!!": {"missing": {"merge": [["a"], ["b"]]}}}).computed


def test_operations_are_bounded() -> None:
    rule = {"all": [{"var": "items"}, {"all": [[1] * 50, {">": [{"var": ""}, 0]}]}]}
    assert isinstance(evaluate(compile_rule(rule), {"items": [0] * 50}), Matched)
    found = evaluate(compile_rule(rule), {"items": [0] * 500})
    assert isinstance(found, RuleError)
    assert found.code == "limit"


def test_depth_is_bounded() -> None:
    def nested(depth: int) -> Any:
        return {"!": [nested(depth - 1)]} if depth else True

    assert not compile_rule(nested(64)).faults
    assert "nested more than 64 deep" in compile_rule(nested(70)).faults[0].message
    assert not compile_rule(nested(24), depth=24).faults
    assert compile_rule(nested(26), depth=24).faults


def test_text_is_bounded() -> None:
    grow = {"reduce": [[0] * 20, {"cat": [{"var": "accumulator"}, {"var": "accumulator"}]}, "x"]}
    found = evaluate(compile_rule({"==": [grow, ""]}), {})
    assert isinstance(found, RuleError)
    assert found.code == "limit"
