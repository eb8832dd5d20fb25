"""HTTP statuses as our errors (docs/reference/protocols.md#failures)."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

from cogcli.core.errors import (
    OverloadedError,
    RejectedError,
    RuntimeErrorBase,
    ServerFaultError,
    TransportError,
)
from cogcli.core.terminal_text import visible
from cogcli.specs.eligibility import variables_of

if TYPE_CHECKING:
    from cogcli.core.http import HttpReply
    from cogcli.protocols.secrets import Secrets
    from cogcli.specs.service import Service

LONGEST: Final = 500
OVERLOADED: Final = (429, 502, 503, 504)
_TELLING: Final = ("detail", "message", "error_description", "error", "title")
"""Members in which services put a sentence for people."""


def failure(
    said: str, reply: HttpReply, body: Any, secrets: Secrets, now: str, *, service: Service | None = None
) -> RuntimeErrorBase | None:
    """The error that a reply's status tells, None for success. `body` is its JSON value, None if it has none.

    `said` names the request, `now` is the time of the reply. The credentials of `service` are named where they
    were not accepted.
    """
    status = reply.status
    if 200 <= status < 300:
        return None
    if status < 200:
        return TransportError("call.transport", f"{said}: no final answer (HTTP {status})", left=True)
    if status < 400:
        target = quote(reply.header("location"), secrets) or "nowhere"
        hint = "name that address in the service file, if it is the right one"
        text = f"{said}: HTTP {status}, redirected to {target}, which is not followed"
        return RejectedError("call.rejected", text, hint=hint, left=True)
    words = quote(
        _sentence(body) or reply.fault or reply.body[: 8 * LONGEST].decode("utf-8", "replace"), secrets
    )
    text = f"{said}: HTTP {status}{f': {words}' if words else ''}"
    if status in OVERLOADED:
        error = OverloadedError("call.overloaded", text, left=True)
        error.retry_after = retry_after(reply.header("retry-after"), now)
        return error
    if status >= 500:
        return ServerFaultError("call.server-error", text, left=True)
    if status not in (401, 403):
        return RejectedError("call.rejected", text, left=True)
    asked = quote(reply.header("www-authenticate"), secrets)
    text += f"; it asks for {asked}" if asked else ""
    return RejectedError("call.rejected", text, hint=_credentials(service), left=True)


def _credentials(service: Service | None) -> str:
    """Which credentials were not accepted, by the names that the service file gives them."""
    if service is None:
        return "the service does not accept the credentials"
    ref, names = service.settings.get("auth_ref"), list(dict.fromkeys(variables_of(None, service)))
    if ref is None and not names:
        return f"the service wants credentials: write auth_ref in {service.file or 'its file'}"
    given = [f"`auth_ref: {ref}`"] if ref else []
    given += [f"variable `{name}`" for name in names if ref not in (name, f"env:{name}")]
    return f"the service does not accept what {' and '.join(given)} in {service.file or 'its file'} gives"


def retry_after(value: str, now: str) -> float | None:
    """The seconds a `Retry-After` asks for, never negative; None where it says nothing that can be read."""
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


def quote(text: str, secrets: Secrets) -> str:
    """Foreign text in a message of ours: one line, masked before it is cut, nothing hidden in it."""
    line = visible(" ".join(secrets.masked(text).split()))
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def _sentence(body: Any) -> str:
    """What a JSON error says to people, empty where it is of no known form."""
    for _ in range(3):
        if not isinstance(body, dict):
            break
        body = next((body[name] for name in _TELLING if body.get(name)), None)
    return body if isinstance(body, str) else ""
