"""The fold of a log to its runs, steps and open requests, which every view of a run shares.

1. Events may come one by one; the fold is right after each.
2. Steps of the root run are in plan order, those of nested runs in order of starting.
3. A nested run belongs to the step that its `run.started` names. Unknown events change nothing.
4. Items and rounds `step#n` and gates `step@pre0` belong to their step: they are shown under it and not counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote
from typing import Any, Final, NamedTuple

from cogcli.core.jsonvalue import list_of, object_of, text_of
from cogcli.core.step_path import StepPath
from cogcli.declarations.events import row_of
from cogcli.events.envelope import ActiveTime, Event
from cogcli.report.run_view import Branch, LoopView, RunView, StepView, Used, branches, count_in, texts_of
from cogcli.report.turns import TurnFold

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


def ask_of(payload: dict[str, Any]) -> Ask:
    """The request of this payload."""
    texts = {name: text_of(payload.get(name)) for name in Ask._fields[:-1]}
    return Ask(**texts, approver_roles=tuple(texts_of(payload.get("approver_roles"))))


class Asks:
    """The requests of a log that nobody answered yet."""

    def __init__(self) -> None:
        self._open: dict[str, Ask] = {}

    def apply(self, event: Event, payload: dict[str, Any]) -> None:
        """Note a request, or the answer that closes one."""
        id = text_of(payload.get("approval_id"))
        if row_of(event.event_type).resolves:
            self._open.pop(id, None)
        elif event.event_type == "approval.requested" and id:
            asked = ask_of(payload)
            before = [one.approval_id for one in self._open.values() if one.step_id == asked.step_id]
            for other in before:
                del self._open[other]
            self._open[id] = asked

    @property
    def open(self) -> list[Ask]:
        """They, in order of being asked."""
        return list(self._open.values())


class RunFold:
    """Folds events; `root` is the top-level run once its first event was seen."""

    def __init__(self) -> None:
        self.episode_id = ""
        self.trace_id = ""
        self.root: RunView | None = None
        self.runs: dict[str, RunView] = {}
        self.asks = Asks()
        self.sittings = ActiveTime()
        self.turns = TurnFold(self.sittings)
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
        payload = object_of(event.payload)
        id = event.run_id or ""
        run = self.runs.get(id)
        if run is None:
            run = self.runs[id] = RunView(id)
            self.root = self.root or run
        if run is self.root:
            self.turns.apply(event, payload)
        if event.phase == "start":
            self._start(run, event, payload)
        elif event.phase == "plan":
            _plan(run, payload)
        elif event.phase == "terminate":
            run.ended_at, run.status = event.timestamp, text_of(payload.get("status")) or "error"
            run.ms = _milliseconds(None, event.metrics)
            error = payload.get("error")
            run.error = error if isinstance(error, dict) else None
        elif event.phase == "act":
            self._act(run, event, payload)
        elif event.event_type == "policy.decided":
            self._decided(run, event, payload)
        else:
            self.asks.apply(event, payload)

    def _decided(self, run: RunView, event: Event, payload: dict[str, Any]) -> None:
        """Note what a policy said of the call of a step, unless it simply allowed it."""
        verdict = text_of(payload.get("verdict"))
        if event.step_id and (verdict not in ("", "allow") or payload.get("decision") == "audit"):
            words = [
                verdict,
                text_of(payload.get("gate")),
                f"by {payload.get('rule') or payload.get('reason')}",
            ]
            words += ["not enforced"] if payload.get("enforced") is False else []
            _step(run, event.step_id).ruling = " ".join(word for word in words if word)

    def _start(self, run: RunView, event: Event, payload: dict[str, Any]) -> None:
        run.started_at, run.status = event.timestamp, "running"
        skill = payload.get("skill")
        skill = skill if isinstance(skill, dict) else {"id": skill or payload.get("task")}
        run.skill, run.version = text_of(skill.get("id")), text_of(skill.get("version"))
        run.parent = text_of(payload.get("parent_run_id"))
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
        self._count(run, step, status)
        step.status = status
        step.uses = text_of(payload.get("uses")) or step.uses
        step.binding = text_of(payload.get("binding")) or step.binding
        step.reads = texts_of(payload.get("reads")) or step.reads
        if status == "running":
            step.started_at = step.started_at or event.timestamp
            step.input = payload.get("input")
            step.effect = text_of(payload.get("side_effects")) or step.effect
            step.overlaps = step.overlaps or _overlaps(run, step)
            run.running[id] = step
            if (parts := _parts_of(payload)) is not None and step.loop is None:
                step.loop = LoopView(parts, self.sittings.milliseconds)
        elif status != "pending":
            self._finish(step, event, payload)

    def _count(self, run: RunView, step: StepView, status: str) -> None:
        """Note the new status of a step among those that run, and of an item, a round or a target in its loop."""
        run.running.pop(step.id, None)
        path = StepPath(step.id)
        if path.is_step or path.in_call or (owner := run.steps.get(path.owner)) is None:
            return
        if owner.loop is None:
            owner.loop = LoopView(None, self.sittings.milliseconds)
        owner.loop.move(step.status, status, self.sittings.milliseconds)

    def _finish(self, step: StepView, event: Event, payload: dict[str, Any]) -> None:
        step.ended_at = event.timestamp
        step.reason, step.detail = text_of(payload.get("reason")), text_of(payload.get("detail"))
        step.reused = isinstance(payload.get("reused_from"), dict)
        tool = text_of(payload.get("tool"))
        step.tool = "" if tool == payload.get("uses") else tool  # shown once
        step.output = payload.get("output")
        step.attempts = [a for a in list_of(payload.get("attempts")) if isinstance(a, dict)]
        used = object_of(payload.get("fallback")).get("fallback_used") is True
        last = step.attempts[-1] if step.attempts else {}
        step.fallback = text_of(last.get("binding_id")) if used and last.get("status") == "success" else ""
        step.binding = step.fallback or step.binding
        error = payload.get("error")
        step.error = error if isinstance(error, dict) else None
        writes = list_of(payload.get("writes"))
        step.writes = texts_of([write.get("target") for write in writes if isinstance(write, dict)])
        step.ms = _milliseconds(payload.get("latency_ms"), event.metrics)
        if isinstance(usage := payload.get("usage"), dict):
            step.used = Used.of(usage)
            tokens = step.used.tokens_in, step.used.tokens_out
            step.tokens = tokens if any(tokens) and not step.child else None


def fold(events: Iterable[Event]) -> RunFold:
    """The runs and steps of a whole log."""
    folded = RunFold()
    for event in events:
        folded.apply(event)
    return folded


def _step(run: RunView, id: str, key: str = "") -> StepView:
    """The step, made where it is not known yet; `key` keeps steps of one id apart."""
    return run.steps.get(key or id) or run.add(key or id, id)


def _parts_of(payload: dict[str, Any]) -> int | None:
    """How many items or targets a step begins with; None for another step."""
    targets = payload.get("targets")
    return len(targets) if isinstance(targets, list) else count_in(payload, "items") or None


def _plan(run: RunView, payload: dict[str, Any]) -> None:
    planned: set[str] = set()
    for number, record in enumerate(list_of(payload.get("step_records"))):
        if isinstance(record, dict) and isinstance(id := record.get("id"), str):
            step = _step(run, id, f"{id}\n{number}" if id in planned else "")
            planned.add(id)
            if step.status == "pending":
                step.status = text_of(record.get("status")) or "pending"
            step.uses = text_of(record.get("uses")) or text_of(record.get("description"))
            step.depends_on = texts_of(record.get("depends_on"))


def _overlaps(run: RunView, step: StepView) -> bool:
    """Whether another step runs meanwhile: not one that this is a part of, nor a part of it."""
    return any(
        not StepPath(step.id).within(other.id) and not StepPath(other.id).within(step.id)
        for other in run.running.values()
    )


def _milliseconds(own: Any, metrics: dict[str, Any] | None) -> int | None:
    value = own if own is not None else (metrics or {}).get("duration_ms")
    return round(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
