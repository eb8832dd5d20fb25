"""The history of a log: its runs, steps and open requests, which every view of a run shares.

1. Events may come one by one; the fold is right after each.
2. Steps of the root run are in plan order, those of nested runs in order of starting.
3. A nested run belongs to the step that its `run.started` names. Unknown events change nothing.
4. Items and rounds `step#n` and gates `step@pre0` belong to their step: they are shown under it and not counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote
from typing import Any, Final, NamedTuple

from cogcli.base.step_path import StepPath
from cogcli.declarations.call_records import FallbackUse, WrittenFile
from cogcli.declarations.envelope import ActiveTime, Event
from cogcli.declarations.event_type import Payload
from cogcli.declarations.events import (
    PlanCreated,
    RunStarted,
    RunTerminated,
    StepAnswered,
    StepFinished,
    StepStarted,
)
from cogcli.declarations.governance_events import (
    Approval,
    ApprovalGranted,
    ApprovalRejected,
    ApprovalRequested,
    PolicyDecided,
)
from cogcli.declarations.typed_payload import read_payload
from cogcli.episode.run_history import Branch, LoopHistory, RunHistory, StepHistory, Used, branches
from cogcli.episode.turn_history import AgentHistory

_DEEPEST: Final = 64
"""Levels of nested runs that are shown; ours end far above, a forged log may not end at all."""


class Ask(NamedTuple):
    """One request for a person's yes or no."""

    approval_id: str
    step_id: str
    capability: str
    gate: str
    reason: str
    expires_at: str
    kind: str = ""
    """`gate`, `confirmation` or `escalation`; empty where the log does not say."""
    approver_roles: tuple[str, ...] = ()
    """The roles of which whoever says yes needs one; empty: any."""

    @property
    def name(self) -> str:
        """What an answer calls it: the capability, that of an escalation its gate."""
        return self.capability or self.gate or self.approval_id

    def answer_flags(self, flag: str = "--approve", name: str = "") -> str:
        """What a person types to say yes, or with `--reject` no; under another name where that is given."""
        by = f" --by $USER:{quote(self.approver_roles[0])}" if self.approver_roles else ""
        return f"{flag} {quote(name or self.name)}{by}"


def ask_of(request: Approval) -> Ask:
    """The request of this payload."""
    return Ask(
        approval_id=request.approval_id,
        step_id=request.step_id or "",
        capability=request.capability or "",
        gate=request.gate or "",
        reason=request.reason or "",
        expires_at=request.expires_at or "",
        kind=request.kind or "",
        approver_roles=tuple(request.approver_roles or ()),
    )


class Asks:
    """The requests of a log that nobody answered yet."""

    def __init__(self) -> None:
        self._open: dict[str, Ask] = {}

    def apply(self, payload: Payload) -> None:
        """Note a request, or the answer that closes one."""
        if isinstance(payload, ApprovalGranted | ApprovalRejected):
            self._open.pop(payload.approval_id, None)
        elif isinstance(payload, ApprovalRequested) and payload.approval_id:
            asked = ask_of(payload)
            before = [
                one.approval_id for one in self._open.values() if one.step_id == asked.step_id
            ]
            for other in before:
                del self._open[other]
            self._open[asked.approval_id] = asked

    @property
    def open(self) -> list[Ask]:
        """They, in order of being asked."""
        return list(self._open.values())


