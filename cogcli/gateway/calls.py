"""The calls of a client on their way: what is passed to a session, and what comes back.

`CallBook` is for any caller, on any thread: a server, a hook, a library.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Final

from cogcli.base.calls import NO_ANSWER, ProgressNotice, QuestionAnswer, ServerQuestion
from cogcli.base.canonical import digest_of
from cogcli.base.errors import CogcliError, OverloadedError, RejectedError
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.governance_events import ApprovalRequested
from cogcli.declarations.session_events import CallWitnessed, SessionEnding
from cogcli.declarations.value_types import Json
from cogcli.run.answers import Approver

MOST_OPEN: Final = 256
"""The most calls of a session that are not over, or whose result no caller has collected."""
MOST_KEYS: Final = 1000
"""The most results that are kept for the idempotency keys of a client."""


class CallResult(NamedTuple):
    """The end of a call: its step, the status `done`, `failed`, `vetoed`, `skipped` or `pending`, and its output or
    error. `pending` is a call that may have happened.
    """

    step_id: str
    status: str
    output: Json | None = None
    error: CogcliError | None = None
    detail: str = ""
    is_masked: bool = False
    """Whether a rule masks a part of the output."""

    @property
    def is_in_doubt(self) -> bool:
        """Whether the call may have happened, and no one has decided about it."""
        return self.status == "pending"


class CallListener:
    """Receives the events of a call. Its methods run on the coordinator of the run, and must not block."""

    def on_begin(self, step_id: str) -> None:
        """Called when the call is recorded as this step."""

    def on_wait(self, asked: ApprovalRequested) -> None:
        """Called when the call waits for a person's answer to this request."""

    def on_resume(self) -> None:
        """Called when a person has answered the request that the call waited for."""

    def on_end(self, result: CallResult) -> None:
        """Called when the call has ended."""

    def on_missed(self) -> None:
        """Called when the session had ended, so that the call was neither recorded nor made."""


class ClientCall(NamedTuple):
    """One call of a client: the name of the tool, its capability and its inputs."""

    tool: str
    capability: str
    input: Json
    key: str | None = None
    """The idempotency key of the client."""
    listener: CallListener = CallListener()


class PersonAnswer(NamedTuple):
    """A person's answer to an open request of a session."""

    approval_id: str
    granted: bool
    approver: Approver


class DoubtDecision(NamedTuple):
    """A person's decision about a call of a session that may have happened."""

    step_id: str
    choice: str
    """`done`, `skip` or `fail`."""
    output: Json | None
    """With `done`: the return value of the call."""
    by: str
    reason: str = ""


class WitnessReport(NamedTuple):
    """A call that the host of an agent made, although no decision had allowed it."""

    payload: CallWitnessed


class SessionStop(NamedTuple):
    """The end of a session."""

    reason: SessionEnding


class SessionInbox:
    """Passes values from other threads to the run of a session."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._post: Callable[[object], None] | None = None
        self._early: list[object] = []
        self._closed = False
        self.episode_id = ""

    def open(self, episode_id: str, post: Callable[[object], None]) -> None:
        """Connect the run. Values that arrived earlier are passed on in order."""
        with self._lock:
            self.episode_id, self._post = episode_id, post
            for value in self._early:
                post(value)
            self._early.clear()

    def post(self, value: object) -> bool:
        """Pass a value to the run. Return False if the run is over."""
        with self._lock:
            if self._closed:
                return False
            if self._post is None:
                self._early.append(value)
            else:
                self._post(value)
            return True

    @property
    def is_closed(self) -> bool:
        """Whether the run accepts no further value."""
        return self._closed

    def close(self) -> None:
        """Refuse all further values."""
        with self._lock:
            self._closed = True
            early, self._early = self._early, []
        for value in early:
            if isinstance(value, ClientCall):
                value.listener.on_missed()


class OpenQuestion(NamedTuple):
    """A question of a server, and the future that receives its answer."""

    asked: ServerQuestion
    answer: Future[QuestionAnswer]


class CallTicket(CallListener):
    """A call that someone waits for. Several callers may share one."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.step_id = ""
        self.approval_id = ""
        self.asked: ApprovalRequested | None = None
        """The request that the call waits for."""
        self.episode_id = ""
        self._question: OpenQuestion | None = None
        self.answerers = 0
        """The number of clients with a person that wait for this call."""
        self._questioned: Future[None] = Future()
        self.watchers: list[Callable[[ProgressNotice], None]] = []
        """Get the progress of the call, from any thread."""
        self._result: Future[CallResult | None] = Future()
        self._requested: Future[str] = Future()

    def on_begin(self, step_id: str) -> None:
        """Set the step of the call."""
        self.step_id = step_id

    def on_wait(self, asked: ApprovalRequested) -> None:
        """Record the open request for approval."""
        self.approval_id, self.asked = asked.approval_id, asked
        if not self._requested.done():
            self._requested.set_result(asked.approval_id)

    def on_resume(self) -> None:
        """Record that the request for approval was answered."""
        self.approval_id, self.asked, self._requested = "", None, Future()

    def on_end(self, result: CallResult) -> None:
        """Set the result. A later result replaces only that of a call in doubt."""
        if self._result.done():
            known = self._result.result()
            if known is None or not known.is_in_doubt:
                return
            self._result = Future()  # a person has decided about a call in doubt
        self._result.set_result(result)

    def on_missed(self) -> None:
        """Set the result None, unless the call has a result."""
        if not self._result.done():
            self._result.set_result(None)

    @property
    def future(self) -> Future[CallResult | None]:
        """The result; None for a call that the session missed."""
        return self._result

    @property
    def requested(self) -> Future[str]:
        """A future of the id of the request for approval that the call waits for. Done while the request is open."""
        return self._requested

    @property
    def questioned(self) -> Future[None]:
        """A future that is done while a question of the server is open."""
        return self._questioned

    @property
    def question(self) -> ServerQuestion | None:
        """The question of the server that waits for an answer."""
        found = self._question
        return None if found is None or found.answer.done() else found.asked

    def ask(self, asked: ServerQuestion) -> Future[QuestionAnswer]:
        """Queue a question of the server, and return the future of its answer. If no client can ask now, the answer is
        `NO_ANSWER`.
        """
        answer: Future[QuestionAnswer] = Future()
        if not self.answerers or self.question is not None:
            answer.set_result(NO_ANSWER)
            return answer
        self._question = OpenQuestion(asked, answer)
        if not self._questioned.done():
            self._questioned.set_result(None)
        return answer

    def close_question(self, asked: ServerQuestion, answer: QuestionAnswer) -> None:
        """Answer a question, if it is still the open one: of two clients that ask, the first to answer counts."""
        found = self._question
        if found is None or found.asked is not asked:
            return
        self._question, self._questioned = None, Future()
        if found.answer.set_running_or_notify_cancel():
            found.answer.set_result(answer)

    @property
    def is_over(self) -> bool:
        """Whether the result is known."""
        return self._result.done()

    def wait(self, seconds: float) -> CallResult | None:
        """Wait at most `seconds` for the result. Return None after that time."""
        try:
            return self._result.result(seconds)
        except FutureTimeout:
            return None


