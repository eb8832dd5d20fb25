"""The planner: its candidates, and the plan of a candidate (docs/reference/agent-run.md#planner).

A planner proposes a template of the pack, calls with literal arguments, or a response. A proposal becomes a generated
skill, so that the engine runs it as any other; its step ids begin with `t<turn>_`, unique in the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from cogcli.agent.cognition.invocation import Invocation
from cogcli.agent.context.compiler import CompiledContext
from cogcli.agent.models.port import ModelReply, ModelRequest
from cogcli.agent.state import AgentState
from cogcli.base.canonical import digest_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.pack_spec import DecisionSpec, TaskTemplate
from cogcli.declarations.skill_spec import Skill
from cogcli.declarations.value_types import Json
from cogcli.specs.pack_skills import agent_skill_id, template_skill
from cogcli.specs.skill_search import answer_for


class ProposedCall(NamedTuple):
    """One call of a candidate. `depends_on` lists earlier calls; None means the previous one."""

    id: str
    capability: str
    arguments: Json
    depends_on: tuple[str, ...] | None = None

    def to_payload(self) -> Json:
        """Return the call in `candidate.proposed`."""
        named = {} if self.depends_on is None else {"depends_on": list(self.depends_on)}
        return {"id": self.id, "capability": self.capability, "args": self.arguments, **named}


class Candidate(NamedTuple):
    """The proposal of a planner in a turn. Its response is an answer, or a question to the user if it is `asking`."""

    planner: str
    template: str = ""
    calls: tuple[ProposedCall, ...] = ()
    response: str = ""
    asking: bool = False
    fault: str = ""
    """The reason why the proposal is unusable. Empty if it is usable."""
    fault_detail: str = ""
    """The fault in words."""

    def to_payload(self, decision_key: str) -> Json:
        """Return the members of `candidate.proposed`."""
        return {
            "planner": self.planner,
            "template": self.template or None,
            "decision_key": decision_key,
            "calls": [call.to_payload() for call in self.calls],
            "response": self.response,
        }


class JudgmentView(NamedTuple):
    """The input of a planner: the context, and the results of earlier turns."""

    invocation: Invocation
    context: CompiledContext
    turn: int
    effects: tuple[Json, ...] = ()
    """The effects of the calls so far."""
    notices: tuple[Json, ...] = ()
    """The reasons against earlier proposals: problems, denials, loops."""
    now: str = ""
    """The timestamp of the last event."""
    seed: int = 0
    room: int = 0
    """The maximal tokens of a prompt."""
    state: AgentState | None = None
    """The state of an agent with a model."""


class JudgedCandidate(NamedTuple):
    """A candidate with the state after its reply. `notes` are about dropped, cut or refused values of the update."""

    candidate: Candidate
    state: AgentState
    notes: tuple[Json, ...] = ()


class Question(NamedTuple):
    """A request to a model that is needed for a candidate."""

    purpose: str
    request: ModelRequest
    take: Callable[[ModelReply], JudgedCandidate | Question]
    """The judgment of the reply."""


class Planner(Protocol):
    """Proposes a candidate in a turn."""

    name: str
    """The source of its plans: `template` or `model`."""
    replans: bool
    """Whether it proposes another candidate after a denial."""

    def propose(self, view: JudgmentView) -> Candidate | Question:
        """Return the candidate of a turn, or the request to a model for it. Equal views give equal results."""
        ...


class TemplatePlanner:
    """Proposes the first template of the intent, without a model, or a question for missing inputs."""

    name = "template"
    replans = False

    def propose(self, view: JudgmentView) -> Candidate:
        intent = view.invocation.intent
        templates = view.invocation.pack.decisions.intents[intent.intent].templates
        if not templates:
            return Candidate(self.name, response=_nearest_skills(view), asking=True)
        template = view.invocation.pack.decisions.task_templates[templates[0]]
        skill = template_skill(view.invocation.pack, template)
        lacking = [name for name in skill["inputs"] if intent.params.get(name) is None]
        if lacking:
            return Candidate(
                self.name,
                template.id,
                response=f"Please give {' and '.join(lacking)}.",
                asking=True,
            )
        return Candidate(self.name, template.id)


TEMPLATE: Final = TemplatePlanner()


def _nearest_skills(view: JudgmentView) -> str:
    """Return the response without a plan: the surfaced skill for the message with the command that runs it, else
    the nearest skills.
    """
    known, surface = view.invocation.capabilities, view.context.compilation.surface
    tools = {tool.capability: known[tool.capability] for tool in surface.tools}
    skills = {id: tool for id, tool in tools.items() if tool.reaches}
    request = view.invocation.logged_request
    return (
        answer_for(request.message, request.params, skills).text
        if skills
        else "There is no plan for this."
    )


class TurnPlan(NamedTuple):
    """A plan of one turn. `skill` is generated; `template` None for calls with literal arguments."""

    plan_id: str
    plan_hash: str
    skill: Skill
    turn: int
    template: TaskTemplate | None = None

    @property
    def capabilities(self) -> dict[str, str]:
        """The capabilities by step; lanes and nested skills by their text."""
        return {step.id: step.uses for step in self.skill.steps}


def to_plan(invocation: Invocation, candidate: Candidate, turn: int) -> TurnPlan | None:
    """Return the plan of a candidate, or None without a call."""
    pack, prefix = invocation.pack, f"t{turn}_"
    template = None
    if candidate.template and not candidate.asking:
        template = pack.decisions.task_templates[candidate.template]
        raw = template_skill(pack, template, prefix)
    elif candidate.calls:
        raw = {
            "id": agent_skill_id(pack),
            "version": pack.version,
            "name": "calls",
            "description": "a plan of an agent",
            "inputs": {},
            "outputs": {},
            "steps": [_step_from_call(call, prefix) for call in candidate.calls],
        }
    else:
        return None
    plan_hash = digest_of(raw)
    plan_id = f"plan_{turn}_{plan_hash.removeprefix('sha256:')[:8]}"
    skill = Skill.of({**raw, "id": f"agent.{plan_id}"}, file=pack.file)
    return TurnPlan(plan_id, plan_hash, skill, turn, template)


def _step_from_call(call: ProposedCall, prefix: str) -> Json:
    step = {
        "id": prefix + call.id,
        "uses": call.capability,
        "input": {name: {"$literal": value} for name, value in call.arguments.items()},
        "output": {},
    }
    if call.depends_on is not None:
        step["depends_on"] = [prefix + name for name in call.depends_on]
    return step


def decision_of(invocation: Invocation, candidate: Candidate) -> DecisionSpec:
    """Return the decision of a candidate: the decision of its template, or else the one named like
    the intent."""
    layer = invocation.pack.decisions
    template = layer.task_templates.get(candidate.template)
    key = (template.decision if template else "") or invocation.intent.intent
    return layer.decisions.get(key) or DecisionSpec(key=key)
