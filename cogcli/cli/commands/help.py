"""`help [TOPIC]`: the help of a command, or a topic."""

from __future__ import annotations

from typing import Annotated

from cogcli.app.explain import read_topic
from cogcli.base.errors import OK, UsageError
from cogcli.base.problems import suggestion
from cogcli.cli.app import COMMANDS, TOPICS, first_words, verbs
from cogcli.cli.context import CommandContext
from cogcli.cli.options import argument, command


@command(
    examples=(
        ("cogcli help run", "a command"),
        ("cogcli help commands", "all commands, one line each"),
        ("cogcli help exit-codes", "a topic"),
    ),
    maximum=3,
)
def help(
    context: CommandContext, topic: Annotated[list[str], argument("[TOPIC]", "topics")]
) -> int:
    """Print the help of a command or topic. Without a name, print the home screen."""
    text = _help_of(" ".join(topic))
    context.own["explanation"] = text
    context.answer(text)
    return OK


def _help_of(name: str) -> str:
    """Return the help of a command or topic. Raise UsageError for an unknown name."""
    if not name or name == "commands" or name in COMMANDS or verbs(name):
        from cogcli.cli.command_help import commands_text, help_text

        return commands_text() if name == "commands" else help_text(name)
    if name in TOPICS:
        return read_topic(name)
    hint = suggestion(name, [*TOPICS, *COMMANDS, *first_words()]) or f"topics: {', '.join(TOPICS)}"
    raise UsageError(
        "usage.value", f"there is no help on `{name[:60]}`", hint=hint, next=("cogcli help",)
    )
