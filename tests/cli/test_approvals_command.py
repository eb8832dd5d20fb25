"""`approvals`: one inbox over the waiting runs of a project, and answers that are recorded without a call
(docs/reference/execution.md#inbox)."""

from __future__ import annotations

import json
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from support.checkpoints import vouch
from support.project import Project

from cogcli.base.file_lock import lock

pytestmark = pytest.mark.sampled(8)

DESK = Path(__file__).parents[2] / "docs/examples/support-desk"
UNDER = ("--pack", "support-desk@4.0.0", "--intent", "support.refund", "--user", "cust_7", "-q")
START = 1_800_000_000
DAY = 86_400


@pytest.fixture
def desk(project: Project) -> Project:
    ignored = shutil.ignore_patterns("__pycache__", ".cogcli")
    shutil.copytree(DESK, project.root, dirs_exist_ok=True, ignore=ignored)
    return project


def _at(seconds: float) -> dict[str, str]:
    return {"COGCLI_FAKE_CLOCK": str(int(START + seconds))}


def _ask(desk: Project, seconds: float = 0) -> Path:
    """Run until the refund waits, and return its log."""
    before = set(desk.root.rglob("events.jsonl"))
    line = ("run", "support.refund", "-p", "order_id=ord_881", *UNDER)
    desk.run(*line, env=_at(seconds)).assert_exit(5)
    (log,) = set(desk.root.rglob("events.jsonl")) - before
    return log


def _inbox(desk: Project, seconds: float = 60) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = desk.run("approvals", "ls", "--json", env=_at(seconds)).json[
        "approvals"
    ]
    return found


def _types(log: Path) -> list[str]:
    return [json.loads(line)["event_type"] for line in log.read_text().splitlines()]


def _refunds(log: Path) -> int:
    """How many refunds have left."""
    events = map(json.loads, log.read_text().splitlines())
    return sum(e["event_type"] == "step.started" and e["step_id"] == "refund" for e in events)


def test_all_waiting_runs_are_listed_newest_first(desk: Project) -> None:
    old, new = _ask(desk), _ask(desk, 30)
    found = _inbox(desk)
    assert [each["episode_id"] for each in found] == [new.parent.name, old.parent.name]
    asked = found[0]
    assert (asked["action"], asked["rule"], asked["gate"], asked["roles"]) == (
        "payments.refund", "refund_limit", "GATE_FINANCE_APPROVAL", ["finance"],
    )  # fmt: skip
    assert [(each["name"], each["value"]) for each in asked["arguments"]] == [
        ("order_id", "ord_881"), ("amount", 240.0),
    ]  # fmt: skip
    assert not asked["expired"]
    assert asked["commands"]["approve"].startswith(
        f"cogcli approvals approve {asked['approval_id']}"
    )
    listed = desk.run("approvals", "ls", env=_at(60)).assert_ok().out
    assert "amount=240.0" in listed.splitlines()[0]
    assert desk.run("approvals", "ls", "--role", "cook").out == ""


def test_an_answer_is_recorded_and_nothing_is_called_until_the_run_is_resumed(
    desk: Project,
) -> None:
    log = _ask(desk)
    asked = _inbox(desk)[0]["approval_id"]
    (desk.root / "support_desk.py").rename(desk.root / "gone.py")  # no service is needed to answer
    answered = desk.run(
        "approvals", "approve", asked, "--by", "ann:finance", "--reason", "seen", env=_at(60)
    ).assert_ok()
    assert answered.out == f"granted {asked} payments.refund\n"
    assert _refunds(log) == 0
    granted = next(
        e
        for e in map(json.loads, log.read_text().splitlines())
        if e["event_type"] == "approval.granted"
    )
    payload = granted["payload"]
    assert (payload["by"], payload["role"], payload["reason"], payload["deferred"]) == (
        "ann", "finance", "seen", True,
    )  # fmt: skip
    assert _inbox(desk) == []
    shown = desk.run("approvals", "show", asked[:-2]).assert_ok().out
    assert "answered        approved by ann (finance), " in shown
    assert "cogcli approvals approve" not in shown
    assert desk.run("ls", "--outcome", "pending", "--json").json["episodes"][0]["decision"] is None
    desk.run("verify", "@last").assert_ok()
    (desk.root / "gone.py").rename(desk.root / "support_desk.py")
    desk.run("resume", "@last", "-q", env=_at(90)).assert_ok()
    assert _refunds(log) == 1
    desk.run("replay", "@last").assert_ok()
    desk.run("verify", "@last").assert_ok()
    (shown_later,) = desk.run("approvals", "show", "@last", "--json").assert_ok().json["approvals"]
    assert (shown_later["approval_id"], shown_later["answer"], shown_later["role"]) == (
        asked, "granted", "finance",
    )  # fmt: skip
    assert "name its episode" in desk.run("approvals", "show", asked).assert_exit(2).err


