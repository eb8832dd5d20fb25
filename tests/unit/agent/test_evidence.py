"""Evidence within its limits (docs/reference/pack.md#evidence)."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.agent.context.evidence import Evidence, KnowledgeQuery, retrieve
from cogcli.agent.context.inputs import Edge
from cogcli.declarations.pack_spec import KnowledgeLimits
from tests.fakes.support_desk import NOW, edge

OLD = "2026-05-01T09:30:00Z"
LIMITS = KnowledgeLimits(
    freshness_s={"default": 604800, "age_days": 86400}, single_valued=("age_days",)
)


def _retrieve(
    *edges: Edge, required: tuple[str, ...] = ("order.age_days",), **members: Any
) -> Evidence:
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


@pytest.mark.parametrize(
    ("others", "status"), [(("ann",), "satisfied"), (("ann", "bob"), "conflict")]
)
def test_an_entity_is_a_value_too(others: tuple[str, ...], status: str) -> None:
    edges = [edge("owner", object=f"person:{name}") for name in others]
    single = LIMITS.replace(single_valued=("owner",))
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
    wider = _retrieve(*chain, required=(), limits=LIMITS.replace(max_hops=3))
    assert [each.edge.predicate for each in wider.found] == ["customer", "order", "region", "tax"]
    assert not _retrieve(*chain, required=(), limits=LIMITS.replace(max_hops=0)).found


def test_what_is_beyond_the_most_edges_is_told() -> None:
    edges = tuple(edge("tag", number, evidence_ref=f"crm/{number}") for number in range(5))
    found = _retrieve(*edges, required=(), limits=LIMITS.replace(max_edges=3))
    assert [each.edge.value for each in found.found] == [0, 1, 2]
    assert [each["reason"] for each in found.omitted] == ["max_edges", "max_edges"]


def test_the_order_does_not_depend_on_that_of_the_store() -> None:
    edges = [
        edge("b", 1),
        edge("a", 2),
        edge("c", object="order:x"),
        edge("d", 4, subject="order:x"),
    ]
    assert _retrieve(*edges, required=()).found == _retrieve(*reversed(edges), required=()).found


def test_a_piece_that_was_left_out_is_told_whole() -> None:
    edges = (
        edge("tag", 1),
        edge("owner", object="person:ann"),
        edge("name", "Ann", subject="person:ann"),
    )
    found = _retrieve(*edges, required=(), limits=LIMITS.replace(max_edges=1))
    assert found.omitted == (
        {"subject": "order:ord_881", "predicate": "tag", "hops": 1, "reason": "max_edges"},
        {"subject": "person:ann", "predicate": "name", "hops": 2, "reason": "max_edges"},
    )
    assert found.is_complete
    everything = _retrieve(*edges, required=(), limits=LIMITS.replace(max_edges=3))
    assert (len(everything.found), everything.omitted) == (3, ())


@pytest.mark.parametrize(
    ("members", "status"),
    [
        ({"observed_at": "2026-05-03T09:30:00Z"}, "satisfied"),
        ({"observed_at": "2026-05-03T09:29:59Z"}, "stale"),
        ({"valid_until": "2026-05-04T09:30:01Z"}, "satisfied"),
        ({"valid_until": "2026-05-04T09:30:00Z"}, "expired"),
        ({"valid_from": "2026-05-04T09:30:00Z"}, "satisfied"),
        ({"valid_from": "2026-05-04T09:30:01Z"}, "expired"),
        ({"trust": "authoritative"}, "satisfied"),
        ({"data_class": "public"}, "satisfied"),
        ({"data_class": "internal"}, "satisfied"),
        ({"observed_at": OLD, "valid_until": OLD}, "expired"),
        ({"observed_at": OLD, "trust": "untrusted"}, "low_trust"),
    ],
)
def test_where_a_piece_stops_being_usable(members: dict[str, Any], status: str) -> None:
    found = _retrieve(edge("age_days", 12, **members))
    assert [gate.status for gate in found.gates] == [status]
    assert bool(found.found) is (status == "satisfied")
    assert found.gates[0].refs == ("crm/order:ord_881/age_days",)


def test_windows_by_predicate_else_the_default_else_none() -> None:
    old = edge("total", 1, observed_at="2026-04-20T09:30:00Z")
    for windows, status in (
        ({"default": 1}, "stale"),
        ({"total": 9_999_999, "default": 1}, "satisfied"),
        ({}, "satisfied"),
    ):
        limits = LIMITS.replace(freshness_s=windows)
        found = _retrieve(old, required=("order.total",), limits=limits)
        assert [gate.status for gate in found.gates] == [status]


def test_of_reasons_the_nearest_to_a_usable_piece_counts() -> None:
    faults = {
        "stale": edge("age_days", 1, observed_at=OLD),
        "low_trust": edge("age_days", 2, trust="untrusted"),
        "expired": edge("age_days", 3, valid_until=OLD),
    }
    for names, worst in (
        (("stale", "low_trust", "expired"), "stale"),
        (("expired", "low_trust"), "low_trust"),
        (("expired", "stale"), "stale"),
    ):
        edges = [faults[name]._replace(evidence_ref=name) for name in names]
        (gate,) = _retrieve(*edges).gates
        assert (gate.status, gate.refs) == (worst, (worst,))


@pytest.mark.parametrize(
    ("stored", "given", "value"),
    [
        ("verified", "verified", 14),
        ("authoritative", "verified", 12),
        ("verified", "authoritative", 14),
    ],
)
def test_what_a_call_gave_supersedes_what_is_no_stronger(
    stored: str, given: str, value: int
) -> None:
    edges = (
        edge("age_days", 12, trust=stored),
        edge("age_days", 13, evidence_ref="run_1/first", trust=given),
        edge("age_days", 14, evidence_ref="run_1/second", trust=given),
        edge("age_days", 15, evidence_ref="run_10/other", trust="untrusted"),
    )
    found = _retrieve(*edges)
    assert found.facts["order"]["age_days"] == value
    assert found.gates[0].status == "satisfied"


def test_the_latest_of_equal_values_stands_for_them() -> None:
    edges = [edge("age_days", 12, evidence_ref=f"crm/{number}") for number in range(3)]
    assert _retrieve(*edges).gates[0].refs == ("crm/2",)
    conflict = [*edges, edge("age_days", 13, evidence_ref="crm/9")]
    assert _retrieve(*conflict).gates[0].refs == ("crm/0", "crm/1", "crm/2", "crm/9")


def test_required_pieces_are_asked_for_once_and_of_slots_that_are_filled() -> None:
    found = _retrieve(
        edge("age_days", 12), required=("order.age_days", "order.age_days", "parcel.size")
    )
    assert [(gate.name, gate.status) for gate in found.gates] == [
        ("order.age_days", "satisfied"),
        ("parcel.size", "missing"),
    ]
    assert not found.is_complete
    assert KnowledgeQuery({}, LIMITS, "acme", "internal", NOW).run_id == ""


def test_two_slots_of_one_entity_and_a_way_back() -> None:
    edges = (
        edge("owner", object="person:ann"),
        edge("order", object="order:ord_881", subject="person:ann"),
    )
    slots = {"order": "order:ord_881", "same": "order:ord_881", "who": "person:ann"}
    found = _retrieve(*edges, required=(), slots=slots)
    assert [(each.edge.predicate, each.hops) for each in found.found] == [
        ("order", 1),
        ("owner", 1),
    ]
    assert found.facts == {
        "order": {"id": "ord_881", "owner": "person:ann"},
        "same": {"id": "ord_881", "owner": "person:ann"},
        "who": {"id": "ann", "order": "order:ord_881"},
    }
    assert Edge("a:1", "p", "ref", NOW)[4:] == (
        "",
        None,
        "",
        "",
        "untrusted",
        "internal",
        "local",
        0,
    )


def test_an_entity_that_two_ways_lead_to_is_looked_at_once() -> None:
    ways = [
        ("order:ord_881", "a:1"),
        ("order:ord_881", "b:1"),
        ("a:1", "c:1"),
        ("b:1", "c:1"),
        ("c:1", "d:1"),
    ]
    edges = [
        edge("to", subject=subject, object=object, evidence_ref=object) for subject, object in ways
    ]
    found = _retrieve(*edges, required=(), limits=LIMITS.replace(max_hops=3))
    assert [(each.edge.object, each.hops) for each in found.found] == [
        ("a:1", 1), ("b:1", 1), ("c:1", 2), ("c:1", 2), ("d:1", 3),
    ]  # fmt: skip


def test_edges_are_ordered_by_their_number_last() -> None:
    edges = [edge("tag", number, seq=number, evidence_ref="crm/tag") for number in (3, 1, 2)]
    assert [each.edge.seq for each in _retrieve(*edges, required=()).found] == [1, 2, 3]


def test_which_entity_it_is_no_edge_says() -> None:
    assert _retrieve(edge("id", "ord_1", trust="authoritative")).facts["order"]["id"] == "ord_881"
