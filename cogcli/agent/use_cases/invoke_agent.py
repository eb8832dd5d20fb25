"""Running an agent with settings and stores (docs/reference/agent-run.md#start)."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Final

from cogcli.agent.cognition.first_turn import with_first_attention
from cogcli.agent.cognition.invocation import Invocation, invocation_of, refuse_message
from cogcli.agent.cognition.loop import build_agent_run
from cogcli.agent.cognition.model_calls import OnResponse
from cogcli.agent.cognition.model_planner import ModelPlanner, count_tool
from cogcli.agent.cognition.planner import TEMPLATE, JudgmentView, to_plan
from cogcli.agent.cognition.reasoning import initial_state
from cogcli.agent.context.compiler import compile_context
from cogcli.agent.use_cases.builtin_pack import count_block, read_only_pack
from cogcli.agent.use_cases.compile_context import (
    NOTHING_STORED,
    RequestWithOptions,
    fetch,
    parse_request,
    require_expected_pack,
)
from cogcli.agent.use_cases.jobs import work_after_answer
from cogcli.agent.use_cases.model import asks_model, model_access, require_prices, require_trust
from cogcli.agent.use_cases.pack_problems import problems_of_run
from cogcli.agent.use_cases.request_options import merge_options, with_options
from cogcli.agent.use_cases.runs import stores_of
from cogcli.agent.use_cases.sessions import open_session
from cogcli.agent.use_cases.user_memory import profile_of
from cogcli.app.registry import is_untrusted, open_registry
from cogcli.app.run_skill import environment_of, require_known_logins
from cogcli.app.settings import Settings
from cogcli.base.errors import CogcliError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import Problem, ProblemsFound
from cogcli.declarations.options import RunOptions
from cogcli.declarations.pack_spec import Pack
from cogcli.declarations.value_types import Json
from cogcli.run.given_inputs import raise_together
from cogcli.run.launch import Watch, launch
from cogcli.run.policy import pack_of
from cogcli.run.policy_request import PolicyRequest
from cogcli.run.prepare import PreparedRun, RunRequest
from cogcli.run.results import Control, RunResult
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks.packs import check_agent
from cogcli.specs.pack_skills import agent_skill_id, reach_given_pack, reach_pack
from cogcli.specs.selection import SelectionOptions

SESSION_TAG: Final = "session_id"
"""The tag of a run that continues a conversation."""


class AgentCommandInput(NamedTuple):
    """The input of a command that runs an agent."""

    agent_request: RequestWithOptions
    request: RunRequest
    """Its policy has the pack, user, ceiling and budgets."""
    memory: bool = True
    """Whether the user's memory is recalled, and proposals are stored."""
    model: str = ""
    """`ADAPTER[:NAME]`; empty for the model of the settings."""
    mode: str = "adapt"
    debug: bool = False
    """Whether the caller wanted details."""
    on_response: OnResponse | None = None
    """Takes the response while it grows."""


def invoke(
    settings: Settings, command: AgentCommandInput, watch: Watch, control: Control | None = None
) -> RunResult:
    """Run an agent to its end, within `watch`. A run with a conversation holds the conversation's lock. Raise
    ProblemsFound, UnusableEnvironment or UsageError before anything is started.
    """
    environment = environment_of(settings)
    with ExitStack() as opened:
        prepared = prepare_agent(settings, command, opened)
        control = control or Control()
        listener = opened.enter_context(watch(prepared, control))
        return launch(environment, prepared, listener=listener, control=control)


def invoke_request(
    settings: Settings, raw: Json, options: RunOptions, watch: Watch, control: Control, *,
    memory: bool, model: str, mode: str,
) -> RunResult:  # fmt: skip
    """Run an agent for the JSON of a request, with the options of the caller, then do the work that follows an answer.

    Raise the errors of `parse_request` and of `invoke`.
    """
    agent_request = with_options(parse_request(raw), options)
    problems: list[CogcliError] = []
    merged = merge_options(settings, agent_request, options, problems)
    raise_together(problems)
    request = RunRequest("", {}, merged)
    result = invoke(
        settings, AgentCommandInput(agent_request, request, memory, model, mode), watch, control
    )
    if memory and not is_untrusted(settings, "pack", request.pack_ref):
        work_after_answer(settings, model)
    return result


