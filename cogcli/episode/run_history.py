"""One run of a history: its steps, and the branches below each step."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.step_path import StepPath
from cogcli.declarations.call_records import (
    AttemptMade,
    FallbackUse,
    RunError,
    StepError,
    Usage,
    WrittenFile,
)
from cogcli.declarations.events import RunStarted, RunTerminated, StepFinished, StepStarted
from cogcli.declarations.reading import read_record
from cogcli.declarations.run_start import RecordedPolicy
from cogcli.declarations.value_types import Json


class CallUsage(NamedTuple):
    """The number of answered calls, and the tokens that they used."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    @classmethod
    def of(cls, usage: Usage) -> CallUsage:
        """Return the sums of the `usage` of an event."""
        return cls(usage.llm_calls + usage.tool_calls, usage.tokens_in, usage.tokens_out)

    def plus(self, other: CallUsage) -> CallUsage:
        """Return the sum of both."""
        return CallUsage(*(a + b for a, b in zip(self, other, strict=True)))


class LoopHistory:
    """The items, rounds or targets of one step, counted event by event."""

    __slots__ = ("counts", "ended_ms", "started_ms", "total")

    def __init__(self, total: int | None, now: int | None) -> None:
        self.total = total
        """The total number, or None if only the end shows it."""
        self.counts: Counter[str] = Counter()
        """The number of parts by status."""
        self.started_ms = self.ended_ms = now
        """The active time of the run when the loop began, and when a part last ended."""

    def move(self, before: str, after: str, now: int | None) -> None:
        """Count a part under its new status."""
        if self.counts[before]:
            self.counts[before] -= 1
        self.counts[after] += 1
        if after != "running":
            self.ended_ms = now

    @property
    def done(self) -> int:
        """The number of parts that are done."""
        return self.counts["done"]

    @property
    def ended(self) -> int:
        """The number of ended parts."""
        return self.counts.total() - self.counts["running"]

    @property
    def left_ms(self) -> int | None:
        """An estimate of the remaining time, from the parts that have ended; None without any."""
        if self.total is None or self.started_ms is None or self.ended_ms is None or not self.ended:
            return None
        return (self.ended_ms - self.started_ms) * max(0, self.total - self.ended) // self.ended


class StepHistory:
    """One step, after the events read so far."""

    __slots__ = (
        "answered", "approval", "attempts", "binding", "child", "depends_on", "detail", "effect", "ended_at", "error",
        "fallback", "files", "id", "input", "loop", "ms", "name", "output", "overlaps", "reads", "reason", "reused",
        "ruling", "started_at", "status", "tokens", "tool", "used", "uses", "writes",
    )  # fmt: skip

    def __init__(self, id: str, name: str) -> None:
        self.id = id
        self.name = name
        self.uses = ""
        self.status = "pending"
        self.reason = ""
        self.detail = ""
        self.ruling = ""
        """The ruling of a policy on its call, unless it only allowed the call."""
        self.approval = ""
        """The approval of an earlier run that its call reused."""
        self.depends_on: list[str] = []
        self.started_at = ""
        self.ended_at = ""
        self.ms: int | None = None
        self.effect = ""
        """The effect class of its call in `step.started`: `none`, `idempotent` or `effect`."""
        self.answered = False
        """Whether its result was on disk before it ended."""
        self.binding = ""
        self.fallback = ""
        """The binding that answered instead of the first of its chain. Empty if none did."""
        self.tool = ""
        self.reads: list[str] = []
        self.writes: list[str] = []
        self.files: list[WrittenFile] = []
        """The files that it wrote."""
        self.error: StepError | None = None
        self.tokens: tuple[int, int] | None = None
        self.used: CallUsage | None = None
        """Its use, with that of its parts; None before it ended, or if the log has none."""
        self.reused = False
        """Whether its result comes from another episode, so that this log lacks its input."""
        self.input: object = None
        self.output: object = None
        self.attempts: list[AttemptMade] = []
        self.overlaps = False
        self.loop: LoopHistory | None = None
        self.child: RunHistory | None = None

    def begin(self, at: str, payload: StepStarted) -> None:
        """Record the start of the step."""
        self.uses = payload.uses or self.uses
        self.binding = payload.binding or self.binding
        self.reads = payload.reads or self.reads
        self.started_at = self.started_at or at
        self.input = payload.input
        # Older logs hold only whether the call has an effect, as a boolean.
        if isinstance(payload.side_effects, str):
            self.effect = payload.side_effects or self.effect

    def finish(self, at: str, payload: StepFinished, measured_ms: int | None) -> None:
        """Record the end of the step. `measured_ms` is its duration if the payload has none."""
        self.ended_at = at
        self.reason, self.detail = payload.reason or "", payload.detail or ""
        self.reused = isinstance(payload.reused_from, dict)
        self.tool = "" if payload.tool == payload.uses else payload.tool or ""  # shown once
        self.output = payload.output
        self.error = payload.error
        self.writes = [write.target for write in payload.writes if write.target]
        self.files = [each for each in payload.result_artifacts if isinstance(each, WrittenFile)]
        self.ms = measured_ms if payload.latency_ms is None else payload.latency_ms
        self._add_attempts(payload)
        if payload.usage is not None:
            self._add_usage(CallUsage.of(payload.usage))

    def _add_usage(self, used: CallUsage) -> None:
        tokens = used.tokens_in, used.tokens_out
        self.used = used
        self.tokens = tokens if any(tokens) and not self.child else None

    def _add_attempts(self, payload: StepFinished) -> None:
        self.attempts = payload.attempts or []
        fallback = payload.fallback
        self.fallback = ""
        if isinstance(fallback, FallbackUse) and fallback.fallback_used and self.attempts:
            last = self.attempts[-1]
            self.fallback = last.binding_id if last.status == "success" else ""
        self.binding = self.fallback or self.binding

    @property
    def notices(self) -> list[str]:
        """The notices of its services, each once: refused demands, noise."""
        notices = (notice for attempt in self.attempts for notice in attempt.notices)
        return list(dict.fromkeys(notices))


