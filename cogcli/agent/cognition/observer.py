"""What a loop sees of its own run: the events of calls, as facts and results. A fold.

It sees what the log holds, secrets masked: what is decided must not depend on what a resume or replay cannot know.
"""

from __future__ import annotations

from typing import Any

from cogcli.agent.cognition.invocation import Invocation
from cogcli.agent.cognition.planner import TurnPlan
from cogcli.agent.context.inputs import Edge
from cogcli.base.canonical import digest_of
from cogcli.base.jsonvalue import equal, object_of
from cogcli.base.redact import BY_NAME
from cogcli.base.refs import MISSING
from cogcli.base.step_path import StepPath
from cogcli.declarations.envelope import Event, mask_payload
from cogcli.declarations.events import row_of
from cogcli.declarations.pack_spec import PackTool
from cogcli.specs.skill_tools import called_by
from cogcli.state.namespaces import walk

_GATE_CODES = ("safety.gate", "safety.gate-error")


class Observer:
    """The run of an agent after the events so far."""

    def __init__(self, started: Event, invocation: Invocation) -> None:
        self._given = invocation
        self._root = started.run_id
        self._closings: dict[str, Event] = {}
        self._facts: list[dict[str, Any]] = []
        self._refs: dict[str, str] = {}
        self._gates: list[dict[str, Any]] = []
        self._learned: list[Edge] = []
        self.calls = 0
        """How many calls were made."""
        self.denial = ""
        """Why the policy said no last: the rule, else the reason."""
        self.post_gate_failed = False
        """Whether a gate after a call refused what came back."""

    @property
    def learned(self) -> tuple[Edge, ...]:
        """The facts of the run's calls, in order."""
        return tuple(self._learned)

    def apply(self, event: Event) -> None:
        """Take one event of the tree into account."""
        row = row_of(event.event_type)
        if event.event_type == "context.compiled":
            self._gates = event.payload["context"]["runtime_controls"]["evidence_gates"]
        elif event.event_type == "policy.decided" and event.payload["decision"] == "veto":
            self.denial = event.payload.get("rule") or event.payload.get("reason") or ""
        elif event.event_type == "budget.exceeded":
            self.denial = f"budget_exceeded:{event.payload['key']}"
        elif row.closes and StepPath(event.step_id or "").is_step:
            self._close(event._replace(payload=mask_payload(event.payload, BY_NAME)))

    def _close(self, event: Event) -> None:
        payload = event.payload
        if event.run_id == self._root:
            self._closings[event.step_id or ""] = event
        if payload["step_status"] == "done" and (called := called_by(payload)):
            self._learn(event, called, object_of(payload.get("output")))
        code = object_of(payload.get("error")).get("code")
        answered = any(each.get("status") == "success" for each in payload.get("attempts") or ())
        self.post_gate_failed = self.post_gate_failed or (code in _GATE_CODES and answered)

    def _learn(self, event: Event, capability: str, output: dict[str, Any]) -> None:
        declared = self._given.pack.tooling.capabilities.get(capability, PackTool()).facts
        ref = f"{event.run_id}/{event.step_id}"
        for key, source in declared.items():
            value = walk({"output": output}, tuple(source.split(".")))
            slot, _, predicate = key.partition(".")
            entity = self._given.intent.slots.get(slot)
            if value is MISSING or value is None or entity is None:
                continue
            self._refs[key] = ref
            fact = {
                "key": key,
                "entity": entity,
                "predicate": predicate,
                "value": value,
                "ref": ref,
            }
            self._facts.append({**fact, "corrects": self._contradicts(entity, predicate, value)})
            edge = Edge(
                entity,
                predicate,
                ref,
                event.timestamp,
                value=value,
                trust="verified",
                tenant_id=self._given.pack.tenant,
            )
            self._learned.append(edge)

    def _contradicts(self, entity: str, predicate: str, value: Any) -> bool:
        """Whether the stores have another value of a predicate that has only one."""
        stored = [
            e for e in self._given.fetched.edges if (e.subject, e.predicate) == (entity, predicate)
        ]
        single = predicate in self._given.pack.knowledge.single_valued
        return single and any(not equal(edge.value, value) for edge in stored)

    @property
    def evidence_gates(self) -> list[dict[str, Any]]:
        """The gates of the compiled context, those satisfied that a call of this run supplied since."""
        return [
            {**gate, "status": "satisfied", "refs": [self._refs[gate["name"]]]}
            if gate["name"] in self._refs
            else gate
            for gate in self._gates
        ]

    @property
    def conflicts(self) -> tuple[str, ...]:
        """The required evidence that has two values."""
        return tuple(gate["name"] for gate in self.evidence_gates if gate["status"] == "conflict")

    def result_of(self, step_id: str) -> Any:
        """What came of a step of the root run: its output, or its error; None where it did not run."""
        closing = self._closings.get(step_id)
        return (
            None
            if closing is None
            else closing.payload.get("output") or closing.payload.get("error")
        )

    def results_of(self, plan: TurnPlan) -> list[dict[str, Any]]:
        """What came of each step of a plan that ended, as a model is told it."""
        results = []
        for step in plan.skill.steps:
            if (closing := self._closings.get(step.id)) is not None:
                payload = closing.payload
                success = payload["step_status"] == "done"
                told = (
                    {"output": payload.get("output") or {}}
                    if success
                    else {"error": _error_of(payload)}
                )
                results.append(
                    {
                        "name": step.uses,
                        "success": success,
                        "step": step.id,
                        **told,
                        "truncated": False,
                    }
                )
        return results

    def effects_of(self, plan: TurnPlan) -> list[dict[str, Any]]:
        """What came of each step of a plan."""
        return [self._effect(step.id, step.uses) for step in plan.skill.steps]

    def _effect(self, step_id: str, uses: str) -> dict[str, Any]:
        closing, ref = self._closings.get(step_id), f"{self._root}/{step_id}"
        payload = closing.payload if closing else {}
        effect = {
            "step_id": step_id,
            "capability": uses,
            "status": payload.get("step_status") or "pending",
            "ref": ref,
        }
        code = object_of(payload.get("error")).get("code")
        if code:
            effect["code"] = code
        facts = [fact for fact in self._facts if fact["ref"] == ref]
        if facts:
            effect["facts"] = facts
        if payload.get("output") is not None:
            effect["result"] = digest_of(payload["output"])
        return effect

    @property
    def facts(self) -> list[dict[str, Any]]:
        """The facts of the run so far, as memory events hold them."""
        return [{"key": fact["key"], "value": fact["value"]} for fact in self._facts]


def _error_of(payload: dict[str, Any]) -> dict[str, Any]:
    """Why a step did not end well."""
    error = object_of(payload.get("error"))
    code = error.get("code") or payload.get("reason") or payload["step_status"]
    return {"code": code, "message": error.get("message") or "", "hint": error.get("hint") or ""}
