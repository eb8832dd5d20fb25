"""Small pairs of packs: the answer of a proof, the call that shows it, and why a part is open
(docs/reference/pack.md#prove)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest
from fakes.support_desk import CAPABILITIES, capability, raw_pack

from cogcli.declarations.pack_spec import Pack
from cogcli.policy.policy_proof import PolicyProof, prove

pytest.importorskip("z3")
from cogcli.app.policy_prover import Z3Solver

Raw = dict[str, Any]
Change = Callable[[Raw], object]
AGE = {"var": "order.age_days"}
LOOKUP = {"capabilities": ["orders.lookup"]}


def _base() -> Raw:
    """The support desk with one capability of one intent, which only reads: few calls, and one mode of a run."""
    raw = copy.deepcopy(raw_pack())
    raw["pack_meta"]["defaults"]["safety_mode"] = "read_only"
    layer = raw["decision_layer"]
    layer["intents"] = [{**layer["intents"][1], "capabilities": ["orders.lookup"]}]
    raw["policy_layer"]["rules"] = []
    return raw


def _rule(verdict: str, condition: Any = True, **then: Any) -> Raw:
    return {
        "rule_id": "rule",
        "mode": "enforce",
        "if": condition,
        "then": {"verdict": verdict, **then},
    }


def _rules(*rules: Raw) -> Change:
    return lambda raw: raw["policy_layer"].update({"rules": list(rules)})


def _section(name: str, **members: Any) -> Change:
    return lambda raw: raw[name].update(members)


def _all(*changes: Change) -> Change:
    return lambda raw: [change(raw) for change in changes]


def _nothing(raw: Raw) -> None: ...


def _prove(old: Change, new: Change) -> PolicyProof:
    packs = []
    for change in (old, new):
        change(raw := _base())
        packs.append(Pack.of(raw))
    return prove(packs[0], packs[1], CAPABILITIES.get, Z3Solver)


# ---- the answer and the call ------------------------------------------------------------------


DATA = {
    "request": {"intent": "support.order_status"},
    "user": {"id": "user-1"},
    "run": {"safety_mode": "read_only"},
}
ALLOWED = {
    "verdict": "allow",
    "gate": "",
    "rule": "",
    "reason": "no_rule",
    "obligations": [],
}


def _verdict(verdict: str, **members: Any) -> Raw:
    return {**ALLOWED, "verdict": verdict, "rule": "rule", "reason": "rule", **members}


def _shown(relation: str, before: Raw, after: Raw, data: Any = None, **members: Any) -> Raw:
    return {
        "relation": relation,
        "before": before,
        "after": after,
        "intent": "support.order_status",
        "capability": "orders.lookup",
        **members,
        "data": {**DATA, **(data or {})},
    }


def _enum(*values: Any) -> Change:
    return _rules(_rule("allow", args={"amount": {"enum": list(values)}}))


DENY, REFUSE, ESCALATE = _rules(_rule("deny")), _rules(_rule("refuse")), _rules(_rule("escalate"))
GATE = "GATE_OPERATOR"
IS_VIP = {"==": [{"var": "user.role"}, "vip"]}
IS_91 = {"==": [{"*": [AGE, 7]}, 91]}
NO_HOST = _section("tooling_layer", hosts=[])
DAY = {"id": "day", "applies_to": LOOKUP, "per": "user", "max": 0}


@pytest.mark.parametrize(
    ("old", "new", "answer", "shown"),
    [
        (_nothing, _nothing, "equal", []),
        (_nothing, DENY, "narrower", [_shown("narrower", ALLOWED, _verdict("deny"))]),
        (DENY, _nothing, "wider", [_shown("wider", _verdict("deny"), ALLOWED)]),
        (DENY, REFUSE, "wider", [_shown("wider", _verdict("deny"), _verdict("refuse"))]),
        (REFUSE, ESCALATE, "wider", [_shown("wider", _verdict("refuse"), _verdict("escalate", gate=GATE))]),
        (ESCALATE, _rules(_rule("allow_with_gate")), "wider",
         [_shown("wider", _verdict("escalate", gate=GATE), _verdict("allow_with_gate", gate=GATE))]),
        (_rules(_rule("allow_with_gate", gate="G1")), _rules(_rule("allow_with_gate", gate="G2")), "incomparable",
         [_shown("different", _verdict("allow_with_gate", gate="G1"), _verdict("allow_with_gate", gate="G2"))]),
        (_rules(_rule("allow", obligations=["mask:x", "mask:a"])), _rules(_rule("allow", obligations=["mask:a"])),
         "wider", [_shown("wider", _verdict("allow", obligations=["mask:a", "mask:x"]),
                          _verdict("allow", obligations=["mask:a"]))]),
        (_rules(_rule("allow")), _rules(_rule("allow", obligations=["mask:x"])), "narrower",
         [_shown("narrower", _verdict("allow"), _verdict("allow", obligations=["mask:x"]))]),
        (_rules(_rule("allow", obligations=["mask:x"])), _rules(_rule("allow", obligations=["mask:y"])), "incomparable",
         [_shown(each, _verdict("allow", obligations=["mask:x"]), _verdict("allow", obligations=["mask:y"]))
          for each in ("wider", "narrower")]),
        (_rules(_rule("deny", obligations=["mask:x"])), _rules(_rule("deny")), "equal", []),
        (_nothing, _rules(_rule("deny", IS_VIP)), "narrower",
         [_shown("narrower", ALLOWED, _verdict("deny"), {"user": {"id": "user-1", "role": "vip"}})]),
        (_nothing, _rules(_rule("deny", {"==": [{"var": "user.id"}, "x"]})), "narrower",
         [_shown("narrower", ALLOWED, _verdict("deny"), {"user": {"id": "x"}})]),
        (_nothing, _rules(_rule("deny", {"<": [{"var": "run.turn"}, 2]})), "narrower",
         [_shown("narrower", ALLOWED, _verdict("deny"), {"run": {"safety_mode": "read_only", **more}})
          for more in [{}]]),
        (_nothing, _rules({**_rule("deny"), "mode": "shadow"}), "equal", []),
        (_all(NO_HOST, DENY), NO_HOST, "wider", [_shown("wider", _verdict("deny"), ALLOWED)]),
        (_rules(_rule("deny", {"and": [IS_91, False]})), _rules(_rule("deny", IS_91)), "narrower",
         [_shown("narrower", ALLOWED, _verdict("deny"), {"order": {"age_days": 13}})]),
        (_nothing, _section("policy_layer", limits=[DAY]), "narrower",
         [_shown("narrower", ALLOWED, _verdict("deny", rule="", reason="limit_exceeded:day"), {"limits": {"day": 0}})]),
        (_rules(_rule("allow", args={"amount": {"enum": [True]}})), _nothing, "wider", None),
        (_enum(True, False), _enum(True), "narrower", None),
        (_enum(True, False), _enum(False), "narrower", None),
        (_enum(True), _enum(True, False), "wider", None),
        (_enum(None), _enum(None, 1), "wider", None),
        (_enum("x"), _enum("y"), "incomparable", None),
        (_enum(1), _enum(1.0), "equal", None),
        (_enum(0.5), _enum(0.25), "incomparable", None),
    ],
)  # fmt: skip
def test_the_answer_and_the_call_that_shows_it(
    old: Change, new: Change, answer: str, shown: Any
) -> None:
    proof = _prove(old, new)
    payload = proof.to_payload()
    assert (payload["answer"], payload["unknown"], payload["calls"]) == (answer, [], 1)
    if shown is not None:
        assert payload["differences"] == shown


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("request.intent", "support.order_status"),
        ("call.capability", "orders.lookup"),
        ("call.approval_mode", "read_only"),
        ("run.safety_mode", "read_only"),
        ("agent.role", "support_agent"),
        ("agent.voice", "neutral_concise"),
    ],
)
def test_what_a_call_fixes_is_known(path: str, value: str) -> None:
    for found, answer in ((value, "equal"), ("other", "wider")):
        always = {"==": [{"var": path}, found]}
        assert _prove(DENY, _rules(_rule("deny", always))).answer == answer


def test_what_the_packs_fix_differently_is_told_apart() -> None:
    base = {"agent": {"role": "support_agent", "voice": "warm"}}
    rule = _rules(_rule("deny", {"in": ["warm", {"cat": [{"var": "agent.voice"}, ""]}]}))
    proof = _prove(rule, _all(rule, _section("tone_and_comms", **base)))
    whats = {(part.what, part.why.partition(": ")[2]) for part in proof.open_parts}
    assert proof.answer == "unknown"
    assert whats == {("orders.lookup for support.order_status", "it depends on what `in` gives")}


# ---- modes and hosts --------------------------------------------------------------------------


def _mode(mode: str) -> Change:
    return lambda raw: raw["pack_meta"]["defaults"].update({"safety_mode": mode})


IN_NETWORK = _rules(_rule("deny", {"==": [{"var": "run.safety_mode"}, "network"]}))


@pytest.mark.parametrize(
    ("old", "new", "answer"),
    [
        (_all(_mode("network"), DENY), _all(_mode("network"), IN_NETWORK), "wider"),
        (_mode("network"), _all(_mode("network"), IN_NETWORK), "narrower"),
        (_mode("local_write"), _all(_mode("local_write"), IN_NETWORK), "equal"),
        (_mode("network"), _mode("read_only"), "equal"),
        (_mode("network"), _all(_mode("local_write"), IN_NETWORK), "equal"),
        (_mode("local_write"), _all(_mode("network"), IN_NETWORK), "narrower"),
        (_all(_mode("network"), IN_NETWORK), _all(_mode("read_only"), IN_NETWORK), "wider"),
        (_all(_mode("delegated"), IN_NETWORK), _all(_mode("destructive"), IN_NETWORK), "equal"),
        (_all(_mode("delegated"), IN_NETWORK), _mode("destructive"), "wider"),
    ],
)
def test_a_run_may_lower_its_mode_but_not_raise_it(old: Change, new: Change, answer: str) -> None:
    assert _prove(old, new).answer == answer


def test_a_pair_of_modes_is_shown() -> None:
    old, new = _all(_mode("network"), IN_NETWORK), _all(_mode("read_only"), IN_NETWORK)
    (found,) = _prove(old, new).to_payload()["differences"]
    assert found["safety_mode"] == {"before": "network", "after": "read_only"}
    assert "run" not in found["data"]


@pytest.mark.parametrize(
    ("old", "new", "answer", "host"),
    [
        (None, ["a.example"], "narrower", {"elsewhere.example"}),
        (["a.example"], None, "wider", {"elsewhere.example"}),
        (["a.example", "b.example"], ["b.example"], "narrower", {"a.example"}),
        (["a.example"], ["b.example", "a.example"], "wider", {"b.example"}),
        (["a.example"], ["b.example"], "incomparable", {"a.example", "b.example"}),
        (["a.example", "b.example"], ["b.example", "a.example"], "equal", set()),
    ],
)
def test_hosts_are_compared_one_by_one(old: Any, new: Any, answer: str, host: set[str]) -> None:
    proof = _prove(_section("tooling_layer", hosts=old), _section("tooling_layer", hosts=new))
    assert proof.answer == answer
    assert {each.case.host for each in proof.differences} == host


# ---- what is open -----------------------------------------------------------------------------


LIMIT = {"id": "day", "applies_to": LOOKUP, "per": "user", "max": 3}
LIMITED = _section("policy_layer", limits=[LIMIT])
OTHER_TENANT = _section("pack_meta", tenant="other")
REFUND = raw_pack()["tooling_layer"]["capabilities"]["payments.refund"]
NO_TOOL = "the registry has no such capability, so its approval mode is not known"


def _intent(**members: Any) -> Change:
    return lambda raw: raw["decision_layer"]["intents"][0].update(members)


def _evidence(*names: str) -> Change:
    made = [{"key": "support.order_status", "required_evidence": list(names), "outcomes": ["x"]}]
    return lambda raw: raw["decision_layer"].update({"decisions": made})


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        (LIMITED, _all(LIMITED, OTHER_TENANT),
         [("limits", "packs of another id or tenant have counters of their own")]),
        (_nothing, _all(LIMITED, OTHER_TENANT), []),
        (LIMITED, OTHER_TENANT, []),
        (LIMITED, _all(LIMITED, _section("pack_meta", pack_id="desk")),
         [("limits", "packs of another id or tenant have counters of their own")]),
        (LIMITED, _section("policy_layer", limits=[{**LIMIT, "window_s": 60}]),
         [("limit day", "its counter is another one")]),
        (LIMITED, _section("policy_layer", limits=[{**LIMIT, "max": 4}]), []),
        (LIMITED, _section("policy_layer", limits=[{**LIMIT, "over": "allow_with_gate", "gate": "G"}]), []),
        (_nothing, _section("intelligence_refs", max_hops=1),
         [("intelligence_refs", "it changes which facts are known")]),
        (_nothing, _intent(slots={}), [("slots", "they change which facts are known")]),
        (_nothing, _section("policy_layer", guardrails={}),
         [("guardrail must_refuse.card", "texts are not compared"),
          ("guardrail must_escalate.legal", "texts are not compared")]),
        (_nothing, _section("tooling_layer", capabilities={"orders.lookup": {}, "payments.refund": REFUND}),
         [("capability orders.lookup", "it changes which facts are known")]),
        (_nothing, lambda raw: raw["pack_meta"]["defaults"].update({"budget": {"turns": 2}}),
         [("setting budget", "it decides about whole runs")]),
        (_nothing, _section("policy_layer", read_only_actions=True),
         [("setting read_only_actions", "it decides about whole runs")]),
        (_evidence("order.a"), _evidence("order.a"), []),
        (_evidence("order.a.b"), _evidence("order.a.b"), [("`order.a.b`", "required evidence is a slot and a fact")]),
        (_evidence("order"), _evidence("order.c.d"),
         [(f"`{each}`", "required evidence is a slot and a fact") for each in ("order", "order.c.d")]),
        (_intent(capabilities=["orders.lookup", "x.y"]), _intent(capabilities=["z.z", "x.y", "orders.lookup"]),
         [("`x.y`", NO_TOOL), ("`z.z`", NO_TOOL)]),
    ],
)  # fmt: skip
def test_what_is_open_is_named(old: Change, new: Change, parts: list[tuple[str, str]]) -> None:
    proof = _prove(old, new)
    assert sorted(tuple(part) for part in proof.open_parts) == sorted(parts)
    assert (proof.answer == "unknown") == bool(parts)


def test_what_is_not_understood_is_listed_by_name() -> None:
    tags, note = {"var": "order.tags"}, {"var": "order.note"}
    some = {"some": [tags, {"==": [{"var": ""}, "x"]}]}
    both = [some, {"in": ["zz", note]}]
    more = {"!": [{"in": ["zy", note]}]}
    old, new = (_rules(_rule("deny", {"and": parts})) for parts in (both, [*both, more]))
    proof = _prove(old, new)
    why = "whether it is wider: it depends on what `in`, `some` gives"
    assert why in [part.why for part in proof.open_parts]


def test_a_solver_that_gave_up_is_not_asked_again() -> None:
    class Tired:
        def __init__(self, script: str) -> None: ...

        def check(self, assumptions: Sequence[str]) -> None:
            assert len(assumptions) == 1

        def value(self, name: str) -> Fraction:
            raise AssertionError(name)

    packs = []
    for change in (_nothing, _rules(_rule("deny", IS_91))):
        change(raw := _base())
        packs.append(Pack.of(raw))
    proof = prove(packs[0], packs[1], CAPABILITIES.get, Tired)
    assert {part.why.partition(": ")[2] for part in proof.open_parts} == {"the solver gave up"}
    assert (proof.answer, proof.differences) == ("unknown", ())


def test_a_skill_and_its_calls_are_kinds_of_their_own() -> None:
    refund = CAPABILITIES["payments.refund"]
    skill = capability("skill:desk", {}, {}).replace(reaches=(refund,))
    plain = capability("orders.all", {}, {}).replace(reaches=(refund,))
    tools = {**CAPABILITIES, skill.id: skill, plain.id: plain}
    counts = []
    for names in (["orders.lookup"], [skill.id], [plain.id], [skill.id, "orders.lookup"]):
        raw = _base()
        raw["decision_layer"]["intents"][0]["capabilities"] = names
        counts.append(prove(Pack.of(raw), Pack.of(raw), tools.get, Z3Solver).calls)
    assert counts == [1, 2, 1, 3]
