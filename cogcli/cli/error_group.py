"""Reports all problems at once: those of the command line and those of specs become one error
(docs/reference/command-line.md#problems-at-once)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogcli.core.errors import CogcliError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cogcli.core.problems import Problem


def raise_together(
    problems: Sequence[CogcliError], error: CogcliError | None = None, *, doubtful: Iterable[str] = ()
) -> None:
    """Raise all as one ProblemsFound, a single one as itself; return where there is none.

    `error` is the one of loading. Inputs in `doubtful` (all for `*`) were given but unreadable, so `input.missing` is
    left out for them. ProblemsFound decides the order and the exit code.
    """
    if not problems and error is None:
        return
    if len(problems) == 1 and error is None:
        raise problems[0]
    from cogcli.core.problems import ProblemsFound

    both = [problem_from_error(problem) for problem in problems]
    names = ["" if name == "*" else f"`{name}`" for name in doubtful]
    if error is not None:
        found = list(getattr(error, "problems", ())) or [problem_from_error(error)]
        both += [
            p for p in found if p.code != "input.missing" or not any(name in p.message for name in names)
        ]
    if len(both) == 1:
        raise problems[0]
    raise ProblemsFound(both)


def problem_from_error(error: CogcliError) -> Problem:
    """An error as a Problem."""
    from cogcli.core.problems import Problem

    hint = error.hint or (f"expected {error.expected}" if error.expected else "")
    return Problem(error.code, "E", error.file, error.line, error.column, "", error.message, hint)
