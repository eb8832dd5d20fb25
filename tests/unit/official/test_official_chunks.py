"""Pieces that join to the text again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogcli.official.chunks import cut_text
from cogcli.sdk import Refused

TEXTS = st.text(alphabet=st.sampled_from("ab .\n\r!é\u0301東。"), max_size=300)


@given(TEXTS, st.integers(1, 60), st.integers(0, 59))
def test_the_pieces_rebuild_the_text_and_hold_their_size(
    text: str, size: int, overlap: int
) -> None:
    overlap = min(overlap, size - 1)
    answer: Any = cut_text(text, size, overlap)
    chunks = answer["chunks"]
    assert "".join([*chunks[:1], *(chunk[overlap:] for chunk in chunks[1:])]) == text
    assert all(0 < len(chunk) <= size for chunk in chunks)
    assert [text[span["start"] : span["end"]] for span in answer["spans"]] == chunks


@pytest.mark.parametrize(
    ("text", "size", "first"),
    [
        ("One two. Three.\n\nFour five six seven", 24, "One two. Three.\n\n"),
        ("One two. Three four five", 14, "One two. "),
        ("One two three", 9, "One two "),
        ("abcdefgh", 5, "abcde"),
        ("今日は晴れです。船は遅れています。", 12, "今日は晴れです。"),
    ],
)
def test_a_cut_is_at_a_paragraph_else_a_sentence_else_a_word(
    text: str, size: int, first: str
) -> None:
    assert cut_text(text, size)["chunks"][0] == first  # type: ignore[index]


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (-1, 0), (1.5, 0), (10, 10), (10, -1)])
def test_sizes_that_cannot_be_are_refused(size: float, overlap: float) -> None:
    with pytest.raises(Refused) as refused:
        cut_text("text", size, overlap)
    assert refused.value.reason == "bad-data"


def test_more_pieces_than_anybody_needs_are_refused() -> None:
    with pytest.raises(Refused) as refused:
        cut_text("a" * 1_000_000, 10, 9)
    assert refused.value.reason == "too-large"
    assert len(cut_text("word " * 1_600_000)["chunks"]) >= 8_000  # type: ignore[arg-type]
