"""The rules of the key `auth` of services (docs/reference/service.md#auth)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from cogcli.base.jsonvalue import Json
from cogcli.declarations.service_spec import HTTP_URL
from cogcli.specs.credentials import address_holds_credential
from cogcli.specs.id_grammar import is_settable
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.unchecked import object_at, text_at, value_at

_FORMS: Final = {
    "bearer": ("bearer",),
    "api_key": ("api_key", "name"),
    "user": ("user", "password"),
    "client_id": ("client_id", "client_secret", "token_url"),
}
"""By the key that decides the form: the keys that the form needs."""
_OPTIONS: Final = {
    "bearer": ("word",),
    "api_key": ("in",),
    "user": (),
    "client_id": ("scopes", "audience", "client_auth"),
}
_PLAIN_URL: Final = re.compile(HTTP_URL, re.IGNORECASE)


def check_auth(raw: Json, report: ProblemReport) -> None:
    """Report faults of `auth` that its shape cannot express."""
    if value_at(raw, "auth") is None:
        return
    if value_at(raw, "auth_ref") is not None:
        message = "`auth` stands beside `auth_ref`"
        hint = "write the token of auth_ref into auth"
        report.error("service.auth", ("auth_ref",), message, hint=hint, key=True)
    if value_at(raw, "base_url") is None:
        message = "`auth` needs `base_url`: a document does not decide where credentials are sent"
        report.error("service.auth", ("auth",), message, hint="add base_url", key=True)
    headers = {name.lower() for name in object_at(raw, "metadata", "headers")}
    for name in object_at(raw, "auth"):
        entry = object_at(raw, "auth", name)
        if entry:
            _check_entry(name, entry, report)
            _check_header(name, entry, headers, report)
            _check_token_url(name, entry, report, is_public=value_at(raw, "network") != "private")


def _check_entry(name: str, entry: Json, report: ProblemReport) -> None:
    """Report an entry with several forms, without a form, or with a key that its form does not use."""
    path = ("auth", name)
    given = [key for key, value in entry.items() if value is not None and not key.startswith("x-")]
    forms = [form for form in _FORMS if form in given]
    if len(forms) != 1:
        message = f"`auth.{name}` has {' and '.join(forms) or 'no credentials'}"
        hint = f"write one of {', '.join(_FORMS)}"
        report.error("service.auth", path, message, hint=hint, key=True)
        return
    _check_keys_of_form(name, forms[0], given, report)


def _check_keys_of_form(
    name: str, form: str, present_keys: Sequence[str], report: ProblemReport
) -> None:
    """Report the keys that a form of credentials requires but lacks, and those that it does not use."""
    path = ("auth", name)
    required_keys = _FORMS[form]
    for key in required_keys:
        if key not in present_keys:
            message = f"`auth.{name}` has `{form}` without `{key}`"
            report.error("service.auth", path, message, hint=f"add {key}", key=True)
    for key in present_keys:
        if key not in (*required_keys, *_OPTIONS[form]):
            message = f"`auth.{name}.{key}` has no meaning beside `{form}`"
            report.error("service.auth", (*path, key), message, hint="remove it", key=True)


def _check_header(name: str, entry: Json, headers: set[str], report: ProblemReport) -> None:
    """Report a header that the entry cannot set, or that the service sets, too."""
    if "api_key" in entry and entry.get("in", "header") != "header":
        return
    header = text_at(entry, "name") if "api_key" in entry else "Authorization"
    if header is None:
        return
    if not is_settable(header):
        message = f"header `{header}` cannot be set"
        report.error("header.name", ("auth", name, "name"), message)
    elif header.lower() in headers:
        message = f"`auth.{name}` and `metadata.headers` both set `{header}`"
        report.error("service.auth", ("auth", name), message, hint="keep one of them", key=True)


def _check_token_url(name: str, entry: Json, report: ProblemReport, *, is_public: bool) -> None:
    """Report a token address that contains a credential, or that is not encrypted."""
    url, path = text_at(entry, "token_url") or "", ("auth", name, "token_url")
    if not url:
        return
    if not _PLAIN_URL.fullmatch(url):
        message = f"`auth.{name}.token_url` is no whole address"
        report.error("service.url", path, message, hint="write https://HOST/PATH")
    elif address_holds_credential(url):
        message = f"`auth.{name}.token_url` holds a secret in its query"
        report.error("service.url", path, message, hint="use client_secret")
    elif is_public and url.lower().startswith("http:"):
        report.warn(
            "service.plain-http", path, "credentials are sent over plain http", hint="use https"
        )
