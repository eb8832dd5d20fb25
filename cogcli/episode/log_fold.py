"""One pass over a log for everything that is derived from it: the projection, and the counts of summary and reflection.

Steps are those of the root run; everything else includes nested runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from cogcli.base.jsonvalue import list_of, object_of
from cogcli.base.step_path import StepPath
from cogcli.declarations.envelope import Event
from cogcli.declarations.events import row_of
from cogcli.episode.document_bytes import to_bytes
from cogcli.episode.layout import CONTEXT, DECISION, FindingSink, ignore_message
from cogcli.episode.projection import Projection, is_snapshot


class Use(NamedTuple):
    """Something that happened: what it is about, and the id of the event that shows it."""

    about: str
    evidence: str


class Counters:
    """Counts over the events so far."""

    def __init__(self) -> None:
        self.calls = 0
        self.retries = 0
        self.fallbacks: list[Use] = []
        self.vetoes = 0
        self.would_vetoes = 0
        self.approvals = 0
        self.called: set[str] = set()
        self.used: set[str] = set()
        """Capabilities that the root's steps name, called or not."""
        self.planned: set[str] = set()
        """Capabilities that the steps of the root's plan name."""
        self.first_action: str | None = None
        self.first_veto: str | None = None
        self.latencies: dict[str, int] = {}
        self.timed: list[tuple[Use, int]] = []
        """Steps that called something, with their latency."""
        self.retried: dict[str, list[tuple[bool, Use]]] = {}
        """By step: whether the second try succeeded, for each of its invocations that was retried."""
        self.pressed: list[tuple[dict[str, Any], str]] = []
        """By turn of an agent how hard it was pressed, and the id of the event that says so."""
        self._open_retries: Counter[str] = Counter()

    def apply(self, event: Event, *, is_root: bool) -> None:
        """Count one event. Payloads of another shape than ours count for nothing."""
        payload = event.payload
        if event.event_type is None or type(payload) is not dict:
            return
        row = row_of(event.event_type)
        if row.closes:
            self._finish(event, payload, is_root)
        elif row.starts:
            self._start(event, payload)
        elif row.repeats and payload.get("reason") != "fallback":
            self.retries += 1
            self._open_retries[event.step_id or ""] += 1
        elif row.phase == "plan":
            named = [
                object_of(record).get("capability")
                for record in list_of(payload.get("step_records"))
            ]
            self.planned = {capability for capability in named if type(capability) is str}
        elif row.decides:
            self.would_vetoes += payload.get("decision") == "audit"
        elif row.asks:
            self.approvals += 1
        elif event.event_type == "functional_state.captured" and is_root:
            self.pressed.append((payload, event.id))

    def _start(self, event: Event, payload: dict[str, Any]) -> None:
        if type(payload.get("binding")) is not str:
            return
        self.calls += 1
        if type(payload.get("capability")) is str:
            self.called.add(payload["capability"])
        if self.first_action is None:
            self.first_action = event.timestamp

    def _finish(self, event: Event, payload: dict[str, Any], is_root: bool) -> None:
        step = event.step_id or ""
        path = StepPath(step)
        plain = path.without_items
        if is_root and not path.in_call:
            uses, latency = payload.get("uses"), payload.get("latency_ms")
            if type(uses) is str and not uses.startswith(("skill:", "_")):
                self.used.add(uses)
            if type(latency) is int:
                self.latencies[step] = latency
        if type(payload.get("tool")) is str and type(payload.get("latency_ms")) is int:
            self.timed.append((Use(plain, event.id), payload["latency_ms"]))
        if event.event_type == "step.vetoed":
            self.vetoes += 1
            self.first_veto = self.first_veto or event.timestamp
        binding = _fallen_back(payload)
        if binding is not None:
            self.fallbacks.append(Use(binding, event.id))
        retries = self._open_retries.pop(step, 0)
        if retries:
            succeeded = retries == 1 and payload.get("step_status") == "done"
            self.retried.setdefault(plain, []).append((succeeded, Use(plain, event.id)))


def _fallen_back(payload: dict[str, Any]) -> str | None:
    """The binding that was tried first, if another one answered in its place."""
    attempts = list_of(payload.get("attempts"))
    first, last = (object_of(attempts[at]) if attempts else {} for at in (0, -1))
    tried = first.get("binding_id") if last.get("status") == "success" else None
    return tried if type(tried) is str and tried != last.get("binding_id") else None


class LogFold:
    """The projection and the counters of a log."""

    def __init__(self, on_repair: FindingSink = ignore_message) -> None:
        self.projection = Projection(on_repair)
        self.counters = Counters()
        self.evidence: Event | None = None
        """The last event, where it is projection evidence and none of a snapshot."""

    def apply(self, event: Event) -> None:
        """Take one event into account, in order of the log."""
        self.evidence = (
            event if row_of(event.event_type).projected and not is_snapshot(event) else None
        )
        self.projection.apply(event)
        self.counters.apply(event, is_root=self.projection.is_root(event))

    @property
    def pins(self) -> dict[str, Any]:
        """What the run was pinned to."""
        return object_of(self.projection.start_payload.get("pins"))


def fold_log(events: Iterable[tuple[int, Event]]) -> LogFold:
    """The fold of the numbered events that a log reader gives."""
    fold = LogFold()
    for _, event in events:
        fold.apply(event)
    return fold


def decision_files(fold: LogFold) -> dict[str, bytes]:
    """By name the documents that only the run of an agent has."""
    decision = fold.projection.decision
    if decision is None:
        return {}
    return {CONTEXT: to_bytes(decision.context()), DECISION: to_bytes(decision.record())}
