"""The plan of `state.json`, folded from a log (docs/reference/episode.md#plan-projection).

Under rules 2 the `input` and the `output` of an act event become the `inputs` and `outputs` of its step. A step that
never began keeps the inputs that the plan gives.

Every repair goes to a sink: `verify` turns each into a finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from cogcli.declarations.envelope import Event
from cogcli.declarations.reading import read_record
from cogcli.declarations.shared_events import SharedActivity, SharedPlan, SharedPlanStep
from cogcli.declarations.value_types import Json
from cogcli.episode.layout import STEP_KINDS, STEP_STATUSES, FindingSink, ignore_message
from cogcli.episode.log_lines import FIRST

VALUE_MEMBERS: Final = ("inputs", "outputs")
"""The members of a plan's step that contain values."""
_VOCABULARY: Final = {"kind": (STEP_KINDS, "plan"), "status": (STEP_STATUSES, "pending")}
"""The allowed words of a member, and the word that replaces any other."""


class PlanProjection:
    """The plan after the events read so far."""

    def __init__(self, on_repair: FindingSink = ignore_message) -> None:
        self._on_repair = on_repair
        self._head: Json = {}
        self.rules = FIRST
        self.steps: list[Json] = []
        self._by_id: dict[str, Json] = {}

    def apply(self, event: Event) -> None:
        """Apply one event of the root run."""
        if event.phase == "act":
            self.apply_act(read_record(SharedActivity, event.payload))
        elif event.phase == "plan":
            self._replace_plan(event)

    def result(self) -> Json:
        """Return the plan of `state.json`. It shares its steps with this projection."""
        return {**self._head, "steps": self.steps}

    def _replace_plan(self, event: Event) -> None:
        payload = event.payload
        if type(payload) is not dict:
            self._on_repair("the payload of a plan event is not an object: no plan")
            return
        plan = read_record(SharedPlan, payload)
        self._head = {"source": plan.source or event.agent_id or "system"}
        self._head["updated_at"] = event.timestamp
        if plan.rationale is not None:
            self._head["rationale"] = plan.rationale
        if plan.step_records is None:
            self.steps = list(self._steps_from_labels(plan.steps))
        else:
            self.steps = list(self._steps_from_records(plan.step_records))
        self._by_id = {}
        for step in self.steps:
            if self._by_id.setdefault(step["id"], step) is not step:
                id = step["id"]
                self._on_repair(
                    f"two steps of the plan are called `{id}`: evidence goes to the first"
                )

    def _steps_from_records(self, records: list[object]) -> Iterator[Json]:
        for position, record in enumerate(records, 1):
            if type(record) is not dict:
                self._on_repair(f"step record {position} is not an object: passed over")
                continue
            step = read_record(SharedPlanStep, record)
            step_id = step.id or f"step-{position}"
            if not step.id:
                self._on_repair(f"step record {position} has no id: `{step_id}`")
            optional = {
                "rationale": step.rationale,
                "depends_on": step.depends_on,
                "inputs": step.inputs,
                "outputs": step.outputs,
            }
            yield {
                "id": step_id,
                "kind": self._vocabulary_word(step_id, "kind", step.kind),
                "description": step.description or step.uses or step_id,
                "status": self._vocabulary_word(step_id, "status", step.status),
                **{key: value for key, value in optional.items() if value is not None},
                **{key: value for key, value in record.items() if key.startswith("x-")},
            }

    def _steps_from_labels(self, labels: list[object]) -> Iterator[Json]:
        for position, label in enumerate(labels, 1):
            if type(label) is not str:
                self._on_repair(f"plan label {position} is not text: passed over")
                continue
            step_id = f"step-{position}"
            kind, colon, description = label.partition(":")
            yield {
                "id": step_id,
                "kind": self._vocabulary_word(step_id, "kind", kind.strip() if colon else "plan"),
                "description": (description if colon else label).strip(),
                "status": "pending",
            }

    def _vocabulary_word(self, step_id: str, member: str, word: object) -> str:
        """Return the kind or the status of a step. A word outside the vocabulary is replaced and reported."""
        words, other = _VOCABULARY[member]
        if type(word) is str and word in words:
            return word
        self._on_repair(f"step `{step_id}`: {member} {word!r:.40} reads `{other}`")
        return other

    def apply_act(self, act: SharedActivity) -> None:
        """Apply the payload of an act event of the root run: the status of a step, its input and its output."""
        status = act.step_status
        step = self._by_id.get(act.step_id or "")
        if status is None or step is None:
            return
        if self.rules > FIRST:
            for key, value in zip(VALUE_MEMBERS, (act.input, act.output), strict=True):
                if type(value) is dict:
                    step[key] = value
        if type(status) is str and status in STEP_STATUSES:
            step["status"] = status
        else:
            self._on_repair(f"step `{act.step_id}`: status {status!r:.40} changes nothing")


def project_plan_state(events: Iterable[Event]) -> Json:
    """Return the plan of a log's root run. The shared format defines the name of this function."""
    projection = PlanProjection()
    for event in events:
        projection.apply(event)
    return projection.result()
