"""The tone of an English text, by a list of rated words."""

from __future__ import annotations

from functools import cache
from typing import Any

from cogcli.official.sentences import (
    Sentence,
    reads_english,
    require_size,
    split_sentences,
    split_words,
)
from cogcli.sdk import Refused

_MAX_TEXT = 100_000
_MAX_WORDS = 200
_LEAST_LETTERS = 40
# What the authors of the list call neither positive nor negative.
_NEUTRAL = 0.05
_SHARES = {"positive": "pos", "negative": "neg", "neutral": "neu"}


def rate_sentiment(text: str, dimensions: list[str] | None = None) -> dict[str, object]:
    """Return whether a text is positive, negative, neutral or mixed, with a score from -1 to 1.

    The score is the mean over the sentences with rated words. Supported `dimensions` are positive,
    negative, neutral (shares of the words) and intensity; others are null, since they need a model.
    `rationale` quotes the rated words. Raise Refused for a text that is not English.
    """
    require_size(text, _MAX_TEXT)
    _require_english(text)
    scores_of = _load_analyzer().polarity_scores
    sentences = split_sentences(text)
    scored_sentences = [
        (sentence, scores_of(" ".join(sentence.text.split()[:_MAX_WORDS])))
        for sentence in sentences
    ]
    if not scored_sentences:
        raise Refused("no-evidence", "the text has no sentence to judge by")
    rated_scores = [scores for _, scores in scored_sentences if scores["compound"]]
    score = (
        round(sum(scores["compound"] for scores in rated_scores) / len(rated_scores), 4)
        if rated_scores
        else 0.0
    )
    known_dimensions = {
        name: _mean_of([s[key] for _, s in scored_sentences]) for name, key in _SHARES.items()
    }
    known_dimensions["intensity"] = _mean_of([abs(scores["compound"]) for scores in rated_scores])
    return {
        "sentiment": _sentiment_label(score, [scores["compound"] for scores in rated_scores]),
        "score": score,
        "dimensions": {
            name: known_dimensions.get(str(name)) for name in dimensions or known_dimensions
        },
        "rationale": _rationale_text(sentences, len(rated_scores)),
        "method": "rules:vader",
    }


def _require_english(text: str) -> None:
    letters = [char for char in text[:10_000] if char.isalpha()]
    if not letters:
        raise Refused("no-evidence", "the text has no words to judge by")
    language = "another script" if sum(map(str.isascii, letters)) < 0.9 * len(letters) else ""
    if not language and (len(letters) >= _LEAST_LETTERS or not reads_english(text[:10_000])):
        from cogcli.official.text import detect_language

        found = detect_language(text)
        language = str(found["language"]) if found["reliable"] and found["language"] != "en" else ""
    if language:
        raise Refused(
            "unsupported",
            f"the rated words are English; this text is in {language}",
            "translate it first, or let a model judge it",
        )


@cache
def _load_analyzer() -> Any:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    return SentimentIntensityAnalyzer()


def _mean_of(values: list[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0


def _sentiment_label(score: float, scores: list[float]) -> str:
    if (
        any(value >= 0.3 for value in scores)
        and any(value <= -0.3 for value in scores)
        and abs(score) < 0.3
    ):
        return "mixed"
    return "positive" if score >= _NEUTRAL else "negative" if score <= -_NEUTRAL else "neutral"


def _rationale_text(sentences: list[Sentence], rated_count: int) -> str:
    score_by_word: dict[str, float] = _load_analyzer().lexicon
    rated_words = dict.fromkeys(
        word
        for sentence in sentences
        for word in split_words(sentence.text)
        if word in score_by_word
    )
    if not rated_words:
        return "No word of the text is among the rated words."
    ranked = sorted(rated_words, key=lambda word: -abs(score_by_word[word]))[:8]
    words = ", ".join(f"{word} ({score_by_word[word]:+g})" for word in ranked)
    return f"{rated_count} of {len(sentences)} sentences use rated words: {words}."
