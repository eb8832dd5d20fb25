"""Cumulative limits, judged (docs/reference/limits.md#verdict)."""

from __future__ import annotations

import copy
from decimal import Decimal
from typing import Any

import pytest
from fakes.support_desk import pack, raw_pack

from cogcli.declarations.governance_events import PolicyDecided
from cogcli.declarations.pack_spec import CumulativeLimit, Pack, RuleScope
from cogcli.policy.budgets import Budgets
from cogcli.policy.limits import (
    LimitClaim,
    LimitedCall,
    amount_of,
    apply_limits,
    claims_to_reserve,
    decimal_of,
    find_claims,
    list_counters,
    recorded_use,
    use_in_data,
)
from cogcli.policy.pack_diff import diff_packs
from cogcli.policy.pack_policy import GovernedCall, Policy
from cogcli.policy.run_policy import Requester, RunPolicy
from cogcli.policy.verdict import Verdict

REFUND = "payments.refund"
ALLOW = Verdict("allow", "situation", "no_rule")
ASKS = Verdict("allow_with_gate", "rule", "asks", "asks", "OTHER")
BUILT_IN = Verdict(
    "allow_with_gate", "situation", "destructive", gate="GATE_OPERATOR", is_built_in=True
)


def limit(**more: Any) -> CumulativeLimit:
    values: dict[str, Any] = {"id": "total", "sum": "amount", "max": 100, "per": "tenant"}
    values["scope"] = RuleScope(capabilities=(REFUND,))
    return CumulativeLimit(**{**values, **more})


def limited(*limits: CumulativeLimit) -> Pack:
    plain = pack()
    return plain.replace(policy=plain.policy.replace(limits=limits))


def claims(
    arguments: dict[str, Any], *limits: CumulativeLimit, capability: str = REFUND
) -> tuple[LimitClaim, ...]:
    owners = {"user": "ann", "tenant": "acme", "order": "ord_1", "customer": None}
    return find_claims(
        limited(*(limits or (limit(),))), "support.refund", capability, arguments, owners
    )


@pytest.mark.parametrize(
    ("per", "owner"),
    [
        ("user", "user:ann"),
        ("tenant", "tenant:acme"),
        ("order", "order:ord_1"),
        ("customer", None),
        ("args.order", "args.order:7"),
        ("args.deep.key", "args.deep.key:k1"),
        ("args.none", None),
    ],
)
def test_the_owner_of_a_counter(per: str, owner: str | None) -> None:
    (claim,) = claims({"amount": 1, "order": 7, "deep": {"key": "k1"}}, limit(per=per))
    assert claim.owner == owner
    assert claim.is_known == (owner is not None)
    assert claim.counter.owner == (owner or "")


@pytest.mark.parametrize("value", [True, "5", None, -1, 2**53])
def test_what_is_no_amount(value: object) -> None:
    assert amount_of(value) is None
    (claim,) = claims({"amount": value})
    assert not claim.fits(Decimal(0))
    assert apply_limits(ALLOW, (claim,), {"total": Decimal(0)}).reason == "limit_unknown:total"


def test_the_largest_amount_is_the_largest_exact_integer() -> None:
    assert amount_of(2**53 - 1) == 2**53 - 1


@pytest.mark.parametrize("text", [None, "x", "NaN", "-1", "1" * 400])
def test_what_is_no_stored_amount(text: object) -> None:
    with pytest.raises(ValueError, match="amount"):
        decimal_of(text)


def test_calls_of_others_and_of_skills_do_not_count() -> None:
    assert claims({"amount": 1}, capability="orders.lookup") == ()
    assert claims({"amount": 1}, capability="skill:payments.refund") == ()
    (counted,) = claims({}, limit(sum="", scope=RuleScope(capabilities=("payments.*",))))
    assert counted.amount == 1


def test_the_verdict_by_what_is_used() -> None:
    (claim,) = claims({"amount": 40})
    assert apply_limits(ALLOW, (claim,), {"total": Decimal(60)}).outcome == "allow"
    denied = apply_limits(ALLOW, (claim,), {"total": Decimal("60.01")})
    assert (denied.outcome, denied.reason, denied.limit) == (
        "deny",
        "limit_exceeded:total",
        "total",
    )
    assert apply_limits(denied, (claim,), {}) is denied
    assert apply_limits(ALLOW, (), {}) is ALLOW


