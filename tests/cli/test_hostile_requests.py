"""Requests, flags and approvers that try to get more than the pack gives (docs/reference/agent-run.md#invoke)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fakes.support_desk import pack as support_pack
from support.project import Project

from cogcli.agent.cognition.loop import MIN_HEARTBEAT_MS
from cogcli.agent.use_cases.compile_context import parse_request
from cogcli.base.errors import PolicyApprovalError, UsageError
from cogcli.declarations.governance_events import ApprovalRequested
from cogcli.declarations.run_start import RecordedPolicy
from cogcli.run.approver import require_approver
from cogcli.run.policy import limits_of

REQUEST = {"message": "Where is order ord_881?", "pack_refs": ["support-desk@4.0.0"]}
GATE: dict[str, Any] = {
    "approver_roles": ["finance"],
    "gate": "GATE_FINANCE_APPROVAL",
    "allow_self": False,
}


ASKED = ApprovalRequested(approval_id="ap_1", **GATE)
POLICY = RecordedPolicy(pack="support-desk@4.0.0", user="cust_7")


@pytest.mark.parametrize(
    "wrong",
    [
        {"attachments": ["x"]},
        {"attachments": [None]},
        {"attachments": [[]]},
        {"trace_id": "T" * 129},
        {"trace_id": "\x1b[31m"},
    ],
    ids=str,
)
def test_a_member_that_a_run_cannot_hold_is_refused_before_it(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        parse_request({**REQUEST, **wrong})


@pytest.mark.parametrize(
    "wrong", [{"user": "bob"}, {"user": ["bob"]}, {"params": [1]}, {"params": "x"}], ids=str
)
def test_flags_beside_a_member_of_a_wrong_type_are_no_crash(
    desk: Project, wrong: dict[str, Any]
) -> None:
    desk.write("r.json", json.dumps({**REQUEST, **wrong}).encode())
    result = desk.run("agent", "invoke", "r.json", "--user", "bob", "--param", "a=b").assert_exit(2)
    assert f"`{next(iter(wrong))}` of the request: expected an object" in result.err
    assert not list(desk.root.rglob("events.jsonl"))


@pytest.mark.parametrize(
    "key", ["tool_calls", "tool_calls.per_trun", "turn", "policy.x", "buckets.foo", ""]
)
def test_a_budget_that_limits_nothing_is_refused(key: str) -> None:
    with pytest.raises(UsageError, match="no budget"):
        limits_of(support_pack(), {key: 1})


@pytest.mark.parametrize(
    "key", ["turns", "cost_microusd", "buckets.policy", "stage_latency_ms.plan"]
)
def test_a_budget_may_be_lowered(key: str) -> None:
    assert limits_of(support_pack(), {key: 1})[key] == 1


def test_the_size_of_a_bucket_is_not_raised() -> None:
    with pytest.raises(UsageError, match="above the pack's 600"):
        limits_of(support_pack(), {"buckets.policy": 601})


@pytest.mark.parametrize(
    "name",
    [
        "cust_7",
        "CUST_7",
        "\uff43ust_7",
        "cust\uff3f7",
        "Agent.Support-Desk",
        "\u0441ust_7",
        "\u0421U\u0405T_7",
        "\u03f9UST_7",
        "\u03f2us\u03c4_7",
        "cu\u034fst_7",
        "cust\ufe0f_7",
        "\u0430gent.support-desk",
        "\u0391gent.Support-Desk",
    ],
)
def test_whoever_asked_does_not_approve_under_another_spelling(name: str) -> None:
    with pytest.raises(PolicyApprovalError, match="needs another person"):
        require_approver(ASKED, granted=True, by=f"{name}:finance", policy=POLICY)


@pytest.mark.parametrize(
    "name",
    ["", " ", "cust_7 ", " ann", "cust\u200b_7", "ann\x1b[31m", "ann\n", "\u202eann", "\ud800"],
    ids=repr,
)
def test_an_approver_has_a_name_that_is_seen(name: str) -> None:
    for granted in (True, False):
        with pytest.raises(UsageError, match="--by"):
            require_approver(ASKED, granted=granted, by=f"{name}:finance", policy=POLICY)


def may_approve(name: str) -> bool:
    try:
        require_approver(ASKED, granted=True, by=f"{name}:finance", policy=POLICY)
    except PolicyApprovalError:
        return False
    return True


def test_another_person_approves() -> None:
    others = [
        "ann",
        "a:b",
        "Zoë Ödegård",
        "ann@example.org",
        "\u0410\u043d\u043d\u0430",
        "cust_8",
        "c\u00faust_7",
    ]
    assert [name for name in ("cust_7", *others) if may_approve(name)] == others


def test_the_shortest_heartbeat_does_not_fill_the_log(desk: Project) -> None:
    desk.write(
        "support_desk.py",
        (desk.root / "support_desk.py")
        .read_text()
        .replace(
            "    return ORDERS[order_id]",
            "    import time\n    time.sleep(0.5)\n    return ORDERS[order_id]",
        )
        .encode(),
    )
    desk.run("agent", "invoke", "requests/allowed.json", "--budget", "heartbeat_ms=0").assert_ok()
    (log,) = desk.root.rglob("events.jsonl")
    records = [json.loads(line) for line in log.read_text().splitlines()]
    beats = [each["payload"] for each in records if each["event_type"] == "run.heartbeat"]
    # A busy machine makes the run longer, so the beats are compared with the time that it took.
    assert len(beats) >= 1
    assert len(beats) <= beats[-1]["elapsed_ms"] / MIN_HEARTBEAT_MS


@pytest.mark.parametrize("refs", [["support-desk@4.0.0", "nope@1.0.0"], ["support-desk@4.0.0"] * 2])
def test_a_pack_beside_the_first_is_not_passed_over(desk: Project, refs: list[str]) -> None:
    desk.write("r.json", json.dumps({**REQUEST, "pack_refs": refs}).encode())
    result = desk.run("agent", "invoke", "r.json")
    assert result.code == (3 if "nope@1.0.0" in refs else 2)
    assert not list(desk.root.rglob("events.jsonl"))


@pytest.mark.parametrize(
    "command", [["agent", "invoke", "requests/allowed.json", "--pack"], ["pack", "hash"]]
)
def test_a_hash_that_is_left_empty_is_not_any_content(desk: Project, command: list[str]) -> None:
    refused = desk.run(*command, "support-desk@4.0.0#").assert_exit(2)
    assert "no hash behind `#`" in refused.err
    assert not list(desk.root.rglob("events.jsonl"))
