"""Runs and steps as a log tells them: the fold that every view of a run shares.

1. Events may come one by one; the fold is right after each.
2. Steps of the root run stand in plan order, those of nested runs in order of starting.
3. A nested run belongs to the step that its `run.started` names. Unknown events change nothing.
4. Items and rounds `step#n` and gates `step@pre0` belong to their step: they are shown under it and not counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from cogcli.core.step_path import StepPath
from cogcli.events.active_time import Sittings
from cogcli.events.envelope import Event
from cogcli.report.unfinished_runs import Asks

_DEEPEST: Final = 64
"""Levels of nested runs that are shown; ours end far above, a forged log may not end at all."""


class Used(NamedTuple):
    """Answered calls, and the tokens that they took."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


class StepView:
    """One step as far as it is known."""

    __slots__ = (
        "answered", "attempts", "binding", "child", "depends_on", "detail", "effect", "ended_at", "error", "fallback",
        "id", "input", "ms", "name", "output", "overlaps", "reads", "reason", "reused", "started_at", "status",
        "tokens", "tool", "used", "uses", "writes",
    )  # fmt: skip

    def __init__(self, id: str, name: str) -> None:
        self.id = id
        self.name = name
        self.uses = ""
        self.status = "pending"
        self.reason = ""
        self.detail = ""
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
        """The binding that answered in place of the first of its chain, if one did."""
        self.tool = ""
        self.reads: list[str] = []
        self.writes: list[str] = []
        self.error: dict[str, Any] | None = None
        self.tokens: tuple[int, int] | None = None
        self.used: Used | None = None
        """What it used with all below it; None as long as it has not told."""
        self.reused = False
        """Taken over from another episode: this one does not say what it was given."""
        self.input: Any = None
        self.output: Any = None
        self.attempts: list[dict[str, Any]] = []
        self.overlaps = False
        self.child: RunView | None = None

    @property
    def notices(self) -> list[str]:
        """What its services did besides answering, each thing once: demands that were refused, noise."""
        told = [attempt.get("notices") for attempt in self.attempts]
        return list(dict.fromkeys(word for words in told for word in _words(words)))


class RunView:
    """One run: the root, or a nested skill's."""

    __slots__ = (
        "_own",
        "_seen",
        "depth",
        "ended_at",
        "error",
        "id",
        "ms",
        "parent",
        "skill",
        "started_at",
        "status",
        "steps",
        "version",
    )

    def __init__(self, id: str) -> None:
        self.id = id
        self.parent = ""
        self.skill = ""
        self.version = ""
        self.status = "pending"
        self.started_at = ""
        self.ended_at = ""
        self.ms: int | None = None
        self.error: dict[str, Any] | None = None
        self.steps: dict[str, StepView] = {}
        self.depth = 0
        self._own: list[StepView] = []
        self._seen = 0

    @property
    def own(self) -> list[StepView]:
        """The steps themselves, without their items, rounds and gates."""
        if self._seen != len(self.steps):
            self._seen = len(self.steps)
            self._own = [step for step in self.steps.values() if not self.owner(step)]
        return self._own

    def owner(self, step: StepView) -> str:
        """The id of the step that an item, a round or a gate belongs to; empty for a step itself."""
        id = StepPath(step.id).owner
        return id if id in self.steps else ""

    def count(self, status: str) -> int:
        """How many of its own steps have a status."""
        return sum(step.status == status for step in self.own)


class Branch(NamedTuple):
    """A step of a run, and what is shown under it."""

    run: RunView
    step: StepView
    below: list[Branch]


def branches(run: RunView) -> list[Branch]:
    """The steps of a run in order, each with its gates, items, rounds and the steps of its nested run below it."""
    parts: dict[str, list[StepView]] = {}
    for step in run.steps.values():
        parts.setdefault(run.owner(step), []).append(step)

    def branch(step: StepView) -> Branch:
        below = [branch(part) for part in parts.get(step.id, ())]
        return Branch(run, step, below + (branches(step.child) if step.child else []))

    return [branch(step) for step in parts.get("", ())]


