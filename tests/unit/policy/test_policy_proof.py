"""Proofs about two policies (docs/reference/pack.md#prove): the answer, calls that show each difference, and what is
not covered."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from fakes.support_desk import CAPABILITIES, capability, pack, raw_pack
from reference_gate import decide
from test_reference_gate import PATHS, VALUES, Draw

from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.pack_spec import Pack
from cogcli.policy.counterexample import (
    CallCase,
    CallKind,
    ComparedPacks,
    build_data,
    number_from,
)
from cogcli.policy.policy_proof import PolicyProof, prove

pytest.importorskip("z3")
from cogcli.app.policy_prover import Z3Solver

LONG = bool(os.environ.get("COGCLI_LONG_TESTS"))
PAIRS = 500 if LONG else 30
"""Pairs of packs, each held against twenty random requests: ten thousand in a long run."""
CALLED = ("orders.lookup", "payments.refund", "mail.send")
Change = Callable[[dict[str, Any]], object]


def _prove(change: Change, base: Change = lambda raw: None) -> PolicyProof:
    old, new = copy.deepcopy(raw_pack()), copy.deepcopy(raw_pack())
    base(old)
    base(new)
    change(new)
    return prove(Pack.of(old), Pack.of(new), CAPABILITIES.get, Z3Solver)


def _window(condition: Any) -> Change:
    return lambda raw: raw["policy_layer"]["rules"][0].update({"if": condition})


def _limit(**members: Any) -> Change:
    limit = {"id": "day", "applies_to": {"capabilities": ["payments.refund"]}, "per": "user"}
    return lambda raw: raw["policy_layer"].update({"limits": [limit | members]})


def _put(path: str, value: Any) -> Change:
    def change(raw: Any) -> None:
        *above, last = [int(part) if part.isdigit() else part for part in path.split("/")]
        for part in above:
            raw = raw[part]
        raw[last] = value

    return change


NAMED = {"cat": ["order.age_days", {"substr": [{"var": ["order.note", ""]}, 0, 0]}]}
TAGS = {"var": ["order.tags", []]}
NOTE = {"var": ["order.note", ""]}
AGE = {"var": "order.age_days"}
ALWAYS = {"rule_id": "always", "mode": "enforce", "if": True, "tests": []}
OVER_30 = {">": [AGE, 30]}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("change", "answer"),
    [
        (lambda raw: None, "equal"),
        (_window({"<": [30, AGE]}), "equal"),
        (_window({"!": {"<=": [AGE, 30]}}), "equal"),
        (_window({"and": [OVER_30, {">": [AGE, 20]}]}), "equal"),
        (_window({"or": [{"missing": ["order.age_days"]}, OVER_30]}), "equal"),
        (_window({"if": [{">": [AGE, 30]}, True, False]}), "equal"),
        (_window({"<": [30, {"max": [AGE, 5]}]}), "equal"),
        (_window({"in": [{">": [AGE, 30]}, [True]]}), "equal"),
        (_window({">": [AGE, 40]}), "wider"),
        (_window({">=": [AGE, 30]}), "narrower"),
        (_window({">": [{"var": ["order.age_days", 0]}, 30]}), "equal"),
        (_window({"and": [OVER_30, {"<": [AGE, 60]}]}), "wider"),
        (_window({"or": [{">": [AGE, 40]}, {"<": [AGE, 10]}]}), "incomparable"),
        (_window({"and": [OVER_30, {"!=": [{"var": ["user.role", ""]}, "vip"]}]}), "wider"),
        (_put("policy_layer/rules/0/then", {"verdict": "escalate"}), "wider"),
        (_put("policy_layer/rules/0/mode", "shadow"), "wider"),
        (_put("policy_layer/rules/1/then/args", {"amount": {"max": 500}}), "narrower"),
        (_put("policy_layer/rules/1/then/args", {"amount": {"enum": [None, 300]}}), "narrower"),
        (_put("policy_layer/rules/1/then/obligations", ["mask:receipt"]), "narrower"),
        (_put("policy_layer/permissions/0/allow", ["orders.lookup"]), "narrower"),
        (_put("decision_layer/intents/0/capabilities", ["orders.lookup"]), "narrower"),
        (_put("decision_layer/decisions/0/required_evidence", []), "wider"),
        (_put("pack_meta/defaults/safety_mode", "network"), "narrower"),
        (_put("tooling_layer/hosts", ["pay.example"]), "narrower"),
        (_put("tooling_layer/capabilities/payments.refund/approval_mode", "network"), "wider"),
        (_put("policy_layer/gates/GATE_FINANCE_APPROVAL/approver_roles", []), "wider"),
        (_put("policy_layer/gates/GATE_FINANCE_APPROVAL/ttl_s", 60), "narrower"),
        (_put("policy_layer/rules/1/then/gate", "GATE_OPERATOR"), "incomparable"),
        (_limit(sum="amount", max=100), "narrower"),
        (_limit(max=5, per="order"), "narrower"),
        (_limit(max=5, per="args.order_id"), "narrower"),
        (_put("policy_layer/rules/1/then/args", {"amount": {"enum": [[1], 300, True, "x"]}}), "narrower"),
        (_put("policy_layer/rules/1/then/args", {"amount.x": {"max": 1}}), "narrower"),
        (_window({"<": [{"-": [AGE]}, -30]}), "narrower"),  # of numbers out of range
        (_window({"<": [30, {"min": [AGE, AGE]}]}), "narrower"),
        (_window({"and": [OVER_30, {"<": [1, {"/": [10, 5]}]}]}), "equal"),
        (_window({"and": [OVER_30, {"<": [1, {"/": [10, 0]}]}]}), "equal"),
        (_window({"and": [OVER_30, {"in": ["b", {"merge": [["a", "b"]]}]}]}), "equal"),
        (_window({"and": [OVER_30, {"!!": {"merge": [["a"], 1]}}]}), "equal"),
        (_window({"or": [OVER_30, {"!!": {"missing_some": [1, ["order.age_days", "order.x"]]}}]}), "equal"),
        (_window({"or": [OVER_30, {"!!": {"missing_some": [-1, ["order.x"]]}}]}), "equal"),
        (_window({"and": [OVER_30, {">=": [{"var": "run.turn"}, 1]}]}), "equal"),
        (_window({"and": [OVER_30, {"!": {"missing": ["request.message", "user.id"]}}]}), "equal"),
        (_window({"and": [OVER_30, {"missing": ["user.tier"]}]}), "equal"),
        (_window({"or": [OVER_30, {"==": [{"var": ["user.consent.0", ""]}, "x"]}]}), "narrower"),
        (_window({"or": [OVER_30, {"==": [{"var": ["request.params.x", 1]}, {"var": ["inputs.x", 1]}]}]}), "narrower"),
        (_window({"and": [OVER_30, {"<": ["a", 1]}]}), "equal"),
        (_window({"and": [OVER_30, {"+": ["a"]}]}), "equal"),
        (_window({"and": [OVER_30, {"<": [{"/": ["a", AGE]}, 1]}]}), "equal"),
        (_window({"and": [OVER_30, {"nothing": 1}]}), "narrower"),
        (_window({"and": [OVER_30, {"!": {"missing": ["order"]}}]}), "equal"),
        (_window({"and": [{"!": {"missing": ["item"]}}, {"<": [{"var": "item.x"}, 3]}, OVER_30]}), "incomparable"),
        (_window({"and": [OVER_30, {"!!": {"filter": [[1], True]}}, {"!!": [{"merge": [[1]]}]}]}), "equal"),
        (_window({"and": [OVER_30, {"<": [1, {"%": [5, 3]}]}]}), "equal"),
        (_window({"or": [OVER_30, {"!!": {"missing": [["order.age_days"]]}}]}), "equal"),
        (_window({"and": [OVER_30, {"<": [1, {"%": [5, 0]}]}]}), "equal"),
    ],
)  # fmt: skip
def test_the_answer_and_calls_that_show_it(change: Change, answer: str) -> None:
    proof = _prove(change)
    assert (proof.answer, proof.open_parts, proof.calls) == (answer, (), 4)
    assert bool(proof.differences) == (answer != "equal")


@pytest.mark.parametrize(
    ("members", "answer"),
    [
        ({"max": 200}, "wider"),
        ({"max": 99.5}, "narrower"),
        ({"max": 100, "over": "allow_with_gate"}, "wider"),
        ({"max": 100.0}, "equal"),
        ({"max": 100, "window_s": 60}, "unknown"),
    ],
)
def test_limits_are_compared_with_equal_counters(members: dict[str, Any], answer: str) -> None:
    base = _limit(sum="amount", max=100)
    proof = _prove(_limit(sum="amount", **members), base)
    assert proof.answer == answer
    for each in proof.differences:
        old, new = each.case.used
        payload = each.case.to_payload()
        if answer == "unknown":
            assert payload["limits"] == {"before": old, "after": new}
            assert "limits" not in payload["data"]
        else:
            assert payload["data"]["limits"] == old == new


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (_window({">": [{"+": [AGE, 1]}, 31]}), "`+`"),
        (_window({"and": [OVER_30, {"none": [{"filter": [TAGS, False]}, True]}]}), "`none`"),
        (_window({"and": [OVER_30, {"in": ["x", {"cat": ["x", NOTE]}]}]}), "`in`"),
        (_window({"and": [OVER_30, {"!": {"missing": [NAMED]}}]}), "`missing`"),
        (
            _window(
                {
                    "and": [
                        OVER_30,
                        {"!": {"missing_some": [{"+": [1]}, []]}},
                        {"!=": [{"var": ""}, 1]},
                    ]
                }
            ),
            "`var`",
        ),
        (_window({"or": [OVER_30, {"!!": {"missing_some": [0, [7]]}}]}), "`missing_some`"),
        (_window({"or": [OVER_30, {"and": [{"!!": {"missing": [7]}}, False]}]}), "`missing`"),
        (_window({"and": [OVER_30, {"<": [{"/": [AGE, 2]}, {"+": [AGE, 1]}]}]}), "`/`"),
        (_put("policy_layer/guardrails/must_refuse", []), "guardrail must_refuse.card"),
        (_put("pack_meta/defaults/budget/replans", 3), "setting budget"),
        (_put("tooling_layer/capabilities/orders.lookup/facts", {}), "capability orders.lookup"),
        (_put("intelligence_refs/max_hops", 1), "intelligence_refs"),
        (_put("decision_layer/intents/0/slots/order/type", "parcel"), "slots"),
        (
            _put("decision_layer/intents/0/capabilities", ["orders.lookup", "mail.send"]),
            "`mail.send`",
        ),
    ],
)
def test_what_is_not_covered_is_named_and_unknown(change: Change, what: str) -> None:
    proof = _prove(change)
    assert proof.answer == "unknown"
    assert what in " ".join(f"{part.what} {part.why}" for part in proof.open_parts)


def test_what_is_not_understood_but_the_same_is_equal() -> None:
    some = {"some": [{"var": "order.tags"}, {"==": [{"var": ""}, "x"]}]}
    total = {"*": [AGE, 1.1]}
    base = _window({"and": [some, {">": [total, 3]}]})
    assert _prove(_window({"and": [{"!!": some}, {"<": [3, total]}]}), base).answer == "equal"


def test_arithmetic_may_show_a_difference() -> None:
    proof = _prove(_window({">": [{"*": [AGE, 2]}, 100]}))
    (found,) = [each for each in proof.differences if each.relation == "wider"]
    assert (found.before.outcome, found.after.outcome) == ("deny", "allow_with_gate")


def test_lists_among_values_of_an_argument_are_told_apart() -> None:
    one, two = (
        _put(
            "policy_layer/rules/1",
            ALWAYS | {"then": {"verdict": "allow", "args": {"amount": each}}},
        )
        for each in ({"enum": [[1]]}, {"enum": [[2]]})
    )
    assert _prove(two, one).answer == "unknown"
    assert _prove(one, one).answer == "equal"


def test_limits_of_another_tenant_have_other_counters() -> None:
    limit = _limit(sum="amount", max=100)
    assert "limits" in [
        part.what for part in _prove(_put("pack_meta/tenant", "other"), limit).open_parts
    ]


def test_a_proof_is_json() -> None:
    proof = _prove(_limit(sum="amount", max=100.5))
    payload = proof.to_payload()
    (found,) = payload["differences"]
    assert (payload["answer"], found["relation"], found["after"]["verdict"]) == (
        "narrower",
        "narrower",
        "deny",
    )
    assert "day" in found["data"]["limits"]


def test_packs_without_calls_prove_nothing() -> None:
    bare = copy.deepcopy(raw_pack()) | {"decision_layer": {}}
    proof = prove(Pack.of(bare), Pack.of(bare), CAPABILITIES.get, Z3Solver)
    assert (proof.answer, proof.open_parts[0].what) == ("unknown", "calls")


def test_a_call_inside_a_skill_is_a_kind_of_its_own() -> None:
    skill = capability("skill:support.refund", {}, {}).replace(
        reaches=(CAPABILITIES["payments.refund"],)
    )
    tools = {**CAPABILITIES, skill.id: skill}
    raw = copy.deepcopy(raw_pack())
    raw["policy_layer"]["permissions"][0]["allow"] = ["skill:support.refund"]
    raw["decision_layer"]["intents"][0]["capabilities"] = ["skill:support.refund"]
    new = copy.deepcopy(raw)
    new["policy_layer"]["rules"][0]["if"] = {">": [AGE, 40]}
    proof = prove(Pack.of(raw), Pack.of(new), tools.get, Z3Solver)
    assert [each.case.to_payload().get("inside") for each in proof.differences] == [skill.id]
    assert proof.answer == "wider"


def test_a_solver_that_gives_up_leaves_it_unknown() -> None:
    class Tired:
        def __init__(self, script: str) -> None: ...

        def check(self, assumptions: object) -> None: ...

        def value(self, name: str) -> Fraction:
            raise AssertionError

    new = copy.deepcopy(raw_pack())
    new["policy_layer"]["rules"][0]["if"] = {">": [AGE, 40]}
    proof = prove(pack(), Pack.of(new), CAPABILITIES.get, Tired)
    assert (proof.answer, proof.differences) == ("unknown", ())
    assert "the solver gave up" in proof.open_parts[0].why


def test_a_solver_that_is_wrong_convinces_nobody() -> None:
    class Liar:
        def __init__(self, script: str) -> None: ...

        def check(self, assumptions: object) -> bool:
            return True

        def value(self, name: str) -> Fraction:
            return Fraction(0)

    new = copy.deepcopy(raw_pack())
    new["policy_layer"]["rules"][0]["if"] = {">": [AGE, 40]}
    proof = prove(pack(), Pack.of(new), CAPABILITIES.get, Liar)
    assert (proof.answer, proof.differences) == ("unknown", ())


def test_numbers_are_read_as_json_has_them() -> None:
    assert [number_from(Fraction(n)) for n in ("3", "1/2", "1/3")] == [3, 0.5, 1 / 3]


# ---- a property ---------------------------------------------------------------------------------------------------


def _draw_pair(draw: Draw) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two packs that differ in few places."""
    old = draw.pack()
    for rule in old["policy_layer"]["rules"]:
        rule["if"] = draw.comparison() if draw.random.random() < 0.5 else rule["if"]
    new, layer = copy.deepcopy(old), draw.pack()
    rules = new["policy_layer"]["rules"]
    for _ in range(draw.one(0, 1, 1, 2)):
        number = draw.random.randrange(len(rules) + 1)
        rules[number : number + 1] = [draw.rule(9) | {"rule_id": f"new_{draw.random.random()}"}]
    if draw.random.random() < 0.3:
        new["tooling_layer"] = layer["tooling_layer"]
    if draw.random.random() < 0.2:
        new["policy_layer"]["permissions"] = layer["policy_layer"]["permissions"]
    for raw in (old, new):
        raw["tone_and_comms"]["agent"]["role"] = "agent"
    return old, new


