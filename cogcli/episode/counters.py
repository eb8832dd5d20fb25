"""What happened in a log, counted: the one source of summary and reflection.

Steps are those of the root run; everything else includes nested runs.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from cogcli.core.step_path import StepPath
from cogcli.events.envelope import Event
from cogcli.events.types import row_of


class Use(NamedTuple):
    """One thing worth telling: what it is about, and the event that shows it."""

    about: str
    evidence: str


class Counters:
    """Counts over the events fed so far."""

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
        self._open_retries: Counter[str] = Counter()

    def feed(self, event: Event, *, is_root: bool) -> None:
        """Count one event. Payloads of another shape than ours count for nothing."""
        kind, payload = event.event_type, event.payload
        if kind is None or type(payload) is not dict:
            return
        row = row_of(kind)
        if row.closes:
            self._finish(event, payload, is_root)
        elif kind == "step.started":
            self._start(event, payload)
        elif kind == "call.retried":
            self._retry(event, payload)
        elif kind == "plan.created":
            self._plan(payload)
        elif row.decides:
            self.would_vetoes += payload.get("decision") == "audit"
        elif kind == "approval.requested":
            self.approvals += 1

    def _plan(self, payload: dict[str, Any]) -> None:
        records = payload.get("step_records")
        named = [record.get("capability") for record in _objects(records)]
        self.planned = {capability for capability in named if type(capability) is str}

    def _start(self, event: Event, payload: dict[str, Any]) -> None:
        if type(payload.get("binding")) is not str:
            return
        self.calls += 1
        if type(payload.get("capability")) is str:
            self.called.add(payload["capability"])
        if self.first_action is None:
            self.first_action = event.timestamp

    def _retry(self, event: Event, payload: dict[str, Any]) -> None:
        if payload.get("reason") != "fallback":
            self.retries += 1
            self._open_retries[event.step_id or ""] += 1

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


def _objects(values: Any) -> list[dict[str, Any]]:
    """The objects of a list; none of what is no list."""
    return [value for value in values if type(value) is dict] if type(values) is list else []


def _fallen_back(payload: dict[str, Any]) -> str | None:
    """The binding that was tried first, if another one answered in its place."""
    attempts = payload.get("attempts")
    if type(attempts) is not list or len(attempts) < 2:
        return None
    first, last = attempts[0], attempts[-1]
    if type(first) is not dict or type(last) is not dict or last.get("status") != "success":
        return None
    tried = first.get("binding_id")
    return tried if type(tried) is str and tried != last.get("binding_id") else None
