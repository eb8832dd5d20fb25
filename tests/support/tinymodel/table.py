"""A byte bigram table counted from a text, and sampling from it: as small as a generative model gets."""

from __future__ import annotations

import random
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Final

TEXT: Final = Path(__file__).with_name("text.txt")


@cache
def counts() -> dict[int, tuple[tuple[int, ...], tuple[int, ...]]]:
    """By byte: the bytes that follow it in the text, and how often each does."""
    data = TEXT.read_bytes()
    found: dict[int, Counter[int]] = {}
    for before, after in zip(data, data[1:] + data[:1], strict=True):
        found.setdefault(before, Counter())[after] += 1
    return {byte: (tuple(after), tuple(after.values())) for byte, after in found.items()}


def sample(rng: random.Random, length: int) -> str:
    """A text of `length` bytes, each drawn by the one before."""
    table = counts()
    byte, found = ord(" "), bytearray()
    for _ in range(length):
        choices, weights = table[byte]
        byte = rng.choices(choices, weights)[0]
        found.append(byte)
    return found.decode("ascii")
