"""How a fuzz target is fed: texts made of the words of a format, and mutations of files that are valid."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

FEW: Final = 10
"""Examples of each target in the default run, so that no target rots."""
SECONDS: Final = float(os.environ.get("COGCLI_FUZZ_SECONDS", "60"))
"""How long a long run feeds one target. The time is a budget, not a promise."""
_ROUND: Final = 200
MOST_OUTPUT: Final = 4 * 1024 * 1024
"""Characters of an answer to an input of some kilobytes: more is a bomb."""


class Target(NamedTuple):
    """A parser of foreign bytes: what feeds it, and a function that fails for all but an answer or a coded error."""

    inputs: st.SearchStrategy[Any]
    feed: Callable[[Any], object]


def texts_of(words: Sequence[str], most: int = 60) -> st.SearchStrategy[str]:
    """Texts of words of a format, with any other characters between them."""
    return st.lists(
        st.one_of(st.sampled_from(list(words)), st.text(max_size=4)), max_size=most
    ).map("".join)


def bytes_of(words: Sequence[str], most: int = 60) -> st.SearchStrategy[bytes]:
    """The same as bytes, some of which are no UTF-8."""
    piece = st.one_of(st.sampled_from([word.encode() for word in words]), st.binary(max_size=3))
    return st.lists(piece, max_size=most).map(b"".join)


class Mutated(bytes):
    """A valid file with edits; a report shows the edits, since the bytes would fill screens."""

    edits: Sequence[tuple[str, float, bytes, int]]

    def __repr__(self) -> str:
        return f"<{len(self):,} bytes after {self.edits!r}>"


def mutated(seeds: Sequence[bytes], words: Sequence[bytes] = ()) -> st.SearchStrategy[Mutated]:
    """Valid files with some places replaced, removed, repeated or cut."""
    edit = st.tuples(
        st.sampled_from(["replace", "insert", "remove", "repeat", "cut"]),
        st.floats(0, 1),
        st.one_of(st.binary(min_size=1, max_size=8), st.sampled_from([*words, b"\0", b"\xff" * 4])),
        st.integers(1, 64),
    )
    return st.builds(
        _edited,
        st.sampled_from(range(len(seeds))).map(lambda number: seeds[number]),
        st.lists(edit, max_size=6),
    )


def _edited(data: bytes, edits: Sequence[tuple[str, float, bytes, int]]) -> Mutated:
    for kind, where, piece, size in edits:
        at = int(where * len(data))
        if kind == "replace":
            data = data[:at] + piece + data[at + len(piece) :]
        elif kind == "insert":
            data = data[:at] + piece + data[at:]
        elif kind == "remove":
            data = data[:at] + data[at + size :]
        elif kind == "repeat":
            data = data[:at] + data[at : at + size] * 20 + data[at + size :]
        elif len(data) > 16:
            data = data[: max(16, at)]
    found = Mutated(data)
    found.edits = edits
    return found


def json_values(words: Sequence[str], leaves: int = 25) -> st.SearchStrategy[Any]:
    """JSON values whose keys and texts are often words of a format."""
    text = st.one_of(st.sampled_from(list(words)), st.text(max_size=6))
    # Greater integers are refused by the readers of YAML and JSON.
    numbers = st.one_of(
        st.integers(-(2**53) + 1, 2**53 - 1), st.floats(allow_nan=False, allow_infinity=False)
    )
    plain = st.one_of(st.none(), st.booleans(), numbers, text)
    return st.recursive(
        plain, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(text, inner, max_size=4)),
        max_leaves=leaves,
    )  # fmt: skip


def try_few(target: Target) -> None:
    """Feed a target a handful of examples."""
    _run(target, FEW, None)


def try_long(target: Target) -> None:
    """Feed a target with fresh examples until the budget is spent."""
    end, number = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        _run(target, _ROUND, time.time_ns() + number)
        number += 1


def _run(target: Target, examples: int, number: int | None) -> None:
    phases = (Phase.generate, Phase.shrink)

    @settings(
        max_examples=examples, database=None, phases=phases, suppress_health_check=list(HealthCheck)
    )
    @given(target.inputs)
    def check(value: Any) -> None:
        answer = target.feed(value)
        assert len(repr(answer)) <= MOST_OUTPUT

    (seed(number)(check) if number is not None else check)()
