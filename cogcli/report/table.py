"""A run's steps as table rows, and its events as log lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from cogcli.core.jsonvalue import object_of
from cogcli.core.terminal_text import truncate_bytes, visible
from cogcli.declarations.events import row_of
from cogcli.events.envelope import Event
from cogcli.report.run_fold import RunFold
from cogcli.report.run_view import Branch

COLUMNS = ("step_id", "uses", "status", "started_at", "ms", "binding", "reads", "writes")


def columns(fold: RunFold) -> tuple[str, ...]:
    """The keys of the rows; those of an agent's run say of which turn a step is."""
    return (*COLUMNS, "turn") if fold.turns.turns else COLUMNS


def rows(fold: RunFold, *, only: str = "") -> list[dict[str, Any]]:
    """One row per step; gates, items, rounds and nested steps below theirs."""
    turns = {step: turn.number for turn in fold.turns.turns for step in turn.steps}
    return [
        row | ({"turn": turns[branch.step.id]} if branch.step.id in turns else {})
        for branch in fold.branches(only)
        for row in _rows([branch])
    ]


def _rows(branches: list[Branch]) -> Iterator[dict[str, Any]]:
    for _, step, below in branches:
        yield {
            "step_id": step.id,
            "uses": step.uses,
            "status": step.status,
            "started_at": step.started_at or None,
            "ms": step.ms,
            "binding": step.binding or None,
            "reads": step.reads,
            "writes": step.writes,
            **({"notices": step.notices} if step.notices else {}),
        }
        yield from _rows(below)


_ABORT = "ABORT"
"""Stands in the log for a signal where somebody closed the run; no line shows it."""
_VALUES = 4
"""How many values of full length a member may show."""


class EventLines:
    """Events as `TIME event_type key=value ...`, one line each."""

    def __init__(self) -> None:
        self._uses: dict[tuple[str | None, str | None], str] = {}

    def line(self, event: Event) -> str:
        """The line of one event, without its newline."""
        payload = object_of(event.payload)
        place = (event.run_id, event.step_id)
        if isinstance(uses := payload.get("uses"), str):
            self._uses[place] = uses
        pairs = dict(_pairs(event, payload, self._uses.get(place)))
        text = " ".join(
            f"{name}={_quoted(value)}" for name, value in pairs.items() if value not in (None, "", [])
        )
        stamp = f"{event.timestamp[:23]}Z" if len(event.timestamp) > 24 else event.timestamp
        return visible(f"{stamp} {event.event_type or event.phase} {text}".rstrip())


def _pairs(event: Event, payload: dict[str, Any], uses: str | None) -> Iterator[tuple[str, Any]]:
    yield "step", event.step_id or payload.get("step_id")
    error = payload.get("error")
    error = error if isinstance(error, dict) else {"message": error}
    ms = payload.get("latency_ms")
    if ms is None:
        ms = (event.metrics or {}).get("duration_ms")
    if event.event_type:
        skill = object_of(payload.get("skill"))
        named = {"uses": uses, "ms": ms, "skill": skill.get("id"), "version": skill.get("version"),
                 "episode": event.episode_id, "run": event.run_id, "trace": event.trace_id}  # fmt: skip
        for word in row_of(event.event_type).words:
            value = named[word] if word in named else payload.get(word)
            if value != _ABORT:
                yield word, value
    else:  # another tool's
        status = next((s for n in ("step_status", "status", "outcome") if (s := payload.get(n))), None)
        yield from (("status", status), ("tool", payload.get("tool")), ("ms", ms))
        yield "message", payload.get("message")
    yield "error", error.get("code")
    if error.get("message") is not None:
        yield "message", error["message"]


def _quoted(value: Any) -> str:
    text = value if isinstance(value, str) else str(value)
    return f'"{text}"' if not text or " " in text or '"' in text else text


def sections(event: Event, most: int | None = None) -> list[str]:
    """An event in full: a head line and `a.b.c: value` lines, nothing empty.

    Of each value at most so many bytes, of each member of the payload as many as of four values; what is left out is
    counted.
    """
    head = f"{event.seq if event.seq is not None else '-'} {event.event_type or event.phase}"
    lines = [visible(f"{head} {event.step_id or ''}".rstrip())]
    facts = {"timestamp": event.timestamp, "id": event.id, "run_id": event.run_id, "agent_id": event.agent_id,
             "caused_by": event.caused_by, "payload": event.payload, "metrics": event.metrics}  # fmt: skip
    for member, leaves in groupby(_leaves(facts, ""), lambda leaf: ".".join(leaf[0].split(".", 2)[:2])):
        lines += _member(member, leaves, most)
    return lines


def _member(member: str, leaves: Iterable[tuple[str, str]], most: int | None) -> list[str]:
    """The lines of one member, as far as there is room, and how many bytes follow."""
    lines: list[str] = []
    room, left = (most or 0) * _VALUES, 0
    for name, value in leaves:
        head, more = truncate_bytes(visible(value), most)
        text = f"  {visible(name)}: {head}{more}"
        size = len(text.encode()) if most is not None else 0
        if left or size > room:
            left += size
        else:
            lines.append(text)
            room -= size
    return [*lines, f"  {visible(member)}: … {left:,} bytes more"] if left else lines


def _leaves(value: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _leaves(item, f"{place}.{number}")
    elif value is not None and value != "":
        yield place, str(value).lower() if isinstance(value, bool) else str(value)
