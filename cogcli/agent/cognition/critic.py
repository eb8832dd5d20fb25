"""The critic: the verdict on a plan before it runs, and on its results (docs/reference/agent-run.md#critic). Pure.

1. `verify` lists all fails; a `reject` outweighs a `replan`.
2. A redacted capability is as unknown as one that does not exist.
3. Facts about the entity of a request apply to no other entity: calls with effects or facts must name that one.
4. `score` follows the first row that applies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from cogcli.agent.cognition.invocation import Invocation
from cogcli.agent.cognition.planner import Candidate, TurnPlan, decision_of
from cogcli.agent.context.compiler import CompiledContext
from cogcli.base.jsonvalue import only_texts
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.terminal_text import truncate
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.layer_records import TurnEffect
from cogcli.declarations.pack_spec import PackTool, Slot
from cogcli.declarations.skill_spec import Step
from cogcli.declarations.spec_types import NESTED
from cogcli.declarations.value_types import Json
from cogcli.policy.budgets import PER_TURN
from cogcli.policy.guardrails import has_match
from cogcli.policy.loop_guard import LoopTrip
from cogcli.policy.verdict import is_above
from cogcli.specs.fields import fit_values
from cogcli.specs.skill import list_targets

_LONGEST: Final = 160
"""The maximal length of a planner's words in a fail."""
CONFLICT: Final = "conflict"
"""The fail of a plan whose required evidence has two values. A person decides about it."""
TIED_FROM: Final = 0.5
"""The propensity from which a person decides about a gap that a replan did not close."""
REJECTED: Final = ("approval_mode_mismatch", "violates_decision_spec", "budget_exceeded")


class FailedCheck(NamedTuple):
    """A check that a plan failed: its code, the step, and the details."""

    code: str
    step: str = ""
    detail: str = ""

    @property
    def reason(self) -> str:
        """The code, with the details if there are any."""
        return f"{self.code}:{self.detail}" if self.detail else self.code

    def to_payload(self) -> dict[str, str]:
        """Return the failed check as an entry of `critic.verified`."""
        return self._asdict()


class Verification(NamedTuple):
    """The verdict on a plan (ok, replan, escalate or reject) and every check that failed."""

    fails: tuple[FailedCheck, ...]

    @property
    def verdict(self) -> str:
        """reject outweighs escalate, and that replan; without fails it is ok."""
        codes = {fail.code for fail in self.fails}
        if not codes.isdisjoint(REJECTED):
            return "reject"
        if CONFLICT in codes:
            return "escalate"
        return "replan" if self.fails else "ok"


def verify(
    invocation: Invocation,
    context: CompiledContext,
    candidate: Candidate,
    plan: TurnPlan | None,
    *,
    remaining: Mapping[str, int],
    missing_evidence: Iterable[str],
    trips: Mapping[str, LoopTrip],
    conflicts: tuple[str, ...] = (),
) -> Verification:
    """Return the verdict on a plan before it runs.

    `remaining` are the remaining budgets, and `missing_evidence` is the missing required evidence. `trips` are the
    trips of the loop guard by step. `conflicts` is the required evidence with two values.
    """
    if candidate.fault:
        return Verification((FailedCheck(candidate.fault),))
    if plan is None:
        return Verification(tuple(_check_template(invocation, candidate)))
    fails = [*_check_calls(invocation, context, plan, candidate), *_check_graph(plan)]
    fails += _check_evidence(invocation, plan, tuple(missing_evidence))
    fails += [FailedCheck("loop_guard", step, trip.kind) for step, trip in trips.items()]
    fails += _check_template(invocation, candidate)
    known = invocation.capabilities
    calls = sum(uses in known or not uses.startswith(NESTED) for uses in plan.capabilities.values())
    for key in (PER_TURN, "tool_calls.per_workflow"):
        if calls > remaining.get(key, calls):
            fails.append(FailedCheck("budget_exceeded", "", key))
            break
    return Verification(tuple(_explain_by_conflict(fail, context, conflicts) for fail in fails))


