"""The errors of providers as errors of models (docs/reference/models.md#errors)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from cogcli.agent.models.port import ModelError
from cogcli.agent.models.provider_api import ReportedError, parse_error, parse_json
from cogcli.declarations.value_types import Json
from cogcli.protocols.http.failures import retry_after

if TYPE_CHECKING:
    from cogcli.base.http import HttpReply

_OF_STATUS: Final = {
    401: "auth",
    403: "auth",
    408: "timeout",
    413: "context_too_long",
    429: "rate_limited",
    502: "overloaded",
    503: "overloaded",
    504: "overloaded",
    529: "overloaded",
}
_OF_TYPE: Final = {
    "authentication_error": "auth",
    "permission_error": "auth",
    "rate_limit_error": "rate_limited",
    "overloaded_error": "overloaded",
    "timeout_error": "timeout",
    "request_too_large": "context_too_long",
    "invalid_request_error": "bad_request",
}
"""The kinds of errors in a stream, by the provider's type. Any other is an error of the server."""
ADDRESS_HINT: Final = "look at base_url of [model]: it is the address of the API, for most servers with /v1 at its end"
_TOO_LONG: Final = re.compile(
    r"context.?(length|window|size)|maximum.context|prompt is too long|too many (input )?tokens",
    re.IGNORECASE,
)
_NO_CREDIT: Final = "insufficient_quota"
"""The type of an error with status 429 for which a retry does not help."""


def status_error(reply: HttpReply) -> ModelError:
    """Return the error of an HTTP status other than success."""
    status = reply.status
    kind = _OF_STATUS.get(status) or ("protocol" if status >= 500 else "bad_request")
    where = f", redirected to {reply.header('location')}" if 300 <= status < 400 else ""
    error = model_error(kind, _report_in(reply), f"HTTP {status}{where}: ")
    if where:
        error.hint = f"{ADDRESS_HINT}; redirects are not followed"
    elif status == 404:
        error.hint = f"{ADDRESS_HINT}; and at its `name`"
    if error.retryable:
        error.retry_after = retry_after(reply.header("retry-after"), datetime.now(UTC).isoformat())
    return error


def _report_in(reply: HttpReply) -> ReportedError:
    """Return the error in a body; a body without one is the message."""
    found = None
    with suppress(ModelError):
        found = parse_error(parse_json(reply.body))
    text = reply.fault or reply.body.decode("utf-8", "replace")
    return found or ReportedError(message=text)


def kind_of(error: ReportedError) -> str:
    """Return the kind of an error without a status of failure."""
    status = _OF_STATUS.get(error.code) if isinstance(error.code, int) else None
    return status or _OF_TYPE.get(error.type, "protocol")


def model_error(kind: str, error: ReportedError, prefix: str = "") -> ModelError:
    """Return the error of a model for the error that its provider reports."""
    message, code = error.message, error.code if isinstance(error.code, str) else ""
    if kind == "bad_request" and _TOO_LONG.search(f"{code} {message}"):
        kind = "context_too_long"
    hint = "look at what auth_ref of [model] gives" if kind == "auth" else ""
    credit = False if kind == "rate_limited" and _NO_CREDIT in (code, error.type) else None
    return ModelError(kind, f"{prefix}{message or code}".rstrip(" :"), hint=hint, retryable=credit)


def refused_member(error: ModelError, body: Json, optional: Mapping[str, str]) -> str:
    """Return the optional member of a body that an error names. Empty for none."""
    if error.kind != "bad_request":
        return ""
    names = (
        name for name, words in optional.items() if re.search(rf"\b({words})\b", error.message)
    )
    return next((name for name in names if name in body), "")
