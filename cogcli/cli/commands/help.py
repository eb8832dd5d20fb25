"""`help [TOPIC]`: a command's help, or a topic."""

from __future__ import annotations

from cogcli.cli.parse import suggest
from cogcli.cli.table import BY_NAME, TOPICS, VERBS
from cogcli.core.errors import OK, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cogcli.cli.context import CommandContext


def execute(context: CommandContext) -> int:
    """Print the text of what was named, the home screen without a name."""
    text = _text(" ".join(context.arguments.words))
    context.own["explanation"] = text
    if not context.json:
        context.screen.answer(text)
    return OK


def _text(name: str) -> str:
    from cogcli.cli.help import command_help, group_help

    if not name:
        from cogcli.cli.home import HOME

        return HOME
    if name in BY_NAME:
        return command_help(BY_NAME[name])
    if name in VERBS:
        return group_help(name)
    if name in TOPICS:
        from cogcli.app.explain import topic

        return topic(name)
    hint = suggest(name, [*TOPICS, *BY_NAME, *VERBS]) or f"topics: {', '.join(TOPICS)}"
    raise UsageError("usage.value", f"there is no help on `{name[:60]}`", hint=hint, next=("cogcli help",))
