"""Limits beside a second implementation, which was written from the rules alone: over random packs, calls and counters
both decide the same, for the same reason and the same reads (docs/reference/limits.md#verdict)."""

from __future__ import annotations

import os
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from reference_gate import decide
from reference_limits import limit_decision
from test_reference_gate import CAPABILITIES, Draw

from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.pack_spec import Pack, PackTool
from cogcli.policy.limits import READS, apply_limits, find_claims
from cogcli.policy.pack_policy import GovernedCall, Policy
from cogcli.policy.verdict import Verdict, approval_mode

LONG = bool(os.environ.get("COGCLI_LONG_TESTS"))
PARTS = range(5 if LONG else 1)
CALLS = 200_000 if LONG else 2_000
"""The calls of one part: a million in a long run."""
PER_PACK = 20
IDS = ["day", "total", "order"]
AMOUNTS: list[Any] = [None, True, 0, 12, 0.1, 2.5, 99.9, 240, -1, "12", 2**53]
OWNERS: list[Any] = ["ann", "", 7, 2.5, True, None]


def _limit(draw: Draw, id: str) -> dict[str, Any]:
    limit: dict[str, Any] = {
        "id": id,
        "max": draw.one(0, 5, 100, 0.3, 250.5),
        "per": draw.one("user", "tenant", "order", "args.key", "args.deep.key"),
        "applies_to": {"capabilities": draw.one(["*"], ["payments.*"], CAPABILITIES[:1])},
    }
    if draw.random.random() < 0.7:
        limit["sum"] = draw.one("amount", "amount", "deep.amount")
    if draw.random.random() < 0.3:
        limit["applies_to"]["intents"] = draw.one(["refund"], ["sta*"])
    if draw.random.random() < 0.5:
        limit |= {"over": "allow_with_gate"}
        limit |= draw.one({}, {"gate": "GATE_FINANCE_APPROVAL"})
    return limit


def _pack(draw: Draw) -> dict[str, Any]:
    raw = draw.pack()
    layer = raw["policy_layer"]
    layer["limits"] = [_limit(draw, id) for id in IDS if draw.random.random() < 0.5]
    lifts = {"rule_id": "lifts", "mode": "enforce", "if": True}
    for number in range(draw.one(0, 1, 1, 2)):
        then = {"verdict": "allow", "without_gate": draw.one(*IDS)}
        layer["rules"].append({**lifts, "rule_id": f"lifts_{number}", "then": then})
    return raw


def _call(draw: Draw, capability: str) -> dict[str, Any]:
    call = draw.call(capability)
    deep = {"amount": draw.one(*AMOUNTS), "key": draw.one(*OWNERS)}
    arguments = {"amount": draw.one(*AMOUNTS), "key": draw.one(*OWNERS), "deep": deep}
    arguments = draw.one(arguments, arguments, arguments, {}, None)
    call["data"]["args"] = arguments
    return call | {"arguments": arguments, "capability": capability, "safety_mode": "destructive"}


def _ours(
    raw: dict[str, Any],
    capability: dict[str, Any],
    call: dict[str, Any],
    owners: dict[str, Any],
    used: dict[str, Fraction],
) -> Verdict:
    pack, spec = Pack.of(raw), Capability.of(capability)
    declared = pack.tooling.capabilities.get(spec.id, PackTool()).approval_mode
    governed = GovernedCall(
        spec.id,
        approval_mode(spec, declared),
        call["role"],
        call["safety_mode"],
        call["arguments"],
        named_user=call["named_user"],
        host=call["host"],
    )
    verdict = Policy.of(pack).decide(call["intent"], governed, call["data"])
    claims = find_claims(pack, call["intent"], spec.id, call["arguments"] or {}, owners)
    held = {id: Decimal(each.numerator) / each.denominator for id, each in used.items()}
    return apply_limits(verdict, claims, held)


def _reads(verdict: Verdict) -> dict[str, tuple[str, Fraction, Fraction]]:
    counters = {path: read for path, read in verdict.reads.items() if path.startswith(READS)}
    return {
        path.removeprefix(READS): (read["owner"], Fraction(read["used"]), Fraction(read["amount"]))
        for path, read in counters.items()
    }


@pytest.mark.sampled(6)
@pytest.mark.parametrize("part", PARTS)
def test_two_gates_count_the_same(part: int) -> None:
    seen: set[str] = set()
    packs = CALLS // PER_PACK
    for seed in range(part * packs, (part + 1) * packs):
        draw = Draw(seed)
        raw = _pack(draw)
        for _ in range(PER_PACK):
            capability = draw.capability()
            call = _call(draw, capability["id"])
            owners = {"user": draw.one("ann", "bob"), "tenant": "acme", "order": draw.one(*OWNERS)}
            known = [id for id in IDS if draw.random.random() < 0.95]
            used = {id: Fraction(draw.one("0", "0.2", "99.9", "4", "250")) for id in known}
            ours = _ours(raw, capability, call, owners, used)
            theirs = limit_decision(raw, decide(raw, capability, call), call, owners, used)
            names = ("verdict", "stage", "reason", "rule", "gate", "limit")
            found = {name: getattr(ours, name) for name in names[1:]}
            found |= {"verdict": ours.outcome, "reads": _reads(ours)}
            assert found == {name: theirs[name] for name in (*names, "reads")}, {
                "number": seed,
                "call": call,
                "limits": raw["policy_layer"]["limits"],
            }
            assert not (ours.limit and ours.is_built_in and ours.asks)
            seen.add(ours.reason.partition(":")[0])
    assert {"limit_unknown", "limit_exceeded", "within_limit", "no_rule"} <= seen
