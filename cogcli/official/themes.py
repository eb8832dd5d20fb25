"""Items that speak of the same: clusters by TF-IDF, cosine and average linkage."""

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
    """Return clusters of two or more items by the words they share; the rest is `unclustered`.

    A cluster has `label` (a hint label whose words its items hold, else the words most of them share), `items` as
    given, their `indices` from 0, `size` and `cohesion` (mean cosine of its pairs). Words of `context` are common to
    all and tell nothing apart; of an item the first 5,000 characters are compared. At most `max_clusters`, the
    largest. Permuting the items changes no cluster.
    Refused: no words at all (`no-evidence`), over 300 items (`too-large`).
    """
    if len(items) > _MAX_ITEMS:
        raise Refused("too-large", f"{len(items)} items; at most {_MAX_ITEMS} are compared")
    texts = [text_of(item)[:_MAX_LETTERS] for item in items]
    common = set(stems(context or ""))
    counts = [Counter(term for term in stems(text) if term not in common) for text in texts]
    spread = Counter(term for terms in counts for term in terms)
    vectors = [_vector(terms, spread, len(texts)) for terms in counts]
    if not any(vectors):
        raise Refused("no-evidence", "no item holds a word to compare")
    hinted = _hinted(texts, hint_labels or [])
    taken = {index for ids in hinted.values() for index in ids}
    free = [index for index, vector in enumerate(vectors) if vector and index not in taken]
    groups = [(label, ids) for label, ids in hinted.items() if ids] + [
        ("", ids) for ids in _linked(vectors, free)
    ]
    groups.sort(key=lambda group: (-len(group[1]), sorted(texts[i] for i in group[1])))
    kept = groups[: max(1, int(max_clusters))]
    clusters = [_cluster(label or _label(ids, texts), ids, items, vectors) for label, ids in kept]
    inside = {index for _, ids in kept for index in ids}
    outside = [item for index, item in enumerate(items) if index not in inside]
    quality = {
        "items": len(items),
        "clustered": len(inside),
        "coverage": round(len(inside) / len(items), 3),
    }
    return {
        "clusters": clusters,
        "unclustered": outside,
        "cluster_quality": quality | {"clusters": len(kept), "left_out": len(groups) - len(kept)},
        "method": "rules:tfidf-average-link",
    }


def _vector(counts: Counter[str], spread: Counter[str], size: int) -> Vector:
    weights = {
        term: (1 + math.log(n)) * math.log(1 + size / spread[term]) for term, n in counts.items()
    }
    best = sorted(weights, key=lambda term: (-weights[term], term))[:_MAX_TERMS]
    length = math.sqrt(math.fsum(weights[term] ** 2 for term in best))
    return {term: weights[term] / length for term in best}


def _cosine(one: Vector, other: Vector) -> float:
    small, large = sorted((one, other), key=len)
    return math.fsum(weight * large[term] for term, weight in small.items() if term in large)


def _hinted(texts: list[str], labels: list[str]) -> dict[str, list[int]]:
    """Per label the items that hold all of its words; an item belongs to the first such label."""
    wanted = {label: set(stems(label)) for label in labels if stems(label)}
    found: dict[str, list[int]] = {label: [] for label in wanted}
    for index, text in enumerate(texts):
        words = set(stems(text))
        label = next((label for label, terms in wanted.items() if terms <= words), None)
        if label is not None:
            found[label].append(index)
    return found


def _linked(vectors: list[Vector], free: list[int]) -> list[list[int]]:
    """Return clusters of two or more: the closest two are joined until none are close enough (Lance-Williams
    averages).
    """
    members = {n: [i] for n, i in enumerate(sorted(free, key=lambda i: sorted(vectors[i].items())))}
    near: dict[tuple[int, int], float] = {}
    for one, other in combinations(members, 2):
        near[one, other] = near[other, one] = _cosine(
            vectors[members[one][0]], vectors[members[other][0]]
        )
    closest = [
        (-cosine, *pair) for pair, cosine in near.items() if pair[0] < pair[1] and cosine >= _LEAST
    ]
    heapify(closest)
    for new in count(len(members)):
        while closest and not (closest[0][1] in members and closest[0][2] in members):
            heappop(closest)
        if not closest:
            break
        _, a, b = heappop(closest)
        left, right = members.pop(a), members.pop(b)
        for third in members:
            mean = (len(left) * near[a, third] + len(right) * near[b, third]) / len(left + right)
            near[new, third] = near[third, new] = mean
            if mean >= _LEAST:
                heappush(closest, (-mean, third, new))
        members[new] = left + right
    return [sorted(ids) for ids in members.values() if len(ids) > 1]


def _label(ids: list[int], texts: list[str]) -> str:
    """Return the words that most items of a cluster hold."""
    held = Counter(word for index in ids for word in set(content_words(texts[index])))
    ranked = sorted((word for word in held if held[word] > 1), key=lambda word: (-held[word], word))
    return ", ".join(ranked[:_LABEL_WORDS]) or texts[ids[0]][:60]


def _cluster(
    label: str, ids: list[int], items: list[object], vectors: list[Vector]
) -> dict[str, object]:
    pairs = [_cosine(vectors[i], vectors[j]) for i in ids[:50] for j in ids[:50] if i < j]
    cohesion = round(math.fsum(pairs) / len(pairs), 3) if pairs else 1.0
    return {
        "label": label,
        "items": [items[index] for index in ids],
        "indices": ids,
        "size": len(ids),
        "cohesion": cohesion,
    }
