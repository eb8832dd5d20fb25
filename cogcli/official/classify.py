"""The label of a text by the words of the labels, or without labels the kind of document."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Any, NamedTuple

from cogcli.official.sentences import is_content_word, require_size, split_words, stemmer
from cogcli.sdk import Refused

_MAX_TEXT = 1_000_000
_MAX_LABELS = 200
# What an example says counts less than a keyword that somebody chose; what is said first counts more.
_WEIGHTS = {"name": 2.0, "keywords": 2.0, "description": 1.0, "examples": 0.5}
_EARLY = 0.5
_FIRST = 300
_OTHERS = ("other", "others", "misc", "miscellaneous", "none", "unknown", "else", "none of these")
_KINDS = {
    "invoice": "invoice|amount due|bill to|subtotal|vat|iban|payment terms|due date|total due|unit price",
    "contract": "agreement|party|parties|hereinafter|clause|governing law|terminate|termination|liability|indemnif\\w+",
    "minutes": "minutes|attendees|present:|apologies|agenda|action items?|decided|next meeting|chair",
    "letter": "dear|yours sincerely|yours faithfully|kind regards|best regards|sincerely yours|to whom it may concern",
    "resume": "curriculum vitae|resume|work experience|employment history|education|references available",
    "report": "executive summary|findings|methodology|recommendations|conclusions?|this report|appendix",
    "paper": "abstract|introduction|related work|we propose|et al|experiments|references|doi",
    "news": "reuters|told reporters|spokes(?:man|woman|person)|according to|press conference",
    "licence": "permission is hereby granted|warranty|redistribut\\w+|licen[cs]e|copyright|sublicen[cs]e|as is",
    "instructions": "step \\d|first,|then,|click|install|make sure|press|select|turn off|ingredients|preheat",
    "release notes": "changelog|release notes|bug ?fix(?:es)?|breaking changes?|deprecated|added|fixed|removed",
    "complaint": "complain\\w*|refund|unacceptable|disappointed|broken|never again|compensation|damaged",
    "log": "\\berror\\b|\\bwarn(?:ing)?\\b|\\binfo\\b|\\bdebug\\b|traceback|exception|\\d\\d:\\d\\d:\\d\\d",
}
_LEAST_CUES = 2


class _Cue(NamedTuple):
    label: str
    weight: float


def classify_by_cues(
    text: str, labels: list[Any] | None = None, context: str | None = None
) -> dict[str, object]:
    """Return the label whose words the text uses most, with its share of all matches as
    `confidence`.

    A label is a text, or an object with `label` (or `name`) and any of `keywords`, `description`
    and `examples`. Words count by their stem, early ones more; `context` counts as a part of the
    text. If no label matches, a listed label such as `other` is returned. Without labels, return
    the kind of document that has at least two of its usual phrases. Raise Refused `no-evidence` if
    nothing matches or two are equally likely.
    """
    require_size(text, _MAX_TEXT)
    full_text = f"{context}\n{text}" if context else text
    if not labels:
        return _classify_kind(full_text)
    texts_by_label = _texts_by_label(labels)
    scores = _score_labels(full_text, texts_by_label)
    if not any(scores.values()):
        fallback = next((name for name in texts_by_label if name.casefold() in _OTHERS), None)
        if fallback is None:
            raise Refused(
                "no-evidence",
                "the text uses no word of any label",
                "give labels as {label, keywords}, list `other`, or let a model classify",
            )
        return _build_answer(fallback, 0.0, scores)
    (best, top), (_, second) = [*Counter(scores).most_common(2), ("", 0.0)][:2]
    if top == second:
        tied = ", ".join(name for name, score in scores.items() if score == top)
        raise Refused(
            "no-evidence",
            f"the text speaks as much for each of: {tied:.200}",
            "give labels more keywords",
        )
    return _build_answer(best, top / sum(scores.values()), scores)


def _build_answer(label: str, confidence: float, scores: dict[str, float]) -> dict[str, object]:
    return {
        "label": label,
        "confidence": round(confidence, 4),
        "scores": {name: round(score, 4) for name, score in scores.items()},
        "method": "rules:cues",
    }


def _texts_by_label(labels: list[Any]) -> dict[str, dict[str, str]]:
    """Return the texts that describe each label, by label and source. Raise Refused."""
    if len(labels) > _MAX_LABELS:
        raise Refused("too-large", f"{len(labels)} labels; at most {_MAX_LABELS} are told apart")
    texts_by_label: dict[str, dict[str, str]] = {}
    for number, label in enumerate(labels, 1):
        fields = label if isinstance(label, dict) else {"label": label}
        name = fields.get("label", fields.get("name"))
        if not isinstance(name, str) or not name.strip():
            raise Refused("bad-data", f"label {number} must be a text, or an object with a `label`")
        texts = {key: _join_lines(fields.get(key)) for key in _WEIGHTS if fields.get(key)}
        texts_by_label[name] = {**texts, "name": name}
    return texts_by_label


def _join_lines(value: object) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def _score_labels(text: str, texts_by_label: dict[str, dict[str, str]]) -> dict[str, float]:
    """Return the score of each label: its words in the text by weight, early ones counting more."""
    cues: dict[str, list[_Cue]] = {}
    stem = stemmer()
    for label, texts in texts_by_label.items():
        for source, content in texts.items():
            content_words = [
                word for word in split_words(content) if is_content_word(word)
            ] or split_words(content)
            for cue in {stem(word) for word in content_words}:
                cues.setdefault(cue, []).append(_Cue(label, _WEIGHTS[source]))
    # Stemming costs: only words that begin like a cue are stemmed.
    beginnings = {cue[:2] for cue in cues}
    words_at_start = Counter(split_words(text[:_FIRST]))
    scores = dict.fromkeys(texts_by_label, 0.0)
    for word, count in Counter(split_words(text)).items():
        if word[:2] in beginnings:
            for label, weight in cues.get(stem(word), ()):
                scores[label] += weight * (min(count, 5) + _EARLY * bool(words_at_start[word]))
    return scores


@cache
def _kind_patterns() -> dict[str, re.Pattern[str]]:
    return {kind: re.compile(rf"(?<!\w)(?:{cues})(?!\w)", re.I) for kind, cues in _KINDS.items()}


def _classify_kind(text: str) -> dict[str, object]:
    sample = text[:100_000]
    cues = {
        kind: {match[0].lower() for match in pattern.finditer(sample)}
        for kind, pattern in _kind_patterns().items()
    }
    scores = {kind: float(len(found)) for kind, found in cues.items() if found}
    (best, top), (_, second) = [*Counter(scores).most_common(2), ("", 0.0), ("", 0.0)][:2]
    if top < _LEAST_CUES or top == second:
        raise Refused(
            "no-evidence",
            "the text has too few of the phrases that tell kinds of documents apart",
            "give labels, or let a model classify",
        )
    return _build_answer(best, top / sum(scores.values()), scores)
