"""The errors of checks that checked nothing and therefore must not succeed
(docs/reference/command-line.md#nothing-checked).
"""

from __future__ import annotations

from collections.abc import Callable

from cogcli.base.errors import OK, CogcliError, ServiceResolutionError, UnusableEnvironment
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
    """Return the error of a check that found no failures but checked too little; None if the check may succeed.

    `checked` counts the checked items of `total`. `untrusted` counts those omitted because the project is not trusted.
    `empty` and `hint` describe the missing items if nothing was checked.
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
    return UnusableEnvironment("check.nothing", empty, hint=hint)


def conclude(
    context: CommandContext,
    wanted: RequestedReports,
    report_of: Callable[[], CheckReport],
    code: int,
    refusal: CogcliError | None,
) -> int:
    """Write the reports of a check, and return its exit code. Raise `refusal` if the check has no
    failure.
    """
    if code != OK or refusal is None:
        wanted.write(context, report_of, code)
        return code
    context.error = error_object(refusal)
    wanted.write(context, report_of, refusal.exit_code)
    raise refusal
