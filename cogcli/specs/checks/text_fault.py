"""A fault in one text, before it has a position in a file; and the edit distance of two words."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple


class TextFault(NamedTuple):
    """A code, a message and a hint."""

    code: str
    message: str
    hint: str = ""


@lru_cache(maxsize=1024)
def distance(a: str, b: str) -> int:
    """The edit distance: the least number of characters to insert, remove or replace."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]
