"""One line of the doctor."""

from __future__ import annotations

from typing import NamedTuple


class Check(NamedTuple):
    """What was looked at: `status` is ok, warning, error or skipped; `fix` can be pasted."""

    group: str
    name: str
    status: str
    message: str
    details: tuple[str, ...] = ()
    fix: str = ""
