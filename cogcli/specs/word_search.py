"""A word search that ranks texts: BM25 over fields of different weight, by stems.

The rules are in docs/reference/command-line.md#search. It is pure; it has no index, so that each search counts the
words again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import log
from typing import Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import did_you_mean

_WORD: Final = re.compile(r"[^\W_]+")
_COMMON: Final = frozenset(
    "a about all am an and any are as at be by can could did do does for from get give has have how i if in into is it "
    "its let like make me my need no not of on or our out please should show so some tell than that the their them "
    "then there these they this those to use want was we were what when where which who why will with would you "
    "your".split()
)
"""Words without meaning for a search."""
_ENDS: Final = (
    "ifications", "ification", "izations", "ization", "isation", "ications", "ication", "ations", "ation", "ating",
    "ators", "ator", "ated", "ates", "ate", "ifying", "ifies", "ified", "ify", "izing", "ising", "izes", "ises", "ized",
    "ised", "ize", "ise", "ments", "ment", "ings", "ing", "ions", "ion", "ies", "ied", "ers", "ors", "ed", "er", "or",
    "es", "ly", "al", "s", "y", "e",
)  # fmt: skip
_SHORTEST: Final = 3
"""The minimum number of letters in a stem."""
_SATURATION: Final = 1.2
_LENGTH: Final = 0.35
_BEGINNING: Final = 0.5
"""The weight of a search word that is only the beginning of a word in the text."""
_FRACTION: Final = 0.3
"""The minimum weight of a hit, as a fraction of the best weight."""


class SearchField(NamedTuple):
    """A part of a string, and the weight of the words in it."""

    text: str
    weight: float


class SearchHits(NamedTuple):
    """The keys of the matching strings, the best first. If no text matches, it has similar words."""

    keys: tuple[str, ...]
    near: tuple[str, ...] = ()


def search(words: Iterable[str], texts: Mapping[str, Sequence[SearchField]]) -> SearchHits:
    """Return the strings that match these words. A string whose key is one of the words is first."""
    stems_to_find = stems(" ".join(words))
    weights = {key: weight.value for key, weight in weigh(stems_to_find, texts).items()}
    exact = [key for key in texts if key in [*words]]
    minimum = _FRACTION * max(weights.values(), default=0.0)
    ranked = sorted(
        (key for key, weight in weights.items() if weight > 0 and weight >= minimum),
        key=lambda key: (-weights[key], key),
    )
    found = tuple(dict.fromkeys((*exact, *ranked)))
    return SearchHits(found, () if found else _find_similar_words(words, texts))


def stems(text: str) -> list[str]:
    """Return the stems of the meaningful words in a string, without repeats."""
    said = [word for word in _WORD.findall(text.lower()) if word not in _COMMON]
    return list(dict.fromkeys(map(stem, said)))


def stem(word: str) -> str:
    """Return a word without its inflected ending: `summarize`, `summaries` and `summary` all give `summar`."""
    for end in _ENDS:
        if word.endswith(end) and len(word) - len(end) >= _SHORTEST and not word.endswith("ss"):
            return word[: -len(end)]
    return word


class Weight(NamedTuple):
    """The weight of a string, and the share of the search words that it contains."""

    value: float
    share: float


def weigh(
    stems_to_find: Sequence[str], texts: Mapping[str, Sequence[SearchField]]
) -> dict[str, Weight]:
    """Return the weight of each string for these stems.

    If the stems are equally important, a string with more of them ranks higher.
    """
    counted = {key: _count_stems(fields) for key, fields in texts.items()}
    mean = sum(each.length for each in counted.values()) / max(1, len(counted)) or 1.0
    weights = dict.fromkeys(counted, 0.0)
    match_count: Counter[str] = Counter()
    for word in stems_to_find:
        found = {key: _weigh_stem(word, each) for key, each in counted.items()}
        having = [key for key, often in found.items() if often]
        rarity = log(1 + (len(counted) - len(having) + 0.5) / (len(having) + 0.5))
        for key in having:
            often = found[key] / (1 - _LENGTH + _LENGTH * counted[key].length / mean)
            weights[key] += rarity * often * (_SATURATION + 1) / (often + _SATURATION)
            match_count[key] += 1
    shares = {key: match_count[key] / max(1, len(stems_to_find)) for key in weights}
    return {key: Weight(weight * shares[key], shares[key]) for key, weight in weights.items()}


class _Counts(NamedTuple):
    """The weighted count of each stem in a string, and the length of the text."""

    stems: Counter[str]
    length: int


def _count_stems(fields: Sequence[SearchField]) -> _Counts:
    counts: Counter[str] = Counter()
    length = 0
    for text, weight in fields:
        found = [stem(word) for word in _WORD.findall(text.lower()) if word not in _COMMON]
        length += len(found)
        for one in found:
            counts[one] += weight  # type: ignore[assignment]
    return _Counts(counts, length)


def _weigh_stem(word: str, counts: _Counts) -> float:
    """Return the weighted count of a stem in a string, or of the words that begin with it."""
    if often := counts.stems.get(word):
        return often
    if len(word) < _SHORTEST:
        return 0.0
    return _BEGINNING * max(
        (n for one, n in counts.stems.items() if one.startswith(word)), default=0.0
    )


def _find_similar_words(
    search_words: Iterable[str], texts: Mapping[str, Sequence[SearchField]]
) -> tuple[str, ...]:
    """Return words in the strings that are similar to the search words."""
    words_in_texts = {
        word
        for fields in texts.values()
        for text, _ in fields
        for word in _WORD.findall(text.lower())
    }
    candidates = sorted(word for word in words_in_texts - _COMMON if len(word) >= _SHORTEST)
    found = (
        did_you_mean(word, candidates, limit=2)
        for one in search_words
        for word in _WORD.findall(one.lower())
    )
    return tuple(dict.fromkeys(near for nears in found for near in nears))
