"""Which rules the log of a run follows: what its lines may hold, and what is projected from them.

A run says in its first event, as `rules`, which ones it was begun under, and keeps them to its end, whoever resumes it.
So a log gives the same bytes at any later date. A log that says nothing follows rules 1.

| rules | what holds |
|---|---|
| 1 | members of a payload above 64 KiB are blobs; documents hold every value; a plan's steps hold what they read |
| 2 | large values are blobs at any depth, each stored once (`large_values`), and documents name them; a plan's steps
hold what they were given and produced; `tool_coverage` counts what was planned; the duration of a run that was never
taken up again does not exceed the time between its first and its last event; an optional `any` that reads what is not
there is not given (under rules 1 it was null) |
"""

from __future__ import annotations

from typing import Any, Final

FIRST: Final = 1
LATEST: Final = 2


def rules_of(payload: Any) -> int:
    """The rules that the payload of a log's first event names. Those of a later version read as the latest known."""
    named = payload.get("rules") if type(payload) is dict else None
    return min(named, LATEST) if type(named) is int and named >= FIRST else FIRST
