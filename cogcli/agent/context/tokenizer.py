"""The estimate of tokens without a model: `cog-est/1` (docs/reference/pack.md#tokens). Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Final

from cogcli.base.canonical import digest
from cogcli.base.named_tuple import NamedTuple

WIDE: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
"""The characters of a pattern that are words by themselves."""
_RUNS: Final = re.compile(
    rf"(?P<newlines>\n+)|(?P<space>[^\S\n]+)|(?P<wide>[{WIDE}]+)|(?P<digits>\d+)"
    rf"|(?P<letters>(?:(?![{WIDE}])[^\W\d_])+)|(?P<ascii>[!-/:-@\[-`{{-~]+)|(?P<other>(?:(?![{WIDE}])[^\w\s!-~])+)"
    r"|(?P<rest>.)",
    re.DOTALL,
)
_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class Tokenizer(NamedTuple):
    """Counts the tokens of a text. `exact`: whether a model counts the same; `hash`: the hash of
    its rules."""

    id: str
    exact: bool
    hash: str
    count: Callable[[str], int]


def estimate(text: str) -> int:
    """Return the estimated tokens of a text."""
    return math.ceil(
        sum(_estimate_run(str(run.lastgroup), run.group()) for run in _RUNS.finditer(text))
    )


def _estimate_run(kind: str, run: str) -> float:
    length = len(run)
    if kind == "letters":
        parts = len(_CAMEL.findall(run)) + 1
        foreign = 0 if run.isascii() else sum(letter > "\x7f" for letter in run)
        return max(parts, 1 + max(0, length - 8) / 5) + foreign / 2
    if kind == "space":
        return 0 if length == 1 else 1
    if kind == "digits":
        return math.ceil(length / 3)
    if kind == "ascii":
        return max(1, length / 2.2)
    if kind == "wide":
        return 0.85 * length
    return 1 if kind == "newlines" else 1.12 * length


ESTIMATE: Final = Tokenizer("cog-est/1", False, digest(b"cog-est/1"), estimate)
"""The tokenizer of runs without another one."""
