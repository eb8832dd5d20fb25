"""How an agent's run ends from outside: closed, stopped by a signal, out of time, with an effect in doubt
(docs/reference/agent-run.md#decision)."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.project import COGCLI, Project, Result
from support.waiting import wait_until

from cogcli.episode.log_reader import EventLog

pytestmark = pytest.mark.sampled(12)

DESK = Path(__file__).parents[2] / "docs/examples/support-desk"
PACK = "packs/support-desk/4.0.0.yaml"
SMALL = (
    "agent",
    "invoke",
    "--message",
    "Refund order ord_440",
    "--user",
    "cust_7",
    "--pack",
    "support-desk@4.0.0",
)
YES = ("resume", "@last", "--approve", "payments.refund", "--by", "ann")
WAITS = """
    import pathlib, time
    with open(r"{begun}", "a") as calls:
        calls.write("x")
    until = time.monotonic() + {seconds}
    while time.monotonic() < until and not pathlib.Path(r"{begun}.go").exists():
        time.sleep(0.02)
"""  # fmt: skip


def begun(desk: Project) -> Path:
    """The file that a slow function makes when it is called: a letter a call."""
    return desk.home / "begun"


def slow(desk: Project, function: str, seconds: float = 60) -> None:
    """Let a function of the desk wait until a file is there, for so many seconds at most."""
    text = (desk.root / "support_desk.py").read_text()
    head, name, tail = text.partition(f"def {function}(")
    signature, quotes, body = tail.partition('"""\n    ')
    waiting = WAITS.format(begun=begun(desk), seconds=seconds) + "    "
    desk.write("support_desk.py", (head + name + signature + quotes + waiting + body).encode())


def edit(desk: Project, old: str, new: str) -> None:
    text = (desk.root / PACK).read_text()
    assert text.count(old) == 1
    desk.write(PACK, text.replace(old, new).encode())


def events(desk: Project) -> list[Any]:
    return [event for _, event in EventLog(next(desk.root.rglob("events.jsonl")).parent)]


def decision(desk: Project) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(next(desk.root.rglob("decision.json")).read_text())
    return found


def said(desk: Project) -> tuple[str, str]:
    """Status and reason of the decision, of a log that verifies and replays."""
    desk.run("verify", "@last").assert_ok()
    desk.run("replay", "@last").assert_ok()
    found = decision(desk)
    return found["status"], found["status_reason"]


def ends_with_its_decision(desk: Project) -> bool:
    kinds = [event.event_type for event in events(desk)]
    return kinds.count("decision.recorded") == 1 and kinds[-3:-1] == [
        "decision.recorded",
        "run.terminated",
    ]


@pytest.mark.parametrize("request_name", ["needs-finance", "escalates"])
def test_a_run_that_waits_is_closed(desk: Project, request_name: str) -> None:
    desk.run("agent", "invoke", f"requests/{request_name}.json").assert_exit(5)
    desk.run("resume", "@last", "--abort", "--by", "ann").assert_ok()
    assert said(desk)[0] == "aborted"
    assert ends_with_its_decision(desk)


BUDGET = "budget: {turns: 6, replans: 2, tokens: {context: 6000}}"


