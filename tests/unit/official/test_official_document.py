"""Documents on disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cogcli.official.document import check_path, read_pdf, read_text


@pytest.fixture
def tmp_path(ordinary_path: Path) -> Path:
    """Where these tests write."""
    return ordinary_path


SAMPLES = Path(__file__).parents[3] / "docs" / "samples"


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
    with pytest.raises(ValueError, match=r"latin\.txt: byte 2 is not UTF-8"):
        read_text(str(tmp_path / "latin.txt"))


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "big.txt").open("wb") as file:
        file.truncate(8 * 1024 * 1024 + 1)
    with pytest.raises(ValueError, match="larger than 8 MiB"):
        read_text(str(tmp_path / "big.txt"))


def test_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="not a regular file"):
        read_text(str(tmp_path / "pipe"))


@pytest.mark.parametrize("read", [read_text, read_pdf])
@pytest.mark.parametrize("name", [".ssh/config", ".env", "id_rsa", "server.key", "link.txt"])
def test_what_the_gate_refuses_is_not_read_without_the_gate_either(
    tmp_path: Path, read: Callable[[str], dict[str, object]], name: str
) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    if name.startswith("link"):
        file.symlink_to("/proc/self/environ")
    else:
        file.write_text("secret")
    with pytest.raises(ValueError, match=r"credentials|system folders"):
        read(str(file))


@pytest.mark.parametrize("name", ["", "missing.txt", "."])
def test_what_is_no_file_is_an_os_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(OSError, match=r"Is a directory|No such file"):
        read_text(str(tmp_path / name))


def test_a_pdf_gives_its_title_and_each_page() -> None:
    found: Any = read_pdf(str(SAMPLES / "trial-report.pdf"))
    assert found["title"] == "Shared berth planning: report on the trial"
    assert found["page_count"] == 3
    assert [page["number"] for page in found["pages"]] == [1, 2, 3]
    assert "Cancelled tug orders fell from 31 to 12." in found["pages"][1]["text"]
    assert found["truncated"] is False


def test_pages_over_the_limit_are_left_out_and_told() -> None:
    found = read_pdf(str(SAMPLES / "trial-report.pdf"), max_pages=1)
    assert len(found["pages"]) == 1  # type: ignore[arg-type]
    assert found["truncated"] is True


@pytest.mark.parametrize("content", [b"", b"%PDF-1.4\n%%EOF", b"hello", b"%PDF-1.7\n" + b"\x00" * 1000])
def test_what_is_no_pdf_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "broken.pdf").write_bytes(content)
    with pytest.raises(ValueError, match=r"broken\.pdf: not a readable PDF"):
        read_pdf(str(tmp_path / "broken.pdf"))


@pytest.mark.parametrize("cut", [200, 900, 1700, 2500])
def test_a_torn_pdf_is_read_or_refused_but_never_crashes(tmp_path: Path, cut: int) -> None:
    whole = (SAMPLES / "trial-report.pdf").read_bytes()
    (tmp_path / "torn.pdf").write_bytes(whole[:cut])
    with suppress(ValueError):
        assert isinstance(read_pdf(str(tmp_path / "torn.pdf"))["text"], str)


@pytest.mark.parametrize("path", ["notes.md", "docs/a b.pdf", "/srv/data/plan.txt", "environment.md"])
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
