"""Which cases of a test that is marked `sampled(n)` a run of the tests leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32


def find_left_out(cases: Sequence[str], one_in: int, seed: object) -> set[str]:
    """The node ids that are not drawn, of all cases of one test.

    Of at least `one_in` cases always the same number is drawn, and never none. With fewer cases each is drawn by
    itself, in one of `one_in` runs.
    """

    def number(case: str) -> int:
        return crc32(f"{seed} {case}".encode())

    if len(cases) < one_in:
        return {case for case in cases if number(case) % one_in}
    return set(sorted(cases, key=number)[round(len(cases) / one_in) :])
