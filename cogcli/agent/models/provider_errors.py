"""What a provider says when it does not answer, as errors of models (docs/reference/models.md#errors)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from cogcli.agent.models.port import ModelError
from cogcli.agent.models.provider_api import error_in, parse_json
from cogcli.base.jsonvalue import text_of
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
"""Kinds of errors that a provider names inside a stream; any other is of the server."""
ADDRESS_HINT: Final = "look at base_url of [model]: it is the address of the API, for most servers with /v1 at its end"
_TOO_LONG: Final = re.compile(
    r"context.?(length|window|size)|maximum.context|prompt is too long|too many (input )?tokens",
    re.IGNORECASE,
)
_NO_CREDIT: Final = "insufficient_quota"
"""Said with 429 where asking again does not help."""


def status_error(reply: HttpReply) -> ModelError:
    """The error of a status that is not a success."""
    status = reply.status
    kind = _OF_STATUS.get(status) or ("protocol" if status >= 500 else "bad_request")
    try:
        said = error_in(parse_json(reply.body))
    except ModelError:
        said = {}
    said = said or {"message": reply.fault or reply.body.decode("utf-8", "replace")}
    where = f", redirected to {reply.header('location')}" if 300 <= status < 400 else ""
    error = error_said(kind, said, f"HTTP {status}{where}: ")
    if status == 404 or where:
        error.hint = (
            f"{ADDRESS_HINT}; redirects are not followed"
            if where
            else f"{ADDRESS_HINT}; and at its `name`"
        )
    if error.retryable:
        error.retry_after = retry_after(reply.header("retry-after"), datetime.now(UTC).isoformat())
    return error


def kind_of(said: Mapping[str, Any]) -> str:
    """The kind of an error that comes without a status of failure."""
    code = said.get("code")
    status = _OF_STATUS.get(code) if type(code) is int else None
    return status or _OF_TYPE.get(text_of(said.get("type")), "protocol")


def error_said(kind: str, said: Mapping[str, Any], begin: str = "") -> ModelError:
    """The error that a provider's own object stands for."""
    message, code = text_of(said.get("message")), text_of(said.get("code"))
    if kind == "bad_request" and _TOO_LONG.search(f"{code} {message}"):
        kind = "context_too_long"
    hint = "look at what auth_ref of [model] gives" if kind == "auth" else ""
    credit = False if kind == "rate_limited" and _NO_CREDIT in (code, said.get("type")) else None
    return ModelError(kind, f"{begin}{message or code}".rstrip(" :"), hint=hint, retryable=credit)


def refused_member(error: ModelError, body: Mapping[str, Any], optional: Mapping[str, str]) -> str:
    """The member of a body that may be left out and that an error names; empty for none."""
    if error.kind != "bad_request":
        return ""
    names = (
        name for name, words in optional.items() if re.search(rf"\b({words})\b", error.message)
    )
    return next((name for name in names if name in body), "")
