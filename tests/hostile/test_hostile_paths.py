"""Names, links, kinds of files: an episode leads nowhere else. Names follow the list of hostile cases."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from attack import COGCLI, attack, hold_all_episodes
from sealed import GREET, another, copied, edit, finished

pytestmark = pytest.mark.sampled(8)
"""A long run tries all of it."""

SENTINEL = b"SENTINEL-7741"
DOCUMENTS = ("events.jsonl", "learn.jsonl", "state.json", "summary.json", "manifest.json")
BAD_NAMES = {
    "P01": "../../etc",
    "P02": "/etc/passwd",
    "P03": "ep_1\n",
    "P05": "e" * 256,
    "P05a": f"ep_{'a' * 300}",
    "P06": "",
    "P06a": "ep_..",
    "P06b": "ep_\u0430bcd",
    "P06c": "-",
}
READING = (("state", "show"), ("trace",), ("verify",))


@pytest.mark.parametrize("name", BAD_NAMES)
@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_what_is_no_id_names_no_episode(demo: Any, name: str, command: tuple[str, ...]) -> None:
    finished(demo)
    outcome = attack(demo, *command, "--json", "--", BAD_NAMES[name])
    assert (outcome.code, outcome.error) == (2, "episode.unknown")
    assert b"root:" not in outcome.out + outcome.err


@pytest.mark.parametrize("trace_id", ["../../x", "", "x" * 129, "x\n", "\u00e9", "a b", "a/b"])
def test_P04_a_trace_id_that_is_none_starts_nothing(demo: Any, trace_id: str) -> None:
    outcome = attack(demo, "run", "demo.greet", "-p", "text=hi", "--trace-id", trace_id, "--json")
    assert (outcome.code, outcome.error) == (2, "usage.value")
    assert not demo.episodes


# -- links and manifests that lead elsewhere ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "link", ["../../../etc/passwd", "file:///etc/passwd", "/etc/passwd", "sub/events.jsonl", 7]
)
def test_P07_P08_a_link_is_a_plain_name_or_a_finding(demo: Any, link: object) -> None:
    folder = finished(demo)
    edit("state.json", lambda state: state["links"].update(events=link))(folder)
    assert "state.differs" in attack(demo, "verify", "--json").findings
    foreign = foreign_episode(demo, link)
    assert "link.unsafe" in attack(demo, "verify", foreign, "--json").findings
    for command in (("trace", foreign), ("state", "show", foreign), ("ls",)):
        outcome = attack(demo, *command)
        assert b"root:" not in outcome.out + outcome.err


def foreign_episode(project: Any, link: object) -> str:
    """Another tool's episode, its log with the fields of the shared format only."""
    folder = project.root / ".cogcli/episodes/ep_foreign"
    folder.mkdir()
    event = {
        "id": "e-1", "timestamp": "2026-01-01T00:00:00Z", "episode_id": "ep_foreign", "phase": "start",
        "payload": {"task": "t"}, "evidence_ids": [],
    }  # fmt: skip
    (folder / "events.jsonl").write_text(json.dumps(event) + "\n")
    own = json.loads((project.episodes[-1] / "state.json").read_bytes())
    own["links"] = {"events": link, "learn": "learn.jsonl"}
    (folder / "state.json").write_text(json.dumps(own))
    return "ep_foreign"


@pytest.mark.parametrize(
    "name", ["../../../etc/shadow", "/etc/shadow", "blobs/../../x", "blobs/", "", "events.jsonl/"]
)
def test_P09_a_manifest_leads_verify_nowhere(demo: Any, name: str, tmp_path: Path) -> None:
    folder = finished(demo)
    edit("manifest.json", lambda manifest: manifest["files"][0].update(name=name))(folder)
    trace = demo.root / ".cogcli/strace"
    strace = shutil.which("strace")
    wrap = (strace, "-f", "-e", "trace=open,openat,openat2", "-o", str(trace)) if strace else ()
    outcome = attack(demo, "verify", "--json", wrap=wrap)
    assert "manifest.files" in outcome.findings
    if strace:
        assert "shadow" not in trace.read_text(errors="replace")
    else:
        pytest.skip("what verify opens was not watched: no strace here")


def made_link(path: Path, outside: Path) -> None:
    path.unlink()
    path.symlink_to(outside)


