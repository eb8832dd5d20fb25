"""Stage 4, `evidence`: knowledge about the entities of a request, within hops, edges, trust and freshness. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from cogcli.agent.context.compiled import EvidenceGate
from cogcli.agent.context.inputs import Edge
from cogcli.base.jsonvalue import equal
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.pack_spec import DATA_CLASSES, TRUST, KnowledgeLimits
from cogcli.declarations.value_types import Json
from cogcli.policy.freshness import is_stale, seconds_of

_TRUST: Final = {trust: rank for rank, trust in enumerate(TRUST)}
_CLASS: Final = {data_class: rank for rank, data_class in enumerate(DATA_CLASSES)}


class RelatedEdge(NamedTuple):
    """An edge and its distance from an entity of the request."""

    edge: Edge
    hops: int


class Evidence(NamedTuple):
    """Found and omitted edges, facts by slot, and the gate of each required piece of evidence."""

    found: tuple[RelatedEdge, ...]
    omitted: tuple[Json, ...]
    facts: dict[str, Json]
    gates: tuple[EvidenceGate, ...]

    @property
    def is_complete(self) -> bool:
        """Whether all required evidence is satisfied."""
        return all(gate.status == "satisfied" for gate in self.gates)


class KnowledgeQuery(NamedTuple):
    """A query: entities by slot, limits, the reader's tenant and highest data class, and the time."""

    slots: Mapping[str, str]
    limits: KnowledgeLimits
    tenant_id: str
    max_class: str
    now: str
    run_id: str = ""


def retrieve(
    edges: Iterable[Edge], query: KnowledgeQuery, required_names: Iterable[str]
) -> Evidence:
    """Return the evidence about the entities of the slots.

    `edges` are in the order in which they were written. The result is ordered by distance.
    """
    visible = [edge for edge in edges if not explain_hidden(edge, query)]
    by_subject: dict[str, list[Edge]] = defaultdict(list)
    for edge in visible:
        by_subject[edge.subject].append(edge)
    found, omitted = _within_edges(
        sorted(_walk_edges(by_subject, query), key=_sort_key), query.limits.max_edges
    )
    standings = _Standings(by_subject, query)
    facts = {slot: standings.facts_about(entity) for slot, entity in query.slots.items()}
    gates = [standings.gate(name) for name in dict.fromkeys(required_names)]
    return Evidence(tuple(found), tuple(omitted), facts, tuple(gates))


def explain_hidden(edge: Edge, query: KnowledgeQuery) -> str:
    """Return why a reader may not see an edge: tenant or class. Empty if the reader may see it."""
    if edge.tenant_id != query.tenant_id:
        return "tenant"
    if edge.evidence_ref.startswith(f"{query.run_id}/"):
        return ""  # a call of this run gave it, which the pack allowed
    return "class" if _CLASS[edge.data_class] > _CLASS[query.max_class] else ""


def _walk_edges(
    by_subject: Mapping[str, list[Edge]], query: KnowledgeQuery
) -> Iterator[RelatedEdge]:
    """Yield usable edges breadth first from the entities of the slots. A slot's own edges are one hop away."""
    seen = set(query.slots.values())
    frontier = list(dict.fromkeys(query.slots.values()))
    for hops in range(1, query.limits.max_hops + 1):
        following: list[str] = []
        for entity in frontier:
            for edge in by_subject.get(entity, ()):
                if fault_of(edge, query):
                    continue
                yield RelatedEdge(edge, hops)
                if edge.object and edge.object not in seen:
                    seen.add(edge.object)
                    following.append(edge.object)
        frontier = following


def _sort_key(related: RelatedEdge) -> tuple[object, ...]:
    edge = related.edge
    return related.hops, edge.predicate, edge.object, edge.evidence_ref, edge.seq


def _within_edges(
    related_edges: list[RelatedEdge], maximum: int
) -> tuple[list[RelatedEdge], list[Json]]:
    left_out = [
        {
            "subject": each.edge.subject,
            "predicate": each.edge.predicate,
            "hops": each.hops,
            "reason": "max_edges",
        }
        for each in related_edges[maximum:]
    ]
    return related_edges[:maximum], left_out


