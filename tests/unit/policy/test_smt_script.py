"""Terms and scripts for a solver as text (docs/adr/0038-proofs.md)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cogcli.declarations.value_types import Number
from cogcli.policy.smt_script import (
    FALSE,
    TRUE,
    SmtScript,
    all_of,
    any_of,
    either,
    equals,
    implies,
    negated,
    number_term,
)


@pytest.mark.parametrize(
    ("make", "terms", "text"),
    [
        (all_of, (), TRUE),
        (all_of, ("a",), "a"),
        (
            all_of,
            (
                "a",
                TRUE,
                "a",
            ),
            "a",
        ),
        (
            all_of,
            (
                "a",
                "b",
                "a",
            ),
            "(and a b)",
        ),
        (
            all_of,
            (
                "a",
                FALSE,
            ),
            FALSE,
        ),
        (any_of, (), FALSE),
        (
            any_of,
            (
                "a",
                FALSE,
            ),
            "a",
        ),
        (
            any_of,
            (
                "b",
                "a",
            ),
            "(or b a)",
        ),
        (
            any_of,
            (
                "a",
                TRUE,
                "b",
            ),
            TRUE,
        ),
        (negated, (TRUE,), FALSE),
        (negated, (FALSE,), TRUE),
        (negated, ("a",), "(not a)"),
        (negated, ("(not a)",), "a"),
        (negated, ("(not (and a b))",), "(and a b)"),
        (negated, ("(and a b)",), "(not (and a b))"),
        (
            implies,
            (
                "a",
                "b",
            ),
            "(or (not a) b)",
        ),
        (
            implies,
            (
                TRUE,
                "b",
            ),
            "b",
        ),
        (
            implies,
            (
                FALSE,
                "b",
            ),
            TRUE,
        ),
        (
            either,
            (
                TRUE,
                "a",
                "b",
            ),
            "a",
        ),
        (
            either,
            (
                "c",
                "a",
                "a",
            ),
            "a",
        ),
        (
            either,
            (
                FALSE,
                "a",
                "b",
            ),
            "b",
        ),
        (
            either,
            (
                "c",
                TRUE,
                "b",
            ),
            "(or c b)",
        ),
        (
            either,
            (
                "c",
                "c",
                "b",
            ),
            "(or c b)",
        ),
        (
            either,
            (
                "c",
                FALSE,
                "b",
            ),
            "(and (not c) b)",
        ),
        (
            either,
            (
                "c",
                "(not c)",
                "b",
            ),
            "(and (not c) b)",
        ),
        (
            either,
            (
                "c",
                "a",
                TRUE,
            ),
            "(or (not c) a)",
        ),
        (
            either,
            (
                "c",
                "a",
                FALSE,
            ),
            "(and c a)",
        ),
        (
            either,
            (
                "c",
                "1",
                "2",
            ),
            "(ite c 1 2)",
        ),
        (
            equals,
            (
                "a",
                "a",
            ),
            TRUE,
        ),
        (
            equals,
            (
                "a",
                "b",
            ),
            "(= a b)",
        ),
    ],
)
def test_a_term_is_simplified(make: Callable[..., str], terms: tuple[str, ...], text: str) -> None:
    assert make(*terms) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0.0"),
        (3, "3.0"),
        (-3, "(- 3.0)"),
        (2.0, "2.0"),
        (0.1, "(/ 1.0 10.0)"),
        (-2.5, "(- (/ 5.0 2.0))"),
        (1e21, "1000000000000000000000.0"),
        (9007199254740991, "9007199254740991.0"),
    ],
)
def test_a_number_is_written_as_json_has_it(number: Number, text: str) -> None:
    assert number_term(number) == text


def test_a_script_lists_its_lines_in_the_order_of_need() -> None:
    script = SmtScript()
    first = script.declare("Int")
    second = script.declare("Bool")
    script.require(f"(= {first} 0)")
    assert (first, second, script.ask(second)) == ("i1", "b2", "b3")
    assert script.text.split("\n") == [
        "(declare-const exact Bool)",
        "(declare-const i1 Int)",
        "(declare-const b2 Bool)",
        "(assert (= i1 0))",
        "(declare-const b3 Bool)",
        "(assert (or (not b3) b2))",
    ]


def test_a_long_term_is_written_once() -> None:
    script = SmtScript()
    short, long = f"(not {'a' * 34})", f"(not {'a' * 35})"
    assert (len(short), len(long)) == (40, 41)
    assert script.shorten(short) == short
    assert [script.shorten(long), script.shorten(long)] == ["c1", "c1"]
    assert script.text.split("\n")[1:] == [f"(define-fun c1 () Bool {long})"]
