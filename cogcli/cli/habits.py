"""Words that other tools have for commands and flags, and the command line that is meant here.

Data and one function. Nothing is guessed: the command is only proposed.
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
"""By word the commands that may be meant, the likeliest first."""
_SHOWN: Final = ("skills show", "capabilities show")
"""By the number of dots of an id, one and two, what shows it."""


def meant(words: Sequence[str]) -> Iterator[list[str]]:
    """Command lines for one that begins with a word of habit, the closest first; none for any other word."""
    word, rest = words[0], [*words[1:]]
    if word == "show":
        yield from _shown(rest)
    for command in COMMANDS.get(word, ()):
        yield [*command.split(), *rest]
    for command in COMMANDS.get(word, ()):
        yield command.split()


def _shown(rest: list[str]) -> Iterator[list[str]]:
    id = rest[0] if rest else ""
    if id in ("skills", "capabilities", "bindings", "services"):
        yield [id, "show", *rest[1:]]
        yield [id, "ls"]
    elif 1 <= id.count(".") <= len(_SHOWN) and not id.startswith((".", "/", "@")):
        yield [*_SHOWN[id.count(".") - 1].split(), *rest]
    yield ["trace", *rest]
    yield ["trace"]


FLAGS: Final = {"-n": "--limit"}
"""By flag of other tools the one that is meant, where a command has it."""