@pytest.mark.parametrize("verdict", [ALLOW, ASKS, BUILT_IN])
def test_a_call_beyond_a_limit_is_denied_whoever_would_be_asked(verdict: Verdict) -> None:
    (claim,) = claims({"amount": 40})
    before = verdict._replace(reads={"args.x": 1})
    denied = apply_limits(before, (claim,), {"total": Decimal(61)})
    assert (denied.outcome, denied.stage, denied.rule, denied.gate) == ("deny", "situation", "", "")
    assert list(denied.reads) == ["args.x", "limits.total"]
    unknown = apply_limits(verdict, (claim,), {})
    assert (unknown.outcome, unknown.reason) == ("deny", "limit_unknown:total")


@pytest.mark.parametrize("verdict", [ALLOW._replace(stage="rule", rule="small"), BUILT_IN])
def test_the_first_limit_that_is_exceeded_asks_at_its_gate_or_the_built_in_one(
    verdict: Verdict,
) -> None:
    both = claims(
        {"amount": 40},
        limit(over="allow_with_gate"),
        limit(id="other", over="allow_with_gate", gate="MINE"),
    )
    asked = apply_limits(verdict, both, {"total": Decimal(61), "other": Decimal(61)})
    assert (asked.stage, asked.gate, asked.limit, asked.rule, asked.is_built_in) == (
        "situation",
        "GATE_OPERATOR",
        "total",
        "",
        False,
    )


def test_a_limit_that_asks_leaves_what_a_rule_asks() -> None:
    (claim,) = claims({"amount": 40}, limit(over="allow_with_gate", gate="MINE"))
    full = {"total": Decimal(100)}
    for verdict in (ALLOW, BUILT_IN):
        asked = apply_limits(verdict, (claim,), full)
        assert (asked.outcome, asked.gate) == ("allow_with_gate", "MINE")
    assert apply_limits(ASKS, (claim,), full).gate == "OTHER"


def test_the_built_in_gate_is_lifted_within_all_named_limits() -> None:
    (claim,) = claims({"amount": 40})
    empty = {"total": Decimal(0)}
    lifts = BUILT_IN._replace(without_gate=("total",), rule="small")
    lifted = apply_limits(lifts, (claim,), empty)
    assert (lifted.outcome, lifted.gate, lifted.limit) == ("allow", "", "total")
    assert lifted.reason == "within_limit:total"
    other = BUILT_IN._replace(without_gate=("total", "other"))
    assert apply_limits(other, (claim,), empty).outcome == "allow_with_gate"
    assert apply_limits(BUILT_IN, (claim,), empty).outcome == "allow_with_gate"
    assert apply_limits(ASKS._replace(without_gate=("total",)), (claim,), empty).gate == "OTHER"


def test_what_a_call_reserves() -> None:
    hard, soft = claims({"amount": 1}, limit(), limit(id="alone", over="allow_with_gate"))
    assert claims_to_reserve(ALLOW, (hard, soft), is_lifted=False) == (hard, soft)
    assert claims_to_reserve(ALLOW, (hard, soft), is_lifted=True) == (hard,)
    assert claims_to_reserve(ASKS, (hard, soft), is_lifted=False) == ()


def test_recorded_counters() -> None:
    (claim,) = claims({"amount": 40})
    reads = apply_limits(ALLOW, (claim,), {"total": Decimal("1.5")}).reads
    assert recorded_use(reads, [claim]) == {"total": Decimal("1.5")}
    assert recorded_use({}, [claim]) is None
    assert use_in_data({"total": 3}, (claim,)) == {"total": Decimal(3)}
    assert use_in_data(None, (claim,)) == {}
    call = LimitedCall((claim,), {"total": Decimal(90)})
    assert call.apply(ALLOW).outcome == "deny"
    assert call.apply(ALLOW, ()).outcome == "allow"
    assert LimitedCall((claim,), None).lacks_counters(ALLOW)
    assert LimitedCall((claim,), None).lacks_counters(ASKS)
    assert not LimitedCall((claim,), None).lacks_counters(ALLOW._replace(outcome="deny"))
    assert not LimitedCall((claim,), {}).lacks_counters(ALLOW)


def test_what_is_left_is_listed() -> None:
    (claim,) = claims({"amount": 40})
    decided = apply_limits(ALLOW, (claim,), {"total": Decimal(10)}).to_payload()
    reads = decided["reads"]
    more = {**decided, "reads": {**reads, "args.x": 1, "limits.y": 2}}
    (found,) = list_counters(PolicyDecided.of(more))
    assert found["left"] == "50"
    other = {**decided, "reads": {"args.total": reads["limits.total"]}}
    masked = {"verdict": "allow", "reads": {"limits.total": {"used": "[masked]"}}}
    hidden = {"verdict": "allow", "reads": "[masked]"}
    for without in (other, masked, hidden, {}):
        assert list_counters(PolicyDecided.of(without)) == []