class RunHistory:
    """One run: the root run, or the run of a nested skill."""

    __slots__ = (
        "_early", "_own", "answers", "depth", "end", "ended_at", "id", "ms", "parent", "running", "skill", "start",
        "started_at", "status", "steps", "version",
    )  # fmt: skip

    def __init__(self, id: str) -> None:
        self.id = id
        self.answers: dict[str, list[str]] = {}
        """People's answers to the requests about the step's call, with the approvers and the evidence of their
        identity, by step.
        """
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
        """By id. Only `add` adds to it."""
        self.running: dict[str, StepHistory] = {}
        """The steps that have begun and not ended."""
        self.depth = 0
        self._own: list[StepHistory] = []
        self._early = False

    @property
    def is_shadow(self) -> bool:
        """Whether no rule of the run's pack was enforced."""
        return self.start is not None and read_record(RecordedPolicy, self.start.policy).shadow

    @property
    def title(self) -> str:
        """The skill with its version, as far as they are known."""
        return f"{self.skill} {self.version}".strip()

    @property
    def inputs(self) -> Json:
        """The inputs of the run."""
        return self.start.inputs if self.start else {}

    @property
    def outputs(self) -> Json:
        """The outputs of the run; empty before its end."""
        return self.end.outputs if self.end else {}

    @property
    def error(self) -> RunError | None:
        """The error of the run."""
        return self.end.error if self.end else None

    def add(self, key: str, id: str) -> StepHistory:
        """Add and return a new step under this key."""
        path = StepPath(id)
        step = self.steps[key] = StepHistory(id, path.name)
        if not path.owner:
            self._own.append(step)
        elif path.owner not in self.steps:
            self._early = True  # only logs of other tools have parts before their step
        return step

    @property
    def own(self) -> list[StepHistory]:
        """The steps themselves, without their items, rounds and gates."""
        if self._early:
            return [step for step in self.steps.values() if not self.owner(step)]
        return self._own

    def owner(self, step: StepHistory) -> str:
        """Return the id of the step that contains an item, a round or a gate. Empty for a step itself."""
        id = StepPath(step.id).owner
        return id if id in self.steps else ""

    def count(self, status: str) -> int:
        """Return the number of the run's own steps with a status."""
        return sum(step.status == status for step in self.own)


class Branch(NamedTuple):
    """A step of a run, and the branches below it."""

    run: RunHistory
    step: StepHistory
    below: list[Branch]


def branches(run: RunHistory) -> list[Branch]:
    """Return the steps of a run in order, each with its gates, items, rounds and the steps of its nested run
    below it.
    """
    parts: defaultdict[str, list[StepHistory]] = defaultdict(list)
    for step in run.steps.values():
        parts[run.owner(step)].append(step)

    def branch(step: StepHistory) -> Branch:
        below = [branch(part) for part in parts[step.id]]
        return Branch(run, step, below + (branches(step.child) if step.child else []))

    return [branch(step) for step in parts[""]]


def total_usage(branches: Iterable[Branch]) -> CallUsage:
    """Return the use of steps, each call counted once.

    The use of a step includes its gates, items, rounds and nested run. These count by themselves until it has
    ended.
    """
    total = CallUsage()
    for _, step, below in branches:
        one = step.used or total_usage(below)
        total = total.plus(one)
    return total
