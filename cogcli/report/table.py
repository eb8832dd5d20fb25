"""A run's steps as table rows, and an event in full."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from cogcli.base.terminal_text import truncate_bytes, visible
from cogcli.declarations.envelope import Event
from cogcli.declarations.value_types import Json
from cogcli.episode.history import History
from cogcli.episode.run_history import Branch

COLUMNS = ("step_id", "uses", "status", "started_at", "ms", "binding", "reads", "writes")


def columns(fold: History) -> tuple[str, ...]:
    """Return the keys of the rows. For an agent's run they include the turn of a step."""
    return (*COLUMNS, "turn") if fold.turns.turns else COLUMNS


def rows(fold: History, *, only: str = "") -> list[Json]:
    """Return one row per step. Gates, items, rounds and nested steps follow their step."""
    turns = {step: turn.number for turn in fold.turns.turns for step in turn.steps}
    return [
        row | ({"turn": turns[branch.step.id]} if branch.step.id in turns else {})
        for branch in fold.branches(only)
        for row in _branch_rows([branch])
    ]


def _branch_rows(branches: list[Branch]) -> Iterator[Json]:
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
        yield from _branch_rows(below)


_VALUES = 4
"""The room of one member, as a number of values of full length."""


def sections(event: Event, limit: int | None = None) -> list[str]:
    """Return a complete event: a head line and lines such as `a.b.c: value`, without empty values.

    With `limit`, a value has at most that many bytes, and a member of the payload four times as
    many. The number of omitted bytes is included."""
    head = f"{event.seq if event.seq is not None else '-'} {event.event_type or event.phase}"
    lines = [visible(f"{head} {event.step_id or ''}".rstrip())]
    facts = {"timestamp": event.timestamp, "id": event.id, "run_id": event.run_id, "agent_id": event.agent_id,
             "caused_by": event.caused_by, "payload": event.payload, "metrics": event.metrics}  # fmt: skip
    for member, leaves in groupby(
        _walk_leaves(facts, ""), lambda leaf: ".".join(leaf[0].split(".", 2)[:2])
    ):
        lines += _render_member(member, leaves, limit)
    return lines


def _render_member(member: str, leaves: Iterable[tuple[str, str]], limit: int | None) -> list[str]:
    """Return the lines of one member that fit, and a line with the number of omitted bytes."""
    lines: list[str] = []
    room, left = (limit or 0) * _VALUES, 0
    for name, value in leaves:
        head, more = truncate_bytes(visible(value), limit)
        text = f"  {visible(name)}: {head}{more}"
        size = len(text.encode()) if limit is not None else 0
        if left or size > room:
            left += size
        else:
            lines.append(text)
            room -= size
    return [*lines, f"  {visible(member)}: … {left:,} bytes more"] if left else lines


def _walk_leaves(value: object, place: str) -> Iterator[tuple[str, str]]:
    match value:
        case dict():
            for key, item in value.items():
                yield from _walk_leaves(item, f"{place}.{key}" if place else str(key))
        case list():
            for number, item in enumerate(value):
                yield from _walk_leaves(item, f"{place}.{number}")
        case bool():
            yield place, str(value).lower()
        case None | "":
            pass
        case _:
            yield place, str(value)