class History:
    """Folds events; `root` is the top-level run once its first event was seen."""

    def __init__(self) -> None:
        self.episode_id = ""
        self.trace_id = ""
        self.root: RunHistory | None = None
        self.runs: dict[str, RunHistory] = {}
        self.asks = Asks()
        self.sittings = ActiveTime()
        self.turns = AgentHistory(self.sittings)
        self.last = ""
        self.actions: list[dict[str, Any]] = []
        """The action log of another tool's log: its actions need not belong to a step."""
        self.chained = False
        """Whether the log is one of ours from its first event on: only such a log can be continued with."""

    @property
    def ms(self) -> int | None:
        """Milliseconds that the root run took: as its end measured them, else its active time so far."""
        if self.root is None:
            return None
        return self.root.ms if self.root.ms is not None else self.sittings.milliseconds

    def branches(self, only: str = "") -> list[Branch]:
        """The whole tree, or the branch of the step of this id."""
        found = branches(self.root) if self.root else []
        while only and found and not any(branch.step.id == only for branch in found):
            found = [inner for branch in found for inner in branch.below]
        return [branch for branch in found if not only or branch.step.id == only]

    def grouped(self, only: str = "") -> list[Branch]:
        """As `branches`; the steps of an agent's run below their turns."""
        found = self.branches(only)
        if only or self.root is None or not self.turns.turns:
            return found
        turns = []
        for turn in self.turns.turns:
            below = [branch for branch in found if branch.step.id in turn.steps]
            found = [branch for branch in found if branch.step.id not in turn.steps]
            turns.append(Branch(self.root, turn.step, below))
        return turns + found

    def apply(self, event: Event) -> None:
        """Take the next event of the log into account."""
        self.chained = self.chained or (not self.last and event.seq == 0 and event.phase == "start")
        self.last = event.timestamp or self.last
        self.episode_id = self.episode_id or event.episode_id
        self.trace_id = self.trace_id or event.trace_id or ""
        self.sittings.apply(event)
        payload = read_payload(event)
        id = event.run_id or ""
        run = self.runs.get(id)
        if run is None:
            run = self.runs[id] = RunHistory(id)
            self.root = self.root or run
        if run is self.root:
            self.turns.apply(event, payload)
        match payload:
            case StepStarted():
                self._begin_step(run, event, payload)
            case StepFinished():
                self._end_step(run, event, payload)
            case StepAnswered():
                self._answer_step(run, event, payload)
            case RunStarted():
                self._start_run(run, event, payload)
            case PlanCreated():
                _plan(run, payload)
            case RunTerminated():
                run.ended_at, run.status = event.timestamp, str(payload.status) or "error"
                run.ms = _measured_ms(event)
                run.end = payload
            case PolicyDecided():
                _note_ruling(run, event, payload)
            case _:
                self.asks.apply(payload)

    def _start_run(self, run: RunHistory, event: Event, payload: RunStarted) -> None:
        run.start, run.started_at, run.status = payload, event.timestamp, "running"
        run.skill, run.version = payload.skill.id or payload.task, payload.skill.version or ""
        run.parent = payload.parent_run_id or ""
        parent = self.runs.get(run.parent)
        # A run that has steps keeps its place: no log can make a run an ancestor of itself.
        if (
            parent is None
            or parent is run
            or run.steps
            or not event.step_id
            or parent.depth == _DEEPEST
        ):
            return
        run.depth = parent.depth + 1
        _step(parent, event.step_id).child = run

    def _begin_step(self, run: RunHistory, event: Event, payload: StepStarted) -> None:
        step = self._moved(run, event, payload, payload.step_status)
        if step is None:
            return
        step.uses = payload.uses or step.uses
        step.binding = payload.binding or step.binding
        step.reads = payload.reads or step.reads
        step.started_at = step.started_at or event.timestamp
        step.input = payload.input
        step.effect = _effect_of(payload) or step.effect
        step.overlaps = step.overlaps or _overlaps(run, step)
        run.running[step.id] = step
        parts = payload.items if payload.targets is None else len(payload.targets)
        if parts is not None and step.loop is None:
            step.loop = LoopHistory(parts or None, self.sittings.milliseconds)

    def _answer_step(self, run: RunHistory, event: Event, payload: StepAnswered) -> None:
        if id := payload.step_id or event.step_id:
            _step(run, id).answered = True

    def _end_step(self, run: RunHistory, event: Event, payload: StepFinished) -> None:
        step = self._moved(run, event, payload, payload.step_status)
        if step is None:
            return
        step.uses = payload.uses or step.uses
        step.reads = payload.reads or step.reads
        if payload.step_status != "pending":
            _finish(step, event, payload)

    def _moved(
        self, run: RunHistory, event: Event, payload: StepStarted | StepFinished, status: str
    ) -> StepHistory | None:
        """The step of an event with its new status; None where the event names no step or no status."""
        id = payload.step_id or event.step_id
        if not id or not status:
            return None
        step = _step(run, id)
        self._count(run, step, status)
        step.status = status
        return step

    def _count(self, run: RunHistory, step: StepHistory, status: str) -> None:
        """Note the new status of a step among those that run, and of an item, a round or a target in its loop."""
        run.running.pop(step.id, None)
        path = StepPath(step.id)
        if path.is_step or path.in_call or (owner := run.steps.get(path.owner)) is None:
            return
        if owner.loop is None:
            owner.loop = LoopHistory(None, self.sittings.milliseconds)
        owner.loop.move(step.status, status, self.sittings.milliseconds)


