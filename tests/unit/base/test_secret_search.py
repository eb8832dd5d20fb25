"""Every form of a secret is found where it stands, and nothing else is touched."""

from __future__ import annotations

import builtins
import random
import string
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.secret_echoes import SECRETS, echoes, shifted_echoes

from cogcli.base import secret_search
from cogcli.base.redact import MASK, Redactor
from cogcli.base.secret_search import (
    Samples,
    SecretSearch,
    _build_automaton,
    _search_without_library,
    find_forms,
)

CASES = [(kind, form) for kind, secret in SECRETS.items() for form in echoes(secret)]
SHIFTED = [(kind, form) for kind, secret in SECRETS.items() for form in shifted_echoes(secret)]
PROSE = "The quay opens at 7; 100% of ships &amp; boats\\n pay \u20ac5.\nSee https://example.com/docs/getting-started.html"


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("kind", "form"), CASES)
def test_an_echo_is_masked_exactly_where_it_stands(kind: str, form: str) -> None:
    echo = echoes(SECRETS[kind])[form]
    masked = Redactor([SECRETS[kind]]).mask_text(f"before ({echo}) after")
    assert masked == f"before ({MASK}) after"


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("kind", "form"), SHIFTED)
def test_an_echo_inside_a_longer_encoding_is_masked(kind: str, form: str) -> None:
    text, core = shifted_echoes(SECRETS[kind])[form]
    assert core in text
    masked = Redactor([SECRETS[kind]]).mask_text(f"before {text} after")
    assert core not in masked
    assert masked.startswith("before ")
    assert masked.endswith(" after")


@pytest.mark.parametrize("change", [str.upper, str.lower, str.swapcase, str.title])
def test_a_letter_whose_capital_folds_to_another_one_is_found_in_each_case(
    change: Callable[[str], str],
) -> None:
    secret = "kapı-ışık-ŞİFRE-ıııı"
    assert (
        Redactor([secret]).mask_text(f"before ({change(secret)}) after")
        == "before ([masked]) after"
    )


@pytest.mark.parametrize("kind", SECRETS)
def test_prose_beside_secrets_is_left_alone(kind: str) -> None:
    redactor = Redactor([SECRETS[kind]])
    assert redactor.mask_text(PROSE) is PROSE


def test_secrets_that_overlap_are_masked_whole() -> None:
    redactor = Redactor(["alpha-7Gk2-beta", "beta-9Xw4-gamma"])
    assert redactor.mask_text("<alpha-7Gk2-beta-9Xw4-gamma>") == f"<{MASK}>"


def test_a_number_that_is_a_secret_is_masked_as_a_part_too() -> None:
    redactor = Redactor(['{"client_id": 47111093847562018374}'])
    assert redactor.mask({"id": 47111093847562018374, "n": 5}) == {"id": MASK, "n": 5}


def test_text_whose_case_changes_its_length_is_masked_at_the_right_place() -> None:
    redactor = Redactor(["hunter2-hunter2"])
    assert (
        redactor.mask_text("\u00df\u0130\ufb01 HUNTER2-hunter2 \u00df")
        == f"\u00df\u0130\ufb01 {MASK} \u00df"
    )


@pytest.mark.parametrize(
    "text", ["\ud800 hunter2-hunter2", "\\ud800 hunter2-hunter2", "%ff%fe hunter2-hunter2"]
)
def test_text_that_is_no_unicode_is_searched(text: str) -> None:
    assert Redactor(["hunter2-hunter2"]).mask_text(text) == text.replace("hunter2-hunter2", MASK)


@pytest.mark.sampled(6)
@examples(200)
@given(
    st.text(max_size=60), st.sampled_from(sorted(SECRETS)), st.text(max_size=60), st.integers(0, 44)
)
def test_an_echo_is_found_whatever_is_around_it(
    before: str, kind: str, after: str, number: int
) -> None:
    echo = list(echoes(SECRETS[kind]).values())[number]
    text = f"{before} {echo} {after}"
    assert echo not in Redactor([SECRETS[kind]]).mask_text(text)


