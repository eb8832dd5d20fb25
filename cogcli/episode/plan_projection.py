"""How a plan is put together from a log, made exact (docs/reference/episode.md#plan-projection).

1. The latest `plan` event counts; one whose payload is no object does not. It starts the plan afresh.
2. Steps come from `step_records` when that key holds a list, even an empty one. Entries that are no objects are passed
   over; a missing id is `step-<position>`.
3. Otherwise they come from the labels of `steps`, `kind:description` split at the first colon, ids by position;
   entries that are no strings are passed over, but counted. A label without a colon is all description.
4. A kind outside the vocabulary reads `plan`, a status outside it `pending`.
5. Later `act` events with both `payload.step_id` and `payload.step_status` set that step's status, in order, the last
   wins. Unknown steps, other phases and statuses outside the vocabulary change nothing; of steps with one id the
   first is meant.
6. Under rules 2 the evidence also says what the step was given and what it produced, its `input` and `output`: they are
   the step's `inputs` and `outputs`. A step that never began keeps what the plan says that it reads.
7. Without evidence a step keeps its status. Without a plan event there are no steps.

Every repair is told to whoever asks for them: `verify` makes findings of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from cogcli.episode.findings import FindingSink, unheard
from cogcli.episode.rules import FIRST
from cogcli.episode.vocabulary import STEP_KINDS, STEP_STATUSES
from cogcli.events.envelope import Event

GIVEN: Final = ("inputs", "outputs")
"""The members of a plan's step that hold values."""
_OPTIONAL: Final = (("rationale", str), ("depends_on", list), ("inputs", dict), ("outputs", dict))


class PlanProjection:
    """The plan as it stands after the events fed so far."""

    def __init__(self, told: FindingSink = unheard) -> None:
        self._told = told
        self._head: dict[str, Any] = {}
        self.rules = FIRST
        self.steps: list[dict[str, Any]] = []
        self._by_id: dict[str, dict[str, Any]] = {}

    def feed(self, event: Event) -> None:
        """Take one event of the root run into account."""
        if event.phase == "act":
            self._take_evidence(event.payload)
        elif event.phase == "plan":
            self._start(event)

    def result(self) -> dict[str, Any]:
        """The plan as it stands in `state.json`. Its steps are this projection's own."""
        return {**self._head, "steps": self.steps}

    def _start(self, event: Event) -> None:
        payload = event.payload
        if type(payload) is not dict:
            self._told("the payload of a plan event is no object: no plan")
            return
        source = payload.get("source")
        self._head = {"source": source if _is_text(source) else event.agent_id or "system"}
        self._head["updated_at"] = event.timestamp
        if type(payload.get("rationale")) is str:
            self._head["rationale"] = payload["rationale"]
        records = payload.get("step_records")
        self.steps = (
            self._from_records(records) if type(records) is list else self._from_labels(payload.get("steps"))
        )
        self._by_id = {}
        for step in self.steps:
            if self._by_id.setdefault(step["id"], step) is not step:
                self._told(f"two steps of the plan are called `{step['id']}`: evidence goes to the first")

    def _from_records(self, records: list[Any]) -> list[dict[str, Any]]:
        steps = []
        for position, record in enumerate(records, 1):
            if type(record) is dict:
                steps.append(self._from_record(position, record))
            else:
                self._told(f"step record {position} is no object: passed over")
        return steps

    def _from_record(self, position: int, record: dict[str, Any]) -> dict[str, Any]:
        given = record.get("id")
        step_id = str(given) if _is_text(given) else f"step-{position}"
        if step_id != given:
            self._told(f"step record {position} has no id: `{step_id}`")
        step: dict[str, Any] = {
            "id": step_id,
            "kind": self._kind(record.get("kind"), step_id),
            "description": next(filter(_is_text, (record.get("description"), record.get("uses"))), step_id),
            "status": self._status(record, step_id),
        }
        for key, kind in _OPTIONAL:
            if type(record.get(key)) is kind:
                step[key] = record[key]
        step.update((key, value) for key, value in record.items() if key.startswith("x-"))
        return step

    def _from_labels(self, labels: Any) -> list[dict[str, Any]]:
        steps = []
        for position, label in enumerate(labels if type(labels) is list else (), 1):
            if type(label) is str:
                steps.append(self._from_label(position, label))
            else:
                self._told(f"plan label {position} is no text: passed over")
        return steps

    def _from_label(self, position: int, label: str) -> dict[str, Any]:
        step_id = f"step-{position}"
        kind, colon, description = label.partition(":")
        if not colon:
            kind, description = "plan", label
        return {
            "id": step_id,
            "kind": self._kind(kind.strip(), step_id),
            "description": description.strip(),
            "status": "pending",
        }

    def _kind(self, kind: Any, step_id: str) -> str:
        if type(kind) is str and kind in STEP_KINDS:
            return kind
        self._told(f"step `{step_id}`: kind {kind!r:.40} reads `plan`")
        return "plan"

    def _status(self, record: dict[str, Any], step_id: str) -> str:
        status = record.get("status", "pending")
        if type(status) is str and status in STEP_STATUSES:
            return status
        self._told(f"step `{step_id}`: status {status!r:.40} reads `pending`")
        return "pending"

    def _take_evidence(self, payload: Any) -> None:
        if type(payload) is not dict:
            return
        status = payload.get("step_status")
        step_id = payload.get("step_id")
        if status is None or type(step_id) is not str:
            return
        step = self._by_id.get(step_id)
        if step is None:
            return
        if self.rules > FIRST:
            for key, name in zip(GIVEN, ("input", "output"), strict=True):
                if type(payload.get(name)) is dict:
                    step[key] = payload[name]
        if type(status) is str and status in STEP_STATUSES:
            step["status"] = status
        else:
            self._told(f"step `{step_id}`: status {status!r:.40} changes nothing")


def _is_text(value: Any) -> bool:
    return type(value) is str and value != ""


def project_plan_state(events: Iterable[Event]) -> dict[str, Any]:
    """The plan of a log's root run, as the shared format names this function."""
    projection = PlanProjection()
    for event in events:
        projection.feed(event)
    return projection.result()
