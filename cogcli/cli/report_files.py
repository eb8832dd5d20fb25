"""`--report KIND:PATH`: reports as files, checked before any work
(docs/reference/command-line.md#reports)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from cogcli.core.errors import EnvironmentRefusal, UsageError
from cogcli.core.files import write_atomic
from cogcli.core.problems import suggestion

GITHUB = "github"
"""The one kind without a PATH: annotations on stderr."""


class ReportFile(NamedTuple):
    """One `--report`; `path` is empty for `github`."""

    kind: str
    path: str


def parse_reports(values: Sequence[str], kinds: Sequence[str]) -> list[ReportFile]:
    """The reports of `--report` flags. Raises UsageError for an unknown kind or a PATH that cannot be written."""
    reports = [_parse_report(value, kinds) for value in values]
    paths = [os.path.abspath(report.path) for report in reports if report.path]
    for path in paths:
        if paths.count(path) > 1:
            raise UsageError("usage.value", f"`--report`: two reports to `{path}`", hint="name another file")
    return reports


def _parse_report(value: str, kinds: Sequence[str]) -> ReportFile:
    kind, colon, path = value.partition(":")
    if kind not in kinds:
        message = f"`--report`: found kind `{kind[:40]}`, expected one of {', '.join(kinds)}"
        raise UsageError("usage.value", message, hint=suggestion(kind, list(kinds)))
    if kind == GITHUB and not colon:
        return ReportFile(kind, "")
    if kind == GITHUB or not path:
        expected = "github, without a path" if kind == GITHUB else f"{kind}:PATH"
        raise UsageError("usage.value", f"`--report`: found `{value[:80]}`, expected {expected}")
    _require_writable(path)
    return ReportFile(kind, path)


def _require_writable(path: str) -> None:
    folder = os.path.dirname(path) or os.curdir
    reason = ""
    if not os.path.isdir(folder):
        reason = f"there is no directory `{folder}`"
    elif os.path.lexists(path) and (os.path.islink(path) or not os.path.isfile(path)):
        reason = "is no regular file"  # replacing a link or a device would take it away from everybody
    elif not os.access(folder, os.W_OK | os.X_OK):
        reason = f"directory `{folder}` cannot be written"
    if reason:
        raise UsageError(
            "usage.value", f"`--report`: `{path}`: {reason}", hint="name a file that can be written"
        )


def write(reports: Sequence[ReportFile], texts: Mapping[str, Callable[[], str]]) -> None:
    """Write every report but annotations. Raises EnvironmentRefusal `env.disk`."""
    for kind, path in reports:
        if kind == GITHUB:
            continue
        try:
            write_atomic(path, texts[kind]().encode("utf-8", "backslashreplace"), mode=0o644)
        except OSError as error:
            message = f"report `{path}` cannot be written: {error.strerror or error}"
            raise EnvironmentRefusal(
                "env.disk", message, hint="free some space, or name another file"
            ) from error
