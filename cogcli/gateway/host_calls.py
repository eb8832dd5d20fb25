"""The calls that a host makes itself: decided as steps of a session's run, and ended by what the host reports
(docs/reference/hosts.md#calls).

1. A hook that waits for a decision passes the call to the session. The engine decides, and records the intent before
   it makes an attempt.
2. The attempt is the host's. `intercept` is where the engine would call: there the hook gets its `allow`, and the
   attempt waits for the report of the end.
3. An attempt that was not allowed to any hook never left. One whose end is not reported may have happened.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Literal

from cogcli.app.settings import Settings
from cogcli.base.calls import Answer, Attempt
from cogcli.base.canonical import compact, digest_of
from cogcli.base.errors import (
    CallTimeoutError,
    CogcliError,
    PolicyDeniedError,
    RejectedError,
    TransportError,
)
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.envelope import Event
from cogcli.declarations.governance_events import PolicyDecided
from cogcli.declarations.session_events import CallRequested, CallWitnessed, SessionEnding
from cogcli.gateway.calls import CallResult, CallTicket, WitnessReport
from cogcli.gateway.host_specs import PREFIX, HostTools
from cogcli.gateway.hosts import HostCall, HostEvent
from cogcli.gateway.session import GatewaySession, SessionPlan
from cogcli.policy.verdict import MASK

MOST_ATTEMPTS: Final = 24
"""The most calls at a time that the host makes, or may make. Then the end of the oldest is unknown."""
MOST_ENDED: Final = 1000
"""The most decisions about calls that have ended that are kept, for reports that come late."""
MOST_RESPONSE: Final = 1024 * 1024
"""The most bytes of a response that are recorded."""
_HELD_BACK: Final = "no hook has allowed the call: nothing was called"
_NOT_REPORTED: Final = "the host did not report the end of the call"
_MISSED: Final = 3
_TICK: Final = 0.25


class HostDecision(NamedTuple):
    """Whether the host may make a call, and why."""

    allowed: bool
    reason: str


class _HostAttempt:
    """A call from its request to the report of its end."""

    def __init__(self, call: HostCall, key: str, content: str) -> None:
        self.call = call
        self.key = key
        self.content = content
        self.ticket: CallTicket | None = None
        self.changed = threading.Condition()
        self.attempt: Attempt | None = None
        """The engine's attempt, once it has decided and recorded the intent."""
        self.hooks = 0
        """The hooks that wait for the decision now."""
        self.granted = False
        self.ended = False
        self.outcome: HostEvent | None = None
        self.masks: tuple[str, ...] = ()

    def wake(self) -> None:
        """Wake the threads that wait for a change."""
        with self.changed:
            self.changed.notify_all()

    def grant(self) -> bool:
        """Allow the host to make the call. Return False if the engine has given it up."""
        with self.changed:
            if self.attempt is None or self.ended:
                return False
            if not self.granted:
                try:
                    self.attempt.cancel.release()
                except TransportError:
                    return False
                self.granted = True
            return True

    def end(self, outcome: HostEvent | None) -> None:
        """End the attempt: with the report of the host, or without one."""
        with self.changed:
            if not self.ended:
                self.ended, self.outcome = True, outcome
            self.changed.notify_all()


def call_names(call: HostCall) -> tuple[str, str]:
    """Return the two keys under which a report may refer to a call: its id, and its tool with arguments."""
    return call.call_id, digest_of({"tool": call.tool, "arguments": call.arguments})


