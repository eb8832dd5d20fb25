"""Conversion of HTTP statuses to errors of cogcli (docs/reference/protocols.md#failures)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, Protocol

from cogcli.base.errors import (
    OverloadedError,
    RejectedError,
    RuntimeErrorBase,
    ServerFaultError,
    ServiceResolutionError,
    TransportError,
)
from cogcli.base.json_pointer import DocumentFault
from cogcli.base.terminal_text import visible
from cogcli.declarations.service_spec import Service
from cogcli.specs.eligibility import variables_of

if TYPE_CHECKING:
    from cogcli.base.http import HttpReply

MAX_MESSAGE: Final = 500
OVERLOADED: Final = (429, 502, 503, 504)
_MESSAGE_KEYS: Final = ("detail", "message", "error_description", "error", "title")
"""Members in which services send a message for people."""


class Masking(Protocol):
    """An object that knows the secrets of a call."""

    @property
    def mask_text(self) -> Callable[[str], str]:
        """Masks these secrets in a string."""


def error_from_reply(
    request: str,
    reply: HttpReply,
    body: object,
    secrets: Masking,
    now: str,
    *,
    service: Service | None = None,
) -> RuntimeErrorBase | None:
    """Return the error for a reply's status, None for success.

    `body` is its JSON value, None if it has none. `request` is the request's text for messages, `now` is the time of
    the reply. For 401 and 403 the hint refers to the credentials of `service`.
    """
    status = reply.status
    if 200 <= status < 300:
        return None
    if status < 200:
        return TransportError(
            "call.transport", f"{request}: no final answer (HTTP {status})", left=True
        )
    if status < 400:
        target = quote(reply.header("location"), secrets) or "nowhere"
        hint = "name that address in the service file, if it is the right one"
        text = f"{request}: HTTP {status}, redirected to {target}, which is not followed"
        return RejectedError("call.rejected", text, hint=hint, left=True)
    text = f"{request}: HTTP {status}{_explanation(reply, body, secrets)}"
    if status in OVERLOADED:
        error = OverloadedError("call.overloaded", text, left=True)
        error.retry_after = retry_after(reply.header("retry-after"), now)
        return error
    if status >= 500:
        return ServerFaultError("call.server-error", text, left=True)
    if status not in (401, 403):
        return RejectedError("call.rejected", text, left=True)
    challenge = quote(reply.header("www-authenticate"), secrets)
    text += f"; it asks for {challenge}" if challenge else ""
    return RejectedError("call.rejected", text, hint=_credentials_hint(service), left=True)


def _explanation(reply: HttpReply, body: object, secrets: Masking) -> str:
    """Return a colon and the text of an error reply, or an empty string if the reply has no text."""
    words = _sentence(body) or reply.fault or reply.body.decode("utf-8", "replace")
    words = quote(words, secrets)
    return f": {words}" if words else ""


def _credentials_hint(service: Service | None) -> str:
    """Return a hint about the rejected credentials, in the words of the service file."""
    if service is None:
        return "the service does not accept the credentials"
    if service.keys.login is not None:
        return f"the service does not accept the login: cogcli services login {service.id}"
    ref, names = service.auth_ref, list(dict.fromkeys(variables_of(None, service)))
    if ref is None and not names and not service.credentials:
        return f"the service wants credentials: write auth_ref in {service.file or 'its file'}"
    given = [f"`auth_ref: {ref}`"] if ref else []
    given += [f"`auth.{name}`" for name in service.credentials]
    given += [f"variable `{name}`" for name in names if ref not in (name, f"env:{name}")]
    return f"the service does not accept what {' and '.join(given)} in {service.file or 'its file'} gives"


def document_failure(service: Service, fault: DocumentFault) -> ServiceResolutionError:
    """Return the error for a document that does not allow a call. The checks before a run find most
    of these."""
    text = f"service `{service.id}`: {fault.located_message}"
    return ServiceResolutionError(fault.code, text, hint=fault.hint, left=False)


def retry_after(value: str, now: str) -> float | None:
    """Return the seconds of a `Retry-After` header, never negative; None for an invalid one."""
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.fromisoformat(now)).total_seconds())


def quote(text: str, secrets: Masking) -> str:
    """Return foreign text for an error message: one line of at most 500 visible characters, masked
    before it is cut."""
    line = visible(" ".join(secrets.mask_text(text).split()))
    return line if len(line) <= MAX_MESSAGE else f"{line[: MAX_MESSAGE - 1]}…"


def _sentence(body: object) -> str:
    """Return the readable message in a JSON error; empty if its form is unknown."""
    for _ in range(3):
        if not isinstance(body, dict):
            break
        body = next((body[name] for name in _MESSAGE_KEYS if body.get(name)), None)
    return body if isinstance(body, str) else ""
