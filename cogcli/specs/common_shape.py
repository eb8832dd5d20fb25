"""Parts that the shapes of several kinds share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from cogcli.core.redact import names_secret
from cogcli.specs.capability import CONFORMANCE_RANKS
from cogcli.specs.credentials import header_holds_credential, holds_credential
from cogcli.specs.header_names import is_sendable, is_settable
from cogcli.specs.id_grammar import CAPABILITY_ID, LONGEST_ID, PLACEHOLDER, PLAIN_ID, SEMVER
from cogcli.specs.shape import Data, MapOf, NumberShape, Text

if TYPE_CHECKING:
    from cogcli.core.problems import KeyPath
    from cogcli.specs.problem_report import ProblemReport

FREE: Final = MapOf(Data(), foreign=True)
TIMEOUT: Final = NumberShape(above=0, most=3600)
VERSION: Final = Text(empty=False, longest=64, expected="text of 1 to 64 characters")
CONFORMANCE: Final = Text(choices=tuple(CONFORMANCE_RANKS))
CAPABILITY_REF: Final = Text(
    pattern=CAPABILITY_ID,
    longest=LONGEST_ID,
    code="id.format",
    expected="2 to 5 lower-case segments joined by dots",
)
PLAIN_REF: Final = Text(
    pattern=PLAIN_ID, code="id.format", expected="a letter or digit, then at most 127 of A-Z a-z 0-9 _ . -"
)
TARGETS: Final = ("internal_only", "approved_connectors", "same_tenant")
HEADERS: Final = MapOf(Text(), foreign=True)


def check_version(raw: dict[str, Any], report: ProblemReport, subject: str) -> None:
    """Report `version.format` for a version that is not SemVer."""
    version = raw.get("version")
    if isinstance(version, str) and 0 < len(version) <= 64 and not SEMVER.fullmatch(version):
        message = f'{subject}: version "{version}" is not SemVer'
        report.warn("version.format", ("version",), message, hint='write MAJOR.MINOR.PATCH, as in "1.0.0"')


def check_headers(headers: Any, path: KeyPath, report: ProblemReport, subject: str) -> None:
    """Report faults in header names and values of a service or binding (docs/reference/protocols.md#headers)."""
    for name, value in headers.items() if isinstance(headers, dict) else ():
        if not is_settable(name):
            message = f"{subject}: header `{name}` cannot be set"
            report.error("header.name", (*path, name), message, key=True)
        if not isinstance(value, str):
            if holds_credential(value, named=names_secret(name)):
                _report_written_out(name, path, report, subject)
            continue
        if not is_sendable(value):
            report.error(
                "value.range", (*path, name), f"{subject}: header `{name}`: expected visible ASCII characters"
            )
        check_placeholders(value, (*path, name), report, f"{subject}: header `{name}`")
        if header_holds_credential(name, value):
            _report_written_out(name, path, report, subject)


def _report_written_out(name: str, path: KeyPath, report: ProblemReport, subject: str) -> None:
    message = f"{subject}: header `{name}` holds a secret as written text"
    hint = _BY_AUTH_REF if name.lower() == "authorization" else "write ${NAME} and set the variable"
    report.error("secret.literal", (*path, name), message, hint=hint)


_BY_AUTH_REF: Final = "remove it and give the service auth_ref: NAME, the variable that holds the token"
_BARE: Final = re.compile(r"(?:Bearer )?\$([A-Z][A-Z0-9_]*)")


def check_placeholders(value: str, path: KeyPath, report: ProblemReport, said: str) -> None:
    """Report each `${` of a header or environment value that opens no `${NAME}`."""
    if value.count("${") != len(PLACEHOLDER.findall(value)):
        report.error("value.range", path, f"{said}: expected `${{NAME}}` with A-Z, 0-9 and `_`")
    elif bare := _BARE.fullmatch(value):
        message = f"{said}: `{value}` is sent as it is written"
        report.warn("value.range", path, message, hint=f"write ${{{bare[1]}}} for the variable")
