"""Reading of standard input: prompts at a terminal (docs/reference/command-line.md#prompts), and
the whole content for `-` (docs/reference/command-line.md#stdin).
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from cogcli.base.errors import UsageError
from cogcli.cli.context import CommandContext
from cogcli.cli.streams import Screen
from cogcli.report.styled_text import ASCII


def can_ask(context: CommandContext) -> bool:
    """Return whether a user can be prompted: stdin and stderr are terminals, and `CI`, `--json` and `-q`
    are not set.
    """
    screen = context.screen
    if screen.ci or screen.json or screen.quiet or not screen.err.real_tty:
        return False
    try:
        return sys.stdin is not None and sys.stdin.isatty()
    except ValueError:
        return False


def read_line() -> str:
    """Return the next line that is typed, with its end; empty at the end of input."""
    return sys.stdin.readline()


def ask(context: CommandContext, question: str, read: Callable[[], str] = read_line) -> str | None:
    """Prompt for a line, and return it stripped and in lower case; None at the end of input."""
    answer = ask_text(context, question, read)
    return None if answer is None else answer.lower()


def ask_text(
    context: CommandContext, question: str, read: Callable[[], str] = read_line
) -> str | None:
    """Prompt for a line, and return it stripped; None at the end of input, which is where `read` returns no line."""
    context.screen.notify(terminal_safe(context, f"{question} › "))
    answer = read()
    if not answer.endswith("\n"):
        context.screen.notify("\n")
        return None
    return answer.strip()


_PLAIN = {0x203A: ">", 0x2026: "..."}


def terminal_safe(context: CommandContext, text: str) -> str:
    """Return the text with its non-ASCII signs replaced if the terminal cannot display them."""
    return text.translate(_PLAIN) if context.screen.err.glyphs is ASCII else text


def read_stdin(screen: Screen, limit: int) -> bytes:
    """Return the content of stdin, at most `limit` + 1 bytes. At a terminal, first write how to end
    the input. Raise UsageError.
    """
    if sys.stdin is None:
        raise UsageError("input.empty", "stdin is closed")
    if sys.stdin.isatty() and not screen.quiet:
        screen.notify("reading from the terminal; end with Ctrl-D\n")
    return sys.stdin.buffer.read(limit + 1)
