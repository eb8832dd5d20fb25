"""The rules of the key `login` of MCP services (docs/reference/mcp.md#logins)."""

from __future__ import annotations

import re
from typing import Final

from cogcli.base.jsonvalue import Json
from cogcli.declarations.service_spec import HTTP_URL
from cogcli.specs.credentials import address_holds_credential
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.unchecked import object_at, text_at, value_at

_PLAIN_URL: Final = re.compile(HTTP_URL, re.IGNORECASE)
_OF_CLIENTS: Final = ("client_id", "client_secret", "issuer")
"""The keys that the grant `client_credentials` needs: the secret goes to no other server."""


def check_login(raw: Json, report: ProblemReport) -> None:
    """Report faults of `login` that its shape cannot express."""
    if value_at(raw, "login") is None:
        return
    if value_at(raw, "auth_ref") is not None:
        message = "`login` stands beside `auth_ref`"
        report.error("service.auth", ("auth_ref",), message, hint="keep one of them", key=True)
    if "authorization" in {name.lower() for name in object_at(raw, "metadata", "headers")}:
        message = "`login` stands beside an `Authorization` header"
        report.error("service.auth", ("login",), message, hint="keep one of them", key=True)
    login = object_at(raw, "login")
    _check_client(login, report)
    _check_issuer(text_at(login, "issuer") or "", report)


def _check_client(login: Json, report: ProblemReport) -> None:
    """Report keys of a client that the grant lacks or does not use."""
    if text_at(login, "grant") == "client_credentials":
        for key in _OF_CLIENTS:
            if value_at(login, key) is None:
                message = f"`login` has the grant `client_credentials` without `{key}`"
                report.error("service.auth", ("login",), message, hint=f"add {key}", key=True)
        return
    for key in ("client_id", "issuer") if value_at(login, "client_secret") is not None else ():
        if value_at(login, key) is None:
            message = f"`login` has `client_secret` without `{key}`"
            report.error("service.auth", ("login",), message, hint=f"add {key}", key=True)


def _check_issuer(url: str, report: ProblemReport) -> None:
    """Report an issuer that is not an absolute URL, or that contains a credential."""
    path = ("login", "issuer")
    if url and not _PLAIN_URL.fullmatch(url):
        message = "`login.issuer` is no whole address"
        report.error("service.url", path, message, hint="write https://HOST")
    elif url and address_holds_credential(url):
        message = "`login.issuer` holds a secret in its query"
        report.error("service.url", path, message, hint="use client_secret")
