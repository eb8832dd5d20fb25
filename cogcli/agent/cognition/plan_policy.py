"""What the policy of a run says of a whole plan before its first effect (docs/reference/agent-run.md#gate).

Each call is judged on the arguments that are known: literals, and parameters of the request. Rules that may read any
other value wait for the call, and so does a step that may not run, or that chooses its target.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cogcli.agent.cognition.planner import TurnPlan
from cogcli.base.canonical import digest_of
from cogcli.base.errors import CogcliError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.redact import BY_NAME
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.envelope import Draft, draft_of
from cogcli.declarations.governance_events import PolicyDecided
from cogcli.declarations.pack_spec import PackTool
from cogcli.declarations.skill_spec import Step
from cogcli.declarations.value_types import Json
from cogcli.policy.run_policy import RunPolicy, RunState
from cogcli.policy.verdict import Verdict
from cogcli.run.engine.run import RootRun
from cogcli.specs.fields import fit_values
from cogcli.state.execution import ExecutionState
from cogcli.state.inputs import Scope, compile_input

_CHANGING = ("run.now", "state")
"""The values that change from event to event."""


class PlannedCall(NamedTuple):
    """One call of a plan, with the verdict on its known arguments. The verdict is None if only the call itself can be
    judged.
    """

    step_id: str
    uses: str
    arguments: Json
    unknown: tuple[str, ...] = ()
    """The paths of a rule's data whose values are not known yet."""
    verdict: Verdict | None = None

    @property
    def denial(self) -> Verdict | None:
        """The verdict, if it denies the call whatever the unknown values are. None otherwise."""
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
            "verdict": verdict.verdict,
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


def judge_plan(policy: RunPolicy, root: RootRun, plan: TurnPlan) -> list[PlannedCall]:
    """Return the calls of a plan in order, each with the verdict on it."""
    steps = plan.skill.steps
    return [
        _judge_step(policy, root, step, [other for other in steps if other is not step])
        for step in steps
    ]


def _judge_step(
    policy: RunPolicy, root: RootRun, step: Step, others: Iterable[Step]
) -> PlannedCall:
    state, engine = root.run.state, root.engine
    known = find_known_arguments(step, state)
    call = PlannedCall(step.id, step.uses, known)
    capability = engine.capabilities.get(step.uses) or policy.tool_by_name(step.uses)
    if capability is None or not _is_certain(step):
        return call
    open_names = [name for name in step.input if name not in known]
    arguments, violations = fit_values(capability.inputs, known)
    if any(each.kind != "missing" or each.place not in open_names for each in violations):
        return call
    arguments = {name: value for name, value in arguments.items() if name not in open_names}
    unknown = (
        *(f"args.{name}" for name in open_names),
        *_CHANGING,
        *_changed_by(policy, engine.capabilities, others),
    )
    members = () if capability.reaches else engine.runner.chain(capability.id).members
    services = tuple(member.service_id for member in members)
    seen = RunState(state.inputs, state.vars, state.outputs, engine.now)
    case = policy.build_judged_call(capability, arguments, seen, step.id, services, unknown)
    return call._replace(arguments=arguments, unknown=unknown, verdict=policy.decide(case))


def find_known_arguments(step: Step, state: ExecutionState) -> Json:
    """Return the arguments of a step that are literal, or depend on nothing but the inputs of the run."""
    found = {}
    for name, written in step.input.items():
        reads: dict[str, None] = {}
        try:
            value = compile_input(written)(Scope(state), reads)
        except CogcliError:
            continue
        if all(read.partition(".")[0] == "inputs" for read in reads):
            found[name] = value
    return found


def _is_certain(step: Step) -> bool:
    """Return whether a step makes exactly one call of the capability that it names, if its plan gets that far."""
    config = step.config
    chosen = (config.condition, config.foreach, config.while_, config.router, config.scatter)
    return all(each is None for each in chosen)


def _changed_by(
    policy: RunPolicy, capabilities: Mapping[str, Capability], others: Iterable[Step]
) -> tuple[str, ...]:
    """Return the paths of the data that other steps of the plan may change before a call."""
    others = list(others)
    if not others:
        return ()
    tools = policy.pack.tooling.capabilities
    called: set[str] = set()
    for step in others:
        capability = capabilities.get(step.uses) or policy.tool_by_name(step.uses)
        if capability is None or not _is_certain(step):
            called |= tools.keys()  # a lane, or a step with a choice of targets
        else:
            called |= {capability.id, *(each.id for each in capability.reaches)}
    facts = {name for id in called for name in tools.get(id, PackTool()).facts}
    return ("vars", "outputs", *sorted(facts))
