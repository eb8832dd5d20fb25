"""Documents on disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cogcli.official.document import check_path, read_text
from cogcli.official.fs import read_file
from cogcli.official.pdf import read_pdf
from cogcli.official.sheets import read_sheet
from cogcli.sdk import Refused


@pytest.fixture
def tmp_path(ordinary_path: Path) -> Path:
    """Where these tests write."""
    return ordinary_path


def test_text_comes_with_name_size_and_digest(tmp_path: Path) -> None:
    file = tmp_path / "note.md"
    file.write_bytes("\ufeffGrüße".encode())
    assert read_text(str(file)) == {
        "text": "Grüße",
        "name": "note.md",
        "bytes": 10,
        "sha256": "0d25b1f0bacd90e42ec9397f7bb74ce37954ed9d91c292e51ecceb1c1bdc9172",
    }


def test_bytes_that_are_no_utf8_are_refused_with_their_place(tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes(b"Gr\xfc\xdfe")
    with pytest.raises(Refused, match=r"latin\.txt: byte 2 is not UTF-8"):
        read_text(str(tmp_path / "latin.txt"))


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "big.txt").open("wb") as file:
        file.truncate(8 * 1024 * 1024 + 1)
    with pytest.raises(Refused, match="larger than 8 MiB"):
        read_text(str(tmp_path / "big.txt"))


def test_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Refused, match="not a regular file"):
        read_text(str(tmp_path / "pipe"))


@pytest.mark.parametrize("read", [read_text, read_file, read_pdf, read_sheet])
@pytest.mark.parametrize("name", [".ssh/data.csv", "id_rsa.csv", ".env.csv", "link.csv"])
def test_what_the_gate_refuses_is_not_read_without_the_gate_either(
    tmp_path: Path, read: Callable[[str], dict[str, object]], name: str
) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    if name.startswith("link"):
        file.symlink_to("/proc/self/environ")
    else:
        file.write_text("secret")
    with pytest.raises(Refused, match=r"credentials|system folders"):
        read(str(file))


@pytest.mark.parametrize("name", ["missing.txt", "."])
def test_what_is_no_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refused, match=r"not a regular file|does not exist"):
        read_text(str(tmp_path / name))


@pytest.mark.parametrize(
    "path", ["notes.md", "docs/a b.pdf", "/srv/data/plan.txt", "environment.md"]
)
def test_ordinary_documents_pass_the_gate(path: str) -> None:
    assert check_path(path)["allowed"] is True


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a\0b",
        "/proc/self/environ",
        "/dev/zero",
        "/sys",
        "/home/ana/.ssh/config",
        "/srv/../proc/1/mem",
        "/home/ana/.AWS/credentials",
        "app/.env",
        "app/.env.production",
        "certs/server.PEM",
        "id_rsa",
        "/etc/shadow",
    ],
)
def test_system_folders_and_credentials_do_not(path: str) -> None:
    refused = check_path(path)
    assert refused["allowed"] is False
    assert refused["reason"]


def test_a_link_to_a_credential_does_not_pass(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "key").write_text("secret")
    (tmp_path / "notes.md").symlink_to(tmp_path / ".ssh" / "key")
    assert check_path(str(tmp_path / "notes.md"))["allowed"] is False
