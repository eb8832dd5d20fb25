"""What the log holds of a decision, so that it can be made again (docs/reference/pack.md#explain)."""

from __future__ import annotations

from fakes.support_desk import pack

from cogcli.policy.budgets import Budgets
from cogcli.policy.pack_policy import Policy
from cogcli.policy.run_policy import KnownFacts, LimitsPolicy, Requester, RunPolicy


def test_arguments_and_facts_are_those_of_the_moment() -> None:
    of = pack()
    asked = Requester("support.refund")
    policy = RunPolicy(
        of,
        Policy.of(of),
        Budgets({}),
        asked,
        safety_mode="network",
        slots={"order": "order:ord_881"},
    )
    before = policy.decision_evidence({"amount": 1})
    policy.learn("orders.lookup", {"age_days": 12, "total": 3}, "2026-05-04T09:30:00Z")
    assert before == {"input": {"amount": 1}, "facts": {"order": {"id": "ord_881"}}}
    assert policy.facts == {"order": {"id": "ord_881", "age_days": 12, "total": 3}}
    learned = policy.replace_facts(KnownFacts(before["facts"]))
    assert policy.facts == before["facts"]
    policy.replace_facts(learned)
    assert policy.facts == {"order": {"id": "ord_881", "age_days": 12, "total": 3}}


def test_without_a_pack_the_log_holds_nothing_more() -> None:
    assert LimitsPolicy(Budgets({})).decision_evidence({"amount": 1}) == {}
