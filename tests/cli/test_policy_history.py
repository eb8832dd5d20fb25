"""`policy explain`, `policy diff`: why recorded calls were decided so, and which ones another pack decides otherwise
(docs/reference/pack.md#explain, docs/reference/pack.md#diff)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.project import Project

from cogcli.app.policy_history import read_governed_log
from cogcli.app.run_skill import environment_of
from cogcli.app.settings import Settings
from cogcli.base.calls import Answer, Attempt
from cogcli.declarations.options import RunOptions
from cogcli.run.launch import launch
from cogcli.run.policy_request import PolicyRequest
from cogcli.run.prepare import RunRequest, prepare
from cogcli.run.recorded_decisions import decide_again, policy_under

pytestmark = pytest.mark.sampled(12)

DESK = Path(__file__).parents[2] / "docs/examples/support-desk"
PACK, INTENT = "support-desk@4.0.0", "support.refund"
FILE = "packs/support-desk/4.0.0.yaml"
NEW = "new.yaml"
RUN = ("run", "support.refund", "--pack", PACK, "--intent", INTENT, "--user", "cust_7", "--json")
LIMIT = "{var: args.amount}, 200]"

SCREEN = """\
refund  payments.refund  allow_with_gate GATE_FINANCE_APPROVAL (refund_limit)
  permission  passed
  rule        passed
  situation   asked: refund_limit
  approval    granted: ann (finance)
  matched     refund_limit
  read        order.age_days = 12
  read        args.amount = 240.0
  decided by  `args.amount` 240 > 200; 200 or less would wait for GATE_OPERATOR

