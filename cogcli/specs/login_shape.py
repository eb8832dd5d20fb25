"""The rules of the key `login` of MCP services (docs/reference/mcp.md#logins)."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from cogcli.base.jsonvalue import Json
from cogcli.declarations.service_spec import HTTP_URL
from cogcli.specs.credentials import address_holds_credential
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.unchecked import object_at, text_at, value_at

_PLAIN_URL: Final = re.compile(HTTP_URL, re.IGNORECASE)
_CLIENTS: Final = "client_credentials"
_PROOFS: Final = ("client_secret", "signing_key")
"""The keys by which a client proves itself."""
_NEEDED: Final = {
    "client_secret": ("client_id", "issuer"),
    "signing_key": ("client_id", "issuer", "signing_algorithm"),
    "signing_algorithm": ("signing_key",),
}
"""By key the keys that it needs. The issuer is one: a secret goes to no server that another one names."""
_EXCLUSIVE: Final = (
    ("client_secret", "signing_key"),
    ("client_id", "client_metadata_url"),
    ("endpoints", "client_metadata_url"),
)
"""Pairs of keys that exclude each other. Without metadata no server says that it takes a document."""


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
    _check_keys(login, report)
    _check_grant(login, report)
    _check_issuer(text_at(login, "issuer") or "", report)
    if value_at(login, "endpoints") is not None:
        _check_endpoints(login, text_at(raw, "url") or "", report)


def _check_keys(login: Json, report: ProblemReport) -> None:
    """Report keys that exclude each other, and keys that another one needs."""
    for one, other in _EXCLUSIVE:
        if value_at(login, one) is not None and value_at(login, other) is not None:
            message = f"`login` has `{one}` and `{other}`"
            path = ("login", other)
            report.error("service.auth", path, message, hint="keep one of them", key=True)
    for key, needed in _NEEDED.items():
        for name in needed if value_at(login, key) is not None else ():
            if value_at(login, name) is None:
                _report_missing(f"`{key}`", name, report)


def _check_grant(login: Json, report: ProblemReport) -> None:
    """Report keys that the grant needs or does not use."""
    is_client = text_at(login, "grant") == _CLIENTS
    for key in ("client_metadata_url",) if is_client else ("signing_key",):
        if value_at(login, key) is not None:
            grant = _CLIENTS if is_client else "authorization_code"
            message = f"`login.{key}` has no meaning for the grant `{grant}`"
            report.error("service.auth", ("login", key), message, hint="remove it", key=True)
    if not is_client:
        return
    has_proof = any(value_at(login, key) is not None for key in _PROOFS)
    for key in ("client_id", "issuer", *(() if has_proof else ("client_secret",))):
        if value_at(login, key) is None:
            _report_missing(f"the grant `{_CLIENTS}`", key, report)


def _report_missing(cause: str, key: str, report: ProblemReport) -> None:
    message = f"`login` has {cause} without `{key}`"
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


def _check_endpoints(login: Json, url: str, report: ProblemReport) -> None:
    """Report endpoints that the login lacks, and endpoints of several origins without an issuer."""
    is_client = text_at(login, "grant") == _CLIENTS
    has_client = value_at(login, "client_id") is not None
    needed = () if is_client else ("authorize",) if has_client else ("authorize", "register")
    for name in needed:
        if value_at(login, "endpoints", name) is None:
            _report_missing("`endpoints`", f"endpoints.{name}", report)
    found = [text_at(login, "endpoints", name) for name in ("authorize", "token", "register")]
    whole = [url if each.startswith("/") else each for each in found if each]
    if len({origin_of(each) for each in whole}) > 1 and value_at(login, "issuer") is None:
        message = "`login.endpoints` are of several origins, without `issuer`"
        report.error("service.auth", ("login", "endpoints"), message, hint="add issuer", key=True)


def origin_of(url: str) -> str:
    """Return scheme, host and port of an address, as written."""
    try:
        parts = urlsplit(url)
    except ValueError:  # brackets that hold no address: the shape reports them
        return url
    return f"{parts.scheme}://{parts.netloc}"
