"""A path is checked as it was resolved, whatever becomes of its links meanwhile (cogcli/base/links.py)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.links import require_inside, resolve_path


def make_link(link: Path, outside: Path) -> None:
    link.rmdir()
    link.symlink_to(outside)


def make_folder(link: Path, outside: Path) -> None:
    link.unlink()
    link.mkdir()


def change_after_first_look(monkeypatch: pytest.MonkeyPatch, change: Callable[[], None]) -> None:
    """Change the folder right after its path was resolved for the first time."""
    resolve, waiting = os.path.realpath, [change]

    def once(path: str) -> str:
        found = resolve(path)
        if waiting:
            waiting.pop()()
        return found

    monkeypatch.setattr(os.path, "realpath", once)


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A project, the folder in it, and a folder outside."""
    project, outside = tmp_path.resolve() / "project", tmp_path.resolve() / "outside"
    outside.mkdir()
    (project / "kept").mkdir(parents=True)
    return project, project / "kept", outside


def test_a_folder_that_becomes_a_link_gives_the_path_inside(
    places: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    project, kept, outside = places
    change_after_first_look(monkeypatch, lambda: make_link(kept, outside))
    assert require_inside(f"{kept}/episodes", str(project)) == f"{kept}/episodes"


def test_a_link_that_becomes_a_folder_is_refused_as_the_link_that_was_followed(
    places: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    project, kept, outside = places
    make_link(kept, outside)
    change_after_first_look(monkeypatch, lambda: make_folder(kept, outside))
    with pytest.raises(UnusableEnvironment) as refused:
        require_inside(f"{kept}/episodes", str(project))
    assert refused.value.code == "project.link"


def test_a_path_that_the_user_named_may_lead_anywhere(places: tuple[Path, Path, Path]) -> None:
    project, kept, outside = places
    make_link(kept, outside)
    assert resolve_path(str(outside), str(project)) == (str(outside), "")
    assert resolve_path(f"{kept}/episodes", "") == (f"{outside}/episodes", "")
