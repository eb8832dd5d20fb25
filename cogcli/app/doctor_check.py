"""One line of the doctor."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cogcli.core.errors import CogcliError
    from cogcli.core.problems import Problem


class DoctorCheck(NamedTuple):
    """What was looked at: `status` is ok, warning, error or skipped; `fix` can be pasted, a line each."""

    group: str
    name: str
    status: str
    message: str
    details: tuple[str, ...] = ()
    fix: str = ""


def place_of(problem: Problem | CogcliError) -> str:
    """Where a problem is, as editors read it."""
    return f"{problem.file}:{problem.line}:{problem.column}" if problem.line else problem.file
