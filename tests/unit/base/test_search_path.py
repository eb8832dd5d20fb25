"""Which entries of `PYTHONPATH` remain."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cogcli.base.search_path import absolute_entries, relative_folders, resolve_entries


@pytest.mark.parametrize(
    ("text", "kept"),
    [("", ""), (":", ""), (".", ""), ("/a:b:/c::", "/a:/c"), ("/a", "/a"), ("a:./b:../c", "")],
)
def test_absolute_entries_remain_in_their_order(text: str, kept: str) -> None:
    assert absolute_entries(text) == kept


def test_the_relative_entries_of_a_service_start_at_its_folder() -> None:
    assert (
        resolve_entries("lib::/shared:./more:", "/service")
        == "/service/lib:/shared:/service/./more"
    )


def test_a_relative_entry_means_a_folder_below_the_working_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert relative_folders("a:/b:") == {"", "a", str(tmp_path), str(tmp_path / "a")}


def test_the_folders_of_the_interpreter_stay_even_if_a_relative_entry_names_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(sys.prefix)
    assert str(Path(sys.prefix, "lib")) not in relative_folders("lib")
