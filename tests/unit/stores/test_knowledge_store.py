"""The knowledge graph on disk (docs/reference/pack.md#knowledge)."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from cogcli.core.errors import EnvironmentRefusal
from cogcli.stores.knowledge_store import KnowledgeStore

NOW = "2026-05-04T09:30:00Z"


def _line(predicate: str, subject: str = "order:o1", **members: Any) -> dict[str, Any]:
    base = {"subject": subject, "predicate": predicate, "evidence_ref": f"crm/{subject}", "observed_at": NOW}
    return {**base, "trust": "verified", "tenant_id": "acme", **members}


@pytest.fixture
def store(tmp_path: Path) -> Any:
    opened = KnowledgeStore(tmp_path / "deep" / "knowledge.db")
    yield opened
    opened.close()


def _around(store: KnowledgeStore, **members: Any) -> list[tuple[str, Any]]:
    query = {"tenant_id": "acme", "seq": store.snapshot().seq, "hops": 2, "most": 200, **members}
    return [(edge.predicate, edge.value) for edge in store.around(["order:o1"], **query)]


def test_edges_come_back_as_they_were_written(store: KnowledgeStore) -> None:
    store.append([_line("age_days", value=12), _line("customer", object="customer:c1")])
    store.append([_line("region", "customer:c1", value={"name": "eu"}), _line("far", "region:x", value=1)])
    assert _around(store) == [("age_days", 12), ("customer", None), ("region", {"name": "eu"})]
    assert _around(store, hops=1) == [("age_days", 12), ("customer", None)]
    assert _around(store, tenant_id="other") == []
    (first, *_) = store.around(["order:o1"], tenant_id="acme", seq=9, hops=1, most=9)
    assert (first.seq, first.trust, first.evidence_ref, first.valid_until) == (
        1,
        "verified",
        "crm/order:o1",
        "",
    )


def test_a_snapshot_is_a_prefix_less_its_retractions(store: KnowledgeStore) -> None:
    before = store.append([_line("age_days", value=12)])
    after = store.append([_line("age_days", retracts=1), _line("age_days", value=13)])
    assert _around(store, seq=before.seq) == [("age_days", 12)]
    assert _around(store, seq=after.seq) == [("age_days", 13)]
    assert store.snapshot() == after
    assert store.verified(before.ref) == before


def test_equal_edges_give_an_equal_snapshot_however_they_were_imported(tmp_path: Path) -> None:
    lines = [_line("a", value=1), _line("b", value=2)]
    one, two = KnowledgeStore(tmp_path / "1.db"), KnowledgeStore(tmp_path / "2.db")
    together = one.append(lines)
    for line in lines:
        apart = two.append([line])
    assert together == apart
    one.close()
    two.close()


def test_an_import_is_whole_or_not_at_all(store: KnowledgeStore) -> None:
    def lines() -> Any:
        yield _line("a", value=1)
        raise ValueError("line 2")

    with pytest.raises(ValueError, match="line 2"):
        store.append(lines())
    assert store.snapshot().seq == 0


def test_changed_edges_are_found(store: KnowledgeStore, tmp_path: Path) -> None:
    snapshot = store.append([_line("age_days", value=12)])
    with sqlite3.connect(tmp_path / "deep" / "knowledge.db") as connection:
        connection.execute("UPDATE edge SET value_json = '1'")
    with pytest.raises(EnvironmentRefusal) as refused:
        store.verified(snapshot.ref)
    assert refused.value.code == "snapshot.mismatch"
    with pytest.raises(EnvironmentRefusal):
        store.verified("kg_" + "0" * 64)