def test_an_answer_to_several_is_recorded_for_all_or_for_none(desk: Project) -> None:
    late, first, second = _ask(desk, -2 * DAY), _ask(desk), _ask(desk, 10)
    logs = (late, first, second)
    before = [log.read_bytes() for log in logs]
    ids = [each["approval_id"] for each in _inbox(desk)]
    line = ("approvals", "approve", "--by", "ann:finance", "--json")
    expired = desk.run(*line, *ids, env=_at(60)).assert_exit(5).json["error"]
    assert (expired["code"], expired["next"]) == (
        "policy.approval", [f"cogcli resume {late.parent.name}"],
    )  # fmt: skip
    alone = ("approvals", "approve", *ids[:2], "--json", "--by")
    nameless = desk.run(*alone, ":finance").assert_exit(2).json["error"]
    assert (nameless["message"], "$USER" in nameless["hint"]) == ("`--by`: the name is empty", True)
    assert (
        desk.run(*alone, "ann:cook", env=_at(60)).assert_exit(5).json["error"]["code"]
        == "policy.approval"
    )
    assert desk.run(*alone, "cust_7:finance", env=_at(60)).code == 5
    unknown = desk.run(*line, ids[0], "ap_nothing", env=_at(60)).assert_exit(2).json["error"]
    assert unknown["code"] == "episode.unknown-approval"
    with first.open("ab") as held:
        lock(held.fileno(), wait=False)
        busy = desk.installed(*line, *ids[:2], env=_at(60)).assert_exit(2).json["error"]
    assert busy["code"] == "episode.unknown-approval"  # it reads as running
    assert [log.read_bytes() for log in logs] == before
    both = desk.run(*line, *ids[:2], env=_at(60)).assert_ok().json["approvals"]
    assert [each["answer"] for each in both] == ["granted", "granted"]
    assert [_types(log).count("approval.granted") for log in logs] == [0, 1, 1]


def test_the_run_continues_with_resume_and_is_vetoed_by_a_rejection(desk: Project) -> None:
    _ask(desk)
    done = desk.run(
        "approvals", "approve", "@last", "--by", "ann:finance", "--resume", "--json", env=_at(60)
    ).assert_ok().json  # fmt: skip
    assert (done["status"], done["runs"][0]["status"], done["outputs"]["receipt"]["amount"]) == (
        "ok",
        "ok",
        240,
    )
    _ask(desk, 100)
    line = ("approvals", "reject", "payments.refund", "--by", "ann:finance", "--resume", "--json")
    vetoed = desk.run(*line, env=_at(160)).assert_exit(4).json
    assert vetoed["error"]["code"] == "safety.rejected"


def test_evidence_is_judged_again_when_the_run_continues(desk: Project) -> None:
    """The age of an order counts for a day: fresh when it was approved, stale when the run continues."""
    file = desk.root / "packs/support-desk/4.0.0.yaml"
    file.write_text(file.read_text().replace("ttl_s: 86400", "ttl_s: 864000"))
    log = _ask(desk)
    desk.run("approvals", "approve", "@last", "--by", "ann:finance", env=_at(60)).assert_ok()
    stale = desk.run("resume", "@last", "--json", env=_at(2 * DAY)).assert_exit(4).json
    assert stale["error"]["code"] == "policy.denied"
    assert _refunds(log) == 0
    desk.run("replay", "@last").assert_ok()
    desk.run("verify", "@last").assert_ok()


