"""Several packs of one request as one pack (docs/reference/pack.md#several)."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.support_desk import pack

from cogcli.base.errors import UsageError
from cogcli.declarations.pack_spec import Pack
from cogcli.policy.pack_composition import compose, view_additions

FINANCE = {"approver_roles": ["finance"]}


def further(name: str, **layer: Any) -> Pack:
    """A pack that adds a rule, a guardrail of each kind and a block, whose ids begin with its name."""
    layer = {
        "rules": [rule(f"{name}_rule")],
        "guardrails": {
            "must_refuse": [{"id": f"{name}_word", "phrases": ["no"]}],
            "must_escalate": [{"id": f"{name}_word", "phrases": ["who"], "gate": "GATE_WORD"}],
        },
        "gates": {"GATE_WORD": FINANCE, "GATE_RULE": FINANCE, "GATE_SPARE": FINANCE},
        **layer,
    }
    read = {
        "contract_meta": {"contract_version": "1.0"},
        "pack_meta": {"pack_id": name, "pack_version": "1.0.0"},
        "business_context": {"blocks": [{"id": f"{name}_block", "text": name}]},
        "policy_layer": layer,
        "tooling_layer": {},
        "decision_layer": {},
    }
    return Pack.of(read).replace(file=f"packs/{name}/1.0.0.yaml", hash=f"sha256:{name}")


def rule(id: str, gate: str = "GATE_RULE") -> dict[str, Any]:
    then = {"verdict": "allow_with_gate", "gate": gate}
    return {"rule_id": id, "mode": "enforce", "if": True, "then": then}


def test_a_pack_alone_is_unchanged() -> None:
    primary = pack()
    assert compose(primary, []) is primary


def test_others_add_rules_guardrails_blocks_and_the_gates_that_these_name() -> None:
    primary = pack()
    layer, found = primary.policy, compose(primary, [further("b"), further("c")])
    assert [each.rule_id for each in found.policy.rules] == [
        *(each.rule_id for each in layer.rules), "b_rule", "c_rule",
    ]  # fmt: skip
    for kind in ("must_refuse", "must_escalate"):
        own = [each.id for each in getattr(layer.guardrails, kind)]
        assert [each.id for each in getattr(found.policy.guardrails, kind)] == [
            *own, "b_word", "c_word",
        ]  # fmt: skip
    blocks = [each.id for each in found.business.blocks]
    assert blocks == [*(each.id for each in primary.business.blocks), "b_block", "c_block"]
    assert set(found.policy.gates) == {*layer.gates, "GATE_RULE", "GATE_WORD"}
    assert found.policy.permissions == layer.permissions
    assert found.parts == (primary.ref, further("b").ref, further("c").ref)
    assert found.rule_packs["b_rule"] == further("b").ref
    assert found.rule_packs[layer.rules[0].rule_id] == primary.ref


def test_rules_of_others_waive_no_gate_and_stay_as_they_are_otherwise() -> None:
    primary = pack()
    lifting = rule("b_rule")
    lifting["then"] = {"verdict": "allow", "without_gate": "small", "obligations": ["evidence"]}
    other = further("b", rules=[lifting, rule("b_other")])
    added = compose(primary, [other]).policy.rules[len(primary.policy.rules) :]
    first, second = other.policy.rules
    assert added == (first.replace(then=first.then.replace(without_gate="")), second)


def test_the_hash_is_of_all_packs_in_their_order() -> None:
    b, c = further("b"), further("c")
    hashes = {compose(pack(), others).hash for others in ([b], [c], [b, c], [c, b])}
    assert len(hashes) == 4


@pytest.mark.parametrize(
    ("layer", "what"),
    [
        ({"rules": [rule("b_rule")]}, "rule `b_rule`"),
        (
            {"guardrails": {"must_refuse": [{"id": "b_word", "phrases": ["x"]}]}},
            "guardrail of must_refuse `b_word`",
        ),
        (
            {"guardrails": {"must_escalate": [{"id": "b_word", "phrases": ["x"]}]}},
            "guardrail of must_escalate `b_word`",
        ),
    ],
)
def test_an_id_of_two_packs_is_refused(layer: dict[str, Any], what: str) -> None:
    with pytest.raises(UsageError) as refused:
        compose(pack(), [further("b"), further("c", **layer)])
    assert refused.value.message == f"{what} is in both packs `b@1.0.0` and `c@1.0.0`"


def test_a_block_of_two_packs_is_refused() -> None:
    b, c = further("b"), further("c")
    again = c.replace(business=c.business.replace(blocks=b.business.blocks))
    with pytest.raises(UsageError) as refused:
        compose(pack(), [b, again])
    told = "business block `b_block` is in both packs `b@1.0.0` and `c@1.0.0`"
    assert refused.value.message == told


def test_a_gate_has_one_meaning_and_its_first_owner_is_named() -> None:
    other = {"GATE_RULE": {"approver_roles": ["legal"]}}
    with pytest.raises(UsageError) as refused:
        compose(pack(), [further("b"), further("c", gates=other)])
    assert refused.value.message == "gate `GATE_RULE` is in both packs `b@1.0.0` and `c@1.0.0`"
    own = "GATE_FINANCE_APPROVAL"
    changed = further("b", rules=[rule("b_rule", own)], gates={own: {"approver_roles": ["legal"]}})
    with pytest.raises(UsageError, match=r"`support-desk@4.0.0` and `b@1.0.0`"):
        compose(pack(), [changed])


def test_the_additions_of_a_pack_are_seen_with_the_rest_of_the_primary_one() -> None:
    primary, other = pack(), further("b")
    found = view_additions(primary, other)
    assert [each.rule_id for each in found.policy.rules] == ["b_rule"]
    assert found.policy.guardrails == other.policy.guardrails
    assert set(found.policy.gates) == {*primary.policy.gates, "GATE_RULE", "GATE_WORD"}
    assert (found.file, found.decisions) == (other.file, primary.decisions)
