"""Evidence within its limits (docs/reference/pack.md#evidence)."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.context.evidence import Evidence, KnowledgeQuery, retrieve
from cogcli.context.inputs import Edge
from cogcli.specs.pack import KnowledgeLimits
from tests.fakes.support_desk import NOW, edge

OLD = "2026-05-01T09:30:00Z"
LIMITS = KnowledgeLimits(2, 200, "verified", {"default": 604800, "age_days": 86400}, ("age_days",))


def _retrieve(*edges: Edge, required: tuple[str, ...] = ("order.age_days",), **members: Any) -> Evidence:
    limits = members.pop("limits", LIMITS)
    query = KnowledgeQuery({"order": "order:ord_881"}, limits, "acme", "internal", NOW, "run_1")
    return retrieve(edges, query._replace(**members), required)


@pytest.mark.parametrize(
    ("edges", "status"),
    [
        ([edge("age_days", 12)], "satisfied"),
        ([], "missing"),
        ([edge("total", 1)], "missing"),
        ([edge("age_days", 12, subject="order:ord_882")], "missing"),
        ([edge("age_days", 12, tenant_id="other")], "missing"),
        ([edge("age_days", 12, data_class="pii")], "missing"),
        ([edge("age_days", 12, observed_at=OLD)], "stale"),
        ([edge("age_days", 12, valid_until=NOW)], "expired"),
        ([edge("age_days", 12, valid_from="2027-01-01T00:00:00Z")], "expired"),
        ([edge("age_days", 12, trust="untrusted")], "low_trust"),
        ([edge("age_days", 12), edge("age_days", 13)], "conflict"),
        ([edge("age_days", 12), edge("age_days", 12)], "satisfied"),
        ([edge("age_days", 12), edge("age_days", 13, trust="authoritative")], "satisfied"),
        ([edge("age_days", 12), edge("age_days", 99, observed_at=OLD)], "satisfied"),
        ([edge("age_days", 12), edge("age_days", 14, evidence_ref="run_1/order")], "satisfied"),
        ([edge("age_days", 12, valid_until=NOW), edge("age_days", 12, observed_at=OLD)], "stale"),
    ],
)
def test_the_state_of_a_required_piece(edges: list[Edge], status: str) -> None:
    found = _retrieve(*edges)
    assert [gate.status for gate in found.gates] == [status]
    assert found.is_complete is (status == "satisfied")
    assert ("age_days" in found.facts["order"]) is (status == "satisfied")


def test_a_call_of_this_run_supersedes_what_was_stored() -> None:
    found = _retrieve(edge("age_days", 12), edge("age_days", 14, evidence_ref="run_1/order"))
    assert found.facts == {"order": {"id": "ord_881", "age_days": 14}}
    assert found.gates[0].refs == ("run_1/order",)


def test_of_several_values_the_strongest_count() -> None:
    found = _retrieve(edge("tag", "a"), edge("tag", "b"), edge("tag", "a"), required=())
    assert found.facts["order"]["tag"] == ["b", "a"]


@pytest.mark.parametrize(("others", "status"), [(("ann",), "satisfied"), (("ann", "bob"), "conflict")])
def test_an_entity_is_a_value_too(others: tuple[str, ...], status: str) -> None:
    edges = [edge("owner", object=f"person:{name}") for name in others]
    single = LIMITS._replace(single_valued=("owner",))
    found = _retrieve(*edges, required=("order.owner",), limits=single)
    assert [gate.status for gate in found.gates] == [status]
    several = _retrieve(*edges, edges[0], required=())
    stated = [f"person:{name}" for name in (*others[1:], others[0])]
    assert several.facts["order"]["owner"] == (stated if len(stated) > 1 else stated[0])


def test_edges_are_followed_breadth_first_within_hops() -> None:
    chain = (
        edge("customer", object="customer:c1"),
        edge("region", subject="customer:c1", object="region:eu"),
        edge("tax", 0.2, subject="region:eu"),
        edge("order", subject="customer:c1", object="order:ord_881"),
    )
    found = _retrieve(*chain, required=())
    assert [(each.hops, each.edge.predicate) for each in found.found] == [
        (1, "customer"),
        (2, "order"),
        (2, "region"),
    ]
    wider = _retrieve(*chain, required=(), limits=LIMITS._replace(max_hops=3))
    assert [each.edge.predicate for each in wider.found] == ["customer", "order", "region", "tax"]
    assert not _retrieve(*chain, required=(), limits=LIMITS._replace(max_hops=0)).found


def test_what_is_beyond_the_most_edges_is_told() -> None:
    edges = tuple(edge("tag", number, evidence_ref=f"crm/{number}") for number in range(5))
    found = _retrieve(*edges, required=(), limits=LIMITS._replace(max_edges=3))
    assert [each.edge.value for each in found.found] == [0, 1, 2]
    assert [each["reason"] for each in found.omitted] == ["max_edges", "max_edges"]


def test_the_order_does_not_depend_on_that_of_the_store() -> None:
    edges = [edge("b", 1), edge("a", 2), edge("c", object="order:x"), edge("d", 4, subject="order:x")]
    assert _retrieve(*edges, required=()).found == _retrieve(*reversed(edges), required=()).found
