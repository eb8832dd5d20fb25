"""Sentiment by rated words."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.official.sentiment import rate_sentiment
from cogcli.sdk import Refused


@pytest.mark.parametrize(
    ("sentiment", "text"),
    [
        ("positive", "I love the new quay. The staff is friendly!"),
        ("negative", "The crane is awful and the noise is terrible."),
        ("negative", "The service was not good."),
        ("neutral", "The quay is 120 metres long."),
        ("mixed", "I love the quay. The crane is terrible."),
    ],
)
def test_rated_words_give_the_sentiment(sentiment: str, text: str) -> None:
    assert rate_sentiment(text)["sentiment"] == sentiment


def test_the_rationale_quotes_words_of_the_text() -> None:
    assert (
        rate_sentiment("An awful, awful crane.")["rationale"]
        == "1 of 1 sentences use rated words: awful (-2)."
    )


def test_a_dimension_that_nobody_measured_is_null() -> None:
    found: Any = rate_sentiment("I love it.", ["positive", "anger"])["dimensions"]
    assert found["positive"] > 0
    assert found["anger"] is None


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("unsupported", "Der Hafenmeister verschiebt die Ankunft auf den nächsten Morgen."),
        ("unsupported", "Судно опаздывает на два часа."),
        ("no-evidence", ""),
        ("no-evidence", "12 34"),
        ("too-large", "good " * 30_000),
    ],
)
def test_what_the_list_cannot_judge_is_refused(reason: str, text: str) -> None:
    with pytest.raises(Refused) as refused:
        rate_sentiment(text)
    assert refused.value.reason == reason


def test_a_short_text_that_does_not_read_as_english_is_looked_at_too() -> None:
    with pytest.raises(Refused, match="in de") as refused:
        rate_sentiment("Das ist ein schrecklicher Tag und ich hasse es.")
    assert refused.value.reason == "unsupported"
    assert (
        rate_sentiment("Quay service: excellent, fast, friendly crew.")["sentiment"] == "positive"
    )