@examples(200)
@given(st.text(alphabet=string.ascii_letters + "%&\\#x;un0123456789\n \u00df\u0130", max_size=200))
def test_text_without_a_secret_is_the_same_object(text: str) -> None:
    redactor = Redactor(SECRETS.values())
    assert redactor.mask_text(text) is text


@examples(100)
@given(
    st.text(alphabet="abAB", max_size=80),
    st.lists(st.text(alphabet="abAB", min_size=8, max_size=12), min_size=1, max_size=5),
)
def test_the_search_without_the_library_finds_the_same(text: str, values: list[str]) -> None:
    forms = {form for value in values for form in find_forms(value)}
    folded = text.casefold()
    assert set(_build_automaton(forms)(folded)) == set(_search_without_library(forms)(folded))


def test_the_search_without_the_library_masks_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name == "ahocorasick":
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    for secret in SECRETS.values():
        search = SecretSearch(frozenset([secret]))
        assert all(search.mask(f"({echo})") == f"({MASK})" for echo in echoes(secret).values())


LONG = "the ships lay at the quay " * 500
"""So long that the samples of the forms decide whether the automaton searches it."""


@pytest.mark.parametrize("place", range(0, 40, 3))
def test_a_secret_is_found_at_any_place_of_a_long_text(place: int) -> None:
    secret = "sk-0123456789abcdef0123456789abcdef"
    for echo in (secret, secret.upper(), secret[::-1], secret.encode().hex()):
        text = f"{LONG[:place]}{echo}{LONG}"
        assert Redactor([secret]).mask_text(text) == f"{LONG[:place]}{MASK}{LONG}"
    assert Redactor([secret]).mask_text(LONG) is LONG


@examples(100)
@given(
    st.sets(st.text(alphabet="abAB", min_size=14, max_size=50), min_size=1, max_size=5),
    st.text(alphabet="ab", max_size=200),
    st.integers(0, 200),
)
def test_samples_rule_out_no_text_with_a_form(forms: set[str], text: str, place: int) -> None:
    samples = Samples(forms)
    for form in forms:
        assert not samples.rule_out(f"{text[:place]}{form}{text[place:]}")


def test_samples_of_short_forms_rule_nothing_out() -> None:
    assert not Samples({"a form", "b" * 50}).rule_out(LONG)
    assert not Samples(set()).rule_out(LONG)


@pytest.mark.parametrize(
    "hostile",
    ["%41", "\\", "\\u0041", "&", "&amp;", "&#65;", "%25", "\n", " \n", "%e4", "q7#Xv!2"],
    ids=repr,
)
def test_work_grows_with_the_length_of_hostile_text_and_no_faster(
    hostile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched = 0
    search = SecretSearch(frozenset(SECRETS.values()))
    find = search._find

    def counted(text: str) -> Any:
        nonlocal searched
        searched += len(text)
        return find(text)

    monkeypatch.setattr(search, "_find", counted)
    text = hostile * (20_000 // len(hostile))
    search.mask(text)
    assert searched <= 2 * (2 + 2 * 4 * secret_search._MAX_DECODED) * len(text)


def test_forms_are_enumerated_once_for_all_who_know_the_same_secrets() -> None:
    values = frozenset(random.Random(7).choices(list(SECRETS.values()), k=3))
    one, other = Redactor(values), Redactor(sorted(values))
    assert one._current_search is other._current_search


def test_adding_a_secret_builds_nothing_until_a_text_is_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(values: frozenset[str]) -> SecretSearch:
        raise AssertionError(values)

    monkeypatch.setattr(secret_search, "search_for", refuse)
    redactor = Redactor(["hunter2hunter2"])
    redactor.add("another-secret-value")
    with pytest.raises(AssertionError):
        redactor.mask_text("some text")
