"""The fold of the events of an agent's own run to facts and results of its calls.

It reads events as the log holds them, with masked secrets, so that resume and replay make the same decisions.
"""

from __future__ import annotations

from typing import Any, Final

from cogcli.agent.cognition.invocation import Invocation
from cogcli.agent.cognition.planner import TurnPlan
from cogcli.agent.context.inputs import Edge
from cogcli.base.canonical import digest_of
from cogcli.base.jsonvalue import equal
from cogcli.base.redact import BY_NAME
from cogcli.base.refs import MISSING
from cogcli.base.step_path import StepPath
from cogcli.declarations.agent_events import ContextCompiled
from cogcli.declarations.call_records import StepError
from cogcli.declarations.envelope import Event, mask_payload
from cogcli.declarations.events import StepFinished
from cogcli.declarations.governance_events import BudgetExceeded, PolicyDecided
from cogcli.declarations.pack_spec import DATA_CLASSES, PackTool
from cogcli.declarations.reading import read_record
from cogcli.declarations.run_start import LATEST_EDITION
from cogcli.declarations.typed_payload import read_payload
from cogcli.declarations.value_types import Json
from cogcli.specs.skill_tools import called_by
from cogcli.state.namespaces import walk

INTERNAL: Final = "internal"
"""The class of data whose class is not declared."""
_GATE_CODES = ("safety.gate", "safety.gate-error")


