"""Mail that lies in files."""

from __future__ import annotations

import importlib.util
import mailbox
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from cogcli.official.email import read_mailbox
from cogcli.sdk import Refused

pytestmark = pytest.mark.sampled(4)


def message(subject: str = "Tides", text: str = "High water at six.", **more: str) -> EmailMessage:
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = "Ada <ada@example.org>", "bo@example.org", subject
    made["Date"], made["Message-ID"] = "Mon, 01 Jun 2026 10:00:00 +0200", "<1@example.org>"
    for name, value in more.items():
        made[name] = value
    made.set_content(text)
    return made


def messages(path: Path) -> list[dict[str, Any]]:
    found = read_mailbox(str(path))["messages"]
    assert isinstance(found, list)
    return found


def test_a_sentence_that_begins_with_from_begins_no_message(tmp_path: Path) -> None:
    """Programs that do not mark such lines have written mailboxes, too."""
    envelope, body = (
        "From ada@example.org Mon Jun  1 10:00:00 2026\n",
        "One.\n\nFrom Monday we need two.\n\nThree.\n",
    )
    (tmp_path / "in.mbox").write_text(f"{envelope}{message(text=body)}\n{envelope}{message()}")
    found = read_mailbox(str(tmp_path / "in.mbox"))
    assert [one["text"] for one in messages(tmp_path / "in.mbox")] == [
        body.strip(),
        "High water at six.",
    ]
    assert found["skipped"] == 0


@pytest.mark.parametrize(("name", "listed"), [("scan.pdf", 1), ("../scan.pdf", 0)])
def test_a_mail_that_is_nothing_but_an_attachment_lists_it(
    tmp_path: Path, name: str, listed: int
) -> None:
    made = message()
    made.set_content(b"%PDF", "application", "pdf", filename=name, disposition="attachment")
    (tmp_path / "in.eml").write_bytes(made.as_bytes())
    found = read_mailbox(str(tmp_path / "in.eml"))
    [one] = messages(tmp_path / "in.eml")
    assert one["text"] == ""
    assert one["attachments"] == [{"name": name, "type": "application/pdf", "bytes": 4}] * listed
    assert found["skipped"] == 1 - listed


def test_an_mbox_is_read_as_it_was_written(tmp_path: Path) -> None:
    box = mailbox.mbox(tmp_path / "in.mbox")
    for number in range(3):
        box.add(message(f"Gezeiten für {number}", f"Grüße {number}\n\nFrom here on it rains.\n"))
    box.close()
    found = messages(tmp_path / "in.mbox")
    assert [one["subject"] for one in found] == [f"Gezeiten für {number}" for number in range(3)]
    assert found[1]["text"] == "Grüße 1\n\nFrom here on it rains."
    assert found[0]["from"] == [{"name": "Ada", "address": "ada@example.org"}]
    assert found[0]["date"] == "2026-06-01T10:00:00+02:00"
    assert read_mailbox(str(tmp_path / "in.mbox"))["skipped"] == 0


def test_a_maildir_a_folder_and_a_file_are_mailboxes_too(tmp_path: Path) -> None:
    box = mailbox.Maildir(tmp_path / "dir", create=True)
    box.add(message("One"))
    box.add(message("Two"))
    folder = tmp_path / "mails"
    folder.mkdir()
    (folder / "a.eml").write_bytes(message("Three").as_bytes())
    (folder / "notes.txt").write_text("no mail")
    assert sorted(one["subject"] for one in messages(tmp_path / "dir")) == ["One", "Two"]
    assert [one["subject"] for one in messages(folder)] == ["Three"]
    assert [one["subject"] for one in messages(folder / "a.eml")] == ["Three"]


def test_attachments_are_listed_and_names_that_lead_elsewhere_are_not(tmp_path: Path) -> None:
    made = message()
    names = [
        "plan.pdf",
        "../x",
        "/etc/passwd",
        "..",
        "a\\b",
        "C:\\x.exe",
        "sub/plan.pdf",
        "Grüße.txt",
    ]
    for name in names:
        made.add_attachment(b"12345", maintype="application", subtype="octet-stream", filename=name)
    (tmp_path / "a.eml").write_bytes(made.as_bytes())
    found = read_mailbox(str(tmp_path / "a.eml"))
    (one,) = messages(tmp_path / "a.eml")
    assert one["attachments"] == [
        {"name": name, "type": "application/octet-stream", "bytes": 5}
        for name in ("plan.pdf", "Grüße.txt")
    ]
    assert found["skipped"] == 6


