"""The policy beside a second one, which was written from the rules by somebody who had not read the first: over random
packs, roles, facts and arguments both say the same, for the same reason (docs/reference/pack.md#checks)."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest
from fakes.support_desk import raw_pack
from reference_gate import decide

from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.pack_spec import MODES, VERDICTS, Pack, PackTool
from cogcli.policy.operators import OPERATORS
from cogcli.policy.pack_policy import GovernedCall, Policy
from cogcli.policy.verdict import approval_mode

pytestmark = pytest.mark.sampled(6)

LONG = bool(os.environ.get("COGCLI_LONG_TESTS"))
PARTS = range(5 if LONG else 1)
"""Each part has minutes of its own in a long run."""
CALLS = 200_000 if LONG else 6_000
"""The calls of one part: a million in a long run."""
PATHS = "order.age order.total args.amount args.kind user.role request.intent run.turn vars.x no.no".split()
VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    12,
    31,
    2.5,
    "",
    "staff",
    "12",
    [],
    [1, 2],
    ["a"],
    {},
    {"k": 1},
]
CAPABILITIES = ["orders.lookup", "payments.refund", "mail.send"]


class Draw:
    """Random packs and calls; equal seeds draw equal ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def one(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def most(self, choices: list[Any]) -> list[Any]:
        """All of them, mostly."""
        return choices if self.random.random() < 0.8 else self.some(choices)

    def some(self, choices: list[Any]) -> list[Any]:
        return self.random.sample(choices, self.random.randint(0, len(choices)))

    def rule_body(self, depth: int) -> Any:
        """A condition: mostly sensible, sometimes no rule at all."""
        if depth == 0 or self.random.random() < 0.3:
            return self.comparison()
        kind = self.random.random()
        if kind < 0.5:
            name = self.one("and", "or")
            return {name: [self.rule_body(depth - 1) for _ in range(self.one(1, 2, 3))]}
        if kind < 0.6:
            return {"!": [self.rule_body(depth - 1)]}
        if kind < 0.7:
            return {
                "if": [
                    self.rule_body(depth - 1),
                    self.rule_body(depth - 1),
                    self.rule_body(depth - 1),
                ]
            }
        if kind < 0.8:
            return {self.one("!", "!!"): [{"missing": self.some(PATHS)}]}
        if kind < 0.9:
            items = self.one(
                {"var": "order.lines"}, [1, 2, 3], {"merge": [[1], {"var": "order.lines"}]}
            )
            return {
                self.one("some", "all", "none"): [
                    items,
                    {self.one("<", ">="): [{"var": ""}, self.one(0, 2, "x")]},
                ]
            }
        return self.one(True, "yes", {"log": 1}, {"==": [1]}, {}, {"var": {"cat": ["a"]}}, [], None)

    def anything(self, depth: int) -> Any:
        """A call of any operator, with arguments of any kind."""
        if depth == 0:
            return self.one(
                self.one(*VALUES), {"var": self.one(*PATHS, "")}, {"var": [self.one(*PATHS), None]}
            )
        name = self.one(*OPERATORS)
        least, most, _ = OPERATORS[name]
        count = self.random.randint(least, min(most or 3, least + 2))
        arguments = [self.anything(self.random.randint(0, depth - 1)) for _ in range(count)]
        if name == "var":
            arguments[0] = self.one(*PATHS)
        return {name: arguments}

    def comparison(self) -> Any:
        if self.random.random() < 0.15:
            return self.one({"==": [self.anything(2), self.anything(1)]}, self.anything(3))
        if self.random.random() < 0.6:  # of numbers that are mostly there
            path = {"var": self.one("order.age", "args.amount", "run.turn")}
            return {self.one("==", "!=", "<", "<=", ">", ">="): [path, self.one(0, 12, 31, 240)]}
        name = self.one("==", "!=", "<", "<=", ">", ">=", "in", "===")
        path = self.one(*PATHS)
        var = {"var": path if self.random.random() < 0.9 else [path, self.one(*VALUES)]}
        other = self.one(
            self.one(*VALUES), {"var": self.one(*PATHS)}, {"+": [{"var": self.one(*PATHS)}, 1]}
        )
        return {name: [var, other]}

    def rule(self, number: int) -> dict[str, Any]:
        then: dict[str, Any] = {"verdict": self.one(*VERDICTS)}
        if self.random.random() < 0.3:
            then["gate"] = self.one("GATE_FINANCE_APPROVAL", "GATE_OPERATOR")
        if self.random.random() < 0.15:
            then["obligations"] = self.some(
                ["idempotency_key", "named_user", "evidence", "mask:a.b", "unheard"]
            )
        if self.random.random() < 0.15:
            then["args"] = {
                "amount": self.one({"max": 20}, {"min": 5, "max": 300}, {"enum": [12, "a"]}, {})
            }
        scope = {}
        if self.random.random() < 0.3:
            scope["capabilities"] = self.one(
                ["payments.*"], ["*"], ["orders.lookup", "mail.*"], ["*.refund"]
            )
        if self.random.random() < 0.2:
            scope["intents"] = self.one(["refund"], ["sta*"])
        return {
            "rule_id": f"rule_{number}",
            "mode": self.one("enforce", "enforce", "enforce", "shadow"),
            "if": self.rule_body(2),
            "then": then,
            **({"applies_to": scope} if scope else {}),
        }

    def pack(self) -> dict[str, Any]:
        roles = [{"role": role, "allow": self.most(CAPABILITIES)} for role in ("agent", "clerk")]
        intents = [
            {"id": id, "capabilities": self.most(CAPABILITIES)} for id in ("refund", "status")
        ]
        tools = {id: {"approval_mode": self.one(*MODES)} for id in self.some(CAPABILITIES)}
        hosts = {"hosts": self.some(["pay.example"])} if self.random.random() < 0.2 else {}
        policy = {
            "permissions": roles,
            "gates": raw_pack()["policy_layer"]["gates"],
            "rules": [self.rule(number) for number in range(self.random.randint(0, 4))],
        }
        return {
            **raw_pack(),
            "policy_layer": policy,
            "tooling_layer": {"capabilities": tools, **hosts},
            "decision_layer": {"intents": intents},
        }

    def capability(self) -> dict[str, Any]:
        raw: dict[str, Any] = {
            "id": self.one(*CAPABILITIES),
            "version": "1.0.0",
            "description": "x",
        }
        effects = self.one(
            {"side_effects": False},
            {"side_effects": True},
            {"side_effects": True, "idempotent": True},
            {},
        )
        safety = self.one(
            None,
            {"trust_level": self.one("sandbox", "elevated", "privileged")},
            {"reversible": False},
        )
        return {
            **raw,
            "inputs": {},
            "outputs": {},
            "properties": effects,
            **({"safety": safety} if safety else {}),
        }

    def call(self, capability: str) -> dict[str, Any]:
        arguments = self.one(
            None, {"amount": self.one(*VALUES), "kind": "a"}, {"amount": self.one(12, 240)}, {}
        )
        order = {
            "id": "o1",
            "age": self.one(12, 31, 40, *VALUES),
            "total": self.one(*VALUES),
            "lines": self.one([1, 5], [], None, "x"),
        }
        data = {
            "order": {name: value for name, value in order.items() if self.random.random() < 0.9},
            "user": {"role": self.one("staff", "guest", None)},
            "request": {"intent": "refund"},
            "run": {"turn": 1},
            "agent": {},
            "call": {"capability": capability},
            "args": arguments,
            "inputs": {},
            "vars": {"x": self.one(*VALUES)},
            "outputs": {},
            "state": {},
        }
        return {
            "intent": self.one(*["refund"] * 9, "status", "other"),
            "role": self.one(*["agent"] * 9, "clerk", "nobody"),
            "safety_mode": self.one(*["destructive"] * 12, *MODES),
            "arguments": arguments,
            "named_user": self.random.random() < 0.8,
            "host": self.one("", "", "pay.example", "evil.example"),
            "data": data,
        }


def _ours(raw: dict[str, Any], capability: dict[str, Any], call: dict[str, Any]) -> dict[str, Any]:
    pack, spec = Pack.of(raw), Capability.of(capability)
    policy = Policy.of(pack)
    declared = pack.tooling.capabilities.get(spec.id, PackTool()).approval_mode
    mode = approval_mode(spec, declared)
    governed = GovernedCall(
        spec.id,
        mode,
        call["role"],
        call["safety_mode"],
        call["arguments"],
        named_user=call["named_user"],
        host=call["host"],
    )
    verdict = policy.decide(call["intent"], governed, call["data"])
    return {
        "verdict": verdict.outcome,
        "stage": verdict.stage,
        "reason": verdict.reason,
        "rule": verdict.rule,
        "gate": verdict.gate,
        "approval_mode": verdict.approval_mode,
        "obligations": list(verdict.obligations) if verdict.allows else [],
        "matched": list(verdict.matched),
        "would": list(verdict.would),
    }


@pytest.mark.sampled(24)
@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_two_gates_say_the_same_of_random_calls(part: int) -> None:
    seen: set[tuple[str, str]] = set()
    for seed in range(part * CALLS // 20, (part + 1) * CALLS // 20):
        draw = Draw(seed)
        raw = draw.pack()
        for _ in range(20):
            capability = draw.capability()
            call = draw.call(capability["id"])
            ours, theirs = _ours(raw, capability, call), decide(raw, capability, call)
            theirs["obligations"] = (
                theirs["obligations"] if ours["verdict"] in ("allow", "allow_with_gate") else []
            )
            assert ours == theirs, {
                "seed": seed,
                "capability": capability,
                "call": call,
                "rules": raw["policy_layer"]["rules"],
            }
            seen.add((ours["verdict"], ours["stage"]))
    assert {verdict for verdict, _ in seen} == set(VERDICTS)
