"""The sentences of a text with their places, for quotes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cogcli.official.sentences import Block, Sentence, content_words, require_size, sentences_in
from cogcli.official.sentences import blocks as all_blocks
from cogcli.official.values import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_CHARACTERS = 400_000
_STEM = 6
_PLURAL = re.compile(r"(?<=[a-z]{2}[a-rt-z])s$")
_TEXT_FIELDS = "text content body abstract summary snippet description message title name".split()
Passage = Sentence
"""A part of a text, verbatim, with its place in characters."""
_ID_FIELDS = ("id", "source_id", "source_ref", "url", "path", "name", "title")


def blocks(text: str) -> list[Block]:
    """Return the paragraphs, list items and headings of a text, in order. Raise Refused if the text
    is too large.
    """
    require_size(text, MAX_CHARACTERS)
    return all_blocks(text)


def passages(text: str) -> list[Passage]:
    """Return the sentences of a text in order, none of them across a paragraph, a list item or a heading."""
    return [passage for block in blocks(text) for passage in sentences_in(text, block)]


def strings_in(value: object) -> Iterator[tuple[str, str]]:
    """Yield (JSON pointer, string) of every string in a JSON value, in order."""
    return ((pointer, inner) for pointer, _, inner in walk(value) if isinstance(inner, str))


def text_of(item: object) -> str:
    """Return the text of an item: the item itself, or its first text member; empty without one."""
    if isinstance(item, str):
        return item
    texts = (
        [item[name] for name in _TEXT_FIELDS if isinstance(item.get(name), str)]
        if isinstance(item, dict)
        else []
    )
    return next((text for text in texts if text.strip()), "")


def id_of(item: object, position: int) -> str:
    """Return the id or name of an item, else `item-N` by its position from 1."""
    names = [item.get(name) for name in _ID_FIELDS] if isinstance(item, dict) else []
    return next(
        (str(name) for name in names if isinstance(name, (str, int)) and name != ""),
        f"item-{position}",
    )


def stems(text: str) -> list[str]:
    """Return the content words of a text, without a plural `s` and cut to six letters, so that
    inflected forms are equal.
    """
    return [_PLURAL.sub("", word.replace("z", "s"))[:_STEM] for word in content_words(text)]
