"""Several packs of one request (docs/reference/pack.md#several)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.agent_desk import answer, document, payloads
from support.project import Project, Result

pytestmark = pytest.mark.sampled(8)

DESK, HOUSE = "support-desk@4.0.0", "house-rules@1.0.0"
FILE = "packs/house-rules/1.0.0.yaml"
RULE = """
    - rule_id: small_refunds_only
      mode: enforce
      applies_to: {intents: [support.refund], capabilities: ["payments.*"]}
      if: {">": [{var: args.amount}, 200]}
      then: {verdict: deny}
      tests:
        - {data: {args: {amount: 201}}, expect: match}
        - {data: {args: {amount: 200}}, expect: no_match}
"""
PACK = f"""
contract_meta: {{contract_version: "1.0"}}
pack_meta:
  pack_id: house-rules
  pack_version: 1.0.0
  tenant: globex
  defaults: {{safety_mode: read_only, budget: {{turns: 1}}}}
business_context: {{blocks: [{{id: hours, text: "The desk is closed on Sundays."}}]}}
policy_layer:
  permissions: [{{role: support_agent, allow: [vault.open]}}]
  guardrails:
    must_refuse: [{{id: court, phrases: [sue], reason: We give no legal advice.}}]
    must_escalate: [{{id: press, phrases: [newspaper], gate: GATE_PRESS}}]
  gates:
    GATE_PRESS: {{approver_roles: [press]}}
    GATE_UNUSED: {{approver_roles: [nobody]}}
  rules:{RULE}
