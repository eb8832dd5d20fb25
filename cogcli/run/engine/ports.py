"""The interfaces on which the engine depends: log, runner of calls, policy, and the order of a recorded log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from cogcli.base.calls import Answer, AskedCall, Attempt, BindingChain
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.envelope import Draft, Event
from cogcli.declarations.value_types import IntuitionMode

if TYPE_CHECKING:
    from decimal import Decimal

    from cogcli.declarations.capability_spec import Capability
    from cogcli.declarations.event_line import EventLine
    from cogcli.declarations.pack_spec import PackGate
    from cogcli.declarations.run_start import EarlierApproval
    from cogcli.policy.budgets import Budgets
    from cogcli.policy.limits import CallAttempt, Counter, LimitClaim
    from cogcli.policy.verdict import Verdict
    from cogcli.state.execution import RunState


class EventSink(Protocol):
    """The log of a run. Only the coordinator appends."""

    def append(self, draft: Draft, *, durable: bool = False) -> Event:
        """Append the event and return it as written. It then survives a crash of the process; with `durable` also
        a power failure.
        """
        ...

    def history(self) -> Iterable[Event]:
        """Return the events of the log so far, including those that other processes appended. For a replay return
        the whole log.
        """
        ...


class LineSink(Protocol):
    """A log that accepts events of plain calls with their constants already encoded (`run.engine.plain_invocation`)."""

    @property
    def secrets_version(self) -> object:
        """An object that is replaced whenever another secret becomes known."""
        ...

    def line_of(self, draft: Draft) -> EventLine | None:
        """Return the line that later events share except for some members. Return None if the log must not contain
        one of its constants.
        """
        ...

    def append_line(
        self, line: EventLine, values: tuple[object, ...], names: tuple[str, ...]
    ) -> str | None:
        """Append an event, given its line with all members that differ, and return its id. `values` are those that
        may contain a secret, `names` are ids, references and targets of the skill, which are never JSON.

        Return None and append nothing if the event needs `EventSink.append`.
        """
        ...


class CapabilityRunner(Protocol):
    """Makes calls, through live services or from a recorded log."""

    def chain(self, capability_id: str) -> BindingChain:
        """Return the pinned chain of a capability. Raise BindingResolutionError if it has no binding."""
        ...

    def attempt(self, attempt: Attempt) -> Answer:
        """Make one attempt in a worker thread and return the Answer.

        Raise RuntimeErrorBase, whose `left` is whether the request was sent.
        """
        ...

    def close(self, grace: float) -> None:
        """Close every socket, thread and child process. May be called twice."""
        ...


class SnapshotWriter(Protocol):
    """Writes `state.json` while a run is active. The caller must own the baton of the run."""

    def begin(self) -> None:
        """Write the first snapshot, unless one exists."""
        ...

    def is_due(self, now: float) -> bool:
        """Return whether a snapshot is due at this monotonic time. May be called by any thread."""
        ...

    def take(self) -> None:
        """Write one snapshot. Never raises."""
        ...


class CallPolicy(Protocol):
    """Decides about calls in addition to their safety levels: the pack of a run, or limits from the command line."""

    budgets: Budgets
    records_allow: bool
    """Whether an allowed call is recorded as a decision. Other decisions are always recorded."""
    name: str
    """The name of the policy in `step.started`."""
    retries: int | None
    """The maximum number of repetitions of one call, by step, binding or fallback together. None for no limit."""
    has_limits: bool
    """Whether the policy has cumulative limits."""

    def find_claims(
        self, capability_id: str, arguments: Mapping[str, object]
    ) -> tuple[LimitClaim, ...]:
        """Return the amounts that a call would add to the counters of the limits."""
        ...

    @property
    def intuition_mode(self) -> IntuitionMode | None:
        """The mode of the policy's intuition rules, or None if it has none."""
        ...

    @property
    def observe(self) -> Callable[[Event], None] | None:
        """A function that receives each event of the run as soon as it is in the log, or None."""
        ...

    def judge(
        self,
        capability: Capability,
        arguments: Mapping[str, Any],
        state: RunState,
        step: str,
        services: tuple[str, ...],
    ) -> Verdict:
        """Return the verdict on the next call. The call goes to the first of these services, or to a fallback."""
        ...

    def tool(self, skill_id: str) -> Capability | None:
        """Return the contract of a nested skill that the policy treats as one call, so that the calls in it need no
        entry. Return None for any other skill.
        """
        ...

    def gate(self, name: str) -> PackGate:
        """Return the gate that a verdict names."""
        ...

    def decision_evidence(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the members that `policy.decided` has in addition to the verdict, for a call with these arguments."""
        ...

    def explain_refusal(self, reason: str) -> str:
        """Return a hint for a call that was refused for this reason, or an empty string if there is none."""
        ...

    def find_say(self, reason: str, reads: dict[str, Any]) -> str:
        """Return the text for the customer, for this reason and the values that the decision read. Empty if the pack
        has no such text.
        """
        ...

    def learn(self, capability_id: str, output: Mapping[str, Any], at: str) -> None:
        """Add the facts that the output of a capability declares, as of the time `at`."""
        ...


class EarlierApprovals(Protocol):
    """The unused approvals of the run that a rerun runs again."""

    def redeem(self, asked: AskedCall, now: str) -> EarlierApproval | None:
        """Transfer the earlier approval of this call to this run, and return it. Return None if the call has no earlier
        approval. The transfer is on disk when this returns.
        """
        ...

    def explain_refusal(self, step_id: str) -> str:
        """Return why an earlier approval of this step was not used. Empty if the step had none."""
        ...


class LimitLedger(Protocol):
    """Counters of the totals of calls across runs and processes. Its errors are UnusableEnvironment."""

    def require_sound(self) -> None:
        """Raise an error if no limit is known to be kept."""
        ...

    def read(self, counters: Sequence[Counter], now: str) -> Sequence[Decimal]:
        """Return the value of each counter at a time."""
        ...

    def reserve(
        self,
        attempt: CallAttempt,
        claims: Sequence[LimitClaim],
        now: str,
        choose: Callable[[Mapping[str, Decimal]], Sequence[LimitClaim]],
        *,
        instead_of: Sequence[int] = (),
    ) -> tuple[Mapping[str, Decimal], tuple[int, ...]]:
        """In one transaction, reserve the claims that `choose` returns for the current values of their counters. Return
        those values by limit, and the numbers of the reservations.

        Reservations in `instead_of` do not count: their call did not leave, and this attempt replaces them.
        """
        ...

    def mark_used(self, numbers: Sequence[int]) -> None:
        """Mark reservations as used: their calls left, or may have."""
        ...

    def release(self, numbers: Sequence[int]) -> None:
        """Remove reservations of calls that did not leave."""
        ...

    def settle_episode(self, episode_id: str, is_unsent: Callable[[CallAttempt], bool]) -> None:
        """Settle the reservations of an episode whose process died, according to its log."""
        ...


class CallAccount(Protocol):
    """The amounts that one call adds to the counters of limits (`run.engine.limits`)."""

    unsent: tuple[int, ...]
    """The reservations of its attempts that did not leave, which the log does not show yet."""

    def repeat(self, number: int, cause: str) -> Verdict | None:
        """Reserve for another attempt of the call. Return the verdict that denies it, or None if it may be made."""
        ...

    def record_begun(self) -> None:
        """Record that the log contains the intent of the attempt."""
        ...

    def settle(self, *, left: bool) -> None:
        """Settle the reservation of an attempt that has a result."""
        ...

    def settle_unfinished(self) -> None:
        """Settle the reservation of an attempt without a result."""
        ...

    def release_unsent(self) -> None:
        """Release the reservations of attempts whose request did not leave, according to the log."""
        ...


class RecordedCall(NamedTuple):
    """The recorded outcome of a call."""

    position: float
    """Its `seq`. Infinite for a call that comes after the whole log."""
    answer: Callable[[], Answer]
    """Returns the Answer. Called on the coordinator at its turn, so it must not block. Raises the recorded error,
    or the errors of `end_unanswered`.
    """


class Dispatcher(Protocol):
    """The order of completions when a run follows a log: the outstanding call with the lowest `seq` completes
    next.

    A new run has no dispatcher. Its coordinator handles completions in the order in which the threads return
    them.
    """

    @property
    def live(self) -> bool:
        """Whether calls without a recorded outcome are made. If not, no thread starts and waits end immediately."""
        ...

    def recorded(self, attempt: Attempt) -> RecordedCall | None:
        """Return the recorded outcome of an attempt, or None for an attempt that is made live."""
        ...

    def end_unanswered(self) -> NoReturn:
        """End work that is not an attempt at a service and has no recorded outcome. Only called if not `live`.

        Raise Cancelled if the run is being closed, otherwise the error of the one who follows the log.
        """
        ...

    def starts_at(self, run_id: str, path: str) -> float | None:
        """Return the position of the start of a call, or None if no event with a lower position is outstanding."""
        ...

    def judged_at(self, run_id: str, path: str) -> float:
        """Return the position of the end of a step or of the request for its approval. Return infinity if the log
        has neither.
        """
        ...

    def redeemed_at(self, answer: str) -> float | None:
        """Return the position of the decision that followed from a person's answer, or None if no earlier event
        is outstanding.

        `answer` is the event id of the answer.
        """
        ...

    def take_folded(self, run_id: str, path: str) -> Event | None:
        """Return the closing event of an item or a round whose other events a waypoint left out, once. Return None
        for any other one.
        """
        ...

    def wrote_at(self, run_id: str, path: str) -> int | None:
        """Return the position of a step's writes, or None if the log has none."""
        ...

    def is_repeated(self, run_id: str, path: str, number: int) -> bool:
        """Return whether the log has this attempt, from the second on. If so, the wait before the attempt is
        skipped.
        """
        ...

    def has_begun(self, run_id: str, path: str, number: int) -> bool:
        """Return whether the log has the intent of this attempt."""
        ...

    def next_recorded(
        self, event_type: str, run_id: str, path: str | None, cause: str | None
    ) -> Event | None:
        """Return the recorded event that the next draft of this type will match, or None."""
        ...

    def ended_at(self, run_id: str, path: str) -> int | None:
        """Return the position of the end of a step or of an enclosing scope, or None if the log has neither."""
        ...

    def is_cancelled(self, run_id: str, path: str) -> bool:
        """Return whether the log records the step as cancelled, so that it never reached its own time limit."""
        ...
