"""`episodes archive` killed for real, as it appends and as it removes folders: no episode is lost, and the same command
ends with the same bytes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sample_episode import sealed_episode
from support.examples import LONG
from support.project import SECONDS, Project

from cogcli.episode.archive.locator import open_archived_episode
from cogcli.episode.archive.writer import EpisodeBytes, read_folder
from cogcli.episode.folder import Folder
from cogcli.episode.store import Store

pytestmark = pytest.mark.slow

EPISODES = 24
ARCHIVE = ("episodes", "archive", "--all", "--runs-dir", "runs")
COGCLI = Path(sys.executable).parent / "cogcli"


def appended(runs: Path) -> int:
    """How far the command is: kilobytes of the archive, and a thousand for each removed folder."""
    archive = runs / ".archives/000001.cogarchive"
    size = archive.stat().st_size // 1024 if archive.exists() else 0
    return size + 1000 * (EPISODES - len(list(runs.glob("ep_*"))))


def bytes_of(runs: Path, episode_id: str) -> EpisodeBytes:
    """The bytes of an episode, wherever it is."""
    if (runs / episode_id).is_dir():
        with Folder.open(runs / episode_id) as folder:
            return read_folder(folder)
    archived = open_archived_episode(runs / episode_id)
    assert archived is not None
    with archived:
        return read_folder(archived)


def kill_when(project: Project, reached: Callable[[], bool]) -> None:
    with subprocess.Popen(
        [COGCLI, *ARCHIVE, "-q"],
        cwd=project.root,
        env=project.env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        until = time.monotonic() + SECONDS
        while process.poll() is None and not reached() and time.monotonic() < until:
            time.sleep(0.0005)
        process.kill()


STEPS = (1, 12, 24, 36, 48, 1000, 3000, 9000, 20_000, 23_000)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("place", STEPS if LONG else (24, 9000))
def test_no_episode_is_lost(tmp_path: Path, place: int) -> None:
    project = Project(tmp_path.resolve())
    runs = project.root / "runs"
    for number in range(EPISODES):
        sealed_episode(runs, seed=number * 100)
    before = {path.name: bytes_of(runs, path.name) for path in runs.glob("ep_*")}
    kill_when(project, lambda: appended(runs) >= place)
    assert set(Store(runs).ids()) == set(before)
    assert {name: bytes_of(runs, name) for name in before} == before
    project.run(*ARCHIVE).assert_ok()
    assert list(runs.glob("ep_*")) == []
    assert {name: bytes_of(runs, name) for name in before} == before
    project.run("verify", "--all", "-q", "--runs-dir", "runs").assert_ok()
