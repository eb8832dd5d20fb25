"""Approvals of a second person: two users of the operating system who share episodes, with real rights
(docs/how-to/approve-as-a-second-person.md)."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from sealed import chained
from support.pages import blocks, commands
from support.second_user import GROUP, SystemAccount, require_users, shared_directory

DESK: Final = Path(__file__).parents[2] / "docs/examples/support-desk"
GATE: Final = "GATE_FINANCE_APPROVAL"
REFUND: Final = (
    "run", "support.refund", "-p", "order_id=ord_881", "--pack", "support-desk@4.0.0",
    "--intent", "support.refund", "--user", "cust_7", "-q",
)  # fmt: skip


class Team:
    """A shared project with two users: one runs, the other approves."""

    def __init__(self, place: Path, path: str) -> None:
        environ = {"PATH": path, "LANG": "C.UTF-8", "TZ": "UTC", "TERM": "xterm"}
        self.runner = SystemAccount("daemon", place / "runner", environ)
        self.approver = SystemAccount("nobody", place / "approver", environ)
        self.root = place / "project"
        shutil.copytree(DESK, self.root, ignore=shutil.ignore_patterns("__pycache__", ".cogcli"))
        for entry in (self.root, *self.root.rglob("*")):
            os.chown(entry, self.runner.uid, GROUP)
            entry.chmod(0o2775 if entry.is_dir() else 0o664)
        self.key = self.approver.home / "key"
        words = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(self.key))
        subprocess.run(words, check=True)
        for file in (self.key, self.public_file):
            self.approver.own(file)
        self.public = self.public_file.read_text().strip()
        people = f'[approvers.ann]\nroles = ["finance"]\nkeys = ["{self.public}"]\n'
        for account in (self.runner, self.approver):
            account.settings(f'[episodes]\nmode = "group"\n{people}')

    @property
    def public_file(self) -> Path:
        return self.key.with_name("key.pub")

    @property
    def log(self) -> Path:
        (log,) = self.root.rglob("events.jsonl")
        return log

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        lines = map(json.loads, self.log.read_text().splitlines())
        return [event for event in lines if event["event_type"] in kinds]


@pytest.fixture
def team() -> Iterator[Team]:
    require_users()
    place = shared_directory()
    yield Team(place, os.environ["PATH"])
    shutil.rmtree(place)


@pytest.mark.sampled(6)
def test_a_second_user_signs_and_the_first_continues(team: Team) -> None:
    team.runner.cogcli(*REFUND, cwd=team.root).assert_exit(5)
    asked = team.approver.cogcli("approvals", "ls", "--json", cwd=team.root).assert_ok().json
    (request,) = asked["approvals"]
    line = ("approvals", "approve", request["approval_id"], "--by", "ann:finance")
    refused = team.approver.cogcli(*line, cwd=team.root).assert_exit(5)
    assert "not signed" in refused.err
    assert "--sign FILE" in refused.err
    team.approver.cogcli(*line, "--sign", str(team.key), cwd=team.root).assert_ok()
    (granted,) = team.events("approval.granted")
    assert granted["payload"]["os_uid"] == team.approver.uid
    assert (granted["payload"]["by"], granted["payload"]["os_user"]) == ("ann", "nobody")
    assert granted["payload"]["signature"]["key"].startswith("SHA256:")
    team.runner.cogcli("resume", "@last", "-q", cwd=team.root).assert_ok()
    team.runner.cogcli("verify", "@last", cwd=team.root).assert_ok()
    team.approver.cogcli("verify", "@last", cwd=team.root).assert_ok()
    team.runner.cogcli("replay", "@last", cwd=team.root).assert_ok()


def _modes(root: Path) -> dict[str, str]:
    """The permissions of everything under `.cogcli`, by name."""
    places = [root / ".cogcli", *(root / ".cogcli").rglob("*")]
    return {str(each.relative_to(root)): oct(stat.S_IMODE(each.lstat().st_mode)) for each in places}


def _is_folder(root: Path, name: str) -> bool:
    return (root / name).is_dir()


@pytest.mark.sampled(6)
def test_the_group_may_use_all_of_an_episode_and_what_lies_beside_it(team: Team) -> None:
    team.runner.cogcli(*REFUND, "--exclusive", "nightly", cwd=team.root).assert_exit(5)
    asked = team.runner.cogcli("approvals", "ls", "--json", cwd=team.root).json["approvals"][0]
    line = ("approvals", "approve", asked["approval_id"], "--by", "ann:finance")
    team.approver.cogcli(*line, "--sign", str(team.key), cwd=team.root).assert_ok()
    team.runner.cogcli("resume", "@last", "-q", cwd=team.root).assert_ok()
    found = _modes(team.root)
    wrong = {
        name: mode
        for name, mode in found.items()
        if mode != ("0o2770" if _is_folder(team.root, name) else "0o660")
    }
    assert not wrong
    assert any(name.endswith(".exclusive/nightly") for name in found)
    groups = {(team.root / name).lstat().st_gid for name in found}
    assert groups == {GROUP}


@pytest.mark.sampled(6)
def test_an_archive_that_one_member_writes_is_read_and_taken_apart_by_the_other(team: Team) -> None:
    team.runner.cogcli(*REFUND, cwd=team.root).assert_exit(5)
    team.runner.cogcli("resume", "@last", "--abort", "-q", cwd=team.root).assert_ok()
    team.runner.cogcli("episodes", "archive", "@last", cwd=team.root).assert_ok()
    (file,) = team.root.rglob("*.cogarchive")
    assert oct(stat.S_IMODE(file.stat().st_mode)) == "0o660"
    assert oct(stat.S_IMODE(file.parent.stat().st_mode)) == "0o2770"
    team.approver.cogcli("verify", "@last", cwd=team.root).assert_ok()
    team.approver.cogcli("episodes", "extract", "@last", cwd=team.root).assert_ok()
    taken = {mode for name, mode in _modes(team.root).items() if "blobs" not in name}
    assert taken == {"0o2770", "0o660"}


@pytest.mark.sampled(6)
def test_without_the_setting_an_episode_is_for_its_user_and_others_are_told_whose_it_is(
    team: Team,
) -> None:
    team.runner.settings("")
    team.runner.cogcli(*REFUND, cwd=team.root).assert_exit(5)
    found = _modes(team.root)
    folders = {mode for name, mode in found.items() if _is_folder(team.root, name)}
    assert folders <= {"0o700", "0o2700"}  # the second bit comes from the folder of the project
    assert {mode for name, mode in found.items() if not _is_folder(team.root, name)} == {"0o600"}
    for place in (team.root / ".cogcli", team.root / ".cogcli/episodes"):
        place.chmod(0o2770)  # only the episodes stay closed
    listed = team.approver.cogcli("ls", "--json", cwd=team.root).assert_ok()
    assert (listed.json["episodes"], listed.json["unreadable"]) == ([], 1)
    shown = team.approver.cogcli("ls", cwd=team.root).assert_ok()
    assert "1 episode is not listed: it belongs to `daemon`" in shown.err
    inbox = team.approver.cogcli("approvals", "ls", cwd=team.root).assert_ok()
    assert "belongs to `daemon`" in inbox.err
    name = team.log.parent.name
    for line in (("trace", name), ("resume", name), ("verify", name)):
        refused = team.approver.cogcli(*line, cwd=team.root).assert_exit(3)
        assert "belongs to `daemon`" in refused.err, line
        assert 'mode = "group"' in refused.err, line
    assert team.runner.cogcli("ls", "--json", cwd=team.root).json["unreadable"] == 0


@pytest.mark.sampled(6)
def test_an_unsigned_answer_of_another_user_needs_the_first_to_say_so(team: Team) -> None:
    """The approver edits the settings of their own, not those of the user who runs."""
    team.approver.settings("")
    team.runner.cogcli(*REFUND, cwd=team.root).assert_exit(5)
    asked = team.approver.cogcli("approvals", "ls", "--json", cwd=team.root).json["approvals"][0]
    line = ("approvals", "approve", asked["approval_id"], "--by", "ann:finance")
    team.approver.cogcli(*line, cwd=team.root).assert_exit(5)  # the request says `signed`
    assert team.events("approval.granted") == []
    team.approver.cogcli(*line, "--sign", str(team.key), cwd=team.root).assert_exit(5)
    assert team.events("approval.granted") == []


@pytest.mark.sampled(6)
def test_a_log_that_another_member_replaced_is_not_continued(team: Team) -> None:
    team.runner.cogcli(*REFUND, cwd=team.root).assert_exit(5)
    asked = team.approver.cogcli("approvals", "ls", "--json", cwd=team.root).json["approvals"][0]
    line = ("approvals", "approve", asked["approval_id"], "--by", "ann:finance")
    team.approver.cogcli(*line, "--sign", str(team.key), cwd=team.root).assert_ok()
    log = [json.loads(each) for each in team.log.read_text().splitlines()]
    for event in log:
        if event["event_type"] == "run.started":
            event["payload"]["inputs"]["order_id"] = "ord_440"
    chained(team.log.parent, log)
    refused = team.runner.cogcli("resume", "@last", cwd=team.root).assert_exit(3)
    assert "resume.untrusted" in refused.err
    assert team.events("step.started") == [
        each for each in team.events("step.started") if each["payload"]["step_id"] != "refund"
    ]
    team.runner.cogcli("verify", "@last", cwd=team.root).assert_exit(1)


def test_the_other_users_of_a_machine_see_nothing(team: Team) -> None:
    team.runner.cogcli(*REFUND, cwd=team.root).assert_exit(5)
    done = subprocess.run(
        ("cat", str(team.log)), user="games", group="games", extra_groups=[], check=False,
        capture_output=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert b"Permission denied" in done.stderr


@pytest.mark.sampled(6)
def test_the_guide_is_followed_by_two_users(team: Team) -> None:
    page = Path(__file__).parents[2] / "docs/how-to/approve-as-a-second-person.md"
    found = list(blocks(page))
    settings = next(each.text for each in found if each.language == "toml")
    for account in (team.runner, team.approver):
        account.settings(settings.replace("PUBLIC KEY OF ANN", team.public))
    keys = team.approver.home / ".ssh"
    keys.mkdir(mode=0o700)
    team.approver.own(team.key.rename(keys / "id_ed25519"))
    team.approver.own(keys)
    lines = [line for each in found if each.language == "sh" for line in commands(each.text)]
    assert [line.split()[1] for line in lines] == [
        "run", "approvals", "approvals", "approvals", "resume", "verify",
    ]  # fmt: skip
    said = []
    for number, line in enumerate(lines):
        user = team.approver if number in (1, 2) else team.runner
        words = [os.path.join(user.home, w[2:]) if w[:2] == "~/" else w for w in shlex.split(line)]
        done = user.cogcli(*words[1:], cwd=team.root)
        said.append(done.assert_exit(5 if words[1] == "run" else 0).out)
    assert "amount=240" in said[1]
    assert "SHA256:" in said[3]
    assert "nobody" in said[3]
    assert "approval.signed" in said[5]
