"""Walks: a loop is entered once, and a tree that is too large is an error that names its root."""

from __future__ import annotations

import itertools
import os
import tracemalloc
from pathlib import Path

import pytest

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.walk import FolderWalk
from cogcli.specs.host_layout import HostLayout
from cogcli.specs.layers import Layer
from cogcli.specs.layout import Layout

MEMORY = 256 * 1024 * 1024


def make_loops(folder: Path, count: int) -> None:
    """A folder with many links to itself, and one spec."""
    folder.mkdir(parents=True)
    for number in range(count):
        os.symlink(".", folder / f"loop{number}")


def walked(root: Path, *, links: bool) -> list[str]:
    """The paths of the files below a root, relative to it."""
    found = FolderWalk(str(root)).files(enters=lambda _: True, links=links)
    return [os.path.relpath(entry.path, root) for entry in found]


def test_a_directory_is_not_entered_inside_itself(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/file").touch()
    os.symlink(tmp_path, tmp_path / "a/b/up")
    os.symlink("self", tmp_path / "self")
    assert walked(tmp_path, links=True) == ["a/b/file", "self"]


def test_two_links_to_a_directory_are_both_entered(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/file").touch()
    os.symlink("a", tmp_path / "b")
    assert walked(tmp_path, links=True) == ["a/file", "b/file"]
    assert walked(tmp_path, links=False) == ["a/file"]


def test_the_entry_after_the_last_one_ends_the_walk(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / str(number)).touch()
    assert len(FolderWalk(str(tmp_path), limit=4).entries(str(tmp_path))) == 4
    with pytest.raises(UnusableEnvironment) as refused:
        FolderWalk(str(tmp_path), limit=3).entries(str(tmp_path))
    assert refused.value.code == "registry.size"
    assert refused.value.file == str(tmp_path)
    assert "3 entries" in refused.value.message


@pytest.mark.parametrize("kind", ["skill", "capability", "binding", "service", "pack"])
def test_links_to_the_folder_itself_end(tmp_path: Path, kind: str) -> None:
    layout = Layout(Layer("own", str(tmp_path), True))
    make_loops(tmp_path / layout.folders[kind], 26)
    assert layout.all(kind) == []
    assert layout.strays() == []


@pytest.mark.sampled(24)
@pytest.mark.parametrize("host", [False, True])
def test_links_that_multiply_without_a_loop_are_an_error_within_bounds(
    tmp_path: Path, *, host: bool
) -> None:
    """Six folders, each with thirty links to the next: 700 million paths."""
    folders = [tmp_path / f"level{number}" for number in range(7)]
    for folder, deeper in itertools.pairwise(folders):
        folder.mkdir()
        for number in range(30):
            os.symlink(deeper, folder / f"link{number}")
    folders[-1].mkdir()
    root = tmp_path / "root"
    root.mkdir()
    os.symlink(folders[0], root / "bindings")
    kind = HostLayout if host else Layout
    layout = kind(Layer("own", str(root), True, host=host))
    tracemalloc.start()
    try:
        with pytest.raises(UnusableEnvironment) as refused:
            layout.strays()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert refused.value.code == "registry.size"
    assert str(root) in refused.value.message
    assert peak < MEMORY
