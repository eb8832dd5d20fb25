"""`--report KIND:PATH`: reports as files, with paths checked before the command does its work
(docs/reference/command-line.md#reports).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from cogcli.app.checks.reports import RENDERERS
from cogcli.base.errors import UnusableEnvironment
from cogcli.base.files import hint_for_write, write_atomic
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import suggestion
from cogcli.cli.context import CommandContext
from cogcli.cli.envelope import envelope
from cogcli.cli.options import wrong_value
from cogcli.report.check_report import CheckReport, markdown

GITHUB: Final = "github"
"""The one kind without a PATH: annotations on stderr."""
KINDS: Final = ("junit", "sarif", "json", "md", GITHUB)


class ReportFile(NamedTuple):
    """A report that a `--report` flag requests. `path` is empty for `github`."""

    kind: str
    path: str


class RequestedReports(NamedTuple):
    """The requested reports of a command, and the kinds that it supports."""

    files: tuple[ReportFile, ...]
    kinds: tuple[str, ...]

    def write(
        self,
        context: CommandContext,
        report_of: Callable[[], CheckReport],
        code: int,
        *,
        maximum: int | None = None,
    ) -> None:
        """Write every report of a command that ends with `code`. Annotations go to stderr.

        If the command supports annotations, a table of at most `maximum` rows is appended to the file
        GITHUB_STEP_SUMMARY. Raise UnusableEnvironment `env.disk` or `project.link`.
        """
        for kind, path in self.files:
            if kind != GITHUB:
                context.settings.require_inside(path)
                _write_file(path, _render_report(context, kind, report_of, code))
        if any(file.kind == GITHUB for file in self.files):
            context.screen.notify(_render_report(context, GITHUB, report_of, code))
        if GITHUB in self.kinds and (summary := context.environ.get("GITHUB_STEP_SUMMARY")):
            # One that cannot be written is not an error of the check.
            with (
                suppress(OSError),
                open(
                    summary, "a", encoding="utf-8", errors="backslashreplace", newline="\n"
                ) as file,
            ):
                file.write(markdown(report_of(), limit=maximum))


def _render_report(
    context: CommandContext, kind: str, report_of: Callable[[], CheckReport], code: int
) -> str:
    """Return a report as text."""
    if kind == "json":
        return envelope(
            context.call.command,
            code,
            error=context.error,
            warnings=context.warnings,
            own=dict(context.own),
        )
    return RENDERERS[kind](report_of())


def _write_file(path: str, text: str) -> None:
    try:
        write_atomic(path, text.encode("utf-8", "backslashreplace"), mode=0o644)
    except OSError as error:
        message = f"report `{path}` cannot be written: {error.strerror or error}"
        hint = f"{hint_for_write(error)}, or name another file"
        raise UnusableEnvironment("env.disk", message, hint=hint) from error


def parse_reports(values: Sequence[str], *, without: Sequence[str] = ()) -> RequestedReports:
    """Return the reports of `--report` flags.

    Raise UsageError for an unsupported kind or a PATH that cannot be written.
    """
    kinds = tuple(kind for kind in dict.fromkeys((*KINDS, *RENDERERS)) if kind not in without)
    reports = tuple(_parse_report(value, kinds) for value in values)
    paths = [os.path.abspath(report.path) for report in reports if report.path]
    for path in paths:
        if paths.count(path) > 1:
            raise wrong_value(f"`--report`: two reports to `{path}`", "name another file")
    return RequestedReports(reports, kinds)


def _parse_report(value: str, kinds: Sequence[str]) -> ReportFile:
    """Return the report of one flag. Raise UsageError."""
    kind, colon, path = value.partition(":")
    if kind not in kinds:
        message = f"`--report`: found kind `{kind[:40]}`, expected one of {', '.join(kinds)}"
        raise wrong_value(message, suggestion(kind, list(kinds)))
    if kind == GITHUB and not colon:
        return ReportFile(kind, "")
    if kind == GITHUB or not path:
        expected = "github, without a path" if kind == GITHUB else f"{kind}:PATH"
        raise wrong_value(f"`--report`: found `{value[:80]}`, expected {expected}")
    _require_writable(path)
    return ReportFile(kind, path)


def _require_writable(path: str) -> None:
    """Raise UsageError if a path cannot be written."""
    folder = os.path.dirname(path) or os.curdir
    reason = ""
    if not os.path.isdir(folder):
        reason = f"there is no directory `{folder}`"
    elif os.path.lexists(path) and (os.path.islink(path) or not os.path.isfile(path)):
        reason = "is not a regular file"  # replacing a link or a device would take it away from everybody
    elif not os.access(folder, os.W_OK | os.X_OK):
        reason = f"directory `{folder}` cannot be written"
    if reason:
        raise wrong_value(f"`--report`: `{path}`: {reason}", "name a file that can be written")
