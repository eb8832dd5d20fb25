"""The compaction of a long conversation: its oldest messages become one block. Pure
(docs/reference/agent-state.md#compaction)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cogcli.agent.context.blocks import SUMMARY
from cogcli.agent.context.compiled import ContextBlock
from cogcli.agent.context.tokenizer import ESTIMATE, Tokenizer
from cogcli.agent.context.truncation import cut_text, first_sentence
from cogcli.agent.records import ConversationMessage
from cogcli.agent.update import MAX_ITEMS
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json

_SHARE = 4
"""The summary has one fourth of the bucket, the kept messages have the rest."""


class Compaction(NamedTuple):
    """The part of a conversation that a model reads: the latest messages, and a summary of the others or None."""

    summary: ContextBlock | None
    left: tuple[Json, ...]
    """The summarized messages."""
    kept: tuple[Json, ...]
    left_tokens: int = 0
    """The tokens of the summarized messages."""


def compact_messages(
    messages: Sequence[Json],
    max_tokens: int,
    tokenizer: Tokenizer = ESTIMATE,
    *,
    summary: str = "",
    render: Callable[[str, str], str] = lambda role, content: content,
) -> Compaction:
    """Fit a conversation into 40 messages and the tokens of the bucket `session`.

    `summary` is a model's summary of the oldest messages. Without it, the first sentence of each user message is
    used. A message without `message_id` is named by its number, from 1. `render` returns the text of a message in a
    context, from its role and its content.
    """
    found = [read_record(ConversationMessage, each) for each in messages]
    sizes = [tokenizer.count(render(each.role, each.content)) for each in found]
    if len(messages) <= MAX_ITEMS["messages"] and sum(sizes) <= max_tokens:
        return Compaction(None, (), tuple(messages))
    start = _find_first_kept_index(sizes, max_tokens - max_tokens // _SHARE)
    oldest = found[:start]
    text = summary or " ".join(
        first_sentence(each.content) for each in oldest if each.role == "user"
    )
    block = _summary_block(oldest, text, max_tokens // _SHARE, tokenizer)
    kept = tuple(messages[start:])
    return Compaction(block, tuple(messages[:start]), kept, sum(sizes[:start]))


def _find_first_kept_index(sizes: Sequence[int], max_tokens: int) -> int:
    """Return the index of the first of the newest messages that fit into these tokens."""
    start = len(sizes)
    while start and len(sizes) - start < MAX_ITEMS["messages"] and sizes[start - 1] <= max_tokens:
        start -= 1
        max_tokens -= sizes[start]
    return start


def _summary_block(
    oldest: Sequence[ConversationMessage], text: str, max_tokens: int, tokenizer: Tokenizer
) -> ContextBlock:
    content = cut_text(text, max_tokens, tokenizer.count, tokenizer).text
    return ContextBlock(
        SUMMARY,
        "session",
        content,
        0,
        tokenizer.count(content),
        tuple(
            str(each.message_id) if "message_id" in each.json else f"message:{number}"
            for number, each in enumerate(oldest, 1)
        ),
        "untrusted",
        "data_only",
        truncated=True,
    )