class HostSession:
    """The calls of one session of a host. Its methods may be called on any thread."""

    def __init__(
        self,
        settings: Settings,
        plan: SessionPlan,
        tools: HostTools,
        on_bug: Callable[[BaseException], None],
        earlier: frozenset[str] = frozenset(),
    ) -> None:
        """`on_bug` is called with an unexpected exception of a run, on its thread. `earlier` are the names of calls
        (`call_names`) that an earlier server of the session allowed.
        """
        self._earlier = earlier
        self._tools = tools
        self._lock = threading.Lock()
        self._calls: OrderedDict[str, _HostAttempt] = OrderedDict()
        """By key, the oldest first."""
        self._steps: dict[str, _HostAttempt] = {}
        plan = plan._replace(intercept=self._intercept_attempt, listener=self._handle_event)
        self._session = GatewaySession(settings, plan, on_bug)

    @property
    def is_live(self) -> bool:
        """Whether a run accepts calls."""
        return self._session.is_live

    @property
    def episode_id(self) -> str:
        """The id of the current run's episode, else of the last one. Empty before the first call."""
        return self._session.episode_id

    def close(self, reason: SessionEnding) -> None:
        """End the session, and wait until its episode is sealed."""
        self._session.close(reason)

    # -- decisions ----------------------------------------------------------------------------------------------------

    def decide(self, call: HostCall, *, hold: float, seconds: float) -> HostDecision:
        """Decide about a call of the host within `seconds`. A call that needs a person is held for at most `hold`
        seconds.
        """
        deadline = time.monotonic() + seconds
        for _ in range(_MISSED):
            found = self._find_or_add(call)
            if found is None:
                return HostDecision(False, "another call has the same id")
            try:
                self._submit_call(found)
                decision = self._await_decision(found, time.monotonic() + hold, deadline)
            except CogcliError as error:
                self._forget_call(found)
                return HostDecision(False, describe_error(error))
            finally:
                with self._lock:
                    found.hooks -= 1
            if decision is not None:
                return decision
            self._forget_call(found)  # the session ended before the call was recorded
        return HostDecision(False, "the session is ending")

    def _find_or_add(self, call: HostCall) -> _HostAttempt | None:
        """Return the call that a hook asks about, and mark that the hook waits for it. Return None if another call has
        used the id.
        """
        content = digest_of({"tool": call.tool, "inputs": call.inputs})
        with self._lock:
            found = self._calls.get(call.call_id) if call.call_id else None
            if found is not None and found.content != content:
                return None
            found = found or self._find_uncollected(content)
            if found is None:
                key = call.call_id or os.urandom(8).hex()
                found = self._calls[key] = _HostAttempt(call, key, content)
                self._forget_oldest()
            elif call.call_id and call.call_id != found.key:  # the host asks again
                self._calls[call.call_id] = self._calls.pop(found.key)
                found.key = call.call_id
            found.hooks += 1
            return found

    def _find_uncollected(self, content: str) -> _HostAttempt | None:
        """Return a call that waits for a person or was approved, if no hook waits for it. The caller holds the lock."""
        return next(
            (
                each
                for each in self._calls.values()
                if each.content == content and not each.hooks and self._is_waiting(each)
            ),
            None,
        )

    @staticmethod
    def _is_waiting(each: _HostAttempt) -> bool:
        """Return whether a call waits for a person, or was approved and is not yet collected by a hook."""
        if each.granted or each.ended or each.ticket is None or each.ticket.is_over:
            return False
        return bool(each.ticket.approval_id) or each.attempt is not None

    def _forget_oldest(self) -> None:
        """Forget the oldest ended calls, and end the oldest attempts. The caller holds the lock."""
        self._forget_ended_calls()
        open_attempts = [each for each in self._calls.values() if each.attempt and not each.ended]
        for each in open_attempts[: max(0, len(open_attempts) - MOST_ATTEMPTS)]:
            each.end(None)

    def _forget_ended_calls(self) -> None:
        """Forget the oldest ended calls, and the steps of forgotten calls. The caller holds the lock."""
        ended = [key for key, each in self._calls.items() if each.ticket and each.ticket.is_over]
        for key in ended[: max(0, len(ended) - MOST_ENDED)]:
            del self._calls[key]
        if len(self._steps) > 2 * MOST_ENDED:
            known = {id(each) for each in self._calls.values()}
            self._steps = {step: each for step, each in self._steps.items() if id(each) in known}

    def _submit_call(self, attempt: _HostAttempt) -> None:
        """Pass a new call to the session, once."""
        with attempt.changed:
            if attempt.ticket is not None:
                return
            call = attempt.call
            capability = self._tools.capability_for(call.tool)
            ticket = self._session.call(call.tool, capability, call.inputs, attempt.key)
            attempt.ticket = ticket
        ticket.future.add_done_callback(lambda _: self._handle_end(attempt, ticket))

    def _handle_end(self, attempt: _HostAttempt, ticket: CallTicket) -> None:
        """Release the resources of an ended call, and wake the hooks that wait for it."""
        self._session.collect(ticket)
        attempt.wake()

    def _await_decision(
        self, attempt: _HostAttempt, hold_until: float, deadline: float
    ) -> HostDecision | None:
        """Return the decision about a call. None if the session did not take it."""
        ticket = attempt.ticket
        if ticket is None:
            return None
        while True:
            if ticket.is_over and not attempt.granted:
                return self._decide_by_result(ticket)
            if attempt.grant():
                return HostDecision(True, f"allowed as step {ticket.step_id}")
            if attempt.ended:
                return HostDecision(False, "this call has ended")
            now = time.monotonic()
            if ticket.approval_id and now >= hold_until:
                return HostDecision(False, describe_waiting(ticket.approval_id))
            if now >= deadline:
                return HostDecision(False, "no decision in time")
            with attempt.changed:
                if attempt.attempt is None and not ticket.is_over:
                    attempt.changed.wait(min(_TICK, deadline - now))

    def _decide_by_result(self, ticket: CallTicket) -> HostDecision | None:
        """Return the denial of a call that ended before any hook was allowed to make it."""
        result = ticket.future.result()
        return None if result is None else HostDecision(False, describe_result(result))

    def _forget_call(self, attempt: _HostAttempt) -> None:
        with self._lock:
            self._calls.pop(attempt.key, None)

    # -- reports ------------------------------------------------------------------------------------------------------

    def report(self, event: HostEvent) -> None:
        """Record the end of a call that the host made. If no decision allowed the call, record an alarm. Raise
        CogcliError if the alarm cannot be recorded.
        """
        call = event.call
        if call is None:
            return
        found = self._find_reported(call)
        if found is not None and found.granted:
            found.end(event)
        elif found is not None:
            self._record_alarm(call, "denied")
        elif self._is_witness(call) and self._earlier.isdisjoint(call_names(call)):
            self._record_alarm(call, "none")

    def _find_reported(self, call: HostCall) -> _HostAttempt | None:
        """Return the call of a report: by its id, else the oldest equal one in progress, else the
        latest equal one.
        """
        with self._lock:
            if call.call_id:
                return self._calls.get(call.call_id)
            same = [
                each
                for each in self._calls.values()
                if each.call.tool == call.tool and each.call.arguments == call.arguments
            ]
        open_ = (each for each in same if each.granted and not each.ended)
        return next(open_, same[-1] if same else None)

    def _is_witness(self, call: HostCall) -> bool:
        """Return whether a report without a decision is an alarm. A host with ids has events that report without one,
        next to those that do.
        """
        return bool(call.call_id) or not self._tools.host.call_id

    def _record_alarm(self, call: HostCall, decision: Literal["denied", "none"]) -> None:
        """Record that a call ran although no decision allowed it."""
        capability = self._tools.capability_for(call.tool)
        payload = CallWitnessed(
            tool=call.tool,
            capability=capability,
            input=call.inputs,
            decision=decision,
            key=call.call_id or None,
        )
        self._session.witness(WitnessReport(payload))

    # -- on threads of the run ----------------------------------------------------------------------------------------

    def _handle_event(self, event: Event) -> None:
        """Index the step of a call, and record the decisions that a hook cannot apply."""
        if event.event_type == CallRequested.event.name:
            asked = CallRequested.of(event.payload)
            found = self._calls.get(asked.key or "")
            if found is not None:
                self._steps[asked.step_id] = found
        elif event.event_type == PolicyDecided.event.name and event.step_id in self._steps:
            obligations = PolicyDecided.of(event.payload).obligations
            masks = tuple(each for each in obligations if each.startswith(MASK))
            self._steps[event.step_id].masks = masks

    def _intercept_attempt(self, attempt: Attempt, send: Callable[[Attempt], Answer]) -> Answer:
        """Wait until the host has made the call. Attempts of gates and probes are sent normally."""
        if not attempt.capability_id.startswith(PREFIX):
            return send(attempt)
        found = self._steps.get(attempt.step_id)
        if found is None or found.call.inputs != attempt.input:
            raise RejectedError("call.rejected", "no hook waits for this call", left=False)
        if found.masks:
            text = f"a hook cannot meet the obligation `{found.masks[0]}`"
            raise PolicyDeniedError("policy.denied", text, left=False)
        attempt.cancel.hold_back(_HELD_BACK)
        with attempt.cancel.on_cancel(lambda: found.end(None)), found.changed:
            found.attempt = attempt
            found.changed.notify_all()
            found.changed.wait_for(lambda: found.ended)
        return _answer_from_report(found)