def _draw_case(draw: Draw, kind: CallKind, packs: ComparedPacks) -> CallCase:
    paths = draw.some([path for path in PATHS if not path.startswith(("request.", "run."))])
    facts = {path: draw.one(*VALUES, 11, 30, 31.5, 239, 240, 241) for path in paths}
    facts = {path: value for path, value in facts.items() if value is not None}
    facts["user.role"] = draw.one("staff", "guest", "")
    if draw.random.random() < 0.3:
        facts["user.id"] = "default"
    modes = tuple(pack.meta.defaults.safety_mode for pack in packs[:2])
    host = draw.one("", "", "pay.example", "evil.example")
    return CallCase(kind, facts, (modes[0], modes[1]), host)


def _ask_reference(
    raw: dict[str, Any], pack: Pack, capability: dict[str, Any], case: CallCase
) -> str:
    """Return what the second gate, which was written from the rules alone, says of a call."""
    data = build_data(pack, case, case.ceilings[0])
    call = {
        "intent": case.kind.intent,
        "role": "agent",
        "safety_mode": case.ceilings[0],
        "arguments": data["args"],
        "named_user": data["user"]["id"] != "default",
        "host": case.host,
        "data": data,
    }
    return str(decide(raw, capability, call)["verdict"])


@pytest.mark.sampled(12)
@pytest.mark.slow
def test_no_random_request_contradicts_a_proof() -> None:
    answers: dict[str, int] = {}
    for seed in range(PAIRS):
        draw = Draw(seed)
        old, new = _draw_pair(draw)
        raw_tools = {id: draw.capability() | {"id": id} for id in CALLED}
        tools = {id: Capability.of(raw) for id, raw in raw_tools.items()}
        packs = ComparedPacks.of(Pack.of(old), Pack.of(new))
        proof = prove(packs.old, packs.new, tools.get, Z3Solver)
        shown = {each.relation for each in proof.differences}
        excluded = {"wider", "narrower", "different"} - shown
        answers[proof.answer] = answers.get(proof.answer, 0) + 1
        for each in proof.differences:
            assert each.relation in packs.compare(each.case)
            if each.case.host or each.case.facts.get("user.id") == "default":
                continue  # of calls that a person decides about the second gate knows the rules alone
            called = raw_tools[each.case.kind.capability.id]
            assert _ask_reference(old, packs.old, called, each.case) == each.before.outcome
            assert _ask_reference(new, packs.new, called, each.case) == each.after.outcome
        for _ in range(20):
            kind = CallKind(draw.one("refund", "status"), tools[draw.one(*CALLED)])
            case = _draw_case(draw, kind, packs)
            found = packs.compare(case)
            if proof.answer != "unknown":
                assert not found & excluded, {"number": seed, "case": case, "found": found}
    assert {"equal", "wider", "narrower"} <= set(answers)
