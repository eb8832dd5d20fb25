"""Clusters of items about the same topic, by TF-IDF, cosine and average linkage."""

from __future__ import annotations

import math
from collections import Counter
from heapq import heapify, heappop, heappush
from itertools import combinations, count

from cogcli.official.passages import stems, text_of
from cogcli.official.sentences import content_words
from cogcli.sdk import Refused

_MAX_ITEMS = 300
_MAX_LETTERS = 5_000
_MAX_TERMS = 200
_LEAST = 0.12
_LABEL_WORDS = 3

Vector = dict[str, float]


def cluster_themes(
    items: list[object],
    hint_labels: list[str] | None = None,
    max_clusters: float = 8,
    context: str | None = None,
) -> dict[str, object]:
    """Return clusters of two or more items that share words; the others are `unclustered`.

    A cluster has `label` (a hint label whose words its items contain, else their most frequent
    words), the `items`, their `indices` from 0, `size` and `cohesion` (mean cosine of its pairs).
    Words of `context` are ignored; of each item the first 5,000 characters are compared. At most
    `max_clusters` are returned, the largest. The order of the items does not change the clusters.
    Raise Refused `no-evidence` without words, `too-large` for over 300 items.
    """
    if len(items) > _MAX_ITEMS:
        raise Refused("too-large", f"{len(items)} items; at most {_MAX_ITEMS} are compared")
    texts = [text_of(item)[:_MAX_LETTERS] for item in items]
    common = set(stems(context or ""))
    counts = [Counter(term for term in stems(text) if term not in common) for text in texts]
    item_count = Counter(term for terms in counts for term in terms)
    vectors = [_weight_vector(terms, item_count, len(texts)) for terms in counts]
    if not any(vectors):
        raise Refused("no-evidence", "no item holds a word to compare")
    items_by_label = _items_by_label(texts, hint_labels or [])
    labelled = {index for ids in items_by_label.values() for index in ids}
    free = [index for index, vector in enumerate(vectors) if vector and index not in labelled]
    groups = [(label, ids) for label, ids in items_by_label.items() if ids] + [
        ("", ids) for ids in _link_clusters(vectors, free)
    ]
    groups.sort(key=lambda group: (-len(group[1]), sorted(texts[i] for i in group[1])))
    largest = groups[: max(1, int(max_clusters))]
    clusters = [
        _build_cluster(label or _common_words(ids, texts), ids, items, vectors)
        for label, ids in largest
    ]
    clustered = {index for _, ids in largest for index in ids}
    unclustered = [item for index, item in enumerate(items) if index not in clustered]
    quality = {
        "items": len(items),
        "clustered": len(clustered),
        "coverage": round(len(clustered) / len(items), 3),
    }
    return {
        "clusters": clusters,
        "unclustered": unclustered,
        "cluster_quality": quality
        | {"clusters": len(largest), "left_out": len(groups) - len(largest)},
        "method": "rules:tfidf-average-link",
    }


def _weight_vector(counts: Counter[str], spread: Counter[str], size: int) -> Vector:
    weights = {
        term: (1 + math.log(n)) * math.log(1 + size / spread[term]) for term, n in counts.items()
    }
    best = sorted(weights, key=lambda term: (-weights[term], term))[:_MAX_TERMS]
    length = math.sqrt(math.fsum(weights[term] ** 2 for term in best))
    return {term: weights[term] / length for term in best}


def _cosine_similarity(one: Vector, other: Vector) -> float:
    small, large = sorted((one, other), key=len)
    return math.fsum(weight * large[term] for term, weight in small.items() if term in large)


def _items_by_label(texts: list[str], labels: list[str]) -> dict[str, list[int]]:
    """Return the indices of the items that contain all words of a label, by label. The first
    matching label counts.
    """
    stems_by_label = {label: set(stems(label)) for label in labels if stems(label)}
    items_by_label: dict[str, list[int]] = {label: [] for label in stems_by_label}
    for index, text in enumerate(texts):
        item_stems = set(stems(text))
        label = next(
            (label for label, terms in stems_by_label.items() if terms <= item_stems), None
        )
        if label is not None:
            items_by_label[label].append(index)
    return items_by_label


def _link_clusters(vectors: list[Vector], free: list[int]) -> list[list[int]]:
    """Return clusters of two or more indices. The closest two are joined until none is close enough
    (Lance-Williams averages).
    """
    members = {n: [i] for n, i in enumerate(sorted(free, key=lambda i: sorted(vectors[i].items())))}
    similarity: dict[tuple[int, int], float] = {}
    for one, another in combinations(members, 2):
        similarity[one, another] = similarity[another, one] = _cosine_similarity(
            vectors[members[one][0]], vectors[members[another][0]]
        )
    closest = [
        (-cosine, *pair)
        for pair, cosine in similarity.items()
        if pair[0] < pair[1] and cosine >= _LEAST
    ]
    heapify(closest)
    for new in count(len(members)):
        while closest and not (closest[0][1] in members and closest[0][2] in members):
            heappop(closest)
        if not closest:
            break
        _, a, b = heappop(closest)
        members_a, members_b = members.pop(a), members.pop(b)
        for third in members:
            mean = (
                len(members_a) * similarity[a, third] + len(members_b) * similarity[b, third]
            ) / len(members_a + members_b)
            similarity[new, third] = similarity[third, new] = mean
            if mean >= _LEAST:
                heappush(closest, (-mean, third, new))
        members[new] = members_a + members_b
    return [sorted(ids) for ids in members.values() if len(ids) > 1]


def _common_words(ids: list[int], texts: list[str]) -> str:
    """Return the words that most items of a cluster contain."""
    count_by_word = Counter(word for index in ids for word in set(content_words(texts[index])))
    ranked = sorted(
        (word for word in count_by_word if count_by_word[word] > 1),
        key=lambda word: (-count_by_word[word], word),
    )
    return ", ".join(ranked[:_LABEL_WORDS]) or texts[ids[0]][:60]


def _build_cluster(
    label: str, ids: list[int], items: list[object], vectors: list[Vector]
) -> dict[str, object]:
    pairs = [
        _cosine_similarity(vectors[i], vectors[j]) for i in ids[:50] for j in ids[:50] if i < j
    ]
    cohesion = round(math.fsum(pairs) / len(pairs), 3) if pairs else 1.0
    return {
        "label": label,
        "items": [items[index] for index in ids],
        "indices": ids,
        "size": len(ids),
        "cohesion": cohesion,
    }
