"""An agent's run in memory, with a planner that proposes what a test says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from fakes.language_model import FakeModel
from fakes.runner import ScriptedRunner, gives
from fakes.runs import RUN_ID, engine_for
from fakes.sink import MemorySink, payload_of
from fakes.support_desk import CAPABILITIES
from fakes.support_desk import pack as support_pack

from cogcli.agent.cognition.invocation import Invocation, StoredValues, intent_of
from cogcli.agent.cognition.loop import Stores, build_agent_run
from cogcli.agent.cognition.planner import Candidate, JudgmentView, Planner, ProposedCall
from cogcli.agent.cognition.progress import EndedRun
from cogcli.agent.cognition.reasoning import ModelAccess
from cogcli.agent.context.inputs import AgentRequest, User
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.pack_spec import Pack
from cogcli.declarations.skill_spec import Skill
from cogcli.policy.budgets import COUNTED, DEFAULTS, Budgets, merge_limits
from cogcli.policy.pack_policy import Policy
from cogcli.policy.run_policy import Requester, RunPolicy
from cogcli.run.engine.run import FinishedRun, Request, execute
from cogcli.run.policy_request import PolicyRequest
from cogcli.specs.catalog import Catalog
from cogcli.specs.pack_skills import agent_skill_id, with_pack_skills
from cogcli.specs.skill_tools import skill_tools

LOOKUP = {"age_days": 12, "total": 20.0}
SCRIPTS: dict[str, Any] = {
    "orders.lookup": gives(**LOOKUP),
    "policy.eval": gives(ok=True),
    "payments.refund": gives(receipt={"id": "r1", "status": "done"}),
}


NOTHING_FETCHED = StoredValues()


class ScriptedPlanner:
    """Proposes the candidates of a test, turn by turn, the last of them again and again; keeps what it was given."""

    name = "model"
    replans = True

    def __init__(self, *candidates: Candidate | Callable[[JudgmentView], Candidate]) -> None:
        self._candidates = candidates
        self.views: list[JudgmentView] = []

    def propose(self, view: JudgmentView) -> Candidate:
        self.views.append(view)
        found = self._candidates[min(len(self.views), len(self._candidates)) - 1]
        return found if isinstance(found, Candidate) else found(view)


def calls(*named: tuple[str, dict[str, Any]]) -> Candidate:
    """A candidate of calls in order."""
    made = [
        ProposedCall(f"c{n}", capability, arguments)
        for n, (capability, arguments) in enumerate(named)
    ]
    return Candidate("model", calls=tuple(made))


def says(text: str) -> Candidate:
    """A candidate that answers."""
    return Candidate("model", response=text)


def lookup(order_id: str = "ord_881") -> Candidate:
    """A candidate that looks an order up."""
    return calls(("orders.lookup", {"order_id": order_id}))


class RanAgent(NamedTuple):
    """A finished agent's run with everything a test may look at."""

    finished: FinishedRun
    sink: MemorySink
    runner: ScriptedRunner
    remembered: list[dict[str, Any]]
    ended: list[EndedRun]

    @property
    def status(self) -> str:
        """The status of the run."""
        return self.finished.outcome.status

    @property
    def code(self) -> str | None:
        """The code of its error."""
        error = self.finished.outcome.error
        return error.code if error else None

    @property
    def decision(self) -> dict[str, Any]:
        """What `decision.recorded` says."""
        return payload_of(self.sink.events, "decision.recorded")

    @property
    def ending(self) -> tuple[str, str]:
        """Status and reason of the decision."""
        return self.decision["status"], self.decision["status_reason"]

    def payloads(self, event_type: str) -> list[dict[str, Any]]:
        """The payloads of all events of a type."""
        return [event.payload for event in self.sink.events if event.event_type == event_type]


def invocation(
    pack: Pack | None = None,
    message: str = "Refund order ord_881",
    *,
    capabilities: Iterable[Capability] = CAPABILITIES.values(),
    budget: dict[str, int] | None = None,
    safety_mode: str = "destructive",
    fetched: StoredValues = NOTHING_FETCHED,
    skills: Iterable[Skill] = (),
    **request: Any,
) -> Invocation:
    """A request of `cust_7` to the agent of a pack, which may name these skills."""
    of = pack or support_pack()
    asked = AgentRequest(message, **{"user": User("cust_7"), **request})
    known = {each.id: each for each in capabilities}
    tools = skill_tools(Catalog(skills={each.id: each for each in skills}), of, known)
    known = {**known, **tools}
    intent = intent_of(of, asked, known)
    limits = {**merge_limits(DEFAULTS, of.meta.defaults.budget), **(budget or {})}
    requester = Requester(
        intent.intent,
        asked.user.user_id,
        role=of.tone.agent.role,
        voice=of.tone.agent.voice,
        message=message,
    )
    policy = RunPolicy(
        of,
        Policy.of(of),
        Budgets({key: int(limits[key]) for key in COUNTED if key in limits}),
        requester,
        safety_mode=safety_mode,
        slots=intent.slots,
        required=of.decisions.required_evidence(intent.intent),
        tools=tools,
    )
    named = PolicyRequest(of.ref, intent.intent, asked.user.user_id, safety_mode)
    return Invocation(of, asked, named, known, intent, limits, safety_mode, policy, fetched)


def invoke(
    planner: Planner | None = None,
    given: Invocation | None = None,
    *,
    scripts: dict[str, Any] | None = None,
    skills: Iterable[Skill] = (),
    model: FakeModel | None = None,
    mode: str = "adapt",
    **engine: Any,
) -> RanAgent:
    """Run an agent to its end; with a model it plans."""
    given = given or invocation()
    called = {id: each for id, each in given.capabilities.items() if not each.reaches}
    catalog = Catalog(capabilities=called, skills={each.id: each for each in skills})
    catalog = with_pack_skills(catalog, given.pack)
    remembered: list[dict[str, Any]] = []
    finished_runs: list[EndedRun] = []
    access = ModelAccess(model.describe(), lambda known: model, mode=mode) if model else None
    made = build_agent_run(
        given,
        planner=planner,
        stores=Stores(lambda content, run, at: remembered.append(content), finished_runs.append),
        model=access,
    )
    runner = ScriptedRunner({**SCRIPTS, **(scripts or {})})
    running = engine_for(
        runner, called.values(), catalog.skills.values(), policy=made.policy, **engine
    )
    asked = Request(
        made.task,
        dict(given.intent.params),
        {},
        0,
        {},
        made.pins,
        policy=given.asked.to_payload(),
        agent=made.payload,
    )
    plan = running.plan_of(agent_skill_id(given.pack))
    finished = execute(running, plan, asked, RUN_ID, made.program)
    assert isinstance(running.sink, MemorySink)
    return RanAgent(finished, running.sink, runner, remembered, finished_runs)
