"""The texts of a context before any of them is left out (docs/reference/pack.md#compiler)."""

from __future__ import annotations

from cogcli.agent.context.blocks import candidates
from cogcli.agent.context.compiled import ContextBlock, Redaction
from cogcli.agent.context.evidence import Evidence, RelatedEdge
from cogcli.agent.context.inputs import PromotedMemory
from cogcli.agent.context.memory import Recall
from cogcli.agent.context.tools import Surface, SurfacedTool
from tests.fakes.support_desk import NOW, compile_input, edge, pack

TOOLS = (
    SurfacedTool("orders.lookup", "read_only", "GATE_A"),
    SurfacedTool("payments.refund", "destructive", "GATE_B", ("order.age_days", "order.total")),
)


def _made() -> dict[str, ContextBlock]:
    given = compile_input(
        session=("hello", "again"), pack=pack(tone_and_comms={"non_negotiables": ["Be brief."]})
    )
    memories = tuple(
        PromotedMemory(f"m{n}", "durable", "preference", "user:u", "likes", "tea", NOW)
        for n in (1, 2)
    )
    evidence = Evidence(
        tuple(RelatedEdge(edge("total", hops), hops) for hops in (1, 2, 3)), (), {}, ()
    )
    found = candidates(given, Surface(TOOLS, ()), evidence, Recall(memories, ()))
    return {block.block_id: block for block in found}


def test_what_is_nearer_counts_for_more_and_policy_and_tools_for_most() -> None:
    assert [(id, block.bucket, block.priority) for id, block in _made().items()] == [
        ("policy:never:00", "policy", 90),
        ("policy:gates", "policy", 90),
        ("tool:orders.lookup", "tool", 80),
        ("tool:payments.refund", "tool", 80),
        ("evidence:0000", "evidence", 70),
        ("evidence:0001", "evidence", 65),
        ("evidence:0002", "evidence", 60),
        ("business:returns", "business", 80),
        ("memory:m1", "memory", 50),
        ("memory:m2", "memory", 49),
        ("session:0000", "session", 40),
        ("session:0001", "session", 41),
    ]


def test_how_far_a_text_is_trusted() -> None:
    trust = {
        id: (block.trust, block.treatment)
        for id, block in _made().items()
        if not id.endswith(("1", "2"))
    }
    ours = ("authoritative", "instruction")
    assert trust == {
        "policy:never:00": ours,
        "policy:gates": ours,
        "tool:orders.lookup": ours,
        "tool:payments.refund": ours,
        "business:returns": ours,
        "evidence:0000": ("verified", "data_only"),
        "session:0000": ("untrusted", "data_only"),
    }
    assert _made()["memory:m1"].trust == "verified"


def test_what_is_said_of_gates_and_of_facts_that_come_first() -> None:
    made = _made()
    gates = "orders.lookup waits for GATE_A; payments.refund waits for GATE_B"
    assert made["policy:gates"].content == f"A person decides: {gates}."
    assert " Needs first: order.age_days, order.total. " in made["tool:payments.refund"].content


def test_a_block_is_ours_unless_it_says_otherwise() -> None:
    assert ContextBlock("b", "business", "x", 1, 2, ("r",)).to_payload() == {
        "block_id": "b",
        "bucket": "business",
        "content": "x",
        "priority": 1,
        "tokens": 2,
        "provenance_refs": ["r"],
        "trust": "authoritative",
        "treatment": "instruction",
        "truncated": False,
        "content_hash": "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
    }
    assert not ContextBlock("b", "business", "x", 1, 2).cuttable
    assert SurfacedTool("a.b", "network")[2:] == ("", ())
    assert Redaction("a.b", "rule", "r").to_payload() == {
        "capability": "a.b",
        "check": "rule",
        "reason": "r",
    }
