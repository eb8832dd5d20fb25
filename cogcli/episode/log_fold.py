"""The fold of a log from which all documents follow: its projection, and the counts of summary and reflection.

Only steps of the root run count as steps; all other counts include nested runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from cogcli.base.calls import STEP_SECONDS
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.step_path import StepPath
from cogcli.declarations.envelope import Event, row_of
from cogcli.declarations.event_type import EventType
from cogcli.declarations.governance_events import PolicyDecided
from cogcli.declarations.reading import read_record, read_record_at_once
from cogcli.declarations.shared_events import SharedActivity, SharedPlan, SharedPlanStep
from cogcli.declarations.value_types import Json
from cogcli.episode.action_log import ActionLog
from cogcli.episode.document_bytes import to_bytes
from cogcli.episode.layout import CONTEXT, DECISION, FindingSink, ignore_message
from cogcli.episode.projection import Projection, is_snapshot

NEARLY: Final = 0.8


class Use(NamedTuple):
    """One occurrence, with the name of its subject and the id of its event."""

    about: str
    evidence: str


MAX_EVIDENCE: Final = 10
"""The ids that are kept of events of one kind."""


class Uses:
    """Occurrences by subject: the number of each, and the ids of its first events. It does not grow with the log."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.evidence: dict[str, list[str]] = {}

    def add(self, use: Use) -> None:
        """Count one occurrence."""
        self.counts[use.about] += 1
        kept = self.evidence.setdefault(use.about, [])
        if len(kept) < MAX_EVIDENCE:
            kept.append(use.evidence)


class Counters:
    """Counts of the events read so far."""

    def __init__(self) -> None:
        self.calls = 0
        self.retries = 0
        self.fallbacks = Uses()
        """Answers of fallbacks, by the binding that was tried first."""
        self.vetoes = 0
        self.would_vetoes = 0
        self.approvals = 0
        self.called: set[str] = set()
        self.used: set[str] = set()
        """Capabilities of the root's steps, called or not."""
        self.planned: set[str] = set()
        """Capabilities in the root's plan."""
        self.first_action: str | None = None
        self.first_veto: str | None = None
        self.latencies: dict[str, int] = {}
        self.slow = Uses()
        """Steps with a tool that used more than 80 % of the time limit of the run's steps, but not more than all."""
        self.step_limit_ms = 1000.0 * STEP_SECONDS
        """That limit."""
        self.retried = Uses()
        """Retried invocations by step."""
        self.needed_more: set[str] = set()
        """The steps of which a second try did not succeed."""
        self.pressed: list[tuple[Json, str]] = []
        """The signals of each turn of an agent, and the id of their event."""
        self._open_retries: Counter[str] = Counter()

    def apply(self, event: Event, act: SharedActivity | None = None, *, is_root: bool) -> None:
        """Count one event. A payload that is not an object is not counted. `act` is its payload, if known."""
        if event.event_type is None or type(event.payload) is not dict:
            return
        row = row_of(event.event_type)
        if row.phase == "act":
            self._count_act(event, row, act or read_record(SharedActivity, event.payload), is_root)
        elif row.phase == "plan":
            self._count_plan(read_record(SharedPlan, event.payload))
        elif row.decides:
            self.would_vetoes += read_record(PolicyDecided, event.payload).decision == "audit"
        elif row.asks:
            self.approvals += 1
        elif event.event_type == "functional_state.captured" and is_root:
            self.pressed.append((event.payload, event.id))

    def _count_plan(self, plan: SharedPlan) -> None:
        steps = [read_record(SharedPlanStep, record) for record in plan.step_records or ()]
        self.planned = {step.capability for step in steps if step.capability is not None}

    def _count_act(self, event: Event, row: EventType, act: SharedActivity, is_root: bool) -> None:
        if row.closes:
            self._count_end(event, act, is_root)
        elif row.starts:
            self._count_start(event, act)
        elif row.repeats and act.reason not in ("fallback", "answered"):
            self.retries += 1
            self._open_retries[event.step_id or ""] += 1

    def _count_start(self, event: Event, act: SharedActivity) -> None:
        if act.binding is None:
            return
        self.calls += 1
        if act.capability is not None:
            self.called.add(act.capability)
        if self.first_action is None:
            self.first_action = event.timestamp

    def _count_end(self, event: Event, act: SharedActivity, is_root: bool) -> None:
        step_id = event.step_id or ""
        latency = act.latency_ms if type(act.latency_ms) is int else None
        if is_root and not StepPath(step_id).in_call:
            # Only those of steps are used. Our parts of steps may be a million rounds.
            is_asked = event.seq is None or StepPath(step_id).is_step
            self._count_root_step(step_id, act.uses, latency if is_asked else None)
        if act.tool is not None and latency and self._is_slow(latency):
            self.slow.add(_use_from(event))
        if event.event_type == "step.vetoed":
            self.vetoes += 1
            self.first_veto = self.first_veto or event.timestamp
        binding = _replaced_binding(act)
        if binding is not None:
            self.fallbacks.add(Use(binding, event.id))
        if self._open_retries and (retries := self._open_retries.pop(step_id, 0)):
            use = _use_from(event)
            self.retried.add(use)
            if retries != 1 or act.step_status != "done":
                self.needed_more.add(use.about)

    def _is_slow(self, latency: int) -> bool:
        # A longer step had a limit of its own.
        return self.step_limit_ms > 0 and NEARLY < latency / self.step_limit_ms <= 1

    def _count_root_step(self, step: str, uses: str | None, latency: int | None) -> None:
        if uses is not None and not uses.startswith(("skill:", "_")):
            self.used.add(uses)
        if latency is not None:
            self.latencies[step] = latency


