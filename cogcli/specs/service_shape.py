"""The shape and the rules of services (docs/reference/service.md#keys)."""

from __future__ import annotations

import re
from typing import Final

from cogcli.base.jsonvalue import Json
from cogcli.base.problems import suggestion
from cogcli.base.redact import names_secret
from cogcli.declarations.service_spec import HTTP_URL, SecretLocation, Service, Url
from cogcli.specs.common_rules import check_headers, check_placeholders
from cogcli.specs.credentials import (
    address_holds_credential,
    find_in_arguments,
    has_no_placeholder,
    holds_credential,
    is_written_out,
    keeps_secret,
    text_holds_credential,
)
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.protocol import Grammar, Protocols
from cogcli.specs.service import names_in_address
from cogcli.specs.shape import RecordShape
from cogcli.specs.shape_of_spec import shape_of_spec, text_pattern, with_protocols
from cogcli.specs.unchecked import list_at, object_at, text_at, value_at

URL: Final = text_pattern(Url)
SECRET_PLACE: Final = text_pattern(SecretLocation)
_PLAIN_URL: Final = re.compile(HTTP_URL, re.IGNORECASE)


def service_shape(protocols: Protocols) -> RecordShape:
    """Return the shape of a service: the common keys, and the keys of every protocol.

    If several protocols have the same key, the first protocol defines it.
    """
    keys = {**with_protocols(shape_of_spec(Service), protocols).keys}
    for protocol in protocols.values():
        for name, key in protocol.grammar().keys.items():
            keys.setdefault(name, key)
    return RecordShape(keys)


_WRITTEN_OUT: Final = "holds a secret as written text"
_BY_ENV: Final = "give it to the server by env: NAME: ${NAME}"


def check_service(raw: Json, report: ProblemReport, protocols: Protocols) -> None:
    """Report faults of a single service that its shape cannot express."""
    kind = text_at(raw, "kind")
    if kind is not None and kind in protocols:
        _check_keys(raw, kind, report, protocols)
    for protocol in protocols.values():
        protocol.grammar().check_service(raw, report)
    check_headers(raw, report)
    # Arguments and environment of a started program.
    for index in find_in_arguments(list_at(raw, "args")):
        report.error("secret.literal", ("args", index), f"`args` {_WRITTEN_OUT}", hint=_BY_ENV)
    if text_holds_credential(text_at(raw, "command") or ""):
        report.error("secret.literal", ("command",), f"`command` {_WRITTEN_OUT}", hint=_BY_ENV)
    for name, value in object_at(raw, "env").items():
        _check_variable(name, value, report)
    _check_addresses(raw, report)
    _check_variables(raw, report)


def _check_variables(raw: Json, report: ProblemReport) -> None:
    """Report variables without a source, variables with a secret's name, and unknown names in addresses."""
    known = object_at(raw, "variables")
    for name, variable in known.items():
        _check_source(name, variable, report)
    for key in _ADDRESSES:
        for name in names_in_address(text_at(raw, key) or ""):
            if name not in known:
                message = f"`{{{name}}}` in `{key}` is not a variable of the service"
                hint = suggestion(name, known) or "add it to `variables`"
                report.error("service.url", (key,), message, hint=hint)


def _check_source(name: str, variable: object, report: ProblemReport) -> None:
    path = ("variables", name)
    if isinstance(variable, dict) and not (variable.get("env") or variable.get("default")):
        message = f"variable `{name}` has neither `env` nor `default`"
        report.error("key.missing", path, message, hint="write env: NAME")
    if names_secret(name) or keeps_secret(text_at(variable, "env") or ""):
        message = f"variable `{name}` names a secret, and variables are recorded"
        hint = "give the service auth_ref, or a header with ${NAME}"
        report.error("secret.literal", path, message, hint=hint)


_ADDRESSES: Final = ("base_url", "url")


