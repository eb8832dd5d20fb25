"""One check of `doctor`."""

from __future__ import annotations

from typing import NamedTuple

from cogcli.core.errors import CogcliError
from cogcli.core.problems import Problem


class DoctorCheck(NamedTuple):
    """One check: `status` is ok, warning, error or skipped; `fix` has a command per line."""

    group: str
    name: str
    status: str
    message: str
    details: tuple[str, ...] = ()
    fix: str = ""


def place_of(problem: Problem | CogcliError) -> str:
    """Where a problem is, as editors read it."""
    return f"{problem.file}:{problem.line}:{problem.column}" if problem.line else problem.file
