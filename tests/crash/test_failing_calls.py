"""Calls that fail where others are killed, once and from then on: the run stops before its next effect, and says so.

`COGCLI_LONG_TESTS=1` tries every point of every flow; else a sample. A system call that is interrupted from some point
on, for ever, is left out: the interpreter itself repeats it for ever (PEP 475), no run of ours sees it.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from crash_flows import COGCLI, FLOWS, REGISTRY, Flow
from crash_points import Point, Range
from crash_verdicts import LONG, Judge, Tell
from fakes.logged import is_clean

from cogcli.episode.listing.episode_row import read_row
from cogcli.episode.verify.check import verify

pytestmark = pytest.mark.sampled(6)

MODES = [
    f"{error}{on}" for error in ("ENOSPC", "EIO", "EINTR", "EMFILE", "EROFS") for on in ("", "+")
]


@pytest.fixture(params=FLOWS, ids=lambda flow: flow.name)
def flow(request: pytest.FixtureRequest) -> Flow:
    found: Flow = request.param
    return found


@pytest.mark.sampled(24)
@pytest.mark.parametrize("mode", MODES)
def test_a_call_that_fails_anywhere_breaks_no_promise(
    shooting_range: Range, judge: Judge, mode: str
) -> None:
    points = []
    for number, flow in enumerate(FLOWS):
        whole = shooting_range.points(flow, mode)
        again = shooting_range.points(flow, mode, resumed=True)
        if LONG:
            points += whole + again
        elif (number + MODES.index(mode)) % 3 == 0:
            step = MODES.index(mode) + 1
            points += [whole[step * len(whole) // 12], again[step * len(again) // 12]]
    judge(f"a call fails: {mode}", shooting_range.all(points))


@pytest.mark.sampled(24)
@pytest.mark.parametrize("mode", ["short", "short+"])
def test_a_write_that_is_cut_short_is_completed(
    shooting_range: Range, judge: Judge, flow: Flow, mode: str
) -> None:
    points = shooting_range.points(flow, mode)
    few = points if LONG else points[FLOWS.index(flow) :: len(points) // 2][:2]
    judge(f"a write is {mode}", shooting_range.all(few))


@pytest.mark.usefixtures("strace")
def test_a_system_call_that_is_interrupted_or_fails_breaks_no_promise(
    shooting_range: Range, judge: Judge
) -> None:
    texts = ["write:error=EINTR:when=4", "fdatasync:error=EIO:when=2", "write:error=ENOSPC:when=6+"]
    if LONG:
        numbers = range(1, 30)
        texts = [f"write:error=EINTR:when={n}" for n in numbers]
        texts += [f"{call}:error=EIO:when={n}" for call in ("fdatasync", "fsync") for n in numbers]
        texts += [
            f"write:error={error}:when={n}+"
            for error in ("ENOSPC", "EIO", "EROFS")
            for n in numbers
        ]
    judge(
        "a system call fails (strace)",
        shooting_range.all([Point(FLOWS[0], syscall=text) for text in texts]),
    )


@pytest.mark.usefixtures("strace")
def test_a_file_system_without_locks_gets_no_episode(shooting_range: Range) -> None:
    sandbox = shooting_range.sandbox("no locks")
    done = sandbox.strace("flock:error=ENOLCK", *sandbox.asked(FLOWS[0]))
    assert (done.code, sandbox.episodes, sandbox.ledger) == (3, [], [])
    assert "No locks available" in done.out


def test_a_disk_that_is_really_full_leaves_an_episode_that_says_so(
    tmp_path: Path, tell: Tell
) -> None:
    """Small disks of many sizes: a run fits, ends as `env.disk` in the room kept for that, or never begins. Where there
    was no room to seal it, that is made up for elsewhere."""
    sizes = range(64, 1065, 50) if LONG else (64, 120, 168)
    for size in sizes:
        disk = tmp_path / f"disk{size}"
        disk.mkdir()
        copy = tmp_path / f"copy{size}"
        script = (
            f"mount -t tmpfs -o size={size}k,mode=700 tmpfs {disk} || exit 99\n"
            f"{COGCLI} run crash.blobs -p text=hello --registry {REGISTRY} --runs-dir {disk}/runs\n"
            f"code=$?; cp -r {disk}/runs {copy} 2>/dev/null || mkdir {copy}; exit $code\n"
        )
        done = subprocess.run(
            ["unshare", "-rm", "sh", "-c", script],
            env={
                "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
                "HOME": str(tmp_path),
                "CRASH_LEDGER": str(tmp_path / f"l{size}"),
            },
            capture_output=True,
            check=False,
        )
        if b"unshare" in done.stderr or done.returncode == 99:
            pytest.skip("no small disk can be mounted here")
        _judge_full(copy, done, tmp_path / f"l{size}")
        assert all(
            _says(tmp_path, "replay", episode, b'"equal":true') for episode in copy.iterdir()
        )
    tell("a disk that is really full", "blobs", len(sizes), 0)


def _says(home: Path, command: str, episode: Path, what: bytes) -> bool:
    """Whether a command about an episode ends well and says so."""
    repair = ["--repair"] if command == "verify" else []
    words = [COGCLI, command, str(episode), *repair, "--registry", str(REGISTRY), "--json"]
    done = subprocess.run(
        words, env={"HOME": str(home)}, cwd=home, capture_output=True, check=False
    )
    return done.returncode == 0 and what in done.stdout


def _judge_full(copy: Path, done: subprocess.CompletedProcess[bytes], ledger: Path) -> None:
    assert done.returncode in (0, 3, 5), done.stderr
    assert b"Traceback" not in done.stderr
    episodes = list(copy.iterdir())
    if not episodes:
        assert not ledger.exists()
    for episode in episodes:
        assert is_clean(verify(episode)), verify(episode)
        assert not (episode / ".ballast").exists()
        if done.returncode == 5:
            assert read_row(episode).status in ("pending", "interrupted")
            continue
        if not (episode / "manifest.json").exists():
            assert done.returncode == 3
            assert _says(copy.parent, "verify", episode, b'"repaired":true')
        else:
            assert read_row(episode).status == ("error" if done.returncode else "ok")
        assert read_row(episode).sealed
