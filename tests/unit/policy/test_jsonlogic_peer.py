"""Our evaluator beside datalogic-py, another one of the same operators, over random rules and facts.

What we refuse to answer it may answer: it coerces, and takes null for a value. All that we answer must be its answer.
"""

from __future__ import annotations

import json
from typing import Any

import datalogic_py
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from cogcli.policy.jsonlogic import compile_rule, evaluate

pytestmark = pytest.mark.sampled(6)

ENGINE = datalogic_py.Engine()
NUMBERS = st.one_of(st.integers(-1000, 1000), st.sampled_from([0.5, -2.25, 100.75]))
TEXTS = st.text("abc é", max_size=4)
FACTS = st.fixed_dictionaries(
    {
        "n": NUMBERS,
        "m": NUMBERS,
        "t": TEXTS,
        "b": st.booleans(),
        "xs": st.lists(NUMBERS, max_size=4),
        "o": st.fixed_dictionaries({"n": NUMBERS, "ts": st.lists(TEXTS, max_size=3)}),
    }
)
VALUES = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS, st.lists(NUMBERS, max_size=2))
PLACES = ("n", "m", "t", "b", "xs", "o", "o.n", "o.ts")


def _call(name: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.tuples(*arguments).map(lambda given: {name: list(given)})


def _var(*names: str) -> st.SearchStrategy[Any]:
    return st.sampled_from([{"var": name} for name in names])


def _numbers(depth: int, *, item: bool = False) -> st.SearchStrategy[Any]:
    leaf = NUMBERS | (_var("") if item else _var("n", "m", "o.n"))
    if not depth:
        return leaf
    part = _numbers(depth - 1, item=item)
    several = st.lists(part, min_size=1, max_size=3)
    choices = [leaf, _call("-", part, part), _call("/", part, part), _call("%", part, part)]
    choices += [
        several.map(lambda parts, name=name: {name: parts}) for name in ("+", "*", "min", "max")
    ]
    if not item:
        total = {"+": [{"var": "accumulator"}, {"var": "current"}]}
        choices += [_call("reduce", _lists(depth - 1), st.just(total), NUMBERS)]
        choices += [_call("if", _booleans(depth - 1), part, part)]
    return st.one_of(choices)


def _lists(depth: int) -> st.SearchStrategy[Any]:
    leaf = st.lists(NUMBERS, max_size=3) | _var("xs")
    if not depth:
        return leaf
    part = _lists(depth - 1)
    return st.one_of(
        leaf,
        _call("map", part, _numbers(1, item=True)),
        _call("filter", part, _comparisons(1, item=True)),
        st.lists(part, min_size=1, max_size=3).map(lambda parts: {"merge": parts}),
    )


def _texts(depth: int) -> st.SearchStrategy[Any]:
    leaf = TEXTS | _var("t")
    if not depth:
        return leaf
    part = _texts(depth - 1)
    place = st.integers(-3, 3)
    return st.one_of(
        leaf,
        _call("cat", part, part),
        _call("substr", part, place),
        _call("substr", part, place, place),
    )


def _comparisons(depth: int, *, item: bool = False) -> st.SearchStrategy[Any]:
    part = _numbers(depth, item=item)
    names = st.sampled_from(["<", "<=", ">", ">=", "==", "!=", "===", "!=="])
    pairs = st.tuples(names, part, part).map(lambda given: {given[0]: list(given[1:])})
    return pairs | _call("<", part, part, part) | _call("<=", part, part, part)


def _booleans(depth: int) -> st.SearchStrategy[Any]:
    leaf = st.booleans() | _var("b")
    if not depth:
        return leaf
    part = _booleans(depth - 1)
    several = st.lists(part, min_size=1, max_size=3)
    loops = [
        _call(name, _lists(depth - 1), _comparisons(1, item=True))
        for name in ("all", "some", "none")
    ]
    absent = st.lists(st.sampled_from([*PLACES, "no", "o.no"]), min_size=1, max_size=3)
    return st.one_of(
        leaf,
        _comparisons(depth - 1),
        _call("==", _texts(depth - 1), _texts(depth - 1)),
        _call("in", _texts(depth - 1), _texts(depth - 1)),
        _call("in", NUMBERS, _lists(depth - 1)),
        _call("in", TEXTS, _var("o.ts")),
        _call("if", part, part, part),
        _call("!", part),
        several.map(lambda parts: {"and": parts}),
        several.map(lambda parts: {"or": parts}),
        absent.map(lambda names: {"!!": [{"missing": names}]}),
        st.tuples(st.integers(0, 2), absent).map(
            lambda given: {"!": [{"missing_some": list(given)}]}
        ),
        *loops,
    )


def _set(facts: Any, place: str, value: Any) -> Any:
    *path, last = place.split(".")
    target = facts = json.loads(json.dumps(facts))
    for name in path:
        target = target[name]
    if value == "absent":
        target.pop(last)
    else:
        target[last] = value
    return facts


def _theirs(rule: Any, facts: Any) -> Any:
    return json.loads(ENGINE.eval_str(json.dumps(rule), json.dumps(_without_nulls(facts))))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return value


@examples(400, deadline=None)
@given(rule=_booleans(3), facts=FACTS)
def test_both_agree_on_rules_and_facts_of_the_right_types(rule: Any, facts: Any) -> None:
    ours = evaluate(compile_rule(rule), facts)
    if ours.error is not None:
        assert ours.error.code == "range", ours
        return
    assert _theirs(rule, facts) is ours.result


@examples(400, deadline=None)
@given(
    rule=_booleans(3), facts=FACTS, place=st.sampled_from(PLACES), value=VALUES | st.just("absent")
)
def test_a_fact_that_is_gone_or_of_another_type_gives_an_error_or_the_answer_of_both(
    rule: Any, facts: Any, place: str, value: Any
) -> None:
    broken = _set(facts, place, value)
    ours = evaluate(compile_rule(rule), broken)
    if ours.error is None:
        assert _theirs(rule, broken) is ours.result
