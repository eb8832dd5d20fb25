"""One compilation in which everything happens, byte by byte (docs/reference/pack.md#compiler).

`whole_context.json` is what it gives, the ledger aside. A change of it is a change of what models see.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cogcli.agent.context.compiler import STAGES, Compilation, compile_context
from cogcli.agent.context.inputs import (
    AgentRequest,
    CompileInput,
    Edge,
    PromotedMemory,
    RunContext,
    User,
)
from cogcli.agent.context.intent import resolve_intent
from cogcli.agent.context.tools import call_data
from cogcli.base.canonical import digest_of
from cogcli.declarations.pack_spec import Pack
from cogcli.policy.pack_policy import Policy
from tests.fakes.support_desk import READ, capability

EXPECTED = Path(__file__).with_name("whole_context.json")
NOW, OLD = "2026-05-04T09:30:00Z", "2026-05-01T09:30:00Z"
BOTH = [
    "parcels.find",
    "parcels.move",
    "parcels.weigh",
    "parcels.burn",
    "parcels.sell",
    "parcels.lose",
    "x.y",
]


def _rule(id: str, capability: str, condition: Any, verdict: str, **then: Any) -> dict[str, Any]:
    return {
        "rule_id": id,
        "mode": "enforce",
        "applies_to": {"capabilities": [capability]},
        "if": condition,
        "then": {"verdict": verdict, **then},
    }


PACK = Pack.of(
    {
        "contract_meta": {"contract_version": "1.0", "issuer": "example.org"},
        "pack_meta": {
            "pack_id": "parcels",
            "pack_version": "1.2.3",
            "tenant": "acme",
            "defaults": {"safety_mode": "destructive", "budget": {"tokens": {"context": 500}}},
            "buckets": {"evidence": 110, "business": 14, "memory": 40, "session": 14},
        },
        "intelligence_refs": {
            "max_edges": 5,
            "freshness_s": {"default": 86400},
            "single_valued": ["size"],
        },
        "business_context": {
            "blocks": [
                {
                    "id": "first",
                    "text": "One is told. Two is left out of it, because there is not enough room for the whole of it.",
                    "priority": 60,
                    "cuttable": True,
                },
                {"id": "second", "text": "Nobody sees this sentence."},
            ]
        },
        "policy_layer": {
            "permissions": [
                {"role": "clerk", "allow": [id for id in BOTH if id != "parcels.lose"]}
            ],
            "guardrails": {
                "must_refuse": [{"id": "card", "pattern": "[0-9]{13}"}],
                "must_escalate": [
                    {"id": "legal", "phrases": ["lawyer"]},
                    {"id": "press", "phrases": ["news"]},
                ],
            },
            "rules": [
                _rule(
                    "ask",
                    "parcels.move",
                    {"==": [{"var": "user.id"}, "ann"]},
                    "allow_with_gate",
                    gate="GATE_X",
                ),
                _rule("no_staff", "parcels.burn", {"!=": [{"var": "user.role"}, "staff"]}, "deny"),
                _rule("heavy", "parcels.sell", {">": [{"var": "parcel.size"}, 3]}, "deny"),
                _rule("unweighed", "parcels.weigh", {">": [{"var": "parcel.weight"}, 9]}, "deny"),
                _rule("late", "parcels.find", {">": [{"var": "args.days"}, 9]}, "deny"),
            ],
        },
        "tooling_layer": {
            "capabilities": {"parcels.find": {"facts": {"parcel.weight": "output.weight"}}}
        },
        "decision_layer": {
            "objectives": [
                {"id": "all", "text": "Be quick."},
                {"id": "this", "text": "Find it.", "intents": ["parcels.trace"]},
                {"id": "other", "text": "Sell more.", "intents": ["parcels.shop"]},
            ],
            "intents": [
                {
                    "id": "parcels.trace",
                    "phrases": ["where"],
                    "slots": {
                        "parcel": {"type": "parcel", "param": "parcel_id", "pattern": "p[0-9]+"}
                    },
                    "capabilities": BOTH,
                },
                {"id": "parcels.shop", "patterns": ["buy .*"], "capabilities": BOTH},
            ],
            "decisions": [
                {
                    "key": "parcels.trace",
                    "required_evidence": ["parcel.size", "parcel.owner", "parcel.tag"],
                }
            ],
        },
        "memory_layer": {"ttl_s": {"episodic": 60}, "top_k": 2},
        "tone_and_comms": {
            "agent": {"role": "clerk", "voice": "calm"},
            "non_negotiables": ["Promise nothing.", "Blame nobody."],
        },
    }
)


def _edge(predicate: str, value: Any = None, subject: str = "parcel:p1", **members: Any) -> Edge:
    given: dict[str, Any] = {
        "observed_at": NOW,
        "trust": "verified",
        "tenant_id": "acme",
        "value": value,
    }
    return Edge(subject, predicate, f"crm/{predicate}/{value}", **{**given, **members})


def _memory(id: str, **members: Any) -> PromotedMemory:
    given: dict[str, Any] = {
        "user_id": "ann",
        "tenant_id": "acme",
        "evidence_refs": (f"run/{id}",),
        **members,
    }
    return PromotedMemory(id, "durable", "preference", "user:ann", "likes", "tea", OLD)._replace(
        **given
    )


def _input(**members: Any) -> CompileInput:
    ids = [id for id in BOTH if id != "x.y"]
    made = {
        id: capability(id, {"days": "integer"}, {"weight": "number"}, properties=READ) for id in ids
    }
    user = User("ann", "guest", ("preference",))
    given: dict[str, Any] = {
        "edges": (
            _edge("size", 4),
            _edge("size", 5),
            _edge("owner", object="person:bob"),
            _edge("name", "Bob", subject="person:bob"),
            _edge("tag", "a"),
            _edge("tag", "b"),
            _edge("weight", 2, observed_at=OLD),
            _edge("secret", 1, tenant_id="other"),
            _edge("note", "x" * 90),
        ),
        "memories": (
            _memory("m4", rank=4.0),
            _memory("m2", rank=2.0, user_id=""),
            _memory("m1", rank=1.0),
            _memory("m0", tier="episodic"),
            _memory("m9", user_id="bob"),
        ),
        "session": ("hello there", "and then a longer one that finds no room"),
        "limits": {"tokens.context": 290.0, "buckets.session": 9.0},
        **members,
    }
    request = AgentRequest(
        "Where is p1? My lawyer asks.", user=user, channel="mail", locale="en", request_id="req_1"
    )
    run = RunContext(
        "run_1", "trace_1", "acme", "destructive", "clerk", now=NOW, snapshot_ref="kg_1"
    )
    return CompileInput(PACK, Policy.of(PACK), request, run, made, **given)


def test_everything_that_can_happen_to_a_context() -> None:
    given = _input()
    found = compile_context(given)
    payload = dict(found.payload)
    ledger = payload.pop("context_ledger")
    assert json.loads(EXPECTED.read_text(encoding="utf-8")) == payload
    assert (found.refused, found.is_overpacked) == ("", False)
    assert ledger == {
        "pack_ref": PACK.ref,
        "snapshot_ref": "kg_1",
        "request_hash": digest_of(given.request.to_payload()),
        "stage_hashes": {name: digest_of(result) for name, result in _results(given).items()},
        "context_hash": digest_of(payload),
    }
    assert found.hash == ledger["context_hash"]


def _results(given: CompileInput) -> dict[str, Any]:
    compilation = Compilation(given)
    return {name: stage(compilation) for name, stage in STAGES.items()}


def test_what_each_stage_is_hashed_of() -> None:
    results = _results(_input())
    assert results["intent"] == {
        "intent": "parcels.trace",
        "refused": "",
        "scores": {"parcels.trace": 1},
        "slots": {"parcel": "parcel:p1"},
        "params": {"parcel_id": "p1"},
    }
    assert results["policy"] == {
        "must_refuse": (),
        "must_escalate": ("legal",),
        "prohibited": {"parcels.burn": "no_staff", "parcels.lose": "permission_denied"},
    }
    before, evidence = results["tools"], results["evidence"]
    assert [tool["capability"] for tool in before["tools"]] == [
        "parcels.find",
        "parcels.move",
        "parcels.weigh",
    ]
    assert [each["capability"] for each in before["redactions"]] == [
        "parcels.burn",
        "parcels.lose",
        "x.y",
        "parcels.sell",
    ]
    assert evidence["surface"] == before
    assert [
        (each["hops"], each["predicate"], each["object"], each["value"])
        for each in evidence["edges"]
    ] == [
        (1, "note", "", "x" * 90),
        (1, "owner", "person:bob", None),
        (1, "size", "", 4),
        (1, "size", "", 5),
        (1, "tag", "", "a"),
    ]
    assert evidence["omitted"] == (
        {"subject": "parcel:p1", "predicate": "tag", "hops": 1, "reason": "max_edges"},
        {"subject": "person:bob", "predicate": "name", "hops": 2, "reason": "max_edges"},
    )
    assert evidence["facts"] == {
        "parcel": {"id": "p1", "owner": "person:bob", "tag": ["a", "b"], "note": "x" * 90}
    }
    assert [gate["status"] for gate in evidence["gates"]] == ["conflict", "satisfied", "satisfied"]
    memory = results["memory"]
    assert [each["memory_id"] for each in memory["memories"]] == ["m1", "m2"]
    assert memory["omitted"] == (
        {"memory_id": "m0", "reason": "expired"},
        {"memory_id": "m9", "reason": "user"},
        {"memory_id": "m4", "reason": "top_k"},
    )
    assert list(results["assembly"]) == ["blocks", "omissions"]
    assert [each["content_hash"][:7] for each in results["assembly"]["blocks"]] == ["sha256:"] * 12
    assert len(results["assembly"]["omissions"]) == 6
    assert results["budget"] == results["manifests"]["budget_report"]["allocations"]


def test_what_rules_see_of_a_call_before_its_arguments_are_known() -> None:
    given = _input(state={"goal": {"task": "x"}})
    facts = {"parcel": {"id": "p1"}, "user": {"id": "eve"}}
    assert call_data(given, resolve_intent(given), facts, "network", "parcels.move") == {
        "parcel": {"id": "p1"},
        "request": {
            "intent": "parcels.trace",
            "message": "Where is p1? My lawyer asks.",
            "channel": "mail",
            "locale": "en",
            "params": {"parcel_id": "p1"},
        },
        "user": {"id": "ann", "role": "guest", "consent": ["preference"]},
        "agent": {"role": "clerk", "voice": ""},
        "run": {"safety_mode": "destructive", "turn": 1, "now": NOW},
        "call": {"capability": "parcels.move", "approval_mode": "network", "step": ""},
        "inputs": {"parcel_id": "p1"},
        "vars": {},
        "outputs": {},
        "state": {"goal": {"task": "x"}},
    }
