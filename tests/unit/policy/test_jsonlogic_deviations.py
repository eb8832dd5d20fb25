"""Where our rules differ from JsonLogic elsewhere: each point of docs/reference/pack.md#rules, with what another
evaluator of the public operators says of the same rule and facts. None of ours is an answer."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import datalogic_py
import pytest

from cogcli.policy.evaluation import MAX_OPERATIONS
from cogcli.policy.jsonlogic import MAX_DEPTH, compile_rule, evaluate
from cogcli.policy.operators import OPERATORS

PAGE = (Path(__file__).parents[3] / "docs/reference/pack.md").read_text(encoding="utf-8")
RULES = PAGE[PAGE.index('<a id="rules"></a>') : PAGE.index('<a id="guardrails"></a>')]
THEIRS = datalogic_py.Engine()
NO_ANSWER = "no answer"

DEVIATIONS: list[tuple[int, Any, Any, str, Any]] = [
    # the point, the rule, the facts, our error, the answer of another evaluator
    (1, {"<": [{"var": "order.amount"}, 100]}, {}, "missing", True),
    (1, {"<": [{"var": "order.amount"}, 100]}, {"order": {"amount": None}}, "missing", True),
    (1, {"!": [{"var": "order.blocked"}]}, {"order": {}}, "missing", True),
    (1, {"==": [{"var": "a"}, {"var": "b"}]}, {}, "missing", True),
    (1, {"none": [{"var": "flags"}, True]}, {}, "missing", True),
    (1, {"in": ["x", {"var": "list"}]}, {}, "missing", False),
    (1, {"==": [{"reduce": [{"var": "xs"}, {"var": "current"}, 0]}, 0]}, {}, "missing", True),
    (1, {"!": [{"and": [{"var": "a"}, True]}]}, {"a": None}, "missing", True),
    (2, {"<": ["50", 100]}, {}, "type", True),
    (2, {"<": [True, 2]}, {}, "type", True),
    (2, {"==": ["1", 1]}, {}, "type", True),
    (2, {"==": [0, False]}, {}, "type", True),
    (2, {"===": [1, "1"]}, {}, "type", False),
    (2, {"!=": [1, "1"]}, {}, "type", False),
    (2, {"!==": [1, "1"]}, {}, "type", True),
    (2, {"==": [None, 0]}, {}, "type", True),
    (2, {">=": ["3", 1]}, {}, "type", True),
    (2, {"<=": [1, "3"]}, {}, "type", True),
    (2, {">": [True, 0]}, {}, "type", True),
    (2, {"==": [{"min": ["1", 2]}, 1]}, {}, "type", NO_ANSWER),
    (2, {"==": [{"max": ["1", 2]}, 2]}, {}, "type", NO_ANSWER),
    (2, {"==": [{"map": [{"var": "x"}, 1]}, []]}, {"x": "a"}, "type", NO_ANSWER),
    (2, {"!": [{"filter": [{"var": "x"}, True]}]}, {"x": "a"}, "type", NO_ANSWER),
    (2, {"!!": [{"missing": [{"+": [1, 0.5]}]}]}, {}, "type", False),
    (2, {"!": [{"missing_some": ["1", ["a"]]}]}, {"a": 1}, "type", True),
    (2, {"==": [{"substr": [5, 0]}, ""]}, {}, "type", False),
    (2, {"in": [1, ["1"]]}, {}, "type", False),
    (2, {"==": [{"+": ["1", 2]}, 3]}, {}, "type", True),
    (2, {"==": [{"*": ["2", 2]}, 4]}, {}, "type", True),
    (2, {"==": [{"-": ["3"]}, -3]}, {}, "type", True),
    (2, {"==": [{"-": [5, None]}, 5]}, {}, "type", True),
    (2, {"==": [{"/": ["6", 2]}, 3]}, {}, "type", True),
    (2, {"==": [{"%": ["7", 2]}, 1]}, {}, "type", True),
    (2, {"==": [{"cat": ["a", 1]}, "a1"]}, {}, "type", True),
    (2, {"==": [{"merge": [{"var": "x"}, 2]}, [1, 2]]}, {"x": 1}, "type", True),
    (3, {"and": [1, True]}, {}, "type", True),
    (3, {"or": ["", True]}, {}, "type", True),
    (3, {"!": [""]}, {}, "type", True),
    (3, {"!!": [{"var": "xs"}]}, {"xs": [1]}, "type", True),
    (3, {"if": ["yes", True, False]}, {}, "type", True),
    (3, {"?:": [1, True, False]}, {}, "type", True),
    (3, {"filter": [[1], True]}, {}, "type", [1]),
    (3, {"all": [[1], {"var": ""}]}, {}, "type", True),
    (3, {"some": [[1], {"var": ""}]}, {}, "type", True),
    (3, {"none": [[0], {"var": ""}]}, {}, "type", True),
    (3, {"+": [1, 2]}, {}, "type", 3),
    (3, "yes", {}, "type", "yes"),
    (3, {"if": [False, True]}, {}, "type", None),
    (4, {"var": {"cat": ["a", "b"]}}, {"ab": True}, "invalid", True),
    (4, {"and": []}, {}, "invalid", None),
    (4, {"or": []}, {}, "invalid", None),
    (4, {"if": []}, {}, "invalid", None),
    (4, {"!": []}, {}, "invalid", True),
    (4, {"val": "x"}, {"x": True}, "invalid", True),
    (4, {"log": True}, {}, "invalid", NO_ANSWER),
    (
        5,
        {"all": [{"var": "xs"}, {"!": [{"!": [{"var": ""}]}]}]},
        {"xs": [True] * 5000},
        "limit",
        True,
    ),
    (5, {"==": [{"*": [2**40, 2**40]}, 2.0**80]}, {}, "range", True),
    (5, {"==": [{"/": [1, 0]}, 1]}, {}, "range", NO_ANSWER),
]


def _theirs(rule: Any, facts: Any) -> Any:
    try:
        return json.loads(THEIRS.eval_str(json.dumps(rule), json.dumps(facts)))
    except Exception:
        return NO_ANSWER


@pytest.mark.parametrize(
    ("point", "rule", "facts", "code", "theirs"),
    DEVIATIONS,
    ids=[str(case[1]) for case in DEVIATIONS],
)
def test_where_another_evaluator_answers_ours_does_not(
    point: int, rule: Any, facts: Any, code: str, theirs: Any
) -> None:
    found = evaluate(compile_rule(rule), facts).error
    assert found is not None
    assert found.code == code
    assert _theirs(rule, facts) == theirs


def test_each_point_of_the_reference_has_cases() -> None:
    points = {int(number) for number in re.findall(r"^(\d)\. ", RULES, re.MULTILINE)}
    assert points == {point for point, *_ in DEVIATIONS} == {1, 2, 3, 4, 5}


def test_the_operators_are_those_of_the_reference_and_each_has_cases() -> None:
    from test_jsonlogic import ERRORS, TRUE

    listed = re.search(r"Operators: `([^`]+)`", RULES)
    assert listed
    assert set(listed.group(1).split()) == set(OPERATORS)
    for cases in (TRUE, [rule for rule, *_ in ERRORS] + [rule for _, rule, *_ in DEVIATIONS]):
        assert set(OPERATORS) <= {name for case in cases for name in _operators(case)}


def _operators(rule: Any) -> set[str]:
    if isinstance(rule, list):
        return {name for item in rule for name in _operators(item)}
    if isinstance(rule, dict):
        return {*rule, *(name for item in rule.values() for name in _operators(item))}
    return set()


# -- limits, exactly --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "facts", "spent"),
    [
        ({"all": [{"var": "xs"}, {"!": [False]}]}, lambda n: {"xs": [0] * n}, 2),
        ({"!": [{"missing": [{"var": "xs"}]}]}, lambda n: {"xs": ["xs"] * n}, 3),
        ({"in": [1, {"var": "xs"}]}, lambda n: {"xs": [1] * n}, 2),
        ({"!!": [{"merge": [{"var": "xs"}]}]}, lambda n: {"xs": [1] * n}, 3),
        (
            {"==": [{"reduce": [{"var": "xs"}, {"var": "accumulator"}, 0]}, 0]},
            lambda n: {"xs": [1] * n},
            3,
        ),
    ],
)
def test_as_many_operations_as_are_allowed_and_one_more(rule: Any, facts: Any, spent: int) -> None:
    compiled = compile_rule(rule)
    assert MAX_OPERATIONS == 10_000
    assert evaluate(compiled, facts(MAX_OPERATIONS - spent)).error is None
    found = evaluate(compiled, facts(MAX_OPERATIONS - spent + 1)).error
    assert found is not None
    assert (found.code, found.message) == ("limit", "more than 10000 operations")


@pytest.mark.parametrize("listed", [True, False])
def test_as_deep_as_is_allowed_and_one_deeper(listed: bool) -> None:
    def nested(depth: int) -> Any:
        inner = nested(depth - 1) if depth > 1 else True
        return {"!": [inner] if listed else inner}

    assert MAX_DEPTH == 64
    assert not compile_rule(nested(64)).faults
    assert compile_rule(nested(65)).faults[0].message == "nested more than 64 deep"
    lists: Any = []
    for _ in range(63):
        lists = [lists]
    assert not compile_rule(lists).faults
    assert compile_rule([lists]).faults


def test_as_long_as_is_allowed_and_one_longer() -> None:
    def rule(length: int) -> Any:
        return {"==": ["x" * (length - len('{"==":["",""]}')), ""]}

    assert not compile_rule(rule(16 * 1024)).faults
    found = compile_rule(rule(16 * 1024 + 1))
    assert [(fault.path, fault.message) for fault in found.faults] == [
        ((), "longer than 16384 bytes")
    ]
    assert (found.paths, found.computed) == (frozenset(), False)
    twice = {"cat": [{"var": "a"}, {"var": "a"}]}
    assert evaluate(compile_rule({"!=": [twice, ""]}), {"a": "x" * 8192}).error is None
    found_text = evaluate(
        compile_rule({"!=": [{"cat": [twice, "x"]}, ""]}), {"a": "x" * 8192}
    ).error
    assert found_text is not None
    assert (found_text.code, found_text.message) == ("limit", "text longer than 16384 characters")


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ({"==": [{"+": [2**53 - 2, 1]}, 2**53 - 1]}, True),
        ({"==": [{"+": [2**53 - 1, 1]}, 2**53]}, None),
        ({"==": [{"-": [1 - 2**53, 0]}, 1 - 2**53]}, True),
        ({"==": [{"-": [1 - 2**53, 1]}, 2**53]}, None),
        ({"==": [{"max": [2**53, 1]}, 1]}, None),
        ({"==": [{"*": [1e308, 10]}, 1]}, None),
    ],
)
def test_as_large_a_number_as_is_allowed_and_one_larger(rule: Any, holds: bool | None) -> None:
    found = evaluate(compile_rule(rule), {})
    assert (found.result if found.error is None else found.error.code) == (holds or "range")
