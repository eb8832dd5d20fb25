"""Calls that two packs decide differently: data, verdicts, and smaller calls (docs/reference/pack.md#prove)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import pytest
from fakes.support_desk import CAPABILITIES, capability, raw_pack

from cogcli.declarations.pack_spec import MODES, Pack
from cogcli.policy.counterexample import (
    CallCase,
    CallKind,
    ComparedPacks,
    build_data,
    mode_at,
    number_from,
    shrink,
)

LOOKUP, REFUND = CAPABILITIES["orders.lookup"], CAPABILITIES["payments.refund"]
SKILL = capability("skill:support.refund", {}, {}).replace(reaches=(REFUND,))
KNOWN = {"order.age_days": 1, "order.total": 2}
MODE = ("destructive", "destructive")
AGE = {"var": "order.age_days"}


def _raw(condition: Any = False, **layers: Any) -> dict[str, Any]:
    raw = raw_pack()
    rule = {"rule_id": "rule", "mode": "enforce", "if": condition, "then": {"verdict": "deny"}}
    raw["policy_layer"]["rules"] = [rule]
    for name, members in layers.items():
        raw[name] |= members
    return raw


def _limit(**members: Any) -> dict[str, Any]:
    scope = {"capabilities": ["orders.lookup", "payments.refund"]}
    return {"limits": [{"id": "day", "applies_to": scope, "per": "user", "max": 10, **members}]}


def _packs(old: dict[str, Any], new: dict[str, Any]) -> ComparedPacks:
    return ComparedPacks.of(Pack.of(old), Pack.of(new))


def _case(facts: Mapping[str, Any] = KNOWN, **members: Any) -> CallCase:
    kind = members.pop("kind", CallKind("support.refund", LOOKUP))
    return CallCase(kind, facts, members.pop("ceilings", MODE), **members)


# ---- the data of a call -----------------------------------------------------------------------


def test_every_call_has_the_members_of_a_run() -> None:
    case = _case({"order.tags": ["x"], "inputs.x": 1})
    data = build_data(Pack.of(_raw()), case, "network")
    assert data == {
        "request": {
            "message": "",
            "channel": "",
            "locale": "",
            "params": {"x": 1},
            "intent": "support.refund",
        },
        "user": {"id": "user-1", "role": "", "consent": []},
        "run": {"turn": 1, "now": "", "safety_mode": "network"},
        "call": {"step": "", "capability": "orders.lookup", "approval_mode": "read_only"},
        "agent": {"role": "support_agent", "voice": "neutral_concise"},
        "args": {},
        "inputs": {"x": 1},
        "vars": {},
        "outputs": {},
        "state": {},
        "order": {"tags": ["x"]},
    }
    data["order"]["tags"].append("y")
    assert case.facts["order.tags"] == ["x"]


def test_facts_take_the_place_of_members() -> None:
    facts = {
        "user": {},
        "user.id": "cust",
        "user.role": "vip",
        "run.turn": 3,
        "order": {},
        "order.x": 1,
    }
    data = build_data(Pack.of(_raw()), _case(facts, kind=CallKind("x", REFUND)), "read_only")
    assert data["user"] == {"id": "cust", "role": "vip"}
    assert (data["run"]["turn"], data["order"]) == (3, {"x": 1})
    assert data["call"]["approval_mode"] == "destructive"


PAYLOAD = {
    "intent": "support.refund",
    "capability": "orders.lookup",
    "data": {
        "order": {"age_days": 1, "total": 2},
        "request": {"intent": "support.refund"},
        "user": {"id": "user-1"},
        "run": {"safety_mode": "destructive"},
    },
}


@pytest.mark.parametrize(
    ("case", "members", "data"),
    [
        (_case(), {}, {}),
        (_case({**KNOWN, "user.id": "cust"}), {}, {"user": {"id": "cust"}}),
        (_case(kind=CallKind("support.refund", LOOKUP, "skill:x")), {"inside": "skill:x"}, {}),
        (_case(host="a.example"), {"host": "a.example"}, {}),
        (_case(used=({"day": 1}, {"day": 1})), {}, {"limits": {"day": 1}}),
        (_case(used=({"day": 1}, {"week": 2})), {}, {"limits": {"day": 1, "week": 2}}),
        (_case(used=({}, {"day": 0})), {}, {"limits": {"day": 0}}),
        (_case(used=({"day": 1}, {"day": 2})), {"limits": {"before": {"day": 1}, "after": {"day": 2}}}, {}),
        (
            _case(ceilings=("network", "read_only")),
            {"safety_mode": {"before": "network", "after": "read_only"}},
            {"run": None},
        ),
    ],
)  # fmt: skip
def test_a_call_as_json(case: CallCase, members: Any, data: Any) -> None:
    expected = {**PAYLOAD, **members, "data": {**PAYLOAD["data"], **data}}  # type: ignore[dict-item]
    expected["data"] = {name: each for name, each in expected["data"].items() if each is not None}
    assert case.to_payload() == expected


# ---- its verdict ------------------------------------------------------------------------------


def _tools(**modes: str) -> dict[str, Any]:
    return {"capabilities": {id.replace("_", "."): {"approval_mode": m} for id, m in modes.items()}}


WITH_SKILL = {
    "permissions": [{"role": "support_agent", "allow": ["skill:support.refund"]}],
}
INTENT = {"intents": [{**raw_pack()["decision_layer"]["intents"][0], "capabilities": [SKILL.id]}]}


@pytest.mark.parametrize(
    ("raw", "case", "said"),
    [
        (_raw(), _case(), "allow"),
        (_raw(), _case(kind=CallKind("support.refund", REFUND)), "allow_with_gate"),
        (_raw(), _case({}, kind=CallKind("support.refund", REFUND)), "deny"),
        (_raw(), _case({}), "allow"),
        (_raw(tooling_layer=_tools(payments_refund="delegated")),
         _case({**KNOWN, "user.id": "default"}, kind=CallKind("support.refund", REFUND)), "deny"),
        (_raw(tooling_layer=_tools(payments_refund="network")),
         _case(kind=CallKind("support.refund", REFUND)), "allow"),
        (_raw(), _case(ceilings=("read_only", "read_only")), "allow"),
        (_raw(), _case(kind=CallKind("support.refund", REFUND), ceilings=("network", "network")), "deny"),
        (_raw(tooling_layer={"hosts": ["a.example"]}), _case(host="a.example"), "allow"),
        (_raw(tooling_layer={"hosts": ["a.example"]}), _case(host="b.example"), "deny"),
        (_raw(), _case(host="b.example"), "allow"),
        (_raw({"==": [{"var": "agent.role"}, "support_agent"]}), _case(), "deny"),
        (_raw({"==": [{"var": "user.id"}, "user-1"]}), _case(), "deny"),
        (_raw(policy_layer=_limit()), _case(used=({"day": 9}, {})), "allow"),
        (_raw(policy_layer=_limit()), _case(used=({"day": 9.5}, {})), "deny"),
        (_raw(policy_layer=_limit()), _case(used=({"day": -1}, {})), "allow"),
        (_raw(policy_layer=_limit(max=0)), _case(), "deny"),
        (_raw(policy_layer=_limit(max=1)), _case(used=({}, {"day": 5})), "allow"),
        (_raw(policy_layer=_limit(per="tenant")), _case(used=({"day": 9}, {})), "allow"),
        (_raw(policy_layer=_limit(per="order")), _case(used=({"day": 9}, {})), "deny"),
        (_raw(policy_layer=_limit(per="order")), _case({**KNOWN, "order.id": "x"}), "allow"),
        (_raw(policy_layer=_limit(sum="amount")), _case(), "deny"),
        (_raw(policy_layer=_limit(sum="amount")), _case({**KNOWN, "args.amount": 10}), "allow"),
        (_raw(policy_layer=WITH_SKILL, decision_layer=INTENT), _case(), "deny"),
        (_raw(policy_layer=WITH_SKILL, decision_layer=INTENT),
         _case(kind=CallKind("support.refund", LOOKUP, SKILL.id)), "allow"),
        (_raw(policy_layer=WITH_SKILL, decision_layer=INTENT), _case(kind=CallKind("support.refund", SKILL)), "allow"),
        (_raw(policy_layer=WITH_SKILL, decision_layer=INTENT, tooling_layer={"capabilities": {
            SKILL.id: {"approval_mode": "destructive"}}}),
         _case(kind=CallKind("support.refund", SKILL)), "allow_with_gate"),
    ],
)  # fmt: skip
def test_a_call_is_decided_as_in_a_run(raw: dict[str, Any], case: CallCase, said: str) -> None:
    packs = _packs(raw, _raw())
    assert packs.decide(case)[0].outcome == said


def test_each_pack_has_its_own_mode_and_counters() -> None:
    limited = _raw(policy_layer=_limit())
    packs = _packs(limited, limited)
    for before, after, found in (
        (9, 10, {"narrower"}),
        (10, 9, {"wider"}),
        (9, 9, set()),
        (10, 10, set()),
    ):
        assert packs.compare(_case(used=({"day": before}, {"day": after}))) == found
    refund = CallKind("support.refund", REFUND)
    case = _case(kind=refund, ceilings=("network", "destructive"))
    assert _packs(_raw(), _raw()).compare(case) == {"wider"}


# ---- a smaller call ---------------------------------------------------------------------------


Condition = Mapping[str, Any]
OVER_30: Condition = {">": [AGE, 30]}


@pytest.mark.parametrize(
    ("condition", "facts", "smaller"),
    [
        (True, {**KNOWN, "user.id": "x", "user.role": "y"}, {}),
        (OVER_30, {"order.age_days": 31}, {"order.age_days": 31}),
        (OVER_30, {"a.x": 1, "order.age_days": 31, "b.x": 2, "c.x": 3}, {"order.age_days": 31}),
        (OVER_30, {"order.age_days": 30.25}, {"order.age_days": 31}),
        (OVER_30, {"order.age_days": 31.75}, {"order.age_days": 31}),
        ({"<": [30, AGE, 31]}, {"order.age_days": 30.123456}, {"order.age_days": 30.12}),
        ({"<": [30.124, AGE, 31]}, {"order.age_days": 30.1250001}, {"order.age_days": 30.13}),
        ({"<": [AGE, 30]}, {"order.age_days": 17}, {"order.age_days": 0}),
        ({"<": [AGE, 0]}, {"order.age_days": -0.5}, {"order.age_days": -1}),
        ({"!": {"missing": ["order.x"]}}, {"order.x": "text", "order.y": 1}, {"order.x": "text"}),
        ({"!=": [{"var": "run.turn"}, 1]}, {"run.turn": 22, "order.x": 1}, {"run.turn": 22}),
        ({"!": {"missing": ["order.x", "order.y"]}}, {"order.x": [], "order.y": True, "z.z": 1},
         {"order.x": [], "order.y": True}),
        ({"==": [{"var": "order.x"}, "text"]}, {"order.x": "text"}, {"order.x": "text"}),
        ({"==": [{"var": "user.role"}, "vip"]}, {"user.role": "vip", "order.x": 1}, {"user.role": "vip"}),
        ({"<": [1, {"var": "run.turn"}, 3]}, {"run.turn": 2, "order.x": 1}, {"run.turn": 2}),
        ({"<": [{"var": "order.y"}, 3]}, {"order.y": 2, "order.x": 1}, {"order.y": 0}),
    ],
)  # fmt: skip
def test_a_call_is_made_smaller(condition: Any, facts: Any, smaller: Any) -> None:
    fails_closed = {"if": [{"missing": _reads(condition)}, False, condition]}
    packs = _packs(_raw(), _raw(condition if condition is True else fails_closed))
    case = shrink(packs, _case(facts), "narrower")
    assert dict(case.facts) == smaller
    assert "narrower" in packs.compare(case)


def _reads(condition: Any) -> list[str]:
    text = str(condition)
    return [path for path in ("order.age_days", "order.x", "order.y") if path in text] or [
        "user.id"
    ]


def _on_call(change: Callable[[dict[str, Any]], object]) -> ComparedPacks:
    new = _raw()
    change(new)
    return _packs(_raw(), new)


def test_a_host_is_left_out_where_it_does_not_matter() -> None:
    denies = _on_call(lambda raw: raw["policy_layer"]["rules"][0].update({"if": True}))
    assert shrink(denies, _case(host="a.example"), "narrower").host == ""
    lists = _on_call(lambda raw: raw["tooling_layer"].update({"hosts": []}))
    assert shrink(lists, _case(host="a.example"), "narrower").host == "a.example"


@pytest.mark.parametrize(
    ("old", "new", "used", "smaller"),
    [
        (12, 5, (9, 9), (9, 9)),
        (12, 5, (10.123456, 10.123456), (10, 10)),
        (12, 12, (3, 11.5), (0, 11.5)),
        (12, 12, (0, 11.75), (0, 12)),
        (12, 0, (3, 3), (0, 0)),
    ],
)
def test_counters_are_made_simpler(old: int, new: int, used: Any, smaller: Any) -> None:
    packs = _packs(_raw(policy_layer=_limit(max=old)), _raw(policy_layer=_limit(max=new)))
    case = _case({}, used=({"day": used[0]}, {"day": used[1]}))
    found = shrink(packs, case, "narrower")
    assert [held["day"] for held in found.used] == list(smaller)


def test_a_counter_of_one_pack_stays_its_own() -> None:
    packs = _packs(_raw(), _raw(policy_layer=_limit()))
    found = shrink(packs, _case({}, used=({}, {"day": 10.75})), "narrower")
    assert found.used == ({}, {"day": 10})


# ---- what a solver says -----------------------------------------------------------------------


def test_numbers_and_modes_of_a_solution() -> None:
    most = 9007199254740991
    assert [number_from(Fraction(n)) for n in ("3", "-3", "1/2", "1/3")] == [3, -3, 0.5, 1 / 3]
    for number in (most, -most, 0):
        assert type(number_from(Fraction(number))) is int
    for number in (most + 1, -most - 1):
        assert type(number_from(Fraction(number))) is float
    assert type(number_from(Fraction(1, 2))) is float
    assert [mode_at(Fraction(each)) for each in range(len(MODES))] == list(MODES)
