"""The error of a run on a page: code, message, location, response, and the next actions.

The quoted lines are from the pinned specs that ran, even if the file has changed since."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.terminal_text import cells
from cogcli.declarations.call_records import RunError
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.episode.run_history import RunHistory, StepHistory
from cogcli.report.page_values import json_text


class PageFrame(NamedTuple):
    """Lines of a pinned spec, and the marks below the last line."""

    file: str
    lines: list[str]
    marks: str


class PageError(NamedTuple):
    """The parts of an error."""

    code: str
    message: str
    frame: PageFrame | None
    facts: list[tuple[str, str]]


class _PinnedFile(Record):
    """A pinned spec and the name of its file."""

    file: str
    spec: Any = None


class _Item(Record):
    """An item of a list in a spec."""

    id: str


_REPLY = 600


def error_of(run: RunHistory, specs: Json, meaning: str) -> PageError | None:
    """Return the error of a run, or None without one."""
    error = run.error
    if error is None:
        return None
    step = run.steps.get(error.step or "")
    chain = [error.step, error.capability, error.binding, error.service]
    facts = [
        ("where", " → ".join(part for part in chain if part)),
        ("reply", _find_reply(step) if step else ""),
        ("help", error.hint),
        ("meaning", meaning),
    ]
    return PageError(
        code=error.code or "error",
        message=error.message,
        frame=_build_frame(run, error, specs),
        facts=[(name, text) for name, text in facts if text],
    )


def _find_reply(step: StepHistory) -> str:
    reply = step.attempts[-1].reply if step.attempts else None
    text = "" if reply is None else json_text(reply.get("body", reply))
    return text if len(text) <= _REPLY else f"{text[:_REPLY]}…"


def _build_frame(run: RunHistory, error: RunError, specs: Json) -> PageFrame | None:
    """Return the lines of a pinned spec around the value that the message names in backticks."""
    named = re.findall(r"`([^`\n]+)`", error.message)
    for key in (f"binding:{error.binding}", f"skill:{run.skill}"):
        pinned = read_record(_PinnedFile, specs.get(key))
        places = {value: path for path, value in reversed([*_walk_texts(pinned.spec, ())])}
        found = next((word for word in named if word in places and "." in word), None)
        if found is not None:
            path = places[found]
            lines = [f"{'  ' * n}{word}:" for n, word in enumerate(path)]
            before = cells(lines[-1]) + 1
            lines[-1] += f" {found}"
            return PageFrame(pinned.file, lines, " " * before + "^" * cells(found))
    return None


def _walk_texts(value: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield every string of a spec with its path. An item of a list is named by its id."""
    match value:
        case str() if path:
            yield path, value
        case dict():
            for key, inner in value.items():
                yield from _walk_texts(inner, (*path, str(key)))
        case list():
            for inner in value:
                yield from _walk_texts(inner, (*path, f"- {read_record(_Item, inner).id}"))