BROKEN = [
    b"Content-Type: multipart/mixed\n\n--x\n\ntext\n",
    b"Content-Type: multipart/mixed; boundary=x\n\nno part at all\n",
    b"Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: text/plain\n\ncut o",
    b"Content-Type: text/plain; charset=nonsense\nSubject: a\n\n\xff\xfe\n",
    b"Content-Transfer-Encoding: base64\nSubject: a\n\n!!!!not base64!!!!\n",
    b"\n\nonly a body\n",
    b"no header at all, just a line\n",
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("raw", BROKEN)
def test_broken_mime_is_skipped_and_the_others_are_read(tmp_path: Path, raw: bytes) -> None:
    whole = (
        b"From a\n"
        + message("Good").as_bytes()
        + b"\n\nFrom b\n"
        + raw
        + b"\n\nFrom c\n"
        + message("Fine").as_bytes()
    )
    (tmp_path / "in.mbox").write_bytes(whole)
    found = read_mailbox(str(tmp_path / "in.mbox"))
    assert [one["subject"] for one in messages(tmp_path / "in.mbox")] == ["Good", "Fine"]
    assert found["skipped"] == 1


def test_a_message_of_html_alone_is_read_without_what_it_hides(tmp_path: Path) -> None:
    made = message()
    made.set_content("<p>High water.</p><p style='display:none'>SECRET</p>", subtype="html")
    (tmp_path / "a.eml").write_bytes(made.as_bytes())
    assert messages(tmp_path / "a.eml")[0]["text"] == "High water."


def test_an_encoded_header_adds_no_line(tmp_path: Path) -> None:
    (tmp_path / "a.eml").write_bytes(
        b"Subject: =?utf-8?q?Tides=0D=0ABcc=3A_all=40example.org?=\nTo: a@example.org\n\nx\n"
    )
    (one,) = messages(tmp_path / "a.eml")
    assert "\n" not in one["subject"]
    assert "\r" not in one["subject"]


@pytest.mark.parametrize("place", ["", "missing", "a\0b", "/dev/zero", "/etc"])
def test_what_is_no_mailbox_is_refused(place: str) -> None:
    with pytest.raises(Refused):
        read_mailbox(place)


def test_links_in_a_maildir_are_not_followed(tmp_path: Path) -> None:
    mailbox.Maildir(tmp_path / "dir", create=True)
    (tmp_path / "outside.eml").write_bytes(message("Outside").as_bytes())
    (tmp_path / "dir" / "new" / "1").symlink_to(tmp_path / "outside.eml")
    assert messages(tmp_path / "dir") == []


def test_an_empty_file_holds_no_message(tmp_path: Path) -> None:
    (tmp_path / "in.mbox").write_bytes(b"")
    assert read_mailbox(str(tmp_path / "in.mbox")) == {"messages": [], "skipped": 0}


@pytest.mark.sampled(16)
def test_the_messages_of_the_python_distribution_are_read_or_skipped() -> None:
    spec = importlib.util.find_spec("test.test_email")
    folder = Path(spec.origin).parent / "data" if spec and spec.origin else None
    if folder is None or not folder.is_dir():
        pytest.skip("this Python has no tests of its own")
    read = skipped = 0
    for file in sorted(folder.glob("msg_*.txt")):
        found = read_mailbox(str(file))
        read, skipped = read + len(found["messages"]), skipped + bool(found["skipped"])  # type: ignore[arg-type]
    assert read + skipped >= 40
    assert read > skipped


def test_a_text_that_is_cut_says_so(tmp_path: Path) -> None:
    (tmp_path / "in.mbox").write_bytes(
        b"".join(
            b"From a@x Mon Jun  1 10:00:00 2026\nSubject: x\n\n" + b"word \n" * count + b"\n"
            for count in (3, 50_000)
        )
    )
    short, long = messages(tmp_path / "in.mbox")
    assert "truncated" not in short
    assert long["truncated"] is True
    assert len(long["text"]) == 200_000
