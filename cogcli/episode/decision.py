"""The decision of an agent's run, folded from its log: `decision.json` and `context.json`
(docs/reference/agent-run.md#decision). Pure; the loop, sealing and `verify` use the same fold.

1. A run that has not recorded its decision is pending: it waits for an answer, or was interrupted.
2. `record_hash` covers all other members, so two records with the same hash are equal.
3. The use of a budget is counted from the log alone.
4. The record covers the log up to `decision.recorded`, so that the loop, sealing and a replay get the same one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from cogcli.base.canonical import digest_of
from cogcli.base.step_path import StepPath
from cogcli.declarations.agent_events import (
    AgentUpdated,
    CandidateProposed,
    ContextCompiled,
    DecisionRecorded,
    LayerCompleted,
    LoopDetected,
    MemoryProposed,
    ModelAnswered,
    PlanJudged,
    PressureCaptured,
    ReflectionRecorded,
    ResultJudged,
)
from cogcli.declarations.call_records import Usage
from cogcli.declarations.envelope import ActiveTime, Event
from cogcli.declarations.event_type import Payload
from cogcli.declarations.events import (
    CallRetried,
    PlanCreated,
    RunPaused,
    RunStarted,
    RunTerminated,
    StepFinished,
    StepStarted,
)
from cogcli.declarations.governance_events import (
    IN_DOUBT,
    Approval,
    PolicyDecided,
)
from cogcli.declarations.layer_records import ProposedMemory
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.run_start import AgentStart, RecordedPolicy, RecordedStart, RequestUser
from cogcli.declarations.typed_payload import read_payload
from cogcli.declarations.value_types import Json
from cogcli.episode.document_bytes import SUMMARY_MEMBERS
from cogcli.policy.prices import COST, Prices

DECISION_SCHEMA: Final = "decision/1"
CONTEXT_SCHEMA: Final = "context/1"
_SETTINGS: Final = ("heartbeat_ms", "soft", "stage_latency_ms")
"""Prefixes of limits that are not budgets, since nothing is spent of them."""
_ENDING: Final = ("decision_key", "status", "status_reason", "outcome", "outputs")
"""The members of a decision that `decision.recorded` adds."""
_COUNTED_REPLAN: Final = "replan"
TOKENS: Final = "tokens.workflow"
"""The budget of model calls."""


def decision_id_of(run_id: str) -> str:
    """Return the id of the decision of a run."""
    return f"dc_{digest_of(run_id).removeprefix('sha256:')[:16]}"


class _OpenRequest(Record):
    """The latest request without an answer, if the run waits for one."""

    kind: str = ""
    gate: str = ""
    say: str = ""


class ExecutionMode(Record):
    """The mode of a reasoning model, from the member `execution` of `agent.updated`."""

    mode: str | None = None
    switches: int | None = None


class DecisionFold:
    """The decision of one root run after the events read so far. `started` is the run's first event."""

    def __init__(self, started: Event) -> None:
        self._started = started
        start = read_record(RecordedStart, started.payload)
        self._pins = start.pins
        self._agent = read_record(AgentStart, {}) if start.agent is None else start.agent
        self._user = self._agent.request.user or RequestUser()
        self._active = ActiveTime()
        self._turns = self._replans = self._trips = 0
        self._used: Counter[str] = Counter()
        self._intent = (start.policy or RecordedPolicy()).intent
        self._candidate: CandidateProposed | None = None
        self._plan: Json | None = None
        self._policy: list[Json] = []
        self._approvals: dict[str, Json] = {}
        self._calls: list[Json] = []
        self._verified: list[Json] = []
        self._scored: list[Json] = []
        self._pressures: list[Json] = []
        self._proposals: list[Json] = []
        self._lanes: dict[str, Json] = {}
        self._gates: list[Json] = []
        self._context_hashes: list[str] = []
        self._shown: Json = {}
        self._bearing: Json = {}
        self._recorded: Json = {}
        self._say = ""
        """The text for the customer of the latest turn."""
        self._paused = ""
        """The code of the latest pause."""
        self.contexts: list[Json] = []
        """The compiled context of each turn."""
        self.agent: Json = {}
        """The `x-agent` of `state.json`; empty for a run without a model."""
        self.apply(started)

    def apply(self, event: Event) -> None:
        """Fold the next event of the log, which may be of a nested run. Events after the decision are ignored."""
        if self._recorded:
            return
        payload = read_payload(event, whole=True)
        if isinstance(payload, DecisionRecorded):
            self._recorded = {name: event.payload[name] for name in _ENDING}
            return
        self._active.apply(event)
        match payload:
            case StepFinished():
                self._count_tokens(payload.usage)
                self._apply_call(event, payload)
            case StepStarted() | CallRetried():
                self._count_call(event, payload)
            case RunStarted() if event.run_id != self._started.run_id:
                lane = {"run_id": event.run_id, "skill": payload.skill.id, "status": "pending"}
                self._lanes[event.run_id or ""] = lane
            case RunTerminated() if event.run_id in self._lanes:
                self._lanes[event.run_id]["status"] = payload.status
            case Approval():
                self._apply_approval(payload)
            case _:
                self._apply_turn(event, payload)

    def _apply_turn(self, event: Event, payload: Payload) -> None:
        match payload:
            case LayerCompleted():
                self._turns = max(self._turns, payload.turn)
            case ContextCompiled():
                self._apply_context(payload.context)
            case CandidateProposed():
                self._candidate = payload
            case PlanCreated() if payload.plan_id is not None:
                self._plan = {"plan_id": payload.plan_id, "plan_hash": payload.plan_hash}
            case PolicyDecided():
                self._apply_decision(event, payload)
            case PlanJudged():
                self._verified.append(_select_members(payload, "turn", "verdict", "fails"))
                self._replans += payload.verdict == _COUNTED_REPLAN
            case ResultJudged():
                _list_refs(payload.evidence_gates)
                self._scored.append(
                    _select_members(payload, "turn", "verdict", "reason", "goal_met")
                )
                self._replans += payload.verdict == _COUNTED_REPLAN
                self._gates = payload.evidence_gates
            case _:
                self._apply_measure(payload)

    def _apply_measure(self, payload: Payload) -> None:
        """Add the usage and the results of a turn, and the reason for a wait."""
        match payload:
            case RunPaused():
                self._paused = (payload.reason or "").partition(":")[0]
            case PressureCaptured():
                self._pressures.append(payload.json)
            case ReflectionRecorded():
                self._apply_stage_times(payload.stage_ms or {})
                self._say = payload.say or ""
            case MemoryProposed():
                self._proposals += payload.proposals
            case LoopDetected():
                self._trips += 1
            case AgentUpdated():
                self.agent = {"execution": payload.execution, "reasoning": payload.reasoning}
            case ModelAnswered():
                self._count_tokens(payload.usage)
                self._count_cost(payload.usage)

    def _apply_stage_times(self, times: Mapping[str, int]) -> None:
        """Store the longest time of each lifecycle phase."""
        for phase, milliseconds in times.items():
            key = f"stage_latency_ms.{phase}"
            self._used[key] = max(self._used[key], milliseconds)

    def _count_cost(self, usage: Usage) -> None:
        """Add the cost of a model call, if its prices are known."""
        prices = Prices.if_known(self._agent.price_in, self._agent.price_out)
        if prices is not None:
            self._used[COST] += prices.cost(usage.tokens_in, usage.tokens_out)

    def _apply_decision(self, event: Event, payload: PolicyDecided) -> None:
        names = ("decision", "verdict", "rule", "gate", "capability", "step_id", "reason")
        members = _select_members(payload, *names)
        decided = {"event": event.id, **{name: value or None for name, value in members.items()}}
        self._policy.append({**decided, **({"pack": payload.pack} if payload.pack else {})})

    def _apply_context(self, context: Json) -> None:
        """Store a compiled context, unless one of its members is malformed."""
        controls = context["runtime_controls"]
        _list_refs(controls["evidence_gates"])
        shown = dict.fromkeys(each["ref"] for each in context["manifests"]["evidence_manifest"])
        bearing = dict.fromkeys((*controls["must_refuse"], *controls["must_escalate"]))
        self._context_hashes.append(context["context_ledger"]["context_hash"])
        self._shown |= shown
        self._bearing |= bearing
        self.contexts.append(context)
        self._gates = controls["evidence_gates"]

    def _count_call(self, event: Event, payload: StepStarted | CallRetried) -> None:
        """Count an attempt, unless it belongs to a gate or a probe, which no budget counts."""
        path = StepPath(event.step_id or "")
        if payload.binding and not path.is_gate and not path.in_probe:
            self._used["tool_calls.per_workflow"] += 1

    def _count_tokens(self, usage: Usage | None) -> None:
        """Count the tokens of a model call, or of the calls of a step."""
        if usage is not None and (tokens := usage.tokens_in + usage.tokens_out):
            self._used[TOKENS] += tokens

    def _apply_call(self, event: Event, payload: StepFinished) -> None:
        path = StepPath(event.step_id or "")
        if not payload.capability or path.is_gate or path.in_probe:
            return
        self._calls.append(
            {
                "step_id": event.step_id,
                "capability": payload.capability,
                "status": payload.step_status,
                "code": payload.error.code if payload.error else None,
                "event": event.id,
            }
        )

    def _apply_approval(self, payload: Approval) -> None:
        known = self._approvals.setdefault(
            payload.approval_id, {"answer": None, "by": None, "role": None}
        )
        members = _select_members(
            payload, "approval_id", "gate", "kind", "capability", "step_id", "say"
        )
        known.update({name: value for name, value in members.items() if value is not None})
        if payload.answer:
            known.update(answer=payload.answer, by=payload.by, role=payload.role)
            if payload.signature is not None:
                known["signed_with"] = payload.signature.key

    # -- the documents ------------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> Json | None:
        """The latest request without an answer."""
        open_requests = [each for each in self._approvals.values() if each["answer"] is None]
        return open_requests[-1] if open_requests else None

    def context(self) -> Json:
        """Return `context.json` as an object."""
        return {"schema_version": CONTEXT_SCHEMA, "turns": self.contexts}

    def record(self, ending: Json | None = None) -> Json:
        """Return `decision.json` as an object.

        `ending` has the members `decision_key`, `status`, `status_reason`, `outcome` and `outputs`. By default they
        come from `decision.recorded`, or else describe a waiting run.
        """
        ending = ending or self._recorded or self._open_ending()
        agent, pins = self._agent, self._pins
        run_id = self._started.run_id or ""
        record = {
            "schema_version": DECISION_SCHEMA,
            "decision_id": decision_id_of(run_id),
            "decision_key": ending["decision_key"],
            "run_id": run_id,
            "trace_id": self._started.trace_id,
            "tenant_id": agent.tenant_id,
            "session_id": agent.request.session_id or None,
            "status": ending["status"],
            "status_reason": ending["status_reason"],
            "outcome": ending["outcome"],
            "intent": self._intent,
            "task_template": self._candidate.template if self._candidate else None,
            "actor": {
                "user_id": self._user.user_id,
                "role": self._user.role,
                "agent": agent.role,
            },
            "subjects": agent.subjects,
            "evidence_refs": list(_list_refs(self._gates) | self._shown),
            "evidence_gates": self._gates,
            "policy_decisions": self._policy,
            "approvals": list(self._approvals.values()),
            "controls_active": self._applied_controls(),
            "plan_ref": self._plan,
            "calls": self._calls,
            "outputs": ending["outputs"],
            "critic": {"verify": self._verified, "score": self._scored},
            "memory_proposals": self._proposals,
            "lineage": {
                "pack_ref": pins.policy,
                "policy_hash": pins.policy_hash,
                **({"pack_refs": pins.packs} if pins.packs else {}),
                "snapshot_ref": pins.snapshot,
                "compiled_context_hashes": self._context_hashes,
                "model": pins.model.json if pins.model else None,
                "tokenizer": pins.tokenizer,
                "functional_state": self._pressures,
                "parent_decision_id": None,
            },
            "budget": {"limits": agent.limits, "used": self.used()},
            "children": list(self._lanes.values()),
        }
        if say := ending.get("say", self._say):
            record["say"] = say
        return {**record, "record_hash": digest_of(record)}

    def used(self) -> dict[str, int]:
        """Return the use of each counted budget, and the active time."""
        elapsed = self._active.milliseconds or 0
        return {
            "turns": self._turns,
            "replans": self._replans,
            **self._used,
            "wall_clock_ms": elapsed,
        }

    def budgets(self, tokens: int) -> dict[str, Json]:
        """Return the limit and the use of each budget. The use is null if the run does not count it. `tokens` is
        the sum over all model calls.
        """
        used = {"tool_calls.per_workflow": 0, TOKENS: tokens, **self.used()}
        return {
            key: {"limit": limit, "used": used.get(key)}
            for key, limit in self._agent.limits.items()
            if not key.startswith(_SETTINGS)
        }

    def overview(self) -> Json:
        """Return the decision in `summary.json`, for lists."""
        return {
            **self.summary(),
            "intent": self._intent,
            "pack_ref": self._pins.policy,
            "user_id": self._user.user_id,
        }

    def reflection(self) -> Json:
        """Return the `x-agent` of `learn.jsonl`: the effort of the reasoning."""
        mode = read_record(ExecutionMode, self.agent["execution"])
        return {
            "mode": mode.mode,
            "switches": mode.switches,
            "turns": self._turns,
            "replans": self._replans,
            "loop_trips": self._trips,
            "functional_state": {
                name: max(state[name] for state in self._pressures)
                for name in (self._pressures[0] if self._pressures else ())
                if all(type(state.get(name)) in (int, float) for state in self._pressures)
            },
            "proposals": [
                read_record(ProposedMemory, each).proposal_id for each in self._proposals
            ],
        }

    def summary(self) -> Json:
        """Return the `x-decision` of `state.json`."""
        record = self.record()
        return {name: record[name] for name in SUMMARY_MEMBERS}

    def _open_ending(self) -> Json:
        waiting = read_record(_OpenRequest, None if self._paused == IN_DOUBT else self.waiting)
        escalated = waiting.kind == "escalation"
        return {
            "decision_key": (self._candidate and self._candidate.decision_key) or self._intent,
            "status": "escalated" if escalated else "pending_approval",
            "status_reason": waiting.gate or self._paused,
            "outcome": "pending",
            "outputs": {},
            "say": waiting.say,
        }

    def _applied_controls(self) -> list[str]:
        """Return the ids of the rules and guardrails that applied to the run."""
        return list(
            dict.fromkeys(each["rule"] for each in self._policy if each["rule"]) | self._bearing
        )


def _list_refs(gates: list[Json]) -> Json:
    """Return the references of evidence gates, in order. Raise KeyError or TypeError for a malformed gate."""
    return dict.fromkeys(ref for gate in gates for ref in gate["refs"])


def decision_of_log(events: Iterable[Event], ending: Json) -> Json:
    """Return the record of the root run of a log that ends with these members."""
    first, *rest = events
    fold = DecisionFold(first)
    for event in rest:
        fold.apply(event)
    return fold.record(ending)


def _select_members(payload: Payload, *names: str) -> Json:
    return {name: getattr(payload, name) for name in names}
