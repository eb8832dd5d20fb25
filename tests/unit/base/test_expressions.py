"""The expression language: its table, agreement with Python where both mean the same, refusal of everything else."""

from __future__ import annotations

import ast
import math
import warnings
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.examples import examples

from cogcli.base.errors import ExpressionError
from cogcli.base.expressions import (
    MAX_DEPTH,
    MAX_LENGTH,
    ExpressionFault,
    evaluate,
    read_expression,
)
from cogcli.base.refs import MISSING, Reference

STATE: dict[str, Any] = {
    "inputs": {"n": 3, "f": 2.5, "s": "hello", "empty": "", "zero": 0, "no": None, "yes": True, "l": [1, [2], "x"],
               "o": {"a": 1, "k-1": 2, "a.b": 3, "deep": [{"b": 9}]}},
    "vars": {"x": [10, 20]},
    "frame": {"goal": "win"},
}  # fmt: skip
QUICK = examples(300)


def look(reference: Reference) -> Any:
    value: Any = STATE.get(reference.namespace, {})
    for segment in reference.segments:
        if isinstance(value, dict) and segment in value:
            value = value[segment]
        elif isinstance(value, list) and segment.isdecimal() and int(segment) < len(value):
            value = value[int(segment)]
        else:
            return MISSING
    return value


def value_of(text: str, **options: Any) -> Any:
    return evaluate(read_expression(text), look, **options)


def code_of(text: str) -> str:
    with pytest.raises(ExpressionError) as caught:
        value_of(text)
    return caught.value.code


def fault_of(text: str, loop_names: frozenset[str] = frozenset()) -> ExpressionFault:
    with pytest.raises(ExpressionFault) as caught:
        read_expression(text, loop_names)
    assert "\n" not in str(caught.value)
    return caught.value


# -- the table --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 == 1.0", True), ("true == 1", False), ('"10" == 10', False), ("[1, true] == [1, 1]", False),
        ("null == none", True), ("None is null", True), ("True", True), ("False", False), ("0 == false", False),
        ("not 0", True), ("not []", True), ('"" or 5', 5), ("1 and 2", 2), ("0 and 2", 0), ("0 or null", None),
        ("1 or inputs.nope", 1), ("0 and inputs.nope", 0), ("1 < 2 < 3", True), ("3 > 2 > 2", False),
        ('"a" < "b"', True), ("1 < 1.5", True), ("-1.5 < -1", True), ("- 3 == -3", True), ("1e3 == 1000", True),
        ("inputs.n", 3), ("inputs.l[0]", 1), ("inputs.l.1.0", 2), ("inputs.l[1].0", 2), ("inputs.l[1][0]", 2),
        ('inputs["n"]', 3), ("inputs['o']['k-1']", 2), ('inputs.o["a.b"]', 3), ("inputs.o.deep.0.b", 9),
        ("inputs . n", 3), ("(inputs.n)", 3), ("vars.x.1 == 20", True), ("frame.goal in ['win', 'draw']", True),
        ("2 in [1, 2.0]", True), ("true in [1]", False), ("1 not in []", True), ('"a" in inputs.o', True),
        ('"z" not in inputs.o', True), ('"ell" in inputs.s', True), ("[2] in inputs.l", True),
        ("inputs.no is null", True), ("inputs.n is not null", True), ("inputs.nope is null", True),
        ("inputs.nope.deeper is not null", False), ("inputs.nope == null", True), ("null != inputs.nope", False),
        ("inputs.nope or inputs.n", 3), ("inputs.nope or inputs.empty or 7", 7), ("inputs.zero or .5", 0.5),
        ("not .5", False), (".5 in [.5]", True), ("inputs.nope or not .0", True), ("'a.0' == \"a.0\"", True),
        ("'''it's .0'''", "it's .0"), ('"""a "b .0" c"""', 'a "b .0" c'), ("'a' 'b'", "ab"), ("0x10", 16),
        ("  inputs.n == 3\n", True), ("(inputs.n ==\n 3)", True), ("9007199254740991", 9007199254740991),
    ],
)  # fmt: skip
def test_what_an_expression_gives(text: str, expected: Any) -> None:
    found = value_of(text)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("inputs.nope", "expr.missing"), ("inputs.nope == 1", "expr.missing"), ("0 or inputs.nope", "expr.missing"),
        ("not inputs.nope", "expr.missing"), ("inputs.nope and 1", "expr.missing"),
        ("[inputs.nope]", "expr.missing"),
        ("inputs.l[9]", "expr.missing"), ("inputs.n.x", "expr.missing"), ("inputs.no.x == 1", "expr.missing"),
        ("frame.__class__", "expr.missing"), ("inputs.__dict__", "expr.missing"), ("vars.x.append", "expr.missing"),
        ("1 < 'a'", "expr.type"), ("null < 1", "expr.type"), ("true < 2", "expr.type"), ("[1] < [2]", "expr.type"),
        ("1 in 5", "expr.type"), ("1 in 'a1'", "expr.type"), ("1 in inputs.o", "expr.type"),
        ("1 in null", "expr.type"),
    ],
)  # fmt: skip
def test_what_cannot_be_evaluated_says_so(text: str, code: str) -> None:
    assert code_of(text) == code


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "inputs", "true.x", "inputs.l[-1]", "inputs.l[0:1]", "inputs.l[inputs.n]", "inputs.l[True]",
        "inputs.l[1.0]", "inputs.l[b'x']", "1 + 1", "inputs.n - 1", "-inputs.n", "--1", "+1", "~1", "2 ** 99",
        "f(1)", "len(inputs.l, 1)", "len(text=inputs.s)", "len(*inputs.l)", "inputs.s.upper()", "().__class__",
        "''.__class__", "[].__class__", "lambda: 1",
        "(x := 1)", "[x for x in inputs.l]", "{x for x in inputs.l}", "{}", "{1: 2}", "(1, 2)", "()", "1, 2",
        "1 if inputs.n else 2", "f'{inputs.n}'", "f''", "b'x'", "1j", "...", "await x", "yield 1", "*inputs.l",
        "inputs.n is 3", "null is inputs.n", "inputs.n is not true", "inputs.n = 3", "inputs.n == 3; 1",
        "import os",
        "1e999", "-1e999", "9007199254740992", "9" * 500, "'\\ud800'", "inputs['\\ud800'", "inputs.n ==", "(1",
        "1)",
        "\x00", "a\ud800", "inputs.n\n== 3", "{{ inputs.n }}", "${inputs.n}", "inputs.class", "is", "not", "0777",
        "@x", "inputs.n <> 3", "inputs.n === 3", "inputs.n && 1", "!inputs.n", "`1`", "print", "__import__('os')",
    ],
)  # fmt: skip
def test_everything_else_is_refused(text: str) -> None:
    fault_of(text)


