"""`verify` as scripts and people meet it: levels, repair, reports."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

pytestmark = pytest.mark.sampled(8)


@pytest.fixture
def ran(demo: Any) -> Any:
    """A project with one finished episode."""
    demo.run("run", "demo.greet", "-p", "text=hello").assert_ok()
    return demo


def contents(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in directory.iterdir() if file.is_file()}


def test_the_level_and_what_it_proves_are_said(ran: Any) -> None:
    shown = ran.run("verify").assert_ok()
    assert f"{ran.episode.name}  nothing altered\n" in shown.out
    assert "own: nothing altered: your key vouches for every event" in shown.out
    told = ran.run("verify", "--json").assert_ok().json
    assert told["episodes"] == [{"episode_id": ran.episode.name, "level": "own", "repaired": False}]


def test_an_unknown_episode_is_consistent_and_no_more(ran: Any) -> None:
    (ran.episode / "checkpoint.jsonl").unlink()
    shown = ran.run("verify").assert_ok()
    assert f"{ran.episode.name}  consistent, unsigned\n" in shown.out
    assert (
        "all hashes match, but anyone who can write to the folder could have rewritten it"
        in shown.out
    )
    assert "nothing altered" not in shown.out
    refused = ran.run("verify", "--require-signature", "--json").assert_exit(1).json
    assert refused["error"]["code"] == "signature.missing"


def test_a_head_kept_elsewhere_anchors(ran: Any) -> None:
    head = json.loads((ran.episode / "manifest.json").read_bytes())["chain"]["head"]
    for given in (head, head.removeprefix("sha256:")):
        assert (
            ran.run("verify", "--head", given, "--json").assert_ok().json["episodes"][0]["level"]
            == "anchored"
        )
    other = ran.run("verify", "--head", "0" * 64, "--json").assert_exit(1).json
    assert other["error"]["code"] == "head.other"
    for wrong in ("x", "sha1:" + "0" * 64, head.upper()):
        ran.run("verify", "--head", wrong).assert_exit(2)
    ran.run("verify", "@last", "@last", "--head", head).assert_exit(2)


def test_a_run_is_signed_with_the_key_of_the_environment(demo: Any) -> None:
    key, public = demo.root / "key.pem", demo.root / "public.pem"
    subprocess.run(
        ["openssl", "genpkey", "-algorithm", "ed25519", "-out", key],
        check=True,
        capture_output=True,
    )
    subprocess.run(
        ["openssl", "pkey", "-in", key, "-pubout", "-out", public], check=True, capture_output=True
    )
    key.chmod(0o600)
    env = {"COGCLI_SIGNING_KEY": str(key)}
    demo.run("run", "demo.greet", "-p", "text=hello", env=env).assert_ok()
    told = demo.run("verify", "--key", "public.pem", "--json").assert_ok().json
    assert told["episodes"][0]["level"] == "signed"
    demo.run("run", "demo.greet", "-p", "text=hello").assert_ok()
    told = demo.run("verify", "--key", "public.pem", "--json").assert_exit(1).json
    assert told["error"]["code"] == "signature.missing"


def test_a_signing_key_that_cannot_be_used_stops_a_run_before_it_begins(demo: Any) -> None:
    key = demo.write("key.pem", "no key")
    key.chmod(0o644)
    for path in (str(key), "none.pem"):
        refused = demo.run(
            "run", "demo.greet", "-p", "text=a", "--json", env={"COGCLI_SIGNING_KEY": path}
        )
        assert refused.assert_exit(3).json["error"]["code"] == "signing.key"
    assert demo.episodes == []


@pytest.mark.parametrize("lost", range(1, 5))
def test_repair_completes_a_crash_between_two_sealing_steps_to_the_same_bytes(
    ran: Any, lost: int
) -> None:
    before = contents(ran.episode)
    for name in ("manifest.json", "state.json", "summary.json")[:lost]:
        (ran.episode / name).unlink()
    if lost == 4:
        (ran.episode / "learn.jsonl").write_bytes(b"")
    os.utime(ran.episode)
    unsealed = ran.run("verify", "--json")
    assert unsealed.assert_exit(1).json["episodes"][0]["level"] == "altered"
    told = ran.run("verify", "--repair", "--json").assert_ok().json
    assert told["episodes"] == [{"episode_id": ran.episode.name, "level": "own", "repaired": True}]
    assert contents(ran.episode) == before
    again = ran.run("verify", "--repair").assert_ok()
    assert "sealed now" not in again.out
    assert contents(ran.episode) == before


def test_repair_leaves_unfinished_and_altered_episodes_alone(ran: Any) -> None:
    log = ran.episode / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    for name in ("manifest.json", "summary.json", "state.json", "checkpoint.jsonl"):
        (ran.episode / name).unlink()
    (ran.episode / "learn.jsonl").write_bytes(b"")
    log.write_bytes(b"".join(lines[:4]))
    before = contents(ran.episode)
    assert (
        ran.run("verify", "--repair", "--json").assert_ok().json["episodes"][0]["level"]
        == "unfinished"
    )
    assert contents(ran.episode) == before
    log.write_bytes(b"".join(lines).replace(b"hello", b"hullo"))
    before = contents(ran.episode)
    ran.run("verify", "--repair").assert_exit(1)
    assert contents(ran.episode) == before


def test_reports_say_what_the_answer_says(ran: Any) -> None:
    (ran.episode / "state.json").write_text("{}")
    ran.run("run", "demo.greet", "-p", "text=again").assert_ok()
    ran.run(
        "verify",
        "--all",
        "--report",
        "junit:v.xml",
        "--report",
        "json:v.json",
        "--report",
        "md:v.md",
    ).assert_exit(1)
    root = ET.parse(ran.root / "v.xml").getroot()
    assert (root.attrib["tests"], root.attrib["failures"]) == ("2", "1")
    assert [failure.attrib["type"] for failure in root.iter("failure")] == ["state.differs"]
    assert json.loads((ran.root / "v.json").read_bytes())["error"]["code"] == "state.differs"
    assert "| altered | 1 |" in (ran.root / "v.md").read_text()


def test_a_kind_of_report_that_verify_does_not_have_is_refused(ran: Any) -> None:
    ran.run("verify", "--report", "sarif:v.sarif").assert_exit(2)
    ran.run("verify", "--report", "junit:none/v.xml").assert_exit(2)
    assert not (ran.root / "v.sarif").exists()


def test_an_episode_that_cannot_be_read_does_not_hide_the_others(ran: Any) -> None:
    broken = ran.root / ".cogcli/episodes/ep_01M7XJNZDYM9QW3RT6V8XZ2B4C"
    broken.mkdir()
    told = ran.run("verify", "--all", "--json").assert_exit(3).json
    assert [row["level"] for row in told["episodes"]].count("own") == 1
    assert [row["level"] for row in told["episodes"]].count(None) == 1


def test_the_error_of_several_episodes_is_one_that_decides_the_exit_code(ran: Any) -> None:
    """One is altered, which is exit 1; one cannot be read, which is exit 3."""
    state = ran.episode / "state.json"
    state.write_bytes(state.read_bytes() + b" ")
    unread = ran.episode.parent / "ep_01M81K95QDDXQRF6WFXK1WR6AB"
    unread.mkdir()
    (unread / "notes.txt").touch()
    for names in ((ran.episode.name, unread.name), (unread.name, ran.episode.name)):
        told = ran.run("verify", *names, "--json").assert_exit(3).json
        assert (told["exit_code"], told["status"]) == (3, "error")
        assert told["error"]["code"] == "episode.unreadable"
