"""The programs of agents' runs and the stores of their memory, for `run/`. Imported only for such a run."""

from __future__ import annotations

from functools import partial

from cogcli.agent.cognition.invocation import NO_MODEL, Invocation, recorded_invocation
from cogcli.agent.cognition.loop import Stores, build_agent_run
from cogcli.agent.cognition.model_calls import OnResponse, is_outcome
from cogcli.agent.cognition.progress import EndedRun
from cogcli.agent.cognition.reasoning import ModelAccess
from cogcli.agent.state import ReasoningContext
from cogcli.agent.stores.interactions import Interaction
from cogcli.agent.stores.sessions import SessionSnapshot
from cogcli.agent.use_cases.memory import open_memory
from cogcli.agent.use_cases.model import recorded_model, require_trust
from cogcli.agent.use_cases.sessions import hold_session
from cogcli.agent.use_cases.user_memory import consolidate
from cogcli.app.settings import Settings
from cogcli.base.errors import CogcliError, UnusableEnvironment
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.envelope import Event
from cogcli.declarations.pack_spec import DATA_CLASSES
from cogcli.declarations.run_start import start_of
from cogcli.declarations.value_types import Json
from cogcli.run.prepare import AgentRun
from cogcli.specs.catalog import Catalog


def agent_of(
    settings: Settings | None,
    started: Event,
    catalog: Catalog,
    on_response: OnResponse | None = None,
) -> AgentRun:
    """Return an agent's run from its log. Nothing is stored without settings, or for the pack of an untrusted project.
    `on_response` receives growing responses.
    """
    invocation = recorded_invocation(started, catalog)
    store_settings = None if catalog.distrust else settings
    stores = stores_of(store_settings, invocation) if store_settings else None
    model = _pinned_model(settings, started, catalog, on_response)
    agent = build_agent_run(invocation, stores=stores, model=model)
    if model is not None and model.open is not None:
        open_model = model.open
        agent = agent._replace(open_model=lambda events: open_model(sum(map(is_outcome, events))))
    if store_settings is None or invocation.fetched.session is None:
        return agent
    ids = invocation.pack.tenant, invocation.request.user.user_id, invocation.request.session_id
    return agent._replace(hold=partial(hold_session, store_settings, *ids))


def _pinned_model(
    settings: Settings | None,
    started: Event,
    catalog: Catalog,
    on_response: OnResponse | None,
) -> ModelAccess | None:
    """Return the model that the run was begun with, or None for a run that templates plan."""
    pinned = start_of(started).pins.model
    if pinned is None or pinned.adapter == NO_MODEL:
        return None
    if settings is not None:
        require_trust(catalog)
    return recorded_model(settings, started, on_response)


def stores_of(settings: Settings, invocation: Invocation) -> Stores:
    """Return the functions that store the turns and the end of a run in the memory of the project."""
    writer = _StoreWriter(settings, invocation)
    return Stores(writer.remember, writer.finish)


class _Turn(NamedTuple):
    """The data of a turn that are still to be stored."""

    content: Json
    run_id: str
    at: str


class _StoreWriter:
    """Writes the turns and the end of one run to the memory, in this order.

    A turn that cannot be stored is retried with each later turn and at the end, and nothing later is stored before it.
    If the last write returns an error, the store lacks a part of the run, otherwise it is complete. Storing is
    idempotent.
    """

    def __init__(self, settings: Settings, invocation: Invocation) -> None:
        self._settings = settings
        self._invocation = invocation
        self._unstored: list[_Turn] = []

    def remember(self, content: Json, run_id: str, at: str) -> CogcliError | None:
        """Store a turn. Return the error if the store cannot be written. The turn is in the log in
        any case."""
        self._unstored.append(_Turn(content, run_id, at))
        try:
            self._store_turns()
        except UnusableEnvironment as error:
            return error
        return None

    def finish(self, ended: EndedRun) -> CogcliError | None:
        """Store the end of the run. Return the error if the store cannot be written; the log is complete in any
        case.
        """
        try:
            self._store_turns()
            _store_end(self._settings, self._invocation, ended)
        except UnusableEnvironment as error:
            return error
        return None

    def _store_turns(self) -> None:
        """Store each turn that is not stored yet, the oldest first: its proposals, and its calls as a capture."""
        pack, user = self._invocation.pack, self._invocation.request.user
        while self._unstored:
            turn = self._unstored[0]
            impression = {"turn": turn.content["turn"], "calls": turn.content["calls"]}
            with open_memory(self._settings) as store:
                store.capture(
                    pack.tenant,
                    user.user_id,
                    run_id=turn.run_id,
                    content=impression,
                    at=turn.at,
                )
                store.propose_all(
                    pack.tenant,
                    user.user_id,
                    turn.content["proposals"],
                    pack.memory,
                    consent=user.consent,
                    run_id=turn.run_id,
                    at=turn.at,
                )
            self._unstored.pop(0)


def _store_end(settings: Settings, invocation: Invocation, ended: EndedRun) -> None:
    """Store a run as an interaction of its user, and its new messages in the conversation."""
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
        max(ended.data_class, pack.meta.data_classification, key=DATA_CLASSES.index),
        ended.withheld,
    )
    counts = invocation.safety_mode != "read_only"
    session = _extend_conversation(invocation.fetched.session, ended)
    consolidate(settings, pack.tenant, request.user.user_id, made, counts=counts, session=session)


def _extend_conversation(stored: Json | None, ended: EndedRun) -> SessionSnapshot | None:
    """Return the conversation with the messages of the run."""
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
