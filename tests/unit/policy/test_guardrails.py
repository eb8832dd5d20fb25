"""Guardrails (docs/reference/pack.md#guardrails)."""

from __future__ import annotations

import pytest

from cogcli.declarations.pack_spec import Guardrail
from cogcli.policy.guardrails import (
    find_guardrails_for_text,
    find_guardrails_for_value,
    has_match,
    has_phrase,
)

CARD = Guardrail(id="card", pattern="[0-9]{13,19}")
LEGAL = Guardrail(id="legal", phrases=("lawyer", "class action"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("my card is 4111111111111111", ["card"]),
        ("411111111111", []),
        ("I call my LAWYER now", ["legal"]),
        ("lawyers", []),
        ("a class\n action against you", ["legal"]),
        ("Anwalt", []),
        ("4111111111111111, says my lawyer.", ["card", "legal"]),
    ],
)
def test_text_meets_patterns_and_phrases_as_whole_words(text: str, found: list[str]) -> None:
    assert [each.id for each in find_guardrails_for_text([CARD, LEGAL], text)] == found


@pytest.mark.parametrize(
    "text",
    [
        "my \uff2c\uff21\uff37\uff39\uff25\uff32",  # full width
        "my la\u200bwy\u00ader",  # zero-width space, soft hyphen
        "my law\ufe0fyer\u2060",  # variation selector, word joiner
        "my l\U000e0061awyer",  # a tag
        "my lawyer\u200bcalls",  # found as written: the words join without the space
        "a CLASS\u00a0\u3164action",  # no-break space, filler
    ],
)
def test_a_disguised_phrase_is_found(text: str) -> None:
    assert [each.id for each in find_guardrails_for_text([CARD, LEGAL], text)] == ["legal"]
    disguised = Guardrail(id="legal", phrases=("l\u200bawyer", "Class \uff21ction"))
    assert find_guardrails_for_text([disguised], text.replace("\u200bcalls", ""))


def test_digits_of_any_width_are_digits_and_a_pattern_also_sees_the_text_as_written() -> None:
    card = "".join(chr(0xFF10 + int(digit)) for digit in "4111111111111111")
    assert find_guardrails_for_text([CARD], card)
    assert find_guardrails_for_text([CARD], "\u200d".join("4111111111111111"))
    assert find_guardrails_for_text([Guardrail(id="wide", pattern="\uff14")], card)
    assert find_guardrails_for_text(
        [Guardrail(id="capitals", pattern="[A-Z]{4}")], "\uff21BC\u200bD"
    )
    assert find_guardrails_for_text([Guardrail(id="small", pattern="secret")], "SECRET")


def test_an_earlier_edition_judges_the_text_as_written_alone() -> None:
    assert not find_guardrails_for_text([LEGAL], "la\u200bwyer", 1)
    assert find_guardrails_for_text([LEGAL], "LAWYER", 1)


def test_a_pattern_that_cannot_be_run_is_met_by_every_text() -> None:
    assert find_guardrails_for_text([Guardrail(id="bad", pattern="(?=a)")], "anything")
    assert find_guardrails_for_text([Guardrail(id="broken", pattern="(")], "anything")


def test_a_text_too_long_for_a_pattern_meets_it() -> None:
    long = "a " * 1_500_000
    assert find_guardrails_for_text([CARD], long)
    assert not find_guardrails_for_text([CARD], "a " * 1_000)
    assert not has_match("[0-9]{13,19}", long + "4111111111111111")


def test_a_pattern_that_cannot_be_run_finds_nothing() -> None:
    assert [has_match(pattern, "anything") for pattern in ("(?=a)", "(", "any", "^thing")] == [
        False,
        False,
        True,
        False,
    ]


def test_phrases_are_compared_without_case() -> None:
    assert has_phrase("my straße", "STRASSE") is False
    assert has_phrase("my strasse", "STRAßE")
    assert not has_phrase("my_lawyer", "lawyer")
    assert has_phrase("a.c", "a.c")
    assert not has_phrase("abc", "a.c")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"note": {"pay": ["to", 4111111111111111]}}, ["card"]),
        ({"4111111111111111": None}, ["card"]),
        ({"a": "my lawyer", "b": "4111111111111111"}, ["card", "legal"]),
        ({"a": [True, None, 12.5, "no"]}, []),
    ],
)
def test_any_text_number_or_key_of_a_value_triggers(value: object, found: list[str]) -> None:
    assert [each.id for each in find_guardrails_for_value((CARD, LEGAL), value)] == found
