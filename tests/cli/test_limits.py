"""Cumulative limits of a pack (docs/reference/limits.md), with the installed command."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest
from support.agent_desk import events_of, payloads
from support.limited_desk import (
    PACK,
    PER_ORDER,
    PER_USER,
    UNDER,
    decisions,
    limited_pack,
    make_limited_desk,
    paid,
    pay,
)
from support.project import COGCLI, Project, Result

pytestmark = pytest.mark.sampled(12)

LONG = bool(os.environ.get("COGCLI_LONG_TESTS"))
LIMITS = "limits.db"


def store_of(desk: Project) -> Path:
    """The file of the counters, wherever the project has its stores."""
    (found,) = (
        path for path in desk.root.parent.rglob(LIMITS) if path.is_relative_to(desk.root.parent)
    )
    return found


def rows_of(desk: Project) -> list[tuple[str, str]]:
    """The amount and the state of each reservation."""
    with closing(sqlite3.connect(store_of(desk))) as store:
        return store.execute("SELECT amount, state FROM reservation ORDER BY number").fetchall()


def assert_same_again(desk: Project) -> None:
    desk.run("verify", "@last").assert_ok()
    desk.run("replay", "@last").assert_ok()


def test_a_sum_is_kept_over_runs_and_the_record_shows_the_counter(project: Project) -> None:
    desk = make_limited_desk(project, PER_ORDER)
    pay(desk, "a", 60.1).assert_ok()
    pay(desk, "a", 39.9).assert_ok()
    (decided,) = decisions(desk)
    read = {"owner": "args.order:a", "used": "60.1", "amount": "39.9", "max": "100"}
    assert decided["reads"]["limits.per_order"] == read
    denied = pay(desk, "a", 0.01).assert_exit(4)
    assert denied.json["error"]["code"] == "policy.denied"
    (decided,) = decisions(desk)
    assert (decided["reason"], decided["limit"]) == ("limit_exceeded:per_order", "per_order")
    pay(desk, "b", 100).assert_ok()
    assert paid(desk) == [("a", 60.1), ("a", 39.9), ("b", 100)]
    assert_same_again(desk)


def test_decimal_amounts_are_added_without_rounding(project: Project) -> None:
    desk = make_limited_desk(project, PER_ORDER.replace("max: 100", "max: 0.3"))
    for _ in range(3):
        pay(desk, "a", 0.1).assert_ok()  # as floats they would be 0.30000000000000004
    pay(desk, "a", 1e-12).assert_exit(4)
    assert len(paid(desk)) == 3


def test_calls_are_counted_by_user_within_a_window(project: Project) -> None:
    desk = make_limited_desk(project, PER_USER.replace("max: 5", "max: 1"))
    pay(desk, "a", 1, "--user", "ann").assert_ok()
    pay(desk, "b", 1, "--user", "ann").assert_exit(4)
    pay(desk, "b", 1, "--user", "bob").assert_ok()
    with closing(sqlite3.connect(store_of(desk))) as store, store:
        store.execute("UPDATE reservation SET reserved_at = '2020-01-01T00:00:00.000000Z'")
    pay(desk, "b", 1, "--user", "ann").assert_ok()


@pytest.mark.parametrize("amount", ["-5", "0"])
def test_an_amount_that_would_make_room_is_denied(project: Project, amount: str) -> None:
    desk = make_limited_desk(project, PER_ORDER)
    pay(desk, "a", 100).assert_ok()
    made = pay(desk, "a", amount)
    if amount == "0":
        made.assert_ok()
        return
    made.assert_exit(4)
    assert decisions(desk)[0]["reason"] == "limit_unknown:per_order"


def test_a_denied_call_reserves_nothing(project: Project) -> None:
    rule = (
        "[{rule_id: no_b, mode: enforce, if: {'==': [{var: args.order}, b]}, then: {verdict: deny},"
        " tests: [{data: {args: {order: b}}, expect: match}, {data: {args: {order: a}}, expect: no_match}]}]"
    )
    desk = make_limited_desk(project, PER_ORDER.replace("args.order", "tenant"), rules=rule)
    pay(desk, "b", 60).assert_exit(4)
    pay(desk, "a", 100).assert_ok()
    assert rows_of(desk) == [("100", "used")]


def test_a_call_that_did_not_leave_is_released(project: Project) -> None:
    desk = make_limited_desk(project, PER_ORDER)
    service = (desk.root / "services/desk.yaml").read_text()
    remote = "id: desk\nkind: openapi\nbase_url: http://127.0.0.1:1\nnetwork: private\n"
    desk.write("services/desk.yaml", remote.encode())
    binding = desk.root / "bindings/local/pay.refund/pay_refund.yaml"
    local = binding.read_text()
    desk.write(str(binding.relative_to(desk.root)), local.replace("pythoncall", "openapi").encode())
    failed = pay(desk, "a", 60)
    assert failed.json["error"]["code"] == "call.transport"
    assert rows_of(desk) == []
    assert_same_again(desk)
    desk.write("services/desk.yaml", service.encode())
    desk.write(str(binding.relative_to(desk.root)), local.encode())
    pay(desk, "a", 100).assert_ok()


def test_a_call_that_the_service_refused_counts(project: Project) -> None:
    desk = make_limited_desk(project, PER_ORDER, body="    raise ValueError('no')")
    pay(desk, "a", 60).assert_exit(1)
    assert rows_of(desk) == [("60", "used")]


def test_a_waiting_call_reserves_when_it_is_approved(project: Project) -> None:
    desk = make_limited_desk(project, PER_ORDER, mode="destructive")
    pay(desk, "a", 60, "--user", "ann").assert_exit(5)
    waiting = desk.episode.name
    assert rows_of(desk) == []
    pay(desk, "a", 60, "--user", "ann").assert_exit(5)
    desk.run("resume", "@last", "--approve", "GATE_OPERATOR", "--by", "eve", "--json").assert_ok()
    assert_same_again(desk)
    late = desk.run("resume", waiting, "--approve", "GATE_OPERATOR", "--by", "eve", "--json")
    late.assert_exit(4)
    assert late.json["error"]["code"] == "policy.denied"
    assert paid(desk) == [("a", 60)]
    desk.run("replay", waiting).assert_ok()


def test_policy_explain_shows_what_is_left(project: Project) -> None:
    desk = make_limited_desk(project, PER_ORDER)
    pay(desk, "a", 60).assert_ok()
    pay(desk, "a", 30).assert_ok()
    shown = desk.run("policy", "explain", "@last").assert_ok()
    assert "per_order of args.order:a: 60 + 30 of 100, 10 left" in shown.out
    explained = desk.run("policy", "explain", "@last", "--json").assert_ok().json["calls"]
    assert explained[0]["limits"][0]["left"] == "10"
    assert "why" not in explained[0]
    pay(desk, "a", 30).assert_exit(4)
    shown = desk.run("policy", "explain", "@last").assert_ok()
    assert "per_order of args.order:a: 90 + 30 of 100, 10 left" in shown.out


def test_policy_eval_needs_the_counter(project: Project) -> None:
    desk = make_limited_desk(project, PER_ORDER)
    call = {"request": {"intent": "pay.back"}, "args": {"order": "a", "amount": 60}}
    asked = ("policy", "eval", PACK, "--capability", "pay.refund", "--data", "call.json", "--json")
    for limits, exit, reason in (
        ({}, 4, "limit_unknown:per_order"),
        ({"per_order": 40}, 0, "no_rule"),
        ({"per_order": 41}, 4, "limit_exceeded:per_order"),
    ):
        desk.write("call.json", json.dumps({**call, "limits": limits}).encode())
        assert desk.run(*asked).assert_exit(exit).json["verdict"]["reason"] == reason


def test_policy_diff_judges_recorded_calls_with_the_counters_of_their_time(
    project: Project,
) -> None:
    desk = make_limited_desk(project, PER_ORDER)
    pay(desk, "a", 60).assert_ok()
    desk.write("new.yaml", limited_pack(PER_ORDER.replace("100", "50")).encode())
    compared = desk.run("policy", "diff", PACK, "new.yaml", "--over", "@last", "--json")
    (changed,) = compared.assert_exit(1).json["decisions"]["changed"]
    assert (changed["before"]["verdict"], changed["after"]["verdict"]) == ("allow", "deny")
    assert compared.json["changes"][0]["members"]["max"] == {"before": 100, "after": 50}


# -- the file ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["next to the file", "in the state directory"])
def test_a_lost_file_is_noticed_by_either_anchor(project: Project, place: str) -> None:
    desk = make_limited_desk(project, PER_ORDER)
    pay(desk, "a", 100).assert_ok()
    store = store_of(desk)
    store.unlink()
    anchors = [path for path in desk.root.parent.rglob("limits/*") if path.is_file()]
    assert len(anchors) == 2
    (near,) = (
        path for path in anchors if path.parent.parent == store.parent and path.name == "anchor"
    )
    far = next(path for path in anchors if path != near)
    (far if place == "next to the file" else near).unlink()
    lost = pay(desk, "a", 1).assert_exit(3)
    assert lost.json["error"]["code"] == "limits.lost"
    assert paid(desk) == [("a", 100)]
    assert not store.exists()


def test_a_damaged_file_is_exit_3_and_not_written_over(project: Project) -> None:
    desk = make_limited_desk(project, PER_ORDER)
    pay(desk, "a", 1).assert_ok()
    store_of(desk).write_bytes(b"not a database, but long enough to be taken for one" * 20)
    damaged = pay(desk, "a", 1).assert_exit(3)
    assert damaged.json["error"]["code"] == "memory.damaged"
    assert len(paid(desk)) == 1
    assert store_of(desk).read_bytes().startswith(b"not a database")


def test_a_file_of_another_project_is_noticed(project: Project) -> None:
    desk = make_limited_desk(project, PER_ORDER)
    pay(desk, "a", 1).assert_ok()
    with closing(sqlite3.connect(store_of(desk))) as store, store:
        store.execute("UPDATE ledger SET id = 'of another file'")
    assert pay(desk, "a", 1).assert_exit(3).json["error"]["code"] == "limits.lost"


# -- plans -------------------------------------------------------------------------------------------------------------


def propose(desk: Project, *amounts: float) -> Result:
    """Let a scripted model propose refunds of one order in one turn, then give up."""
    calls = [{"name": "pay.refund", "args": {"order": "a", "amount": each}} for each in amounts]
    replies = [
        {"json": {"thinking": "I pay.", "tool_calls": calls}},
        {"json": {"thinking": "I stop.", "response": "Done."}, "times": 3},
    ]
    desk.write("models/pay.yaml", json.dumps({"replies": replies}).encode())
    asked = ("--message", "pay back a", "--pack", PACK, "--param", "order=a")
    return desk.run("agent", "invoke", *asked, "--model", "scripted:models/pay.yaml", "--json")


def test_a_plan_is_judged_on_its_sum_before_its_first_effect(project: Project) -> None:
    desk = make_limited_desk(project, PER_ORDER)
    propose(desk, 60, 60)
    assert paid(desk) == []
    gate = next(
        each for each in payloads(desk.episode, "layer.completed") if each["layer"] == "policy_gate"
    )
    assert gate["writes"]["counters"] == [
        {"limit": "per_order", "owner": "args.order:a", "used": "0"}
    ]
    verdicts = [(each["verdict"], each.get("limit")) for each in gate["writes"]["calls"]]
    assert verdicts == [("allow", None), ("deny", "per_order")]
    assert_same_again(desk)
    propose(desk, 60, 40)
    assert paid(desk) == [("a", 60), ("a", 40)]
    assert_same_again(desk)
    desk.run("policy", "explain", "@last").assert_ok()


# -- many processes ----------------------------------------------------------------------------------------------------


def start(desk: Project, amount: float) -> subprocess.Popen[bytes]:
    """A run of the installed command in a process group of its own."""
    words = [COGCLI, "run", "pay.back", "-p", "order=a", "-p", f"amount={amount}", *UNDER]
    null = subprocess.DEVNULL
    return subprocess.Popen(
        words,
        cwd=desk.root,
        env=desk.env,
        stdin=null,
        stdout=null,
        stderr=null,
        start_new_session=True,
    )


@pytest.mark.slow
def test_racing_commands_never_exceed_a_limit(project: Project) -> None:
    desk = make_limited_desk(project, PER_ORDER)
    running = [start(desk, 30) for _ in range(24 if LONG else 6)]
    codes = sorted(each.wait(120) for each in running)
    assert codes == [0, 0, 0, *[4] * (len(running) - 3)]
    assert paid(desk) == [("a", 30)] * 3


@pytest.mark.slow
def test_what_a_killed_run_reserved_and_never_called_is_released_by_the_next_one(
    project: Project,
) -> None:
    body = "    import time\n    time.sleep(60)"
    desk = make_limited_desk(project, PER_ORDER, body=body)
    running = start(desk, 100)
    deadline = time.monotonic() + 60
    while not any(
        event.event_type == "step.started" for each in desk.episodes for event in events_of(each)
    ):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait(60)
    # The call may have happened: it stays counted. Without its intent in the log it never left.
    pay(desk, "a", 1).assert_exit(4)
    killed = next(each for each in desk.episodes if each != desk.episode)
    log = killed / "events.jsonl"
    assert rows_of(desk) == [("100", "reserved")]
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(line for line in lines if b'"step.started"' not in line))
    make_limited_desk(project, PER_ORDER)
    pay(desk, "a", 1).assert_ok()
    assert rows_of(desk) == [("1", "used")]


# -- without a person --------------------------------------------------------------------------------------------------

ALONE = (
    "{id: alone, applies_to: {capabilities: [pay.refund]}, sum: amount, max: 50, per: user, window_s: 86400,"
    " over: allow_with_gate}"
)
SMALL = (
    "{rule_id: small, mode: enforce, applies_to: {capabilities: [pay.refund]}, if: {'<=': [{var: args.amount}, 50]},"
    " then: {verdict: allow, without_gate: alone}, tests: [{data: {args: {amount: 50}}, expect: match},"
    " {data: {args: {amount: 51}}, expect: no_match}]}"
)
ASKS_OF_B = (
    "{rule_id: asks, mode: enforce, if: {'==': [{var: args.order}, b]}, then: {verdict: allow_with_gate, gate: OTHER},"
    " tests: [{data: {args: {order: b}}, expect: match}, {data: {args: {order: a}}, expect: no_match}]}"
)
ANN = ("--user", "ann")


@pytest.mark.sampled(24)
def test_up_to_an_amount_no_person_is_asked(project: Project) -> None:
    desk = make_limited_desk(project, ALONE, rules=f"[{SMALL}]", mode="destructive")
    desk.run("pack", "check", PACK).assert_ok()
    desk.run("policy", "test", PACK).assert_ok()
    pay(desk, "a", 30, *ANN).assert_ok()
    (decided,) = decisions(desk)
    assert (decided["verdict"], decided["rule"]) == ("allow", "small")
    assert (decided["reason"], decided["limit"]) == ("within_limit:alone", "alone")
    pay(desk, "a", 30, *ANN).assert_exit(5)
    assert decisions(desk)[0]["reason"] == "limit_exceeded:alone"
    desk.run("resume", "@last", "--approve", "GATE_OPERATOR", "--by", "mia").assert_ok()
    assert_same_again(desk)
    shown = desk.run("policy", "explain", "@last").assert_ok().out
    assert "alone of user:ann: 30 of 50, 20 left; this call, approved by a person, is not" in shown
    pay(
        desk, "a", 20, *ANN
    ).assert_ok()  # what a person approved does not count as done without one
    shown = desk.run("policy", "explain", "@last").assert_ok().out
    assert "decided by  `args.amount` 20 <= 20; more than 20 would wait for" in shown
    assert "50 would wait" not in shown, "so does any number above 20"
    pay(desk, "a", 1, *ANN).assert_exit(5)
    assert paid(desk) == [("a", 30), ("a", 30), ("a", 20)]


def test_only_the_built_in_gate_is_lifted(project: Project) -> None:
    rules = f"[{SMALL}, {ASKS_OF_B}]\n  gates: {{OTHER: {{}}}}"
    desk = make_limited_desk(project, ALONE, rules=rules, mode="destructive")
    pay(desk, "b", 1, *ANN).assert_exit(5)
    assert decisions(desk)[0]["gate"] == "OTHER"
    pay(desk, "a", 1).assert_exit(4)  # a destructive call needs a user with a name
    assert decisions(desk)[0]["reason"] == "named_user"
    pay(desk, "a", 51, *ANN).assert_exit(5)  # the rule does not match
    assert paid(desk) == []


def test_a_confirmation_stands_within_the_limit(project: Project) -> None:
    desk = make_limited_desk(project, ALONE, rules=f"[{SMALL}]", mode="destructive")
    file = desk.root / "capabilities/pay.refund.yaml"
    text = file.read_text() + "safety: {trust_level: standard, requires_confirmation: true}\n"
    file.write_text(text)
    pay(desk, "a", 1, *ANN).assert_exit(5)
    assert paid(desk) == []
    assert rows_of(desk) == []
    pay(desk, "a", 1, *ANN, "--confirm", "pay.refund").assert_ok()


def test_a_further_pack_lifts_no_gate(project: Project) -> None:
    desk = make_limited_desk(project, ALONE, mode="destructive")
    other = limited_pack(ALONE, rules=f"[{SMALL}]").replace("pack_id: limited", "pack_id: other")
    desk.write("packs/other/1.0.0.yaml", other.encode())
    asked = ("--message", "pay back a", "--param", "order=a", "--param", "amount:=1", *ANN)
    packs = ("--pack", PACK, "--with-pack", "other@1.0.0")
    desk.run("agent", "invoke", *asked, *packs).assert_exit(5)
    assert paid(desk) == []


@pytest.mark.parametrize(
    ("limit", "rule", "message"),
    [
        (ALONE, SMALL.replace("verdict: allow", "verdict: deny"), "lifts no gate, as the verdict"),
        (ALONE.replace("[pay.refund]", "[other.call]"), SMALL, "does not count calls of"),
        (ALONE, SMALL.replace("without_gate: alone", "without_gate: lone"), "no limit `lone`"),
        (ALONE.replace("sum: amount", "sum: amuont"), SMALL, "has no argument `amuont`"),
        (ALONE.replace("per: user", "per: args.oder"), SMALL, "has no argument `oder`"),
        (ALONE.replace("per: user", "per: customer"), SMALL, "no slot `customer`"),
        (ALONE.replace("{capabilities: [pay.refund]}", "{}"), SMALL, "names no capability"),
    ],
)
def test_pack_check_finds_a_limit_that_does_nothing(
    project: Project, limit: str, rule: str, message: str
) -> None:
    desk = make_limited_desk(project, limit, rules=f"[{rule}]", mode="destructive")
    checked = desk.run("pack", "check", PACK).assert_exit(1)
    assert message in " ".join((checked.out + checked.err).split())


# -- gaps --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("safety_mode: destructive", "safety_mode: read_only", "above the ceiling read_only"),
        ("templates: [pay],", "", "template `pay`: no intent lists it"),
        (
            "risk: network, capabilities: [pay.refund],",
            "risk: network,",
            "is not among the capabilities of intent `pay.back`",
        ),
        ("allow: [pay.refund]", "allow: []", "intent `pay.back`: nothing can fulfil it"),
        (
            "rules: []",
            "rules: [{rule_id: daily, mode: shadow, if: {'>': [{var: order.paid_today}, 5]}, then: {verdict: deny}}]",
            "no capability gives `order.paid_today`",
        ),
        (
            "applies_to: {capabilities: [pay.refund]}, sum",
            "applies_to: {capabilities: [text.brief]}, sum",
            "`pay.refund` has an effect, and no rule or limit is about it",
        ),
    ],
)
def test_pack_check_names_what_cannot_work_or_is_not_governed(
    project: Project, old: str, new: str, message: str
) -> None:
    desk = make_limited_desk(project, PER_ORDER)
    sound = desk.run("pack", "check", PACK).assert_ok()
    assert "pack.gap" not in sound.out + sound.err
    pack = limited_pack(PER_ORDER)
    assert pack.count(old) == 1
    desk.write("packs/limited/1.0.0.yaml", pack.replace(old, new).encode())
    checked = desk.run("pack", "check", PACK, "--json")
    assert checked.code in (0, 1)
    assert message in checked.out


def test_policy_test_shows_what_the_tests_reach(project: Project) -> None:
    condition = "{and: [{'>': [{var: args.amount}, 50]}, {'==': [{var: args.order}, b]}]}"
    first = "{data: {args: {amount: 60, order: b}}, expect: match}"
    second = "{data: {args: {amount: 10, order: b}}, expect: no_match}"
    third = "{data: {args: {amount: 60, order: a}}, expect: no_match}"
    rule = "{rule_id: big, mode: enforce, if: %s, then: {verdict: deny}, tests: [%s]}"
    desk = make_limited_desk(project, rules="[" + rule % (condition, f"{first}, {second}") + "]")
    shown = desk.run("policy", "test", PACK, "--coverage", "--json").assert_ok().json["coverage"]
    assert shown["percent"] == 85.71
    (covered,) = shown["rules"]
    assert covered["missing"] == ["if/and/1 false"]
    desk.run("policy", "test", PACK, "--min-coverage", "100").assert_exit(1)
    desk.write(
        "packs/limited/1.0.0.yaml",
        limited_pack(rules="[" + rule % (condition, f"{first}, {second}, {third}") + "]").encode(),
    )
    desk.run("policy", "test", PACK, "--min-coverage", "100").assert_ok()


def test_the_nearest_amount_that_a_limit_allows_is_explained(project: Project) -> None:
    rule = "[{rule_id: small, mode: enforce, if: {'>': [{var: args.amount}, 500]}, then: {verdict: deny}}]"
    desk = make_limited_desk(project, PER_ORDER, rules=rule)
    pay(desk, "a", 30.5).assert_ok()
    assert pay(desk, "a", 70).code == 4
    shown = desk.run("policy", "explain", "@last").assert_ok().out
    assert "`args.amount` 70 is not <= 69.5; 69.5 or less would be allowed" in shown
    by_count = make_limited_desk(project, PER_USER.replace("max: 5", "max: 0"))
    assert pay(by_count, "b", 1).code == 4
    assert "decided by" not in by_count.run("policy", "explain", "@last").assert_ok().out
