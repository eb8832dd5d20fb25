"""Agents' runs for `runs/`: their programs, and the memory that their proposals go to. Imported only for such a run."""

from __future__ import annotations

from functools import partial
from typing import Any

from cogcli.agent.cognition.invocation import NO_MODEL, Invocation, recorded_invocation
from cogcli.agent.cognition.loop import Stores, agent_run
from cogcli.agent.cognition.model_calls import OnResponse, is_outcome
from cogcli.agent.cognition.progress import EndedRun
from cogcli.agent.state import ReasoningContext
from cogcli.agent.stores.interactions import Interaction
from cogcli.agent.stores.sessions import SessionSnapshot
from cogcli.agent.use_cases.memory import open_memory
from cogcli.agent.use_cases.model import recorded_model, require_trust
from cogcli.agent.use_cases.sessions import hold_session
from cogcli.agent.use_cases.user_memory import consolidate
from cogcli.app.settings import Settings
from cogcli.base.errors import CogcliError, EnvironmentRefusal
from cogcli.declarations.envelope import Event
from cogcli.declarations.run_start import start_of
from cogcli.run.prepare import AgentRun
from cogcli.specs.catalog import Catalog
from cogcli.specs.pack import DATA_CLASSES


def agent_of(
    settings: Settings | None,
    started: Event,
    catalog: Catalog,
    on_response: OnResponse | None = None,
) -> AgentRun:
    """An agent's run by its log; nothing is stored without settings and for the pack of a project that is not trusted.
    `on_response` is given responses as they grow."""
    invocation = recorded_invocation(started, catalog)
    keeps = settings is not None and not catalog.distrust
    stores = stores_of(settings, invocation) if settings and keeps else None
    model = None
    pinned = start_of(started).pins.model
    if pinned is not None and pinned.adapter != NO_MODEL:
        if settings is not None:
            require_trust(catalog)
        model = recorded_model(settings, started, on_response)
    agent = agent_run(invocation, stores=stores, model=model)
    if model is not None and model.open is not None:
        open_model = model.open
        agent = agent._replace(open_model=lambda events: open_model(sum(map(is_outcome, events))))
    if settings is None or not keeps or invocation.fetched.session is None:
        return agent
    ids = invocation.pack.tenant, invocation.request.user.user_id, invocation.request.session_id
    return agent._replace(hold=partial(hold_session, settings, *ids))


def stores_of(settings: Settings, invocation: Invocation) -> Stores:
    """What stores turns and end of a run in the memory of the project."""
    return Stores(partial(_remember, settings, invocation), partial(_finish, settings, invocation))


def _remember(
    settings: Settings, invocation: Invocation, content: dict[str, Any], run_id: str, at: str
) -> CogcliError | None:
    """Store the proposals of a turn, and its calls as a capture; storing them again changes nothing. The error where
    the store cannot be written: nothing is lost, since the proposals are in the log."""
    pack, user = invocation.pack, invocation.request.user
    impression = {"turn": content["turn"], "calls": content["calls"]}
    try:
        with open_memory(settings) as store:
            store.capture(pack.tenant, user.user_id, run_id=run_id, content=impression, at=at)
            store.propose_all(
                pack.tenant,
                user.user_id,
                content["proposals"],
                pack.memory,
                consent=user.consent,
                run_id=run_id,
                at=at,
            )
    except EnvironmentRefusal as error:
        return error
    return None


def _finish(settings: Settings, invocation: Invocation, ended: EndedRun) -> CogcliError | None:
    """Keep a run as an interaction of its user, and what it adds to its conversation; again changes nothing. The error
    where the store cannot be written: all of it is in the log."""
    pack, request = invocation.pack, invocation.request
    query = request.message
    if ended.withheld:
        message = ended.messages[0]
        query = f"{message['content']} {message['message_hash']}"
    made = Interaction(
        ended.run_id,
        ended.episode_id,
        ended.event_id,
        query,
        ended.response,
        ended.success,
        ended.mode,
        ended.turns,
        ended.calls,
        ended.at,
        request.session_id,
        invocation.intent.intent,
        ended.template,
        ended.failure_code,
        request.user.consent,
        pack.memory.auto_promote,
        pack.memory.confidence_floor,
        max("internal", pack.data_classification, key=DATA_CLASSES.index),
        ended.withheld,
    )
    counts = invocation.safety_mode != "read_only"
    session = _continued(invocation.fetched.session, ended)
    try:
        consolidate(
            settings, pack.tenant, request.user.user_id, made, counts=counts, session=session
        )
    except EnvironmentRefusal as error:
        return error
    return None


def _continued(stored: dict[str, Any] | None, ended: EndedRun) -> SessionSnapshot | None:
    """The conversation with what a run adds to it."""
    if stored is None:
        return None
    session = SessionSnapshot.from_payload(stored)
    reasoning = (
        session.reasoning
        if ended.reasoning is None
        else ReasoningContext.from_payload(ended.reasoning)
    )
    return session._replace(
        messages=(*session.messages, *ended.messages),
        mode=ended.mode or session.mode,
        reasoning=reasoning,
        last_run_failed=not ended.success,
    )
