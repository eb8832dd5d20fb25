"""What differs between the policies of two packs (docs/reference/pack.md#diff)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from fakes.support_desk import pack, raw_pack

from cogcli.policy.pack_diff import diff_packs


def _changes(change: Callable[[dict[str, Any]], None]) -> list[tuple[str, str, str, list[str]]]:
    raw = copy.deepcopy(raw_pack())
    change(raw)
    found = diff_packs(pack(), pack(**raw))
    return [(each.kind, each.id, each.change, list(each.members)) for each in found]


def test_a_pack_does_not_differ_from_itself_nor_by_its_texts() -> None:
    def texts(raw: dict[str, Any]) -> None:
        raw["business_context"]["blocks"][0]["text"] = "Never."
        raw["policy_layer"]["rules"][0] |= {"rationale": "Because.", "tests": [], "say": "No."}
        raw["policy_layer"]["guardrails"]["must_refuse"][0] |= {"say": "No."}

    assert _changes(lambda raw: None) == _changes(texts) == []


REFUSAL = "policy_layer/guardrails/must_refuse/0/pattern"
EVIDENCE = "decision_layer/decisions/0/required_evidence"


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("policy_layer/rules/0/mode", "shadow", ("rule", "refund_window", "changed", ["mode"])),
        ("policy_layer/rules/1/then", {"verdict": "deny"}, ("rule", "refund_limit", "changed", ["verdict", "gate"])),
        (REFUSAL, "[0-9]{9}", ("guardrail", "must_refuse.card", "changed", ["pattern"])),
        ("policy_layer/permissions/0/allow", ["orders.lookup"], ("permission", "support_agent", "changed", ["allow"])),
        ("tooling_layer/hosts", ["a.example"], ("setting", "hosts", "changed", ["value"])),
        ("policy_layer/read_only_actions", True, ("setting", "read_only_actions", "changed", ["value"])),
        (EVIDENCE, [], ("decision", "support.refund", "changed", ["required_evidence"])),
    ],
)  # fmt: skip
def test_each_part_that_decides_is_compared(
    path: str, value: Any, expected: tuple[str, str, str, list[str]]
) -> None:
    def change(raw: Any) -> None:
        *above, last = [int(part) if part.isdigit() else part for part in path.split("/")]
        for part in above:
            raw = raw[part]
        raw[last] = value

    assert expected in _changes(change)


def test_a_change_says_what_was_and_what_is() -> None:
    raw = copy.deepcopy(raw_pack())
    raw["policy_layer"]["rules"][0]["mode"] = "shadow"
    (change,) = diff_packs(pack(), pack(**raw))
    assert change.to_payload() == {
        "kind": "rule",
        "id": "refund_window",
        "change": "changed",
        "members": {"mode": {"before": "enforce", "after": "shadow"}},
    }


def test_a_policy_that_comes_in_is_told_member_by_member() -> None:
    raw = copy.deepcopy(raw_pack())
    nothing = {
        "policy_layer": {"permissions": [], "rules": []},
        "decision_layer": {},
        "tooling_layer": {},
    }
    bare = pack(**copy.deepcopy(raw | nothing))
    refund, limit = raw["policy_layer"]["rules"]
    limit["then"] |= {"obligations": ["evidence"], "args": {"amount": {"max": 500}}}
    raw["pack_meta"]["defaults"] = {"safety_mode": "execute", "budget": {"turns": 2}}
    raw["policy_layer"]["read_only_actions"] = True
    raw["tooling_layer"]["hosts"] = ["b.example", "a.example"]
    found = diff_packs(bare, pack(**raw))
    after = {
        f"{each.kind} {each.id}": {name: new for name, (_, new) in each.members.items()}
        for each in found
    }
    to_refund = {"capabilities": ["payments.*"], "intents": ["support.refund"]}
    no_then = {"gate": "", "obligations": [], "args": {}, "without_gate": ""}
    gated = {
        "gate": "GATE_FINANCE_APPROVAL",
        "obligations": ["evidence"],
        "args": {"amount": {"max": 500}},
        "without_gate": "",
    }
    operator = {"gate": "GATE_OPERATOR"}
    facts = {"order.age_days": "output.age_days", "order.total": "output.total"}
    calls = ["orders.lookup", "payments.refund", "policy.eval"]
    assert after == {
        "rule refund_window": {
            "mode": "enforce", "applies_to": to_refund, "if": refund["if"], "verdict": "deny", **no_then,
        },
        "rule refund_limit": {
            "mode": "enforce", "applies_to": {"capabilities": ["payments.refund"], "intents": []},
            "if": limit["if"], "verdict": "allow_with_gate", **gated,
        },
        "gate GATE_FINANCE_APPROVAL": {
            "approver_roles": ["finance"], "ttl_s": 86_400, "allow_self": False, "signed": False,
        },
        "guardrail must_refuse.card": {
            "id": "card", "pattern": "[0-9]{13,19}", "phrases": [], "reason": "No card numbers.", **operator,
        },
        "guardrail must_escalate.legal": {
            "id": "legal", "pattern": "", "phrases": ["lawyer"], "reason": "", **operator,
        },
        "permission support_agent": {"allow": calls},
        "capability orders.lookup": {"approval_mode": "", "facts": facts},
        "capability payments.refund": {"approval_mode": "destructive", "facts": {}},
        "intent support.refund": {"capabilities": calls},
        "intent support.order_status": {"capabilities": ["orders.lookup"]},
        "decision support.refund": {"required_evidence": ["order.age_days", "order.total"]},
        "decision support.order_status": {"required_evidence": []},
        "setting safety_mode": {"value": "execute"},
        "setting budget": {"value": {"turns": 2}},
        "setting hosts": {"value": ["a.example", "b.example"]},
        "setting read_only_actions": {"value": True},
    }  # fmt: skip
    settings = [(each.id, each.change) for each in found if each.kind == "setting"]
    assert settings == [
        (id, "changed") for id in ("safety_mode", "budget", "hosts", "read_only_actions")
    ]
    assert {each.change for each in found if each.kind != "setting"} == {"added"}


LIMIT = {
    "id": "total",
    "applies_to": {"capabilities": ["payments.refund"]},
    "sum": "amount",
    "max": 100,
    "per": "user",
}


def test_limits_are_compared_member_by_member() -> None:
    def raw_with(**members: Any) -> dict[str, Any]:
        raw = copy.deepcopy(raw_pack())
        raw["policy_layer"]["limits"] = [{**LIMIT, **members}]
        return raw

    scope = {"capabilities": ["payments.*"], "intents": ["support.refund"]}
    old, new = (
        pack(**raw)
        for raw in (raw_with(say="No."), raw_with(max=50, applies_to=scope, say="Never."))
    )
    (change,) = diff_packs(old, new)
    assert change.to_payload() == {
        "kind": "limit",
        "id": "total",
        "change": "changed",
        "members": {
            "max": {"before": 100, "after": 50},
            "scope": {
                "before": {"capabilities": ["payments.refund"], "intents": []},
                "after": scope,
            },
        },
    }


def test_parts_come_and_go() -> None:
    def change(raw: dict[str, Any]) -> None:
        layer = raw["policy_layer"]
        layer["gates"]["GATE_NEW"] = {"approver_roles": ["legal"]}
        layer["rules"] = [{**layer["rules"][0], "rule_id": "other"}, layer["rules"][1]]

    found = [(kind, id, word) for kind, id, word, _ in _changes(change)]
    assert found == [
        ("rule", "refund_window", "removed"),
        ("rule", "other", "added"),
        ("gate", "GATE_NEW", "added"),
    ]