@pytest.mark.parametrize("count", [60, 400, 900, 5000])
@pytest.mark.parametrize(
    "make",
    [
        lambda n: "(" * n + "1" + ")" * n, lambda n: "[" * n + "]" * n, lambda n: "not " * n + "1",
        lambda n: "-" * n + "1", lambda n: "inputs" + ".a" * n, lambda n: "inputs" + "[0]" * n,
        lambda n: "+".join(["1"] * n), lambda n: "1" + "==1" * n + " +1", lambda n: "f(" * n + ")" * n,
        lambda n: "lambda:" * n + "1", lambda n: "1 if " * n, lambda n: "{1:" * n + "1" + "}" * n, lambda n: "(" * n,
    ],
)  # fmt: skip
def test_deep_and_long_texts_are_refused_and_nothing_breaks(make: Any, count: int) -> None:
    if make(count)[:1] == "(" and make(count)[-1] == ")" and count == 60:
        assert evaluate(read_expression(make(count)), look) == 1, (
            "parentheses by themselves nest nothing"
        )
    else:
        fault_of(make(count))


def test_the_limits_themselves_are_allowed() -> None:
    assert value_of("not " * (MAX_DEPTH - 1) + "1") is False
    fault_of("not " * MAX_DEPTH + "1")
    assert value_of("1" + " " * (MAX_LENGTH - 5) + "== 1") is True
    fault_of("1" + " " * (MAX_LENGTH - 4) + "== 1")
    assert code_of("inputs" + ".a" * 16) == "expr.missing"
    fault_of("inputs" + ".a" * 17)


def test_references_are_told_in_order_without_repeats() -> None:
    expression = read_expression("inputs.b == 1 or vars.a and inputs.b or frame.goal is null")
    assert [reference.text for reference in expression.references] == [
        "inputs.b",
        "vars.a",
        "frame.goal",
    ]
    assert read_expression("inputs.a.0").path == Reference("inputs.a.0", "inputs", ("a", "0"))
    assert read_expression("not inputs.a").path is None


def test_loop_names_are_paths_of_their_own() -> None:
    names = frozenset(("item", "i"))
    expression = read_expression("item.kind == 'x' and i > 0 or item is null", names)
    assert [reference.text for reference in expression.references] == ["item.kind", "i", "item"]
    assert fault_of("item.kind == 'x'").name == "item.kind"
    assert fault_of("item.kind(1)", names).name == ""


def test_a_path_alone_may_be_null_where_the_caller_says_so() -> None:
    assert value_of("inputs.nope.x", missing_is_null=True) is None
    with pytest.raises(ExpressionError):
        value_of("inputs.nope == 1", missing_is_null=True)


# -- agreement with Python --------------------------------------------------------------------------------------------