class RunFold:
    """Folds events; `root` is the top-level run once its first event was seen."""

    def __init__(self) -> None:
        self.episode_id = ""
        self.trace_id = ""
        self.root: RunView | None = None
        self.runs: dict[str, RunView] = {}
        self.asks = Asks()
        self.sittings = Sittings()
        self.last = ""
        self.actions: list[dict[str, Any]] = []
        """What was done, where another tool's log tells it: its actions need not belong to a step."""
        self.chained = False
        """Whether the log is one of ours from its first event on: only such a log can be gone on with."""

    @property
    def ms(self) -> int | None:
        """How long the root run was under way: in all, as its end tells, or so far."""
        if self.root is None:
            return None
        return self.root.ms if self.root.ms is not None else self.sittings.milliseconds

    def branches(self, only: str = "") -> list[Branch]:
        """The whole tree, or the branch of the step of this id."""
        found = branches(self.root) if self.root else []
        while only and found and not any(branch.step.id == only for branch in found):
            found = [inner for branch in found for inner in branch.below]
        return [branch for branch in found if not only or branch.step.id == only]

    def add(self, event: Event) -> None:
        """Take one event."""
        self.chained = self.chained or (not self.last and event.seq == 0 and event.phase == "start")
        self.last = event.timestamp or self.last
        self.episode_id = self.episode_id or event.episode_id
        self.trace_id = self.trace_id or event.trace_id or ""
        self.sittings.apply(event)
        payload = event.payload if isinstance(event.payload, dict) else {}
        run = self._run(event.run_id or "", payload)
        if event.phase == "start":
            self._start(run, event, payload)
        elif event.phase == "plan":
            _plan(run, payload)
        elif event.phase == "terminate":
            _end(run, event, payload)
        elif event.phase == "act":
            self._act(run, event, payload)
        else:
            self.asks.add(event, payload)

    def _run(self, id: str, payload: dict[str, Any]) -> RunView:
        run = self.runs.get(id)
        if run is None:
            run = self.runs[id] = RunView(id)
            self.root = self.root or run
        return run

    def _start(self, run: RunView, event: Event, payload: dict[str, Any]) -> None:
        run.started_at, run.status = event.timestamp, "running"
        skill = payload.get("skill")
        skill = skill if isinstance(skill, dict) else {"id": skill or payload.get("task")}
        run.skill, run.version = _word(skill.get("id")), _word(skill.get("version"))
        run.parent = _word(payload.get("parent_run_id"))
        parent = self.runs.get(run.parent)
        # Whoever has steps already hangs where it hangs: no log can make a run an ancestor of itself.
        if parent is None or parent is run or run.steps or not event.step_id or parent.depth == _DEEPEST:
            return
        run.depth = parent.depth + 1
        _step(parent, event.step_id).child = run

    def _act(self, run: RunView, event: Event, payload: dict[str, Any]) -> None:
        id = payload.get("step_id") or event.step_id
        if isinstance(id, str) and event.event_type == "step.answered":
            _step(run, id).answered = True
        if not isinstance(id, str) or not isinstance(status := payload.get("step_status"), str):
            return
        step = _step(run, id)
        step.status = status
        step.uses = _word(payload.get("uses")) or step.uses
        step.binding = _word(payload.get("binding")) or step.binding
        step.reads = _words(payload.get("reads")) or step.reads
        if status == "running":
            step.started_at = step.started_at or event.timestamp
            step.input = payload.get("input")
            step.effect = _word(payload.get("side_effects")) or step.effect
            step.overlaps = step.overlaps or _overlaps(run, step)
        elif status != "pending":
            self._finish(step, event, payload)

    def _finish(self, step: StepView, event: Event, payload: dict[str, Any]) -> None:
        step.ended_at = event.timestamp
        step.reason, step.detail = _word(payload.get("reason")), _word(payload.get("detail"))
        step.reused = isinstance(payload.get("reused_from"), dict)
        step.tool = _word(payload.get("tool"))
        step.output = payload.get("output")
        attempts = payload.get("attempts")
        step.attempts = [a for a in attempts if isinstance(a, dict)] if isinstance(attempts, list) else []
        step.fallback = _fallback(payload.get("fallback"), step.attempts)
        step.binding = step.fallback or step.binding
        error = payload.get("error")
        step.error = error if isinstance(error, dict) else None
        writes = payload.get("writes")
        step.writes = _words(
            [w.get("target") for w in writes if isinstance(w, dict)] if isinstance(writes, list) else []
        )
        step.ms = _milliseconds(payload.get("latency_ms"), event.metrics)
        if isinstance(usage := payload.get("usage"), dict):
            step.used = _used(usage)
            tokens = step.used.tokens_in, step.used.tokens_out
            step.tokens = tokens if any(tokens) and not step.child else None


