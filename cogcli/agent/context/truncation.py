"""Cut texts: at a word, with the number of missing tokens (docs/reference/pack.md#tokens). Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Final

from cogcli.agent.context.tokenizer import ESTIMATE, WIDE, Tokenizer
from cogcli.base.named_tuple import NamedTuple

_WORD: Final = re.compile(rf"[{WIDE}]|(?:(?![{WIDE}])\S)+")

SENTENCE_END: Final = re.compile(r"[.!?](?=\s|$)")


class CutText(NamedTuple):
    """A text within its limit, and whether a part is missing."""

    text: str
    truncated: bool = False


def mark_truncated(kept: str, missing: int) -> str:
    """Return the kept part of a text, followed by the number of missing tokens."""
    marker = f"[truncated: {missing} tokens]"
    return f"{kept} {marker}" if kept else marker


def cut_text(
    text: str, limit: int, size: Callable[[str], int] = len, tokenizer: Tokenizer = ESTIMATE
) -> CutText:
    """Return the text, or its longest prefix that ends at a word and, with the marker, is at most `limit` by
    `size`.

    Longer texts must not be smaller by `size`. Empty if the marker alone does not fit.
    """
    if size(text) <= limit:
        return CutText(text)
    total = tokenizer.count(text)
    ends = [match.end() for match in _WORD.finditer(text)]

    def marked_size(end: int) -> int:
        return size(mark_truncated(text[:end], total))

    fitting = bisect_right(ends, limit, key=marked_size)
    kept = text[: ends[fitting - 1]] if fitting else ""
    marked = mark_truncated(kept, max(1, total - tokenizer.count(kept)))
    return CutText(marked if size(marked) <= limit else "", True)


def first_sentence(text: str) -> str:
    """Return the text up to the end of its first sentence, or all of it if no sentence ends."""
    end = SENTENCE_END.search(text.strip())
    return text.strip()[: end.end()] if end else text.strip()
