"""The flags among the words of a command line, as they are judged before typer parses them."""

from __future__ import annotations

import pytest
from typer.core import TyperOption

from cogcli.cli.flag_words import FlagWords, read_flag_words
from cogcli.cli.typer_app import load, root

KNOWN = {
    name: flag
    for flag in (*load("run").params, *root().params)
    if isinstance(flag, TyperOption)
    for name in flag.opts
}


def read(*words: str, up_to_word: bool = False) -> FlagWords:
    return read_flag_words(words, KNOWN, up_to_word=up_to_word)


def named(read: FlagWords) -> list[list[str | None]]:
    return [[flag and flag.name for flag in each.flags] for each in read.found]


@pytest.mark.parametrize(
    ("words", "flags", "count"),
    [
        (["--goal", "-5 degrees", "-q"], [["goal"], ["quiet"]], 3),
        (["--goal", "--json"], [["goal"], ["json"]], 2),
        (["--goal=--json", "x"], [["goal"]], 2),
        (["-qv", "x", "-pa=b"], [["quiet", "verbose"], ["p"]], 3),
        (["-qbogus"], [["quiet", None]], 1),
        (["--bogus=1", "-"], [[None]], 2),
        (["-p"], [["p"]], 1),
    ],
)
def test_a_flag_takes_the_next_word_unless_that_is_a_flag(
    words: list[str], flags: list[list[str | None]], count: int
) -> None:
    found = read(*words)
    assert (named(found), found.read, found.ended) == (flags, count, False)


def test_what_follows_two_dashes_is_no_flag() -> None:
    found = read("-q", "--", "--json")
    assert (named(found), found.read, found.ended) == ([["quiet"]], 2, True)


def test_a_group_is_read_up_to_its_command() -> None:
    found = read("-C", "there", "run", "--goal", "x", up_to_word=True)
    assert (named(found), found.read, found.ended) == ([["directory"]], 2, False)


def test_the_name_of_an_unknown_flag_is_as_typed() -> None:
    assert [each.name for each in read("-qbogus", "--bogus=1").found] == ["-bogus", "--bogus"]
