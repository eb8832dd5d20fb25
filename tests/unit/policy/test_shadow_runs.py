"""A policy that enforces no rule: what stays a no, a question or a mask, and what each rule would have decided
(docs/reference/pack.md#shadow).
"""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.declarations.pack_spec import Pack
from cogcli.policy.pack_policy import GovernedCall, Policy
from cogcli.policy.verdict import Verdict

INTENT = {"id": "help", "phrases": ["help"], "risk": "network", "capabilities": ["mail.send"]}


def decide(
    then: dict[str, Any],
    *,
    mode: str = "network",
    role: str = "clerk",
    is_shadow: bool = True,
    condition: Any = True,
    **call: Any,
) -> Verdict:
    """The verdict on a call of `mail.send` under a pack with one rule."""
    pack = Pack.of(
        {
            "pack_meta": {"pack_id": "desk", "pack_version": "1.0.0", "defaults": {"safety_mode": "destructive"}},
            "policy_layer": {
                "permissions": [{"role": "clerk", "allow": ["mail.send"]}],
                "rules": [{"rule_id": "r", "mode": "enforce", "if": condition, "then": then}],
            },
            "tooling_layer": {},
            "decision_layer": {"intents": [INTENT]},
            "tone_and_comms": {"agent": {"role": "clerk"}},
        }
    )  # fmt: skip
    governed = GovernedCall("mail.send", mode, role, "destructive", {"to": "bo"}, **call)
    return Policy.of(pack, is_shadow=is_shadow).decide("help", governed, {"args": {"to": "bo"}})


@pytest.mark.parametrize("verdict", ["deny", "refuse", "escalate", "allow_with_gate"])
def test_a_rule_that_matches_is_recorded_and_decides_nothing(verdict: str) -> None:
    enforced = decide({"verdict": verdict}, is_shadow=False)
    assert (enforced.outcome, enforced.matched, enforced.would) == (verdict, ("r",), ())
    found = decide({"verdict": verdict})
    assert (found.outcome, found.matched) == ("allow", ())
    assert found.would == ({"rule": "r", "verdict": verdict},)
    assert found.decision == "audit"
    assert found.to_payload()["enforced"] is False
    assert enforced.to_payload()["enforced"] is True


def test_a_rule_without_a_result_would_deny() -> None:
    found = decide({"verdict": "allow"}, condition={"<": [{"var": "args.none"}, 5]})
    assert (found.outcome, found.would) == ("allow", ({"rule": "r", "verdict": "deny"},))
    assert found.rule_errors


def test_the_built_in_gate_asks_and_no_rule_lifts_it() -> None:
    then = {"verdict": "allow", "without_gate": "LIMIT"}
    found = decide(then, mode="destructive")
    assert (found.outcome, found.is_built_in, found.without_gate) == ("allow_with_gate", True, ())
    assert decide(then, mode="destructive", is_shadow=False).without_gate == ("LIMIT",)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ({"role": "guest"}, "permission_denied"),
        ({"mode": "destructive", "named_user": False}, "named_user"),
    ],
)
def test_what_no_rule_decides_stays_a_no(call: dict[str, Any], reason: str) -> None:
    found = decide({"verdict": "allow"}, **call)
    assert (found.outcome, found.reason) == ("deny", reason)


def test_masks_of_a_rule_that_matches_stay() -> None:
    then = {"verdict": "deny", "obligations": ["mask:card", "evidence", "named_user"]}
    found = decide(then)
    assert found.masks == ("card",)
    assert not {"evidence", "named_user"} & set(found.obligations)
    assert decide(then, condition=False).masks == ()
