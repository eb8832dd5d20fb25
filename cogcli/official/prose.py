"""Summaries, keywords and readability of running text.

Nothing is random: equal scores keep the order of the text. The syllables are English.
"""

from __future__ import annotations

import re
import sys
from collections import Counter

from cogcli.official.inline_marks import readable
from cogcli.official.sentences import (
    PUNCTUATION,
    UNSPACED,
    ClaimSource,
    Sentence,
    claims_in,
    content_word_test,
    content_words,
    is_complete_sentence,
    overlap,
    reads_english,
    require_size,
    split_sentences,
    split_words,
    stemmer,
)
from cogcli.sdk import Refused

_MAX_TEXT = 1_000_000
_MAX_SENTENCE = 1_000
_MAX_PHRASE = 3
# How many pairs of sentences are compared at most.
_MAX_COMPARED = 1_000_000
_CUT = " …"
_REPEATED = 0.7
_MAX_STEMMED = 2_000
_MAX_STEM_LETTERS = 40

_VOWELS = re.compile(r"[aeiouyàâäáãåæèéêëìíîïòóôöõøùúûüýÿ]+")
# Flesch reading ease: the least score of each level.
_LEVELS = ((80.0, "easy"), (60.0, "plain"), (40.0, "demanding"))
_WORDS_PER_MINUTE = 230
_ENOUGH_WORDS = 10
# A line without a full stop is a title or a label as a rule; the first sentence says what the text is about.
_WHOLE = {True: 1.0, False: 0.5}
_OPENING = 1.25


def summarize_by_frequency(
    text: str, max_sentences: int = 3, max_words: int | None = None, max_length: int | None = None
) -> dict[str, object]:
    """Return the sentences with the most frequent words of the text, in text order; the first
    counts more.

    A sentence that mostly repeats a chosen one is left out. With `max_words`, and `max_length` in
    characters, only sentences that still fit are chosen. If none fits, the best one is cut at a
    word and ends with an ellipsis. `sentences` are verbatim, with Markdown marks; `summary` has no
    marks.
    """
    _require_positive(max_sentences=max_sentences, max_words=max_words, max_length=max_length)
    sentences = _sentences_of(text)
    contents = [set(content_words(readable(sentence.text))) for sentence in sentences]
    ranked = _rank_sentences(sentences)
    space = _SummaryLimits(max_words, max_length)
    chosen: list[int] = []
    for index in ranked:
        if len(chosen) == max_sentences or len(contents) * len(chosen) > _MAX_COMPARED:
            break
        repeats = any(
            overlap(contents[index], contents[chosen_index]) > _REPEATED for chosen_index in chosen
        )
        if not repeats and space.try_add(sentences[index]):
            chosen.append(index)
    return _build_summary(
        [sentences[index] for index in sorted(chosen) or ranked[:1]], space, "frequency"
    )


def summarize_by_lead(
    text: str, max_sentences: int = 3, max_words: int | None = None, max_length: int | None = None
) -> dict[str, object]:
    """Return the first sentences of the text, as many as all limits allow."""
    _require_positive(max_sentences=max_sentences, max_words=max_words, max_length=max_length)
    sentences = _sentences_of(text)
    space = _SummaryLimits(max_words, max_length)
    chosen: list[Sentence] = []
    for sentence in sentences[:max_sentences]:
        if not space.try_add(sentence):
            break
        chosen.append(sentence)
    return _build_summary(chosen or sentences[:1], space, "lead")


def _require_positive(**limits: int | None) -> None:
    """Raise Refused for a limit below 1."""
    for name, limit in limits.items():
        if limit is not None and limit < 1:
            raise Refused("bad-data", f"{name} must be 1 or more, found {limit}")


def _sentences_of(text: str) -> list[Sentence]:
    """Return the sentences with readable text; a picture alone has none. Raise Refused for a text
    that is too large.
    """
    require_size(text, _MAX_TEXT)
    return [sentence for sentence in split_sentences(text) if readable(sentence.text).strip()]


