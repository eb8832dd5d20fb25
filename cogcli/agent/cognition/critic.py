"""The critic: whether a plan may run, and what came of it (docs/reference/agent-run.md#critic). Pure.

1. `verify` lists all that is wrong; a `reject` outweighs a `replan`.
2. A capability that is kept from the model is as unknown as one that does not exist.
3. What is known of the entity of a request counts for no other: calls with effects or facts name that one.
4. `score`: the first row that holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from cogcli.agent.cognition.invocation import Invocation
from cogcli.agent.cognition.planner import Candidate, TurnPlan, decision_of
from cogcli.agent.context.compiler import CompiledContext
from cogcli.base.terminal_text import truncate
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.pack_spec import PackTool, Slot
from cogcli.declarations.spec_types import NESTED
from cogcli.policy.budgets import PER_TURN
from cogcli.policy.guardrails import has_match
from cogcli.policy.loop_guard import LoopTrip
from cogcli.policy.verdict import is_above
from cogcli.specs.fields import fit_values
from cogcli.specs.skill import list_targets

_LONGEST: Final = 160
"""Characters of what a fail says of a planner's own words."""
REJECTED: Final = ("approval_mode_mismatch", "violates_decision_spec", "budget_exceeded")


class Fail(NamedTuple):
    """One thing that is wrong with a plan: a word of the reference, the step, and the details."""

    code: str
    step: str = ""
    detail: str = ""

    @property
    def reason(self) -> str:
        """The fail in one word, with its detail."""
        return f"{self.code}:{self.detail}" if self.detail else self.code

    def to_payload(self) -> dict[str, str]:
        """The fail as `critic.verified` holds it."""
        return self._asdict()


class Verification(NamedTuple):
    """The verdict on a plan: ok, replan or reject, and all that is wrong."""

    fails: tuple[Fail, ...]

    @property
    def verdict(self) -> str:
        """reject outweighs replan; nothing wrong is ok."""
        if any(fail.code in REJECTED for fail in self.fails):
            return "reject"
        return "replan" if self.fails else "ok"


def verify(
    invocation: Invocation,
    context: CompiledContext,
    candidate: Candidate,
    plan: TurnPlan | None,
    *,
    remaining: Mapping[str, int],
    unresolved: Iterable[str],
    trips: Mapping[str, LoopTrip],
) -> Verification:
    """Whether a plan may run. `remaining` is what the budgets have left, `unresolved` the required evidence that is not
    known yet, `trips` by step the trips of the loop guard."""
    if candidate.fault:
        return Verification((Fail(candidate.fault),))
    if plan is None:
        return Verification(tuple(_of_decision(invocation, candidate)))
    fails = [*_of_calls(invocation, context, plan, candidate), *_of_graph(plan)]
    fails += _of_evidence(invocation, plan, tuple(unresolved))
    fails += [Fail("loop_guard", step, trip.kind) for step, trip in trips.items()]
    fails += _of_decision(invocation, candidate)
    known = invocation.capabilities
    calls = sum(uses in known or not uses.startswith(NESTED) for uses in plan.capabilities.values())
    for key in (PER_TURN, "tool_calls.per_workflow"):
        if calls > remaining.get(key, calls):
            fails.append(Fail("budget_exceeded", "", key))
            break
    return Verification(tuple(fails))


def _of_calls(
    invocation: Invocation, context: CompiledContext, plan: TurnPlan, candidate: Candidate
) -> Iterable[Fail]:
    surface = {tool.capability: tool for tool in context.compilation.surface.tools}
    arguments = {f"t{plan.turn}_{call.id}": call.arguments for call in candidate.calls}
    for step in plan.skill.steps:
        is_proposed = step.id in arguments
        # What a call names is a capability, whatever else the word would mean in a skill.
        for id in [step.uses] if is_proposed else list_targets(plan.skill.replace(steps=(step,))):
            tool = surface.get(id)
            if id.startswith(NESTED) and not is_proposed:
                continue  # a lane, or a skill that a template nests: its own calls are governed
            if tool is None:
                yield Fail("unknown_capability", step.id, truncate(id, _LONGEST))
            elif is_above(tool.approval_mode, invocation.safety_mode):
                yield Fail("approval_mode_mismatch", step.id, tool.approval_mode)
            elif is_proposed and (wrong := _wrong_arguments(invocation, id, arguments[step.id])):
                yield Fail("args_invalid", step.id, truncate(wrong, _LONGEST))


def _wrong_arguments(invocation: Invocation, id: str, arguments: dict[str, Any]) -> str:
    capability = invocation.capabilities[id]
    return _misfit(capability, arguments) or _about_another(invocation, capability, arguments)


