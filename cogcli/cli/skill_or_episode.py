"""A word that may name a skill or an episode (docs/reference/command-line.md#skill-or-episode)."""

from __future__ import annotations

from cogcli.cli.context import CommandContext
from cogcli.core.errors import UsageError
from cogcli.core.problems import suggestion


def is_skill(context: CommandContext, word: str) -> bool:
    """Whether a word names a skill. Raises UsageError if it also names an episode, or has the form of a skill id
    without being one."""
    first, dot, second = word.partition(".")
    if not dot or "/" in word or not (first + second).replace("-", "").replace("_", "").isalnum():
        return False
    from cogcli.app.episodes import find
    from cogcli.app.registry import open_registry

    known = open_registry(context.settings).ids("skill")
    try:
        episode = find(context.settings, word).name
    except UsageError:
        episode = ""
    if word in known and episode:
        what = f"`{word}` is a skill, and it names episode {episode}"
        raise UsageError("usage.value", what, next=(f"cogcli trace {episode}", f"cogcli run {word}"))
    if word not in known and not episode:
        what, hint = f"`{word}` is neither a skill nor an episode", suggestion(word, known)
        raise UsageError("episode.unknown", what, hint=hint, next=("cogcli ls", "cogcli skills ls"))
    return word in known
