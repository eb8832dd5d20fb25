"""Recalled memory (docs/reference/pack.md#memory)."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.agent.context.inputs import PromotedMemory, User
from cogcli.agent.context.memory import fault_of, recall
from cogcli.declarations.pack_spec import MemoryLayer
from tests.fakes.support_desk import NOW

USER = User("cust_7", consent=("preference",))
LAYER = MemoryLayer(ttl_s={"durable": 1000}, top_k=2)


def _memory(id: str, **members: Any) -> PromotedMemory:
    given: dict[str, Any] = {"user_id": "cust_7", "tenant_id": "acme", **members}
    return PromotedMemory(id, "durable", "preference", "user:cust_7", "likes", "tea", NOW)._replace(
        **given
    )


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"tenant_id": "other"}, "tenant"),
        ({"user_id": "cust_8"}, "user"),
        ({"memory_class": "correction"}, "consent"),
        ({"data_class": "pii"}, "class"),
        ({"promoted_at": "2026-05-04T09:13:19Z"}, "expired"),
    ],
)
def test_what_may_not_be_recalled_is_left_out_with_its_reason(
    members: dict[str, Any], reason: str
) -> None:
    found = recall([_memory("m1", **members)], LAYER, USER, tenant_id="acme", now=NOW)
    assert found.memories == ()
    assert found.omitted == ({"memory_id": "m1", "reason": reason},)


def test_the_nearest_are_kept_and_ties_go_by_id() -> None:
    ranks = {"m3": 1.0, "m2": 2.0, "m1": 1.0, "m0": 9.0}
    memories = [_memory(id, rank=rank, user_id="") for id, rank in ranks.items()]
    found = recall(memories, LAYER, USER, tenant_id="acme", now=NOW)
    assert [memory.memory_id for memory in found.memories] == ["m1", "m3"]
    assert [each["memory_id"] for each in found.omitted] == ["m2", "m0"]


@pytest.mark.parametrize(
    "members",
    [
        {"promoted_at": "2026-05-04T09:13:20Z"},
        {"data_class": "internal"},
        {"data_class": "public"},
        {"user_id": ""},
        {"tier": "episodic", "promoted_at": "2001-05-04T09:13:19Z"},
    ],
)
def test_what_may_still_be_recalled(members: dict[str, Any]) -> None:
    memory = _memory("m1", **members)
    found = recall([memory], LAYER, USER, tenant_id="acme", now=NOW)
    assert (found.memories, found.omitted) == ((memory,), ())
    assert fault_of(memory, LAYER, USER, "acme", NOW) == ""


def test_the_first_reason_counts_and_the_order_is_kept() -> None:
    wrong = _memory("m1", tenant_id="other", user_id="cust_8", memory_class="correction")
    kept = [_memory(id) for id in ("m4", "m3", "m2")]
    found = recall([wrong, *kept], LAYER, USER, tenant_id="acme", now=NOW)
    assert [each.memory_id for each in found.memories] == ["m2", "m3"]
    assert found.omitted == (
        {"memory_id": "m1", "reason": "tenant"},
        {"memory_id": "m4", "reason": "top_k"},
    )
    assert PromotedMemory("m", "t", "c", "e", "p", 1, NOW)[7:] == ("", "local", "internal", (), 0.0)


def test_the_topics_of_a_session_are_recalled_in_it_alone() -> None:
    topic = _memory("m1", tier="working", entity="session:s1")
    assert fault_of(topic, LAYER, USER, "acme", NOW, "s1") == ""
    assert fault_of(topic, LAYER, USER, "acme", NOW, "s2") == "session"
    assert fault_of(topic, LAYER, USER, "acme", NOW) == "session"
    found = recall([topic], LAYER, USER, tenant_id="acme", now=NOW, session_id="s1")
    assert (found.memories, found.omitted) == ((topic,), ())


def test_the_most_salient_are_recalled_before_the_nearest() -> None:
    memories = [_memory(f"m{number}", rank=float(number)) for number in range(4)]
    salience = {"m3": 0.9, "m2": 0.4}
    found = recall(memories, LAYER, USER, tenant_id="acme", now=NOW, salience=salience)
    assert [each.memory_id for each in found.memories] == ["m3", "m2"]
    assert [each["memory_id"] for each in found.omitted] == ["m0", "m1"]
