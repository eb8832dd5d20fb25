"""The knowledge graph on disk (docs/reference/pack.md#knowledge)."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from cogcli.agent.stores.knowledge_lines import checked_lines
from cogcli.agent.stores.knowledge_store import KnowledgeStore
from cogcli.base.errors import UnusableEnvironment, UsageError

NOW = "2026-05-04T09:30:00Z"


def _line(predicate: str, subject: str = "order:o1", **members: Any) -> dict[str, Any]:
    base = {
        "subject": subject,
        "predicate": predicate,
        "evidence_ref": f"crm/{subject}",
        "observed_at": NOW,
    }
    return {**base, "trust": "verified", "tenant_id": "acme", **members}


@pytest.fixture
def store(tmp_path: Path) -> Any:
    opened = KnowledgeStore(tmp_path / "deep" / "knowledge.db")
    yield opened
    opened.close()


def _around(store: KnowledgeStore, **members: Any) -> list[tuple[str, Any]]:
    query = {"tenant_id": "acme", "seq": store.snapshot().seq, "hops": 2, "limit": 200, **members}
    return [(edge.predicate, edge.value) for edge in store.find_edges_near(["order:o1"], **query)]


def test_edges_come_back_as_they_were_written(store: KnowledgeStore) -> None:
    store.append([_line("age_days", value=12), _line("customer", object="customer:c1")])
    store.append(
        [_line("region", "customer:c1", value={"name": "eu"}), _line("far", "region:x", value=1)]
    )
    assert _around(store) == [("age_days", 12), ("customer", None), ("region", {"name": "eu"})]
    assert _around(store, hops=1) == [("age_days", 12), ("customer", None)]
    assert _around(store, tenant_id="other") == []
    (first, *_) = store.find_edges_near(["order:o1"], tenant_id="acme", seq=9, hops=1, limit=9)
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
    with pytest.raises(UnusableEnvironment) as refused:
        store.verified(snapshot.ref)
    assert refused.value.code == "snapshot.mismatch"
    with pytest.raises(UnusableEnvironment):
        store.verified("kg_" + "0" * 64)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("trust", "sworn"),
        ("trust", b"verified"),
        ("data_class", "secret"),
        ("observed_at", "yesterday"),
        ("observed_at", "2026-05-04T09:30:00"),
        ("observed_at", ""),
        ("valid_from", "x"),
        ("valid_until", "2026"),
        ("value_json", "NaN"),
        ("value_json", "9007199254740993"),
        ("value_json", b"\xff"),
        ("value_json", "[" * 200 + "]" * 200),
        ("object", b"customer:c1"),
        ("object", "nobody"),
        ("predicate", ""),
        ("evidence_ref", ""),
        ("evidence_ref", "x" * 2000),
    ],
)
def test_an_edge_that_no_import_wrote_is_damage(
    store: KnowledgeStore, tmp_path: Path, column: str, value: Any
) -> None:
    store.append([_line("age_days", value=12)])
    with sqlite3.connect(tmp_path / "deep" / "knowledge.db") as connection:
        connection.execute(f"UPDATE edge SET {column} = ?", (value,))
    with pytest.raises(UnusableEnvironment) as refused:
        _around(store)
    assert refused.value.code == "memory.damaged"


@pytest.mark.parametrize(
    ("column", "value"), [("seq", "x"), ("seq", -5), ("seq", 2**63 - 1), ("hash", b"x")]
)
def test_a_snapshot_that_no_import_wrote_is_damage(
    store: KnowledgeStore, tmp_path: Path, column: str, value: Any
) -> None:
    store.append([_line("age_days", value=12)])
    with sqlite3.connect(tmp_path / "deep" / "knowledge.db") as connection:
        connection.execute("DROP TABLE snapshot")
        connection.execute("CREATE TABLE snapshot (seq, hash)")
        connection.execute("INSERT INTO snapshot VALUES (1, 'x')")
        connection.execute(f"UPDATE snapshot SET {column} = ?", (value,))
    with pytest.raises(UnusableEnvironment) as refused:
        store.snapshot()
    assert refused.value.code == "memory.damaged"


def test_bytes_in_an_edge_are_damage_of_the_snapshot(store: KnowledgeStore, tmp_path: Path) -> None:
    ref = store.append([_line("age_days", value=12)]).ref
    with sqlite3.connect(tmp_path / "deep" / "knowledge.db") as connection:
        connection.execute("UPDATE edge SET subject = x'00ff'")
    with pytest.raises(UnusableEnvironment) as refused:
        store.verified(ref)
    assert refused.value.code == "memory.damaged"


@pytest.mark.parametrize("number", [2, 3, 1000])
def test_a_line_retracts_only_what_was_before_it(store: KnowledgeStore, number: int) -> None:
    before = store.append([_line("age_days", value=12)])
    with pytest.raises(UsageError, match="not an earlier edge"):
        store.append([_line("age_days", retracts=number), _line("total", value=1)])
    assert store.snapshot() == before
    store.append([_line("total", value=1), _line("total", retracts=2)])
    assert _around(store) == [("age_days", 12)]


@pytest.mark.parametrize("until", ["2026-05-04T09:30:00Z", "2026-05-04T11:00:00+02:00"])
def test_a_line_that_is_never_valid_is_refused(until: str) -> None:
    line = {**_line("age_days", value=12), "valid_from": NOW, "valid_until": until}
    with pytest.raises(UsageError, match="expected a time after `valid_from`"):
        list(checked_lines(json.dumps(line).encode(), "lines.jsonl"))
