"""`rerun --from` takes over the unused approvals of an ended run, each once (docs/reference/episode.md#redeemed)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.checkpoints import vouch
from support.command_server import COGCLI
from support.project import Project, Result

pytestmark = pytest.mark.sampled(8)

DESK = Path(__file__).parents[2] / "docs/examples/support-desk"
PACK = "packs/support-desk/4.0.0.yaml"
UNDER = ("--pack", "support-desk@4.0.0", "--intent", "support.refund", "--user", "cust_7", "-q")
START = 1_800_000_000
DAY = 86_400
SKILL = """
id: support.pay
version: "1.0.0"
name: Pay back
description: Looks an order up, and pays back.
inputs:
  order_id: {type: string, default: ord_881}
  amount: {type: number, default: 240.0}
outputs: {}
steps:
  - {id: order, uses: orders.lookup, input: {order_id: inputs.order_id}}
  - id: refund
    uses: payments.refund
    depends_on: [order]
    input: {order_id: inputs.order_id, amount: inputs.amount}
"""
SERVICE = """
import os

if os.path.exists("away"):
    raise ImportError("the bank is closed")

def lookup_order(order_id: str) -> dict[str, object]:
    return {"age_days": 12, "total": 240.0}

def is_in_time(days: int) -> dict[str, bool]:
    return {"ok": True}

def refund(order_id: str, amount: float) -> dict[str, object]:
    with open("refunds", "a") as ledger:
        ledger.write(order_id + "\\n")
    if os.path.exists("broken"):
        raise ValueError("the line went dead")
    return {"receipt": {"id": "rc_1", "status": "done", "amount": amount}}
