"""The history of Git repositories that the program itself made."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cogcli.official.git import read_log
from cogcli.sdk import Refused

pytestmark = [
    pytest.mark.skipif(not shutil.which("git"), reason="needs the program `git`"),
    pytest.mark.sampled(4),
]


@pytest.fixture
def tmp_path(ordinary_path: Path) -> Path:
    """Where these tests write."""
    return ordinary_path


def git(folder: Path, *arguments: str) -> str:
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Ada é",
        "GIT_AUTHOR_EMAIL": "ada@example.org",
        "GIT_COMMITTER_NAME": "Ada",
        "GIT_COMMITTER_EMAIL": "ada@example.org",
        "GIT_AUTHOR_DATE": "2026-01-31T09:00:00+01:00",
    }
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(
        command, env=variables, capture_output=True, text=True, check=True
    ).stdout.strip()


def commit(folder: Path, message: str, number: int) -> str:
    (folder / "a").write_text(message)
    git(folder, "add", "a")
    git(
        folder,
        "-c",
        "user.name=x",
        "commit",
        "-q",
        "-m",
        message,
        f"--date=2026-01-31T09:00:{number:02}+01:00",
    )
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> tuple[Path, list[str]]:
    """A repository of four commits, a tag on the second, a branch off the third."""
    folder = tmp_path / "work"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    ids = [
        commit(folder, "feat: one\n\nThe body.\nOf two lines.", 1),
        commit(folder, "fix: two", 2),
    ]
    git(folder, "tag", "-a", "v1", "-m", "The first")
    ids.append(commit(folder, "three", 3))
    git(folder, "branch", "side")
    ids.append(commit(folder, "four", 4))
    return folder, ids


def ids_of(found: Any) -> list[str]:
    return [each["id"] for each in found["commits"]]


def test_the_log_is_that_of_git(repository: tuple[Path, list[str]]) -> None:
    folder, ids = repository
    found: Any = read_log(str(folder))
    assert ids_of(found) == git(folder, "log", "--format=%H").split()
    assert found["truncated"] is False
    assert found["commits"][-1] == {
        "id": ids[0],
        "parents": [],
        "author": "Ada é",
        "email": "ada@example.org",
        "date": "2026-01-31T09:00:01+01:00",
        "subject": "feat: one",
        "body": "The body.\nOf two lines.",
    }
    assert ids_of(read_log(str(folder / ".git"))) == ids[::-1]
    git(folder, "gc", "-q")
    assert ids_of(read_log(str(folder))) == ids[::-1]


@pytest.mark.sampled(8)
def test_a_range_is_that_of_git(repository: tuple[Path, list[str]]) -> None:
    folder, ids = repository
    for start, end in (
        ("v1", "main"),
        ("v1", None),
        (ids[0][:7], "side"),
        ("side", ids[3]),
        ("refs/tags/v1", "HEAD"),
    ):
        expected = git(folder, "log", "--format=%H", f"{start}..{end or 'HEAD'}").split()
        assert ids_of(read_log(str(folder), start, end)) == expected
    assert read_log(str(folder), limit=4)["truncated"] is False
    found = read_log(str(folder), limit=2)
    assert (ids_of(found), found["truncated"]) == (ids[:1:-1], True)


def test_no_hook_and_no_configuration_counts(
    repository: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, ids = repository
    ran = folder.parent / "ran"
    for name in ("post-checkout", "pre-auto-gc", "fsmonitor-watchman", "reference-transaction"):
        hook = folder / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
        hook.chmod(0o755)
    told = "".join(
        f"\t{name} = touch {ran}\n" for name in ("fsmonitor", "pager", "sshCommand", "program")
    )
    extensions = "[extensions]\n\tworktreeConfig = true\n\tunknown = true\n"
    config = f"[core]\n{told}\tworktree = /nowhere\n[gpg]\n{told}[include]\n\tpath = /nowhere\n{extensions}"
    (folder / ".git" / "config").write_text(f"{config}[this is no configuration")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert ids_of(read_log(str(folder))) == ids[::-1]
    assert not ran.exists()


def test_a_shallow_copy_ends_where_it_ends(repository: tuple[Path, list[str]]) -> None:
    folder, ids = repository
    copy = folder.parent / "copy"
    git(folder, "clone", "-q", "--depth", "2", f"file://{folder}", str(copy))
    assert ids_of(read_log(str(copy))) == ids[:1:-1]


def test_objects_that_lie_elsewhere_are_not_followed(repository: tuple[Path, list[str]]) -> None:
    folder, _ = repository
    copy = folder.parent / "copy"
    git(folder, "clone", "-q", "--shared", str(folder), str(copy))
    with pytest.raises(Refused, match="copy: its objects lie elsewhere"):
        read_log(str(copy))
    linked = folder.parent / "linked"
    (linked / ".git").mkdir(parents=True)
    shutil.copy(folder / ".git" / "HEAD", linked / ".git")
    for name in ("objects", "refs"):
        os.symlink(folder / ".git" / name, linked / ".git" / name)
    with pytest.raises(Refused, match="linked: its objects lie elsewhere"):
        read_log(str(linked))
    tree = folder.parent / "tree"
    git(folder, "worktree", "add", "-q", str(tree))
    with pytest.raises(Refused, match="tree: no Git repository"):
        read_log(str(tree))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"start": "v2"}, "no branch, tag or commit 'v2'"),
        ({"end": "HEAD~1"}, "no branch, tag or commit"),
        ({"end": "../../HEAD"}, "no branch, tag or commit"),
        ({"limit": 0}, "`limit` is 0"),
        ({"limit": 10**6}, "`limit` is 1000000"),
    ],
)
def test_a_range_that_there_is_not_is_refused(
    repository: tuple[Path, list[str]], arguments: Any, message: str
) -> None:
    with pytest.raises(Refused, match=message):
        read_log(str(repository[0]), **arguments)


@pytest.mark.sampled(8)
def test_a_damaged_repository_is_refused(repository: tuple[Path, list[str]]) -> None:
    folder, ids = repository
    lost = folder / ".git" / "objects" / ids[1][:2] / ids[1][2:]
    lost.chmod(0o644)
    lost.write_bytes(b"x\x9c" + bytes(40))
    with pytest.raises(Refused):
        read_log(str(folder))
    lost.unlink()
    with pytest.raises(Refused, match="an object is missing"):
        read_log(str(folder))


def test_a_folder_without_commits_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no Git repository"):
        read_log(str(tmp_path))
    with pytest.raises(Refused, match="no such folder"):
        read_log(str(tmp_path / "none"))
    git(tmp_path, "init", "-q")
    with pytest.raises(Refused, match="no commits yet") as refused:
        read_log(str(tmp_path))
    assert refused.value.reason == "no-evidence"
