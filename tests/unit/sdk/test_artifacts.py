"""The files that a call says it wrote."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cogcli import sdk
from cogcli.base.host_access import ACCESS, HostAccess


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    monkeypatch.chdir(tmp_path)
    noted: list[dict[str, Any]] = []
    token = ACCESS.set(HostAccess(files=noted))
    yield noted
    ACCESS.reset(token)


def test_the_last_version_of_a_file_counts(files: list[dict[str, Any]]) -> None:
    sdk.write_file("a.txt", b"one")
    sdk.write_file("b.txt", b"two")
    Path("a.txt").write_bytes(b"longer")
    assert sdk.artifact("a.txt") == os.path.realpath("a.txt")
    assert [(each["path"], each["size_bytes"]) for each in files] == [("b.txt", 3), ("a.txt", 6)]


def test_a_file_elsewhere_has_its_whole_path(
    files: list[dict[str, Any]], tmp_path_factory: Any
) -> None:
    other = tmp_path_factory.mktemp("other") / "x.txt"
    other.write_text("x")
    os.symlink(other, "link.txt")
    sdk.artifact("link.txt")
    assert [each["path"] for each in files] == [os.path.realpath(other)]


@pytest.mark.parametrize("path", ["", "missing.txt", ".", "pipe"])
def test_what_is_no_regular_file_is_refused(files: list[dict[str, Any]], path: str) -> None:
    os.mkfifo("pipe")
    with pytest.raises(sdk.Refused) as refused:
        sdk.artifact(path)
    assert (refused.value.reason, files) == ("bad-data", [])


def test_a_call_records_a_hundred_files(files: list[dict[str, Any]]) -> None:
    for number in range(100):
        sdk.write_file(f"{number}.txt", b"")
    sdk.write_file("7.txt", b"again", replace=True)
    with pytest.raises(sdk.Refused) as refused:
        sdk.write_file("more.txt", b"")
    assert (refused.value.reason, len(files)) == ("too-large", 100)
    assert not os.path.exists("more.txt")


def test_a_function_by_itself_records_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("a")
    assert sdk.artifact("a.txt").endswith("a.txt")