"""


@pytest.fixture
def desk(project: Project) -> Project:
    ignored = shutil.ignore_patterns("__pycache__", ".cogcli")
    shutil.copytree(DESK, project.root, dirs_exist_ok=True, ignore=ignored)
    pack = project.root / PACK
    text = pack.read_text()
    first, last = (
        text.index("    - rule_id: refund_window"),
        text.index("    - rule_id: refund_limit"),
    )
    text = text[:first] + text[last:]
    required = "required_evidence: [order.age_days, order.total]"
    pack.write_text(text.replace(required, "required_evidence: []"))
    project.write("skills/local/support/pay/skill.yaml", SKILL)
    project.write("support_desk.py", SERVICE)
    return project


def _at(seconds: float) -> dict[str, str]:
    return {"COGCLI_FAKE_CLOCK": str(int(START + seconds))}


def _logs(desk: Project) -> list[Path]:
    return sorted(desk.root.rglob("events.jsonl"))


def _events(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def _answered(desk: Project, word: str = "approve") -> Path:
    """Run until the refund waits, record an answer, and return the episode."""
    desk.run("run", "support.pay", *UNDER, env=_at(0)).assert_exit(5)
    log = _logs(desk)[-1]
    line = ("approvals", word, log.parent.name, "--by", "ann:finance")
    desk.run(*line, env=_at(60)).assert_ok()
    return log.parent


def _closed(desk: Project) -> Path:
    """Return the ended episode of a run whose approval was not used."""
    episode = _answered(desk)
    desk.run("resume", episode.name, "--abort", "-q", env=_at(70)).assert_ok()
    return episode


def _rerun(desk: Project, episode: Path, *more: str, seconds: float = 90) -> Result:
    line = ("rerun", episode.name, "--from", "refund", *more, "--json")
    return desk.run(*line, env=_at(seconds))


def _refunds(desk: Project) -> int:
    ledger = desk.root / "refunds"
    return len(ledger.read_text().splitlines()) if ledger.exists() else 0


def _markers(desk: Project) -> list[str]:
    folder = desk.root / ".cogcli/redeemed"
    return sorted(os.listdir(folder)) if folder.exists() else []


def _content(episode: Path) -> dict[str, bytes]:
    files = filter(Path.is_file, episode.rglob("*"))
    return {str(file): file.read_bytes() for file in files}


def test_an_unused_approval_is_taken_over_once(desk: Project) -> None:
    episode = _closed(desk)
    before = _content(episode)
    _rerun(desk, episode).assert_ok()
    assert (_refunds(desk), _content(episode)) == (1, before)
    log = _logs(desk)[-1]
    (granted,) = [e for e in _events(log) if e["event_type"] == "approval.granted"]
    taken, old = granted["payload"], granted["payload"]["taken_from"]
    assert _markers(desk) == [taken["approval_id"]]
    (answer,) = [e for e in _events(episode / "events.jsonl") if e["id"] == old["event"]]
    assert answer["payload"]["approval_id"] == taken["approval_id"]
    assert (old["episode_id"], taken["by"], taken["role"]) == (episode.name, "ann", "finance")
    origin = f"approved by ann (finance), taken over: {taken['approval_id']} of {episode.name}"
    assert origin in desk.run("trace", "@last").out
    desk.run("report", "@last", "-o", "page.html").assert_ok()
    assert f"{taken['approval_id']} of {episode.name}" in (desk.root / "page.html").read_text()
    desk.run("replay", "@last").assert_ok()
    desk.run("verify", "@last").assert_ok()

    again = _rerun(desk, episode).assert_exit(5).json["approvals"][0]
    assert (
        f"{taken['approval_id']} of {episode.name} is spent: {log.parent.name}" in again["reason"]
    )
    assert _refunds(desk) == 1


def test_a_call_that_did_not_leave_keeps_its_approval(desk: Project) -> None:
    episode = _answered(desk)
    away = desk.write("away", "")
    desk.run("resume", episode.name, "-q", env=_at(70)).assert_exit(3)
    away.unlink()
    _rerun(desk, episode).assert_ok()
    assert _refunds(desk) == 1


def test_a_call_that_may_have_left_has_used_its_approval(desk: Project) -> None:
    episode = _answered(desk)
    broken = desk.write("broken", "")
    desk.run("resume", episode.name, "-q", env=_at(70)).assert_exit(1)
    broken.unlink()
    _rerun(desk, episode, "--effects", "refund=repeat").assert_exit(5)
    assert (_refunds(desk), _markers(desk)) == (1, [])


def test_two_reruns_at_once_have_one_effect(desk: Project) -> None:
    episode = _closed(desk)
    line = [COGCLI, "rerun", episode.name, "--from", "refund", "-q"]
    env = {**desk.env, **_at(90)}
    started = [
        subprocess.Popen(
            line, cwd=desk.root, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(3)
    ]
    assert sorted(each.wait() for each in started) == [0, 5, 5]
    assert (_refunds(desk), len(_markers(desk))) == (1, 1)


@pytest.mark.parametrize("kind", ["input", "pack", "role", "binding", "service", "late", "early"])
def test_what_is_not_as_approved_is_asked_again(desk: Project, kind: str) -> None:
    episode = _closed(desk)
    pack = desk.root / PACK
    more: tuple[str, ...] = ()
    seconds = 90
    if kind == "input":
        more = ("-p", "amount=239")
    elif kind == "pack":
        pack.write_text(pack.read_text() + "# another\n")
    elif kind == "role":
        pack.write_text(
            pack.read_text().replace("approver_roles: [finance]", "approver_roles: [finance, boss]")
        )
    elif kind in ("binding", "service"):
        named = "payments_refund" if kind == "binding" else "services/local/desk"
        (file,) = [each for each in desk.root.rglob("*.yaml") if named in str(each)]
        file.write_text(file.read_text() + "# another\n")
    else:
        seconds = 8 * DAY if kind == "late" else 10
    _rerun(desk, episode, *more, seconds=seconds).assert_exit(5)
    assert (_refunds(desk), _markers(desk)) == (0, [])


def test_a_rejection_and_a_run_that_waits_give_nothing(desk: Project) -> None:
    waiting = _answered(desk)
    _rerun(desk, waiting).assert_exit(5)
    rejected = _answered(desk, "reject")
    desk.run("resume", rejected.name, "-q", env=_at(70)).assert_exit(4)
    _rerun(desk, rejected).assert_exit(5)
    assert (_refunds(desk), _markers(desk)) == (0, [])


@pytest.mark.parametrize("kind", ["file", "folder", "link", "read-only"])
def test_an_approval_that_cannot_be_marked_is_asked_again(desk: Project, kind: str) -> None:
    """Whoever wrote a mark: its name alone counts."""
    episode = _closed(desk)
    events = _events(episode / "events.jsonl")
    (name,) = {e["payload"]["approval_id"] for e in events if e["event_type"] == "approval.granted"}
    mark = desk.root / ".cogcli/redeemed" / name
    if kind == "read-only":
        mark.parent.write_text("no folder")
    else:
        mark.parent.mkdir()
    if kind == "file":
        mark.write_text('{"by_episode": 7')
    elif kind == "folder":
        mark.mkdir()
    elif kind == "link":
        mark.symlink_to("nowhere")
    reason = _rerun(desk, episode).assert_exit(5).json["approvals"][0]["reason"]
    expected = "cannot be taken over" if kind == "read-only" else "is spent: another run"
    assert expected in reason
    assert _refunds(desk) == 0


def test_an_episode_of_unknown_origin_gives_no_approval(desk: Project) -> None:
    episode = _closed(desk)
    (episode / "checkpoint.jsonl").unlink()
    _rerun(desk, episode).assert_exit(4)  # nor does its user count, whom the pack needs
    assert (_refunds(desk), _markers(desk)) == (0, [])


@pytest.mark.sampled(16)
def test_a_rerun_that_was_cut_off_anywhere_has_one_effect(desk: Project) -> None:
    """Before the mark the approval is unused, after it spent until the log has it, and then used."""
    episode = _closed(desk)
    _rerun(desk, episode).assert_ok()
    log = _logs(desk)[-1]
    lines = log.read_bytes().splitlines(keepends=True)
    kinds = [json.loads(line)["event_type"] for line in lines]
    (name,) = _markers(desk)
    mark, ledger = desk.root / ".cogcli/redeemed" / name, desk.root / "refunds"
    granted, begun = kinds.index("approval.granted"), kinds.index("step.started")
    for cut, marked in [(granted, False), (granted, True), (granted + 1, True), (begun, True)]:
        content = mark.read_bytes()
        if not marked:
            mark.unlink()
        ledger.unlink(missing_ok=True)
        _cut(log, lines[:cut], desk)
        if cut == granted and marked:
            result = desk.run("resume", log.parent.name, "--json", env=_at(95)).assert_exit(5)
            assert "was cut off after it took it over" in result.json["approvals"][0]["reason"]
            line = (
                "resume",
                log.parent.name,
                "--approve",
                "payments.refund",
                "--by",
                "bob:finance",
            )
            desk.run(*line, "-q", env=_at(96)).assert_ok()
        else:
            desk.run("resume", log.parent.name, "-q", env=_at(95)).assert_ok()
        assert _refunds(desk) == 1
        mark.write_bytes(content)
        desk.run("replay", log.parent.name).assert_ok()
        desk.run("verify", log.parent.name).assert_ok()
    ledger.unlink()
    _cut(log, lines[: begun + 1], desk)
    desk.run("resume", log.parent.name, "-q", env=_at(95)).assert_exit(5)
    assert _refunds(desk) == 0  # in doubt: a person decides


def test_a_copy_elsewhere_takes_nothing_over(desk: Project) -> None:
    episode = _closed(desk)
    _rerun(desk, episode).assert_ok()
    log = _logs(desk)[-1]
    lines = log.read_bytes().splitlines(keepends=True)
    kinds = [json.loads(line)["event_type"] for line in lines]
    _cut(log, lines[: kinds.index("approval.granted")], desk)
    copy = desk.root / "elsewhere" / log.parent.name
    shutil.copytree(log.parent, copy)
    line = ("resume", str(copy), "--runs-dir", "elsewhere", "--json")
    reason = desk.run(*line, env=_at(95)).assert_exit(5).json["approvals"][0]["reason"]
    assert "its episode is not in this runs directory" in reason
    assert _refunds(desk) == 1


def _cut(log: Path, lines: list[bytes], desk: Project) -> None:
    """Leave only these lines of an episode, as a kill would have."""
    for file in log.parent.iterdir():
        if file.name in (
            "summary.json",
            "manifest.json",
            "state.json",
            "learn.jsonl",
            "decision.json",
        ):
            file.unlink()
    log.write_bytes(b"".join(lines))
    vouch(log.parent, desk.home)


def test_a_mark_outlives_its_episode_until_it_expires(desk: Project) -> None:
    episode = _closed(desk)
    _rerun(desk, episode).assert_ok()
    line = ("gc", "--older-than", "0s", "--yes")
    desk.run(*line, env=_at(100)).assert_ok()
    assert not episode.exists()
    assert len(_markers(desk)) == 1
    desk.run(*line, env=_at(8 * DAY)).assert_ok()
    assert _markers(desk) == []


def _verdicts(log: Path) -> list[tuple[str, str | None]]:
    return [
        (event["payload"]["verdict"], event["payload"].get("rule_id"))
        for event in _events(log)
        if event["event_type"] == "policy.decided" and event["step_id"] == "refund"
    ]


def test_the_facts_of_reused_steps_lead_to_the_verdict_of_a_full_run(desk: Project) -> None:
    shutil.copy(DESK / PACK, desk.root / PACK)
    text = (desk.root / PACK).read_text()
    assert "required_evidence: [order.age_days, order.total]" in text
    desk.run("run", "support.pay", *UNDER, env=_at(0)).assert_exit(5)
    full = _logs(desk)[-1]
    desk.run("resume", full.parent.name, "--abort", "-q", env=_at(70)).assert_ok()
    _rerun(desk, full.parent).assert_exit(5)
    rerun = next(log for log in _logs(desk) if log != full)
    assert _verdicts(rerun)[0] == _verdicts(full)[0]
    at = next(e["timestamp"] for e in _events(full) if e["event_type"] == "step.completed")
    taken = next(e["payload"] for e in _events(rerun) if "reused_from" in e["payload"])
    assert taken["reused_from"]["at"] == at
    desk.run("verify", rerun.parent.name).assert_ok()
    desk.run("replay", rerun.parent.name).assert_ok()
