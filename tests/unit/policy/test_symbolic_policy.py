"""Verdicts as a solver reads them, held against those of the evaluator (docs/adr/0038-proofs.md)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any, NamedTuple

import pytest
from fakes.support_desk import CAPABILITIES, capability, raw_pack
from solved import solve

from cogcli.base.jsonvalue import kind_of
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.pack_spec import MODES, Pack
from cogcli.declarations.spec_types import VERDICTS
from cogcli.declarations.value_types import Json
from cogcli.policy.counterexample import CallCase, CallKind, ComparedPacks
from cogcli.policy.smt_script import FALSE, all_of, any_of, equals, negated, number_term
from cogcli.policy.symbolic_policy import (
    PolicySide,
    SymbolicCaller,
    SymbolicVerdict,
    VerdictReader,
    limits_on,
)
from cogcli.policy.symbolic_rules import Readings, RuleReader
from cogcli.policy.symbolic_values import Unknown, constant_value
from cogcli.policy.verdict import Verdict

pytest.importorskip("z3")

HOSTS = ("a.example", "b.example")
ELSEWHERE = "c.example"
LOOKUP, REFUND = CAPABILITIES["orders.lookup"], CAPABILITIES["payments.refund"]
SKILL = capability("skill:support.refund", {}, {}).replace(reaches=(REFUND,))
KNOWN = {"order.age_days": 1, "order.total": 2}
"""The evidence that the intent requires."""
LEAST = {"user.id": "user-1", "user.role": "", "run.turn": 1}
"""What every call has, as far as these packs read it."""


class Call(NamedTuple):
    """One call that is decided."""

    facts: Mapping[str, Any] = KNOWN
    mode: str = "destructive"
    host: str = ""
    used: Mapping[str, float] = {}


def _pack(*rules: Json, limits: list[Json] | None = None, **tooling: Any) -> Pack:
    raw = raw_pack()
    raw["policy_layer"]["rules"] = [
        {"rule_id": f"rule_{number}", "mode": "enforce", "if": True, **rule}
        for number, rule in enumerate(rules)
    ]
    raw["policy_layer"]["limits"] = limits or []
    raw["policy_layer"]["permissions"][0]["allow"] += ["skill:support.refund"]
    raw["decision_layer"]["intents"][0]["capabilities"] += ["skill:support.refund"]
    raw["tooling_layer"] |= tooling
    return Pack.of(raw)


def _then(verdict: str = "allow", condition: Any = True, **then: Any) -> Json:
    return {"if": condition, "then": {"verdict": verdict, **then}}


class _Sides:
    """The verdict of a pack on one kind of call, for a solver and from the evaluator."""

    def __init__(self, pack: Pack, kind: CallKind) -> None:
        self.pack, self.kind = pack, kind
        self.packs = ComparedPacks.of(pack, pack)
        self.shared = Readings()
        script, facts = self.shared.script, self.shared.facts
        self.ceiling, self.host = script.declare("Int"), script.declare("Int")
        self.limits = {limit.id: script.declare("Real") for limit in pack.policy.limits}
        fixed = {"agent.role": constant_value("text", facts.text(pack.tone.agent.role))}
        self.reader = RuleReader(self.shared, fixed, frozenset(), "old")
        side = PolicySide(pack, self.packs.policies[0], self.ceiling, self.reader, self.limits)
        named = negated(equals(facts.fact("user.id").text, facts.text("default")))
        caller = SymbolicCaller(named, self.host, HOSTS)
        self.verdict: SymbolicVerdict = VerdictReader(self.shared, side, kind, caller).read()

    def pinned(self, call: Call) -> str:
        """Return the term that the call is this one."""
        facts = {**LEAST, **call.facts}
        paths = sorted({*self.reader.paths, "user.id"})
        hosts = ("", *HOSTS, ELSEWHERE)
        return all_of(
            equals(self.ceiling, str(MODES.index(call.mode))),
            equals(self.host, str(hosts.index(call.host))),
            *[equals(name, number_term(call.used.get(id, 0))) for id, name in self.limits.items()],
            *[self._is_fact(path, facts) for path in paths],
        )

    def _is_fact(self, path: str, facts: Mapping[str, Any]) -> str:
        found: Unknown = self.shared.facts.fact(path)
        if path not in facts:
            return found.is_kind("absent")
        value, kind = facts[path], kind_of(facts[path])
        content = "true"
        if kind == "number":
            content = equals(found.number, number_term(value))
        elif kind == "text":
            content = equals(found.text, self.shared.facts.text(value))
        elif kind in ("boolean", "list"):
            content = found.boolean if value else negated(found.boolean)
        return all_of(found.is_kind(kind), content)

    def said(self, call: Call) -> Verdict:
        """Return the verdict of the evaluator."""
        facts = dict(call.facts)
        case = CallCase(self.kind, facts, (call.mode, call.mode), call.host, (call.used, call.used))
        return self.packs.decide(case)[0]

    def expected(self, said: Verdict) -> str:
        """Return the term that the verdict is this one."""
        found = self.verdict
        terms = [
            *[_same(found.levels[name], name == said.outcome) for name in VERDICTS],
            equals(found.rank, str(len(VERDICTS) - 1 - VERDICTS.index(said.outcome))),
            _same(found.asks, said.asks),
            _same(found.binds, said.allows or said.asks),
        ]
        if said.allows or said.asks:
            names = {*found.obligations, *said.obligations}
            terms += [
                _same(found.obligations.get(name, FALSE), name in said.obligations)
                for name in names
            ]
        if said.asks:
            gates = {*found.gates, said.gate}
            terms += [_same(found.gates.get(gate, FALSE), gate == said.gate) for gate in gates]
        return all_of(*terms)


def _same(term: str, holds: bool) -> str:
    return term if holds else negated(term)


def _facts(path: str, *values: Any) -> list[Call]:
    """The calls with each of these values, and without any."""
    return [Call(KNOWN), *[Call({**KNOWN, path: each}) for each in values]]


def _limit(**members: Any) -> Json:
    scope = {"capabilities": ["orders.*", "payments.refund"]}
    return {"id": "day", "applies_to": scope, "per": "user", "max": 100, **members}


def _used(*values: float, **facts: Any) -> list[Call]:
    return [Call({**KNOWN, **facts}, used={"day": value}) for value in values]


def _asked(*values: Any) -> list[Call]:
    return [
        Call({**KNOWN, "args.amount": value}, used={"day": used})
        for value, used in product(values, (0, 50, 99.5, 100))
    ]


VALUES = (None, 0, 1, 1.5, 2, -1, "", "x", "y", True, False, [], ["x"], {}, {"a": 1})
USERS = [Call({**KNOWN, "user.id": each}) for each in ("user-1", "default")]
USERS += [Call({"user.id": each}) for each in ("user-1", "default")]
PLACES = [Call(host=each) for each in ("", *HOSTS, ELSEWHERE)]
PLACES += [Call({**KNOWN, "user.id": "default"}, host=each) for each in ("", *HOSTS, ELSEWHERE)]
BOTH = [
    Call({**KNOWN, "order.a": a, "order.b": b}) for a, b in product((True, False), (True, False))
]
BOTH += [Call({**KNOWN, "order.a": True}), Call({**KNOWN, "order.b": True}), Call()]
A, B, VIP = {"var": "order.a"}, {"var": "order.b"}, {"==": [{"var": "user.role"}, "vip"]}
ROLES = [Call({**each.facts, "user.role": role}) for each in BOTH for role in ("vip", "guest")]
DAY = _limit(sum="amount")
EVIDENCE = [Call({}), Call({"order.age_days": 1}), Call({"order.total": 1}), Call()]
EVIDENCE += [Call({"order.age_days": 1, "order.total": each}) for each in (0, "", False, [])]


def _in_mode(mode: str) -> Json:
    return {"capabilities": {"orders.lookup": {"approval_mode": mode}}}


ROWS: list[tuple[Pack, Capability, list[Call]]] = [
    # modes, evidence, users and hosts
    *[(_pack(**_in_mode(mode)), LOOKUP, [Call(mode=each) for each in MODES]) for mode in MODES],
    *[(_pack(**_in_mode(mode)), LOOKUP, EVIDENCE) for mode in MODES],
    *[(_pack(**_in_mode(mode)), LOOKUP, USERS) for mode in MODES],
    *[(_pack(hosts=hosts), REFUND, PLACES) for hosts in (None, [], HOSTS[:1], HOSTS)],
    *[(_pack(hosts=hosts), LOOKUP, PLACES) for hosts in ([], HOSTS[1:])],
    *[(_pack(_then("escalate"), hosts=HOSTS[:1]), each, PLACES) for each in (LOOKUP, REFUND)],
    *[(_pack(_then("escalate"), **_in_mode(mode)), LOOKUP, USERS) for mode in MODES],
    # the order of verdicts, and their gates
    *[
        (_pack(_then(one, A, gate="G1"), _then(other, B, gate="G2")), each, BOTH)
        for one, other in product(VERDICTS, VERDICTS)
        for each in ((LOOKUP, REFUND) if one != other else (LOOKUP,))
    ],
    *[(_pack(_then(verdict, A)), each, BOTH) for verdict in VERDICTS for each in (LOOKUP, REFUND)],
    (_pack(_then("escalate", A), _then("escalate", B, gate="G2")), LOOKUP, BOTH),
    (_pack(_then("allow_with_gate", A, gate="G1"), _then("allow_with_gate", B)), LOOKUP, BOTH),
    (_pack({**_then("deny"), "mode": "shadow"}), LOOKUP, [Call()]),
    (_pack({**_then("deny"), "applies_to": {"intents": ["support.order_status"]}}), LOOKUP, [Call()]),
    # rules of the second check come first
    *[
        (_pack(_then("allow", A, obligations=["mask:x"]), _then(verdict, VIP)), LOOKUP, ROLES)
        for verdict in VERDICTS
    ],
    *[
        (_pack(_then(verdict, A, gate="G1"), _then(other, VIP, gate="G2")), LOOKUP, ROLES)
        for verdict, other in (("deny", "refuse"), ("refuse", "escalate"), ("escalate", "escalate"))
    ],
    (_pack(_then("allow", A), _then("deny", VIP), _then("refuse", {"!": [VIP]})), LOOKUP, ROLES),
    (_pack(_then("refuse", {"<": [{"var": "user.tier"}, 1]})), LOOKUP, ROLES),
    # arguments
    *[
        (_pack(_then("allow", args={"amount": {"enum": enum}})), LOOKUP, _facts("args.amount", *VALUES))
        for enum in ([None], [1], [1.5, -1], ["x"], [""], [True], [False], [0], [1, "x", None, True], [])
    ],
    *[
        (_pack(_then("allow", args={"amount": bounds})), LOOKUP, _facts("args.amount", *VALUES))
        for bounds in ({"max": 1}, {"min": 1}, {"min": 1, "max": 1.5}, {"max": 0}, {"enum": [1, 2], "max": 1})
    ],
    (_pack(_then("allow", A, args={"amount": {"max": 1}})), LOOKUP, [*BOTH, *_facts("args.amount", 1, 2)]),
    (_pack(_then("refuse", A, args={"amount": {"max": 1}})), LOOKUP, BOTH),
    (_pack(_then("allow", args={"amount": {"max": 1}, "total": {"max": 1}})), LOOKUP,
     [Call({**KNOWN, "args.amount": a, "args.total": b}) for a, b in product((1, 2), (1, 2))]),
    (_pack(_then("allow", args={"a.b": {"max": 1}})), LOOKUP, [Call()]),
    # obligations
    *[
        (_pack(_then(verdict, A, obligations=[each])), tool, [*BOTH, *USERS, *[
            Call({**call.facts, "order.a": True}) for call in (*USERS, *EVIDENCE)]])
        for each in ("named_user", "idempotency_key", "evidence", "mask:x", "unheard")
        for verdict in ("allow", "escalate", "deny")
        for tool in (LOOKUP, REFUND)
    ],
    (_pack(_then("allow", A, obligations=["mask:x"]), _then("allow", B, obligations=["mask:x", "mask:y"])),
     LOOKUP, BOTH),
    (_pack(_then("allow", A, obligations=["mask:x"])), SKILL, BOTH),
    (_pack(_then("escalate", A, obligations=["named_user"])), SKILL, BOTH),
    # skills
    (_pack(), SKILL, [Call(mode=mode) for mode in MODES]),
    (_pack(_then("allow_with_gate", A, gate="G1")), SKILL, BOTH),
    (_pack(capabilities={SKILL.id: {"approval_mode": "destructive"}}), SKILL, [Call()]),
    (_pack(limits=[_limit(applies_to={"capabilities": ["skill:*"]}, max=0)]), SKILL, [Call()]),
    # limits
    *[(_pack(limits=[_limit(max=most)]), LOOKUP, _used(0, 1, 1.5, 2, 3)) for most in (0, 1, 2, 2.5)],
    *[
        (_pack(limits=[{**DAY, "over": over, "gate": "G3"}]), tool, _asked(*VALUES, 50.5, 100, 9007199254740992))
        for over in ("deny", "allow_with_gate")
        for tool in (LOOKUP, REFUND)
    ],
    (_pack(limits=[{**DAY, "over": "allow_with_gate"}]), LOOKUP, _asked(1, 51)),
    (_pack(limits=[_limit(applies_to={"capabilities": ["mail.send"]}, max=0)]), LOOKUP, [Call()]),
    (_pack(limits=[_limit(applies_to={"intents": ["support.order_status"], "capabilities": ["orders.*"]}, max=0)]),
     LOOKUP, [Call()]),
    (_pack(limits=[_limit(per="tenant", max=2)]), LOOKUP, _used(1, 2)),
    (_pack(limits=[_limit(per="order", max=2)]), LOOKUP, _facts("order.id", *VALUES[1:])),
    (_pack(limits=[_limit(per="args.order_id", max=2)]), LOOKUP, _facts("args.order_id", *VALUES)),
    *[
        (_pack(_then(verdict, A, gate="G1"), limits=[_limit(max=1, over=over, gate="G3")]), tool,
         [call._replace(used={"day": used}) for call in BOTH for used in (0, 1)])
        for verdict in VERDICTS for over in ("deny", "allow_with_gate") for tool in (LOOKUP, REFUND)
    ],
    (_pack(limits=[_limit(max=1, over="allow_with_gate", gate="G3"),
                   _limit(id="month", max=2, over="allow_with_gate", gate="G4"),
                   _limit(id="year", max=4)]), LOOKUP,
     [Call(used={"day": a, "month": b, "year": c}) for a, b, c in product((0, 1), (1, 2), (3, 4))]),
    # the built-in gate, waived within a limit
    *[
        (_pack(_then("allow", A, without_gate="day"), _then("allow", B, without_gate=other),
               limits=[_limit(max=1, over=over, gate="G3")]), tool,
         [call._replace(used={"day": used}) for call in BOTH for used in (0, 1)])
        for other in ("day", "week") for over in ("deny", "allow_with_gate") for tool in (LOOKUP, REFUND)
    ],
    (_pack(_then("allow", A, without_gate="day"), _then("allow_with_gate", B, gate="G2"), limits=[_limit(max=1)]),
     REFUND, BOTH),
    (_pack(_then("allow", A, without_gate="day")), REFUND, BOTH),
]  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", range(0, len(ROWS), 8))
def test_a_solver_reads_the_verdict_of_the_evaluator(number: int) -> None:
    for pack, tool, calls in ROWS[number : number + 8]:
        sides = _Sides(pack, CallKind("support.refund", tool))
        script, wrong, right = sides.shared.script, [], []
        for call in calls:
            said, pinned = sides.said(call), sides.pinned(call)
            wrong.append(all_of(pinned, negated(sides.expected(said))))
            right.append(all_of(pinned, sides.expected(said)))
        found = solve(script, [any_of(*wrong), *right])
        at = {"tool": tool.id, "layer": pack.policy, "calls": calls}
        assert found == [False, *[True for _ in calls]], at


def test_a_call_that_no_role_may_make_is_denied() -> None:
    for tool in (capability("mail.send", {}, {}), LOOKUP):
        role = {"tone_and_comms": {"agent": {"role": "nobody", "voice": "v"}}}
        pack = Pack.of({**raw_pack(), **(role if tool is LOOKUP else {})})
        found = _Sides(pack, CallKind("support.refund", tool)).verdict
        assert (found.levels["deny"], found.rank, found.binds) == ("true", "4", "false")


def test_a_skill_that_is_permitted_permits_its_calls() -> None:
    raw = raw_pack()
    raw["policy_layer"]["permissions"][0]["allow"] = ["skill:support.refund"]
    raw["decision_layer"]["intents"][0]["capabilities"] = ["skill:support.refund"]
    kinds = [CallKind("support.refund", LOOKUP, each) for each in ("", "skill:support.refund")]
    found = [_Sides(Pack.of({**raw}), kind).verdict.levels["deny"] for kind in kinds]
    assert found[0] == "true" != found[1]


def test_lists_and_objects_of_an_enum_are_open() -> None:
    pack = _pack(_then("allow", args={"amount": {"enum": [["x"], {"a": 1}]}}))
    sides = _Sides(pack, CallKind("support.refund", LOOKUP))
    assert sides.reader.inexact == {"enum"}
    terms = []
    for value in (["x"], {"a": 1}):
        pinned = sides.pinned(Call({**KNOWN, "args.amount": value}))
        terms += [all_of(pinned, sides.verdict.levels[name]) for name in ("allow", "deny")]
    pinned = sides.pinned(Call({**KNOWN, "args.amount": 1}))
    terms.append(all_of(pinned, sides.verdict.levels["allow"]))
    assert solve(sides.shared.script, terms) == [True, True, True, True, False]


def test_what_a_verdict_reads_is_told() -> None:
    limits = [_limit(sum="amount", per="args.order_id"), _limit(id="other", per="order")]
    pack = _pack(_then("allow", A, args={"total": {"max": 1}}), limits=limits)
    read = _Sides(pack, CallKind("support.refund", LOOKUP)).reader.paths
    arguments = {"args.amount", "args.order_id", "args.total"}
    assert read == {*arguments, "order.a", "order.id", "order.age_days", "order.total"}
    assert [limit.id for limit in limits_on(pack, CallKind("x", LOOKUP))] == ["day", "other"]
    assert limits_on(pack, CallKind("x", SKILL)) == []
