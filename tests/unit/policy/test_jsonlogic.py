"""The evaluator of policy rules (docs/reference/pack.md#rules)."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.policy.jsonlogic import RuleError, RuleResult, compile_rule, evaluate
from cogcli.policy.operators import OPERATORS

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
    {"or": [{"==": [{"var": ["order.none", 8]}, 7]}, {"==": [{"var": ["order.none", 7]}, 7]}]},
    {"and": [{"==": [{"var": "user.role"}, "finance"]}, {"!=": [{"var": "user.role"}, "x"]}]},
    {"==": [{"var": "order.tags"}, ["gift", "late"]]},
    {"<": [0, {"var": "order.age_days"}, 30]},
    {"<=": [12, 12, 12]},
    {">=": [{"var": "order.total"}, 240]},
    {"!": False},
    {"!": [{"var": "args.express"}]},
    {"!": {"missing": ["user.role"]}},
    {"!!": {"missing": ["user.role", "user.name"]}},
    {"!!": [[False]]},
    {"!": [[]]},
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
    {"in": ["late", {"merge": [{"var": "order.tags"}]}]},
    {"!": {"in": [4, []]}},
    {"==": [{"cat": ["a", {"var": "args.currency"}]}, "aEUR"]},
    {"==": [{"substr": ["policy", 2]}, "licy"]},
    {"==": [{"substr": ["policy", -2]}, "cy"]},
    {"==": [{"substr": ["policy", {"/": [4, 2]}]}, "licy"]},
    {"==": [{"substr": ["policy", {"%": [5, 3]}]}, "licy"]},
    {"==": [{"%": [7.5, 2]}, 1.5]},
    {"==": [{"%": [7, 2.5]}, 2]},
    {"==": [{"%": [7, -3]}, 1]},
    {"==": [{"/": [7.5, 2.5]}, 3]},
    {"==": [{"/": [-7, 2]}, -3.5]},
    {"==": [{"*": 5}, 5]},
    {"==": [{"min": [2]}, 2]},
    {"==": [{"merge": [[], "x", [["y"]]]}, ["x", ["y"]]]},
    {"==": [{"cat": ["a"]}, "a"]},
    {"<": [1, 2, 3]},
    {"!": {"<": [1, 3, 2]}},
    {"!": {"<": [2, 1, 3]}},
    {"!": {"<=": [1, 3, 2]}},
    {"!": {"<": [2, 2]}},
    {"<=": [2, 2]},
    {"!": {">": [2, 2]}},
    {">": [3, 2]},
    {">=": [2, 2]},
    {"!": {">=": [1, 2]}},
    {"!": {"!=": [1, 1]}},
    {"!": {"!==": ["a", "a"]}},
    {"if": [False, False, False, False, True]},
    {"!": {"if": [True, False, True]}},
    {"!": {"in": ["x", ["a"]]}},
    {"in": ["a", ["a"]]},
    {"!": {"missing_some": [0, ["user.name"]]}},
    {"!!": {"missing_some": [1, ["user.name"]]}},
    {"!!": {"map": [[False], {"var": ""}]}},
    {"!!": {"filter": [[False], True]}},
    {"if": [True, True, {"<": ["x", 1]}, False]},
    {"or": [True, {"<": ["x", 1]}]},
    {"!": {"and": [False, {"<": ["x", 1]}]}},
    {"==": [{"missing_some": [0, ["user.name"]]}, []]},
    {"==": [{"missing_some": [1, ["user.name", "user.age"]]}, ["user.name", "user.age"]]},
    {"!": {"all": [[1, 2, 3], {"<": [{"var": ""}, 3]}]}},
    {"some": [[1, 2, 3], {">": [{"var": ""}, 2]}]},
    {"!": {"none": [[1, 2, 3], {">": [{"var": ""}, 2]}]}},
    {"==": [{"map": [[], {"var": ""}]}, []]},
    {"==": [{"substr": ["policy", 1, 3]}, "oli"]},
    {"==": [{"substr": ["policy", 1, -2]}, "oli"]},
]  # fmt: skip

ERRORS: list[tuple[Any, str, str]] = [
    ({">": [{"var": "order.amont"}, 100]}, "missing", "/>/0/var"),
    ({">": [{"var": "order.none"}, 100]}, "missing", "/>/0/var"),
    ({"<": [{"var": "order.none"}, 100]}, "missing", "/</0/var"),
    ({"<": ["50", 100]}, "type", "/<"),
    ({"<": [True, 100]}, "type", "/<"),
    ({"==": [50, "50"]}, "type", "/=="),
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
    ({"==": [{"filter": [[1], {"var": ""}]}, [1]]}, "type", "/==/0/filter"),
    ({"some": [[1, "2"], {">": [{"var": ""}, 0]}]}, "type", "/some/1/>"),
    ({"!": {"merge": [{"var": "user.role"}]}}, "type", "/!/merge"),
    ({"!": [{"missing_some": [1, "user.role"]}]}, "type", "/!/0/missing_some"),
    ({"!": [{"missing_some": [1, {"var": "user.role"}]}]}, "type", "/!/0/missing_some"),
    ({"!": [{"missing_some": [True, {"var": "no.no"}]}]}, "missing", "/!/0/missing_some/1/var"),
    ({"var": 1.5}, "invalid", "/var"),
    ({"in": ["inan", {"merge": [{"var": "user.role"}]}]}, "type", "/in/1/merge"),
    ({"cat": ["a", 5]}, "type", "/cat"),
    ({"==": [{"substr": ["policy", {"/": [4.0, 2]}]}, ""]}, "type", "/==/0/substr"),
    ({"==": [{"substr": ["policy", {"/": [4, 2.0]}]}, ""]}, "type", "/==/0/substr"),
    ({"==": [{"substr": ["policy", {"%": [5.0, 3]}]}, ""]}, "type", "/==/0/substr"),
    ({"==": [{"substr": ["policy", {"%": [5, 3.0]}]}, ""]}, "type", "/==/0/substr"),
    ({"==": [{"/": [1, "2"]}, 1]}, "type", "/==/0/~1"),
    ({"==": [{"/": ["1", 2]}, 1]}, "type", "/==/0/~1"),
    ({"==": [{"%": ["1", 2]}, 1]}, "type", "/==/0/%"),
    ({"==": [{"/": [1, 0.0]}, 1]}, "range", "/==/0/~1"),
    ({"all": [[1, "2"], {"<": [{"var": ""}, 1]}]}, "type", "/all/1/<"),
    ({"none": [[3, "2"], {">": [{"var": ""}, 1]}]}, "type", "/none/1/>"),
    ({"in": [1, [1, "1"]]}, "type", "/in"),
    ({"!": [{"missing_some": [1.0, ["user.role"]]}]}, "type", "/!/0/missing_some"),
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
    assert found.error is None, found
    assert found.result is True
    negated = evaluate(compile_rule({"!": [rule]}), FACTS)
    assert negated.error is None
    assert negated.result is False


@pytest.mark.parametrize(("rule", "code", "pointer"), ERRORS, ids=str)
def test_rules_without_a_result(rule: Any, code: str, pointer: str) -> None:
    found = evaluate(compile_rule(rule), FACTS).error
    assert found is not None
    assert (found.code, found.pointer) == (code, pointer)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("order.tags.0", "gift"),
        ("order.tags.1", "late"),
        ("order.tags.2", None),
        ("order.tags.-1", None),
        ("order.tags.x", None),
        ("order.tags.²", None),
        ("order.tags.1000000000", None),
        (f"order.tags.{'1' * 5000}", None),
        ("order.tags.0.x", None),
        ("order.age_days.0", None),
        ("user.role.0", None),
        ("order.tags.9.x", None),
        ("no.such.thing", None),
        ("lines.1.price", 5),
    ],
)
def test_where_a_path_leads(path: str, value: Any) -> None:
    found = evaluate(compile_rule({"!!": [{"missing": [path]}]}), FACTS)
    assert found == RuleResult(value is None, {path: value})


def test_numbers_name_members_and_the_empty_path_all_there_is() -> None:
    assert evaluate(compile_rule({"==": [{"var": 1}, "b"]}), {"1": "b"}) == RuleResult(
        True, {"1": "b"}
    )
    assert evaluate(compile_rule({"==": [{"var": ""}, {"a": 1}]}), {"a": 1}).reads == {}
    everything = evaluate(compile_rule({"!": [{"missing": [""]}]}), {"a": 1})
    assert everything == RuleResult(True, {"": {"a": 1}})


def test_facts_that_an_item_hides_are_not_read() -> None:
    rule = {"all": [{"var": "lines"}, {">": [{"var": ["none", 1]}, {"-": [{"var": "qty"}, 2]}]}]}
    assert evaluate(compile_rule(rule), FACTS) == RuleResult(True, {"lines": FACTS["lines"]})


MESSAGES: list[tuple[Any, str]] = [
    ({"!": [1]}, "expected true or false, found a number"),
    ({"!": [None]}, "expected true or false, found null"),
    ({"<": ["1", 2]}, "expected a number, found a text"),
    ({"==": [{"substr": ["abc", 1.5]}, ""]}, "expected a whole number, found a number"),
    ({"==": [{"substr": ["abc", True]}, ""]}, "expected a whole number, found a boolean"),
    ({"==": [{"cat": [[1]]}, ""]}, "expected text, found a list"),
    ({"in": [1, 2]}, "expected a list, found a number"),
    ({"==": [1, "1"]}, "a number is compared with a text"),
    ({"==": [None, "1"]}, "null is compared with a text"),
    ({"==": [{"+": [2**53, 1]}, 1]}, "the number is out of range"),
    ({"==": [{"/": [1, 0]}, 1]}, "division by zero"),
    ({"var": "order.amont"}, "no value at `order.amont`"),
    ([], "the result is a list, expected true or false"),
    ({}, "expected one operator in each object"),
    ({"log": 1}, "no operator `log`"),
    ({"var": True}, "the path of `var` is not written out"),
    ({"!": [1, 2]}, "`!` takes 1 argument, found 2"),
    ({"==": [1]}, "`==` takes 2 arguments, found 1"),
    ({"<": [1]}, "`<` takes 2 to 3 arguments, found 1"),
    ({"-": [1, 2, 3]}, "`-` takes 1 to 2 arguments, found 3"),
    ({"and": []}, "`and` takes 1 or more arguments, found 0"),
]


@pytest.mark.parametrize(("rule", "message"), MESSAGES, ids=str)
def test_what_is_said_of_a_rule_without_a_result(rule: Any, message: str) -> None:
    found = evaluate(compile_rule(rule), FACTS).error
    assert found is not None
    assert found.message.replace("an object", "a object") == message


def test_an_error_names_the_variable_that_is_missing_and_no_other() -> None:
    missing = evaluate(compile_rule({"==": [{"var": "order.x"}, 1]}), FACTS)
    assert missing.error == RuleError(
        "missing", "/==/0/var", "no value at `order.x`", {"order.x": None}, "order.x"
    )
    assert evaluate(compile_rule({"<": ["1", 2]}), FACTS).error == RuleError(
        "type", "/<", "expected a number, found a text", {}, ""
    )
    assert evaluate(compile_rule({"log": 1}), FACTS).error == RuleError(
        "invalid", "/log", "no operator `log`", {}
    )
    assert evaluate(compile_rule(None), FACTS).reads == {}
    twice = compile_rule({"or": [True, {"log": 1}, {"val": 1}]})
    assert [fault.path for fault in twice.faults] == [("or", 1, "log"), ("or", 2, "val")]
    found = evaluate(twice, FACTS).error
    assert found is not None
    assert (found.pointer, found.missing) == ("/or/1/log", "")


TAKES: dict[tuple[int, int | None], str] = {
    (1, 1): "! !!",
    (1, 2): "var -",
    (2, 2): "missing_some == === != !== > >= / % map filter all some none in",
    (2, 3): "< <= substr",
    (3, 3): "?: reduce",
    (1, None): "missing and or + * min max merge cat",
    (2, None): "if",
}


@pytest.mark.parametrize("name", OPERATORS)
def test_each_operator_takes_as_many_arguments_as_it_should(name: str) -> None:
    ((least, most),) = (count for count, names in TAKES.items() if name in names.split())
    for count in range(6):
        arguments: list[Any] = ["a", *[{"var": "x"}] * (count - 1)][:count]
        takes = least <= count and (most is None or count <= most)
        assert (not compile_rule({name: arguments}).faults) is takes, count


COMPUTED: list[tuple[Any, set[str], bool]] = [
    ({"missing": ["a", "b"]}, {"a", "b"}, False),
    ({"missing": [["a", "b"]]}, {"a", "b"}, False),
    ({"missing": "a"}, {"a"}, False),
    ({"missing": []}, set(), False),
    ({"missing": [["a"], "b"]}, {"b"}, True),
    ({"missing": [{"var": "names"}]}, {"names"}, True),
    ({"missing": [1, True, 2.0, 2.5]}, {"1", "2"}, False),
    ({"some": [[1], {"!!": [{"missing": {"merge": ["a"]}}]}]}, set(), False),
    ({"missing_some": [1, ["a", "b"]]}, {"a", "b"}, False),
    ({"missing_some": [{"var": "n"}, ["a"]]}, {"n", "a"}, False),
    ({"missing_some": [1, "a"]}, {"a"}, False),
    ({"missing_some": [1, {"var": "names"}]}, {"names"}, True),
    ({"some": [[1], {"!!": [{"missing": ["a"]}]}]}, set(), False),
    ({"some": [{"var": "xs"}, {"var": "a"}]}, {"xs"}, False),
    ({"map": [{"var": "xs"}, {"var": "a"}]}, {"xs"}, False),
    ({"reduce": [{"var": "xs"}, {"var": "current"}, {"var": "start"}]}, {"xs", "start"}, False),
    ({"var": ["a", {"var": "b"}]}, {"a", "b"}, False),
]


@pytest.mark.parametrize(
    ("rule", "paths", "computed"), COMPUTED, ids=[str(each[0]) for each in COMPUTED]
)
def test_which_facts_a_rule_names(rule: Any, paths: set[str], computed: bool) -> None:
    found = compile_rule(rule)
    assert (found.paths, found.computed) == (paths, computed)


def test_the_fact_that_is_missing_is_the_list_where_an_item_lacks_something() -> None:
    rule = {
        "and": [
            {"<": [{"var": "order.age_days"}, 99]},
            {"some": [{"var": "lines"}, {"var": "blocked"}]},
        ]
    }
    found = evaluate(compile_rule(rule), FACTS).error
    assert found is not None
    assert (found.code, found.missing, found.message) == (
        "missing",
        "lines",
        "no value at `blocked`",
    )
    constant = evaluate(compile_rule({"some": [[1], {"var": "blocked"}]}), FACTS).error
    assert constant is not None
    assert (constant.code, constant.missing) == ("missing", "")


def test_whole_numbers_are_names_too() -> None:
    assert evaluate(compile_rule({"==": [{"missing": [1, "2"]}, [1]]}), {"2": "b"}).reads == {
        "1": None,
        "2": "b",
    }
    worked_out = {"==": [{"missing": {"merge": [1, "a"]}}, [1, "a"]]}
    assert evaluate(compile_rule(worked_out), {}).reads == {"1": None, "a": None}
    assert evaluate(compile_rule({"!": [{"missing": [1.0]}]}), {"1": 2}) == RuleResult(
        True, {"1": 2}
    )
    assert evaluate(compile_rule({"==": [{"var": 1.0}, 2]}), {"1": 2}) == RuleResult(True, {"1": 2})
    assert evaluate(compile_rule({"!": [{"missing": [""]}]}), {}) == RuleResult(True, {"": {}})
    for name in (True, 1.5, None, [["a"]], {"merge": [[1.5]]}):
        assert evaluate(compile_rule({"!!": [{"missing": [name, "a"]}]}), {}).result is None


def test_names_that_are_worked_out_are_looked_for() -> None:
    facts = {"names": ["a", "b"], "a": 1, "one": "c"}
    wanted = {"==": [{"missing": [{"var": "names"}]}, ["b"]]}
    assert evaluate(compile_rule(wanted), facts) == RuleResult(
        True, {"names": ["a", "b"], "a": 1, "b": None}
    )
    several = {"==": [{"missing": [{"var": "one"}, "a"]}, ["c"]]}
    assert evaluate(compile_rule(several), facts) == RuleResult(
        True, {"one": "c", "c": None, "a": 1}
    )
    some = {"==": [{"missing_some": [1, {"var": "names"}]}, []]}
    assert evaluate(compile_rule(some), facts).error is None
    for names in ([["a", "b"], "z"], [{"var": "names"}, "z"]):
        found = evaluate(compile_rule({"!!": [{"missing": names}]}), facts).error
        assert found is not None
        assert found.code == "type"


def test_reads_hold_each_fact_that_was_looked_at() -> None:
    rule = {
        "and": [
            {">": [{"var": "args.amount"}, 200]},
            {"!": {"missing": ["user.role", "user.name"]}},
        ]
    }
    found = evaluate(compile_rule(rule), FACTS)
    assert found.reads == {"args.amount": 240, "user.role": "finance", "user.name": None}


def test_reads_stop_where_the_rule_was_decided() -> None:
    rule = {"and": [{">": [{"var": "args.amount"}, 900]}, {"==": [{"var": "user.role"}, "x"]}]}
    found = evaluate(compile_rule(rule), FACTS)
    assert found == RuleResult(False, {"args.amount": 240})


def test_paths_are_those_of_facts_and_not_of_items() -> None:
    rule = {"some": [{"var": "lines"}, {">": [{"var": "qty"}, {"var": ["limit", 1]}]}]}
    compiled = compile_rule(rule)
    assert compiled.paths == {"lines"}
    assert not compiled.computed
    assert compile_rule({"!!": {"missing": {"merge": [["a"], ["b"]]}}}).computed


def test_operations_are_bounded() -> None:
    rule = {"all": [{"var": "items"}, {"all": [[1] * 50, {">": [{"var": ""}, 0]}]}]}
    assert evaluate(compile_rule(rule), {"items": [0] * 50}).error is None
    found = evaluate(compile_rule(rule), {"items": [0] * 500}).error
    assert found is not None
    assert found.code == "limit"


def test_depth_is_bounded() -> None:
    def nested(depth: int) -> Any:
        return {"!": [nested(depth - 1)]} if depth else True

    assert not compile_rule(nested(64)).faults
    assert "nested more than 64 deep" in compile_rule(nested(70)).faults[0].message
    assert not compile_rule(nested(24), depth=24).faults
    assert compile_rule(nested(25), depth=24).faults


def test_text_is_bounded() -> None:
    grow = {"reduce": [[0] * 20, {"cat": [{"var": "accumulator"}, {"var": "accumulator"}]}, "x"]}
    found = evaluate(compile_rule({"==": [grow, ""]}), {}).error
    assert found is not None
    assert found.code == "limit"
