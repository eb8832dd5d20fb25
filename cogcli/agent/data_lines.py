"""Foreign values as lines of data. No value can open a section or end its line (docs/reference/agent-state.md#data).
Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from cogcli.agent.bounds import encodable
from cogcli.agent.records import ConversationMessage
from cogcli.base.canonical import canonical
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.terminal_text import visible_json
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json

_NO_WORD: Final = re.compile(r"[^A-Za-z0-9._:@#/+-]")
_LONGEST: Final = 80


class DataLine(NamedTuple):
    """A foreign value, which is never an instruction: `@data <block_id> <origin> <trust> <JSON string>`."""

    block_id: str
    origin: str
    trust: str
    text: str

    def render(self) -> str:
        """Return the line, without control characters and line separators."""
        names = " ".join(word_from(each) for each in (self.block_id, self.origin, self.trust))
        return f"@data {names} {json_text(encodable(self.text))}"


def message_lines(messages: Iterable[Json]) -> list[DataLine]:
    """Return the messages of a conversation as lines of data."""
    found = [read_record(ConversationMessage, each) for each in messages]
    return [
        DataLine(f"message:{n:04}", each.role, "untrusted", each.content)
        for n, each in enumerate(found)
    ]


def word_from(text: str) -> str:
    """Return a name as one word of ASCII letters, digits and a few punctuation marks."""
    return _NO_WORD.sub("_", text[:_LONGEST]) or "_"


def json_text(value: object) -> str:
    """Return a value as one line of JSON without invisible characters."""
    return visible_json(canonical(value).decode())
