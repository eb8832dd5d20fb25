"""Cut texts: at a word, with the number of missing tokens (docs/reference/pack.md#tokens). Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Final

from cogcli.agent.context.tokenizer import ESTIMATE, WIDE, Tokenizer
from cogcli.base.named_tuple import NamedTuple

_WORD: Final = re.compile(rf"[{WIDE}]|(?:(?![{WIDE}])\S)+")
LONG_WORD: Final = 40
"""The most characters of a word that is never cut inside."""
SENTENCE_END: Final = re.compile(r"[.!?](?=\s|$)")


class CutText(NamedTuple):
    """A text within its limit, whether a part is missing, and the number of its tokens."""

    text: str
    truncated: bool = False
    missing: int = 0


def mark_truncated(kept: str, missing: int) -> str:
    """Return the kept part of a text, followed by the number of missing tokens."""
    marker = f"[truncated: {missing} tokens]"
    return f"{kept} {marker}" if kept else marker


def cut_text(
    text: str, limit: int, size: Callable[[str], int] = len, tokenizer: Tokenizer = ESTIMATE
) -> CutText:
    """Return the text, or its longest prefix that ends at a word and, with the marker, is at most `limit` by
    `size`. A word of more than LONG_WORD characters is cut inside, so that a text without spaces is not lost.

    Longer texts must not be smaller by `size`. Empty if the marker alone does not fit.
    """
    if size(text) <= limit:
        return CutText(text)
    total = tokenizer.count(text)
    words = [match.span() for match in _WORD.finditer(text)]
    ends = [end for _, end in words]

    def marked_size(end: int) -> int:
        return size(mark_truncated(text[:end], total))

    fitting = bisect_right(ends, limit, key=marked_size)
    kept = text[: ends[fitting - 1]] if fitting else ""
    for start, end in words[fitting : fitting + 1]:
        inside = range(start + 1, end) if end - start > LONG_WORD else range(0)
        if count := bisect_right(inside, limit, key=marked_size):
            kept = text[: inside[count - 1]]
    missing = max(1, total - tokenizer.count(kept))
    marked = mark_truncated(kept, missing)
    if size(marked) <= limit:
        return CutText(marked, True, missing)
    return CutText("", True, total)


def first_sentence(text: str) -> str:
    """Return the text up to the end of its first sentence. Without a sentence end, return the whole text."""
    end = SENTENCE_END.search(text.strip())
    return text.strip()[: end.end()] if end else text.strip()
