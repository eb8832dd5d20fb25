"""Signatures of answers in a log that was written anew with a chain that holds, and with a checkpoint of the user's own
key: whoever wrote it, only the person's key makes the signature (docs/reference/execution.md#signed)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sealed import chained, events
from support.checkpoints import vouch
from support.project import Project
from support.ssh_keys import make_key, person, require_ssh

from cogcli import api

DESK = Path(__file__).parents[2] / "docs/examples/support-desk"
UNDER = ("--pack", "support-desk@4.0.0", "--intent", "support.refund", "--user", "cust_7", "-q")
PACK = "packs/support-desk/4.0.0.yaml"


class Signed:
    """A desk whose gate for refunds counts only signed answers, and the people who may sign."""

    def __init__(self, project: Project) -> None:
        ignored = shutil.ignore_patterns("__pycache__", ".cogcli")
        shutil.copytree(DESK, project.root, dirs_exist_ok=True, ignore=ignored)
        self.project = project
        pack = (project.root / PACK).read_text()
        gate = "approver_roles: [finance]"
        assert gate in pack
        (project.root / PACK).write_text(pack.replace(gate, f"signed: true, {gate}"))
        self.ann, self.bob = make_key(project.home / "ann"), make_key(project.home / "bob")
        self.settings(person("ann", self.ann) + person("bob", self.bob, roles='"support"'))

    def settings(self, text: str) -> None:
        file = self.project.home / ".config/cogcli/config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def ask(self) -> tuple[Path, str]:
        """Run until the refund waits. Return its episode and the id of its request."""
        before = set(self.project.root.rglob("events.jsonl"))
        line = ("run", "support.refund", "-p", "order_id=ord_881", *UNDER)
        self.project.run(*line).assert_exit(5)
        (log,) = set(self.project.root.rglob("events.jsonl")) - before
        asked = [e for e in events(log.parent) if e["event_type"] == "approval.requested"]
        assert asked[0]["payload"]["signed"] is True
        return log.parent, asked[0]["payload"]["approval_id"]

    def approve(self, id: str, by: str = "ann:finance", key: str = "ann") -> Any:
        sign = ("--sign", str(self.project.home / key))
        return self.project.run("approvals", "approve", id, "--by", by, *sign)

    def forge(self, episode: Path, change: Callable[[dict[str, Any]], Any]) -> None:
        """Change the answer in the log, with a chain that holds and the user's own checkpoint."""
        log = events(episode)
        for event in log:
            if event["event_type"] == "approval.granted":
                change(event["payload"])
        for document in ("state.json", "summary.json"):
            (episode / document).unlink(missing_ok=True)
        chained(episode, log)
        vouch(episode, self.project.home)


def refunds(episode: Path) -> int:
    """How many refunds have left."""
    log = events(episode)
    return sum(e["event_type"] == "step.started" and e["step_id"] == "refund" for e in log)


@pytest.fixture
def desk(project: Project) -> Signed:
    require_ssh()
    return Signed(project)


def test_only_a_signed_answer_of_the_right_person_is_recorded(desk: Signed) -> None:
    episode, id = desk.ask()
    run = desk.project.run
    before = (episode / "events.jsonl").read_bytes()
    line = ("approvals", "approve", id, "--by", "ann:finance")
    assert "--sign FILE" in run(*line).assert_exit(5).err
    named = ("resume", "@last", "--approve", id, "--by", "ann:finance")
    assert "not signed" in run(*named).assert_exit(5).err
    for by, key, why in (
        ("ann:finance", "bob", "not one of theirs"),
        ("bob:finance", "bob", "no role `finance`"),
        ("bob:support", "bob", "wants one of the roles"),
        ("eve:finance", "ann", "names no `eve`"),
        ("\u0430nn:finance", "ann", "is written otherwise"),
    ):
        assert why in desk.approve(id, by, key).assert_exit(5).err
    for key in ("absent", "config"):
        (desk.project.home / "config").write_text("no key")
        assert "signing.ssh" in desk.approve(id, key=key).assert_exit(3).err
    without = run(*line, "--sign", str(desk.project.home / "ann"), env={"PATH": "/nowhere"})
    assert "ssh-keygen" in without.assert_exit(3).err
    assert (episode / "events.jsonl").read_bytes() == before
    (asked,) = api.Project(desk.project.root, environ=desk.project.env).approvals()
    assert (asked.approval_id, asked.signed) == (id, True)
    run(*named, "--sign", str(desk.project.home / "ann"), "-q").assert_ok()
    assert refunds(episode) == 1
    found = run("verify", "@last", "--json").assert_ok().json["findings"]
    assert "approval.signed" in {each["code"] for each in found}
    shown = run("trace", "@last", "--step", "refund", "--io").assert_ok().out
    assert "approved by ann (finance)" in shown
    assert "signed with SHA256:" in shown
    run("replay", "@last").assert_ok()


