"""A defect in one text, before it has a place in a file; and how near two words are."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple


class TextFault(NamedTuple):
    """A code, what is wrong, and what to do."""

    code: str
    message: str
    hint: str = ""


@lru_cache(maxsize=1024)
def distance(a: str, b: str) -> int:
    """The least number of characters to insert, remove or exchange to make one word the other."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]
