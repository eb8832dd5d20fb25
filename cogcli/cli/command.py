"""A command line that was parsed, and what a command declares beside its parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from cogcli.cli.options import GlobalFlags

Examples = tuple[tuple[str, str], ...]
"""Command lines with what they are for."""


class Call(NamedTuple):
    """What a command line asks for: an action, which takes a CommandContext; where it is None, a text.

    `given` holds the flags that were typed, by the names of parameters and settings.
    """

    argv: list[str]
    command: str = ""
    flags: GlobalFlags = GlobalFlags()
    given: dict[str, Any] = {}  # noqa: RUF012 - nobody writes to it
    action: Callable[[Any], int] | None = None


class Command(NamedTuple):
    """A command: its function takes a CommandContext and the parsed values, and returns the exit code.

    `examples` may depend on the name under which the command is called. `most` bounds the words of a list.
    """

    function: Callable[..., int]
    examples: Examples | Callable[[str], Examples]
    exits: tuple[int, ...]
    most: int

    def examples_of(self, name: str) -> Examples:
        """The examples of the command under this name."""
        return self.examples(name) if callable(self.examples) else self.examples


def command(
    *, examples: Examples | Callable[[str], Examples], exits: tuple[int, ...] = (0, 2), most: int = 100_000
) -> Callable[[Callable[..., int]], Command]:
    """Declare a function as a command. Its annotated parameters are arguments and flags (`cli/options.py`)."""

    def declare(function: Callable[..., int]) -> Command:
        return Command(function, examples, exits, most)

    return declare