def _check_variable(name: str, value: object, report: ProblemReport) -> None:
    hint = f"write {name}: ${{{name}}}"
    if isinstance(value, str):
        check_placeholders(value, report.inner(f"`env.{name}`", "env", name))
        written_out = keeps_secret(name) and is_written_out(value, has_no_placeholder)
        hint += " and set the variable"
    else:
        written_out = holds_credential(value, has_secret_key=keeps_secret(name))
    if written_out:
        report.error("secret.literal", ("env", name), f"`env.{name}` {_WRITTEN_OUT}", hint=hint)


def _check_keys(raw: Json, kind: str, report: ProblemReport, protocols: Protocols) -> None:
    """Report keys of another protocol, a missing address, and keys that exclude each other."""
    grammar = protocols[kind].grammar()
    given = {key for key, value in raw.items() if value is not None}
    known = {key for protocol in protocols.values() for key in protocol.grammar().keys}
    for key in sorted(given & known - grammar.keys.keys()):
        message = f"`{key}` is not a key of kind {kind}"
        report.error("service.kind-key", (key,), message, hint="remove it", key=True)
    choices = [key for key in grammar.addresses if key in given]
    if choices:
        _check_chosen_address(choices, given, grammar, report)
    else:
        expected = " or ".join(f"`{key}`" for key in grammar.addresses)
        report.error("key.missing", (), f"key {expected} is missing")


def _check_chosen_address(
    choices: list[str], present_keys: set[str], grammar: Grammar, report: ProblemReport
) -> None:
    """Report a second address, and keys that have no effect together with the address."""
    chosen, *others = choices
    for key in others if grammar.exclusive else ():
        message = f"`{chosen}` and `{key}` exclude each other"
        report.error("service.kind-key", (key,), message, hint="keep one of them", key=True)
    if grammar.keys_with_address:
        means = {*grammar.addresses, *grammar.keys_with_address.get(chosen, ())}
        for key in sorted(present_keys & grammar.keys.keys() - means):
            message = f"`{key}` has no meaning beside `{chosen}`"
            report.error("service.kind-key", (key,), message, hint="remove it", key=True)


def _check_addresses(raw: Json, report: ProblemReport) -> None:
    """Report credentials in addresses, and addresses to which credentials must not be sent."""
    if address_holds_credential(text_at(raw, "spec_ref") or ""):
        hint = "keep the document as a file of the project"
        report.error("secret.literal", ("spec_ref",), "`spec_ref` holds a secret", hint=hint)
    has_token = value_at(raw, "auth_ref") is not None
    has_credentials = has_token or any(value_at(raw, key) is not None for key in ("auth", "login"))
    headers = [name.lower() for name in object_at(raw, "metadata", "headers")]
    if has_token and "authorization" in headers:
        message = "`auth_ref` stands beside an `Authorization` header"
        report.error("service.auth", ("auth_ref",), message, hint="keep one of them", key=True)
    sends_secret = has_credentials or any(map(names_secret, headers))
    is_exposed = sends_secret and value_at(raw, "network") != "private"
    for key in _ADDRESSES:
        _check_address(key, text_at(raw, key) or "", report, is_exposed=is_exposed)


def _check_address(key: str, url: str, report: ProblemReport, *, is_exposed: bool) -> None:
    """Report a secret in one address, and plain http if credentials leave a private network by it (`is_exposed`)."""
    if _PLAIN_URL.fullmatch(url):
        if address_holds_credential(url):
            hint = "use auth_ref or a header with ${NAME}"
            report.error("service.url", (key,), f"`{key}` holds a secret in its query", hint=hint)
        if is_exposed and url.lower().startswith("http:"):
            message = "credentials are sent over plain http"
            report.warn("service.plain-http", (key,), message, hint="use https")


def document_key(raw: Json, protocols: Protocols) -> str:
    """Return the key that identifies a file as an API document instead of a service. Empty for a service."""
    keys = (key for protocol in protocols.values() for key in protocol.grammar().documents)
    if "kind" in raw:
        return ""
    return next((key for key in keys if text_at(raw, key) is not None), "")
