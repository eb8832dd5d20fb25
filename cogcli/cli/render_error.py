"""Errors and problems as text lines: code, sentence, place, expected and found, next
(docs/reference/command-line.md#errors)."""

from __future__ import annotations

from cogcli.core.errors import CogcliError, RuntimeErrorBase
from cogcli.core.terminal_text import visible
from cogcli.report.styled_text import StyledLine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cogcli.cli.code_frame import Sources
    from cogcli.core.problems import Problem

_SECRETIVE = ("secret.literal", "service.url")
"""Problems about what must not stand in a file: only their place is shown."""
_WORDS = {"E": ("error", "error"), "R": ("error", "error"), "W": ("warning", "warning")}


def error_lines(error: CogcliError, *, base: str = "", width: int | None = None) -> list[StyledLine]:
    """The five parts of an error, as lines for stderr."""
    message, hint = visible(error.message), error.hint
    rows = [*_places(error), ("expected", visible(error.expected)), ("found", visible(error.found))]
    rows = [(name, text) for name, text in rows if text]
    if hint.startswith("did you mean") and not rows and not error.file:
        message, hint = f"{message}; {visible(hint)}", ""
    lines: list[StyledLine] = [[(f"error[{error.code}]", "error"), (f": {message}", "bold")]]
    if error.file:
        from cogcli.cli.code_frame import frame

        lines += frame(error.file, error.line, error.column, base=base, width=width)
    rows += [(name, visible(text)) for name, text in help_rows(hint)]
    size = max((len(name) for name, _ in rows), default=0)
    lines += [[(f"  {name:<{size}}  ", "dim"), (text, "")] for name, text in rows]
    return lines + next_lines(error.next)


def next_lines(commands: tuple[str, ...] | list[str]) -> list[StyledLine]:
    """A line per command, the first with `next:` in front."""
    heads = ["next: ", *["      "] * (len(commands) - 1)]
    return [[(head, "dim"), (visible(text), "")] for head, text in zip(heads, commands, strict=False)]


def _places(error: CogcliError) -> list[tuple[str, str]]:
    if not isinstance(error, RuntimeErrorBase):
        return []
    chain = (error.step_id, error.capability_id, error.binding_id, error.service_id)
    words = " → ".join([visible(name) for name in chain if name])
    return [("step" if error.step_id else "call", words)] if words else []


def problem_lines(
    problem: Problem, *, base: str = "", width: int | None = None, as_error: bool = True,
    sources: Sources | None = None,
) -> list[StyledLine]:  # fmt: skip
    """A problem of a check: severity, code, sentence, framed place, help."""
    word, style = _WORDS["W" if problem.severity == "R" and not as_error else problem.severity]
    lines: list[StyledLine] = [
        [(f"{word}[{problem.code}]", style), (f": {visible(problem.message)}", "bold")]
    ]
    if problem.file:
        place = (problem.file, problem.line, problem.column)
        from cogcli.cli.code_frame import frame

        framed = frame(*place, base=base, width=width, sources=sources)
        lines += framed[:1] if _is_secretive(problem) else framed
    for number, text in enumerate(_lines_of(problem.hint)):
        sign, name = ("     ", "      ") if number else ("   = ", "help: ")
        lines.append([(sign, "dim"), (f"{name}{visible(text)}", "")])
    return lines


def _is_secretive(problem: Problem) -> bool:
    from cogcli.core.redact import names_secret

    return problem.code in _SECRETIVE or any(map(names_secret, problem.path.split("/")))


def help_rows(hint: str) -> list[tuple[str, str]]:
    """The lines of a hint, the first one named."""
    return [("" if number else "help", text) for number, text in enumerate(_lines_of(hint))]


def _lines_of(hint: str) -> list[str]:
    return hint.split("\n") if hint else []
