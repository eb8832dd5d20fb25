"""The verdict of a run's policy on a whole plan before its first effect (docs/reference/agent-run.md#gate).

Each call is judged on the arguments that are known: literals, and parameters of the request. Rules that may read any
other value wait for the call, and so does a step that may not run, or that chooses its target. A lane is judged by its
steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from cogcli.agent.cognition.planner import TurnPlan
from cogcli.base.canonical import digest_of
from cogcli.base.errors import CogcliError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.redact import BY_NAME
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.envelope import Draft, draft_of
from cogcli.declarations.governance_events import PolicyDecided
from cogcli.declarations.pack_spec import PackTool
from cogcli.declarations.skill_spec import Skill, Step
from cogcli.declarations.spec_types import NESTED
from cogcli.declarations.value_types import Json
from cogcli.policy.run_policy import RunPolicy
from cogcli.policy.verdict import Verdict
from cogcli.run.engine.context import Engine
from cogcli.run.engine.run import RootRun
from cogcli.specs.fields import fit_values
from cogcli.state.execution import ExecutionState, RunState
from cogcli.state.expressions import compile_expression, value_of
from cogcli.state.inputs import Scope, compile_input

_CHANGING = ("run.now", "state")
"""The values that change from event to event."""
MAX_DEPTH: Final = 4
"""The nesting depth to which lanes and nested skills are checked before their plan begins. Deeper calls are checked
when they are made.
"""


class PlannedCall(NamedTuple):
    """One call of a plan, with the verdict on its known arguments. The verdict is None if it depends on values known
    only at the call.
    """

    step_id: str
    uses: str
    arguments: Json
    unknown: tuple[str, ...] = ()
    """The paths of a rule's data whose values are not known yet."""
    verdict: Verdict | None = None

    @property
    def denial(self) -> Verdict | None:
        """The verdict, if it denies the call for all possible unknown values; otherwise None."""
        verdict = self.verdict
        if verdict is None or verdict.allows or verdict.asks:
            return None
        # A rule that waits may still ask a person, who then decides in place of the approval mode.
        # A limit denies whoever is asked.
        is_final = (
            verdict.rule or verdict.limit or verdict.stage != "situation" or not verdict.waiting
        )
        return verdict if is_final else None

    def to_payload(self) -> Json:
        """Return the call in `layer.completed` of the policy gate."""
        named: Json = {"step_id": self.step_id, "capability": self.uses}
        if self.verdict is None:
            return {**named, "verdict": None}
        verdict = self.verdict
        optional = {
            "rule": verdict.rule,
            "limit": verdict.limit,
            "gate": verdict.gate,
            "waiting": list(verdict.waiting),
        }
        return {
            **named,
            "verdict": verdict.outcome,
            "reason": verdict.reason,
            "obligations": list(verdict.obligations),
            **{name: value for name, value in optional.items() if value},
        }

    def draft_decision(self, verdict: Verdict, policy: RunPolicy, run_id: str) -> Draft:
        """Return the draft of `policy.decided` for a call that is denied by this verdict."""
        payload = PolicyDecided(
            **verdict.to_payload(),
            capability=self.uses,
            step_id=self.step_id,
            input_hash=digest_of(BY_NAME.mask(self.arguments)),
            **policy.decision_evidence(self.arguments),
            unknown=list(self.unknown) or None,
        )
        return draft_of(payload, run_id, step_id=self.step_id)


class PlanPart(NamedTuple):
    """The steps of a plan, or of a lane or a skill that one of its steps runs, with the known part of its state."""

    skill: Skill
    state: ExecutionState
    path: str = ""
    """The prefix of the ids of its steps."""
    unknown: tuple[str, ...] = ()
    """The paths of a rule's data that its caller leaves open."""
    others: tuple[Step, ...] = ()
    """The steps outside that may run before."""

    def is_certain(self, step: Step) -> bool:
        """Return whether a step certainly calls its target if the plan reaches it. Its condition must be absent or
        always true, and a loop must have an item.
        """
        config = step.config
        if config.router is not None or config.scatter is not None:
            return False
        if config.condition is not None and not self._find_value(config.condition):
            return False
        return config.foreach is None or bool(self._find_value(config.foreach.items))

    def _find_value(self, expression: object) -> object:
        """Return the value of an expression that reads nothing but known inputs. None for any other one."""
        reads: dict[str, None] = {}
        try:
            compiled = compile_expression(expression)
            value = value_of(compiled, Scope(self.state), self.skill.inputs, reads)
        except CogcliError:
            return None
        return value if all(read.partition(".")[0] == "inputs" for read in reads) else None


def check_planned_calls(policy: RunPolicy, root: RootRun, plan: TurnPlan) -> list[PlannedCall]:
    """Return the calls of a plan in order, including those of its lanes, each with the verdict on it."""
    return list(_decide_part(policy, root, PlanPart(plan.skill, root.run.state)))


