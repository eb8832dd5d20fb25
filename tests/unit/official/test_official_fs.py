"""Files and folders."""

from __future__ import annotations

import base64
import importlib
import os
from pathlib import Path
from typing import Any

import pytest

from cogcli.official import fs
from cogcli.official.fs import list_files, read_file, write_file
from cogcli.sdk import Refused


@pytest.fixture(autouse=True)
def tmp_path(ordinary_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where these tests read and write."""
    monkeypatch.chdir(ordinary_path)
    return ordinary_path


def test_bytes_come_back_as_they_are() -> None:
    content = bytes(range(256))
    Path("a").write_bytes(content)
    found: Any = read_file("a", "bytes")
    assert base64.b64decode(found["bytes"]["base64"]) == content
    assert found["bytes"]["size"] == 256
    with pytest.raises(Refused, match="a: byte 128 is not UTF-8 text"):
        read_file("a")
    assert read_file("a", "lenient")["content"] == content[:128].decode() + "\ufffd" * 128
    with pytest.raises(Refused, match="no mode 'r'"):
        read_file("a", "r")


@pytest.mark.parametrize(
    "read", [read_file, list_files, lambda path: write_file(path, "x", "overwrite")]
)
@pytest.mark.parametrize(
    "path", ["", "a\0b", "/proc/self/environ", "/dev/zero", ".ssh/x", "pipe", "missing/x"]
)
def test_what_may_not_be_opened_is_refused(read: Any, path: str) -> None:
    os.mkfifo("pipe")
    with pytest.raises(Refused):
        read(path)
    assert os.listdir() == ["pipe"]


def test_a_folder_is_listed_in_order_and_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "b" / "deep").mkdir(parents=True)
    (tmp_path / "b" / "deep" / "x.md").write_text("123")
    (tmp_path / "a.md").write_text("")
    os.symlink("/etc", "etc")
    os.symlink(".", "b/loop")
    os.mkfifo("pipe")
    found: Any = list_files(".", recursive=True)
    assert [tuple(entry.values()) for entry in found["entries"]] == [
        ("a.md", "a.md", "file", 0, ""),
        ("b", "b", "folder", 0, ""),
        ("b/deep", "deep", "folder", 0, ""),
        ("b/deep/x.md", "x.md", "file", 3, ""),
        ("b/loop", "loop", "link", 0, ""),
        ("etc", "etc", "link", 0, ""),
        ("pipe", "pipe", "other", 0, ""),
    ]
    assert list(found["entries"][0]) == ["path", "name", "type", "size", "refused"]
    assert (found["total"], found["truncated"]) == (7, False)
    names: Any = list_files(".")["entries"]
    assert [entry["path"] for entry in names] == ["a.md", "b", "etc", "pipe"]
    for pattern, paths in (
        ("*.md", ["a.md", "b/deep/x.md"]),
        ("b/*.md", ["b/deep/x.md"]),
        ("[ab]", ["b"]),
    ):
        names = list_files(".", pattern, True)["entries"]
        assert [entry["path"] for entry in names] == paths


def test_files_that_nothing_reads_are_told_in_a_list_as_when_they_are_read() -> None:
    for place in (".ssh/config", "a/server.pem", ".env.sample", "credentials.json", "key.py"):
        Path(place).parent.mkdir(exist_ok=True)
        Path(place).touch()
    found: Any = list_files(".", recursive=True)
    refused = {entry["path"]: entry["refused"] for entry in found["entries"] if entry["refused"]}
    assert sorted(refused) == [".env.sample", ".ssh/config", "a/server.pem", "credentials.json"]
    for path, reason in refused.items():
        with pytest.raises(Refused, match=reason):
            read_file(path)


def test_of_many_entries_the_first_are_listed_and_all_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fs, "_MAX_ENTRIES", 3)
    for number in range(5):
        Path(f"f{number}").touch()
    found: Any = list_files(".")
    assert [entry["name"] for entry in found["entries"]] == ["f0", "f1", "f2"]
    assert (found["total"], found["truncated"]) == (5, True)
    monkeypatch.setattr(fs, "_MAX_SEEN", 4)
    with pytest.raises(Refused) as refused:
        list_files(".")
    assert refused.value.reason == "too-large"


def test_a_name_that_is_no_text_is_shown_as_one() -> None:
    try:
        Path(os.fsdecode(b"a\xff")).touch()
    except OSError:
        pytest.skip("this file system has names of text only")
    assert list_files(".")["entries"] == [
        {"path": "a?", "name": "a?", "type": "file", "size": 0, "refused": ""}
    ]


def test_the_mode_says_what_becomes_of_a_file_that_is_there() -> None:
    assert write_file("a.txt", "é\n") == {"path": "a.txt", "bytes_written": 3}
    with pytest.raises(Refused, match=r"a\.txt: a file is there, and stays"):
        write_file("a.txt", "x")
    assert write_file("a.txt", "b\n", "append")["bytes_written"] == 2
    assert Path("a.txt").read_text() == "é\nb\n"
    write_file("a.txt", "c", "overwrite")
    write_file("new.txt", "d", "append")
    assert (Path("a.txt").read_text(), Path("new.txt").read_text()) == ("c", "d")
    with pytest.raises(Refused, match="no mode 'w'"):
        write_file("a.txt", "x", "w")
    with pytest.raises(Refused, match="is not text"):
        write_file("b.txt", "\ud800")
    assert sorted(os.listdir()) == ["a.txt", "new.txt"]


@pytest.mark.parametrize(
    "path", ["../out.txt", "/etc/out.txt", "link.txt", "below/out.txt", "folder", "a/.."]
)
@pytest.mark.parametrize("mode", ["create", "overwrite", "append"])
def test_nothing_is_written_outside_or_through_a_link(path: str, mode: str, tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    (inside / "folder").mkdir(parents=True)
    os.chdir(inside)
    Path("other.txt").write_text("kept")
    os.symlink("other.txt", "link.txt")
    os.symlink(tmp_path, "below")
    with pytest.raises(Refused):
        write_file(path, "x", mode)
    assert Path("other.txt").read_text() == "kept"
    assert sorted(os.listdir()) == ["below", "folder", "link.txt", "other.txt"]
    assert os.listdir(tmp_path) == ["inside"]


def test_each_module_that_reads_files_can_be_confined() -> None:
    official = Path(fs.__file__).parent
    reading = [
        path for path in official.glob("*.py") if "cogcli.official.files import" in path.read_text()
    ]
    assert len(reading) >= 5
    for path in reading:
        assert hasattr(importlib.import_module(f"cogcli.official.{path.stem}"), "OPENED_AS"), path