class Namespace(dict[str, Any]):
    """A dict whose members are attributes, too: what `inputs.o.a` means to Python."""

    __getattr__ = dict.__getitem__


def pythonic(value: Any) -> Any:
    if isinstance(value, dict):
        return Namespace({key: pythonic(member) for key, member in value.items()})
    return [pythonic(item) for item in value] if isinstance(value, list) else value


PYTHON = {"null": None, **{name: pythonic(members) for name, members in STATE.items()}}
numbers = st.one_of(
    st.integers(-50, 50), st.floats(-50, 50, allow_nan=False).map(lambda n: round(n, 2))
).map(repr)
texts = st.text("ab'\" .0\\", max_size=5).map(repr)
number_paths = st.sampled_from(
    ["inputs.n", "inputs.f", "inputs.zero", "vars.x[0]", "inputs.o.deep[0].b"]
)
text_paths = st.sampled_from(["inputs.s", "inputs.empty", "frame.goal", "inputs['l'][2]"])
ordered = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
number_terms, text_terms = numbers | number_paths, texts | text_paths


@st.composite
def comparisons(draw: st.DrawFn) -> str:
    """Comparisons that mean the same in both: numbers with numbers, texts with texts, elements in lists."""
    terms = draw(st.sampled_from([number_terms, text_terms]))
    kind = draw(st.sampled_from(["chain", "list", "part", "null"]))
    if kind == "chain":
        parts = [draw(terms)]
        for _ in range(draw(st.integers(1, 3))):
            parts += [draw(ordered), draw(terms)]
        return " ".join(parts)
    if kind == "list":
        items = ", ".join(draw(st.lists(terms, max_size=3)))
        return f"{draw(terms)} {draw(st.sampled_from(['in', 'not in']))} [{items}]"
    if kind == "part":
        return f"{draw(text_terms)} {draw(st.sampled_from(['in', 'not in']))} {draw(text_terms)}"
    return f"{draw(terms)} {draw(st.sampled_from(['is', 'is not', '==', '!=']))} None"


def combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join),
        inner.map("not {}".format),
        inner.map("({})".format),
    )


expressions = st.recursive(
    st.one_of(
        comparisons(),
        number_terms,
        text_terms,
        st.lists(number_terms, max_size=2).map(lambda items: f"[{', '.join(items)}]"),
    ),
    combined,
    max_leaves=8,
)


@pytest.mark.slow
@QUICK
@given(expressions)
@example("inputs.zero or .5")
@example("not (inputs.n > 2 and inputs.empty) or 'x'")
def test_python_gives_the_same(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of `is` beside a literal
        expected = eval(text, {"__builtins__": {}}, PYTHON)
    found = value_of(text)
    assert (found, type(found)) == (expected, type(expected))


# -- refusing ----------------------------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    ["inputs", ".", "n", "[", "]", "(", ")", "0", "1.5", "'a'", '"', "'", "==", "is", "not", "in", "and", "or",
    "null",
     "lambda", "len", "join", "sorted", "date", ":", ":=", "=", "{", "}", ",", "*", "-", "+", "f'", "b'",
     "__class__", "for", "x", "if", "else", "await",
     "\\", "#", "\n", "\r", "\t", "\x0c", "é", "\u2028", "\ud800", "\x00", "@", "`", "9" * 30, "1e999", "0x", ".0",
     "..."]
)  # fmt: skip
ALLOWED = (
    ast.Constant, ast.List, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Name, ast.Attribute, ast.Subscript, ast.Load,
    ast.Not, ast.USub, ast.And, ast.Or, ast.cmpop, ast.Expression, ast.Call,
)  # fmt: skip


@pytest.mark.sampled(6)
@pytest.mark.slow
@examples(1000)
@given(
    st.one_of(
        st.text(max_size=40),
        st.lists(WORDS, max_size=12).map("".join),
        st.lists(WORDS, max_size=12).map(" ".join),
    )
)
def test_any_text_is_read_or_refused_and_never_breaks(text: str) -> None:
    found: Any = outcome_of(text)
    if isinstance(found, ExpressionFault):
        assert 1 <= found.column <= len(text) + 1
    elif isinstance(found, ExpressionError):
        assert found.code in ("expr.missing", "expr.type", "expr.limit")
    else:
        assert not isinstance(found, float) or math.isfinite(found)


def outcome_of(text: str) -> Any:
    """The value of a text, or the typed error of reading or evaluating it."""
    try:
        return evaluate(read_expression(text), look)
    except (ExpressionFault, ExpressionError) as error:
        return error


@QUICK
@given(st.lists(WORDS, max_size=10).map(" ".join))
def test_only_nodes_of_the_table_are_ever_read(text: str) -> None:
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError):
        return
    if not all(isinstance(node, ALLOWED) for node in ast.walk(tree)):
        fault_of(text)
