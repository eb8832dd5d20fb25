"""Questions to a person: asked only where one sits at both ends (docs/reference/command-line.md#prompts)."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cogcli.cli.context import CommandContext


def can_ask(context: CommandContext) -> bool:
    """Whether stdin and stderr are terminals, and nothing says that nobody answers."""
    screen = context.screen
    if screen.ci or screen.json or screen.quiet or not screen.err.real_tty:
        return False
    try:
        return sys.stdin is not None and sys.stdin.isatty()
    except ValueError:
        return False


def agrees(context: CommandContext, question: str) -> bool:
    """Whether a person says yes. Enter, Ctrl-D and everything else is no."""
    context.screen.tell(terminal_safe(context, f"{question} [y/N] › "))
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        context.screen.tell("\n")
    return answer.strip().lower() in ("y", "yes")


_PLAIN = {0x203A: ">", 0x2026: "..."}


def terminal_safe(context: CommandContext, text: str) -> str:
    """A text of our own as the terminal can show it."""
    from cogcli.report.glyphs import ASCII

    return text.translate(_PLAIN) if context.screen.err.glyphs is ASCII else text