def fault_of(edge: Edge, query: KnowledgeQuery) -> str:
    """Return why an edge is not evidence now: expired, low_trust or stale. Empty if it is evidence."""
    now = seconds_of(query.now)
    if edge.valid_until and seconds_of(edge.valid_until) <= now:
        return "expired"
    if edge.valid_from and seconds_of(edge.valid_from) > now:
        return "expired"
    if _TRUST[edge.trust] < _TRUST[query.limits.min_trust]:
        return "low_trust"
    if is_stale(edge.observed_at, edge.predicate, query.limits, query.now):
        return "stale"
    return ""


_FAULTS: Final = ("stale", "low_trust", "expired")
"""The reasons why no edge is usable, the nearest to a usable one first."""


class _Standings:
    """The state of each predicate of each entity."""

    def __init__(self, by_subject: Mapping[str, list[Edge]], query: KnowledgeQuery) -> None:
        self._by_subject, self._query = by_subject, query
        self._known: dict[tuple[str, str], tuple[str, list[Edge]]] = {}

    def of(self, entity: str, predicate: str) -> tuple[str, list[Edge]]:
        """Return the status of a predicate of an entity, and its edges."""
        key = entity, predicate
        if key not in self._known:
            self._known[key] = self._standing_of(entity, predicate)
        return self._known[key]

    def facts_about(self, entity: str) -> Json:
        """Return the satisfied predicates of an entity with their values. Its id is the id in the request."""
        facts: Json = {"id": entity.partition(":")[2]}
        for predicate in dict.fromkeys(edge.predicate for edge in self._by_subject.get(entity, ())):
            status, chosen = self.of(entity, predicate)
            if status == "satisfied" and predicate != "id":
                values = [edge.stated for edge in chosen]
                facts[predicate] = values[0] if len(values) == 1 else values
        return facts

    def gate(self, name: str) -> EvidenceGate:
        """Return the gate of required evidence `slot.predicate`."""
        slot, _, predicate = name.partition(".")
        status, chosen = self.of(self._query.slots.get(slot, ""), predicate)
        return EvidenceGate(
            name, status, tuple(dict.fromkeys(edge.evidence_ref for edge in chosen))
        )

    def _standing_of(self, entity: str, predicate: str) -> tuple[str, list[Edge]]:
        by_fault: dict[str, list[Edge]] = defaultdict(list)
        for edge in self._by_subject.get(entity, ()):
            if edge.predicate == predicate:
                by_fault[fault_of(edge, self._query)].append(edge)
        for status in ("", *_FAULTS):
            if status in by_fault:
                return (status, by_fault[status]) if status else self._choose_trusted(by_fault[""])
        return "missing", []

    def _choose_trusted(self, usable: list[Edge]) -> tuple[str, list[Edge]]:
        """Return the status of usable edges of one predicate, and the edges with the most trust."""
        best = max(_TRUST[edge.trust] for edge in usable)
        strongest = [edge for edge in usable if _TRUST[edge.trust] == best]
        own = [edge for edge in usable if edge.evidence_ref.startswith(f"{self._query.run_id}/")]
        # A call of this run read the source, so it supersedes stored edges.
        if own and own[-1] in strongest:
            return "satisfied", own[-1:]
        if usable[0].predicate not in self._query.limits.single_valued:
            return "satisfied", _latest_per_value(strongest)
        if all(equal(edge.stated, strongest[-1].stated) for edge in strongest):
            return "satisfied", strongest[-1:]
        return "conflict", strongest


def _latest_per_value(edges: list[Edge]) -> list[Edge]:
    """Return the edges with distinct values; of equal values the latest edge."""
    kept: list[Edge] = []
    for edge in edges:
        kept = [other for other in kept if not equal(other.stated, edge.stated)]
        kept.append(edge)
    return kept
