"""Conditions of rules as a solver reads them, held against the evaluator (docs/adr/0038-proofs.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from solved import solve

from cogcli.base.jsonvalue import kind_of
from cogcli.declarations.value_types import Json
from cogcli.policy.jsonlogic import compile_rule, evaluate
from cogcli.policy.run_policy import with_value
from cogcli.policy.smt_script import EXACT, all_of, any_of, equals, negated, number_term
from cogcli.policy.symbolic_rules import Readings, RuleReader, RuleReading
from cogcli.policy.symbolic_values import FactTable, SymbolicValue, Unknown, constant_value

pytest.importorskip("z3")

Facts = Mapping[str, Any]
A, B, T = {"var": "order.a"}, {"var": "order.b"}, {"var": "order.t"}
L = {"var": "order.l"}
ROLE = {"var": "agent.role"}
TURN = {"var": "run.turn"}
ABOVE_3 = {">": [A, 3]}
MANY = 9007199254740991
"""The largest whole number that a rule may compute."""


def _is_value(found: Unknown, value: object, facts: FactTable) -> str:
    """Return the condition that a fact has a value; None is an absent one."""
    kind = "absent" if value is None else kind_of(value)
    content = {
        "number": lambda: equals(found.number, number_term(value)),  # type: ignore[arg-type]
        "text": lambda: equals(found.text, facts.text(str(value))),
        "boolean": lambda: found.boolean if value else negated(found.boolean),
        "list": lambda: found.boolean if value else negated(found.boolean),
    }
    return all_of(found.is_kind(kind), content[kind]() if kind in content else "true")


class _Reading:
    """A condition as a solver reads it."""

    def __init__(self, condition: Any, fixed: Mapping[str, str] | None = None) -> None:
        self.shared = Readings()
        self.fixed = fixed or {}
        self.rule = compile_rule(condition)
        self.reader = RuleReader(self.shared, self._values(), frozenset(), "old")
        self.found = self.reader.read_rule(self.rule, condition)

    def _values(self) -> dict[str, SymbolicValue]:
        text = self.shared.facts.text
        return {path: constant_value("text", text(each)) for path, each in self.fixed.items()}

    def expected(self, facts: Facts) -> str:
        """Return the term that the reading is what the evaluator says."""
        data: Json = {}
        for path, value in {**self.fixed, **facts}.items():
            data = with_value(data, path, value)
        data = with_value(data, "request.params", data.get("inputs", {}))
        said = evaluate(self.rule, data)
        fails, matches = said.result is None, said.result is True
        found = self.found
        return all_of(
            found.fails if fails else negated(found.fails),
            found.matches if matches else negated(found.matches),
        )

    def pinned(self, facts: Facts) -> str:
        """Return the term that the facts are these, and all others that the rule reads are absent."""
        table = self.shared.facts
        paths = {path for path in self.found.paths if path}
        return all_of(*[_is_value(table.fact(path), facts.get(path), table) for path in paths])


def _solve(shared: Readings, terms: list[str]) -> list[bool | None]:
    return solve(shared.script, terms, EXACT)


def _number(*values: object) -> list[Facts]:
    return [{"order.a": value} for value in values]


def _two(*pairs: tuple[object, object]) -> list[Facts]:
    return [{"order.a": a, "order.b": b} for a, b in pairs]


def _text(*values: object) -> list[Facts]:
    return [{"order.t": value} for value in values]


ANY = [None, 0, 1, 2.5, -1, 3, 4, "", "x", "y", True, False, [], ["x"], {"x": 1}]
PAIRS = [(1, 1), (1, 2), (2, 1), (-2, 2), (0, 0), ("x", "x"), ("x", "y"), ("", ""), (True, False)]
MIXED = [(True, True), (False, False), (1, True), (1, "1"), ("x", None), (None, None), (None, 1)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("condition", "given"),
    [
        (True, _number(1)),
        (False, _number(1)),
        ("x", _number(1)),
        (3, _number(1)),
        (None, _number(1)),
        ([], _number(1)),
        (A, _number(*ANY)),
        ({"nothing": 1}, _number(1)),
        *[({name: [A, 2.5]}, _number(*ANY)) for name in ("<", "<=", ">", ">=")],
        *[({name: [1, A, 3]}, _number(None, 0, 1, 2, 3, 4, "x")) for name in ("<", "<=")],
        *[({name: [A, B]}, _two(*PAIRS, *MIXED)) for name in ("<", ">", "==", "===", "!=", "!==")],
        ({"<": ["a", 1]}, _number(1)),
        ({"<": [A, "a"]}, _number(1)),
        ({"==": [A, "x"]}, _number(*ANY)),
        ({"==": [A, True]}, _number(*ANY)),
        ({"==": [A, False]}, _number(*ANY)),
        ({"==": [A, 0]}, _number(*ANY)),
        ({"!=": [A, -1]}, _number(*ANY)),
        ({"==": [A, None]}, _number(*ANY)),
        ({"==": [1, "x"]}, _number(1)),
        ({"==": [None, None]}, _number(1)),
        ({"==": [{"if": [ABOVE_3, None]}, None]}, _number(4, 3)),
        ({"!=": [{"if": [ABOVE_3, 1, None]}, None]}, _number(4, 3)),
        ({"!": [A]}, _number(*ANY)),
        ({"!!": [A]}, _number(*ANY)),
        ({"!": A}, _number(*ANY)),
        ({"!": [[A]]}, _number(1, None)),
        ({"!!": [[A]]}, _number(1, None)),
        ({"!!": [[]]}, _number(1)),
        ({"and": [A, B]}, _two(*PAIRS, *MIXED)),
        ({"or": [A, B]}, _two(*PAIRS, *MIXED)),
        ({"and": [A]}, _number(*ANY)),
        ({"or": [A, ABOVE_3, True]}, _number(*ANY)),
        ({"and": [{"!=": [A, 0]}, {"<": [1, {"/": [10, A]}]}]}, _number(0, 4, 10, None)),
        ({"==": [{"and": [{">": [A, 1]}, "x"]}, "x"]}, _number(0, 2)),
        ({"==": [{"or": [{">": [A, 1]}, "x"]}, "x"]}, _number(0, 2)),
        ({"if": [ABOVE_3, True, False]}, _number(*ANY)),
        ({"if": [ABOVE_3, True]}, _number(3, 4)),
        ({"if": [ABOVE_3, False, {">": [A, 1]}, True, {"<": [A, 0]}]}, _number(4, 2, 0, -1, "x")),
        ({"if": [ABOVE_3, False, {">": [A, 1]}, True]}, _number(4, 2, 0, None)),
        ({"?:": [ABOVE_3, False, B]}, _two((4, True), (1, True), (1, False), (1, None), (4, None))),
        ({"==": [{"if": [ABOVE_3, 1, "x"]}, 1]}, _number(4, 3, None)),
        ({"<": [{"if": [ABOVE_3, A, 0]}, 5]}, _number(4, 3, 9)),
        ({"var": ["order.a", True]}, _number(*ANY)),
        ({"==": [{"var": ["order.a", "x"]}, "x"]}, _number(*ANY)),
        ({">": [{"var": ["order.a", 5]}, 3]}, _number(*ANY)),
        ({"==": [{"var": ["order.a", B]}, 1]}, _two((1, None), (None, 1), (None, None), (2, 1))),
        *[({"==": [{"var": place}, 1]}, [{"1": 1}, {"1": 2}, {"1.0": 1}, {}]) for place in (1, "1")],
        ({"missing": ["order.a"]}, _number(*ANY)),
        ({"!": {"missing": ["order.a"]}}, _number(*ANY)),
        ({"!!": {"missing": ["order.a", "order.b"]}}, _two((1, 1), (1, None), (None, 1))),
        ({"!!": {"missing": [["order.a", "order.b"]]}}, _two((1, 1), (1, None), (None, None))),
        ({"!!": {"missing": "order.a"}}, _number(1, None)),
        ({"!!": {"missing_some": [1, ["order.a", "order.b"]]}}, _two((1, 1), (1, None), (None, None))),
        ({"!!": {"missing_some": [2, ["order.a", "order.b"]]}}, _two((1, 1), (1, None), (None, None))),
        ({"!!": {"missing_some": [0, ["order.a"]]}}, _number(1, None)),
        ({"!!": {"missing_some": [-1, ["order.a"]]}}, _number(1, None)),
        ({"!!": {"missing_some": [1, []]}}, _number(1)),
        ({"in": [A, [1, 2.5]]}, _number(*ANY)),
        ({"in": [A, ["x", "y"]]}, _number(*ANY)),
        ({"in": [A, []]}, _number(*ANY)),
        ({"in": [A, [True]]}, _number(*ANY)),
        ({"in": [A, [1, "x"]]}, _number(*ANY)),
        ({"in": [A, [B, 1]]}, _two((1, 1), (1, 2), (2, 2), (2, 3), (1, None), (None, 1))),
        ({"<": [5, {"+": [A, B]}]}, _two((2, 3), (3, 3), (1, None), ("x", 1), (MANY, 1))),
        ({"<": [5, {"+": [A]}]}, _number(5, 6, "x", None)),
        ({"<": [5, {"+": [A, 1, 2]}]}, _number(2, 3)),
        ({"<": [5, {"-": [A, B]}]}, _two((8, 3), (9, 3), (1, None), (-MANY, 3))),
        ({"<": [5, {"-": [A]}]}, _number(-5, -6, "x", None)),
        ({"==": [{"-": [A, 1]}, 1]}, _number(2, 0, -2)),
        ({"<": [5, {"*": [A, B]}]}, _two((2, 3), (1, 5), (2, "x"), (MANY, 2))),
        ({"==": [{"*": [A, 4, 0]}, 0]}, _number(2, MANY)),
        ({"<": [5, {"/": [A, 2]}]}, _number(10, 11, "x", None)),
        ({"<": [5, {"/": [12, A]}]}, _number(2, 3, 0, "x")),
        ({"<": [1, {"/": [10, 5]}]}, _number(1)),
        ({"<": [1, {"/": [10, 0]}]}, _number(1)),
        ({"<": [1, {"/": ["a", A]}]}, _number(1)),
        ({"<": [1, {"/": [A, "a"]}]}, _number(1)),
        ({"+": ["a"]}, _number(1)),
        ({"<": [1, {"+": ["a", A]}]}, _number(1)),
        ({"<": [5, {"min": [A, B]}]}, _two((6, 7), (7, 6), (6, 5), (5, 6), (6, "x"))),
        ({"<": [5, {"max": [A, B]}]}, _two((6, 4), (4, 6), (5, 5), (6, "x"))),
        ({"<": [5, {"max": [A]}]}, _number(5, 6)),
        ({"==": [ROLE, "staff"]}, _number(1)),
        ({"==": [ROLE, "agent"]}, _number(1)),
        ({"!!": {"missing": ["agent.role"]}}, _number(1)),
        ({"==": [{"var": "request.params.x"}, 1]}, [{"inputs.x": 1}, {"inputs.x": 2}, {}]),
        ({"<": [1, {"%": [5, 3]}]}, _number(1)),
        ({"<": [1, {"%": [5, 0]}]}, _number(1)),
        ({"!!": {"merge": [[], []]}}, _number(1)),
        ({"!!": {"merge": [["a"], 1]}}, _number(1)),
        ({"in": ["b", {"merge": [["a", "b"]]}]}, _number(1)),
        ({"in": ["b", "abc"]}, _number(1)),
        ({"==": [{"cat": ["a", "b"]}, "ab"]}, _number(1)),
        ({"==": [{"reduce": [[1, 2], {"var": "accumulator"}, 7]}, 7]}, _number(1)),
    ],
)  # fmt: skip
def test_a_reading_says_what_the_evaluator_says(condition: Any, given: list[Facts]) -> None:
    reading = _Reading(condition, {"agent.role": "agent"})
    wrong = [all_of(reading.pinned(each), negated(reading.expected(each))) for each in given]
    right = [all_of(reading.pinned(each), reading.expected(each)) for each in given]
    assert _solve(reading.shared, [any_of(*wrong), *right]) == [False, *[True for _ in given]]


OPEN_LISTS = [{"order.l": each} for each in ([], ["x"], ["x", "y"], [1], None, "x")]


@pytest.mark.parametrize(
    ("condition", "given", "operators"),
    [
        *[
            ({name: [L, {"==": [{"var": ""}, "x"]}]}, OPEN_LISTS, {name})
            for name in ("all", "some", "none")
        ],
        ({"!!": {"filter": [L, {"==": [{"var": ""}, "x"]}]}}, OPEN_LISTS, {"filter"}),
        ({"!!": {"map": [L, {"var": ""}]}}, OPEN_LISTS, {"map"}),
        ({"!!": {"merge": [L, L]}}, OPEN_LISTS, {"merge"}),
        ({"in": ["x", L]}, OPEN_LISTS, {"in"}),
        ({"in": ["x", T]}, _text("x", "y", None, 1), {"in"}),
        ({"==": [{"cat": ["x", T]}, "xy"]}, _text("y", "x", None), {"cat"}),
        ({"==": [{"substr": [T, 0, 1]}, "x"]}, _text("xy", "yx", None), {"substr"}),
        ({"<": [1, {"%": [A, 3]}]}, _number(5, 4, "x", None), {"%"}),
        ({"==": [{"reduce": [L, {"var": "current"}, None]}, "x"]}, OPEN_LISTS[:3], {"reduce"}),
        ({"==": [{"reduce": [L, {"var": "current"}, None]}, None]}, OPEN_LISTS[:2], {"reduce"}),
        ({"!!": {"reduce": [L, {"var": "current"}, True]}}, [{"order.l": []}], {"reduce"}),
        ({"!!": {"missing": [""]}}, _number(1, None), {"missing"}),
        ({"!!": {"missing": ["order.a", ""]}}, _number(1, None), {"missing"}),
        ({"==": [{"var": 1.0}, 1]}, [{"1": 1}, {"1": 2}], {"var"}),
        ({"==": [L, ["x"]]}, OPEN_LISTS, {"=="}),
        ({"!=": [{"var": "order"}, {"var": "item"}]}, [{"order.x": 1, "item.x": 1}], {"=="}),
        ({"in": [L, [["x"]]]}, OPEN_LISTS, {"=="}),
        ({"!!": {"missing": [{"cat": ["order.", "a"]}]}}, _number(1, None), {"missing"}),
    ],
)  # fmt: skip
def test_what_is_not_understood_may_be_what_the_evaluator_says(
    condition: Any, given: list[Facts], operators: set[str]
) -> None:
    reading = _Reading(condition)
    assert operators <= reading.reader.inexact == reading.found.inexact
    facts = [each for each in given if "order.x" not in each]
    right = [all_of(reading.pinned(each), reading.expected(each)) for each in facts]
    assert _solve(reading.shared, right) == [True] * len(right)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        *[({name: [L, True]}, bool) for name in ("all", "some", "none")],
        ({"in": ["x", L]}, bool),
        ({"cat": [T, "x"]}, str),
        ({"substr": [T, 1]}, str),
        *[({name: [L, True]}, list) for name in ("map", "filter")],
        ({"merge": [L, L]}, list),
        ({"missing": [{"cat": [T]}]}, list),
        ({"missing_some": [{"%": [A, 2]}, ["order.b"]]}, list),
        ({"%": [A, 2]}, None),
        ({"reduce": [L, True, 1]}, None),
    ],
)
def test_a_result_that_is_open_has_the_kind_of_its_operator(source: Any, kind: Any) -> None:
    others = {bool: True, str: "y", int: 3, list: ["y"]}
    for each, value in others.items():
        reading = _Reading({"==": [source, value]})
        may = _solve(reading.shared, [reading.found.matches, reading.found.fails])
        assert may == [kind in (each, None), True]


def _read(shared: Readings, condition: Any, side: str = "old", own: str = "") -> RuleReading:
    fixed = {own: constant_value("text", shared.facts.text(side))} if own else {}
    reader = RuleReader(shared, fixed, frozenset(fixed), side)
    return reader.read_rule(compile_rule(condition), condition)


IS_X = {"==": [{"var": ""}, "x"]}


@pytest.mark.parametrize(
    ("one", "other", "own", "alike"),
    [
        (ABOVE_3, {"<": [3, A]}, "", True),
        (ABOVE_3, {">=": [A, 3]}, "", False),
        ({"some": [L, IS_X]}, {"!!": {"some": [L, IS_X]}}, "", True),
        ({"some": [L, IS_X]}, {"all": [L, IS_X]}, "", False),
        ({"==": [L, ["x"]]}, {"!": {"!=": [L, ["x"]]}}, "", False),  # other expressions
        ({"in": ["x", T]}, {"in": ["x", T]}, "", True),
        ({"in": ["x", T]}, {"in": ["x", T]}, "order.t", False),
        ({"in": ["x", T]}, {"in": ["x", T]}, "order.a", True),
        ({"==": [T, "old"]}, {"==": [T, "old"]}, "order.t", False),
        ({"!=": [{"var": ""}, 1]}, {"!=": [{"var": ""}, 1]}, "", False),
        ({"!!": {"missing": [{"cat": ["a", T]}]}}, {"!!": {"missing": [{"cat": ["a", T]}]}}, "", False),
        ({">": [{"*": [A, 1.1]}, 3]}, {"<": [3, {"*": [A, 1.1]}]}, "", True),
        ({"==": [{"var": "request.params.x"}, 1]}, {"==": [{"var": "inputs.x"}, 1]}, "", True),
        ({"!": {"missing": ["request.params.x"]}}, {"!": {"missing": ["inputs.x"]}}, "", True),
        ({"==": [{"var": "request.params2.x"}, 1]}, {"==": [{"var": "inputs2.x"}, 1]}, "", False),
    ],
)  # fmt: skip
def test_the_same_expression_has_the_same_value_under_both_packs(
    one: Any, other: Any, own: str, alike: bool
) -> None:
    shared = Readings()
    first, second = _read(shared, one, "old", own), _read(shared, other, "new", own)
    apart = any_of(
        all_of(first.matches, negated(second.matches)),
        all_of(negated(first.matches), second.matches),
    )
    assert solve(shared.script, [apart]) == [not alike]


def test_the_paths_of_open_results_are_those_that_no_call_fixes() -> None:
    shared = Readings()
    named = {"in": ["x", {"cat": [{"var": ""}, T, {"var": "request.params.x"}]}]}
    found = _read(shared, {"and": [named, {"in": ["x", ROLE]}]}, own="agent.role")
    assert (found.paths, found.inexact) == ({"order.t", "inputs.x"}, {"in"})


def test_a_rule_that_was_read_is_not_read_again() -> None:
    shared = Readings()
    first = _read(shared, {"some": [L, IS_X]})
    text = shared.script.text
    again = _read(shared, {"some": [L, IS_X]}, "new")
    assert (again, shared.script.text) == (first, text)
    assert (again.paths, again.inexact) == ({"order.l"}, {"some"})


KINDS = ("absent", "number", "text", "boolean", "list", "object", "null")


@pytest.mark.parametrize(
    ("path", "kinds"),
    [
        ("user", {"object"}),
        ("order", {"absent", "number", "text", "boolean", "list", "object"}),
        ("order.a", {"absent", "number", "text", "boolean", "list", "object"}),
        ("args.amount", set(KINDS)),
        ("args.amount.x", set(KINDS) - {"null"}),
        ("inputs.amount", set(KINDS) - {"null"}),
        ("user.id", {"text"}),
        ("user.id.x", {"absent"}),
        ("user.role", {"text"}),
        ("user.consent", {"list"}),
        ("user.consent.0", set(KINDS) - {"null"}),
        ("user.tier", {"absent"}),
        ("request.message", {"text"}),
        ("request.channel", {"text"}),
        ("request.locale", {"text"}),
        ("request.params", {"object"}),
        ("request.params.x", set(KINDS) - {"null"}),
        ("agent.mood", {"absent"}),
        ("run.turn", {"number"}),
        ("run.now", {"text"}),
        ("call.step", {"text"}),
        *[(root, {"object"}) for root in ("request", "agent", "run", "call", "args", "vars")],
        *[(root, {"object"}) for root in ("inputs", "outputs", "state")],
    ],
)
def test_a_path_has_values_of_these_kinds(path: str, kinds: set[str]) -> None:
    shared = Readings()
    fact = shared.facts.fact(path)
    found = _solve(shared, [fact.is_kind(kind) for kind in KINDS])
    assert {kind for kind, may in zip(KINDS, found, strict=True) if may} == kinds


@pytest.mark.parametrize(
    ("facts", "may"),
    [
        ({"user.id": ""}, False),
        ({"user.id": "x"}, True),
        ({"user.role": ""}, True),
        ({"run.turn": 0}, False),
        ({"run.turn": 1}, True),
        ({"run.turn": 1.5}, False),
        ({"order": {}, "order.a": 1}, True),
        ({"order": [], "order.a": 1}, True),
        ({"order": 1, "order.a": 1}, False),
        ({"order": None, "order.a": 1}, False),
        ({"order.a": 1, "order": 1}, False),
        ({"order": 1, "order.a": None}, True),
        ({"order": 1, "orders.a": 1}, True),
        ({"order.a.b": 1, "order.a": "x"}, False),
    ],
)
def test_the_structure_of_data_is_known(facts: Facts, may: bool) -> None:
    shared = Readings()
    pinned = [
        _is_value(shared.facts.fact(path), each, shared.facts) for path, each in facts.items()
    ]
    assert _solve(shared, [all_of(*pinned)]) == [may]


def test_a_text_that_no_rule_mentions_is_another_one() -> None:
    shared = Readings()
    found = shared.facts.fact("order.t")
    known = any_of(*[equals(found.text, str(each)) for each in shared.facts.texts.values()])
    assert shared.facts.texts == {"": 0, "default": 1}
    assert _solve(shared, [negated(known), f"(< {found.text} 0)"]) == [True, False]
    assert [shared.facts.text(each) for each in ("x", "y", "x", "")] == ["2", "3", "2", "0"]
