"""The sentences of a text with their places, so that an answer quotes the text and says where it stands."""

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
    """Return the paragraphs, list items and headings of a text, in order. Refused where the text is too large."""
    require_size(text, MAX_CHARACTERS)
    return all_blocks(text)


def passages(text: str) -> list[Passage]:
    """Return the sentences of a text in order, none of them across a paragraph, a list item or a heading."""
    return [passage for block in blocks(text) for passage in sentences_in(text, block)]


def strings_in(value: object) -> Iterator[tuple[str, str]]:
    """(JSON pointer, string) of every string value in a JSON value, in order."""
    return ((pointer, inner) for pointer, _, inner in walk(value) if isinstance(inner, str))


def text_of(item: object) -> str:
    """Return what an item says: itself, or the first field that holds text; empty without one."""
    if isinstance(item, str):
        return item
    found = (
        [item[name] for name in _TEXT_FIELDS if isinstance(item.get(name), str)]
        if isinstance(item, dict)
        else []
    )
    return next((text for text in found if text.strip()), "")


def id_of(item: object, position: int) -> str:
    """Return the name an item gives itself, else `item-N` by its position from 1."""
    names = [item.get(name) for name in _ID_FIELDS] if isinstance(item, dict) else []
    return next(
        (str(name) for name in names if isinstance(name, (str, int)) and name != ""),
        f"item-{position}",
    )


def stems(text: str) -> list[str]:
    """Return the content words of a text without a plural's `s`, each cut to six letters, so that inflected forms
    meet.
    """
    return [_PLURAL.sub("", word.replace("z", "s"))[:_STEM] for word in content_words(text)]
