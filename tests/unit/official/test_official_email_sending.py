"""Mail to a server on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from email import message_from_bytes, policy
from typing import Any

import pytest
from support.loopback_servers import MailServer, running

from cogcli.base.errors import RuntimeErrorBase
from cogcli.base.host_access import ACCESS, HostAccess
from cogcli.official.email_sending import send_message
from cogcli.sdk import Refused

GOOD = {"to": "ada@example.org", "subject": "Tides", "body": "High water at six."}


@pytest.fixture(autouse=True)
def password() -> Iterator[None]:
    token = ACCESS.set(HostAccess(secret=lambda: "pass-word-1"))
    yield
    ACCESS.reset(token)


def sent(server: MailServer, **given: str) -> dict[str, object]:
    place = {"host": "127.0.0.1", "port": server.port, "user": "me", "sender": "me@example.org"}
    with running(server):
        return send_message(**{**place, **GOOD, **given})


def test_a_message_reaches_all_recipients_as_it_was_written() -> None:
    server = MailServer()
    answer = sent(
        server,
        to="ada@example.org, bo@example.org",
        subject="Gezeiten für morgen",
        body="Grüße\n.\nfrom here",
    )
    (raw,) = server.messages
    message = message_from_bytes(raw.replace(b"\r\n..", b"\r\n."), policy=policy.default)
    assert type(answer["message_id"]) is str
    assert answer == {"sent": True, "message_id": message["Message-ID"]}
    assert message["Subject"] == "Gezeiten für morgen"
    assert message["To"] == "ada@example.org, bo@example.org"
    assert message.get_content().replace("\r\n", "\n") == "Grüße\n.\nfrom here\n"
    assert raw.isascii()
    commands = [line.partition(" size=")[0] for line in server.lines]
    assert commands[2:-1] == [
        "mail FROM:<me@example.org>",
        "rcpt TO:<ada@example.org>",
        "rcpt TO:<bo@example.org>",
    ]


@pytest.mark.parametrize(
    "given",
    [
        {"subject": "Tides\r\nBcc: all@example.org"},
        {"subject": "Tides\nBcc: all@example.org"},
        {"subject": "Tides\rBcc: all@example.org"},
        {"subject": "Tides\x0bX: 1"},
        {"subject": "Tides\u2028X: 1"},
        {"subject": "Tides\0"},
        {"to": "ada@example.org\nBcc: all@example.org"},
        {"to": "ada@example.org>\r\nDATA"},
        {"to": "Ada <ada@example.org>"},
        {"to": ""},
        {"to": "ada"},
        {"to": "ada@example.org,"},
        {"to": "ada@example.org bo@example.org"},
        {"to": ",".join(["a@example.org"] * 51)},
        {"sender": "me@example.org\nX: 1"},
        {"subject": "x" * 501},
        {"body": "x" * (1024 * 1024 + 1)},
        {"body": "\ud800"},
        {"port": "smtp"},
        {"port": "0"},
    ],
)
def test_what_could_smuggle_a_header_or_is_no_message_never_leaves(given: dict[str, str]) -> None:
    server = MailServer()
    with pytest.raises(Refused):
        sent(server, **given)
    assert (server.lines, server.messages) == ([], [])


@pytest.mark.parametrize("refused", ["AUTH", "mail", "rcpt TO:<bo", "data"])
def test_what_the_server_refuses_was_sent_to_nobody(refused: str) -> None:
    server = MailServer(refused=refused)
    with pytest.raises(Refused):
        sent(server, to="ada@example.org,bo@example.org")
    assert server.messages == []


@pytest.mark.parametrize(
    ("moment", "left"), [("ehlo", False), ("AUTH", False), ("rcpt", False), ("text", True)]
)
def test_what_breaks_off_says_whether_the_text_may_have_left(moment: str, left: bool) -> None:
    with pytest.raises(RuntimeErrorBase) as caught:
        sent(MailServer(hangs_up=moment))
    assert (caught.value.code, caught.value.left) == ("call.transport", left)


def test_nobody_listens() -> None:
    server = MailServer()
    port = server.port
    server.server_close()
    with pytest.raises(RuntimeErrorBase) as caught:
        send_message(**GOOD, host="127.0.0.1", port=port, user="me", sender="me@example.org")
    assert (caught.value.code, caught.value.left) == ("call.transport", False)


def test_without_a_password_nobody_logs_in() -> None:
    ACCESS.set(HostAccess())
    server = MailServer()
    assert sent(server)["sent"]
    assert not [line for line in server.lines if line.startswith("AUTH")]


def test_a_password_is_sent_once_and_is_in_no_error() -> None:
    server: Any = MailServer(refused="AUTH")
    with pytest.raises(Refused) as caught:
        sent(server)
    assert "pass-word-1" not in str(caught.value)