def total_usage(branches: Iterable[Branch]) -> Used:
    """What steps used, each call counted once: a step tells it with its gates, items, rounds and nested run, and
    these count by themselves only where it has not ended."""
    total = Used()
    for _, step, below in branches:
        one = step.used or total_usage(below)
        total = Used(*(a + b for a, b in zip(total, one, strict=True)))
    return total


def _used(usage: dict[str, Any]) -> Used:
    calls = _count(usage.get("llm_calls")) + _count(usage.get("tool_calls"))
    return Used(calls, _count(usage.get("tokens_in")), _count(usage.get("tokens_out")))


def fold(events: Iterable[Event]) -> RunFold:
    """The runs and steps of a whole log."""
    folded = RunFold()
    for event in events:
        folded.add(event)
    return folded


def _step(run: RunView, id: str, key: str = "") -> StepView:
    """The step, made where it is not known yet; `key` tells steps of one id apart."""
    step = run.steps.get(key or id)
    if step is None:
        step = run.steps[key or id] = StepView(id, StepPath(id).name)
    return step


def _plan(run: RunView, payload: dict[str, Any]) -> None:
    records = payload.get("step_records")
    planned: set[str] = set()
    for number, record in enumerate(records if isinstance(records, list) else ()):
        if isinstance(record, dict) and isinstance(id := record.get("id"), str):
            step = _step(run, id, f"{id}\n{number}" if id in planned else "")
            planned.add(id)
            if step.status == "pending":
                step.status = _word(record.get("status")) or "pending"
            step.uses = _word(record.get("uses")) or _word(record.get("description"))
            step.depends_on = _words(record.get("depends_on"))


def _end(run: RunView, event: Event, payload: dict[str, Any]) -> None:
    run.ended_at, run.status = event.timestamp, _word(payload.get("status")) or "error"
    run.ms = _milliseconds(None, event.metrics)
    error = payload.get("error")
    run.error = error if isinstance(error, dict) else None


def _fallback(told: Any, attempts: list[dict[str, Any]]) -> str:
    """The binding that a fallback's answer came through."""
    used = isinstance(told, dict) and told.get("fallback_used") is True
    last = attempts[-1] if attempts else {}
    return _word(last.get("binding_id")) if used and last.get("status") == "success" else ""


def _overlaps(run: RunView, step: StepView) -> bool:
    """Whether another step runs meanwhile: not one that this is a part of, nor a part of it."""
    return any(
        other.status == "running"
        and not StepPath(step.id).within(other.id)
        and not StepPath(other.id).within(step.id)
        for other in run.steps.values()
    )


def _milliseconds(own: Any, metrics: dict[str, Any] | None) -> int | None:
    value = own if own is not None else (metrics or {}).get("duration_ms")
    return round(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _words(value: Any) -> list[str]:
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else []
