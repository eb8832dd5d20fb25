"""Trees that are too large, or that contain themselves: a command ends with an error that names the root, within
little memory, and the Tab key offers nothing."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from attack import COGCLI
from support.project import Project

pytestmark = [pytest.mark.slow, pytest.mark.sampled(12)]

ENTRIES = 150_000
MEMORY = 1 << 30
"""Bytes of address space that a command may have."""
COMMANDS = {
    "skills ls": ("skills", "ls"),
    "validate": ("validate",),
    "graph": ("graph", "demo.unknown"),
    "test": ("test",),
    "doctor": ("doctor",),
}


@pytest.fixture(scope="module")
def memory_folder() -> Iterator[Path]:
    """A folder in memory, where there is one: entries are made fast there."""
    above = "/dev/shm" if os.path.isdir("/dev/shm") else None
    folder = Path(tempfile.mkdtemp(prefix="cogcli-test-walks-", dir=above))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def huge(memory_folder: Path) -> Project:
    """A project with more entries in one channel than a walk lists."""
    (memory_folder / "huge").mkdir()
    project = Project(memory_folder / "huge")
    channel = project.root / "skills/local/demo"
    channel.mkdir(parents=True)
    for number in range(ENTRIES):
        os.close(os.open(channel / f"n{number}", os.O_CREAT | os.O_WRONLY))
    return project


@pytest.fixture(scope="module")
def looped(memory_folder: Path) -> Project:
    """A project with folders of links to the next folder, and links to the folder itself: 600 million paths."""
    (memory_folder / "looped").mkdir()
    project = Project(memory_folder / "looped")
    levels = [project.root / "skills", *(project.root / f"level{number}" for number in range(6))]
    for level, deeper in zip(levels, [*levels[1:], levels[-1]], strict=True):
        level.mkdir()
        for number in range(30):
            os.symlink(deeper, level / f"l{number}")
            os.symlink(".", level / f"self{number}")
    return project


def limited(
    project: Project, *arguments: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """The end of a command that may use so much memory."""
    return subprocess.run(
        [COGCLI, *arguments],
        cwd=project.root,
        env={**project.env, **(env or {})},
        input=b"",
        capture_output=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    )


def require_size_error(done: subprocess.CompletedProcess[bytes], root: Path) -> None:
    """Fail unless the command ended with the error about this root."""
    assert done.returncode == 3, done
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "registry.size", error
    assert f"`{root}` has more than 100,000 entries" in error["message"], error
    assert error["hint"]


@pytest.mark.sampled(24)
@pytest.mark.parametrize("trust", ["", "1"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_huge_tree_is_an_error_that_names_its_root(
    huge: Project, command: str, trust: str
) -> None:
    done = limited(huge, *COMMANDS[command], "--json", env={"COGCLI_TRUST_PROJECT": trust})
    require_size_error(done, huge.root)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("command", COMMANDS)
def test_links_that_multiply_are_an_error_that_names_the_root(
    looped: Project, command: str
) -> None:
    done = limited(looped, *COMMANDS[command], "--json", env={"COGCLI_TRUST_PROJECT": ""})
    require_size_error(done, looped.root)


def test_a_root_that_the_user_names_has_the_same_bound(huge: Project, tmp_path: Path) -> None:
    other = Project(tmp_path)
    done = limited(other, "--registry", str(huge.root), "skills", "ls", "--json")
    require_size_error(done, huge.root)


@pytest.mark.parametrize("kind", ["huge", "looped"])
def test_the_tab_key_offers_nothing(kind: str, request: pytest.FixtureRequest) -> None:
    project: Project = request.getfixturevalue(kind)
    asked = {"_COGCLI_COMPLETE": "complete_bash", "COMP_WORDS": "cogcli\nrun\n", "COMP_CWORD": "2"}
    done = limited(project, env=asked)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_loop_of_links_hides_nothing(tmp_path: Path) -> None:
    project = Project(tmp_path).demo()
    os.symlink(".", project.root / "skills/local/self")
    os.symlink("..", project.root / "skills/local/demo/up")
    listed = json.loads(limited(project, "skills", "ls", "--json").stdout)
    assert {"demo.greet", "demo.review"} <= {row["id"] for row in listed["skills"]}