class Observer:
    """The run of an agent after the events read so far."""

    def __init__(self, started: Event, invocation: Invocation) -> None:
        self._invocation = invocation
        self._root = started.run_id
        self._closings: dict[str, StepFinished] = {}
        self._facts: list[Json] = []
        self._refs: dict[str, str] = {}
        self._gates: list[Json] = []
        self._learned: list[Edge] = []
        self.calls = 0
        """The number of root-run steps that called a capability or a skill."""
        self.data_class = INTERNAL
        """The most restrictive data class among the outputs of the calls."""
        self.denial = ""
        """The rule or the reason of the last denial, or `budget_exceeded:KEY`. Empty without one."""
        self.post_gate_failed = False
        """Whether a gate after a call refused its response."""

    @property
    def learned_edges(self) -> tuple[Edge, ...]:
        """The facts from the run's calls, in order."""
        return tuple(self._learned)

    def apply(self, event: Event) -> None:
        """Apply the next event, also of a nested run."""
        match read_payload(event, whole=True):
            case ContextCompiled() as compiled:
                self._gates = compiled.context["runtime_controls"]["evidence_gates"]
            case PolicyDecided(decision="veto") as decided:
                self.denial = decided.rule or decided.reason or ""
            case BudgetExceeded() as exceeded:
                self.denial = f"budget_exceeded:{exceeded.key}"
            case StepFinished() if StepPath(event.step_id or "").is_step:
                self._close_step(event._replace(payload=mask_payload(event.payload, BY_NAME)))

    def _close_step(self, event: Event) -> None:
        closing = read_record(StepFinished, event.payload)
        called, is_done = called_by(closing.json), closing.step_status == "done"
        if event.run_id == self._root:
            self._closings[event.step_id or ""] = closing
            self.calls += bool(called and (is_done or closing.attempts))
        if called and is_done:
            self._learn_facts(event, called, closing.output)
        code = closing.error.code if closing.error else ""
        answered = any(each.status == "success" for each in closing.attempts or ())
        self.post_gate_failed = self.post_gate_failed or (code in _GATE_CODES and answered)

    def _learn_facts(self, event: Event, capability: str, output: object) -> None:
        """Store the facts that the pack declares for the output of a finished call."""
        declared = self._invocation.pack.tooling.capabilities.get(capability, PackTool()).facts
        ref, data_class = f"{event.run_id}/{event.step_id}", self._find_class(capability)
        self.data_class = max(self.data_class, data_class, key=DATA_CLASSES.index)
        for key, source in declared.items():
            value = walk({"output": output}, tuple(source.split(".")))
            slot, _, predicate = key.partition(".")
            entity = self._invocation.intent.slots.get(slot)
            if value is MISSING or value is None or entity is None:
                continue
            edge = Edge(
                entity,
                predicate,
                ref,
                event.timestamp,
                value=value,
                trust="verified",
                data_class=data_class,
                tenant_id=self._invocation.pack.tenant,
            )
            self._store_fact(key, edge)

    def _store_fact(self, key: str, edge: Edge) -> None:
        """Store a learned edge, and its fact under a key of the pack."""
        self._refs[key] = edge.evidence_ref
        fact: Json = {
            "key": key,
            "entity": edge.subject,
            "predicate": edge.predicate,
            "value": edge.value,
            "ref": edge.evidence_ref,
        }
        if edge.data_class != INTERNAL:
            fact["data_class"] = edge.data_class
        fact["corrects"] = self._contradicts(edge.subject, edge.predicate, edge.value)
        self._facts.append(fact)
        self._learned.append(edge)

    def _find_class(self, capability_id: str) -> str:
        """Return the classification of a capability's output. For a skill, return the highest one that it reaches."""
        capability = self._invocation.capabilities.get(capability_id)
        if capability is None or self._invocation.policy.edition < LATEST_EDITION:
            return INTERNAL
        return capability.data_class

    def _contradicts(self, entity: str, predicate: str, value: object) -> bool:
        """Return whether the stores have another value of a single-valued predicate."""
        stored = [
            e
            for e in self._invocation.fetched.edges
            if (e.subject, e.predicate) == (entity, predicate)
        ]
        single = predicate in self._invocation.pack.knowledge.single_valued
        return single and any(not equal(edge.value, value) for edge in stored)

    @property
    def evidence_gates(self) -> list[Json]:
        """The gates of the compiled context. A gate whose fact a later call supplied is satisfied."""
        return [
            {**gate, "status": "satisfied", "refs": [self._refs[gate["name"]]]}
            if gate["name"] in self._refs
            else gate
            for gate in self._gates
        ]

    @property
    def conflicts(self) -> tuple[str, ...]:
        """The required evidence with contradicting values."""
        return tuple(gate["name"] for gate in self.evidence_gates if gate["status"] == "conflict")

    @property
    def outputs(self) -> Json:
        """The outputs of the finished calls, merged by name. If two have the same name, the later one wins."""
        done = (each for each in self._closings.values() if each.step_status == "done")
        found: Json = {}
        for closing in done:
            if called_by(closing.json) and isinstance(closing.output, dict):
                found |= closing.output
        return found

    def find_result(self, step_id: str) -> Any:
        """Return the output or the error of a step of the root run, or None if the step did not run."""
        closing = self._closings.get(step_id)
        if closing is None:
            return None
        return closing.output or (closing.error.json if closing.error else None)

    def find_say(self, step_id: str) -> str:
        """Return the text for the customer of a denied step; empty if the pack has none."""
        closing = self._closings.get(step_id)
        return (closing.error.say or "") if closing and closing.error else ""

    def list_results(self, plan: TurnPlan) -> list[Json]:
        """Return the results of the ended steps of a plan, for a model."""
        results = []
        for step in plan.skill.steps:
            if (closing := self._closings.get(step.id)) is not None:
                success = closing.step_status == "done"
                result = (
                    {"output": closing.output or {}}
                    if success
                    else {"error": _error_for_model(closing)}
                )
                named = {"name": step.uses, "success": success, "step": step.id}
                results.append({**named, **result, "truncated": False})
        return results

    def list_effects(self, plan: TurnPlan) -> list[Json]:
        """Return the effect of each step of a plan."""
        return [self._effect_of_step(step.id, step.uses) for step in plan.skill.steps]

    def _effect_of_step(self, step_id: str, uses: str) -> Json:
        closing, ref = self._closings.get(step_id), f"{self._root}/{step_id}"
        effect: Json = {
            "step_id": step_id,
            "capability": uses,
            "status": closing.step_status if closing else "pending",
            "ref": ref,
        }
        if closing and closing.error and closing.error.code:
            effect["code"] = closing.error.code
        facts = [fact for fact in self._facts if fact["ref"] == ref]
        if facts:
            effect["facts"] = facts
        if closing and closing.output is not None:
            effect["result"] = digest_of(closing.output)
        return effect

    @property
    def facts(self) -> list[Json]:
        """The facts of the run, for memory events."""
        return [{"key": fact["key"], "value": fact["value"]} for fact in self._facts]


def _error_for_model(closing: StepFinished) -> Json:
    """Return the error of a step that did not complete, for a model."""
    error = closing.error or StepError(code="", message="")
    code = error.code or closing.reason or closing.step_status
    return {"code": code, "message": error.message, "hint": error.hint or ""}