tooling_layer: {{hosts: [example.org]}}
decision_layer: {{}}
tone_and_comms: {{agent: {{role: admin, voice: loud}}, non_negotiables: [Shout.]}}
"""


@pytest.fixture
def house(desk: Project) -> Project:
    """The desk with a second pack, which adds a rule, two guardrails and a text, and tries to set more."""
    desk.write(FILE, PACK)
    return desk


def invoke(desk: Project, message: str, *flags: str, refs: tuple[str, ...] = ()) -> Result:
    request = {
        "message": message,
        "user": {"user_id": "cust_7"},
        "pack_refs": refs or (DESK, HOUSE),
    }
    desk.write("r.json", json.dumps(request).encode())
    return desk.run("agent", "invoke", "r.json", *flags, "--json")


def change(desk: Project, old: str, new: str) -> None:
    text = (desk.root / FILE).read_text()
    assert text.count(old) == 1
    desk.write(FILE, text.replace(old, new).encode())


def test_a_rule_of_the_second_pack_decides_and_each_decision_names_its_pack(house: Project) -> None:
    change(house, "vault.open", "orders.lookup")
    house.run("pack", "check", HOUSE).assert_ok()
    house.run("policy", "test", HOUSE).assert_ok()
    result = invoke(house, "Refund order ord_881").assert_exit(4)
    assert result.json["decision"]["status_reason"] == "small_refunds_only"
    decided = [
        (each["capability"], each.get("rule"), each["pack"].partition("#")[0])
        for each in payloads(house.episode, "policy.decided")
    ]
    assert decided == [
        ("orders.lookup", None, DESK),
        ("policy.eval", None, DESK),
        ("payments.refund", "small_refunds_only", HOUSE),
    ]
    decision = document(house.episode, "decision")
    assert [each["pack"].partition("#")[0] for each in decision["policy_decisions"]] == [
        DESK,
        DESK,
        HOUSE,
    ]
    refs = decision["lineage"]["pack_refs"]
    assert [ref.partition("#")[0] for ref in refs] == [DESK, HOUSE]
    assert decision["lineage"]["pack_ref"] not in refs  # its hash is that of both
    house.run("verify", "@last").assert_ok()
    house.run("replay", "@last").assert_ok()
    explained = house.run("policy", "explain", "@last", "--json").assert_ok()
    assert "house-rules@1.0.0" in explained.out


def test_only_texts_rules_and_guardrails_are_added(house: Project) -> None:
    refused = invoke(house, "Where is order ord_881? I will sue you.").assert_exit(4)
    assert refused.json["error"]["message"].endswith("must_refuse:court: We give no legal advice.")
    invoke(house, "Where is order ord_881?").assert_ok()
    (compiled,) = payloads(house.episode, "context.compiled")
    context: dict[str, Any] = compiled["context"]
    blocks = [each["block_id"] for each in context["compiled_prompt"]["context_blocks"]]
    assert {"business:hours", "business:returns"} <= set(blocks)
    prompt = json.dumps(context["compiled_prompt"])
    assert "support_agent" in prompt
    for word in ("Shout", "loud", "admin", "vault.open"):
        assert word not in prompt
    (started,) = payloads(house.episode, "run.started")
    assert started["agent"]["tenant_id"] == "acme"
    assert started["agent"]["limits"]["turns"] == 6
    gate = started["policy"]
    assert gate["with_packs"] == [HOUSE]


def test_a_guardrail_asks_at_the_gate_of_its_own_pack(house: Project) -> None:
    asked = invoke(house, "Where is order ord_881? Or I call a newspaper.").assert_exit(5)
    assert "must_escalate:press" in asked.json["error"]["message"]
    house.run("resume", "@last", "--approve", "GATE_PRESS", "--by", "ann:finance").assert_exit(5)
    house.run("resume", "@last", "--approve", "GATE_PRESS", "--by", "ann:press").assert_ok()
    house.run("replay", "@last").assert_ok()


def test_the_flag_adds_a_pack_to_the_one_of_the_request(house: Project) -> None:
    invoke(house, "Refund order ord_881", "--with-pack", HOUSE, refs=(DESK,)).assert_exit(4)
    shown = house.run("rerun", "@last").assert_exit(2)
    assert f"--with-pack {HOUSE}" in shown.err
    asked = ("agent", "invoke", "--message", "Refund order ord_881", "--user", "cust_7")
    house.run(*asked, "--pack", DESK, "--with-pack", HOUSE).assert_exit(4)
    sued = ("agent", "invoke", "--message", "I will sue you", "--with-pack", HOUSE, "--json")
    house.run(*sued).assert_exit(3)  # the built-in pack has no intent `support.refund`
    change(house, "intents: [support.refund]", 'intents: ["*"]')
    assert "must_refuse:court" in house.run(*sued).assert_exit(4).out
    house.run("replay", "@last").assert_ok()
    skill = ("run", "support.refund", "-p", "order_id=ord_881", "--intent", "support.refund")
    under = (*skill, "--user", "cust_7", "--pack", DESK)
    house.run(*under).assert_exit(5)
    house.run(*under, "--with-pack", HOUSE).assert_exit(4)
    house.run("replay", "@last").assert_ok()
    house.run("run", "support.refund", "-p", "order_id=ord_881", "--with-pack", HOUSE).assert_exit(
        2
    )


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("rule_id: small_refunds_only", "rule_id: refund_limit", "rule `refund_limit`"),
        ("id: court", "id: card", "guardrail of must_refuse `card`"),
        ("id: hours", "id: returns", "business block `returns`"),
        (
            "GATE_PRESS: {approver_roles: [press]}",
            "GATE_PRESS: {approver_roles: [press]}\n    GATE_FINANCE_APPROVAL: {approver_roles: [press]}",
            "",
        ),
        ("{verdict: deny}", "{verdict: allow_with_gate, gate: GATE_NOBODY}", "GATE_NOBODY"),
        ("{var: args.amount}", "{var: oder.total}", "oder.total"),
        ("intents: [support.refund]", "intents: [support.refunds]", "support.refunds"),
    ],
)
def test_packs_that_contradict_each_other_do_not_run(
    house: Project, old: str, new: str, word: str
) -> None:
    change(house, old, new)
    result = invoke(house, "Where is order ord_881?")
    if not word:  # a gate that none of its rules names is not added
        result.assert_ok()
        change(house, "{verdict: deny}", "{verdict: allow_with_gate, gate: GATE_FINANCE_APPROVAL}")
        result, word = invoke(house, "Where is order ord_881?"), "gate `GATE_FINANCE_APPROVAL`"
    assert result.code in (2, 3)
    assert word in result.out


def test_a_changed_second_pack_stops_a_run_that_waits(house: Project) -> None:
    change(house, "args.amount}, 200", "args.amount}, 500")
    waiting = invoke(house, "Refund order ord_881").assert_exit(5)
    change(house, "args.amount}, 500", "args.amount}, 400")
    changed = answer(house, waiting, "--approve").assert_exit(3)
    assert changed.json["error"]["code"] == "resume.changed-specs"
    change(house, "args.amount}, 400", "args.amount}, 500")
    answer(house, waiting, "--approve").assert_ok()
