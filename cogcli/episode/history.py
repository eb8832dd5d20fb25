"""The history of a log: its runs, steps and open requests. Every view of a run reads it.

1. Events may come one by one; the history is correct after each.
2. Steps of the root run are in plan order, those of nested runs in order of starting.
3. A nested run belongs to the step that its `run.started` names. Unknown events change nothing.
4. Items and rounds `step#n` and gates `step@pre0` belong to their step: they are shown under it and not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from shlex import quote
from typing import Final

import orjson

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.step_path import StepPath
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
    InputGiven,
    InputRequested,
    PolicyDecided,
)
from cogcli.declarations.typed_payload import read_payload
from cogcli.declarations.value_types import Json
from cogcli.episode.document_bytes import measured_ms
from cogcli.episode.run_history import Branch, LoopHistory, RunHistory, StepHistory, branches
from cogcli.episode.turn_history import AgentHistory

_DEEPEST: Final = 64
"""Levels of nested runs that are shown. Our logs have fewer, a forged log may have any number."""


SIGN_FLAG: Final = " --sign ~/.ssh/id_ed25519"
"""The flag of an answer that has to be signed, with the usual file of a key."""


class DecisionRequest(NamedTuple):
    """One request for the decision of a person."""

    approval_id: str
    step_id: str
    capability: str
    gate: str
    reason: str
    expires_at: str
    kind: str = ""
    """`gate`, `confirmation` or `escalation`; empty in logs without it."""
    approver_roles: tuple[str, ...] = ()
    """The roles of which the approver needs one; empty: any."""
    signed: bool = False
    """Whether only a signed answer counts."""

    @property
    def name(self) -> str:
        """The name to use in an answer: the capability, or for an escalation its gate."""
        return self.capability or self.gate or self.approval_id

    def answer_flags(self, flag: str = "--approve", name: str = "") -> str:
        """Return the flags with which a person approves or, with `--reject`, rejects. `name` replaces the usual
        name.
        """
        by = f" --by $USER:{quote(self.approver_roles[0])}" if self.approver_roles else ""
        return f"{flag} {quote(name or self.name)}{by}{SIGN_FLAG if self.signed else ''}"


def ask_from(request: Approval) -> DecisionRequest:
    """Return the request in a payload."""
    return DecisionRequest(
        approval_id=request.approval_id,
        step_id=request.step_id or "",
        capability=request.capability or "",
        gate=request.gate or "",
        reason=request.reason or "",
        expires_at=request.expires_at or "",
        kind=request.kind or "",
        approver_roles=tuple(request.approver_roles or ()),
        signed=bool(request.signed),
    )


def describe_answer(answer: ApprovalGranted | ApprovalRejected) -> str:
    """Return who answered a request: the stated name, the operating system's user, and the signer."""
    word = "approved" if answer.answer == "granted" else "rejected"
    role = f" ({answer.role})" if answer.role else ""
    signed = f"signed with {answer.signature.key}" if answer.signature else "unsigned"
    return ", ".join([f"{word} by {answer.by or ''}{role}", *describe_system_user(answer), signed])


def describe_system_user(answer: Approval) -> list[str]:
    """Return the operating system's user who gave an answer, as a list of one text. Empty if the log does not record
    it.
    """
    if answer.os_uid is None and answer.os_user is None:
        return []
    number = "" if answer.os_uid is None else f"{answer.os_uid}"
    return [
        f"as {answer.os_user} ({number})"
        if answer.os_user and number
        else f"as {answer.os_user or f'user {number}'}"
    ]


DECLINE: Final = "decline"
"""The word with which a person declines a form."""


def input_flags(requests: Sequence[InputRequested]) -> list[str]:
    """Return the flags of `resume` that answer the first request for input, with an example, and decline it."""
    if not requests:
        return []
    step = f"{requests[0].step_id}=" if len(requests) > 1 else ""
    words = orjson.dumps(requests[0].sample).decode(), DECLINE
    return [f"--answer {quote(step + word)}" for word in words]


def describe_given(answer: InputGiven, asked: InputRequested | None) -> str:
    """Return who answered a service that asked for input, and what it asked."""
    user = "" if answer.os_uid is None else f", as {answer.os_user or 'user'} ({answer.os_uid})"
    questions = "; ".join(form.message for form in asked.forms) if asked else ""
    about = f": {questions[:_SHOWN]}" if questions else ""
    return f"{_GIVEN_WORDS[answer.action]} by {answer.by}{user}{about}"


