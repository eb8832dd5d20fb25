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
    content_words,
    ends_whole,
    overlap,
    reads_english,
    require_size,
    split_sentences,
    split_words,
    stemmer,
    telling,
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
    """Return the sentences whose words the text repeats most, in the order of the text; the first counts more.

    A sentence that says mostly what a chosen one says is passed over. With `max_words`, and `max_length` in
    characters, only sentences that still fit are taken; if none fits, the best one is cut at a word and ends with an
    ellipsis. `sentences` stand in the text unchanged, with the marks of Markdown; `summary` has none of them.
    """
    _at_least_one(max_sentences=max_sentences, max_words=max_words, max_length=max_length)
    found = _read(text)
    contents = [set(content_words(readable(sentence.text))) for sentence in found]
    ranked = _ranked(found)
    space = _Space(max_words, max_length)
    chosen: list[int] = []
    for index in ranked:
        if len(chosen) == max_sentences or len(contents) * len(chosen) > _MAX_COMPARED:
            break
        repeats = any(overlap(contents[index], contents[other]) > _REPEATED for other in chosen)
        if not repeats and space.takes(found[index]):
            chosen.append(index)
    return _summary([found[index] for index in sorted(chosen) or ranked[:1]], space, "frequency")


def summarize_by_lead(
    text: str, max_sentences: int = 3, max_words: int | None = None, max_length: int | None = None
) -> dict[str, object]:
    """Return the first sentences of the text, as far as all limits allow: what a news desk calls the lead."""
    _at_least_one(max_sentences=max_sentences, max_words=max_words, max_length=max_length)
    found = _read(text)
    space = _Space(max_words, max_length)
    chosen: list[Sentence] = []
    for sentence in found[:max_sentences]:
        if not space.takes(sentence):
            break
        chosen.append(sentence)
    return _summary(chosen or found[:1], space, "lead")


def _at_least_one(**limits: int | None) -> None:
    for name, limit in limits.items():
        if limit is not None and limit < 1:
            raise Refused("bad-data", f"{name} must be 1 or more, found {limit}")


def _read(text: str) -> list[Sentence]:
    """Return the sentences that say something; a picture alone does not."""
    require_size(text, _MAX_TEXT)
    return [sentence for sentence in split_sentences(text) if readable(sentence.text).strip()]


class _Space:
    """How many words and characters a summary may still have; the blank between two sentences counts."""

    def __init__(self, max_words: int | None, max_length: int | None) -> None:
        self.words, self.length = max_words or sys.maxsize, max_length or sys.maxsize
        self._words_left, self._length_left = self.words, self.length

    def takes(self, sentence: Sentence) -> bool:
        """Return whether a sentence still fits; then it is counted."""
        line = readable(sentence.text).split()
        count, length = len(line), len(" ".join(line))
        if count > self._words_left or length > self._length_left:
            return False
        self._words_left -= count
        self._length_left -= length + 1
        return True

    def cut(self, sentence: str) -> str:
        """Return as much of a sentence as fits in all, with room for the mark of the cut."""
        line = " ".join(sentence.split())
        cut = " ".join(line.split()[: self.words])
        most = min(_MAX_SENTENCE, self.length)
        if cut == line and len(line) <= most:
            return sentence
        room = most if len(cut) <= most - len(_CUT) else most - len(_CUT)
        whole = cut[: max(room, 0) + 1].rpartition(" ")[0] if len(cut) > room else cut
        ended = (whole or cut[:most]).rstrip()
        # Up to here, as it stands in the sentence.
        return sentence[: _place_after(sentence, len("".join(ended.split())))]


def _place_after(text: str, count: int) -> int:
    """Return the place after so many characters that are not white space."""
    for place, char in enumerate(text):
        if count == 0:
            return place
        count -= not char.isspace()
    return len(text)


def _summary(chosen: list[Sentence], space: _Space, method: str) -> dict[str, object]:
    shown = [readable(sentence.text) for sentence in chosen]
    cut = [space.cut(sentence) for sentence in shown]
    summary = " ".join(" ".join(sentence.split()) for sentence in cut)
    truncated = cut != shown
    pairs = zip(cut, shown, chosen, strict=True)
    kept = [sentence.text if short == whole else short for short, whole, sentence in pairs]
    count = len(summary.split())
    if truncated and len(summary) + len(_CUT) <= space.length:
        summary += _CUT
    answer = {"summary": summary, "sentences": kept, "word_count": count, "truncated": truncated}
    return answer | {"method": f"rules:{method}"}


def _ranked(found: list[Sentence]) -> list[int]:
    """Sentence indices, most telling first."""
    contents = [content_words(readable(sentence.text)) for sentence in found]
    counts = Counter(word for words in contents for word in words)
    top = max(counts.values(), default=1)
    complete = [ends_whole(sentence.text) for sentence in found]
    # Fixed weight in the divisor: without it the shortest sentence wins, with a plain sum the longest does.
    telling = [
        sum(counts[word] for word in words) / top / (len(words) + 6) for words in map(set, contents)
    ]
    scores = [share * _WHOLE[done] for share, done in zip(telling, complete, strict=True)]
    if True in complete:
        scores[complete.index(True)] *= _OPENING
    return sorted(range(len(found)), key=lambda i: (-scores[i], i))


