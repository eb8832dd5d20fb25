"""Rules that several kinds of spec files share."""

from __future__ import annotations

import re
from typing import Final

from cogcli.base.jsonvalue import Json
from cogcli.base.redact import names_secret
from cogcli.specs.credentials import header_holds_credential, holds_credential
from cogcli.specs.id_grammar import (
    PLACEHOLDER,
    SEMVER,
    is_sendable,
    is_settable,
)
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.unchecked import object_at, text_at


def check_version(raw: Json, report: ProblemReport) -> None:
    """Report `version.format` for a version that is not SemVer."""
    version = text_at(raw, "version")
    if version and len(version) <= 64 and not SEMVER.fullmatch(version):
        hint = 'write MAJOR.MINOR.PATCH, as in "1.0.0"'
        report.warn("version.format", ("version",), f'version "{version}" is not SemVer', hint=hint)


def check_headers(raw: Json, report: ProblemReport) -> None:
    """Report faults in header names and values of a service or binding (docs/reference/protocols.md#headers)."""
    for name, value in object_at(raw, "metadata", "headers").items():
        path, header = ("metadata", "headers", name), f"header `{name}`"
        if not is_settable(name):
            report.error("header.name", path, f"{header} cannot be set", key=True)
        if isinstance(value, str):
            if not is_sendable(value):
                report.error("value.range", path, f"{header}: expected visible ASCII characters")
            check_placeholders(value, report.inner(header, *path))
            written_out = header_holds_credential(name, value)
        else:
            written_out = holds_credential(value, has_secret_key=names_secret(name))
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
