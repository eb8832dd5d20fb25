"""`greet NAME`: a command as a contributor writes one."""

from __future__ import annotations

from typing import Annotated

from cogcli.base.errors import OK
from cogcli.cli.context import CommandContext
from cogcli.cli.options import OUTPUT, argument, choice, command, integer


@command(
    examples=(
        ("cogcli greet Ana", "once"),
        ("cogcli greet Ana --times 2", "twice"),
        ("cogcli greet Ana --json", "for scripts"),
    )
)
def greet(
    context: CommandContext,
    name: Annotated[str, argument("NAME", ("Ana", "Bo"))],
    *,
    times: Annotated[int, integer("--times", "how often", minimum=1, maximum=3, default="1")] = 1,
    tone: Annotated[str | None, choice("--tone", "WORD", ("kind", "short"), panel=OUTPUT)] = None,
) -> int:
    """Greet."""
    text = ("hi " if tone == "short" else "good day ") + name
    context.own["explanation"] = [text] * times
    if not context.json:
        context.screen.answer(f"{text}\n" * times)
    return OK
