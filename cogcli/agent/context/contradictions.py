"""Contradictions between what the graph and the memory say of an entity (docs/reference/pack.md#functional-state).

Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from cogcli.agent.context.compiler import Compilation
from cogcli.agent.context.evidence import explain_hidden, fault_of
from cogcli.base.jsonvalue import equal
from cogcli.base.named_tuple import NamedTuple

Key = tuple[str, str]
"""An entity and a predicate of it."""


class KnownContradictions(NamedTuple):
    """The statements with more than one value. A settled statement has a chosen value, which the run uses."""

    unresolved: tuple[Key, ...] = ()
    settled: tuple[Key, ...] = ()

    def count_unresolved(self, keys_from_calls: Iterable[Key]) -> int:
        """Return the number of statements without a chosen value. The statements of `keys_from_calls` are settled by
        calls of the run.
        """
        return len(set(self.unresolved) - set(keys_from_calls))

    @property
    def total(self) -> int:
        """The number of all contradictions."""
        return len(self.unresolved) + len(self.settled)


def find_contradictions(compilation: Compilation) -> KnownContradictions:
    """Return the contradictions of the usable statements of the graph and the recalled memories.

    The graph contradicts itself, or a memory, only in a predicate with one value at a time. Memories contradict each
    other in any predicate, since two values of one are kept only if a person promoted both.
    """
    stated, remembered = _group_edges(compilation), _group_memories(compilation)
    single = compilation.compile_input.pack.knowledge.single_valued
    settled: list[Key] = []
    unresolved: list[Key] = []
    for key in dict.fromkeys((*stated, *remembered)):
        graph, memory = stated.get(key, []), remembered.get(key, [])
        values = [*graph, *memory] if key[1] in single else memory
        if any(not equal(value, values[0]) for value in values):
            (settled if _is_settled(compilation, key, memory) else unresolved).append(key)
    return KnownContradictions(tuple(unresolved), tuple(settled))


def _group_edges(compilation: Compilation) -> dict[Key, list[object]]:
    """Return the values of the visible edges without faults, by entity and predicate."""
    groups: dict[Key, list[object]] = defaultdict(list)
    query = compilation.query
    for edge in compilation.compile_input.edges:
        if not explain_hidden(edge, query) and not fault_of(edge, query):
            groups[edge.subject, edge.predicate].append(edge.stated)
    return groups


def _group_memories(compilation: Compilation) -> dict[Key, list[object]]:
    groups: dict[Key, list[object]] = defaultdict(list)
    for memory in compilation.memory.memories:
        groups[memory.entity, memory.predicate].append(memory.value)
    return groups


def _is_settled(compilation: Compilation, key: Key, memory: list[object]) -> bool:
    """Return whether the run has one value: a call of the run made the statement, or the graph alone contradicts itself
    and one value has more trust.
    """
    own = f"{compilation.compile_input.run.run_id}/"
    edges = [
        edge for edge in compilation.compile_input.edges if (edge.subject, edge.predicate) == key
    ]
    if any(edge.evidence_ref.startswith(own) for edge in edges):
        return True
    slots = {entity: slot for slot, entity in compilation.query.slots.items()}
    facts = compilation.evidence.facts.get(slots.get(key[0], ""), {})
    return not memory and key[1] in facts