refund  payments.refund  allow GATE_FINANCE_APPROVAL (approved), after an answer
  permission  passed
  rule        passed
  situation   passed: approved
  safety      passed
  budget      passed
  intent      written: """


@pytest.fixture
def desk(project: Project) -> Project:
    shutil.copytree(
        DESK,
        project.root,
        dirs_exist_ok=True,
        ignore=shutil.ignore_patterns("__pycache__", ".cogcli"),
    )
    return project


def _new(desk: Project, *changes: tuple[str, str]) -> None:
    """Another version of the pack in a file, with these texts of it changed."""
    text = (desk.root / FILE).read_text().replace("pack_version: 4.0.0", "pack_version: 4.1.0")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    desk.write(NEW, text.encode())


def _explained(desk: Project, *more: str) -> dict[str, Any]:
    calls = (
        desk.run("policy", "explain", "@last", "--call", "refund", *more, "--json")
        .assert_ok()
        .json["calls"]
    )
    return dict(calls[-1])


def test_an_explanation_names_the_comparison_its_threshold_and_the_number_that_flips_it(
    desk: Project,
) -> None:
    text = (desk.root / FILE).read_text()
    (desk.root / FILE).write_text(
        text.replace("payments.refund: {approval_mode: destructive}", "payments.refund: {}")
    )
    desk.run(*RUN, "-p", "order_id=ord_881").assert_exit(5)
    call = _explained(desk)
    (compared,) = call["compared"]
    assert (compared["path"], compared["value"], compared["operator"], compared["threshold"]) == (
        "args.amount",
        240,
        ">",
        200,
    )
    shown = desk.run("policy", "explain", "@last", "--call", "refund").assert_ok().out
    assert "`args.amount` 240 > 200; 200 or less would " in shown
    first, second = call["flips"]
    assert (first["path"], first["operator"], first["value"]) == ("args.amount", "<=", 200)
    assert (second["text"], second["distance"]) == ("more than 30 would be denied", 19)
    assert call["reads"] == {"args.amount": 240, "order.age_days": 12}
    assert call["matched"] == ["refund_limit"]


def test_the_stages_are_told_in_order(desk: Project) -> None:
    desk.run(*RUN, "-p", "order_id=ord_881").assert_exit(5)
    stages = [(stage["stage"], stage["outcome"]) for stage in _explained(desk)["stages"]]
    assert stages == [
        ("permission", "passed"),
        ("rule", "passed"),
        ("situation", "asked"),
        ("approval", "waiting"),
    ]
    desk.run(
        "resume", "@last", "--approve", "GATE_FINANCE_APPROVAL", "--by", "ann:finance"
    ).assert_ok()
    last = _explained(desk)
    assert [(stage["stage"], stage["outcome"]) for stage in last["stages"]] == [
        *[(name, "passed") for name in ("permission", "rule", "situation", "safety", "budget")],
        ("intent", "written"),
        ("invocation", "done"),
    ]
    assert (last["reason"], last["verdict"]) == ("approved", "allow")
    shown = desk.run("policy", "explain", "@last", "--call", "refund").assert_ok().out
    assert shown.rpartition("event ")[0] == SCREEN


def test_a_denied_call_and_a_shadow_rule(desk: Project) -> None:
    skill = desk.root / "skills/local/support/refund/skill.yaml"
    skill.write_text(skill.read_text().replace("    config: {condition: vars.ok}\n", ""))
    pack = (desk.root / FILE).read_text()
    (desk.root / FILE).write_text(pack.replace("mode: enforce", "mode: shadow", 1))
    desk.run(*RUN, "-p", "order_id=ord_100").assert_exit(5)
    assert _explained(desk)["would"] == [{"rule": "refund_window", "verdict": "deny"}]
    (desk.root / FILE).write_text(pack)
    desk.run(*RUN, "-p", "order_id=ord_100").assert_exit(4)
    denied = _explained(desk)
    assert denied["compared"][0]["text"] == "`order.age_days` 45 > 30"
    assert denied["flips"][0]["text"].startswith("30 or less would ")
    assert [stage["outcome"] for stage in denied["stages"]] == ["passed", "passed", "refused"]


def test_what_nobody_can_tell_is_said(desk: Project) -> None:
    desk.run("run", "support.refund", "-p", "order_id=ord_440", "--json").assert_ok()
    assert "no pack decided" in desk.run("policy", "explain", "@last").assert_ok().err
    desk.run("policy", "explain", "@last", "--call", "refund").assert_exit(2)
    desk.run("policy", "explain", "ep_none").assert_exit(2)


def test_what_differs_between_two_packs(desk: Project) -> None:
    _new(
        desk,
        (LIMIT, "{var: args.amount}, 300]"),
        ("approver_roles: [finance]", "approver_roles: [finance, cfo]"),
    )
    same = desk.run("policy", "diff", PACK, FILE).assert_ok()
    assert (same.out, "the policies are the same" in same.err) == ("", True)
    changes = desk.run("policy", "diff", PACK, NEW, "--json").assert_ok().json["changes"]
    assert [
        (each["kind"], each["id"], each["change"], list(each["members"])) for each in changes
    ] == [
        ("rule", "refund_limit", "changed", ["if"]),
        ("gate", "GATE_FINANCE_APPROVAL", "changed", ["approver_roles"]),
    ]
    desk.run("policy", "diff", PACK, NEW, "@last").assert_exit(2)


def _record(desk: Project, monkeypatch: pytest.MonkeyPatch, amounts: list[int]) -> None:
    """An episode for each amount, without a process or a screen."""
    for name, value in desk.env.items():
        monkeypatch.setenv(name, value)
    settings = Settings({}, desk.env, base=str(desk.root))
    environment = environment_of(settings)
    asked = PolicyRequest(PACK, INTENT, "cust_7")
    request = RunRequest(
        "support.refund",
        {"order_id": "ord_881"},
        RunOptions(**asked.flags, durability="none"),
    )
    catalog = environment.open_registry().reach(request.skill_id, packs=(PACK,))
    for amount in amounts:
        outputs = {"orders.lookup": {"age_days": 12, "total": amount}, "policy.eval": {"ok": True}}

        def answer(attempt: Attempt, _send: Any, outputs: dict[str, Any] = outputs) -> Answer:
            return Answer(dict(outputs[attempt.capability_id]))

        result = launch(environment, prepare(catalog, request, desk.env), intercept=answer)
        assert result.exit_code == 5


def _asked(log: Path) -> Any:
    """What a person was asked to approve."""
    events = map(json.loads, log.read_text().splitlines())
    return next(
        event["payload"]["input"] for event in events if event["event_type"] == "approval.requested"
    )


def test_over_a_hundred_episodes_exactly_the_decisions_that_change_are_named(
    desk: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    amounts = [150 + 2 * number for number in range(100)]
    _record(desk, monkeypatch, amounts)
    _new(
        desk,
        (LIMIT, "{var: args.amount}, 300]"),
        ("amount: 240}}, expect: match", "amount: 340}}, expect: match"),
    )
    over = ("--over", ".cogcli/episodes")
    desk.run("policy", "diff", PACK, FILE, *over).assert_ok()
    said = desk.run("policy", "diff", PACK, NEW, *over, "--json").assert_exit(1).json["decisions"]
    assert (said["episodes"], said["compared"], said["undecided"]) == (100, 300, [])
    found = {change["episode_id"] for change in said["changed"]}
    expected = {
        log.parent.name
        for log in desk.root.rglob("events.jsonl")
        if 200 < _asked(log)["amount"] <= 300
    }
    assert len(expected) == sum(200 < amount <= 300 for amount in amounts) == len(said["changed"])
    assert found == expected
    first = said["changed"][0]
    assert (first["step_id"], first["capability"]) == ("refund", "payments.refund")
    assert (first["before"]["gate"], first["after"]["gate"]) == (
        "GATE_FINANCE_APPROVAL",
        "GATE_OPERATOR",
    )
    lines = desk.run("policy", "diff", PACK, NEW, *over).assert_exit(1)
    assert sum(line.startswith("~ ep_") for line in lines.out.splitlines()) == len(expected)
    one, two = sorted(expected)[:2]
    torn = desk.write(".cogcli/episodes/ep_01M832DSMQ5Q9Z337Z2F4TCP00/events.jsonl", b"")
    warned = desk.run("policy", "diff", PACK, FILE, *over, "--json").assert_ok().json
    assert ([each["code"] for each in warned["warnings"]], warned["decisions"]["passed_over"]) == (
        ["episode.unreadable"],
        1,
    )
    desk.run("policy", "diff", PACK, FILE, "--over", torn.parent.name).assert_exit(3)
    named = desk.run("policy", "diff", PACK, NEW, "--over", one, two, "--json").assert_exit(1).json
    assert [change["episode_id"] for change in named["decisions"]["changed"]] == [one, two]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("change", "after"),
    [
        (
            (
                "allow: [orders.lookup, policy.eval, payments.refund]",
                "allow: [orders.lookup, policy.eval]",
            ),
            "deny",
        ),
        (("order.age_days: output.age_days, ", ""), "deny"),
        (("id: support.refund\n", "id: support.refunds\n"), "deny"),
        (("safety_mode: destructive", "safety_mode: network"), "deny"),
        (("{var: order.age_days}, 30]", "{var: vars.age}, 10]"), "deny"),
        (("{var: order.age_days}, 30]", "{var: inputs.order_id}, 10]"), "deny"),
    ],
)
def test_whatever_of_a_pack_changes_is_decided_again(
    desk: Project, change: tuple[str, str], after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _record(desk, monkeypatch, [240])
    text = (desk.root / FILE).read_text()
    assert change[0] in text, change
    desk.write(NEW, text.replace(*change).encode())
    said = desk.run("policy", "diff", FILE, NEW, "--over", "@last", "--json")
    changed = {
        each["step_id"]: each["after"]["verdict"]
        for each in said.assert_exit(1).json["decisions"]["changed"]
    }
    assert changed["refund"] == after


def test_the_calls_of_an_agent_are_decided_again_with_what_its_turns_knew(desk: Project) -> None:
    desk.run("agent", "invoke", "requests/needs-finance.json").assert_exit(5)
    desk.run(
        "resume", "@last", "--approve", "GATE_FINANCE_APPROVAL", "--by", "ann:finance"
    ).assert_ok()
    calls = desk.run("policy", "explain", "@last", "--json").assert_ok().json["calls"]
    assert [call["flips"][0]["text"] for call in calls if call.get("rule")] == [
        "200 or less would wait for GATE_OPERATOR",
        "200 or less would wait for GATE_OPERATOR",
    ]
    desk.run("policy", "diff", PACK, PACK, "--over", "@last").assert_ok()
    _new(desk, ("{var: order.age_days}, 30]", "{var: order.total}, 30]"))
    said = (
        desk.run("policy", "diff", PACK, NEW, "--over", "@last", "--json")
        .assert_exit(1)
        .json["decisions"]
    )
    assert [(each["before"]["verdict"], each["after"]["verdict"]) for each in said["changed"]] == [
        ("allow_with_gate", "deny"),
        ("allow", "deny"),
    ]


def test_what_the_log_holds_masked_cannot_be_told(
    desk: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    _record(desk, monkeypatch, [240])
    log = read_governed_log(next(desk.root.rglob("events.jsonl")).parent)
    assert log is not None
    hidden = [
        event._replace(payload={**event.payload, "input": {"amount": "[masked]"}})
        if event.event_type == "policy.decided"
        else event
        for event in log.events
    ]
    policy = policy_under(log.catalog, log.pack, log.started)
    *seen, refund = decide_again(hidden, log.catalog, policy, policy)
    assert [each.why for each in seen] == ["", ""]
    assert (refund.verdict, refund.why) == (None, "`args.amount` is masked in the log")
    older = [
        event._replace(
            payload={name: each for name, each in event.payload.items() if name != "input"}
        )
        for event in log.events
    ]
    assert {each.why for each in decide_again(older, log.catalog, policy, policy)} == {
        "the log does not hold its arguments"
    }


def test_what_a_changed_pack_permits_is_proven(desk: Project) -> None:
    pytest.importorskip("z3")
    _new(desk, ("{var: order.age_days}, 30]", "{var: order.age_days}, 40]"))
    shown = desk.run("policy", "diff", PACK, NEW, "--prove").assert_exit(1)
    assert (
        "wider  payments.refund for support.refund  deny (refund_window) -> allow_with" in shown.out
    )
    assert '"age_days":31' in shown.out
    assert "wider, for 4 kinds of calls" in shown.err
    proof = desk.run("policy", "diff", PACK, NEW, "--prove", "--json").assert_exit(1).json["proof"]
    assert (proof["answer"], proof["calls"], proof["unknown"]) == ("wider", 4, [])
    (found,) = proof["differences"]
    desk.write("call.json", json.dumps(found["data"]))
    asked = ("policy", "eval", PACK, "--capability", found["capability"], "--data", "call.json")
    desk.run(*asked).assert_exit(4)
    desk.run("policy", "eval", NEW, *asked[3:]).assert_exit(5)
    desk.run("policy", "diff", PACK, FILE, "--prove").assert_ok()


def test_what_a_proof_does_not_cover_is_named_and_fails(desk: Project) -> None:
    pytest.importorskip("z3")
    _new(desk, ("phrases: [lawyer]", "phrases: [court]"))
    shown = desk.run("policy", "diff", PACK, NEW, "--prove").assert_exit(1)
    assert "?  guardrail must_escalate.legal  texts are not compared" in shown.out
    assert "unknown, for 4 kinds of calls" in shown.err