def prepare_agent(settings: Settings, command: AgentCommandInput, opened: ExitStack) -> PreparedRun:
    """Check the closure of a pack and the request, and fetch the values of the stores. `opened` receives the lock of
    the conversation.
    """
    catalog, selection, invocation, warnings = _reach_invocation(settings, command)
    keeps = _has_memory(command, catalog)
    tenant, user, session = (
        invocation.pack.tenant,
        command.agent_request.request.user.user_id,
        invocation.request.session_id,
    )
    model = model_access(settings, command.model, command.mode, command.on_response)
    if model is not None:
        require_trust(catalog)
        require_prices(model, invocation.limits)
    fetched = invocation.fetched
    if session and keeps:
        snapshot = opened.enter_context(open_session(settings, tenant, user, session))
        fetched = fetched._replace(session=snapshot.to_payload())
    if model is not None and keeps:
        profile = profile_of(settings, tenant, invocation.request.user, invocation.pack.memory)
        fetched = fetched._replace(profile=profile.to_payload() if profile else None)
    invocation = invocation._replace(fetched=fetched, debug=command.debug)
    skill = catalog.skills[agent_skill_id(invocation.pack)]
    stores = stores_of(settings, invocation) if keeps else None
    options = {**invocation.asked.flags}
    if session:
        options["tags"] = {**command.request.options.tags, SESSION_TAG: session}
    return PreparedRun(
        command.request.with_options(**options)._replace(skill_id=skill.id),
        skill,
        catalog,
        dict(invocation.intent.params),
        {},
        selection,
        warnings,
        invocation.policy,
        build_agent_run(invocation, stores=stores, model=model),
    )


def _reach_packs(
    settings: Settings, command: AgentCommandInput, selection: SelectionOptions
) -> tuple[Catalog, PolicyRequest]:
    """Return the closure of a request's packs, and the policy part of the request with the effective pack. Without a
    pack that is the built-in one, which permits read-only capabilities.
    """
    policy = command.request.policy or PolicyRequest()
    registry = open_registry(settings)
    if policy.pack:
        return reach_pack(registry, policy.pack, added_packs=policy.with_packs), policy
    message = command.agent_request.request.message
    count = count_tool if asks_model(settings, command.model) else count_block
    made_pack = read_only_pack(settings, selection, message, policy.budget, count)
    catalog = reach_given_pack(registry, made_pack, added_packs=policy.with_packs)
    return catalog, policy._replace(pack=Pack.of(made_pack).ref)


def _reach_invocation(
    settings: Settings, command: AgentCommandInput
) -> tuple[Catalog, SelectionOptions, Invocation, list[Problem]]:
    """Return the closure of the pack, the selection of bindings, the invocation with the values of the stores,
    and warnings. Raise ProblemsFound before a store is opened.
    """
    request = command.request
    selection = SelectionOptions.of(request.options, settings.environ)
    catalog, policy = _reach_packs(settings, command, selection)
    found = [
        *check_agent(catalog, options=selection),
        *problems_of_run(catalog, policy),
    ]
    if blocking := [problem for problem in found if problem.severity != "W"]:
        raise ProblemsFound(blocking)
    if (
        request.policy is not None and request.policy.pack
    ):  # the built-in one has only what can be called
        require_known_logins(settings, catalog, request.options)
    require_expected_pack(command.agent_request.request, pack_of(catalog, policy))
    made = invocation_of(catalog, selection, command.agent_request.request, policy)
    refused = refuse_message(made)
    if refused is not None:
        made = invocation_of(catalog, selection, refused, policy)
    fetched = NOTHING_STORED
    if not catalog.distrust:
        entities = tuple(made.intent.slots.values())
        recalls = command.memory and refused is None
        fetched = fetch(settings, made.pack, made.request, entities, memory=recalls)
    made = made._replace(fetched=fetched, asked=policy._replace(intent=made.intent.intent))
    return catalog, selection, made, found


def _has_memory(command: AgentCommandInput, catalog: Catalog) -> bool:
    """Return whether a run uses the stores. The pack of an untrusted project has none."""
    return command.memory and not catalog.distrust


def dry_run(settings: Settings, command: AgentCommandInput) -> Json:
    """Return the first context, the plan of the template planner, and with a model its first prompt. No call is
    made and no file is written.
    """
    catalog, _, invocation, _ = _reach_invocation(settings, command)
    now = settings.clock.now()
    given_context = invocation.compile_input(1, "run_0", "trace_0", now)
    context = compile_context(with_first_attention(given_context))
    shown: Json = {"refused": context.refused, "context": context.payload, "plan": None}
    if context.refused:
        return shown
    model = model_access(settings, command.model, command.mode)
    if model is not None:
        require_trust(catalog)
        require_prices(model, invocation.limits)
        state, room = (
            initial_state(invocation, model.mode, now),
            int(invocation.limits["tokens.context"]),
        )
        view = JudgmentView(invocation, context, 1, now=now, room=room, state=state)
        planner = ModelPlanner(model.info)
        context = planner.fit(view)
        shown["context"] = context.payload
        if context.is_overpacked:
            return {**shown, "prompt": None}
        question = planner.propose(view._replace(context=context))
        return {**shown, "prompt": list(question.request.messages)}
    candidate = TEMPLATE.propose(JudgmentView(invocation, context, 1))
    made = to_plan(invocation, candidate, 1)
    steps = [{"id": id, "uses": uses} for id, uses in (made.capabilities if made else {}).items()]
    return {
        **shown,
        "plan": {"template": candidate.template, "response": candidate.response, "steps": steps},
    }
