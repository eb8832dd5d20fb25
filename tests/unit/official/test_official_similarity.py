"""Vectors and comparisons."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogcli.official.similarity import compare_texts, embed_by_hash
from cogcli.sdk import Refused

TEXT = "The harbour opens at six. Ships wait in the bay."


def likeness(a: str, b: str) -> float:
    one: Any = embed_by_hash(a)["embedding"]
    other: Any = embed_by_hash(b)["embedding"]
    return sum(x * y for x, y in zip(one, other, strict=True))


@given(st.text(alphabet="abc d", min_size=1).filter(str.strip))
def test_a_vector_has_256_numbers_and_length_1(text: str) -> None:
    vector: Any = embed_by_hash(text)["embedding"]
    assert len(vector) == 256
    assert math.isclose(sum(value * value for value in vector), 1, abs_tol=0.01)


def test_texts_with_the_same_words_are_near() -> None:
    near = likeness("The harbour opens at six.", "Harbours open at six.")
    assert near > 0.4 > likeness("The harbour opens at six.", "Invoices are paid by card.") + 0.2


@pytest.mark.slow
def test_a_vector_is_the_same_whatever_seed_hashes_have() -> None:
    code = f"from cogcli.official.similarity import embed_by_hash; print(embed_by_hash({TEXT!r}))"
    made = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(made) == 1


@pytest.mark.parametrize("text", ["", " \n", "12 34", "?!"])
def test_a_text_without_words_has_no_vector(text: str) -> None:
    with pytest.raises(Refused) as refused:
        embed_by_hash(text)
    assert refused.value.reason == "no-evidence"


@given(st.text(max_size=300), st.text(max_size=300))
def test_similarity_lies_between_0_and_1_and_is_1_for_equal_texts(a: str, b: str) -> None:
    similarity: Any = compare_texts(a, b)["similarity"]
    assert 0 <= similarity <= 1
    assert compare_texts(a, a)["similarity"] == 1
    assert compare_texts(a, a)["differences"] == []


def test_differences_quote_both_texts() -> None:
    found: Any = compare_texts(TEXT, TEXT.replace("six", "seven") + " Tugs help.")["differences"]
    assert found == [
        {"kind": "changed", "a": "The harbour opens at six.", "b": "The harbour opens at seven."},
        {"kind": "added", "a": "", "b": "Tugs help."},
    ]


def test_what_only_a_model_can_compare_is_named_or_refused() -> None:
    assert "Not measured without a model: tone." in str(
        compare_texts("a", "b", ["wording", "tone"])["summary"]
    )
    with pytest.raises(Refused) as refused:
        compare_texts("a", "b", ["tone"])
    assert refused.value.reason == "needs-model"


def test_more_sentences_than_can_be_compared_are_refused() -> None:
    with pytest.raises(Refused) as refused:
        compare_texts("Hi you. " * 3_000, "b")
    assert refused.value.reason == "too-large"


def test_texts_that_differ_in_a_number_are_not_equal() -> None:
    found: Any = compare_texts("The fee is 40 euros.", "The fee is 45 euros.")
    assert found["similarity"] < 0.9
    assert compare_texts("The fee is 40 euros.", "The fee is  40 euros")["similarity"] == 1
