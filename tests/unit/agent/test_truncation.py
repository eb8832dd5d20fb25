"""Cutting texts: at a word, saying how much is missing."""

from __future__ import annotations

import pytest

from cogcli.agent.context.tokenizer import ESTIMATE, Tokenizer
from cogcli.agent.context.truncation import cut_text, first_sentence, mark_truncated


def test_a_text_that_fits_is_whole() -> None:
    assert cut_text("two words", 9) == ("two words", False, 0)


@pytest.mark.parametrize(
    ("text", "most", "kept"),
    [
        ("one two three " * 4, 40, "one two three one [truncated: 8 tokens]"),
        ("字字字字字字字字" * 5, 30, "字字字字字字字 [truncated: 28 tokens]"),
        ("x" * 60, 30, "xxxxxxx [truncated: 11 tokens]"),
        ("x" * 60 + " more", 30, "xxxxxxx [truncated: 12 tokens]"),
        ("x" * 60, 22, "[truncated: 12 tokens]"),
        ("x" * 40, 30, "[truncated: 8 tokens]"),
        ("one " + "x" * 60, 34, "one xxxxxxx [truncated: 11 tokens]"),
        ("one two three", 5, ""),
    ],
)
def test_a_cut_ends_at_a_word_or_inside_a_long_one(text: str, most: int, kept: str) -> None:
    cut = cut_text(text, most)
    assert (cut.text, cut.truncated) == (kept, True)
    assert f"[truncated: {cut.missing} tokens]" in (cut.text or mark_truncated("", cut.missing))


def test_what_is_kept_fits_whatever_the_tokenizer_says() -> None:
    """A tokenizer need not count more for more."""
    odd = Tokenizer("odd/1", False, "", lambda text: len(text) % 40 + 20)
    cut = cut_text("a b c d e f g h " * 3, 27, odd.count, odd)
    assert odd.count(cut.text) <= 27


def test_a_cut_misses_a_token_at_least_whatever_the_tokenizer_says() -> None:
    flat = Tokenizer("flat/1", False, "", lambda text: 8)
    assert (
        cut_text("one two " * 9, 40, tokenizer=flat).text == "one two one two [truncated: 1 tokens]"
    )


def test_a_marker_stands_alone_where_nothing_is_kept() -> None:
    assert mark_truncated("", 3) == "[truncated: 3 tokens]"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [(" One. Two.", "One."), ("v1.2 is out! ok", "v1.2 is out!"), ("none ", "none")],
)
def test_the_first_sentence(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence


def test_tokens_are_those_of_the_estimate_by_default() -> None:
    text = "word " * 100
    assert cut_text(text, 20, ESTIMATE.count).text.endswith(f"[truncated: {100 - 13} tokens]")
