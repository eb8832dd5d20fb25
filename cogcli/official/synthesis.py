"""What several texts state together: quotes that agree, differ or doubt, each with its item."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from itertools import combinations
from typing import NamedTuple

from cogcli.official.passages import MAX_CHARACTERS, Passage, id_of, passages, stems, text_of
from cogcli.official.sentences import NUMBER, overlap
from cogcli.sdk import Refused

_MAX_SENTENCES = 3_000
_MAX_COMMON = 60
_MAX_LISTED = 50
_ALIKE = 0.5
_REPEATED = 0.6
_LEAST_WORDS = 3
_NEGATED = re.compile(
    r"\b(?:no|not|never|none|without|cannot|nobody|nothing)\b|n['’]t\b", re.IGNORECASE
)
_DOUBT = re.compile(
    r"\?\s*$|\b(?:may|might|perhaps|possibly|unclear|unknown|uncertain(?:ty)?|appears? to|seems?|suggests?|likely"
    r"|probably|approximately|not (?:yet )?(?:known|clear|certain)|open question)\b",
    re.IGNORECASE,
)
_STEP = re.compile(
    r"\b(?:should|must|needs? to|recommend(?:s|ed)?|next steps?|plans? to|follow[- ]up|TODO|further (?:research|work)"
    r"|further study|it is proposed)\b",
    re.IGNORECASE,
)


class _Sentence(NamedTuple):
    """A sentence of an item, with its stems."""

    item: str
    passage: Passage
    words: frozenset[str]

    def quote(self) -> dict[str, object]:
        return self.passage.quote(item=self.item)


def synthesize_corpus(
    items: list[object], focus: str | None = None, max_points: int = 8
) -> dict[str, object]:
    """Return sentences of the items, quoted with `item` and place; nothing else is added.

    `key_points` have the words that most items share. `insights` are similar statements of two
    items; `tensions` are similar statements that differ in a number or a negation. `uncertainties`
    doubt or ask; `next_steps` propose actions. With a focus only sentences that share a word with
    it count. `coverage` counts what was read and quoted. Raise Refused `no-evidence` for no text,
    or none about the focus; `too-large`.
    """
    texts = [(id_of(item, number), text_of(item)) for number, item in enumerate(items, 1)]
    sentences = [
        _Sentence(name, one, frozenset(stems(one.text)))
        for name, text in texts
        for one in passages(text)
    ]
    if sum(len(text) for _, text in texts) > MAX_CHARACTERS or len(sentences) > _MAX_SENTENCES:
        message = f"{len(sentences)} sentences; at most {_MAX_SENTENCES} in {MAX_CHARACTERS} characters are compared"
        raise Refused("too-large", message, "synthesize summaries of the items")
    focus_stems = set(stems(focus or ""))
    relevant = [
        sentence for sentence in sentences if not focus_stems or focus_stems & sentence.words
    ]
    if not relevant:
        raise Refused(
            "no-evidence", "no item speaks of the focus" if sentences else "no item holds a text"
        )
    insights, tensions = _compare_statements(relevant)
    answer: dict[str, list[dict[str, object]]] = {
        "key_points": [sentence.quote() for sentence in _key_points(relevant, max_points)],
        "insights": insights[:_MAX_LISTED],
        "tensions": tensions[:_MAX_LISTED],
        "uncertainties": [s.quote() for s in relevant if _DOUBT.search(s.passage.text)][
            :_MAX_LISTED
        ],
        "next_steps": [s.quote() for s in relevant if _STEP.search(s.passage.text)][:_MAX_LISTED],
    }
    quoted_items = {
        str(q["item"])
        for entries in answer.values()
        for entry in entries
        for q in _find_quotes(entry)
    }
    coverage: dict[str, object] = {
        "items": len(items),
        "with_text": sum(1 for _, text in texts if text.strip()),
        "quoted": len(quoted_items),
        "sentences": len(sentences),
        "about_focus": len(relevant),
        "not_quoted": [name for name, _ in texts if name not in quoted_items][:_MAX_LISTED],
    }
    text = "\n\n".join(text for _, text in texts if text.strip())
    return {**answer, "coverage": coverage, "text": text, "method": "rules:shared-words"}


def _find_quotes(entry: dict[str, object]) -> list[dict[str, object]]:
    inner = entry.get("quotes")
    return inner if isinstance(inner, list) else [entry]


def _key_points(sentences: list[_Sentence], limit: int) -> list[_Sentence]:
    """Return the sentences whose words most items share, in item order. One that mostly repeats a
    better one is left out.
    """
    item_count = Counter(
        word
        for pair in {(s.item, word) for s in sentences for word in s.words}
        for word in pair[1:]
    )
    # A fixed weight in the divisor keeps both the shortest and the longest sentence from winning by length.
    score = {
        i: sum(item_count[word] for word in s.words) / (len(s.words) + 6)
        for i, s in enumerate(sentences)
    }
    chosen: list[int] = []
    for index in sorted(score, key=lambda i: (-score[i], i)):
        words_of_sentence = sentences[index].words
        if len(chosen) == limit:
            break
        if words_of_sentence and not any(
            overlap(words_of_sentence, sentences[chosen_index].words) > _REPEATED
            for chosen_index in chosen
        ):
            chosen.append(index)
    return [sentences[index] for index in sorted(chosen)]


def _compare_statements(
    sentences: list[_Sentence],
) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Return the statements that items share, and pairs that differ in a number or a negation."""
    groups: dict[int, list[int]] = {}
    tensions: list[dict[str, object]] = []
    for one, another in _similar_pairs(sentences):
        quotes = [sentences[one].quote(), sentences[another].quote()]
        numbers = [sorted(set(NUMBER.findall(sentences[i].passage.text))) for i in (one, another)]
        negated = [bool(_NEGATED.search(sentences[i].passage.text)) for i in (one, another)]
        if numbers[0] != numbers[1] and all(numbers):
            tensions.append({"differ": "number", "values": numbers, "quotes": quotes})
        elif negated[0] != negated[1]:
            tensions.append({"differ": "negation", "quotes": quotes})
        else:
            _merge_groups(groups, one, another)
    distinct = {id(group): group for group in groups.values()}.values()
    sentence_groups = [[sentences[index] for index in sorted(group)] for group in distinct]
    insights: list[dict[str, object]] = [
        {"items": list(dict.fromkeys(s.item for s in group)), "quotes": [s.quote() for s in group]}
        for group in sentence_groups
    ]
    return sorted(insights, key=lambda entry: -len(_find_quotes(entry))), tensions


