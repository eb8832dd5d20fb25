"""Sends one mail to a server that the host names."""

from __future__ import annotations

import ipaddress
import re
import smtplib
import ssl
from typing import TYPE_CHECKING

from cogcli.sdk import Refused, seconds_left, secret, unreachable

if TYPE_CHECKING:
    from email.message import EmailMessage

_MAX_RECIPIENTS = 50
_MAX_SUBJECT = 500
_MAX_BODY = 1024 * 1024
_TLS_PORT = 465
_ADDRESS = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.)*[A-Za-z0-9-]{1,63}"
)
_Failed = (OSError, smtplib.SMTPException)


def send_message(
    to: str, subject: str, body: str, host: str, port: str, user: str, sender: str
) -> dict[str, object]:
    """Send a text to one or more addresses, separated by commas. `sent` is true if the server
    accepted it for all.

    Without TLS, only a server on this machine is used. Raise Refused, with nothing sent, for a
    header injection, an invalid address, or a recipient that the server refuses. If the connection
    breaks after the text has left, it may have been sent.
    """
    recipients = [part.strip() for part in to.split(",")]
    message = _build_message(recipients, subject, body, sender)
    server = _open_connection(host, port)
    try:
        _log_in(server, user)
        _require_recipients(server, sender, recipients)
        _send_text(server, message)
        return {"sent": True, "message_id": str(message["Message-ID"])}
    finally:
        server.close()


def _build_message(recipients: list[str], subject: str, body: str, sender: str) -> EmailMessage:
    from email.message import EmailMessage
    from email.policy import SMTP
    from email.utils import formatdate, make_msgid

    for address in (*recipients, sender):
        if not _ADDRESS.fullmatch(address):
            raise Refused(
                "bad-data",
                f"`{address[:80]!a}` is not a mail address",
                "write them as name@example.org, with commas",
            )
    if len(recipients) > _MAX_RECIPIENTS:
        raise Refused(
            "too-large", f"{len(recipients)} recipients; at most {_MAX_RECIPIENTS} get a message"
        )
    if any(not character.isprintable() for character in subject):
        raise Refused(
            "bad-data",
            "the subject holds a line end or another control character, which could add a header",
        )
    if len(subject) > _MAX_SUBJECT or len(body) > _MAX_BODY:
        raise Refused(
            "too-large", f"a subject has at most {_MAX_SUBJECT}, a body {_MAX_BODY} characters"
        )
    message = EmailMessage(policy=SMTP.clone(cte_type="7bit"))
    message["From"], message["To"], message["Subject"] = sender, ", ".join(recipients), subject
    message["Date"], message["Message-ID"] = (
        formatdate(),
        make_msgid(domain=sender.rpartition("@")[2]),
    )
    try:
        message.set_content(body)
    except UnicodeEncodeError:
        raise Refused("bad-data", "the body holds a character that is none") from None
    return message


def _open_connection(host: str, port: str) -> smtplib.SMTP:
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise Refused("bad-data", f"`{port[:20]}` is not a port")
    tls = ssl.create_default_context()
    try:
        if int(port) == _TLS_PORT:
            return smtplib.SMTP_SSL(host, _TLS_PORT, timeout=seconds_left(), context=tls)
        server = smtplib.SMTP(host, int(port), timeout=seconds_left())
        server.ehlo()
        if server.has_extn("starttls"):
            server.starttls(context=tls)
            server.ehlo()
        elif not _is_local(server):
            server.close()
            raise Refused(
                "unsupported",
                "the mail server offers no encryption",
                "name one that does, or port 465",
            )
        return server
    except _Failed as error:
        raise _connection_error(error, may_have_sent=False) from error


def _is_local(server: smtplib.SMTP) -> bool:
    return (
        server.sock is not None and ipaddress.ip_address(server.sock.getpeername()[0]).is_loopback
    )


def _log_in(server: smtplib.SMTP, user: str) -> None:
    password = secret()
    if not user or not password:
        return
    try:
        server.login(user, password)
    except smtplib.SMTPAuthenticationError:
        raise Refused("bad-data", "the mail server does not accept user and password") from None
    except smtplib.SMTPNotSupportedError:
        raise Refused("unsupported", "the mail server knows no way to log in") from None
    except _Failed as error:
        raise _connection_error(error, may_have_sent=False) from error


def _require_recipients(server: smtplib.SMTP, sender: str, recipients: list[str]) -> None:
    """Announce the sender and all recipients. Raise Refused if the server does not accept one of
    them.
    """
    try:
        answers = [
            (sender, *server.mail(sender)),
            *((one, *server.rcpt(one)) for one in recipients),
        ]
    except _Failed as error:
        raise _connection_error(error, may_have_sent=False) from error
    for address, code, reply in answers:
        if not 200 <= code < 300:
            raise Refused(
                "bad-data", f"the mail server refuses {address}: {code} {_one_line(reply)}"
            )


def _send_text(server: smtplib.SMTP, message: EmailMessage) -> None:
    try:
        code, reply = server.data(message.as_bytes())
    except smtplib.SMTPDataError as error:  # to the command, before the text
        raise Refused(
            "bad-data",
            f"the mail server takes no text: {error.smtp_code} {_one_line(error.smtp_error)}",
        ) from None
    except _Failed as error:
        raise _connection_error(error, may_have_sent=True) from error
    if not 200 <= code < 300:
        raise Refused("bad-data", f"the mail server refuses the message: {code} {_one_line(reply)}")


def _connection_error(error: Exception, *, may_have_sent: bool) -> Exception:
    """Return the error for a broken connection. `may_have_sent` is whether the message may have been sent."""
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return unreachable(f"the mail server gave no answer: {reason}", left=may_have_sent)


def _one_line(reply: bytes | str) -> str:
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
    return " ".join(part for part in text.split() if part.isprintable())
