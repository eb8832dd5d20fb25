"""Why a thing is in a context, cut, or out (docs/reference/pack.md#placements)."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.agent.context.compiled import STATE, ContextBlock, Omission
from cogcli.agent.context.compiler import CompiledContext, compile_context
from cogcli.agent.context.inputs import (
    AgentRequest,
    Attention,
    PromotedMemory,
    RunContext,
    User,
)
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


AGE, TOTAL = "order:ord_881:age_days", "order:ord_881:total"
ON_AGE = Attention((AGE,), {AGE: 1.0, TOTAL: 0.5, "mp_1": 0.25})


def test_what_attention_leaves_out_is_told_with_its_salience() -> None:
    given = {"request": CONSENTING, "memories": (_memory("mp_1"),), "attention": ON_AGE}
    (age,) = _placed("order:ord_881.age_days", **given)
    assert (age.status, age.reason, age.details["salience"]) == ("in", "hops:1", 1.0)
    (total,) = _placed("order:ord_881.total", **given)
    assert (total.status, total.stage, total.reason) == ("out", "attention", "not_in_focus")
    assert (total.details["salience"], total.details["priority"]) == (0.5, 72)
    (memory,) = _placed("mp_1", **given)
    assert (memory.reason, memory.details["salience"]) == ("not_in_focus", 0.25)
    (unranked,) = _placed("order:ord_881.total", attention=Attention((AGE,), {AGE: 1.0}))
    assert (unranked.status, "salience" in unranked.details) == ("in", False)


def test_salience_weighs_less_than_a_hop() -> None:
    blocks = {
        each.block_id: each.priority
        for each in compile_context(compile_input(attention=ON_AGE)).compilation.candidates
    }
    assert blocks["evidence:0000"] == 74


def test_what_a_call_of_the_run_gave_is_in_focus_whatever_its_salience() -> None:
    edges = (edge("age_days", 12), edge("total", 240, evidence_ref="run_1/orders.lookup"))
    (total,) = _placed("order:ord_881.total", edges=edges, attention=ON_AGE)
    assert (total.status, total.reason) == ("in", "hops:1")


ATTACHED = AgentRequest(
    "Refund order ord_881",
    user=User("cust_7"),
    attachments=(
        {"name": "a.jpg", "media_type": "image/jpeg", "bytes": 5},
        {"name": "b.jpg", "uri": "file:b"},
    ),
)


def test_a_held_attachment_is_out_of_the_prompt_and_an_omission() -> None:
    given = {"request": ATTACHED, "attention": Attention(held_attachments=(1,))}
    (first,), (second,) = (_placed(word, **given) for word in ("a.jpg", "attachment:1"))
    assert (first.kind, first.name, first.status) == ("attachment", "attachment:0", "in")
    assert (first.stage, first.reason, first.details) == ("assembly", "said", {"file": "a.jpg"})
    assert (second.status, second.stage, second.reason) == ("out", "attention", "held")
    payload = compile_context(compile_input(**given)).payload
    shown = payload["compiled_prompt"]["task"]["attachments"]
    assert shown == [{"name": "a.jpg", "media_type": "image/jpeg"}]
    (omission,) = payload["budget_report"]["omissions"]
    assert (omission["block_id"], omission["bucket"]) == ("attachment:1", "request")
    assert (omission["reason"], omission["priority"]) == ("held", 0)
    assert omission["tokens"] > 0
    nothing = compile_context(compile_input()).payload["compiled_prompt"]["task"]
    assert "attachments" not in nothing


def test_lines_of_the_state_that_the_prompt_lacks_or_cuts() -> None:
    lines = (
        Omission("result:1", STATE, 0, 40, "no_room"),
        Omission("result:2", STATE, 0, 7, "cut"),
    )
    compiled = compile_context(compile_input(state_omissions=lines))
    placed = [each for each in placements(compiled.compilation) if each.kind == STATE]
    assert [(each.name, each.status, each.stage, each.reason) for each in placed] == [
        ("result:1", "out", "assembly", "no_room"),
        ("result:2", "cut", "assembly", "cut"),
    ]
    assert [each.details for each in placed] == [{"missing_tokens": 40}, {"missing_tokens": 7}]
    assert all(each.answers_to(each.block_id) for each in placed)
    report = compiled.payload["budget_report"]
    assert (report["truncated"], report["bucket_truncations"][STATE]) == (True, 2)


def test_the_summary_of_a_session_is_told_as_cut_with_its_messages() -> None:
    summary = ContextBlock("s", "session", "They greeted.", 0, 5, ("m1", "m2"))
    cut = Omission("session:old", "session", 0, 90, "summarized")
    given = {"summary": summary, "summary_cut": cut, "session": ("hello",)}
    (placed,) = _placed("session:summary", **given)
    assert (placed.kind, placed.status, placed.reason) == ("session", "cut", "summarized")
    assert placed.details["messages"] == ["m1", "m2"]
    assert _why("session:0001", **given) == ("in", "assembly", "said")
    compiled = compile_context(compile_input(**given))
    blocks = {each.block_id: each for each in compiled.compilation.candidates}
    assert "summary of the messages 1 to 2: They greeted." in blocks["session:summary"].content
    assert (blocks["session:summary"].priority, blocks["session:0001"].priority) == (40, 41)
    assert [each["block_id"] for each in compiled.payload["budget_report"]["omissions"]] == [
        "session:old"
    ]


def test_a_request_says_where_it_came_from_as_far_as_that_is_known() -> None:
    asked = AgentRequest("Refund order ord_881", user=User("cust_7"), channel="mail", locale="de")
    given = compile_input(request=asked, session_signals={"session_id": "s1"})
    task = compile_context(given).payload["compiled_prompt"]["task"]
    origin = {"channel": "mail", "locale": "de", "session": {"session_id": "s1"}}
    assert origin.items() <= task.items()
    first = compile_context(given._replace(edition=1)).payload["compiled_prompt"]["task"]
    assert not origin.keys() & first.keys()
    silent = compile_context(compile_input(request=asked._replace(channel="", locale="")))
    assert not origin.keys() & silent.payload["compiled_prompt"]["task"].keys()


@pytest.mark.parametrize(("reserved", "overpacked"), [(6000, True), (6001, True), (0, False)])
def test_a_prompt_that_leaves_no_room_is_overpacked(reserved: int, overpacked: bool) -> None:
    compiled = compile_context(compile_input(reserved=reserved))
    assert compiled.is_overpacked is overpacked
    report = compiled.payload["budget_report"]
    assert report.get("reserved", 0) == reserved
    if overpacked:
        assert sum(compiled.compilation.assembly.used.values()) == 0