def _explain_by_conflict(
    fail: FailedCheck, context: CompiledContext, conflicts: tuple[str, ...]
) -> FailedCheck:
    """Return the conflict that causes a failed check, or the check itself. A conflict leaves required evidence without
    a value. So the evidence looks missing, and calls that need it are redacted.
    """
    lacking = fail.detail if fail.code == "missing_evidence" else ""
    if fail.code == "unknown_capability":
        redactions = context.compilation.surface.redactions
        reasons = (each.reason for each in redactions if each.capability == fail.detail)
        lacking = next(reasons, "").removeprefix("evidence_missing:")
    return FailedCheck(CONFLICT, fail.step, lacking) if lacking in conflicts else fail


def _check_calls(
    invocation: Invocation, context: CompiledContext, plan: TurnPlan, candidate: Candidate
) -> Iterable[FailedCheck]:
    """Return a fail for each call of a capability that is unknown, above the safety mode, or has wrong arguments."""
    surface = {tool.capability: tool for tool in context.compilation.surface.tools}
    arguments = {f"t{plan.turn}_{call.id}": call.arguments for call in candidate.calls}
    for step in plan.skill.steps:
        given = arguments.get(step.id)
        for id in _called_capabilities(plan, step, is_proposed=given is not None):
            tool = surface.get(id)
            if tool is None:
                yield FailedCheck("unknown_capability", step.id, truncate(id, _LONGEST))
            elif is_above(tool.approval_mode, invocation.safety_mode):
                yield FailedCheck("approval_mode_mismatch", step.id, tool.approval_mode)
            elif given is not None and (wrong := _wrong_arguments(invocation, id, given)):
                yield FailedCheck("args_invalid", step.id, truncate(wrong, _LONGEST))


def _called_capabilities(plan: TurnPlan, step: Step, *, is_proposed: bool) -> list[str]:
    """Return the capabilities that a step calls. A proposed call always has a capability. A step of a template may
    instead have a lane or a nested skill, whose calls are governed separately.
    """
    if is_proposed:
        return [step.uses]
    targets = list_targets(plan.skill.replace(steps=(step,)))
    return [id for id in targets if not id.startswith(NESTED)]


def _wrong_arguments(invocation: Invocation, id: str, arguments: Json) -> str:
    capability = invocation.capabilities[id]
    return _find_misfit(capability, arguments) or _find_other_entity(
        invocation, capability, arguments
    )


def _find_other_entity(invocation: Invocation, capability: Capability, arguments: Json) -> str:
    """Return a message if a call with effects or facts concerns another entity than the request; otherwise empty. Facts
    about one entity do not apply to another.
    """
    has_effects = is_above(invocation.policy.mode_of(capability), "read_only")
    facts = invocation.pack.tooling.capabilities.get(capability.id, PackTool()).facts
    supplied = {name.partition(".")[0] for name in facts}
    slots = invocation.pack.decisions.intents[invocation.intent.intent].slots
    for name, entity in invocation.intent.slots.items():
        if (has_effects or name in supplied) and name in slots:
            own, named = entity.partition(":")[2], _find_slot_ids(slots[name], arguments)
            if named and own not in named:
                return f"{named[0]} is not the {name} of the request, {own}"
    return ""


def _find_slot_ids(slot: Slot, arguments: Json) -> list[str]:
    """Return the ids for a slot in arguments: the value of its parameter, or else all strings that
    match its pattern."""
    if arguments.get(slot.param) is not None:
        return [str(arguments[slot.param])]
    texts = only_texts(arguments.values())
    return [text for text in texts if slot.pattern and has_match(f"^(?:{slot.pattern})$", text)]


def _find_misfit(capability: Capability, arguments: Json) -> str:
    unknown = next((name for name in arguments if name not in capability.inputs), "")
    if unknown:
        return f"no input {unknown}"
    _, violations = fit_values(capability.inputs, arguments)
    return violations[0].message if violations else ""