class CallBook:
    """The calls of one session, by identity: the tool and its arguments, or the client's key.

    1. A call joins an equal call that is running, waits for a person or is in doubt. 2. If a caller gave up, the result
    is kept, and one equal call may collect it. 3. After that, an equal call is a new call, unless the client gave an
    idempotency key.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, CallTicket] = {}
        self._keyed: OrderedDict[str, tuple[str, CallTicket]] = OrderedDict()

    def join(self, tool: str, arguments: Json, key: str | None) -> tuple[CallTicket, bool]:
        """Return the ticket of a call, and whether the call is new. The caller must pass a new call to the session.
        Raise RejectedError for a key that another call has used, OverloadedError for too many open calls.
        """
        content = digest_of({"tool": tool, "arguments": arguments})
        with self._lock:
            if key is not None and key in self._keyed:
                known, ticket = self._keyed[key]
                if known != content:
                    text = "this idempotency key came with another call"
                    raise RejectedError("call.rejected", text, left=False)
                return ticket, False
            name = content if key is None else f"key:{key}"
            if name in self._open:
                return self._open[name], False
            if len(self._open) >= MOST_OPEN:
                text = f"{len(self._open)} calls of this session are open"
                hint = "collect the results of earlier calls, or answer their requests"
                raise OverloadedError("call.overloaded", text, hint=hint, left=False)
            ticket = self._open[name] = CallTicket(name)
            if key is not None:
                self._keyed[key] = (content, ticket)
            return ticket, True

    def collect(self, ticket: CallTicket, result: CallResult | None) -> None:
        """Record that a caller has received the result of a call. A call in doubt stays open, so that an equal call is
        not made.
        """
        if result is not None and result.is_in_doubt:
            return
        with self._lock:
            if self._open.get(ticket.key) is ticket:
                del self._open[ticket.key]
            if result is None:
                self._forget_key(ticket)
            while len(self._keyed) > MOST_KEYS:
                self._keyed.popitem(last=False)

    def report(self, notice: ProgressNotice) -> None:
        """Pass the progress of a call to those who wait for its end."""
        ticket = self._find_by_step(notice.step_id)
        for watch in list(ticket.watchers) if ticket is not None else ():
            watch(notice)

    def ask(self, question: ServerQuestion) -> Future[QuestionAnswer]:
        """Pass a question of a server to the client that waits for the call."""
        ticket = self._find_by_step(question.step_id)
        if ticket is not None:
            return ticket.ask(question)
        answer: Future[QuestionAnswer] = Future()
        answer.set_result(NO_ANSWER)
        return answer

    def _find_by_step(self, step_id: str) -> CallTicket | None:
        with self._lock:
            return next((each for each in self._open.values() if each.step_id == step_id), None)

    def fail_all(self, error: CogcliError | None) -> None:
        """End the tickets of all calls that have no result, because the run is over."""
        with self._lock:
            tickets = [*self._open.values(), *(each for _, each in self._keyed.values())]
        for ticket in tickets:
            if error is None:
                ticket.on_missed()
            elif not ticket.is_over:
                ticket.on_end(CallResult(ticket.step_id, "failed", error=error))

    def _forget_key(self, ticket: CallTicket) -> None:
        for key in [key for key, (_, each) in self._keyed.items() if each is ticket]:
            del self._keyed[key]
