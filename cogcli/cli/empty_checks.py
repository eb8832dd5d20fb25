"""A check that checked nothing is not a success (docs/reference/command-line.md#nothing-checked)."""

from __future__ import annotations

from collections.abc import Callable

from cogcli.base.errors import OK, CogcliError, EnvironmentRefusal, ServiceResolutionError
from cogcli.cli.context import CommandContext
from cogcli.cli.envelope import error_object
from cogcli.cli.report_files import RequestedReports
from cogcli.report.check_report import CheckReport


def find_refusal(
    *,
    checked: int,
    total: int,
    untrusted: int = 0,
    empty: str = "there is nothing to check",
    hint: str = "",
) -> CogcliError | None:
    """The error of a check in which nothing failed; None where it is a success.

    `checked` counts what was checked of `total`; `untrusted` what was left out because the project is not trusted.
    `empty` and `hint` say what a check of nothing at all lacks.
    """
    if untrusted:
        message = f"{untrusted} of {total} not checked: the project is not trusted"
        error = ServiceResolutionError("service.untrusted", message)
        error.next = ("cogcli config trust",)
        return error
    if checked:
        return None
    if total:
        empty, hint = (
            "nothing was checked: everything was skipped",
            "each line above says what is missing",
        )
    return EnvironmentRefusal("check.nothing", empty, hint=hint)


def conclude(
    context: CommandContext,
    wanted: RequestedReports,
    report_of: Callable[[], CheckReport],
    code: int,
    refusal: CogcliError | None,
) -> int:
    """Write the reports of a check; returns its exit code. Raises `refusal` if the check would be a success."""
    if code != OK or refusal is None:
        wanted.write(context, report_of, code)
        return code
    context.error = error_object(refusal)
    wanted.write(context, report_of, refusal.exit_code)
    raise refusal
