"""What helps where nothing could be written."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from cogcli.base.files import hint_for_write, write_atomic


def test_the_hint_is_about_the_cause(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    for path, words in (
        ("file/below", "a file stands"),
        ("folder", "a folder stands"),
        ("x" * 999, "shorter name"),
    ):
        with pytest.raises(OSError) as refused:  # noqa: PT011
            write_atomic(tmp_path / path, b"")
        assert words in hint_for_write(refused.value), path
    assert hint_for_write(OSError(errno.ENOSPC, "full")) == "free some space"
    assert hint_for_write(FileNotFoundError(errno.ENOENT, "no")) == "make its folder first"
    assert hint_for_write(PermissionError(errno.EACCES, "no")) == "make the directory writable"
