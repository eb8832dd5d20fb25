"""What several texts say together: quotes that agree, that differ, that doubt, each with the item it stands in."""

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
    item: str
    passage: Passage
    words: frozenset[str]

    def quote(self) -> dict[str, object]:
        return self.passage.quote(item=self.item)


def synthesize_corpus(
    items: list[object], focus: str | None = None, max_points: int = 8
) -> dict[str, object]:
    """Return sentences of the items, quoted with `item` and place, and nothing else.

    `key_points` hold the words that most items share; `insights` are statements that two items make alike, `tensions`
    such statements where a number or a negation differs; `uncertainties` doubt or ask; `next_steps` say what is to be
    done. With a focus only sentences that share a word with it count. `coverage` counts what was read and quoted.
    Refused: no text, or none about the focus (`no-evidence`); too much (`too-large`).
    """
    texts = [(id_of(item, number), text_of(item)) for number, item in enumerate(items, 1)]
    read = [
        _Sentence(name, one, frozenset(stems(one.text)))
        for name, text in texts
        for one in passages(text)
    ]
    if sum(len(text) for _, text in texts) > MAX_CHARACTERS or len(read) > _MAX_SENTENCES:
        message = f"{len(read)} sentences; at most {_MAX_SENTENCES} in {MAX_CHARACTERS} characters are compared"
        raise Refused("too-large", message, "synthesize summaries of the items")
    wanted = set(stems(focus or ""))
    about = [sentence for sentence in read if not wanted or wanted & sentence.words]
    if not about:
        raise Refused(
            "no-evidence", "no item speaks of the focus" if read else "no item holds a text"
        )
    insights, tensions = _compared(about)
    answer: dict[str, list[dict[str, object]]] = {
        "key_points": [sentence.quote() for sentence in _key_points(about, max_points)],
        "insights": insights[:_MAX_LISTED],
        "tensions": tensions[:_MAX_LISTED],
        "uncertainties": [s.quote() for s in about if _DOUBT.search(s.passage.text)][:_MAX_LISTED],
        "next_steps": [s.quote() for s in about if _STEP.search(s.passage.text)][:_MAX_LISTED],
    }
    quoted = {
        str(q["item"]) for entries in answer.values() for entry in entries for q in _quotes(entry)
    }
    coverage: dict[str, object] = {
        "items": len(items),
        "with_text": sum(1 for _, text in texts if text.strip()),
        "quoted": len(quoted),
        "sentences": len(read),
        "about_focus": len(about),
        "not_quoted": [name for name, _ in texts if name not in quoted][:_MAX_LISTED],
    }
    text = "\n\n".join(text for _, text in texts if text.strip())
    return {**answer, "coverage": coverage, "text": text, "method": "rules:shared-words"}


def _quotes(entry: dict[str, object]) -> list[dict[str, object]]:
    inner = entry.get("quotes")
    return inner if isinstance(inner, list) else [entry]


def _key_points(sentences: list[_Sentence], limit: int) -> list[_Sentence]:
    """Return the sentences whose words most items share, none saying mostly what a better one says; in order of the
    items.
    """
    spread = Counter(
        word
        for pair in {(s.item, word) for s in sentences for word in s.words}
        for word in pair[1:]
    )
    # A fixed weight in the divisor keeps both the shortest and the longest sentence from winning by length.
    score = {
        i: sum(spread[word] for word in s.words) / (len(s.words) + 6)
        for i, s in enumerate(sentences)
    }
    chosen: list[int] = []
    for index in sorted(score, key=lambda i: (-score[i], i)):
        words = sentences[index].words
        if len(chosen) == limit:
            break
        if words and not any(
            overlap(words, sentences[other].words) > _REPEATED for other in chosen
        ):
            chosen.append(index)
    return [sentences[index] for index in sorted(chosen)]


def _compared(
    sentences: list[_Sentence],
) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """(statements that items share, statements alike but for a number or a negation)."""
    groups: dict[int, list[int]] = {}
    tensions: list[dict[str, object]] = []
    for one, other in _alike(sentences):
        quotes = [sentences[one].quote(), sentences[other].quote()]
        numbers = [sorted(set(NUMBER.findall(sentences[i].passage.text))) for i in (one, other)]
        negated = [bool(_NEGATED.search(sentences[i].passage.text)) for i in (one, other)]
        if numbers[0] != numbers[1] and all(numbers):
            tensions.append({"differ": "number", "values": numbers, "quotes": quotes})
        elif negated[0] != negated[1]:
            tensions.append({"differ": "negation", "quotes": quotes})
        else:
            _unite(groups, one, other)
    united = {id(group): group for group in groups.values()}.values()
    found = [[sentences[index] for index in sorted(group)] for group in united]
    insights: list[dict[str, object]] = [
        {"items": list(dict.fromkeys(s.item for s in group)), "quotes": [s.quote() for s in group]}
        for group in found
    ]
    return sorted(insights, key=lambda entry: -len(_quotes(entry))), tensions


def _unite(groups: dict[int, list[int]], one: int, other: int) -> None:
    joined = groups.get(one, [one])
    added = groups.get(other, [other])
    if joined is not added:
        joined.extend(added)
        groups.update(dict.fromkeys(joined, joined))


def _alike(sentences: list[_Sentence]) -> list[tuple[int, int]]:
    """Return pairs of sentences of different items with mostly the same words; words that very many hold find no
    pair.
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
    apart = [(a, b) for a, b in pairs if sentences[a].item != sentences[b].item]
    words = [sentence.words for sentence in sentences]
    return [
        (a, b) for a, b in apart if len(words[a] & words[b]) >= _ALIKE * len(words[a] | words[b])
    ]
