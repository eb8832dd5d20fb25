"""Files by `cogcli.sdk`: roots, links, what is not a regular file (docs/reference/sdk.md#files)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cogcli.base.errors import RejectedError
from cogcli.base.host_access import ACCESS, HostAccess
from cogcli.official.document import check_path
from cogcli.protocols.pythoncall.readable_files import ReadableFiles
from cogcli.sdk import Refused, open_for_reading, writable_path, write_file


@pytest.fixture
def bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Sets roots below the test's folder, which is the working directory."""
    for name in ("in", "out", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(name)
    monkeypatch.chdir(tmp_path)
    tokens = []

    def of(*roots: str) -> tuple[tuple[str, ...], ...]:
        return tuple((str(tmp_path.resolve() / root),) for root in roots)

    def set_roots(*roots: str, write: tuple[str, ...] = ()) -> None:
        tokens.append(ACCESS.set(HostAccess(roots=of(*roots), write_roots=of(*write))))

    yield set_roots
    for token in reversed(tokens):
        ACCESS.reset(token)


def read(path: str, most: int = 100) -> bytes:
    with open_for_reading(path, most) as file:
        return file.read()


def refusal(call: Callable[..., Any], *args: Any, **keys: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        call(*args, **keys)
    return caught.value


def test_without_roots_any_regular_file_is_read(bound: Any) -> None:
    assert read("other/a.txt") == b"other"


def test_only_files_below_the_roots_are_read(bound: Any) -> None:
    bound("in")
    assert read("in/a.txt") == b"in"
    assert read("other/../in/a.txt") == b"in"
    for path in ("other/a.txt", "in/../other/a.txt", "/etc/hostname", "inner", "nothing/here"):
        assert refusal(read, path).reason == "bad-data"
        assert "outside of `files.roots`" in refusal(read, path).message
        assert check_path(path)["allowed"] is False
    assert check_path("in/a.txt")["allowed"] is True


def test_a_root_is_not_the_beginning_of_a_name(bound: Any) -> None:
    Path("inner").write_text("x")
    bound("in")
    assert "outside" in refusal(read, "inner").message


def test_a_file_lies_in_a_root_of_each_declaration(bound: Any) -> None:
    Path("in/deep").mkdir()
    Path("in/deep/b.txt").write_text("b")
    bound("in", "in/deep")
    assert read("in/deep/b.txt") == b"b"
    assert "outside" in refusal(read, "in/a.txt").message


def test_links_are_followed_before_a_path_is_judged(bound: Any) -> None:
    os.symlink("../other/a.txt", "in/link.txt")
    os.symlink("a.txt", "in/near.txt")
    os.symlink("../other", "in/folder")
    bound("in")
    assert read("in/near.txt") == b"in"
    for path in ("in/link.txt", "in/folder/a.txt"):
        assert "outside" in refusal(read, path).message


@pytest.mark.parametrize("path", ["", "a\0b", "in", "missing.txt", "pipe", "/dev/zero", "\ud800"])
def test_what_is_no_regular_file_is_refused_at_once(bound: Any, path: str) -> None:
    os.mkfifo("pipe")
    assert refusal(read, path).reason == "bad-data"


def test_a_larger_file_is_refused_before_it_is_read(bound: Any) -> None:
    assert refusal(read, "in/a.txt", 1).reason == "too-large"


def test_without_write_roots_files_are_written_below_the_working_directory(
    bound: Any, tmp_path: Path
) -> None:
    assert write_file("new.txt", b"1") == str(tmp_path.resolve() / "new.txt")
    assert write_file("out/new.txt", b"2", replace=True)
    assert Path("out/new.txt").read_bytes() == b"2"
    for path in ("../x.txt", str(tmp_path.parent / "x.txt"), "out/../../x.txt"):
        assert "not below the working directory" in refusal(write_file, path, b"").message
    assert not (tmp_path.parent / "x.txt").exists()


def test_only_below_the_write_roots(bound: Any) -> None:
    bound(write=("out",))
    assert writable_path("out/b.txt").endswith("/out/b.txt")
    os.symlink("../other", "out/folder")
    for path in ("b.txt", "out/../b.txt", "out/folder/b.txt"):
        assert "outside of `files.write_roots`" in refusal(writable_path, path).message


@pytest.mark.parametrize(
    "path",
    ["", ".", "out/", "out/..", "out", "a\0b", "link.txt", "dangling.txt", "pipe", "no/folder.txt"],
)
def test_what_is_no_place_for_a_file_is_refused(bound: Any, path: str) -> None:
    os.symlink("other/a.txt", "link.txt")
    os.symlink("nothing", "dangling.txt")
    os.mkfifo("pipe")
    assert refusal(write_file, path, b"x", replace=True).reason == "bad-data"
    assert Path("other/a.txt").read_text() == "other"
    assert not Path("nothing").exists()


def test_a_file_that_is_there_stays_unless_it_may_be_replaced(bound: Any) -> None:
    assert "stays" in refusal(write_file, "in/a.txt", b"x").message
    assert Path("in/a.txt").read_text() == "in"
    write_file("in/a.txt", b"x", replace=True)
    assert Path("in/a.txt").read_text() == "x"


def test_functions_that_ask_what_to_open_are_bound_too(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    within = ReadableFiles("", roots=((str(tmp_path.resolve()),),))
    assert within.checked_path(str(tmp_path / "a.txt")) == str(tmp_path.resolve() / "a.txt")
    with pytest.raises(RejectedError, match=r"outside of `files\.roots`") as caught:
        within.checked_path("/etc/hostname")
    assert caught.value.reason == "bad-data"