def _check_graph(plan: TurnPlan) -> Iterable[FailedCheck]:
    """Return a fail if steps wait for each other, or for a step that does not exist."""
    waiting = {step.id: set(step.config.depends_on or ()) for step in plan.skill.steps}
    if len(waiting) < len(plan.skill.steps) or not waiting.keys() >= set().union(*waiting.values()):
        yield FailedCheck("dependency_cycle", "", "a step that is not there")
        return
    while free := {id for id, named in waiting.items() if not named & waiting.keys()}:
        waiting = {id: named for id, named in waiting.items() if id not in free}
    if waiting:
        yield FailedCheck("dependency_cycle", next(iter(waiting)))


def _check_evidence(
    invocation: Invocation, plan: TurnPlan, missing_evidence: tuple[str, ...]
) -> Iterable[FailedCheck]:
    """Return a fail for required evidence that is not known and that no step before the first effect supplies."""
    tools, supplied = invocation.pack.tooling.capabilities, set[str]()
    for step in plan.skill.steps:
        capability = invocation.capabilities.get(step.uses)
        if capability is None:
            continue
        if is_above(invocation.policy.mode_of(capability), "read_only"):
            for name in missing_evidence:
                if name not in supplied:
                    yield FailedCheck("missing_evidence", step.id, name)
            return
        supplied |= tools.get(capability.id, PackTool()).facts.keys()


def _check_template(invocation: Invocation, candidate: Candidate) -> Iterable[FailedCheck]:
    """Return a fail for a template that does not belong to the intent, or has outcomes that its decision lacks."""
    layer = invocation.pack.decisions
    if not candidate.template:
        return
    intent = layer.intents[invocation.intent.intent]
    if candidate.template not in intent.templates:
        yield FailedCheck("violates_decision_spec", "", candidate.template)
        return
    decision = decision_of(invocation, candidate)
    outcomes = layer.task_templates[candidate.template].outcome.values()
    for outcome in outcomes:
        if decision.outcomes and outcome not in decision.outcomes:
            yield FailedCheck("violates_decision_spec", "", outcome)


class Score(NamedTuple):
    """The verdict on a turn: escalate, replan or accept; the reason; and whether the goal is met."""

    verdict: str
    reason: str
    goal_met: bool


class Results(NamedTuple):
    """The results of a finished turn, as the critic reads them."""

    effects: tuple[Json, ...]
    """The effect of each step."""
    post_gate_failed: bool
    late_phase: str
    """The lifecycle phase that exceeded its limit of time. Empty if there is none."""
    conflicts: tuple[str, ...]
    """Required evidence with contradicting values."""
    success: bool | None
    """Whether the goal is met by the rule of the decision or the template. None without a rule."""
    answered: bool
    """Whether there is a response."""
    may_replan: bool
    """Whether the planner can replan, and a replan is left."""
    tied: bool
    """Whether the replan before ended on the same step or gap."""
    escalation_propensity: float

    @property
    def failures(self) -> list[Json]:
        """The steps that failed or were vetoed."""
        return [each for each in self.effects if each["status"] in ("failed", "vetoed")]

    @property
    def goal_met(self) -> bool:
        """Whether the goal is met, apart from other faults of the turn."""
        met = self.answered if self.success is None else self.success
        return met and not self.failures


def score(results: Results) -> Score:
    """Return the verdict on a turn."""
    if results.post_gate_failed:
        return Score("escalate", "post_gate_failed", False)
    if results.late_phase:
        return Score("escalate", f"budget_exceeded:latency:{results.late_phase}", False)
    if results.conflicts:
        return Score("escalate", f"conflict:{results.conflicts[0]}", False)
    gap = _find_result_gap(results)
    if not results.may_replan or not gap:
        return Score("accept", "", results.goal_met)
    if results.tied and results.escalation_propensity >= TIED_FROM:
        return Score("escalate", f"tie:{gap}", False)
    return Score("replan", gap, False)


def _find_result_gap(results: Results) -> str:
    """Return the code or the status of the first failed step, else the missed goal; otherwise empty."""
    for failed in map(TurnEffect.of, results.failures):
        return failed.code or failed.status
    return "goal_unmet" if results.success is False else ""
