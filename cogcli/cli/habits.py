"""Words of other tools for commands and flags, and the commands that users probably intend.

A translated command is only suggested, never run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

COMMANDS: Final = {
    "init": ("new project", "new project ."),
    "create": ("new project", "new project ."),
    "log": ("ls", "trace"),
    "logs": ("ls", "trace"),
    "history": ("ls",),
    "runs": ("ls",),
    "status": ("ls", "trace"),
    "inspect": ("trace",),
    "view": ("trace",),
    "exec": ("run", "skills ls"),
    "execute": ("run", "skills ls"),
    "start": ("run", "skills ls"),
    "check": ("validate",),
    "lint": ("validate",),
    "find": ("skills search", "skills ls"),
    "commands": ("help commands",),
    "version": ("--version",),
    "clean": ("gc",),
    "settings": ("config show",),
    "trust": ("config trust",),
}
"""The likely intended commands by word, the likeliest first."""
_SHOW_COMMANDS: Final = ("skills show", "capabilities show")
"""The commands that show a spec, by the number of dots in its id, one and two."""


def translate_habit(words: Sequence[str]) -> Iterator[list[str]]:
    """Yield translations of a command line that begins with a word of another tool, closest first.

    Yield nothing for any other word.
    """
    word, rest = words[0], [*words[1:]]
    if word == "show":
        yield from _translate_show(rest)
    for command in COMMANDS.get(word, ()):
        yield [*command.split(), *rest]
    for command in COMMANDS.get(word, ()):
        yield command.split()


def _translate_show(rest: list[str]) -> Iterator[list[str]]:
    """Yield translations of `show` and these words."""
    id = rest[0] if rest else ""
    if id in ("skills", "capabilities", "bindings", "services"):
        yield [id, "show", *rest[1:]]
        yield [id, "ls"]
    elif 1 <= id.count(".") <= len(_SHOW_COMMANDS) and not id.startswith((".", "/", "@")):
        yield [*_SHOW_COMMANDS[id.count(".") - 1].split(), *rest]
    yield ["trace", *rest]
    yield ["trace"]


FLAGS: Final = {"-n": "--limit"}
"""Our flags by flags of other tools, for commands that have them."""