@pytest.mark.sampled(6)
def test_a_signature_that_was_altered_permits_nothing_and_verify_says_so(desk: Signed) -> None:
    other, other_id = desk.ask()
    desk.approve(other_id).assert_ok()
    (of_other,) = [
        e["payload"]["signature"] for e in events(other) if e["event_type"] == "approval.granted"
    ]

    def of_another_run(payload: dict[str, Any]) -> None:
        payload["signature"] = of_other

    def cut(payload: dict[str, Any]) -> None:
        payload["signature"]["value"] = payload["signature"]["value"][:-60]

    def of_another_person(payload: dict[str, Any]) -> None:
        payload["by"] = "bob"

    def with_another_role(payload: dict[str, Any]) -> None:
        payload["role"] = "support"

    def unsigned(payload: dict[str, Any]) -> None:
        del payload["signature"]

    for change in (of_another_run, cut, of_another_person, with_another_role, unsigned):
        episode, id = desk.ask()
        desk.approve(id).assert_ok()
        desk.forge(episode, change)
        found = desk.project.run("verify", episode.name, "--json")
        codes = {each["code"] for each in found.json["findings"] if each["severity"] == "error"}
        assert ("approval.forged" in codes) == (change is not unsigned), change.__name__
        desk.project.run("resume", episode.name, "-q").assert_exit(5)
        assert refunds(episode) == 0, change.__name__


@pytest.mark.sampled(6)
def test_a_key_that_no_longer_counts_at_the_resumption_permits_nothing(desk: Signed) -> None:
    for later in (
        person("ann", desk.ann, revoked=desk.ann),
        person("ann", f'valid-before="20200101" {desk.ann}'),
        person("ann", desk.ann, roles='"support"'),
        person("bob", desk.bob),
    ):
        desk.settings(person("ann", desk.ann))
        episode, id = desk.ask()
        desk.approve(id).assert_ok()
        desk.settings(later)
        waits = desk.project.run("resume", episode.name, "-q").assert_exit(5)
        assert "does not count" in waits.err
        assert "--sign ~/.ssh/id_ed25519" in waits.err
        assert refunds(episode) == 0
        asked = [e for e in events(episode) if e["event_type"] == "approval.requested"]
        assert len(asked) == 2, "the call is asked about again"


def test_a_rerun_asks_again_since_a_signature_is_of_one_run(desk: Signed) -> None:
    episode, id = desk.ask()
    desk.approve(id).assert_ok()
    desk.project.run("resume", episode.name, "--abort", "-q")
    again = desk.project.run("rerun", episode.name, "-q").assert_exit(5)
    assert "GATE_FINANCE_APPROVAL" in again.err
    assert sum(map(refunds, [log.parent for log in desk.project.root.rglob("events.jsonl")])) == 0


def test_a_rejection_is_signed_too_and_an_abort_needs_no_one(desk: Signed) -> None:
    episode, id = desk.ask()
    key = str(desk.project.home / "ann")
    line = ("approvals", "reject", id, "--by", "ann:finance")
    desk.project.run(*line).assert_exit(5)
    desk.project.run(*line, "--sign", key).assert_ok()
    desk.project.run("resume", episode.name, "-q")
    assert refunds(episode) == 0
    another, _ = desk.ask()
    desk.project.run("resume", another.name, "--abort", "-q")
    assert refunds(another) == 0
    assert os.path.exists(another / "manifest.json")