_SHOWN: Final = 200
"""The characters of a service's questions that an answer is shown with."""
_GIVEN_WORDS: Final = {
    "accept": "input given",
    "decline": "input declined",
    "cancel": "input cancelled",
}


def describe_taken_approval(payload: ApprovalGranted) -> str:
    """Return who gave an approval that a rerun reused, and in which episode."""
    role = f" ({payload.role})" if payload.role else ""
    episode = payload.taken_from.episode_id if payload.taken_from else ""
    return f"approved by {payload.by or ''}{role}, taken over: {payload.approval_id} of {episode}"


class OpenDecisionRequests:
    """The unanswered requests of a log."""

    def __init__(self) -> None:
        self._open: dict[str, DecisionRequest] = {}

    def apply(self, payload: Payload) -> None:
        """Add a request, or remove the one that this answer closes."""
        match payload:
            case ApprovalGranted() | ApprovalRejected():
                self._open.pop(payload.approval_id, None)
            case ApprovalRequested() if payload.approval_id:
                # A new request for a step replaces the earlier one.
                request = ask_from(payload)
                others = [each for each in self._open.values() if each.step_id != request.step_id]
                self._open = {each.approval_id: each for each in (*others, request)}

    @property
    def open(self) -> list[DecisionRequest]:
        """The open requests, the oldest first."""
        return list(self._open.values())


class History:
    """Folds events. `root` is the top-level run, None before the first event."""

    def __init__(self) -> None:
        self.episode_id = ""
        self.trace_id = ""
        self.root: RunHistory | None = None
        self.runs: dict[str, RunHistory] = {}
        self.asks = OpenDecisionRequests()
        self.inputs: dict[str, InputRequested] = {}
        """The unanswered requests of services for input, by id."""
        self.active_time = ActiveTime()
        self.turns = AgentHistory(self.active_time)
        self.last = ""
        self.actions: list[Json] = []
        """The action log of another tool's log: its actions need not belong to a step."""
        self.chained = False
        """Whether the log is ours from its first event on. Only such a log can be resumed."""

    @property
    def ms(self) -> int | None:
        """The milliseconds of the root run, from its closing event, or else its active time so far."""
        if self.root is None:
            return None
        return self.root.ms if self.root.ms is not None else self.active_time.milliseconds

    @property
    def steps(self) -> list[StepHistory]:
        """The steps of the root run, without their items, rounds and gates."""
        return self.root.own if self.root else []

    def branches(self, only: str = "") -> list[Branch]:
        """Return the whole tree, or only the branch of the step with this id."""
        level = branches(self.root) if self.root else []
        if not only:
            return level
        while level:
            if matching := [branch for branch in level if branch.step.id == only]:
                return matching
            level = [inner for branch in level for inner in branch.below]
        return []

    def grouped(self, only: str = "") -> list[Branch]:
        """Return the branches like `branches`, with the steps of an agent's run below their turns."""
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
        """Add the next event of the log."""
        self.chained = self.chained or (not self.last and event.seq == 0 and event.phase == "start")
        self.last = event.timestamp or self.last
        self.episode_id = self.episode_id or event.episode_id
        self.trace_id = self.trace_id or event.trace_id or ""
        self.active_time.apply(event)
        payload = read_payload(event)
        run = self._run_with_id(event.run_id or "")
        if run is self.root:
            self.turns.apply(event, payload)
        self._apply_payload(run, event, payload)

    def _apply_payload(self, run: RunHistory, event: Event, payload: Payload) -> None:
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
                _apply_plan(run, payload)
            case RunTerminated():
                run.ended_at, run.status = event.timestamp, str(payload.status) or "error"
                run.ms = _measured_ms(event)
                run.end = payload
            case PolicyDecided():
                _store_ruling(run, event, payload)
            case ApprovalGranted() if payload.taken_from is not None and event.step_id:
                _step_with_id(run, event.step_id).approval = describe_taken_approval(payload)
            case ApprovalGranted() | ApprovalRejected():
                run.answers.setdefault(event.step_id or "", []).append(describe_answer(payload))
                self.asks.apply(payload)
            case InputRequested():
                self.inputs[payload.input_id] = payload
            case InputGiven():
                answer = describe_given(payload, self.inputs.pop(payload.input_id, None))
                run.answers.setdefault(event.step_id or "", []).append(answer)
            case _:
                self.asks.apply(payload)

    def _run_with_id(self, id: str) -> RunHistory:
        """Return the run with this id, adding it if it is new. The first run of the log is the root."""
        run = self.runs.get(id)
        if run is None:
            run = self.runs[id] = RunHistory(id)
            self.root = self.root or run
        return run

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
        _step_with_id(parent, event.step_id).child = run

    def _begin_step(self, run: RunHistory, event: Event, payload: StepStarted) -> None:
        step = self._update_status(run, event, payload, payload.step_status)
        if step is None:
            return
        step.begin(event.timestamp, payload)
        step.overlaps = step.overlaps or _runs_beside_others(run, step)
        run.running[step.id] = step
        parts = payload.items if payload.targets is None else len(payload.targets)
        if parts is not None and step.loop is None:
            step.loop = LoopHistory(parts or None, self.active_time.milliseconds)

    def _answer_step(self, run: RunHistory, event: Event, payload: StepAnswered) -> None:
        if id := payload.step_id or event.step_id:
            _step_with_id(run, id).answered = True

    def _end_step(self, run: RunHistory, event: Event, payload: StepFinished) -> None:
        step = self._update_status(run, event, payload, payload.step_status)
        if step is None:
            return
        step.uses = payload.uses or step.uses
        step.reads = payload.reads or step.reads
        if payload.step_status != "pending":
            step.finish(event.timestamp, payload, _measured_ms(event))

    def _update_status(
        self, run: RunHistory, event: Event, payload: StepStarted | StepFinished, status: str
    ) -> StepHistory | None:
        """Return the step of an event with its new status, or None if the event names no step or no status."""
        id = payload.step_id or event.step_id
        if not id or not status:
            return None
        step = _step_with_id(run, id)
        self._count_running(run, step, status)
        step.status = status
        return step

    def _count_running(self, run: RunHistory, step: StepHistory, status: str) -> None:
        """Update the running steps. For an item, a round or a target, update the loop of its step."""
        run.running.pop(step.id, None)
        path = StepPath(step.id)
        if path.is_step or path.in_call or (owner := run.steps.get(path.owner)) is None:
            return
        if owner.loop is None:
            owner.loop = LoopHistory(None, self.active_time.milliseconds)
        owner.loop.move(step.status, status, self.active_time.milliseconds)


