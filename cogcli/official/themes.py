"""Items that speak of the same: clusters by TF-IDF, cosine and average linkage."""

from __future__ import annotations

import math
from collections import Counter

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
    """Clusters of two or more items by the words they share; the rest is `unclustered`.

    A cluster has `label` (a hint label whose words its items hold, else the words most of them share), `items` as
    given, their `indices` from 0, `size` and `cohesion` (mean cosine of its pairs). Words of `context` are common to
    all and tell nothing apart; of an item the first 5,000 characters are compared. At most `max_clusters`, the
    largest. Permuting the items changes no cluster.
    Refused: no words at all (`no-evidence`), over 300 items (`too-large`).
    """
    if len(items) > _MAX_ITEMS:
        raise Refused("too-large", f"{len(items)} items; at most {_MAX_ITEMS} are compared")
    texts = [text_of(item)[:_MAX_LETTERS] for item in items]
    vectors = _vectors(texts, set(stems(context or "")))
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
    quality = {"items": len(items), "clustered": len(inside), "coverage": round(len(inside) / len(items), 3)}
    return {
        "clusters": clusters,
        "unclustered": outside,
        "cluster_quality": quality | {"clusters": len(kept), "left_out": len(groups) - len(kept)},
        "method": "rules:tfidf-average-link",
    }


def _vectors(texts: list[str], common: set[str]) -> list[Vector]:
    counts = [Counter(term for term in stems(text) if term not in common) for text in texts]
    spread = Counter(term for count in counts for term in count)
    return [_vector(count, spread, len(texts)) for count in counts]


def _vector(counts: Counter[str], spread: Counter[str], size: int) -> Vector:
    weights = {term: (1 + math.log(n)) * math.log(1 + size / spread[term]) for term, n in counts.items()}
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
    """Clusters of two or more: the closest two are joined until none are close enough (Lance-Williams averages)."""
    order = sorted(free, key=lambda i: sorted(vectors[i].items()))
    members = {n: [index] for n, index in enumerate(order)}
    near: dict[int, dict[int, float]] = {n: {} for n in members}
    for one in members:
        for other in range(one):
            cosine = _cosine(vectors[order[one]], vectors[order[other]])
            near[one][other] = near[other][one] = cosine
    best = {n: _closest(near[n]) for n in members if near[n]}
    while best:
        one = max(best, key=lambda n: (best[n][0], -n))
        cosine, other = best[one]
        if cosine < _LEAST:
            break
        _join(one, other, members, near)
        best = {
            n: _closest(near[n])
            if n == one or best[n][1] in (one, other)
            else max(best[n], (near[n][one], one), key=_rank)
            for n in members
            if near[n]
        }
    return [sorted(ids) for ids in members.values() if len(ids) > 1]


def _rank(pair: tuple[float, int]) -> tuple[float, int]:
    return pair[0], -pair[1]


def _closest(cosines: dict[int, float]) -> tuple[float, int]:
    return max(((cosine, n) for n, cosine in cosines.items()), key=_rank)


def _join(one: int, other: int, members: dict[int, list[int]], near: dict[int, dict[int, float]]) -> None:
    """Make the second cluster part of the first; its cosine to any third is the mean over all pairs."""
    sizes = len(members[one]), len(members[other])
    for third in members:
        if third not in (one, other):
            mean = (sizes[0] * near[one][third] + sizes[1] * near[other][third]) / sum(sizes)
            near[one][third] = near[third][one] = mean
            del near[third][other]
    del near[one][other], near[other]
    members[one] += members.pop(other)


def _label(ids: list[int], texts: list[str]) -> str:
    """The words that most items of a cluster hold."""
    held = Counter(word for index in ids for word in set(content_words(texts[index])))
    ranked = sorted((word for word in held if held[word] > 1), key=lambda word: (-held[word], word))
    return ", ".join(ranked[:_LABEL_WORDS]) or texts[ids[0]][:60]


def _cluster(label: str, ids: list[int], items: list[object], vectors: list[Vector]) -> dict[str, object]:
    pairs = [_cosine(vectors[i], vectors[j]) for i in ids[:50] for j in ids[:50] if i < j]
    cohesion = round(math.fsum(pairs) / len(pairs), 3) if pairs else 1.0
    return {
        "label": label,
        "items": [items[index] for index in ids],
        "indices": ids,
        "size": len(ids),
        "cohesion": cohesion,
    }
