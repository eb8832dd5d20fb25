"""A run that was killed before its first event leaves a folder: every command says that nothing began."""

from __future__ import annotations

import fcntl
import os
import shlex
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.sampled(8)

ID = "ep_01M81K95QDDXQRF6WFXK1WR6AA"
TORN = b'{"seq":0,"id":"ev_01","payload":{"task":"t","skill":{"id":"text.language","ver'


def stub(project: Any, files: dict[str, bytes]) -> Path:
    """What a kill leaves, some time ago."""
    project.write("cogcli.toml", "")
    folder: Path = project.root / ".cogcli/episodes" / ID
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder, (1, 1))
    return folder


LEFT: dict[str, dict[str, bytes]] = {
    "folder": {},
    "log": {"events.jsonl": b"", "learn.jsonl": b"", ".ballast": b"\0" * 4096},
    "blob": {
        "events.jsonl": b"",
        f"blobs/{sha256(b'{}').hexdigest()}": b"{}",
        ".tmp-0011223344556677": b"x",
    },
    "torn": {"events.jsonl": TORN, "learn.jsonl": b""},
}


@pytest.mark.parametrize("left", LEFT)
def test_nothing_began_is_said_with_the_command_that_runs(project: Any, left: str) -> None:
    stub(project, LEFT[left])
    row = project.run("ls", "--json").assert_ok().json
    assert [(e["episode_id"], e["status"]) for e in row["episodes"]] == [(ID, "interrupted")]
    (warning,) = row["warnings"]
    assert warning["message"] == f"`{ID}`: nothing began before the run was stopped: run it again"
    assert "nothing began" in project.run("ls").assert_ok().err
    for command in ("resume", "trace", "state show", "rerun", "replay"):
        answer = project.run(*command.split(), ID, "--json").assert_exit(3).json
        assert answer["error"]["message"] == warning["message"], command
        again = "cogcli run text.language" if left == "torn" else "cogcli skills ls"
        assert answer["error"]["next"] == [again], command
    assert project.run(*shlex.split(again)[1:], "-p", "text=hallo").code in (0, 2)


def test_what_lost_its_log_but_went_further_is_no_run_that_never_began(project: Any) -> None:
    stub(project, {"events.jsonl": b"", "learn.jsonl": b"{}\n"})
    error = project.run("resume", ID, "--json").assert_exit(3).json["error"]
    assert "nothing began" not in error["message"]
    assert error["next"] == [
        f"cogcli verify {shlex.quote(str(project.root / '.cogcli/episodes' / ID))}"
    ]


def test_a_run_that_is_about_to_begin_is_none_of_them(project: Any) -> None:
    folder = stub(project, LEFT["log"])
    with (folder / "events.jsonl").open("ab") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        answer = project.installed("ls", "--json").assert_ok().json  # the lock is another process's
    assert (answer["warnings"], answer["episodes"][0]["status"]) == ([], "running")
