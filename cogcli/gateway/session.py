"""A session of a gateway: the calls of one client as runs, one after the other (docs/reference/gateway.md#session).

`GatewaySession` is for any caller, on any thread. Its run begins with the first call. A run that reaches a limit is
sealed, and the next call begins a new one, which names the old.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Final

from cogcli.app.live_answers import AnswerFile, DoubtAnswerFile, collect_answers, remove_folder
from cogcli.app.run_skill import environment_of
from cogcli.app.settings import Settings
from cogcli.base import threads
from cogcli.base.errors import CogcliError, OverloadedError
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.envelope import Event
from cogcli.declarations.options import RunOptions
from cogcli.declarations.session_events import CallRequested, SessionEnding
from cogcli.declarations.value_types import Json
from cogcli.gateway.calls import (
    CallBook,
    CallTicket,
    ClientCall,
    DoubtDecision,
    PersonAnswer,
    SessionInbox,
    SessionStop,
    WitnessReport,
)
from cogcli.gateway.earlier import EarlierRuns, task_of_session
from cogcli.gateway.program import NO_OTHER_LIMITS, SessionLimits, SessionProgram
from cogcli.gateway.tool_specs import SKILL
from cogcli.run.launch import launch
from cogcli.run.prepare import AgentRun, Intercept, PreparedRun, RunRequest, call_policy
from cogcli.run.results import RunResult
from cogcli.specs.catalog import Catalog
from cogcli.specs.selection import SelectionOptions

MAX_WORKERS: Final = 32
"""The most calls to upstream servers at a time. More wait."""
_WATCH_SECONDS: Final = 0.2
"""Between two looks for answers of people."""
_TRIES: Final = 3
"""The maximum number of attempts to find a run that has not ended."""


class SessionPlan(NamedTuple):
    """The settings that all runs of a session share."""

    catalog: Catalog
    """The specs of the offered tools, and of the pack."""
    options: RunOptions
    name: str = ""
    """The session name that the caller of the gateway chose."""
    client: str = ""
    """The client's description of itself."""
    limits: SessionLimits = NO_OTHER_LIMITS
    takes_questions: bool = False
    """Whether questions of services are passed to the client."""
    reports_progress: bool = False
    """Whether services are asked for the progress of calls."""
    continues: str = ""
    """The episode that the first run continues, of a process that ended."""
    intercept: Intercept | None = None
    """Makes calls instead of services: those of functions of the caller, or of a host. None for live calls."""
    listener: Callable[[Event], None] | None = None
    """Gets each event of the runs, on their coordinators. It must not block."""


class _LiveRun(NamedTuple):
    """A run of a session that accepts calls."""

    inbox: SessionInbox
    book: CallBook
    ended: threading.Event


