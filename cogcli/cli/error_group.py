"""Telling all problems at once: those of the command line and those of specs become one list
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
    """Raise everything as one error: nothing for no problem, itself for a single one.

    `error` is what loading said; inputs in `doubtful` (or all, for `*`) were given but unreadable, so not missing.
    Which of them decides the exit code, and is told first, says `ProblemsFound`.
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
    """An error as a problem of the list."""
    from cogcli.core.problems import Problem

    hint = error.hint or (f"expected {error.expected}" if error.expected else "")
    return Problem(error.code, "E", error.file, error.line, error.column, "", error.message, hint)