def interrupted(desk: Project, *command: str, name: str, times: int = 2) -> int:
    """Let a command run until its slow call has begun, then signal it."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([COGCLI, *command, "--json"], cwd=desk.root, env=desk.env, **quiet)  # type: ignore[call-overload]
    wait_until(begun(desk).exists)
    process.send_signal(getattr(signal, name))
    if times == 2:
        wait_until(lambda: "run.aborting" in [event.event_type for event in events(desk)])
        process.send_signal(getattr(signal, name))
    else:
        wait_until(lambda: "run.aborting" in [event.event_type for event in events(desk)])
        begun(desk).with_suffix(".go").touch()
    process.communicate(timeout=60)
    code: int = process.returncode
    return code


@pytest.mark.sampled(24)
@pytest.mark.parametrize(
    ("name", "times", "code"), [("SIGINT", 2, 130), ("SIGTERM", 2, 143), ("SIGTERM", 1, 143)]
)
def test_a_signal_during_a_call_aborts(desk: Project, name: str, times: int, code: int) -> None:
    slow(desk, "lookup_order")
    # No heartbeat is due, so one in the log was caused by the signal.
    edit(desk, BUDGET, BUDGET.replace("turns: 6", "heartbeat_ms: 3600000, turns: 6"))
    assert (
        interrupted(desk, "agent", "invoke", "requests/allowed.json", name=name, times=times)
        == code
    )
    assert said(desk) == ("aborted", "signal")
    assert ends_with_its_decision(desk)
    assert "run.heartbeat" not in [event.event_type for event in events(desk)]


def test_a_signal_during_an_effect_leaves_it_in_doubt(desk: Project) -> None:
    slow(desk, "refund")
    desk.run(*SMALL).assert_exit(5)
    assert interrupted(desk, *YES, name="SIGTERM") == 5
    assert said(desk) == ("pending_approval", "effect.in-doubt")
    desk.run("resume", "@last", "--in-doubt", "skip").assert_exit(1)
    assert said(desk) == ("completed", "goal_unmet")
    assert ends_with_its_decision(desk)


@pytest.mark.parametrize(
    ("flags", "code", "status"),
    [
        (("--timeout", "0.3"), 6, ("failed", "run.timeout")),
        (("--budget", "wall_clock_ms=300"), 4, ("denied", "budget_exceeded:wall_clock_ms")),
    ],
)
def test_a_call_is_cut_when_time_is_gone(
    desk: Project, flags: tuple[str, ...], code: int, status: tuple[str, str]
) -> None:
    slow(desk, "lookup_order", seconds=3)
    cut = desk.run("agent", "invoke", "requests/allowed.json", *flags).assert_exit(code)
    assert ("raise `wall_clock_ms` in the budget of the pack" in cut.err) is (code == 4)
    assert said(desk) == status
    assert ends_with_its_decision(desk)


def test_a_context_without_room_says_where_room_is_made(desk: Project) -> None:
    full = desk.run(
        "agent", "invoke", "requests/allowed.json", "--budget", "tokens.context=1"
    ).assert_exit(1)
    assert said(desk) == ("failed", "context.overpacked")
    assert "raise `tokens.context` in the budget of the pack" in full.err


RECEIPT = '{"receipt": {"id": "rc_1", "status": "done"}}'


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("answer", "code", "status"),
    [
        (("done", "--output", RECEIPT), 0, ("completed", "")),
        (("skip",), 1, ("completed", "goal_unmet")),
        (("fail",), 1, ("failed", "call.rejected")),
        (("rerun",), 4, ("denied", "budget.exceeded")),
    ],
    ids=["done", "skip", "fail", "rerun"],
)
def test_an_effect_in_doubt_when_time_is_gone_is_decided_and_nothing_is_called(
    desk: Project, answer: tuple[str, ...], code: int, status: tuple[str, str]
) -> None:
    # On a busy machine two commands need a second until the call has left.
    slow(desk, "refund", seconds=20)
    desk.run(*SMALL, "--budget", "wall_clock_ms=6000").assert_exit(5)
    cut: Result = desk.run(*YES, "--json").assert_exit(5)
    assert cut.json["error"]["code"] == "effect.in-doubt"
    assert said(desk) == ("pending_approval", "effect.in-doubt")
    desk.run("resume", "@last", "--in-doubt", *answer).assert_exit(code)
    assert said(desk) == status
    assert not begun(desk).exists() or begun(desk).read_text() == "x"
    assert ends_with_its_decision(desk)


@pytest.mark.sampled(24)
def test_signs_of_life_while_a_call_is_waited_for(desk: Project) -> None:
    slow(desk, "lookup_order")
    edit(desk, BUDGET, BUDGET.replace("turns: 6", "heartbeat_ms: 50, turns: 6"))
    quiet = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
    }
    command = [COGCLI, "agent", "invoke", "requests/allowed.json"]
    process = subprocess.Popen(command, cwd=desk.root, env=desk.env, **quiet)  # type: ignore[call-overload]
    wait_until(lambda: any(desk.root.rglob("events.jsonl")))
    beats = "run.heartbeat"
    wait_until(lambda: [event.event_type for event in events(desk)].count(beats) >= 2)
    begun(desk).with_suffix(".go").touch()
    assert process.wait(60) == 0
    assert said(desk) == ("completed", "")
    heard = [event.payload for event in events(desk) if event.event_type == beats]
    assert {tuple(each["waiting_on"]) for each in heard} == {("t1_order",)}
    assert all(each["elapsed_ms"] >= 50 and each["remaining"]["turns"] == 5 for each in heard)


GATE = "GATE_FINANCE_APPROVAL"
START, DAY = 1_800_000_000, 86_400
FINANCE = ("resume", "@last", "--approve", GATE, "--by", "ann:finance")
OPERATOR = ("resume", "@last", "--approve", "GATE_OPERATOR", "--by", "ann")


def at(seconds: float) -> dict[str, str]:
    """An environment in which it is so late."""
    return {"COGCLI_FAKE_CLOCK": str(int(START + seconds))}


def count(desk: Project, kind: str) -> int:
    return [event.event_type for event in events(desk)].count(kind)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("late", [DAY + 1, -500], ids=["after its time", "the clock set back"])
@pytest.mark.parametrize(("name", "answer"), [("needs-finance", FINANCE), ("escalates", OPERATOR)])
def test_an_approval_out_of_its_time_is_asked_for_again_and_used_once(
    desk: Project, name: str, answer: tuple[str, ...], late: int
) -> None:
    edit(desk, "age_days: 86400}", "age_days: 864000}")
    if late > 0 and name == "escalates":
        late += 6 * DAY  # its gate has no time of its own
    desk.run("agent", "invoke", f"requests/{name}.json", env=at(0)).assert_exit(5)
    desk.run(*answer, env=at(late)).assert_exit(5)
    assert (count(desk, "approval.requested"), count(desk, "step.started")) == (
        2,
        2 * (name != "escalates"),
    )
    assert said(desk)[0] in ("pending_approval", "escalated")
    desk.run(*answer, env=at(max(late, 0) + 10)).assert_exit(0 if name != "escalates" else 5)
    if name == "escalates":
        desk.run(*FINANCE, env=at(max(late, 0) + 20)).assert_ok()
    assert said(desk) == ("completed", "")
    assert [each["answer"] for each in decision(desk)["approvals"]] == ["granted"] * (
        2 + (name == "escalates")
    )


def test_an_escalation_that_was_used_does_not_expire(desk: Project) -> None:
    edit(
        desk, "approver_roles: [finance], ttl_s: 86400", "approver_roles: [finance], ttl_s: 864000"
    )
    edit(desk, "age_days: 86400}", "age_days: 864000}")
    desk.run("agent", "invoke", "requests/escalates.json", env=at(0)).assert_exit(5)
    desk.run(*OPERATOR, env=at(10)).assert_exit(5)
    desk.run(*FINANCE, env=at(5 * DAY)).assert_ok()
    assert said(desk) == ("completed", "")
    assert count(desk, "approval.requested") == 2


def test_an_approval_on_stale_evidence_pays_nothing(desk: Project) -> None:
    edit(
        desk, "approver_roles: [finance], ttl_s: 86400", "approver_roles: [finance], ttl_s: 864000"
    )
    desk.run("agent", "invoke", "requests/needs-finance.json", env=at(0)).assert_exit(5)
    denied = desk.run(*FINANCE, "--json", env=at(2 * DAY)).assert_exit(4)
    assert "`order.age_days` is older than `freshness_s`" in denied.json["error"]["hint"]
    assert said(desk) == ("denied", "refund_window")
    assert count(desk, "step.started") == 2
    assert [each["answer"] for each in decision(desk)["approvals"]] == ["granted"]
    desk.run("replay", "@last").assert_ok()
    desk.run("verify", "@last").assert_ok()


def test_an_approval_on_a_stored_statement_that_has_gone_stale_pays_nothing(desk: Project) -> None:
    """The evidence comes from the graph alone: a statement that is fresh when the person is asked."""
    edit(
        desk, "approver_roles: [finance], ttl_s: 86400", "approver_roles: [finance], ttl_s: 864000"
    )
    edit(
        desk,
        "{order.age_days: output.age_days, order.total: output.total}",
        "{order.total: output.total}",
    )
    statement = {
        "tenant_id": "acme",
        "subject": "order:ord_881",
        "predicate": "age_days",
        "value": 12,
    }
    known = {
        **statement,
        "observed_at": "2027-01-15T07:00:00Z",
        "evidence_ref": "crm/1",
        "trust": "verified",
    }
    desk.write("known.jsonl", json.dumps(known) + "\n")
    desk.run("knowledge", "import", "known.jsonl", env=at(0)).assert_ok()
    desk.run("agent", "invoke", "requests/needs-finance.json", env=at(0)).assert_exit(5)
    desk.run(*FINANCE, env=at(2 * DAY)).assert_exit(4)
    assert said(desk) == ("denied", "refund_window")
    desk.run("replay", "@last").assert_ok()


@pytest.mark.parametrize(
    ("old", "new", "code", "status"),
    [
        ("{var: args.amount}, 200]", "{var: args.amount}, 100]", 5, ("pending_approval", GATE)),
        ("approver_roles: [finance]", "approver_roles: [boss]", 5, ("pending_approval", GATE)),
        ("receipt ${outputs.receipt.id}.", "done.", 5, ("pending_approval", GATE)),
        (
            "{var: args.amount}, 200]",
            "{var: args.amount}, 2000]",
            5,
            ("pending_approval", "GATE_OPERATOR"),
        ),
        ("{var: order.age_days}, 30]", "{var: order.age_days}, 3]", 4, ("denied", "refund_window")),
    ],
    ids=["rule", "roles", "template", "gate", "denied"],
)
def test_a_pack_that_was_edited_under_its_version_decides_anew(
    desk: Project, old: str, new: str, code: int, status: tuple[str, str]
) -> None:
    desk.run("agent", "invoke", "requests/needs-finance.json").assert_exit(5)
    edit(desk, old, new)
    refused = desk.run(*FINANCE, "--json").assert_exit(3)
    assert refused.json["error"]["code"] == "resume.changed-specs"
    assert count(desk, "approval.granted") == 0
    desk.run(*FINANCE, "--allow-changed-specs").assert_exit(code)
    found = decision(desk)
    assert (found["status"], found["status_reason"]) == status
    assert "payments.refund" not in [
        call["capability"] for call in found["calls"] if call["status"] == "done"
    ]
    desk.run("verify", "@last").assert_ok()


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("templates: [refund_with_eligibility]", "templates: [refund]", "pack.reference"),
        ("gate: GATE_FINANCE_APPROVAL}", "gate: GATE_FINANC}", "pack.reference"),
        (
            'if: {">": [{var: args.amount}, 200]}',
            'if: {">": [{var: [amount, 0]}, 200]}',
            "pack.reference",
        ),
        (
            'if: {">": [{var: args.amount}, 200]}',
            'if: {"log": [{var: args.amount}, 200]}',
            "policy.rule",
        ),
    ],
)
def test_a_pack_that_names_what_it_has_not_begins_no_run(
    desk: Project, old: str, new: str, code: str
) -> None:
    pack = desk.root / "packs/support-desk/4.0.0.yaml"
    text = pack.read_text()
    assert old in text
    pack.write_text(text.replace(old, new))
    refused = desk.run("agent", "invoke", "requests/needs-finance.json", "--json").assert_exit(3)
    assert (refused.json["error"]["code"], refused.json["error"]["file"]) == (
        code,
        "packs/support-desk/4.0.0.yaml",
    )
    assert not list(desk.root.rglob("events.jsonl"))
