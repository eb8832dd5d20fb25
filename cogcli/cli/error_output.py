"""Output of an expected error: text on stderr, with `--json` the envelope on stdout."""

from __future__ import annotations

from cogcli.cli.envelope import envelope, error_object
from cogcli.cli.render_error import error_lines
from cogcli.cli.streams import Screen, silence_stdout
from cogcli.core.errors import CogcliError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cogcli.cli.context import CommandContext
    from cogcli.core.problems import Problem


def report_error(screen: Screen, command: str, error: CogcliError, context: CommandContext | None) -> int:
    """Write the error; returns its exit code."""
    problems: list[Problem] = list(getattr(error, "problems", ()))
    base = context.base if context else ""
    width = screen.err.width
    lines = (
        _problem_list(problems, error.next, base, width)
        if problems
        else error_lines(error, base=base, width=width)
    )
    for line in lines:
        screen.notify_line(line)
    code = error.exit_code
    if screen.json:
        own: dict[str, Any] = dict(context.own) if context else {}
        own.pop("status", None)  # of the finished run; the status of the envelope is that of the error
        first = error_object(error)
        if problems:
            own["problems"] = [problem.to_payload() for problem in problems]
            first = {**first, **_first_problem(problems[0])}
        _answer(
            screen,
            envelope(command, code, error=first, warnings=context.warnings if context else [], own=own),
        )
    return code


def _first_problem(problem: Problem) -> dict[str, Any]:
    names = ("code", "message", "file", "line", "column", "hint")
    return {name: value for name in names if (value := getattr(problem, name)) or name == "hint"}


def _problem_list(problems: list[Problem], next: tuple[str, ...], base: str, width: int | None) -> list[Any]:
    from cogcli.cli.render_error import next_lines, problem_lines

    lines: list[Any] = []
    for problem in problems:
        lines += [*problem_lines(problem, base=base, width=width), [("", "")]]
    errors = sum(problem.severity != "W" for problem in problems)
    lines.append([(f"{errors} error{'s' if errors != 1 else ''}; nothing ran, nothing was written", "")])
    return lines + next_lines(next)


def _answer(screen: Screen, text: str) -> None:
    try:
        screen.answer(text)
    except BrokenPipeError:
        silence_stdout()
    except CogcliError:
        return
