"""Rules that several kinds of spec files share."""

from __future__ import annotations

import re
from typing import Any, Final

from cogcli.base.jsonvalue import object_of
from cogcli.base.redact import names_secret
from cogcli.specs.credentials import header_holds_credential, holds_credential
from cogcli.specs.id_grammar import (
    PLACEHOLDER,
    SEMVER,
    is_sendable,
    is_settable,
)
from cogcli.specs.problem_report import ProblemReport


def check_version(raw: dict[str, Any], report: ProblemReport) -> None:
    """Report `version.format` for a version that is not SemVer."""
    version = raw.get("version")
    if isinstance(version, str) and 0 < len(version) <= 64 and not SEMVER.fullmatch(version):
        hint = 'write MAJOR.MINOR.PATCH, as in "1.0.0"'
        report.warn("version.format", ("version",), f'version "{version}" is not SemVer', hint=hint)


def check_headers(raw: dict[str, Any], report: ProblemReport) -> None:
    """Report faults in header names and values of a service or binding (docs/reference/protocols.md#headers)."""
    for name, value in object_of(object_of(raw.get("metadata")).get("headers")).items():
        path, header = ("metadata", "headers", name), f"header `{name}`"
        if not is_settable(name):
            report.error("header.name", path, f"{header} cannot be set", key=True)
        if isinstance(value, str):
            if not is_sendable(value):
                report.error("value.range", path, f"{header}: expected visible ASCII characters")
            check_placeholders(value, report.inner(header, *path))
            written_out = header_holds_credential(name, value)
        else:
            written_out = holds_credential(value, named=names_secret(name))
        if written_out:
            hint = (
                _BY_AUTH_REF
                if name.lower() == "authorization"
                else "write ${NAME} and set the variable"
            )
            report.error(
                "secret.literal", path, f"{header} holds a secret as written text", hint=hint
            )


_BY_AUTH_REF: Final = (
    "remove it and give the service auth_ref: NAME, the variable that holds the token"
)
_BARE: Final = re.compile(r"(?:Bearer )?\$([A-Z][A-Z0-9_]*)")


def check_placeholders(value: str, report: ProblemReport) -> None:
    """Report each `${` in a header or environment value that does not start a `${NAME}`."""
    if value.count("${") != len(PLACEHOLDER.findall(value)):
        report.error("value.range", (), "expected `${NAME}` with A-Z, 0-9 and `_`")
    elif bare := _BARE.fullmatch(value):
        message = f"`{value}` is sent as it is written"
        report.warn("value.range", (), message, hint=f"write ${{{bare[1]}}} for the variable")