def test_every_screen_shows_who_gets_what_first_and_cuts_long_texts_only(project: Project) -> None:
    project.services(
        "def send(**mail: object) -> dict[str, object]:\n    return {'text': 'sent'}\n"
    )
    texts = "subject: {type: string}, body: {type: string}, token: {type: string}"
    fields = f"{{{texts}, lines: {{type: array}}, to: {{type: array}}}}"
    project.capability(
        "demo.mail.send", "send", inputs=fields, extra="safety: {requires_confirmation: true}\n",
        request="{subject: input.subject, body: input.body, token: input.token, lines: input.lines, to: input.to}",
    )  # fmt: skip
    recipients = [f"person-{number:03}@example.org" for number in range(60)]
    mail = {
        "subject": "Invoice", "body": "word " * 500, "token": "tk-493f7a51cc08",
        "lines": [{"amount": 12.5, "note": "a\nb"}], "to": recipients,
    }  # fmt: skip
    steps = "\n".join(f"    {name}: inputs.{name}" for name in mail)
    project.skill(
        "demo.invoice", f"- id: send\n  uses: demo.mail.send\n  input:\n{steps}", inputs=fields
    )
    asked = project.run("run", "demo.invoice", "--input", json.dumps(mail), "--json").assert_exit(5)
    (view,) = asked.json["approvals"]
    first = [each["name"] for each in view["arguments"] if each["decides"]]
    assert first == ["token", "lines.0.amount", "to"]
    assert [each["name"] for each in view["arguments"]][:3] == first
    assert view["input"]["to"] == recipients
    report = project.run("report", "@last", "-o", "-").assert_ok().out
    screens = {
        "run": asked.err,
        "trace": project.run("trace", "@last", "--step", "send", "--io").assert_ok().out,
        "ls": project.run("ls", "--outcome", "pending", env={"COGCLI_FORCE_TTY": "80"})
        .assert_ok()
        .out,
        "report": report[report.index("Approvals</h2>") :],
    }
    for name, text in screens.items():
        joined = "".join(text.split())
        assert all(each in joined for each in recipients), name
        assert "tk-493f7a51cc08" not in text, name
        assert "[masked]" in text, name
        assert "12.5" in text, name
        assert "…(2500characters)" in joined, name
        assert view["commands"]["reject"].replace(" ", "") in joined, name
        assert text.index("input.to") < text.index("input.subject"), name
    whole = project.run("approvals", "show", "@last").assert_ok().out
    assert "word " * 400 in whole
    listed = project.run("ls", "--outcome", "pending", "--json").json["episodes"][0]
    assert listed["approvals"][0]["approval_id"] == view["approval_id"]


def test_a_request_waits_as_long_as_the_gate_or_the_setting_says(project: Project) -> None:
    project.services("def send(text: str) -> dict[str, object]:\n    return {'text': text}\n")
    project.capability("demo.send", "send", extra="safety: {requires_confirmation: true}\n")
    project.skill(
        "demo.ask", "- {id: send, uses: demo.send, input: {text: {$literal: a}}, output: {text: outputs.text}}",
        outputs="{text: {type: string}}",
    )  # fmt: skip

    def wait(*flags: str) -> float:
        run = project.run("run", "demo.ask", "--json", *flags, env=_at(0)).assert_exit(5).json
        (view,) = run["approvals"]
        asked, until = map(datetime.fromisoformat, (view["requested_at"], view["expires_at"]))
        assert view["expires_at"] in project.run("approvals", "show", "@last").assert_ok().out
        return round((until - asked).total_seconds())

    assert wait() == 7 * DAY
    project.write("cogcli.toml", "approval_ttl = 3600\n")
    assert wait() == 3600
    assert wait("--approval-ttl", "60") == 60
    late = project.run("approvals", "approve", "@last", "--json", env=_at(61)).assert_exit(5).json
    assert late["error"]["code"] == "policy.approval"


@pytest.mark.sampled(16)
def test_old_waiting_runs_are_ended_but_never_one_with_an_effect_in_doubt(desk: Project) -> None:
    old, new, doubtful = _ask(desk), _ask(desk, 5 * DAY), _ask(desk, 10)
    lines = doubtful.read_text().splitlines()
    desk.run(
        "approvals", "approve", doubtful.parent.name, "--by", "ann:finance", env=_at(60)
    ).assert_ok()
    desk.run("resume", doubtful.parent.name, "-q", env=_at(70)).assert_ok()
    kinds = _types(doubtful)
    _cut(doubtful, kinds.index("step.started", len(lines)) + 1, desk)
    desk.run("resume", doubtful.parent.name, "-q", env=_at(80)).assert_exit(5)
    line = ("gc", "--end-waiting", "3d", "--json")
    late = _at(6 * DAY)
    refused = desk.run(*line, env=late).assert_exit(2).json["error"]
    assert refused["next"][1] == "cogcli gc --end-waiting 3d --yes"
    would = desk.run(*line, "--dry-run", env=late).assert_ok().json["ended"]
    ended = desk.run(*line, "--yes", env=late).assert_ok().json["ended"]
    assert would["episodes"] == ended["episodes"] == [old.parent.name]
    assert ended["kept"] == {"in_doubt": 1, "younger": 1}
    status = {
        each["episode_id"]: each["status"] for each in desk.run("ls", "--json").json["episodes"]
    }
    assert status == {
        old.parent.name: "aborted", new.parent.name: "pending", doubtful.parent.name: "pending",
    }  # fmt: skip
    desk.run("verify", old.parent.name).assert_ok()


def _cut(log: Path, count: int, desk: Project) -> None:
    """Leave only the first lines of an episode, as a kill would have."""
    for file in log.parent.iterdir():
        if file.name in ("summary.json", "manifest.json", "state.json", "learn.jsonl"):
            file.unlink()
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:count]))
    vouch(log.parent, desk.home)
