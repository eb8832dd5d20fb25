"""Of two declarations of a capability the stricter one, in every member."""

from __future__ import annotations

from itertools import product
from typing import Any, get_args

import pytest

from cogcli.declarations.capability_spec import STRICTNESS, TRUST_RANKS, Capability, OnFail, Safety
from cogcli.specs.extends import find_weakened_safety
from cogcli.specs.stricter import merge_stricter, stricter

EFFECTS: dict[str, dict[str, Any]] = {
    "none": {"side_effects": False},
    "idempotent": {"side_effects": True, "idempotent": True},
    "unknown": {},
    "effect": {"side_effects": True},
}


def capability(safety: dict[str, Any] | None = None, **properties: Any) -> Capability:
    return Capability.of(
        {
            "id": "a.b",
            "version": "1.0.0",
            "description": "",
            "safety": safety,
            "properties": properties,
        }
    )


BLOCKS: list[dict[str, Any]] = [
    {},
    *({"trust_level": level} for level in TRUST_RANKS),
    {"requires_confirmation": True},
    *({key: ["g.a"]} for key in ("mandatory_pre_gates", "mandatory_post_gates")),
    *(
        {"mandatory_pre_gates": [{"capability": "g.a", "on_fail": on_fail}]}
        for on_fail in get_args(OnFail)
    ),
    {
        "mandatory_post_gates": [
            {"capability": "g.b", "on_fail": "require_human", "input": {"text": "input.text"}}
        ]
    },
    {"allowed_targets": ["internal_only"]},
    {"allowed_targets": ["same_tenant"], "scope_constraints": ["no_external_network"]},
    {
        "trust_level": "elevated",
        "requires_confirmation": True,
        "mandatory_pre_gates": ["g.b", "g.a"],
    },
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("present", "earlier"), list(product(BLOCKS, BLOCKS)))
def test_neither_block_asks_for_more_than_the_joined_one(
    present: dict[str, Any], earlier: dict[str, Any]
) -> None:
    joined = stricter(capability(present), capability(earlier)).safety
    assert joined is not None
    assert find_weakened_safety(joined, Safety.of(present)) == []
    assert find_weakened_safety(joined, Safety.of(earlier)) == []
    again = capability(joined.json).safety
    assert again == joined  # what is shown is what holds


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_that_is_gone_still_holds_and_a_new_one_does(block: dict[str, Any]) -> None:
    one, none = capability(block), capability()
    assert stricter(none, one).safety == stricter(one, none).safety == one.safety


@pytest.mark.parametrize(("present", "earlier"), list(product(EFFECTS, EFFECTS)))
def test_the_effect_class_is_the_one_that_promises_less(present: str, earlier: str) -> None:
    found = stricter(capability(**EFFECTS[present]), capability(**EFFECTS[earlier]))
    assert found.effect == max(present, earlier, key=list(EFFECTS).index)


def test_gates_keep_their_places_and_an_input_makes_another_question() -> None:
    earlier = capability({"mandatory_pre_gates": ["g.a", {"capability": "g.b", "on_fail": "warn"}]})
    other = {"capability": "g.a", "input": {"text": "input.other"}}
    present = capability(
        {"mandatory_pre_gates": [other, {"capability": "g.b", "on_fail": "block"}]}
    )
    safety = stricter(present, earlier).safety
    assert safety is not None
    told = [(gate.capability, gate.on_fail, gate.input) for gate in safety.mandatory_pre_gates]
    assert told == [
        ("g.a", "block", None),
        ("g.b", "block", None),
        ("g.a", "block", {"text": "input.other"}),
    ]


def test_what_did_not_change_is_the_same_object() -> None:
    same = capability({"requires_confirmation": True}, side_effects=True)
    assert stricter(same, capability({"requires_confirmation": True}, side_effects=True)) is same
    assert merge_stricter({"a.b": same, "a.c": same}, {"a.b": same})["a.c"] is same


def test_every_answer_to_a_refusing_gate_has_its_strictness() -> None:
    assert sorted(STRICTNESS) == sorted(get_args(OnFail))