def _answer_from_report(attempt: _HostAttempt) -> Answer:
    """Return the answer that a host reported. Raise the error of a call that failed, or whose end is unknown."""
    if not attempt.granted:
        raise RejectedError("call.rejected", _HELD_BACK, left=False)
    if attempt.outcome is None:
        raise CallTimeoutError("call.timeout", _NOT_REPORTED, left=True)
    response = _limit_response(attempt.outcome.response)
    if attempt.outcome.kind == "failure":
        error = RejectedError("call.rejected", "the tool failed", left=True)
        error.record = {"reply": {"media_type": "application/json", "body": response}}
        raise error
    return Answer({"response": response})


def _limit_response(response: object) -> object:
    """Return a response, or its size and digest if it is too large to be recorded."""
    data = compact(response)
    if len(data) <= MOST_RESPONSE:
        return response
    return {"bytes": len(data), "sha256": digest_of(response)}


def describe_result(result: CallResult) -> str:
    """Return why a call was not made."""
    if result.error is None:
        return result.detail or "the call was cut off before it was made"
    return describe_error(result.error)


def describe_error(error: CogcliError) -> str:
    """Return an error as the text that a host shows."""
    hint = f" ({error.hint})" if error.hint else ""
    text = f"error[{error.code}]: {error.message}{hint}"
    if error.code.startswith(("policy.", "safety.", "budget.")):
        text += (
            "\nNothing was called. Do not try to reach the same by another tool; tell your user."
        )
    return text


def describe_waiting(approval_id: str) -> str:
    """Return the text for a call that waits for a person."""
    return "\n".join(
        (
            f"pending: this call waits for a person's approval ({approval_id}). Nothing was called yet.",
            f"a person decides in a terminal: cogcli approvals approve {approval_id}",
            "Show your user the line above and go on with something else. Once your user has decided, call this tool"
            " again with the same arguments.",
        )
    )
