"""Why a thing is in a context, cut, or out (docs/reference/pack.md#placements)."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.agent.context.compiler import CompiledContext, compile_context
from cogcli.agent.context.inputs import AgentRequest, PromotedMemory, RunContext, User
from cogcli.agent.context.placements import Placement, list_names, placements
from tests.fakes.support_desk import (
    CAPABILITIES,
    NOW,
    capability,
    compile_input,
    edge,
    pack,
    raw_pack,
)

CONSENTING = AgentRequest("Refund order ord_881", user=User("cust_7", consent=("preference",)))
OLD = "2026-05-01T00:00:00Z"
BUSINESS = {
    "blocks": [{"id": "returns", "priority": 80, "cuttable": True, "text": "One. Two two two two."}]
}


def _memory(id: str, **members: Any) -> PromotedMemory:
    given: dict[str, Any] = {"user_id": "cust_7", "tenant_id": "acme", **members}
    return PromotedMemory(id, "durable", "preference", "user:cust_7", "likes", "tea", NOW)._replace(
        **given
    )


def _placed(word: str, **members: Any) -> list[Placement]:
    found = compile_context(compile_input(**members))
    return [each for each in placements(found.compilation) if each.answers_to(word)]


def _why(word: str, **members: Any) -> tuple[str, str, str]:
    (placed,) = _placed(word, **members)
    assert placed.kind in (
        "capability",
        "required",
        "evidence",
        "memory",
        "policy",
        "business",
        "session",
    )
    return placed.status, placed.stage, placed.reason


def _pack(section: str, **members: Any) -> Any:
    return pack(**{section: {**raw_pack()[section], **members}})


MODE = RunContext("run_1", "trace_1", "acme", "read_only", "support_agent", now=NOW)
ONE_ROLE = [{"role": "support_agent", "allow": ["orders.lookup"]}]
STAFF = {
    "rule_id": "staff",
    "mode": "enforce",
    "applies_to": {},
    "if": {"!=": [{"var": "user.role"}, "staff"]},
    "then": {"verdict": "deny"},
    "tests": [],
}


@pytest.mark.parametrize(
    ("word", "members", "expected"),
    [
        ("orders.lookup", {}, ("in", "assembly", "allowed")),
        ("tool:orders.lookup", {}, ("in", "assembly", "allowed")),
        ("payments.refund", {}, ("in", "assembly", "gated")),
        ("payments.refund", {"edges": ()}, ("in", "assembly", "deferred")),
        ("payments.refund", {"edges": (edge("age_days", 31),)}, ("out", "evidence", "refund_window")),
        ("payments.refund", {"run": MODE}, ("out", "policy", "above_safety_mode")),
        ("policy.eval", {"pack": _pack("policy_layer", permissions=ONE_ROLE)}, ("out", "policy", "permission_denied")),
        ("policy.eval", {"pack": _pack("policy_layer", rules=[STAFF])}, ("out", "policy", "staff")),
        ("policy.eval", {"capabilities": {}}, ("out", "tools", "not_usable")),
        ("policy.eval", {"message": "Where is order ord_881?"}, ("out", "tools", "not_in_intent")),
        ("policy.eval", {"message": "Sing"}, ("out", "intent", "unknown_intent")),
        ("policy.eval", {"limits": {"tokens.context": 60}}, ("out", "assembly", "no_room")),
    ],
)  # fmt: skip
def test_a_capability(word: str, members: dict[str, Any], expected: tuple[str, str, str]) -> None:
    assert _why(word, **members) == expected


def test_a_capability_that_the_pack_does_not_name_is_known_by_its_id_and_its_alias() -> None:
    other = capability("orders.cancel", {}, {})
    known = {**CAPABILITIES, "orders.cancel": other, "orders.stop": other}
    for word in ("orders.cancel", "orders.stop"):
        assert _why(word, capabilities=known) == ("out", "tools", "not_in_intent")
    (placed,) = _placed("orders.stop", capabilities=known)
    assert (placed.name, placed.names) == ("orders.cancel", ("orders.stop",))


def test_a_redaction_names_its_check_and_its_rule() -> None:
    (placed,) = _placed("payments.refund", edges=(edge("age_days", 31),))
    assert placed.to_payload() == {
        "kind": "capability", "name": "payments.refund", "status": "out", "stage": "evidence",
        "reason": "refund_window", "block_id": "", "check": "situation", "rule_id": "refund_window",
    }  # fmt: skip
    (unusable,) = _placed("policy.eval", capabilities={})
    assert unusable.details == {"check": "permission"}


def test_a_surfaced_capability_names_gate_and_what_it_waits_for() -> None:
    (gated,) = _placed("payments.refund")
    assert (gated.details["gate"], gated.details["approval_mode"]) == (
        "GATE_OPERATOR",
        "destructive",
    )
    assert "deferred" not in gated.details
    (deferred,) = _placed("payments.refund", edges=())
    assert deferred.details["deferred"] == ["order.age_days"]
    assert "gate" not in deferred.details


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"tenant_id": "other"}, "tenant"),
        ({"data_class": "pii"}, "class"),
        ({"valid_until": OLD}, "expired"),
        ({"trust": "untrusted"}, "low_trust"),
        ({"observed_at": OLD}, "stale"),
        ({"subject": "order:ord_2"}, "unreached"),
    ],
)
def test_an_edge_that_is_out(members: dict[str, Any], reason: str) -> None:
    found = edge("age_days", 12, evidence_ref="crm/1", **members)
    assert _why("crm/1", edges=(found,)) == ("out", "evidence", reason)


def test_edges_past_the_most_are_told_from_those_that_nothing_leads_to() -> None:
    edges = (edge("a", 1), edge("b", 2), edge("a", 3, subject="order:ord_2"))
    few = _pack("intelligence_refs", max_edges=1)
    assert _why("order.a", edges=edges, pack=few) == ("in", "assembly", "hops:1")
    assert _why("order.b", edges=edges, pack=few) == ("out", "evidence", "max_edges")
    assert _why("order:ord_2", edges=edges, pack=few) == ("out", "evidence", "unreached")


def test_an_edge_is_named_by_slot_entity_reference_and_block() -> None:
    for word in ("order:ord_881.total", "crm/order:ord_881/total", "evidence:0001"):
        assert _why(word) == ("in", "assembly", "hops:1")
    assert len(_placed("order:ord_881")) == 2
    (placed,) = _placed("evidence:0001")
    assert placed.details == {
        "subject": "order:ord_881", "predicate": "total", "value": 240, "ref": "crm/order:ord_881/total",
        "observed_at": NOW, "hops": 1, "tokens": placed.details["tokens"], "priority": 70,
    }  # fmt: skip


def test_required_evidence_tells_its_status_beside_its_edges() -> None:
    kinds = {each.kind: each for each in _placed("order.age_days")}
    assert (kinds["required"].status, kinds["required"].details) == (
        "in", {"refs": ["crm/order:ord_881/age_days"]}
    )  # fmt: skip
    assert kinds["evidence"].status == "in"
    assert _why("order.age_days", edges=()) == ("out", "evidence", "missing")


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({}, ("in", "assembly", "recalled")),
        ({"memory_class": "correction"}, ("out", "memory", "consent")),
        ({"user_id": "cust_8"}, ("out", "memory", "user")),
    ],
)
def test_a_memory(members: dict[str, Any], expected: tuple[str, str, str]) -> None:
    given = {"request": CONSENTING, "memories": (_memory("mp_1", **members),)}
    assert _why("mp_1", **given) == _why("user:cust_7", **given) == expected
    (placed,) = _placed("mp_1", **given)
    about = {
        "entity": "user:cust_7",
        "predicate": "likes",
        "class": members.get("memory_class", "preference"),
    }
    assert about.items() <= placed.details.items()


def test_memory_past_the_most_is_out() -> None:
    memories = tuple(_memory(f"mp_{n}", rank=float(n)) for n in range(10))
    assert _why("mp_9", request=CONSENTING, memories=memories) == ("out", "memory", "top_k")


def test_a_text_is_in_cut_or_out_of_room() -> None:
    of = pack(business_context=BUSINESS)
    assert _why("business:returns", pack=of) == ("in", "assembly", "of_pack")
    (whole,) = _placed("business:returns", pack=of)
    assert "of_tokens" not in whole.details
    room = {"tokens.context": 6000, "buckets.business": 9}
    assert _why("business:returns", pack=of, limits={**room, "tokens.context": 110}) == (
        "out",
        "assembly",
        "no_room",
    )
    assert _why("session:0000", session=("hello",)) == ("in", "assembly", "said")
    assert _why("policy:never:00") == ("in", "assembly", "of_pack")


def test_a_cut_text_tells_both_sizes() -> None:
    text = (
        "One two three. "
        + "Four five six seven eight nine ten eleven twelve thirteen fourteen. " * 4
    )
    of = pack(
        business_context={
            "blocks": [{"id": "long", "priority": 80, "cuttable": True, "text": text}]
        }
    )
    whole = compile_context(compile_input(pack=of, edges=()))
    spent = sum(whole.compilation.assembly.used.values())
    (placed,) = _placed("business:long", pack=of, edges=(), limits={"tokens.context": spent - 5})
    assert (placed.status, placed.reason) == ("cut", "cut")
    assert placed.details["tokens"] < placed.details["of_tokens"]


def test_the_words_that_name_something_are_each_there_once() -> None:
    found = compile_context(compile_input())
    words = list_names(placements(found.compilation))
    assert len(words) == len(set(words))
    assert "" not in words
    assert {"payments.refund", "order.age_days", "order:ord_881", "tool:policy.eval"} <= set(words)


def test_every_block_of_a_context_has_one_placement() -> None:
    found: CompiledContext = compile_context(
        compile_input(request=CONSENTING, memories=(_memory("mp_1"),), session=("hello",))
    )
    placed = [each.block_id for each in placements(found.compilation) if each.block_id]
    assert sorted(placed) == sorted(block.block_id for block in found.compilation.candidates)