def test_the_policy_of_a_run_claims_for_its_user_and_its_slots() -> None:
    found = []
    for given in (limited(limit(per="user")), limited()):
        requester = Requester("support.refund", user_id="ann")
        policy = RunPolicy(
            given, Policy.of(given), Budgets({}), requester, safety_mode="destructive"
        )
        found.append([each.owner for each in policy.find_claims(REFUND, {"amount": 1})])
    assert found == [["user:ann"], []]


def test_a_matching_rule_names_the_limit_that_lifts_the_gate() -> None:
    raw = copy.deepcopy(raw_pack())
    scope = {"capabilities": [REFUND]}
    rule = {"rule_id": "small", "mode": "enforce", "applies_to": scope, "if": True}
    raw["policy_layer"]["rules"] = [{**rule, "then": {"verdict": "allow", "without_gate": "total"}}]
    call = GovernedCall(REFUND, "destructive", "support_agent", "destructive", {})
    verdict = Policy.of(pack(**raw)).decide("support.refund", call, {})
    assert (verdict.without_gate, verdict.is_built_in) == (("total",), True)


def test_a_changed_limit_is_a_difference() -> None:
    (change,) = diff_packs(limited(limit()), limited(limit(max=50)))
    assert (change.kind, change.id, change.members) == ("limit", "total", {"max": (100, 50)})


def test_a_call_that_is_judged_again_counts_what_its_counter_held() -> None:
    (claim,) = claims({"amount": 20})
    again = LimitedCall((claim,), {"total": Decimal(90)})
    assert again.apply(ALLOW).reason == "limit_exceeded:total"
    assert again.apply(ALLOW, ()).outcome == "allow"


def test_the_longest_text_of_a_number() -> None:
    assert decimal_of("0" * 379 + "1") == 1
    assert decimal_of("0") == 0
    for text in ("0" * 380 + "1", "-1", "Infinity", 1):
        with pytest.raises(ValueError, match="amount"):
            decimal_of(text)


@pytest.mark.parametrize("text", ["x" * 50, "-" + "1" * 49])
def test_a_long_text_that_is_no_amount_is_told_by_its_beginning(text: str) -> None:
    with pytest.raises(ValueError, match="no amount") as refused:
        decimal_of(text)
    assert str(refused.value) == f"no amount is '{text[:40]}'"


def test_what_is_left_is_shown_with_the_counter() -> None:
    read = {"owner": "tenant:acme", "used": "90", "amount": "20", "max": "100"}
    spent = {"owner": "user:ann", "used": "200", "amount": "1", "max": "100"}
    decided = {"verdict": "deny", "reads": {"limits.total": read, "limits.day": spent}}
    assert list_counters(PolicyDecided.of(decided)) == [
        {"limit": "total", **read, "is_counted": True, "left": "10"},
        {"limit": "day", **spent, "is_counted": True, "left": "0"},
    ]


def test_a_call_that_a_limit_does_not_count_leaves_what_was_left() -> None:
    read = {"owner": "user:ann", "used": "30", "amount": "30", "max": "50"}
    decided = {"verdict": "allow", "reads": {"limits.alone": read, "limits.never": read}}
    alone, never = list_counters(PolicyDecided.of(decided), {"alone"})
    assert (alone["is_counted"], alone["left"]) == (False, "20")
    assert (never["is_counted"], never["left"]) == (True, "0")


def test_an_empty_id_owns_no_counter_and_an_amount_of_nothing_is_known() -> None:
    owners = {"user": "", "tenant": "acme"}
    counted = limited(limit(per="user"), limit(id="free"))
    nameless, free = find_claims(counted, "support.refund", REFUND, {"amount": 0}, owners)
    assert (nameless.owner, nameless.is_known) == (None, False)
    assert (free.amount, free.is_known) == (Decimal(0), True)
    assert free.to_read(Decimal(5)) == {
        "owner": "tenant:acme", "used": "5", "amount": "0", "max": "100",
    }  # fmt: skip


@pytest.mark.parametrize("verdict", [ALLOW, ASKS, BUILT_IN])
def test_a_limit_denies_what_would_be_asked_too(verdict: Verdict) -> None:
    denied = apply_limits(verdict, claims({"amount": 60}), {"total": Decimal(50)})
    assert (denied.outcome, denied.reason) == ("deny", "limit_exceeded:total")


def test_a_call_whose_counters_the_log_lacks_is_denied() -> None:
    lost = LimitedCall(claims({"amount": 1}), None)
    assert lost.apply(ALLOW).reason == "limit_unknown:total"
    assert lost.lacks_counters(ASKS)
