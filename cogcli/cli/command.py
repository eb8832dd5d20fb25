"""What a command declares beside its parameters: examples and exit codes for its help."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


Examples = tuple[tuple[str, str], ...]
"""Command lines with what they are for."""


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
