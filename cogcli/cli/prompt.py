"""Questions at a terminal (docs/reference/command-line.md#prompts)."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cogcli.cli.context import CommandContext


def can_ask(context: CommandContext) -> bool:
    """Whether stdin and stderr are terminals, without `CI`, `--json` and `-q`."""
    screen = context.screen
    if screen.ci or screen.json or screen.quiet or not screen.err.real_tty:
        return False
    try:
        return sys.stdin is not None and sys.stdin.isatty()
    except ValueError:
        return False


def confirm(context: CommandContext, question: str) -> bool:
    """Ask a yes-no question. True for `y` and `yes`; Enter, Ctrl-D and everything else is no."""
    context.screen.notify(terminal_safe(context, f"{question} [y/N] › "))
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        context.screen.notify("\n")
    return answer.strip().lower() in ("y", "yes")


_PLAIN = {0x203A: ">", 0x2026: "..."}


def terminal_safe(context: CommandContext, text: str) -> str:
    """The text with its non-ASCII signs replaced, where the terminal cannot show them."""
    from cogcli.report.glyphs import ASCII

    return text.translate(_PLAIN) if context.screen.err.glyphs is ASCII else text
