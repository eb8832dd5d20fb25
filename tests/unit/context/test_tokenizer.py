"""Estimating tokens (docs/reference/pack.md#tokens)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogcli.context.tokenizer import estimate


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ('{"order_id":"ord_881","total":240}', 14),
        ("internationalisation", 4),
        ("hello world", 2),
        ("hello   world", 3),
        ("a\n\nb", 3),
        ("HTTPServerError", 3),
        ("12345", 2),
        ("日本語", 3),
        ("naïve", 2),
        ("🙂🙂", 3),
        ("------", 3),
    ],
)
def test_known_counts(text: str, tokens: int) -> None:
    assert estimate(text) == tokens


@given(st.text(), st.text())
def test_every_text_has_a_count_and_more_text_has_no_less(first: str, second: str) -> None:
    assert 0 <= estimate(first) <= estimate(f"{first}\n{second}") + 1