class _SummaryLimits:
    """The remaining words and characters of a summary. The blank between sentences counts as a character."""

    def __init__(self, max_words: int | None, max_length: int | None) -> None:
        self.words, self.length = max_words or sys.maxsize, max_length or sys.maxsize
        self._words_left, self._length_left = self.words, self.length

    def try_add(self, sentence: Sentence) -> bool:
        """Return whether a sentence still fits, and count it if so."""
        line = readable(sentence.text).split()
        count, length = len(line), len(" ".join(line))
        if count > self._words_left or length > self._length_left:
            return False
        self._words_left -= count
        self._length_left -= length + 1
        return True

    def cut(self, sentence: str) -> str:
        """Return the beginning of a sentence that fits into the whole limit, with space for the
        mark of the cut.
        """
        line = " ".join(sentence.split())
        cut = " ".join(line.split()[: self.words])
        max_length = min(_MAX_SENTENCE, self.length)
        if cut == line and len(line) <= max_length:
            return sentence
        limit = max_length if len(cut) <= max_length - len(_CUT) else max_length - len(_CUT)
        at_word = cut[: max(limit, 0) + 1].rpartition(" ")[0] if len(cut) > limit else cut
        trimmed = (at_word or cut[:max_length]).rstrip()
        # Up to here, as it stands in the sentence.
        return sentence[: _index_after(sentence, len("".join(trimmed.split())))]


def _index_after(text: str, count: int) -> int:
    """Return the index after `count` characters that are not white space."""
    for index, char in enumerate(text):
        if count == 0:
            return index
        count -= not char.isspace()
    return len(text)


def _build_summary(chosen: list[Sentence], space: _SummaryLimits, method: str) -> dict[str, object]:
    readable_texts = [readable(sentence.text) for sentence in chosen]
    cut = [space.cut(sentence) for sentence in readable_texts]
    summary = " ".join(" ".join(sentence.split()) for sentence in cut)
    truncated = cut != readable_texts
    pairs = zip(cut, readable_texts, chosen, strict=True)
    sentences = [sentence.text if short == whole else short for short, whole, sentence in pairs]
    count = len(summary.split())
    if truncated and len(summary) + len(_CUT) <= space.length:
        summary += _CUT
    answer = {
        "summary": summary,
        "sentences": sentences,
        "word_count": count,
        "truncated": truncated,
    }
    return answer | {"method": f"rules:{method}"}


def _rank_sentences(sentences: list[Sentence]) -> list[int]:
    """Return the indices of the sentences, most frequent words first."""
    contents = [content_words(readable(sentence.text)) for sentence in sentences]
    counts = Counter(word for words in contents for word in words)
    top = max(counts.values(), default=1)
    complete = [is_complete_sentence(sentence.text) for sentence in sentences]
    # Fixed weight in the divisor: without it the shortest sentence wins, with a plain sum the longest does.
    shares = [
        sum(counts[word] for word in words) / top / (len(words) + 6) for words in map(set, contents)
    ]
    scores = [share * _WHOLE[done] for share, done in zip(shares, complete, strict=True)]
    if True in complete:
        scores[complete.index(True)] *= _OPENING
    return sorted(range(len(sentences)), key=lambda i: (-scores[i], i))


def extract_keywords(text: str, max_keywords: int = 10) -> dict[str, object]:
    """Return words, and repeated phrases of two or three words, by count times (2 * words - 1).

    A phrase never crosses a stop word or punctuation. A word is left out if a better phrase
    contains it at least half of the time. `keywords` are the phrases, best first; `scored` gives
    each with score and count.
    """
    _require_positive(max_keywords=max_keywords)
    counts = Counter(_find_phrases(text))
    scores = {
        p: count * (2 * len(p) - 1) for p, count in counts.items() if count > 1 or len(p) == 1
    }
    chosen: list[tuple[str, ...]] = []
    for phrase in sorted(scores, key=lambda phrase: -scores[phrase]):
        if len(chosen) == max_keywords:
            break
        if not any(
            set(phrase) <= set(better) and counts[better] * 2 >= counts[phrase] for better in chosen
        ):
            chosen.append(phrase)
    return _keywords_answer(
        [(" ".join(phrase), float(scores[phrase]), counts[phrase]) for phrase in chosen], "phrases"
    )


