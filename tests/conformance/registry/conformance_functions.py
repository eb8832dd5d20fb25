"""What the capabilities of the conformance cases do. Files go to the directory that `CONFORMANCE_DIR` names."""

from __future__ import annotations

import os
from collections import OrderedDict
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

try:
    from support.in_process import sleep
except ImportError:  # in a process of its own
    from time import sleep


def do(
    value: Any = None,
    mark: str = "",
    seconds: float = 0,
    fail: int = 0,
    key: str = "tries",
    **_: Any,
) -> dict[str, Any]:
    """Gives back `value` after `seconds`. `mark` goes into the ledger; the first `fail` calls of a `key` fail."""
    if mark:
        _append("ledger", mark)
    sleep(seconds)
    if fail and _append(f"count-{key}", "x") <= fail:
        raise RuntimeError(f"{key} failed on purpose")
    return {"value": value}


def give(result: Any = None, **_: Any) -> Any:
    """Gives back `result` itself as the whole answer."""
    return result


class Mood(StrEnum):
    CALM = "calm"


class Odd(NamedTuple):
    value: Mood
    more: OrderedDict[str, Mood]


def odd(kind: str) -> Any:
    """Answers that are no JSON object."""
    answers = {
        "text": "just text",
        "list": [1],
        "null": None,
        "set": {"value": {1}},
        "bytes": {"value": b"x"},
        "nan": {"value": float("nan")},
        "huge": {"value": 2**60},
        "key": {1: "x"},
        "tuple": {"value": (1, (2,))},
        "record": Odd(Mood.CALM, OrderedDict(n=Mood.CALM)),
    }
    return answers[kind]


def judge(verdict: Any = None, mark: str = "", seconds: float = 0, **_: Any) -> Any:
    """A gate: answers `verdict` as it is, raises where that says so."""
    if mark:
        _append("ledger", mark)
    sleep(seconds)
    if verdict == {"raise": True}:
        raise RuntimeError("the gate is broken")
    return verdict


def grow(items: list[Any] | None = None) -> dict[str, Any]:
    """Appends to the list it was handed, to show that nobody else sees it."""
    (items := items if items is not None else []).append("grown")
    return {"items": items, "again": items}


def _append(name: str, line: str) -> int:
    """Add a line to a file; how many it has now."""
    file = Path(os.environ["CONFORMANCE_DIR"]) / name
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)
    return len(file.read_text().splitlines())
