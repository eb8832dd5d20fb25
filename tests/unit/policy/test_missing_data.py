"""Nothing permits because a fact is missing, null or of another type: each fact of each of many random rules is taken
away, made null and retyped, and no verdict becomes wider (docs/reference/pack.md#rules)."""

from __future__ import annotations

import copy
import os
import random
from collections.abc import Iterator
from typing import Any

from cogcli.declarations.pack_spec import VERDICTS, PackIntent, PolicyRule, RuleOutcome
from cogcli.policy.pack_policy import GovernedCall, Policy
from cogcli.policy.verdict import Verdict, is_stricter

RULES = 3000 if os.environ.get("COGCLI_LONG_TESTS") else 100
DATA: dict[str, Any] = {
    "order": {
        "age": 12,
        "total": 240.5,
        "late": False,
        "note": "gift",
        "tags": ["a", "b"],
        "lines": [1, 5],
    },
    "args": {"amount": 240, "fast": True, "to": "ann"},
    "user": {"role": "staff", "since": 3},
}
OF_KIND = {
    "number": ["order.age", "order.total", "args.amount", "user.since"],
    "boolean": ["order.late", "args.fast"],
    "text": ["order.note", "args.to", "user.role"],
    "list": ["order.lines", "order.tags"],
}
OTHERS: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    12,
    300.5,
    "",
    "12",
    "gift",
    "staff",
    [],
    [12],
    ["staff"],
    {},
    {"a": 1},
]


class Draw:
    """Random rules that read facts without defaults; equal seeds draw equal ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def var(self, kind: str) -> Any:
        return {"var": self.random.choice(OF_KIND[kind])}

    def number(self, depth: int) -> Any:
        if depth and self.random.random() < 0.5:
            name = self.random.choice(["+", "-", "*", "min", "max"])
            return {name: [self.number(depth - 1), self.number(depth - 1)]}
        return (
            self.var("number")
            if self.random.random() < 0.6
            else self.random.choice([0, 3, 12, 200])
        )

    def condition(self, depth: int) -> Any:
        pick = self.random.random()
        if depth and pick < 0.5:
            name = self.random.choice(["and", "or", "if", "!"])
            count = {"if": 3, "!": 1}.get(name, 2)
            return {name: [self.condition(depth - 1) for _ in range(count)]}
        if pick < 0.7:
            name = self.random.choice(["<", "<=", ">", ">=", "==", "!="])
            return {name: [self.number(1), self.number(1)]}
        if pick < 0.8:
            return {
                self.random.choice(["==", "!="]): [
                    self.var("text"),
                    self.random.choice(["gift", "x"]),
                ]
            }
        if pick < 0.9:
            body = {">": [{"var": ""}, self.random.choice([0, 3])]}
            return {self.random.choice(["all", "some", "none"]): [{"var": "order.lines"}, body]}
        return self.var("boolean") if pick < 0.95 else {"in": [self.var("text"), ["gift", "staff"]]}

    def rule(self, number: int) -> PolicyRule:
        return PolicyRule(
            rule_id=f"r{number}",
            mode="enforce",
            condition=self.condition(3),
            then=RuleOutcome(verdict=self.random.choice(VERDICTS)),
        )


def _decide(rule: PolicyRule, data: dict[str, Any]) -> Verdict:
    policy = Policy(
        permissions={"agent": ["pay.out"]},
        intents={"pay": PackIntent(id="pay", capabilities=("pay.out",))},
        rules=[rule],
    )
    call = GovernedCall("pay.out", "network", "agent", "destructive", DATA["args"])
    return policy.decide("pay", call, data)


def _spoilt(path: str) -> Iterator[dict[str, Any]]:
    """The data without a fact, and with each value of another type in its place."""
    head, name = path.split(".")
    kind = type(DATA[head][name])
    numbers = (int, float)
    for other in (..., *OTHERS):
        if type(other) is kind or (kind in numbers and type(other) in numbers):
            continue
        data = copy.deepcopy(DATA)
        if other is ...:
            del data[head][name]
        else:
            data[head][name] = other
        yield data


def test_no_fact_of_any_rule_that_is_gone_null_or_retyped_widens_a_verdict() -> None:
    seen = set()
    for number in range(RULES):
        rule = Draw(number).rule(number)
        before = _decide(rule, DATA)
        for path in [path for path in before.reads if "." in path]:
            for data in _spoilt(path):
                after = _decide(rule, data)
                assert not is_stricter(before.outcome, after.outcome), (rule.condition, path, data)
                assert after.outcome in (before.outcome, "deny"), (rule.condition, path, data)
                seen.add((before.outcome, after.outcome))
    assert {("allow", "deny"), ("escalate", "deny"), ("refuse", "deny"), ("deny", "deny")} <= seen


def test_a_whole_part_of_the_data_that_is_gone_widens_no_verdict() -> None:
    for number in range(RULES):
        rule = Draw(number).rule(number)
        before = _decide(rule, DATA)
        for head in {path.partition(".")[0] for path in before.reads if path}:
            for other in (None, [], {}, "x", 0):
                after = _decide(rule, {**DATA, head: other})
                assert after.outcome == "deny"
            assert (
                _decide(rule, {name: part for name, part in DATA.items() if name != head}).outcome
                == "deny"
            )
