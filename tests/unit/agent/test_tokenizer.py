"""Estimating tokens (docs/reference/pack.md#tokens)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogcli.agent.context.tokenizer import ESTIMATE, estimate
from cogcli.base.canonical import digest

pytestmark = pytest.mark.sampled(2)


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
        ("a", 1),
        ("abcdefgh", 1),
        ("abcdefghi", 2),
        ("abcdefghijklm", 2),
        ("abcdefghijklmn", 3),
        ("camelCase", 2),
        ("aB", 2),
        ("ABc", 2),
        ("ABC", 1),
        ("XXXX", 1),
        ("aBCd", 3),
        ("one two three", 3),
        ("one  two", 3),
        ("one\ttwo", 2),
        ("one\n\n\ntwo", 3),
        ("one \n two", 3),
        ("123", 1),
        ("1234", 2),
        ("1234567", 3),
        ("!", 1),
        ("!!!!!", 3),
        ("!!!!!!!", 4),
        ("é", 2),
        ("éé", 2),
        ("ééé", 3),
        ("日", 1),
        ("日本", 2),
        ("日本語日本語", 6),
        ("あア", 2),
        ("한국어", 3),
        ("🙂", 2),
        ("🙂🙂🙂", 4),
        ("—", 2),
        ("— —", 3),
        ("_", 1),
        ("a_b", 3),
        ("日a", 2),
        ("x1", 2),
    ],
)
def test_known_counts(text: str, tokens: int) -> None:
    assert estimate(text) == tokens


@given(st.text(), st.text())
def test_every_text_has_a_count_and_more_text_has_no_less(first: str, second: str) -> None:
    assert 0 <= estimate(first) <= estimate(f"{first}\n{second}") + 1


def test_the_tokenizer_says_which_it_is_and_that_it_is_no_models() -> None:
    assert (ESTIMATE.id, ESTIMATE.exact, ESTIMATE.hash) == (
        "cog-est/1",
        False,
        digest(b"cog-est/1"),
    )
    assert ESTIMATE.count is estimate