def _use_from(event: Event) -> Use:
    """Return the occurrence of a step, named without its items."""
    return Use(StepPath(event.step_id or "").without_items, event.id)


def _replaced_binding(act: SharedActivity) -> str | None:
    """Return the binding that was tried first, if another binding answered instead."""
    made = act.json.get("attempts")
    if type(made) is not list or len(made) < 2 or len(act.attempts) < 2:
        return None
    first, last = act.attempts[0], act.attempts[-1]
    answered = last.status == "success" and first.binding_id != last.binding_id
    return first.binding_id if answered else None


class LogFold:
    """The projection and the counters of a log."""

    def __init__(self, on_repair: FindingSink = ignore_message) -> None:
        self.projection = Projection(on_repair, ActionLog())
        self.counters = Counters()
        self.evidence: Event | None = None
        """The last event, if it is projection evidence and not that of a snapshot."""

    def apply(self, event: Event, act: SharedActivity | None = None) -> None:
        """Apply the next event of the log. `act` is its payload, if it is an act that was read already."""
        row = row_of(event.event_type)
        self.evidence = event if row.projected and not is_snapshot(event) else None
        if act is None and event.phase == "act":
            act = read_record_at_once(SharedActivity, event.payload)
        self.projection.apply(event, act)
        if event.phase == "start":
            limit = self.projection.start.options.step_timeout_seconds
            self.counters.step_limit_ms = 1000 * (STEP_SECONDS if limit is None else limit)
        self.counters.apply(event, act, is_root=self.projection.is_root(event))

    @property
    def pins(self) -> Json:
        """The pins of the run."""
        return self.projection.start.pins


def fold_log(events: Iterable[tuple[int, Event]]) -> LogFold:
    """Fold the numbered events of a log reader."""
    fold = LogFold()
    for _, event in events:
        fold.apply(event)
    return fold


def decision_files(fold: LogFold) -> dict[str, bytes]:
    """Return the documents of an agent's run, by name. Empty for the run of a skill."""
    decision = fold.projection.decision
    if decision is None:
        return {}
    return {CONTEXT: to_bytes(decision.context()), DECISION: to_bytes(decision.record())}