class GatewaySession:
    """The calls of one client."""

    def __init__(
        self, settings: Settings, plan: SessionPlan, on_bug: Callable[[BaseException], None]
    ) -> None:
        """`on_bug` is called with an unexpected exception of a run, on its thread."""
        self._settings = settings
        self._plan = plan
        self._on_bug = on_bug
        self._lock = threading.Lock()
        self._live: _LiveRun | None = None
        self._last_episode = plan.continues
        self._closed = False
        self._error: CogcliError | None = None
        self._earlier = EarlierRuns(settings, plan.name)

    def call(self, tool: str, capability: str, inputs: Json, key: str | None = None) -> CallTicket:
        """Pass a call to the session, or join an equal one, and return its ticket.

        Give the ticket back by `collect` once its result has been delivered. Raise RejectedError, OverloadedError,
        or the error with which the last run ended.
        """
        requested = CallRequested(
            step_id="", tool=tool, capability=capability, input=inputs, key=key
        )
        for _ in range(_TRIES):
            live = self._find_live()
            earlier = self._earlier.find_ticket(requested)
            if earlier is not None:
                return earlier
            ticket, is_new = live.book.join(tool, inputs, key)
            if not is_new:
                return ticket
            if live.inbox.post(ClientCall(tool, capability, inputs, key, ticket)):
                return ticket
            live.book.collect(ticket, None)
        raise OverloadedError("call.overloaded", "the session is ending", left=False)

    def collect(self, ticket: CallTicket) -> None:
        """Record that the result of a call was delivered."""
        live = self._live
        if live is not None and ticket.is_over:
            live.book.collect(ticket, ticket.future.result())

    def witness(self, report: WitnessReport) -> None:
        """Record a call that no decision had allowed. Raise OverloadedError, or the error with which the last run
        ended.
        """
        for _ in range(_TRIES):
            if self._find_live().inbox.post(report):
                return
        raise OverloadedError("call.overloaded", "the session is ending", left=False)

    @property
    def is_live(self) -> bool:
        """Whether a run accepts calls, so that `call` does not block."""
        live = self._live
        return live is not None and not live.inbox.is_closed

    @property
    def has_run(self) -> bool:
        """Whether it has a run that is not sealed."""
        return self._live is not None

    @property
    def is_sealed(self) -> bool:
        """Whether its last run is sealed, and no new one has begun."""
        return self._live is None and bool(self._last_episode)

    @property
    def episode_id(self) -> str:
        """The id of the current run's episode, else of the last one. Empty before the first call."""
        live = self._live
        return (live.inbox.episode_id if live else "") or self._last_episode

    @property
    def inbox(self) -> SessionInbox | None:
        """The inbox of the current run, for answers of people."""
        live = self._live
        return live.inbox if live else None

    def answer(self, answer: PersonAnswer) -> None:
        """Pass the answer of a person to the run, which checks it. An answer without an open request is ignored."""
        live = self._live
        if live is not None:
            live.inbox.post(answer)

    def stop(self, reason: SessionEnding) -> None:
        """Begin to end the session, without waiting."""
        with self._lock:
            self._closed, live = True, self._live
        if live is not None:
            live.inbox.post(SessionStop(reason))

    def close(self, reason: SessionEnding) -> None:
        """End the session, and wait until its episode is sealed."""
        self.stop(reason)
        live = self._live
        if live is not None:
            live.ended.wait()

    # -- runs ---------------------------------------------------------------------------------------------------------

    def _find_live(self) -> _LiveRun:
        """Return the current run, or begin one. If a run accepts no more calls, wait for its end first."""
        while True:
            with self._lock:
                if self._closed:
                    raise OverloadedError("call.overloaded", "the gateway is ending", left=False)
                live = self._live
                if live is None:
                    if self._error is not None:
                        error, self._error = self._error, None
                        raise error
                    return self._begin_run()
                if not live.inbox.is_closed:
                    return live
            live.ended.wait()

    def _begin_run(self) -> _LiveRun:
        """Begin a run on a new thread. The caller holds the lock."""
        before = self._earlier.load(self._last_episode)
        live = self._live = _LiveRun(SessionInbox(), CallBook(), threading.Event())
        prepared = _prepare_run(self._plan, live.inbox, before, self._settings.environ)
        try:
            threads.start(self._make_run, live, prepared, name="session")
        except threads.NoThread as error:
            self._live = None
            text = "the system gives no thread for a session"
            raise OverloadedError("call.overloaded", text, left=False) from error
        return live

    def _make_run(self, live: _LiveRun, prepared: PreparedRun) -> None:
        """Make one run, from its first call to its seal."""
        error: CogcliError | None = None
        result: RunResult | None = None
        try:
            threads.start(self._watch_answers, live, name="answers")
            environment = environment_of(self._settings.copy_for_run())._replace(
                on_progress=live.book.report if self._plan.reports_progress else None,
                on_question=live.book.ask if self._plan.takes_questions else None,
                pauses_for_input=False,  # the session goes on with other calls
            )
            result = launch(
                environment, prepared, listener=self._plan.listener, intercept=self._plan.intercept
            )
        except CogcliError as refused:
            error = refused
        except BaseException as bug:
            self._on_bug(bug)
        finally:
            live.inbox.close()
            live.book.fail_all(error)
            with self._lock:
                self._live = None
                self._error = error
                self._last_episode = result.episode_id if result else live.inbox.episode_id
            live.ended.set()

    def _watch_answers(self, live: _LiveRun) -> None:
        """Pass the answers of people to a run until the run has ended."""
        environ = self._settings.environ
        while not live.ended.wait(_WATCH_SECONDS):
            if not live.inbox.episode_id:
                continue
            for found in collect_answers(environ, live.inbox.episode_id):
                live.inbox.post(_value_from_file(found))
        remove_folder(environ, live.inbox.episode_id)


def _value_from_file(found: AnswerFile | DoubtAnswerFile) -> PersonAnswer | DoubtDecision:
    """Return a person's answer or decision for the run."""
    match found:
        case AnswerFile():
            return PersonAnswer(found.approval_id, found.granted, found.approver)
        case DoubtAnswerFile():
            return DoubtDecision(found.step_id, found.choice, found.output, found.by, found.reason)


def _prepare_run(
    plan: SessionPlan, inbox: SessionInbox, before: str, environ: Mapping[str, str]
) -> PreparedRun:
    """Return the next run of a session. `before` is the episode that it continues."""
    session = {
        "session": plan.name,
        "client": plan.client,
        **({"continues": before} if before else {}),
    }
    request = RunRequest(SKILL, {}, plan.options)
    policy = call_policy(plan.catalog, request.policy, SKILL, {})
    program = SessionProgram(inbox, plan.limits)
    task = task_of_session(plan.name)
    return PreparedRun(
        request,
        plan.catalog.skills[SKILL],
        plan.catalog,
        {},
        {},
        SelectionOptions.of(plan.options, environ),
        [],
        policy,
        AgentRun(task, {}, {}, program, policy, gateway=session),
    )
