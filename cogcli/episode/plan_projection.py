"""How a plan is put together from a log: docs/reference/episode.md#plan-projection.

Under rules 2 the evidence also holds what the step was given and what it produced, its `input` and `output`: they are
the step's `inputs` and `outputs`. A step that never began keeps what the plan says that it reads.

Every repair goes to a sink: `verify` makes findings of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from cogcli.base.jsonvalue import list_of, text_of
from cogcli.declarations.envelope import Event
from cogcli.episode.layout import STEP_KINDS, STEP_STATUSES, FindingSink, ignore_message
from cogcli.episode.log_lines import FIRST

VALUE_MEMBERS: Final = ("inputs", "outputs")
"""The members of a plan's step that hold values."""
_VOCABULARY: Final = {"kind": (STEP_KINDS, "plan"), "status": (STEP_STATUSES, "pending")}
"""The words of a member, and how any other reads."""
_OPTIONAL: Final = (("rationale", str), ("depends_on", list), ("inputs", dict), ("outputs", dict))


class PlanProjection:
    """The plan after the events so far."""

    def __init__(self, on_repair: FindingSink = ignore_message) -> None:
        self._on_repair = on_repair
        self._head: dict[str, Any] = {}
        self.rules = FIRST
        self.steps: list[dict[str, Any]] = []
        self._by_id: dict[str, dict[str, Any]] = {}

    def apply(self, event: Event) -> None:
        """Take one event of the root run into account."""
        if event.phase == "act":
            self._take_evidence(event.payload)
        elif event.phase == "plan":
            self._start(event)

    def result(self) -> dict[str, Any]:
        """The plan of `state.json`. Its steps are this projection's own."""
        return {**self._head, "steps": self.steps}

    def _start(self, event: Event) -> None:
        payload = event.payload
        if type(payload) is not dict:
            self._on_repair("the payload of a plan event is not an object: no plan")
            return
        self._head = {"source": text_of(payload.get("source")) or event.agent_id or "system"}
        self._head["updated_at"] = event.timestamp
        if type(payload.get("rationale")) is str:
            self._head["rationale"] = payload["rationale"]
        records = payload.get("step_records")
        if type(records) is list:
            self.steps = list(self._from_records(records))
        else:
            self.steps = list(self._from_labels(list_of(payload.get("steps"))))
        self._by_id = {}
        for step in self.steps:
            if self._by_id.setdefault(step["id"], step) is not step:
                twice = (
                    f"two steps of the plan are called `{step['id']}`: evidence goes to the first"
                )
                self._on_repair(twice)

    def _from_records(self, records: list[Any]) -> Iterator[dict[str, Any]]:
        for position, record in enumerate(records, 1):
            if type(record) is not dict:
                self._on_repair(f"step record {position} is not an object: passed over")
                continue
            step_id = text_of(record.get("id")) or f"step-{position}"
            if step_id != record.get("id"):
                self._on_repair(f"step record {position} has no id: `{step_id}`")
            yield {
                "id": step_id,
                "kind": self._word(step_id, "kind", record.get("kind")),
                "description": text_of(record.get("description"))
                or text_of(record.get("uses"))
                or step_id,
                "status": self._word(step_id, "status", record.get("status", "pending")),
                **{key: record[key] for key, kind in _OPTIONAL if type(record.get(key)) is kind},
                **{key: value for key, value in record.items() if key.startswith("x-")},
            }

    def _from_labels(self, labels: list[Any]) -> Iterator[dict[str, Any]]:
        for position, label in enumerate(labels, 1):
            if type(label) is not str:
                self._on_repair(f"plan label {position} is not text: passed over")
                continue
            step_id = f"step-{position}"
            kind, colon, description = label.partition(":")
            yield {
                "id": step_id,
                "kind": self._word(step_id, "kind", kind.strip() if colon else "plan"),
                "description": (description if colon else label).strip(),
                "status": "pending",
            }

    def _word(self, step_id: str, member: str, word: Any) -> str:
        """The kind or the status of a step; as another word reads where it is none of the vocabulary."""
        words, other = _VOCABULARY[member]
        if type(word) is str and word in words:
            return word
        self._on_repair(f"step `{step_id}`: {member} {word!r:.40} reads `{other}`")
        return other

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
            for key, name in zip(VALUE_MEMBERS, ("input", "output"), strict=True):
                if type(payload.get(name)) is dict:
                    step[key] = payload[name]
        if type(status) is str and status in STEP_STATUSES:
            step["status"] = status
        else:
            self._on_repair(f"step `{step_id}`: status {status!r:.40} changes nothing")


def project_plan_state(events: Iterable[Event]) -> dict[str, Any]:
    """The plan of a log's root run, as the shared format names this function."""
    projection = PlanProjection()
    for event in events:
        projection.apply(event)
    return projection.result()