def _merge_groups(groups: dict[int, list[int]], one: int, other: int) -> None:
    """Join the groups of two indices."""
    group = groups.get(one, [one])
    other_group = groups.get(other, [other])
    if group is not other_group:
        group.extend(other_group)
        groups.update(dict.fromkeys(group, group))


def _similar_pairs(sentences: list[_Sentence]) -> list[tuple[int, int]]:
    """Return pairs of sentences of different items that share most words.

    Words that very many sentences share are not used to find pairs.
    """
    holders: dict[str, list[int]] = defaultdict(list)
    for index, sentence in enumerate(sentences):
        if len(sentence.words) >= _LEAST_WORDS:
            for word in sentence.words:
                holders[word].append(index)
    shared: Counter[tuple[int, int]] = Counter()
    for indices in holders.values():
        if len(indices) <= _MAX_COMMON:
            shared.update(combinations(indices, 2))
    pairs = [(a, b) for (a, b), count in sorted(shared.items()) if count > 1]
    pairs_across_items = [(a, b) for a, b in pairs if sentences[a].item != sentences[b].item]
    words_by_sentence = [sentence.words for sentence in sentences]
    return [
        (a, b)
        for a, b in pairs_across_items
        if len(words_by_sentence[a] & words_by_sentence[b])
        >= _ALIKE * len(words_by_sentence[a] | words_by_sentence[b])
    ]