def _about_another(
    invocation: Invocation, capability: Capability, arguments: dict[str, Any]
) -> str:
    """What a call with effects, or one that supplies facts, names instead of the entity of the request: what is known
    of the one would count for the other. Empty where it names none, or that."""
    has_effects = is_above(invocation.policy.mode_of(capability), "read_only")
    facts = invocation.pack.tooling.capabilities.get(capability.id, PackTool()).facts
    supplied = {name.partition(".")[0] for name in facts}
    slots = invocation.pack.decisions.intents[invocation.intent.intent].slots
    for name, entity in invocation.intent.slots.items():
        if (has_effects or name in supplied) and name in slots:
            own, named = entity.partition(":")[2], _named(slots[name], arguments)
            if named and own not in named:
                return f"{named[0]} is not the {name} of the request, {own}"
    return ""


def _named(slot: Slot, arguments: dict[str, Any]) -> list[str]:
    """The ids that arguments have for a slot: the one under its parameter, else all texts that its pattern matches."""
    if arguments.get(slot.param) is not None:
        return [str(arguments[slot.param])]
    texts = [value for value in arguments.values() if isinstance(value, str)]
    return [text for text in texts if slot.pattern and has_match(f"^(?:{slot.pattern})$", text)]


def _misfit(capability: Capability, arguments: dict[str, Any]) -> str:
    unknown = next((name for name in arguments if name not in capability.inputs), "")
    if unknown:
        return f"no input {unknown}"
    _, violations = fit_values(capability.inputs, arguments)
    return violations[0].message if violations else ""


def _of_graph(plan: TurnPlan) -> Iterable[Fail]:
    """A fail where steps wait for each other, or for one that is not there."""
    ids = {step.id for step in plan.skill.steps}
    waiting = {step.id: set(step.config.depends_on or ()) for step in plan.skill.steps}
    if any(not named <= ids for named in waiting.values()) or len(ids) < len(plan.skill.steps):
        yield Fail("dependency_cycle", "", "a step that is not there")
        return
    while waiting:
        free = [id for id, named in waiting.items() if not named & waiting.keys()]
        if not free:
            yield Fail("dependency_cycle", next(iter(waiting)))
            return
        for id in free:
            del waiting[id]


def _of_evidence(
    invocation: Invocation, plan: TurnPlan, unresolved: tuple[str, ...]
) -> Iterable[Fail]:
    """A fail for required evidence that is neither known nor supplied by a step before one with effects."""
    tools, supplied = invocation.pack.tooling.capabilities, set[str]()
    for step in plan.skill.steps:
        capability = invocation.capabilities.get(step.uses)
        if capability is None:
            continue
        if is_above(invocation.policy.mode_of(capability), "read_only"):
            for name in unresolved:
                if name not in supplied:
                    yield Fail("missing_evidence", step.id, name)
            return
        supplied |= tools.get(capability.id, PackTool()).facts.keys()


def _of_decision(invocation: Invocation, candidate: Candidate) -> Iterable[Fail]:
    """A fail for a template that is none of the intent's, or whose outcomes its decision does not have."""
    layer = invocation.pack.decisions
    if not candidate.template:
        return
    intent = layer.intents[invocation.intent.intent]
    if candidate.template not in intent.templates:
        yield Fail("violates_decision_spec", "", candidate.template)
        return
    decision = decision_of(invocation, candidate)
    outcomes = layer.task_templates[candidate.template].outcome.values()
    for outcome in outcomes:
        if decision.outcomes and outcome not in decision.outcomes:
            yield Fail("violates_decision_spec", "", outcome)


class Score(NamedTuple):
    """What came of a turn: escalate, replan or accept; why; and whether the goal is met."""

    verdict: str
    reason: str
    goal_met: bool


class Results(NamedTuple):
    """What the critic sees of a turn when it is over."""

    effects: tuple[dict[str, Any], ...]
    """What came of each step."""
    post_gate_failed: bool
    late_phase: str
    """The lifecycle phase that took longer than it may; empty where none did."""
    conflicts: tuple[str, ...]
    """Required evidence with two values."""
    success: bool | None
    """What the template's `success` says; None without one."""
    answered: bool
    """Whether a response was given."""
    may_replan: bool
    """Whether the planner proposes something else, and a replan is left."""
    tied: bool
    """Whether the replan before ended on the same step or gap."""
    escalation_propensity: float

    @property
    def failures(self) -> list[dict[str, Any]]:
        """The steps that failed or were vetoed."""
        return [each for each in self.effects if each["status"] in ("failed", "vetoed")]

    @property
    def goal_met(self) -> bool:
        """Whether the goal is met, whatever else is wrong with the turn."""
        met = self.answered if self.success is None else self.success
        return met and not self.failures


def score(results: Results) -> Score:
    """The verdict on a turn."""
    if results.post_gate_failed:
        return Score("escalate", "post_gate_failed", False)
    if results.late_phase:
        return Score("escalate", f"budget_exceeded:latency:{results.late_phase}", False)
    if results.conflicts:
        return Score("escalate", f"conflict:{results.conflicts[0]}", False)
    bad = results.failures
    if results.may_replan and (bad or results.success is False):
        reason = bad[0].get("code") or bad[0]["status"] if bad else "goal_unmet"
        if results.tied and results.escalation_propensity >= 0.5:
            return Score("escalate", f"tie:{reason}", False)
        return Score("replan", reason, False)
    return Score("accept", "", results.goal_met)