def _decide_part(policy: RunPolicy, root: RootRun, part: PlanPart) -> Iterator[PlannedCall]:
    for step in part.skill.steps:
        others = (*part.others, *(other for other in part.skill.steps if other is not step))
        inner = _find_inner_skill(policy, root, step)
        if inner is None or not part.is_certain(step) or part.path.count("/") >= MAX_DEPTH:
            yield _decide_step(policy, root, part, step, others)
        else:
            yield from _decide_part(policy, root, _enter_skill(part, step, inner, others))


def _find_inner_skill(policy: RunPolicy, root: RootRun, step: Step) -> Skill | None:
    """Return the skill that a step runs, such as a lane. None for a call of a capability or of a tool in the pack."""
    if not step.uses.startswith(NESTED) or policy.tool_by_name(step.uses) is not None:
        return None
    return root.engine.skills.get(step.uses.removeprefix(NESTED))


def _enter_skill(
    part: PlanPart, step: Step, inner: Skill, concurrent_steps: tuple[Step, ...]
) -> PlanPart:
    """Return the part that a step runs, with the inputs known before the step."""
    known = find_known_arguments(step, part.state)
    given = {
        name: field.default
        for name, field in inner.inputs.items()
        if name not in step.input and field.default is not None
    }
    outer = part.state
    state = ExecutionState(
        outer.run_id, outer.trace_id, inner.id, inner.version, inputs={**given, **known}
    )
    open_names = [name for name in step.input if name not in known]
    unknown = (
        *("vars", "outputs"),
        *(f"inputs.{name}" for name in open_names),
        *(f"request.params.{name}" for name in open_names),
        *_open_names_of_step(step),
    )
    return PlanPart(
        inner, state, f"{part.path}{step.id}/", (*part.unknown, *unknown), concurrent_steps
    )


def _open_names_of_step(step: Step) -> tuple[str, ...]:
    """Return the path of a step's name in a rule's data if the step is repeated, because each round has a different
    name.
    """
    return ("call.step",) if step.config.is_loop else ()


def _decide_step(
    policy: RunPolicy, root: RootRun, part: PlanPart, step: Step, concurrent_steps: Iterable[Step]
) -> PlannedCall:
    state, engine = part.state, root.engine
    known = find_known_arguments(step, state)
    call = PlannedCall(part.path + step.id, step.uses, known)
    capability = engine.capabilities.get(step.uses) or policy.tool_by_name(step.uses)
    if capability is None or not part.is_certain(step):
        return call
    open_names = [name for name in step.input if name not in known]
    arguments, violations = fit_values(capability.inputs, known)
    if any(each.kind != "missing" or each.place not in open_names for each in violations):
        return call
    arguments = {name: value for name, value in arguments.items() if name not in open_names}
    unknown = (
        *(f"args.{name}" for name in open_names),
        *_CHANGING,
        *_open_names_of_step(step),
        *part.unknown,
        *_changed_paths(policy, engine.capabilities, concurrent_steps),
    )
    services = _services_of(engine, capability)
    seen = RunState(state.inputs, state.vars, state.outputs, engine.now)
    case = policy.build_judged_call(capability, arguments, seen, call.step_id, services, unknown)
    return call._replace(arguments=arguments, unknown=unknown, verdict=policy.decide(case))


def _services_of(engine: Engine, capability: Capability) -> tuple[str, ...]:
    """Return the services that may perform a call, in their order; none for a skill."""
    if capability.reaches:
        return ()
    return tuple(member.service_id for member in engine.runner.chain(capability.id).members)


def find_known_arguments(step: Step, state: ExecutionState) -> Json:
    """Return the arguments of a step that are literal, or depend on nothing but the inputs of the run."""
    found = {}
    for name, written in step.input.items():
        reads: dict[str, None] = {}
        try:
            value = compile_input(written, step.loop_names)(Scope(state), reads)
        except CogcliError:
            continue
        if all(read.partition(".")[0] == "inputs" for read in reads):
            found[name] = value
    return found


def _makes_one_call(step: Step) -> bool:
    """Return whether a step makes at most one call, and only of its capability."""
    config = step.config
    chosen = (config.condition, config.foreach, config.while_, config.router, config.scatter)
    return all(each is None for each in chosen)


def _changed_paths(
    policy: RunPolicy, capabilities: Mapping[str, Capability], concurrent_steps: Iterable[Step]
) -> tuple[str, ...]:
    """Return the paths of the data that other steps of the plan may change before a call."""
    concurrent_steps = list(concurrent_steps)
    if not concurrent_steps:
        return ()
    tools = policy.pack.tooling.capabilities
    called: set[str] = set()
    for step in concurrent_steps:
        capability = capabilities.get(step.uses) or policy.tool_by_name(step.uses)
        if capability is None or not _makes_one_call(step):
            called |= tools.keys()  # a lane, or a step with a choice of targets
        else:
            called |= {capability.id, *(each.id for each in capability.reaches)}
    facts = {name for id in called for name in tools.get(id, PackTool()).facts}
    return ("vars", "outputs", *sorted(facts))
