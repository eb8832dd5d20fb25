"""Similarity of texts: vectors of their words and letters, and the differences between two texts."""

from __future__ import annotations

import math
from collections import Counter
from hashlib import blake2b
from typing import TYPE_CHECKING

from cogcli.official.sentences import (
    NUMBER,
    WORD,
    ClaimSource,
    claims_in,
    content_words,
    require_size,
    split_sentences,
    split_words,
)
from cogcli.sdk import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

_SIZE = 256
_MODEL = f"hash-ngram-{_SIZE}"
_MAX_EMBEDDED = 500_000
_MAX_WORD = 48
_MAX_COMPARED = 200_000
_MAX_SENTENCES = 2_000
_MAX_DIFFERENCES = 200


def embed_by_hash(text: str) -> dict[str, object]:
    """Return a vector of 256 numbers and length 1, made of hashes of words and of runs of three to
    five letters.

    Texts that share words or parts of words are near each other, regardless of meaning. The same
    text gives the same vector on every machine. Raise Refused for a text without words.
    """
    require_size(text, _MAX_EMBEDDED)
    counts = Counter(word[:_MAX_WORD] for word in split_words(text))
    if not counts:
        raise Refused("no-evidence", "the text has no words to make a vector of")
    vector = [0.0] * _SIZE
    for word, count in counts.items():
        weight = 1 + math.log(count)
        grams = _letter_grams(word)
        _add_feature(vector, f"w:{word}", 2 * weight)
        for gram in grams:
            _add_feature(vector, f"g:{gram}", weight / math.sqrt(len(grams)))
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    return {"embedding": [round(value / length, 6) for value in vector], "model": _MODEL}


def _letter_grams(word: str) -> list[str]:
    bounded_word = f"<{word}>"
    return [
        bounded_word[i : i + size]
        for size in (3, 4, 5)
        for i in range(len(bounded_word) - size + 1)
    ]


def _add_feature(vector: list[float], feature: str, weight: float) -> None:
    # Not `hash`: it differs from process to process.
    digest = blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=3).digest()
    place = int.from_bytes(digest[:2], "big") % _SIZE
    vector[place] += weight if digest[2] & 1 else -weight


def compare_texts(
    text_a: str, text_b: str, dimensions: list[str] | None = None
) -> dict[str, object]:
    """Return the similarity of two texts, from 0 to 1, and the sentences, numbers and names that
    only one has.

    `similarity` is the mean of the dimensions, by default `wording` (cosine of words) and
    `sequence` (equal sentences and words in equal order); `numbers`, `names` and `length` are
    known, too. Other dimensions need a model: `summary` lists them. Raise Refused if no dimension
    is known.
    """
    for text in (text_a, text_b):
        require_size(text, _MAX_COMPARED)
    requested = list(dict.fromkeys(dimensions or _USUAL))
    supported = [name for name in requested if name in _DIMENSIONS]
    if not supported:
        raise Refused(
            "needs-model",
            f"without a language model {', '.join(map(str, requested))[:80]} cannot be compared",
            f"known dimensions are {', '.join(_DIMENSIONS)}",
        )
    scores = {
        name: 1.0 if text_a == text_b else round(_DIMENSIONS[name](text_a, text_b), 4)
        for name in supported
    }
    similarity = round(sum(scores.values()) / len(scores), 4)
    differences = [] if text_a == text_b else _find_differences(text_a, text_b)
    return {
        "similarity": similarity,
        "differences": differences,
        "summary": _summary_text(
            similarity, scores, differences, [name for name in requested if name not in supported]
        ),
        "method": "rules:difflib",
    }


def _word_cosine(text_a: str, text_b: str) -> float:
    a, b = (Counter((*content_words(text), *NUMBER.findall(text))) for text in (text_a, text_b))
    if not a or not b:
        return 1.0 if a == b else 0.0
    product = sum(count * b[word] for word, count in a.items())
    return min(1.0, product / (math.hypot(*a.values()) * math.hypot(*b.values())))


def _sequence_similarity(text_a: str, text_b: str) -> float:
    from difflib import SequenceMatcher

    a, b = _normalized_sentences(text_a), _normalized_sentences(text_b)
    if max(len(a), len(b)) <= 1:
        a, b = (
            [word.casefold() for word in WORD.findall(text)[:_MAX_SENTENCES]]
            for text in (text_a, text_b)
        )
    return SequenceMatcher(None, a, b).ratio()


def _make_claims_measure(digits: bool) -> Callable[[str, str], float]:
    """Return a function that computes the share of numbers, or of names, that occur in both texts."""

    def score(text_a: str, text_b: str) -> float:
        a, b = (
            {one for one in claims_in(text) if one[0].isdigit() is digits}
            for text in (text_a, text_b)
        )
        return len(a & b) / len(a | b) if a | b else 1.0

    return score


def _length_similarity(text_a: str, text_b: str) -> float:
    a, b = sorted(len(text.split()) for text in (text_a, text_b))
    return a / b if b else 1.0


_DIMENSIONS: dict[str, Callable[[str, str], float]] = {
    "wording": _word_cosine,
    "sequence": _sequence_similarity,
    "numbers": _make_claims_measure(True),
    "names": _make_claims_measure(False),
    "length": _length_similarity,
}
_USUAL = ("wording", "sequence")


def _normalized_sentences(text: str) -> list[str]:
    """Return the sentences with single blanks. Raise Refused for too many."""
    sentences = [" ".join(sentence.text.split()) for sentence in split_sentences(text)]
    if len(sentences) > _MAX_SENTENCES:
        raise Refused(
            "too-large",
            f"one text has {len(sentences):,} sentences; at most {_MAX_SENTENCES:,} are compared",
        )
    return sentences


def _find_differences(text_a: str, text_b: str) -> list[dict[str, object]]:
    """Return sentences that differ, in order, then numbers and names that only one text has."""
    from difflib import SequenceMatcher

    a, b = _normalized_sentences(text_a), _normalized_sentences(text_b)
    differences: list[dict[str, object]] = []
    for tag, a_start, a_end, b_start, b_end in SequenceMatcher(None, a, b).get_opcodes():
        kind = {"replace": "changed", "delete": "removed", "insert": "added"}.get(tag)
        if kind:
            differences.append(
                {"kind": kind, "a": " ".join(a[a_start:a_end]), "b": " ".join(b[b_start:b_end])}
            )
    for kind, text, other in (("only_in_a", text_a, text_b), ("only_in_b", text_b, text_a)):
        source = ClaimSource(other)
        missing = sorted(claim for claim in claims_in(text) if not source.holds(claim))
        if missing:
            differences.append({"kind": f"{kind}", "claims": missing[:_MAX_DIFFERENCES]})
    return differences[:_MAX_DIFFERENCES]


def _summary_text(
    similarity: float,
    scores: dict[str, float],
    differences: list[dict[str, object]],
    unknown: list[str],
) -> str:
    scores_text = ", ".join(f"{name} {score:g}" for name, score in scores.items())
    counts = Counter(str(difference["kind"]).replace("_", " ") for difference in differences)
    places = ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "no differences"
    unmeasured_note = (
        f" Not measured without a model: {', '.join(map(str, unknown))}." if unknown else ""
    )
    return f"Similarity {similarity:g} ({scores_text}); {places}.{unmeasured_note}"