def history_of(events: Iterable[Event]) -> History:
    """Return the runs and steps of a whole log."""
    folded = History()
    for event in events:
        folded.apply(event)
    return folded


def _step_with_id(run: RunHistory, id: str, key: str = "") -> StepHistory:
    """Return the step, adding it if it is new. `key` distinguishes steps with the same id."""
    return run.steps.get(key or id) or run.add(key or id, id)


def _store_ruling(run: RunHistory, event: Event, payload: PolicyDecided) -> None:
    """Store the policy's ruling on the call of a step, unless it merely allowed the call."""
    verdict = payload.verdict or ""
    if event.step_id and (verdict not in ("", "allow") or payload.decision == "audit"):
        words = [verdict, payload.gate, f"by {payload.rule or payload.reason}"]
        words += [] if payload.enforced else ["not enforced"]
        _step_with_id(run, event.step_id).ruling = " ".join(word for word in words if word)


def _apply_plan(run: RunHistory, payload: PlanCreated) -> None:
    planned: set[str] = set()
    for number, record in enumerate(payload.step_records):
        if record.id:
            step = _step_with_id(
                run, record.id, f"{record.id}\n{number}" if record.id in planned else ""
            )
            planned.add(record.id)
            if step.status == "pending":
                step.status = record.status or "pending"
            step.uses = record.uses or record.description
            step.depends_on = record.depends_on


def _runs_beside_others(run: RunHistory, step: StepHistory) -> bool:
    """Return whether another step is running, apart from its owner and its parts."""
    return any(
        not StepPath(step.id).within(other.id) and not StepPath(other.id).within(step.id)
        for other in run.running.values()
    )


def _measured_ms(event: Event) -> int | None:
    """Return the whole milliseconds that a closing event measured."""
    measured = measured_ms(event)
    return None if measured is None else round(measured)
