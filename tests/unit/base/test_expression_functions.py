"""The functions of expressions: what each gives, agreement with Python written plainly, what is refused and how far."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal, localcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.growth import assert_linear

from cogcli.base.errors import ExpressionError
from cogcli.base.expression_functions import FUNCTIONS, MAX_TEXT
from cogcli.base.expressions import ExpressionFault, evaluate, read_expression
from cogcli.base.jsonvalue import to_plain_json
from cogcli.base.refs import MISSING, Reference

ARGUMENTS = ("a", "b", "c")


def given_values(*values: Any) -> Callable[[Reference], Any]:
    """A look-up of `inputs.a`, `inputs.b`, `inputs.c`."""
    known = dict(zip(ARGUMENTS, values, strict=False))
    return lambda reference: known.get(reference.segments[0], MISSING)


def value_of(text: str, *values: Any) -> Any:
    return evaluate(read_expression(text), given_values(*values))


def error_of(text: str, *values: Any) -> ExpressionError:
    with pytest.raises(ExpressionError) as caught:
        value_of(text, *values)
    return caught.value


def fault_of(text: str) -> ExpressionFault:
    with pytest.raises(ExpressionFault) as caught:
        read_expression(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("len('')", 0), ("len('añ😀')", 3), ("len([1, [2, 3]])", 2), ("lower('ÄB')", "äb"),
        ("upper('straße')", "STRASSE"),
        ("contains([1, 'a'], 1.0)", True), ("contains([1], true)", False), ("contains('abc', 'bc')", True),
        ("contains('abc', '')", True), ("startswith('abc', 'ab')", True), ("startswith('abc', 'b')", False),
        ("join([])", ""), ("join(['a', 'b'])", "ab"), ("join(['a', 2, 2.5], ', ')", "a, 2, 2.5"),
        ("round(2.5)", 3), ("round(-2.5)", -3), ("round(0.5)", 1), ("round(-0.4)", 0), ("round(7)", 7),
        ("round(2.675, 2)", 2.68),
        ("round(1.005, 2)", 1.01), ("round(-0.04, 1)", 0.0), ("round(3, 2)", 3), ("round(1e300)", 1e300),
        ("round(2.5, 0)", 3),
        ("min([3, 1.5])", 1.5), ("max(3, 1.5, 2)", 3), ("min('b', 'a')", "a"), ("max(['b', 'a'])", "b"),
        ("min([4])", 4),
        ("any([])", False), ("all([])", True), ("any([0, '', null, [], 'x'])", True), ("all([1, 0])", False),
        ("sum([])", 0), ("sum([1, 2])", 3), ("sum([0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1])", 1.0),
        ("sorted([3, 1, 2.5])", [1, 2.5, 3]), ("sorted(['b', 'a', 'B'])", ["B", "a", "b"]), ("sorted([])", []),
        ("date('1970-01-01')", 0), ("date('1970-01-02')", 86400), ("date('1970-01-01T00:00:01Z')", 1),
        ("date('1970-01-01t01:00:00+01:00')", 0), ("date('1970-01-01 00:00')", 0),
        ("date('1969-12-31T23:59:59.5')", -0.5),
        ("date('2026-01-31') < date('2026-01-31T09:00:00Z') < date('2026-02-01')", True),
        ("date('2026-01-31T12:00:00+02:00') == date('2026-01-31T10:00:00Z')", True),
        ("max(date('2026-01-31'), date('2025-12-31')) == date('2026-01-31')", True),
        ("not (len('a') > 1) and upper('a') in ['A']", True), ("(inputs.z or 'none') == lower('NONE')", True),
    ],
)  # fmt: skip
def test_what_a_function_gives(text: str, expected: Any) -> None:
    found = value_of(text)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("len(5)", "takes text or list or object, found number"), ("len(null)", "found null"),
        ("len(inputs.z)", "leads nowhere"),
        ("upper(['a'])", "takes text, found list"), ("contains(5, 5)", "found number in number"),
        ("contains('a1', 1)", "found number in text"),
        ("startswith('a', 1)", "takes text, found number"), ("join('abc')", "takes list, found text"),
        ("join([true])", "found boolean in it"),
        ("join([['a']])", "found list in it"), ("join(['a'], 1)", "takes text, found number"),
        ("round('1')", "takes number, found text"),
        ("round(true)", "found boolean"), ("round(1.5, 16)", "takes 0 to 15 digits"),
        ("round(1.5, -1)", "takes 0 to 15 digits"),
        ("round(1.5, 1.0)", "takes 0 to 15 digits"), ("min([])", "not empty"),
        ("min(1, 'a')", "found number and text"),
        ("max([true, false])", "found boolean"), ("max(1)", "takes list, found number"),
        ("any('ab')", "takes list, found text"),
        ("all(1)", "takes list"), ("sum([1, '2'])", "found text in it"), ("sum('12')", "takes list, found text"),
        ("sorted([1, null])", "null and number"),
        ("sorted([[1]])", "found list"), ("date('31.01.2026')", "takes a date or time as 2026-01-31"),
        ("date('2026-02-30')", "takes a date"),
        ("date('2026-01-31T24:00')", "takes a date"), ("date('2026-01-31T09:00+25:00')", "takes a date"),
        ("date('2026-01-31T09:00:60')", "takes a date"),
        ("date('20260131')", "takes a date"), ("date('0000-01-01')", "takes a date"),
        ("date(5)", "takes text, found number"),
    ],
)  # fmt: skip
def test_what_a_function_does_not_take_is_an_error_that_names_the_part(
    text: str, says: str
) -> None:
    error = error_of(f"1 == 2 or {text}")
    assert error.code == ("expr.missing" if says == "leads nowhere" else "expr.type")
    assert says in error.message
    if error.code == "expr.type":
        assert "at character 11: " in error.message


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("join(inputs.a, inputs.b)", (["x"] * 1001, "y" * 1000)),
        ("join(inputs.a)", (["x" * (MAX_TEXT + 1)],)),
        ("sum(inputs.a)", ([2**53 - 1, 1],)),
        ("sum(inputs.a)", ([1e308, 1e308],)),
    ],
)
def test_what_a_value_cannot_hold_is_refused(text: str, values: tuple[Any, ...]) -> None:
    assert error_of(text, *values).code == "expr.limit"


def test_much_is_computed_in_linear_time() -> None:
    def compute(count: int) -> None:
        many = [f"{number:06d}" for number in range(count)]
        long = "ab" * (5 * count)
        for text, values in [
            ("contains(inputs.a, inputs.b)", (long + "c", "ab" * 1000 + "c")),
            (f"len(sorted(sorted(sorted(inputs.a)))) == {count}", (many,)),
            ("contains(inputs.a, 'none') or any([]) or len(join(inputs.a, ',')) > 1", (many,)),
        ]:
            assert value_of(text, *values) is True

    assert_linear(compute, 100_000)


def test_every_function_has_an_example_in_the_reference_that_holds() -> None:
    page = (Path(__file__).parents[3] / "docs/reference/execution.md").read_text(encoding="utf-8")
    section = page.partition("### Functions")[2].partition("\n## ")[0]
    rows = [row.split(" | ") for row in section.splitlines() if row.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w+)\(", row[0])}
    assert named == FUNCTIONS.keys()
    for row in rows:
        assert value_of(row[2].strip("|` ")) is True, row


# -- agreement with Python --------------------------------------------------------------------------------------------

words = st.text("aBß 0\u0130", max_size=6)
numbers = st.integers(-100, 100) | st.floats(-1e6, 1e6).map(lambda number: round(number, 4))
anything = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))


def half_away(number: Any, digits: int = 0) -> Any:
    with localcontext(prec=60):
        rounded = Decimal(repr(number)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return float(rounded) if digits else int(rounded)


AS_PYTHON: list[tuple[str, tuple[st.SearchStrategy[Any], ...], Callable[..., Any]]] = [
    ("len(inputs.a)", (words | st.lists(anything) | st.dictionaries(words, anything),), len),
    ("lower(inputs.a)", (words,), str.lower),
    ("upper(inputs.a)", (words,), str.upper),
    ("contains(inputs.a, inputs.b)", (words, words), lambda a, b: b in a),
    ("contains(inputs.a, inputs.b)", (st.lists(words), words), lambda a, b: b in a),
    ("startswith(inputs.a, inputs.b)", (words, words), str.startswith),
    ("join(inputs.a, inputs.b)", (st.lists(words), words), lambda a, b: b.join(a)),
    ("round(inputs.a)", (numbers,), half_away),
    ("round(inputs.a, 2)", (st.floats(-1e6, 1e6),), lambda a: half_away(a, 2) + 0.0),
    ("min(inputs.a)", (st.lists(numbers, min_size=1),), min),
    ("max(inputs.a, inputs.b)", (words, words), max),
    ("any(inputs.a)", (st.lists(anything),), any),
    ("all(inputs.a)", (st.lists(anything),), all),
    ("sum(inputs.a)", (st.lists(st.integers(-(10**6), 10**6)),), sum),
    ("sorted(inputs.a)", (st.lists(numbers),), sorted),
    ("sorted(inputs.a)", (st.lists(words),), sorted),
    ("date(inputs.a) < date(inputs.b)", (moments.map(str), moments.map(str)), lambda a, b: a[:19] < b[:19] or a < b),
]  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("row", AS_PYTHON, ids=lambda row: row[0])
def test_a_function_gives_what_python_gives(row: Any) -> None:
    text, strategies, oracle = row

    @examples(60)
    @given(st.tuples(*strategies))
    def agree(values: tuple[Any, ...]) -> None:
        assert value_of(text, *values) == oracle(*values)

    agree()


@examples(200)
@given(moments, st.integers(-1439, 1439))
def test_a_moment_is_the_same_in_every_zone(moment: datetime, minutes: int) -> None:
    zone = f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
    seconds = moment.replace(microsecond=0, tzinfo=UTC).timestamp()
    assert value_of("date(inputs.a)", f"{moment:%H:%M:%S}".join((f"{moment.year:04d}-{moment:%m-%d}T", zone))) == (
        seconds - minutes * 60
    )  # fmt: skip


@examples(400)
@given(st.sampled_from(sorted(FUNCTIONS)), st.lists(anything, min_size=1, max_size=3))
def test_any_argument_gives_a_json_value_or_a_typed_error(name: str, values: list[Any]) -> None:
    arguments = ", ".join(f"inputs.{word}" for word in ARGUMENTS[: len(values)])
    function = FUNCTIONS[name]
    if not function.minimum <= len(values) <= function.maximum:
        assert fault_of(f"{name}({arguments})").hint == f"write {function.usage}"
        return
    try:
        found = value_of(f"{name}({arguments})", *values)
    except ExpressionError as error:
        found = error.code
    assert found in ("expr.type", "expr.limit") or to_plain_json(found) == found


# -- what other languages write ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "character", "hint"),
    [
        ("inputs.a && inputs.b", 10, "write `and`"), ("inputs.a||inputs.b", 9, "write `or`"),
        ("!inputs.a", 1, "write `not`"),
        ("inputs.a = 'x'", 10, "write `==`"), ("inputs.a === 'x'", 10, "write `==`"),
        ("inputs.a !== 'x'", 10, "write `!=`"),
        ("inputs.a <> 'x'", 10, "write `!=`"), ("inputs.a ?? 'x'", 10, "write `or`"),
        ("inputs.a AND inputs.b", 10, "write `and`"),
        ("inputs.a ? 1 : 2", 10, "write a choice: `C and A or B`"),
        ("1 if inputs.a else 2", 1, "write a choice: `C and A or B`"),
        ("'a && b' == inputs.a and !inputs.b", 26, "write `not`"), ("inputs.a != 'x' && 1", 17, "write `and`"),
        ("${inputs.a} > 3", 1, "a path stands alone: inputs.a"),
        ("{{ inputs.a }}", 1, "a path stands alone: inputs.a"),
        ("inputs.b and $inputs.a", 14, "a path stands alone: inputs.a"),
        ("inputs.a | upper", 1, "write upper(inputs.a)"),
        ("inputs.a | default('x')", 1, "write inputs.a or 'x'"), ("inputs.a.toUpperCase()", 1, ""),
        ("inputs.a.upper()", 1, "write upper(inputs.a)"),
        ("inputs.a.startsWith('x')", 1, "write startswith(inputs.a, 'x')"),
        ("inputs.a.length() > 2", 1, "write len(inputs.a)"),
        ("size(inputs.a) > 2", 1, "did you mean `len`?"), ("Len(inputs.a)", 1, "did you mean `len`?"),
        ("lenght(inputs.a)", 1, "did you mean `len`?"),
        ("frobnicate(inputs.a)", 1, f"there are {', '.join(FUNCTIONS)}"), ("inputs.a & inputs.b", 1, "write `and`"),
        ("inputs.a + inputs.b", 1, "write sum([a, b]) for numbers, join([a, b]) for texts"),
        ("len()", 1, "write len(text, list or object)"),
        ("inputs.a =~ 'x.*'", 10, "write contains(text, part)"),
        ("inputs.a like 'x%'", 10, "write contains(text, part)"),
        ("inputs.a contains 'x'", 10, "write contains(a, b)"), ("inputs.a between 1 and 3", 10, "write `low <= x"),
        ("inputs.a eq 3", 10, "write `==`"), ("if inputs.a then 1 else 2", 1, "write a choice: `C and A or B`"),
        ("inputs.a.some(x => x > 0)", 17, "write contains(list, value), or go over the list"),
        ("inputs.a?.b == 1", 9, "write `.`, and `is null`"), ("inputs.a == `x`", 13, "text stands in ' or \""),
        ("inputs.a == “x”", 13, "text stands in ' or \""), ("inputs.a > 1;", 13, "one expression stands alone"),
        ("$.inputs.a == 1", 1, "a path stands alone: inputs.a"), ("'a like b' == inputs.a &&", 24, "write `and`"),
        ("inputs.a // 2 == 1", 1, "arithmetic belongs into a capability"),
        ("[x for x in inputs.a]", 1, "go over a list with `foreach`"),
        ("inputs.a[-1]", 1, "positions are whole numbers"),
        ("exists(inputs.a)", 1, "write inputs.a is not null"), ("is_empty(inputs.a)", 1, "write len(inputs.a) == 0"),
        ("inputs.a is defined", 13, "write `is not null`"), ("inputs.a is 3", 13, "write `==`"),
        ("endswith(inputs.a, 'x')", 1, "ends are not compared"), ("inputs.a.endsWith('x')", 1, "ends are not compared"),
        ("coalesce(inputs.a, 'x')", 1, "write inputs.a or 'x'"), ("now() > inputs.a", 1, "give the time as an input"),
    ],
)  # fmt: skip
def test_a_sign_of_another_language_is_answered_with_what_to_write(
    text: str, character: int, hint: str
) -> None:
    fault = fault_of(text)
    assert fault.column == character
    assert fault.hint.startswith(hint)
