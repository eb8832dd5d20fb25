"""What is different between two contexts (docs/reference/pack.md#placements)."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.agent.context.compiler import STAGES, CompiledContext, compile_context
from cogcli.agent.context.difference import difference
from cogcli.agent.context.inputs import AgentRequest, PromotedMemory, User
from tests.fakes.support_desk import (
    CAPABILITIES,
    NOW,
    READ,
    capability,
    compile_input,
    edge,
    pack,
    raw_pack,
)

CONSENTING = AgentRequest("Refund order ord_881", user=User("cust_7", consent=("preference",)))
LONG = (
    "One two three. " + "Four five six seven eight nine ten eleven twelve thirteen fourteen. " * 4
)
AGE, TOTAL = edge("age_days", 12), edge("total", 240)


def _context(**members: Any) -> CompiledContext:
    return compile_context(compile_input(**members))


def _blocks(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    found = difference(_context(**before), _context(**after))
    return [(each.change, each.name, each.stage, each.reason) for each in found.blocks]


def _long(text: str = LONG) -> Any:
    return pack(
        business_context={
            "blocks": [{"id": "long", "priority": 80, "cuttable": True, "text": text}]
        }
    )


def _memory(id: str) -> PromotedMemory:
    return PromotedMemory(
        id,
        "durable",
        "preference",
        "user:cust_7",
        "likes",
        "tea",
        NOW,
        user_id="cust_7",
        tenant_id="acme",
    )


RECALLED: dict[str, Any] = {"memories": (_memory("mp_1"),)}


def test_two_equal_contexts_are_the_same() -> None:
    found = difference(_context(), _context())
    assert (found.is_identical, found.blocks, found.ledger) == (True, (), ())
    assert found.to_payload() == {"same": True, "blocks": [], "ledger": []}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"edges": (AGE,)}, {"edges": (AGE, TOTAL)}, ("in", "order.total", "evidence", "not_fetched")),
        ({"edges": (AGE, TOTAL)}, {"edges": (AGE,)}, ("out", "order.total", "evidence", "not_fetched")),
        (
            {"edges": (AGE, TOTAL)},
            {"edges": (AGE, TOTAL._replace(trust="untrusted"))},
            ("out", "order.total", "evidence", "low_trust"),
        ),
        (
            {"edges": (AGE, TOTAL._replace(trust="untrusted"))},
            {"edges": (AGE, TOTAL)},
            ("in", "order.total", "evidence", "low_trust"),
        ),
        ({"request": CONSENTING}, {"request": CONSENTING, **RECALLED}, ("in", "mp_1", "memory", "not_fetched")),
        (RECALLED, {"request": CONSENTING, **RECALLED}, ("in", "mp_1", "memory", "consent")),
        ({}, {"session": ("hello",)}, ("in", "session:0000", "assembly", "not_said")),
        ({"pack": pack(business_context={})}, {}, ("in", "business:returns", "assembly", "not_in_pack")),
        ({"session": ("hello",)}, {"session": ("hi",)}, ("changed", "session:0000", "assembly", "other_text")),
    ],
)  # fmt: skip
def test_a_block_that_differs(
    before: dict[str, Any], after: dict[str, Any], expected: tuple[str, str, str, str]
) -> None:
    assert _blocks(before, after) == [expected]


def test_a_capability_that_only_one_side_knows_of() -> None:
    layers = raw_pack()
    (refund, *others) = layers["decision_layer"]["intents"]
    refund = {**refund, "capabilities": [*refund["capabilities"], "orders.cancel"]}
    more = pack(
        decision_layer={**layers["decision_layer"], "intents": [refund, *others]},
        policy_layer={
            **layers["policy_layer"],
            "permissions": [{"role": "support_agent", "allow": refund["capabilities"]}],
        },
    )
    known = {**CAPABILITIES, "orders.cancel": capability("orders.cancel", {}, {}, properties=READ)}
    assert _blocks({}, {"pack": more, "capabilities": known}) == [
        ("in", "orders.cancel", "tools", "unknown")
    ]


def test_a_statement_with_another_value_is_another_one() -> None:
    assert _blocks({"edges": (AGE, TOTAL)}, {"edges": (AGE, TOTAL._replace(value=250))}) == [
        ("out", "order.total", "evidence", "not_fetched"),
        ("in", "order.total", "evidence", "not_fetched"),
    ]


def test_what_is_out_on_both_sides_is_no_difference_of_blocks() -> None:
    found = difference(_context(memories=(_memory("mp_1"),)), _context(memories=()))
    assert found.blocks == ()
    assert [each.member for each in found.ledger] == ["stage_hashes.memory"]


def test_a_cut_block_is_shorter_and_then_longer() -> None:
    whole = {"pack": _long(), "edges": ()}
    spent = sum(_context(**whole).compilation.assembly.used.values())
    cut = {**whole, "limits": {"tokens.context": spent - 5}}
    assert _blocks(whole, cut) == [("shorter", "business:long", "assembly", "cut")]
    assert _blocks(cut, whole) == [("longer", "business:long", "assembly", "cut")]
    shorter = {**whole, "limits": {"tokens.context": spent - 25}}
    assert _blocks(cut, shorter) == [("shorter", "business:long", "assembly", "cut")]
    (change,) = difference(_context(**whole), _context(**cut)).blocks
    assert change.to_payload() == {
        "change": "shorter", "kind": "business", "name": "business:long", "stage": "assembly", "reason": "cut",
        "tokens": list(change.tokens),
    }  # fmt: skip
    assert change.tokens[0] is not None
    assert change.tokens[1] is not None
    assert change.tokens[0] > change.tokens[1]


def test_a_block_without_room_is_out_for_that() -> None:
    whole = {"pack": _long("One two three four five six."), "edges": ()}
    spent = sum(_context(**whole).compilation.assembly.used.values())
    found = _blocks(whole, {**whole, "limits": {"tokens.context": spent - 5}})
    assert found == [("out", "business:long", "assembly", "no_room")]


def test_a_tool_that_waits_for_facts_no_more_says_so() -> None:
    changes = difference(_context(edges=()), _context()).blocks
    tools = {
        each.name: (each.change, each.stage, each.reason)
        for each in changes
        if each.kind == "capability"
    }
    assert tools == {"payments.refund": ("changed", "evidence", "gated")}


def test_a_tool_with_another_text_is_changed_by_the_tools() -> None:
    given = compile_input()
    lookup = given.capabilities["orders.lookup"].replace(description="Another text.")
    other = compile_context(
        given._replace(capabilities={**given.capabilities, "orders.lookup": lookup})
    )
    (change,) = difference(compile_context(given), other).blocks
    assert (change.change, change.name, change.stage, change.reason) == (
        "changed", "orders.lookup", "tools", "other_text"
    )  # fmt: skip


def test_evidence_that_only_moved_is_the_same() -> None:
    other = edge("aaa", 1)
    assert _blocks({"edges": (AGE, TOTAL)}, {"edges": (other, AGE, TOTAL)}) == [
        ("in", "order.aaa", "evidence", "not_fetched")
    ]


def test_the_ledger_names_each_member_that_differs() -> None:
    before, after = _context(), _context(message="Refund order ord_881, please")
    members = {each.member: (each.before, each.after) for each in difference(before, after).ledger}
    ledger = before.payload["context_ledger"]
    assert members.keys() >= {"request_hash", "context_hash", "stage_hashes.manifests"}
    assert members["request_hash"] == (
        ledger["request_hash"], after.payload["context_ledger"]["request_hash"]
    )  # fmt: skip
    assert not members.keys() - {
        "request_hash",
        "context_hash",
        *(f"stage_hashes.{name}" for name in STAGES),
    }