def extract_stemmed_keywords(
    text: str, max_keywords: int = 10, language: str = "en"
) -> dict[str, object]:
    """Return the most frequent words, inflected forms counted together and shown in their commonest form.

    `language` is an ISO 639-1 code. Outside English, words of up to three letters are passed over.
    """
    _require_positive(max_keywords=max_keywords)
    min_letters = 3 if language == "en" else 4
    is_content_word = content_word_test(text)
    forms = Counter(
        word
        for word in split_words(readable(text))
        if is_content_word(word) and min_letters <= len(word) <= _MAX_STEM_LETTERS
    )
    stem = stemmer(language)
    families: dict[str, list[tuple[str, int]]] = {}
    for form, count in forms.most_common(_MAX_STEMMED):
        families.setdefault(stem(form), []).append((form, count))
    totals = [(family[0][0], sum(count for _, count in family)) for family in families.values()]
    ranked = sorted(totals, key=lambda total: -total[1])[:max_keywords]
    return _keywords_answer([(form, float(total), total) for form, total in ranked], "stems")


def _keywords_answer(ranked: list[tuple[str, float, int]], method: str) -> dict[str, object]:
    scored = [
        {"keyword": word, "score": round(score, 3), "count": count} for word, score, count in ranked
    ]
    return {
        "keywords": [word for word, _, _ in ranked],
        "scored": scored,
        "method": f"rules:{method}",
    }


def score_readability(text: str) -> dict[str, object]:
    """Return the length and reading difficulty of a text: counts, minutes, and for English the
    Flesch scores.

    `level` is easy, plain, demanding or hard. It is `unrated` if under nine tenths of the letters
    are basic Latin, or if a text of ten words or more does not read as English.
    """
    sentences = _sentences_of(text)
    words = [word for sentence in sentences for word in split_words(readable(sentence.text))]
    measures: dict[str, object] = {
        "words": len(words),
        "sentences": len(sentences),
        "characters": len(text),
        "words_per_sentence": round(len(words) / len(sentences), 1) if sentences else 0.0,
        "minutes": round(len(words) / _WORDS_PER_MINUTE, 1),
    }
    if (
        not words
        or not _mostly_latin(words)
        or (len(words) >= _ENOUGH_WORDS and not reads_english(text))
    ):
        return {"level": "unrated", "measures": measures}
    per_sentence = len(words) / len(sentences)
    per_word = sum(map(_count_syllables, words)) / len(words)
    ease = round(206.835 - 1.015 * per_sentence - 84.6 * per_word, 1)
    grade = round(0.39 * per_sentence + 11.8 * per_word - 15.59, 1)
    level = next((name for least, name in _LEVELS if ease >= least), "hard")
    return {"level": level, "reading_ease": ease, "grade": grade, "measures": measures}


def _mostly_latin(words: list[str]) -> bool:
    letters = [char for word in words for char in word if char.isalpha()]
    return sum(map(str.isascii, letters)) >= 0.9 * len(letters)


def _count_syllables(word: str) -> int:
    groups = len(_VOWELS.findall(word))
    silent = word.endswith("e") and not word.endswith(("le", "ee")) and groups > 1
    return max(1, groups - silent)


def check_summary(text: str, summary: str) -> dict[str, object]:
    """Return whether every number and name of a summary occurs in its text.

    `unsupported` lists the others; a capital at the start of a sentence makes no name. `coverage`
    is the share of the text's 20 most frequent content words that the summary uses, `compression`
    the ratio of their word counts.
    """
    require_size(text, _MAX_TEXT)
    source = ClaimSource(text)
    require_size(summary, _MAX_TEXT)
    unsupported = [claim for claim in claims_in(summary) if not source.holds(claim)]
    readable_text = readable(text)
    common = [word for word, _ in Counter(content_words(readable_text)).most_common(20)]
    summary_words = set(content_words(summary))
    count = len(split_words(readable_text))
    return {
        "grounded": not unsupported,
        "unsupported": unsupported,
        "coverage": round(sum(word in summary_words for word in common) / len(common), 3)
        if common
        else 0.0,
        "compression": round(len(split_words(summary)) / count, 3) if count else 0.0,
    }


def _find_phrases(text: str) -> list[tuple[str, ...]]:
    """Return every run of one to three content words without a stop word or punctuation between."""
    phrases: list[tuple[str, ...]] = []
    is_content_word = content_word_test(text)
    for piece in (
        piece
        for sentence in _sentences_of(text)
        for piece in PUNCTUATION.split(readable(sentence.text))
    ):
        run: list[str] = []
        for word in split_words(piece):
            run = [*run[1 - _MAX_PHRASE :], word] if is_content_word(word) else []
            # Pairs of characters overlap: side by side they are no phrase.
            run = run[-1:] if UNSPACED.match(word) else run
            phrases.extend(tuple(run[start:]) for start in range(len(run)))
    return phrases
