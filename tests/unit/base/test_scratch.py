"""Folders of temporary files (docs/reference/command-line.md#signals)."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.scratch import remove_scratch_folders, scratch_folder


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files are."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("keep", [False, True])
def test_what_is_kept_is_asked_for(place: Path, *, keep: bool) -> None:
    def leave() -> None:
        with scratch_folder("mine", keep=keep) as folder:
            Path(folder, "file").touch()
            raise ValueError("of its user")

    with pytest.raises(ValueError, match="of its user"):
        leave()
    assert [path.name for path in place.rglob("file")] == ["file"] * keep
    with scratch_folder("mine", keep=keep) as folder:
        pass
    assert not Path(folder).exists()


def test_those_in_use_are_removed_whole(place: Path) -> None:
    with scratch_folder("mine", keep=True) as kept:
        Path(kept, "file").touch()
    with scratch_folder("mine", keep=True) as folder:
        Path(folder, "below").mkdir()
        remove_scratch_folders()
        assert [*place.iterdir()] == [Path(kept)]


def test_no_place_for_them_is_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(place / "nowhere"))
    with (
        pytest.raises(UnusableEnvironment, match="temporary files") as refused,
        scratch_folder("mine"),
    ):
        pass
    assert refused.value.code == "env.disk"