def made_fifo(path: Path, outside: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def made_endless(path: Path, outside: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def made_loop(path: Path, outside: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def made_folder(path: Path, outside: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("make", [made_link, made_fifo, made_endless, made_loop, made_folder])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_P11_P12_a_file_of_another_kind_is_never_read(
    demo: Any, name: str, make: Callable[..., None]
) -> None:
    folder, outside = finished(demo), demo.root.parent / "outside"
    outside.write_bytes(SENTINEL)
    make(folder / name, outside)
    verified = attack(demo, "verify", "--json")
    assert verified.code == (3 if name == "events.jsonl" else 1)
    assert name == "events.jsonl" or "file.kind" in verified.findings
    for command in (
        ("ls",),
        ("trace",),
        ("state", "show"),
        ("state", "show", "--check"),
        ("resume", "@last"),
    ):
        outcome = attack(demo, *command, env={"COGCLI_FORCE_TTY": "80"})
        assert SENTINEL not in outcome.out + outcome.err
    assert outside.read_bytes() == SENTINEL


def test_P11_a_run_is_not_continued_through_a_link(demo: Any) -> None:
    folder, outside = finished(demo), demo.root.parent / "outside"
    for name in ("manifest.json", "summary.json", "state.json"):
        (folder / name).unlink()
    shutil.move(folder / "events.jsonl", outside)
    (folder / "events.jsonl").symlink_to(outside)
    before = outside.read_bytes()
    outcome = attack(demo, "resume", "@last", "--json")
    assert (outcome.code, outcome.error) == (3, "episode.unreadable")
    assert outside.read_bytes() == before


@pytest.mark.parametrize("name", DOCUMENTS)
def test_P13_a_second_name_of_a_file_is_a_finding(demo: Any, name: str) -> None:
    folder = finished(demo)
    os.link(folder / name, demo.root / ".cogcli" / "second")
    assert "file.hard-link" in attack(demo, "verify", "--json").findings


def test_P14_an_episode_that_is_a_link_is_none(demo: Any) -> None:
    folder = finished(demo)
    elsewhere = copied(folder, demo.root.parent / "elsewhere")
    shutil.rmtree(folder)
    folder.symlink_to(elsewhere)
    for command in READING:
        assert attack(demo, *command, folder.name, "--json").code in (2, 3)
    blobs = another(demo) / "blobs"
    shutil.rmtree(blobs)
    blobs.symlink_to("/etc")
    assert {"file.extra", "blob.missing"} <= attack(demo, "verify", "--json").findings


# -- the runs directory ------------------------------------------------------------------------------------------------


def test_P15_a_runs_directory_behind_a_link_is_the_users_choice(demo: Any) -> None:
    real = demo.root / ".cogcli" / "real"
    real.mkdir(parents=True)
    (demo.root / ".cogcli" / "episodes").symlink_to(real)
    assert attack(demo, *GREET, "--json").code == 0
    assert [path.name for path in real.glob("ep_*")] == [demo.episode.name]
    hold_all_episodes(demo)


def test_P17_files_are_the_owners_alone_whatever_the_umask(demo: Any) -> None:
    del demo.env["XDG_CACHE_HOME"]
    attack(demo, *GREET, "--json", before=lambda: os.umask(0))
    for path in (
        demo.episode.parent,
        demo.episode,
        *demo.episode.rglob("*"),
        *(demo.home / ".cache").rglob("*"),
    ):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


def test_P18_a_folder_swapped_for_a_link_takes_no_blob_outside(tmp_path: Path) -> None:
    from cogcli.base.errors import UnusableEnvironment
    from cogcli.episode.blobs import BlobFolder
    from cogcli.episode.folder import Folder

    outside, episode = tmp_path / "outside", tmp_path / "episode"
    outside.mkdir()
    (episode / "blobs").mkdir(parents=True)
    done = threading.Event()

    def swap() -> None:
        number = 0
        while not done.is_set():
            number += 1
            with suppress(OSError):  # the writer may have made the folder anew in between
                os.rename(episode / "blobs", episode / f"real-{number}")
                (episode / "blobs").symlink_to(outside)
                (episode / "blobs").unlink()
                os.rename(episode / f"real-{number}", episode / "blobs")

    swapper = threading.Thread(target=swap)
    swapper.start()
    refused = 0
    try:
        with Folder.open(episode) as folder:
            for number in range(2000):
                kept = BlobFolder(folder)
                try:
                    kept.put(b"%d" % number)
                except UnusableEnvironment:
                    refused += 1
                finally:
                    kept.close()
    finally:
        done.set()
        swapper.join()
    assert list(outside.iterdir()) == []
    assert refused < 2000


def test_P22_ids_that_differ_by_case_or_form_do_not_both_exist(demo: Any) -> None:
    from cogcli.episode.layout import is_episode_id

    folder = finished(demo)
    copied(folder, folder.parent / folder.name.lower())
    listed = attack(demo, "ls", "--json").envelope["episodes"]
    assert [row["episode_id"] for row in listed] == [folder.name]
    assert attack(demo, "verify", folder.name.lower(), "--json").code == 2
    assert not any(is_episode_id(f"ep_caf{letter}") for letter in ("\u00e9", "e\u0301"))


VANISHED = 'mkdir gone && cd gone && rmdir ../gone && "$0" "$@"'


@pytest.mark.parametrize(
    "arguments", [("ls",), GREET, ("doctor",), ("validate",), ("trace",)], ids=lambda a: a[0]
)
def test_a_working_directory_that_is_gone_is_told(demo: Any, arguments: tuple[str, ...]) -> None:
    line = ["bash", "-c", VANISHED, COGCLI, *arguments, "--json"]
    done = subprocess.run(line, cwd=demo.root, env=demo.env, capture_output=True, check=False)
    assert done.returncode == 3
    assert json.loads(done.stdout)["error"]["code"] == "project.none"
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="no such devices here")
@pytest.mark.parametrize(
    "runs_dir", ["/dev/null", "/dev/null/x", "notes.md", "notes.md/x", "/proc/nothing"]
)
def test_a_runs_directory_that_is_none_is_told_before_anything_runs(
    demo: Any, runs_dir: str
) -> None:
    demo.write("notes.md", "x")
    outcome = attack(demo, *GREET, "--runs-dir", runs_dir, "--json")
    assert (outcome.code, outcome.error) == (3, "env.runs-dir")
    assert outcome.envelope["error"]["next"] == [f"cogcli doctor --runs-dir {runs_dir}"]


def test_an_empty_home_leads_to_the_users_own_not_to_the_root_directory() -> None:
    from cogcli.app.settings.user_dirs import cache_home

    assert cache_home({"HOME": ""}) == cache_home({})
    assert not cache_home({"HOME": ""}).startswith(f"{os.sep}.cache")
