"""A conversation that became too long: its oldest messages as one block. Pure
(docs/reference/agent-state.md#compaction)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cogcli.agent.context.compiled import ContextBlock
from cogcli.agent.context.tokenizer import ESTIMATE, Tokenizer
from cogcli.agent.context.truncation import cut_text, first_sentence
from cogcli.agent.update import MOST
from cogcli.base.jsonvalue import text_of

BLOCK_ID = "session:summary"
_SHARE = 4
"""The summary has this part of the bucket, the messages that are kept the rest."""


class Compaction(NamedTuple):
    """What of a conversation is shown: a summary of the oldest messages, None where all have room, and the others."""

    summary: ContextBlock | None
    left: tuple[Mapping[str, Any], ...]
    """The messages that the summary stands for."""
    kept: tuple[Mapping[str, Any], ...]


def compact_messages(
    messages: Sequence[Mapping[str, Any]],
    room: int,
    tokenizer: Tokenizer = ESTIMATE,
    *,
    summary: str = "",
) -> Compaction:
    """The conversation within so many tokens of the bucket `session` and 40 messages. `summary` is a model's; without
    it the first sentence of each message of the user is taken. A message without `message_id` is named by its place."""
    sizes = [tokenizer.count(text_of(each.get("content"))) for each in messages]
    if len(messages) <= MOST["messages"] and sum(sizes) <= room:
        return Compaction(None, (), tuple(messages))
    left, start = room - room // _SHARE, len(messages)
    while start and len(messages) - start < MOST["messages"] and sizes[start - 1] <= left:
        start -= 1
        left -= sizes[start]
    gone = tuple(messages[:start])
    text = summary or " ".join(
        first_sentence(text_of(each.get("content"))) for each in gone if each.get("role") == "user"
    )
    return Compaction(_block(gone, text, room // _SHARE, tokenizer), gone, tuple(messages[start:]))


def _block(
    gone: Sequence[Mapping[str, Any]], text: str, room: int, tokenizer: Tokenizer
) -> ContextBlock:
    content = cut_text(text, room, tokenizer.count, tokenizer).text
    return ContextBlock(
        BLOCK_ID,
        "session",
        content,
        0,
        tokenizer.count(content),
        tuple(str(each.get("message_id", place)) for place, each in enumerate(gone)),
        "untrusted",
        "data_only",
        truncated=True,
    )
