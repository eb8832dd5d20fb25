"""The sentences of a text with their places, so that an answer quotes the text and says where it stands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from cogcli.official.sentences import content_words, ends_sentence
from cogcli.official.values import walk
from cogcli.sdk import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_CHARACTERS = 400_000
_STEM = 6
# A full-width stop ends its token, as scripts written without spaces have none after it.
_TOKEN = re.compile(r"[^\s。！？｡]+[。！？｡]*|[。！？｡]+")
_MARK = re.compile(r"\s{0,40}(?:(?P<heading>#{1,6})|[-*+•]|\(?[0-9]{1,3}[.)]|\(?[a-zA-Z]\))\s+")
_PLURAL = re.compile(r"(?<=[a-z]{2}[a-rt-z])s$")
_TEXT_FIELDS = (
    "text",
    "content",
    "body",
    "abstract",
    "summary",
    "snippet",
    "description",
    "message",
    "title",
    "name",
)
_ID_FIELDS = ("id", "source_id", "source_ref", "url", "path", "name", "title")


class Passage(NamedTuple):
    """A part of a text, verbatim, with its place in characters."""

    text: str
    start: int
    end: int

    def quote(self, **more: object) -> dict[str, object]:
        """The passage as part of an answer."""
        return {"text": self.text, "start": self.start, "end": self.end, **more}


class Block(NamedTuple):
    """A paragraph, a list item or a heading, without its mark."""

    start: int
    end: int
    kind: str


def blocks(text: str) -> list[Block]:
    """The paragraphs, list items and headings of a text, in order. Refused where the text is too large."""
    if len(text) > MAX_CHARACTERS:
        message = f"{len(text)} characters; at most {MAX_CHARACTERS} are read"
        raise Refused("too-large", message, "cut the text, for example with doc.content.chunk")
    found: list[Block] = []
    is_open = False
    start = 0
    for line in text.splitlines(keepends=True):
        mark = _MARK.match(line)
        end = start + len(line.rstrip())
        if end == start or not line.strip():
            is_open = False
        elif mark or not is_open:
            kind = "paragraph" if mark is None else "heading" if mark["heading"] else "item"
            inner = line if mark is None else line[mark.end() :]
            found.append(Block(start + len(line) - len(inner.lstrip()), end, kind))
            is_open = kind != "heading"
        else:
            found[-1] = found[-1]._replace(end=end)
        start += len(line)
    return [block for block in found if block.start < block.end]


def passages(text: str) -> list[Passage]:
    """The sentences of a text in order, none of them across a paragraph, a list item or a heading."""
    return [passage for block in blocks(text) for passage in _sentences(text, block)]


def _sentences(text: str, block: Block) -> Iterator[Passage]:
    tokens = list(_TOKEN.finditer(text, block.start, block.end))
    start = block.start
    for index, token in enumerate(tokens, 1):
        following = tokens[index][0] if index < len(tokens) else ""
        if not following or ends_sentence(token[0], following):
            yield Passage(text[start : token.end()], start, token.end())
            start = tokens[index].start() if following else token.end()


def strings_in(value: object) -> Iterator[tuple[str, str]]:
    """(JSON pointer, string) of every string value in a JSON value, in order."""
    return ((pointer, inner) for pointer, _, inner in walk(value) if isinstance(inner, str))


def text_of(item: object) -> str:
    """What an item says: itself, or the first field that holds text; empty without one."""
    if isinstance(item, str):
        return item
    found = (
        [item[name] for name in _TEXT_FIELDS if isinstance(item.get(name), str)]
        if isinstance(item, dict)
        else []
    )
    return next((text for text in found if text.strip()), "")


def id_of(item: object, position: int) -> str:
    """The name an item gives itself, else `item-N` by its position from 1."""
    names = [item.get(name) for name in _ID_FIELDS] if isinstance(item, dict) else []
    return next(
        (str(name) for name in names if isinstance(name, (str, int)) and name != ""), f"item-{position}"
    )


def stems(text: str) -> list[str]:
    """The content words of a text without a plural's `s`, each cut to six letters, so that inflected forms meet."""
    return [_PLURAL.sub("", word.replace("z", "s"))[:_STEM] for word in content_words(text)]
