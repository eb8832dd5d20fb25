"""What policy says of one call (docs/reference/pack.md#verdicts)."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.pack_spec import MODES, VERDICTS, PackTool
from cogcli.policy.verdict import Verdict, highest_mode, is_above, is_stricter, mode_under


@pytest.mark.parametrize(
    ("verdict", "allows", "asks", "decision"),
    [
        ("deny", False, False, "veto"),
        ("refuse", False, False, "veto"),
        ("escalate", False, True, "veto"),
        ("allow_with_gate", True, True, "allow"),
        ("allow", True, False, "allow"),
    ],
)
def test_what_follows_from_a_verdict(verdict: str, allows: bool, asks: bool, decision: str) -> None:
    found = Verdict(verdict, "rule", "r")
    assert (found.allows, found.asks, found.decision) == (allows, asks, decision)
    assert found.approval_mode == "read_only"
    assert (found.rule, found.gate) == ("", "")


def test_a_shadow_rule_that_would_have_been_stricter_is_told() -> None:
    for verdict, other in product(("allow", "allow_with_gate"), VERDICTS):
        shadow = ({"rule": "calm", "verdict": "allow"}, {"rule": "s", "verdict": other})
        found = Verdict(verdict, "rule", "r", would=shadow)
        stricter = VERDICTS.index(other) < VERDICTS.index(verdict)
        assert found.decision == ("audit" if stricter else "allow")
        assert is_stricter(other, verdict) is stricter
        assert Verdict("deny", "rule", "r", would=found.would).decision == "veto"


def test_a_persons_yes_lifts_a_gate() -> None:
    asked = Verdict("allow_with_gate", "situation", "limit", "limit", "GATE_X", "network")
    assert asked.lifted() == asked._replace(outcome="allow", reason="approved")


def test_a_verdict_as_the_payload_of_its_event() -> None:
    found = Verdict(
        "allow_with_gate", "situation", "limit", "limit", "GATE_X", "network", ("limit",),
        ({"rule": "s", "verdict": "deny"},), ({"rule": "s", "code": "type", "pointer": "/<"},), ("evidence",),
        {"args.amount": 240},
    )  # fmt: skip
    payload: dict[str, Any] = {
        "decision": "audit",
        "verdict": "allow_with_gate",
        "stage": "situation",
        "reason": "limit",
        "rule": "limit",
        "gate": "GATE_X",
        "enforced": True,
        "approval_mode": "network",
        "matched": ["limit"],
        "would": [{"rule": "s", "verdict": "deny"}],
        "rule_errors": [{"rule": "s", "code": "type", "pointer": "/<"}],
        "obligations": ["evidence"],
        "reads": {"args.amount": 240},
    }
    assert found.to_payload() == payload
    without = found._replace(rule="", gate="").to_payload()
    assert without == {
        name: value for name, value in payload.items() if name not in ("rule", "gate")
    }


def test_modes_are_ordered() -> None:
    for (low, mode), (high, ceiling) in product(enumerate(MODES), repeat=2):
        assert is_above(mode, ceiling) is (low > high)
        assert highest_mode([mode, ceiling]) == MODES[max(low, high)]
    assert highest_mode([]) == "read_only"


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ({}, "network"),
        ({"c.read": PackTool(approval_mode="delegated")}, "delegated"),
        ({"skill:t.s": PackTool(approval_mode="destructive")}, "destructive"),
        (
            {
                "skill:t.s": PackTool(approval_mode="read_only"),
                "c.write": PackTool(approval_mode="read_only"),
            },
            "network",
        ),
        ({"c.other": PackTool(approval_mode="destructive")}, "network"),
    ],
)
def test_a_skill_has_the_highest_mode_that_it_reaches(
    declared: dict[str, PackTool], expected: str
) -> None:
    read, write = (
        Capability.of(
            {"id": id, "version": "1", "description": "", "properties": {"side_effects": effect}}
        )
        for id, effect in (("c.read", False), ("c.write", True))
    )
    tool = read.replace(id="skill:t.s", reaches=(read, write))
    assert mode_under(declared, tool) == expected
    assert mode_under({}, read) == "read_only"
