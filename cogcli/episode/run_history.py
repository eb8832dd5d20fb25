"""A run of a history: its steps, and what is below each step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from cogcli.base.step_path import StepPath
from cogcli.declarations.call_records import AttemptMade, RunError, StepError, Usage, WrittenFile
from cogcli.declarations.events import RunStarted, RunTerminated


class Used(NamedTuple):
    """Answered calls, and the tokens that they took."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    @classmethod
    def of(cls, usage: Usage) -> Used:
        """What the `usage` of an event says."""
        return cls(usage.llm_calls + usage.tool_calls, usage.tokens_in, usage.tokens_out)

    def plus(self, other: Used) -> Used:
        """Both together."""
        return Used(*(a + b for a, b in zip(self, other, strict=True)))


class LoopHistory:
    """The items, rounds or targets of one step, counted as events come."""

    __slots__ = ("counts", "ended_ms", "started_ms", "total")

    def __init__(self, total: int | None, now: int | None) -> None:
        self.total = total
        """How many there will be; None where only the end will tell."""
        self.counts: dict[str, int] = {}
        """How many have a status."""
        self.started_ms = self.ended_ms = now
        """The active time of the run when the loop began, and when a part of it ended last."""

    def move(self, before: str, after: str, now: int | None) -> None:
        """Note that a part has another status."""
        if self.counts.get(before):
            self.counts[before] -= 1
        self.counts[after] = self.counts.get(after, 0) + 1
        if after != "running":
            self.ended_ms = now

    @property
    def ended(self) -> int:
        """How many have ended."""
        return sum(self.counts.values()) - self.counts.get("running", 0)

    @property
    def left_ms(self) -> int | None:
        """How long the rest will take if it takes as long as what has ended; None where nothing tells."""
        if self.total is None or self.started_ms is None or self.ended_ms is None or not self.ended:
            return None
        return (self.ended_ms - self.started_ms) * max(0, self.total - self.ended) // self.ended


class StepHistory:
    """One step as far as it is known."""

    __slots__ = (
        "answered", "attempts", "binding", "child", "depends_on", "detail", "effect", "ended_at", "error", "fallback",
        "files", "id", "input", "loop", "ms", "name", "output", "overlaps", "reads", "reason", "reused", "ruling",
        "started_at", "status", "tokens", "tool", "used", "uses", "writes",
    )  # fmt: skip

    def __init__(self, id: str, name: str) -> None:
        self.id = id
        self.name = name
        self.uses = ""
        self.status = "pending"
        self.reason = ""
        self.detail = ""
        self.ruling = ""
        """What a policy said of its call, unless it simply allowed it."""
        self.depends_on: list[str] = []
        self.started_at = ""
        self.ended_at = ""
        self.ms: int | None = None
        self.effect = ""
        """What its call may do, as its intent says: `none`, `idempotent`, `effect`."""
        self.answered = False
        """Whether its result was on disk before it ended."""
        self.binding = ""
        self.fallback = ""
        """The binding that answered instead of the first of its chain, if one did."""
        self.tool = ""
        self.reads: list[str] = []
        self.writes: list[str] = []
        self.files: list[WrittenFile] = []
        """The files that it wrote."""
        self.error: StepError | None = None
        self.tokens: tuple[int, int] | None = None
        self.used: Used | None = None
        """What it used with all below it; None before it ended, or where the log does not say."""
        self.reused = False
        """Taken over from another episode: this log does not hold its input."""
        self.input: Any = None
        self.output: Any = None
        self.attempts: list[AttemptMade] = []
        self.overlaps = False
        self.loop: LoopHistory | None = None
        self.child: RunHistory | None = None

    @property
    def notices(self) -> list[str]:
        """What its services did besides answering, each notice once: demands that were refused, noise."""
        notices = (notice for attempt in self.attempts for notice in attempt.notices)
        return list(dict.fromkeys(notices))


class RunHistory:
    """One run: the root, or a nested skill's."""

    __slots__ = (
        "_early", "_own", "depth", "end", "ended_at", "id", "ms", "parent", "running", "skill", "start", "started_at",
        "status", "steps", "version",
    )  # fmt: skip

    def __init__(self, id: str) -> None:
        self.id = id
        self.parent = ""
        self.skill = ""
        self.version = ""
        self.status = "pending"
        self.started_at = ""
        self.ended_at = ""
        self.ms: int | None = None
        self.start: RunStarted | None = None
        self.end: RunTerminated | None = None
        self.steps: dict[str, StepHistory] = {}
        """By id; `add` is the only one that adds to it."""
        self.running: dict[str, StepHistory] = {}
        """Those of them that have begun and not ended."""
        self.depth = 0
        self._own: list[StepHistory] = []
        self._early = False

    @property
    def error(self) -> RunError | None:
        """Why it did not end well."""
        return self.end.error if self.end else None

    def add(self, key: str, id: str) -> StepHistory:
        """A new step under this key."""
        path = StepPath(id)
        step = self.steps[key] = StepHistory(id, path.name)
        if not path.owner:
            self._own.append(step)
        elif path.owner not in self.steps:
            self._early = True  # only a log of another tool has parts before their step
        return step

    @property
    def own(self) -> list[StepHistory]:
        """The steps themselves, without their items, rounds and gates."""
        if self._early:
            return [step for step in self.steps.values() if not self.owner(step)]
        return self._own

    def owner(self, step: StepHistory) -> str:
        """The id of the step that an item, a round or a gate belongs to; empty for a step itself."""
        id = StepPath(step.id).owner
        return id if id in self.steps else ""

    def count(self, status: str) -> int:
        """How many of its own steps have a status."""
        return sum(step.status == status for step in self.own)


class Branch(NamedTuple):
    """A step of a run, and what is shown under it."""

    run: RunHistory
    step: StepHistory
    below: list[Branch]


def branches(run: RunHistory) -> list[Branch]:
    """The steps of a run in order, each with its gates, items, rounds and the steps of its nested run below it."""
    parts: dict[str, list[StepHistory]] = {}
    for step in run.steps.values():
        parts.setdefault(run.owner(step), []).append(step)

    def branch(step: StepHistory) -> Branch:
        below = [branch(part) for part in parts.get(step.id, ())]
        return Branch(run, step, below + (branches(step.child) if step.child else []))

    return [branch(step) for step in parts.get("", ())]


def total_usage(branches: Iterable[Branch]) -> Used:
    """What steps used, each call counted once: a step's sum includes its gates, items, rounds and nested run, which
    count by themselves only where it has not ended."""
    total = Used()
    for _, step, below in branches:
        one = step.used or total_usage(below)
        total = total.plus(one)
    return total
