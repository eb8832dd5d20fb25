"""Whether a gate or a verdict of a changed pack permits more than before (docs/reference/pack.md#prove)."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from fakes.support_desk import raw_pack

from cogcli.declarations.pack_spec import Pack, PackGate
from cogcli.policy.policy_effect import (
    DIFFERENT,
    NARROWER,
    WIDER,
    compare_gate_names,
    compare_gates,
    compare_verdicts,
)
from cogcli.policy.verdict import Verdict


def _gate(*roles: str, ttl_s: int = 60, allow_self: bool = False, signed: bool = False) -> PackGate:
    return PackGate(approver_roles=roles, ttl_s=ttl_s, allow_self=allow_self, signed=signed)


def _pack(**gates: Any) -> Pack:
    raw = copy.deepcopy(raw_pack())
    raw["policy_layer"]["gates"] = gates
    return Pack.of(raw)


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (_gate("a"), _gate("a"), ()),
        (_gate("a"), _gate("a", "b"), (WIDER,)),
        (_gate("a", "b"), _gate("a"), (NARROWER,)),
        (_gate("a"), _gate("b"), (DIFFERENT,)),
        (_gate("a"), _gate(), (WIDER,)),
        (_gate(), _gate("a"), (NARROWER,)),
        (_gate(), _gate(), ()),
        (_gate(ttl_s=60), _gate(ttl_s=61), (WIDER,)),
        (_gate(ttl_s=60), _gate(ttl_s=59), (NARROWER,)),
        (_gate(), _gate(allow_self=True), (WIDER,)),
        (_gate(allow_self=True), _gate(), (NARROWER,)),
        (_gate(), _gate(signed=True), (NARROWER,)),
        (_gate(signed=True), _gate(), (WIDER,)),
        (_gate(ttl_s=60), _gate(ttl_s=61, signed=True), (DIFFERENT,)),
    ],
)
def test_a_gate_is_easier_or_harder_to_pass(
    old: PackGate, new: PackGate, found: tuple[str, ...]
) -> None:
    assert compare_gates(old, new) == frozenset(found)


def test_a_gate_of_another_name_is_another_one() -> None:
    pack, other = _pack(ONE={"ttl_s": 60}), _pack(ONE={"ttl_s": 61}, TWO={"ttl_s": 60})
    assert compare_gate_names(pack, "ONE", other, "ONE") == {WIDER}
    assert compare_gate_names(pack, "ONE", other, "TWO") == {DIFFERENT}
    assert compare_gate_names(pack, "NONE", other, "NONE") == frozenset()


def _verdict(outcome: str, *obligations: str, gate: str = "") -> Verdict:
    return Verdict(outcome, "rule", "r", gate=gate, obligations=obligations)


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (_verdict("allow"), _verdict("allow"), ()),
        (_verdict("deny"), _verdict("allow"), (WIDER,)),
        (_verdict("allow"), _verdict("allow_with_gate", gate="ONE"), (NARROWER,)),
        (_verdict("allow_with_gate", gate="ONE"), _verdict("deny"), (NARROWER,)),
        (_verdict("allow", "log"), _verdict("allow"), (WIDER,)),
        (_verdict("allow"), _verdict("allow", "log"), (NARROWER,)),
        (_verdict("allow", "log"), _verdict("allow", "mask:x"), (WIDER, NARROWER)),
        (_verdict("deny", "log"), _verdict("deny"), ()),
        (
            _verdict("allow_with_gate", gate="ONE"),
            _verdict("allow_with_gate", gate="ONE"),
            (WIDER,),
        ),
        (
            _verdict("allow_with_gate", "log", gate="ONE"),
            _verdict("allow_with_gate", gate="TWO"),
            (WIDER, DIFFERENT),
        ),
    ],
)
def test_a_verdict_permits_more_or_less(old: Verdict, new: Verdict, found: tuple[str, ...]) -> None:
    before, after = _pack(ONE={"ttl_s": 60}), _pack(ONE={"ttl_s": 61}, TWO={"ttl_s": 60})
    assert compare_verdicts(before, old, after, new) == frozenset(found)