def history_of(events: Iterable[Event]) -> History:
    """The runs and steps of a whole log."""
    folded = History()
    for event in events:
        folded.apply(event)
    return folded


def _step(run: RunHistory, id: str, key: str = "") -> StepHistory:
    """The step, made where it is not known yet; `key` keeps steps of one id apart."""
    return run.steps.get(key or id) or run.add(key or id, id)


def _effect_of(payload: StepStarted) -> str:
    """What the call of a step may do, as its intent says; empty in logs that say only whether it does."""
    return payload.side_effects if isinstance(payload.side_effects, str) else ""


def _finish(step: StepHistory, event: Event, payload: StepFinished) -> None:
    step.ended_at = event.timestamp
    step.reason, step.detail = payload.reason or "", payload.detail or ""
    step.reused = isinstance(payload.reused_from, dict)
    step.tool = "" if payload.tool == payload.uses else payload.tool or ""  # shown once
    step.output = payload.output
    step.attempts = payload.attempts or []
    used = isinstance(payload.fallback, FallbackUse) and payload.fallback.fallback_used
    last = step.attempts[-1] if step.attempts else None
    step.fallback = last.binding_id if used and last and last.status == "success" else ""
    step.binding = step.fallback or step.binding
    step.error = payload.error
    step.writes = [write.target for write in payload.writes if write.target]
    step.files = [each for each in payload.result_artifacts if isinstance(each, WrittenFile)]
    step.ms = _measured_ms(event) if payload.latency_ms is None else payload.latency_ms
    if payload.usage is not None:
        step.used = Used.of(payload.usage)
        tokens = step.used.tokens_in, step.used.tokens_out
        step.tokens = tokens if any(tokens) and not step.child else None


def _note_ruling(run: RunHistory, event: Event, payload: PolicyDecided) -> None:
    """Note what a policy said of the call of a step, unless it simply allowed it."""
    verdict = payload.verdict or ""
    if event.step_id and (verdict not in ("", "allow") or payload.decision == "audit"):
        words = [verdict, payload.gate, f"by {payload.rule or payload.reason}"]
        words += [] if payload.enforced else ["not enforced"]
        _step(run, event.step_id).ruling = " ".join(word for word in words if word)


def _plan(run: RunHistory, payload: PlanCreated) -> None:
    planned: set[str] = set()
    for number, record in enumerate(payload.step_records):
        if record.id:
            step = _step(run, record.id, f"{record.id}\n{number}" if record.id in planned else "")
            planned.add(record.id)
            if step.status == "pending":
                step.status = record.status or "pending"
            step.uses = record.uses or record.description
            step.depends_on = record.depends_on


def _overlaps(run: RunHistory, step: StepHistory) -> bool:
    """Whether another step runs meanwhile: not one that this is a part of, nor a part of it."""
    return any(
        not StepPath(step.id).within(other.id) and not StepPath(other.id).within(step.id)
        for other in run.running.values()
    )


def _measured_ms(event: Event) -> int | None:
    """Milliseconds that something took, as its closing event measured them."""
    value: Any = (event.metrics or {}).get("duration_ms")
    return round(value) if type(value) in (int, float) else None