def extract_keywords(text: str, max_keywords: int = 10) -> dict[str, object]:
    """Words, and phrases of two or three words that occur more than once, by count times (2 * words - 1).

    A phrase never crosses a stop word or punctuation. A word is passed over when a better phrase holds it at
    least half of the time. `keywords` are the phrases, best first; `scored` gives each with score and count.
    """
    _at_least_one(max_keywords=max_keywords)
    counts = Counter(_phrases(text))
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
    return _keywords(
        [(" ".join(phrase), float(scores[phrase]), counts[phrase]) for phrase in chosen], "phrases"
    )


def extract_stemmed_keywords(
    text: str, max_keywords: int = 10, language: str = "en"
) -> dict[str, object]:
    """Return the most frequent words, inflected forms counted together and shown in their commonest form.

    `language` is an ISO 639-1 code. Outside English, words of up to three letters are passed over.
    """
    _at_least_one(max_keywords=max_keywords)
    least = 3 if language == "en" else 4
    says = telling(text)
    forms = Counter(
        word
        for word in split_words(readable(text))
        if says(word) and least <= len(word) <= _MAX_STEM_LETTERS
    )
    stem = stemmer(language)
    families: dict[str, list[tuple[str, int]]] = {}
    for form, count in forms.most_common(_MAX_STEMMED):
        families.setdefault(stem(form), []).append((form, count))
    totals = [(family[0][0], sum(count for _, count in family)) for family in families.values()]
    ranked = sorted(totals, key=lambda total: -total[1])[:max_keywords]
    return _keywords([(form, float(total), total) for form, total in ranked], "stems")


def _keywords(ranked: list[tuple[str, float, int]], method: str) -> dict[str, object]:
    scored = [
        {"keyword": word, "score": round(score, 3), "count": count} for word, score, count in ranked
    ]
    return {
        "keywords": [word for word, _, _ in ranked],
        "scored": scored,
        "method": f"rules:{method}",
    }


def score_readability(text: str) -> dict[str, object]:
    """Return how long and how hard to read: counts, minutes, and for English the Flesch and Flesch-Kincaid scores.

    `level` is easy, plain, demanding or hard; `unrated` if under nine tenths of the letters are basic Latin, and where
    a text of ten words or more has too few of those that English ones are full of.
    """
    sentences = _read(text)
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
    per_word = sum(map(_syllables, words)) / len(words)
    ease = round(206.835 - 1.015 * per_sentence - 84.6 * per_word, 1)
    grade = round(0.39 * per_sentence + 11.8 * per_word - 15.59, 1)
    level = next((name for least, name in _LEVELS if ease >= least), "hard")
    return {"level": level, "reading_ease": ease, "grade": grade, "measures": measures}


def _mostly_latin(words: list[str]) -> bool:
    letters = [char for word in words for char in word if char.isalpha()]
    return sum(map(str.isascii, letters)) >= 0.9 * len(letters)


def _syllables(word: str) -> int:
    groups = len(_VOWELS.findall(word))
    silent = word.endswith("e") and not word.endswith(("le", "ee")) and groups > 1
    return max(1, groups - silent)


def check_summary(text: str, summary: str) -> dict[str, object]:
    """Return whether a summary stays with its text: every number and name it uses must occur there.

    `unsupported` lists those that do not; a capital at the start of a sentence makes no name. `coverage` is the
    share of the text's 20 commonest content words that the summary uses, `compression` its words over the text's.
    """
    require_size(text, _MAX_TEXT)
    source = ClaimSource(text)
    require_size(summary, _MAX_TEXT)
    unsupported = [claim for claim in claims_in(summary) if not source.holds(claim)]
    shown = readable(text)
    common = [word for word, _ in Counter(content_words(shown)).most_common(20)]
    used = set(content_words(summary))
    count = len(split_words(shown))
    return {
        "grounded": not unsupported,
        "unsupported": unsupported,
        "coverage": round(sum(word in used for word in common) / len(common), 3) if common else 0.0,
        "compression": round(len(split_words(summary)) / count, 3) if count else 0.0,
    }


def _phrases(text: str) -> list[tuple[str, ...]]:
    """Return every run of one to three content words that no stop word or punctuation cuts."""
    phrases: list[tuple[str, ...]] = []
    says = telling(text)
    for piece in (
        piece for sentence in _read(text) for piece in PUNCTUATION.split(readable(sentence.text))
    ):
        run: list[str] = []
        for word in split_words(piece):
            run = [*run[1 - _MAX_PHRASE :], word] if says(word) else []
            # Pairs of characters overlap: side by side they are no phrase.
            run = run[-1:] if UNSPACED.match(word) else run
            phrases.extend(tuple(run[start:]) for start in range(len(run)))
    return phrases
