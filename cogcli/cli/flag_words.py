"""The flags on a command line, found before typer parses it, so that errors in them are reported
first.

A flag that takes a value takes the next word unless that word is a known flag.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cogcli.base.named_tuple import NamedTuple

if TYPE_CHECKING:
    from cogcli.cli.typer_core import TyperOption

KnownFlags = Mapping[str, "TyperOption"]
"""The flags of a command by spelling."""


class FlagWord(NamedTuple):
    """A word of a command line that contains one or more flags."""

    word: str
    flags: tuple[TyperOption | None, ...]
    """Its flags; `-qv` has two. The last is None if that flag is unknown."""
    next_word: str | None
    """The next word; None at the end."""

    @property
    def name(self) -> str:
        """The last flag of the word, as typed."""
        if self.word.startswith("--"):
            return self.word.partition("=")[0]
        return f"-{self.word[len(self.flags) :]}"

    @property
    def needs_next(self) -> bool:
        """Whether the next word is the value of the last flag."""
        last = self.flags[-1]
        if last is None or last.is_flag:
            return False
        is_long = self.word.startswith("--")
        return "=" not in self.word if is_long else len(self.word) == len(self.flags) + 1


class FlagWords(NamedTuple):
    """The flags at the beginning of a command line, or among all its words."""

    found: list[FlagWord]
    read: int
    """The number of words that were read, values included."""
    ended: bool
    """Whether `--` ended the flags."""


def read_flag_words(args: Sequence[str], known: KnownFlags, *, up_to_word: bool) -> FlagWords:
    """Return the flags among the words; with `up_to_word` only those before the first word that is
    not a flag.
    """
    found: list[FlagWord] = []
    number = 0
    while number < len(args):
        word = args[number]
        if word == "--":
            return FlagWords(found, number + 1, ended=True)
        is_flag = word.startswith("-") and word != "-"
        if not is_flag and up_to_word:
            return FlagWords(found, number, ended=False)
        number += 1
        if is_flag:
            next_word = args[number] if number < len(args) else None
            found.append(FlagWord(word, _flags_in(word, known), next_word))
            number += found[-1].needs_next and is_value(next_word, known)
    return FlagWords(found, number, ended=False)


def is_value(word: str | None, known: KnownFlags) -> bool:
    """Return whether a word may be the value of the flag before it, that is, no known flag."""
    return word is not None and word.partition("=")[0] not in known


def _flags_in(word: str, known: KnownFlags) -> tuple[TyperOption | None, ...]:
    """Return the flags in a word. The text after an unknown flag, or after a flag with a value,
    contains no flags."""
    if word.startswith("--"):
        return (known.get(word.partition("=")[0]),)
    found: list[TyperOption | None] = []
    for letter in word[1:]:
        flag = known.get(f"-{letter}")
        found.append(flag)
        if flag is None or not flag.is_flag:
            break
    return tuple(found)
