"""The knowledge of a project: imports, edges around an entity, snapshots (docs/reference/pack.md#knowledge)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cogcli.agent.context.inputs import Edge
from cogcli.agent.stores.knowledge_lines import checked_lines, line_refusal
from cogcli.agent.stores.knowledge_store import KnowledgeStore, Snapshot
from cogcli.app.settings import Settings
from cogcli.app.stores import store_directory, store_refusal
from cogcli.base.errors import UsageError
from cogcli.declarations.value_types import Json
from cogcli.stores import KNOWLEDGE

MAX_EDGES = 200
"""The maximal number of edges of one entity."""


@contextmanager
def open_knowledge(settings: Settings) -> Iterator[KnowledgeStore]:
    """Open the graph of the project or of the user, and create it if necessary. Raise the errors of `Database`."""
    store = KnowledgeStore(store_directory(settings) / KNOWLEDGE)
    try:
        yield store
    finally:
        store.close()


def import_lines(
    settings: Settings, data: bytes, file: str, *, tenant: str
) -> tuple[int, Snapshot]:
    """Append all lines of a JSONL text in one transaction. Return their number and the snapshot after them. Lines
    without a tenant get this one. Raise UsageError `input.json`; ServiceResolutionError `service.untrusted`, since
    facts of a project would enter the graph of the user."""
    if settings.bound:
        raise store_refusal("it has no knowledge to import into")
    numbers, lines = [], []
    for number, line in checked_lines(data, file):
        numbers.append(number)
        lines.append({"tenant_id": tenant, **line})
    if not lines:
        raise UsageError(
            "input.empty", f"`{file}` has no line", hint="a line is a JSON object, one edge each"
        )
    with open_knowledge(settings) as store:
        snapshot = store.append(lines, lambda place, text: line_refusal(file, numbers[place], text))
    return len(lines), snapshot


def edges_around(
    settings: Settings, entity: str, *, tenant: str, hops: int, at: str = ""
) -> tuple[list[Edge], Snapshot]:
    """Return the edges within `hops` of an entity, in the order of their writing, and the snapshot, by default
    the latest.

    Raise UsageError, UnusableEnvironment `snapshot.mismatch`.
    """
    if not all(entity.partition(":")[::2]):
        raise UsageError("usage.value", f"found `{entity[:60]}`, expected an entity `type:id`")
    with open_knowledge(settings) as store:
        snapshot = store.verified(at) if at else store.snapshot()
        edges = store.find_edges_near(
            [entity], tenant_id=tenant, seq=snapshot.seq, hops=hops, limit=MAX_EDGES
        )
    return edges, snapshot


def snapshot_of(settings: Settings) -> Snapshot:
    """Return the snapshot of the graph now."""
    with open_knowledge(settings) as store:
        return store.snapshot()


def edge_payload(edge: Edge) -> Json:
    """Return an edge as JSON, without empty members."""
    members = edge._asdict()
    return {name: value for name, value in members.items() if value not in ("", None)}
