"""Interfaces that the engine depends on: the log, the runner of calls, the policy, and the order of a recorded log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

from cogcli.base.calls import Answer, Attempt, BindingChain
from cogcli.declarations.envelope import Draft, Event
from cogcli.declarations.value_types import IntuitionMode

if TYPE_CHECKING:
    from cogcli.declarations.capability_spec import Capability
    from cogcli.declarations.event_line import EventLine, PlacedLine
    from cogcli.declarations.pack_spec import PackGate
    from cogcli.policy.budgets import Budgets
    from cogcli.policy.run_policy import RunState
    from cogcli.policy.verdict import Verdict


class EventSink(Protocol):
    """The log of a run. Only the coordinator appends."""

    def append(self, draft: Draft, *, durable: bool = False) -> Event:
        """Append the event and return it as written. It then survives the process; with `durable` also a power
        failure."""
        ...

    def history(self) -> Iterable[Event]:
        """Return the log so far as read back, including events that other processes appended. For a replay: the whole
        log."""
        ...


class LineSink(Protocol):
    """A log that takes the lines of plain steps with their constants already encoded (`run.engine.plain_step`)."""

    @property
    def secrets_version(self) -> object:
        """What is another object as soon as another secret is known."""
        ...

    def line_of(self, draft: Draft) -> EventLine | None:
        """Return the line of events that differ from this one in their holes alone. None if one of its constants may
        not be in the log."""
        ...

    def append_line(
        self, line: EventLine, members: dict[bytes, bytes], values: tuple[object, ...]
    ) -> PlacedLine | None:
        """Write an event: a line, and the JSON that fills its holes. `values` may hold a secret. Return None, with
        nothing done, where only `EventSink.append` can decide."""
        ...


class CapabilityRunner(Protocol):
    """Performs calls: live services, or a recorded log."""

    def chain(self, capability_id: str) -> BindingChain:
        """Return the pinned chain of a capability. Raise BindingResolutionError."""
        ...

    def attempt(self, attempt: Attempt) -> Answer:
        """Make one attempt, in a worker thread, and return the Answer. Raise RuntimeErrorBase with `left` set."""
        ...

    def close(self, grace: float) -> None:
        """Close every socket, thread and child process. May be called twice."""
        ...


class SnapshotWriter(Protocol):
    """Writes `state.json` of a run while it is alive. The caller holds the baton of the run."""

    def begin(self) -> None:
        """Write the first snapshot, unless one exists."""
        ...

    def is_due(self, now: float) -> bool:
        """Return whether a snapshot is due at this monotonic time. May be called by any thread."""
        ...

    def take(self) -> None:
        """Write one snapshot. Raises nothing."""
        ...


class CallPolicy(Protocol):
    """Decides about calls in addition to their safety levels: the pack of a run, or limits from the command line."""

    budgets: Budgets
    records_allow: bool
    """Whether an allowed call is recorded as a decision. Other decisions are always recorded."""
    name: str
    """The name of the policy in `step.started`."""
    retries: int | None
    """How often one call may be repeated, by step, binding or fallback together. None for no limit."""

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
        """Return the verdict on a call that is about to be made, through the first of these services or a fallback."""
        ...

    def tool(self, skill_id: str) -> Capability | None:
        """Return the contract of a nested skill that is judged as one call, so that the calls in it need no entry. None
        for any other skill."""
        ...

    def gate(self, name: str) -> PackGate:
        """Return the gate that a verdict names."""
        ...

    def decision_evidence(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the members of `policy.decided` other than the verdict, for a call with these arguments."""
        ...

    def explain_refusal(self, reason: str) -> str:
        """Return a hint for a call that was refused for this reason, or an empty string."""
        ...

    def learn(self, capability_id: str, output: Mapping[str, Any], at: str) -> None:
        """Add the facts that an output declares, as of this time."""
        ...


class RecordedCall(NamedTuple):
    """The recorded outcome of a call."""

    position: float
    """Its `seq`. Infinite for a call that comes after the whole log."""
    answer: Callable[[], Answer]
    """Returns the Answer. Called on the coordinator at its turn, so it must not block. Raises the recorded error, or
    Unanswered."""


class Dispatcher(Protocol):
    """The order of completions in a run over a log: of all outstanding calls the one with the lowest `seq` completes
    next.

    A new run has no dispatcher: its coordinator takes completions in the order in which threads return them.
    """

    @property
    def live(self) -> bool:
        """Whether a call without a recorded outcome is made. If not, no thread starts and no time is spent waiting."""
        ...

    def recorded(self, attempt: Attempt) -> RecordedCall | None:
        """Return the recorded outcome of an attempt, or None for an attempt that is made live."""
        ...

    def end_unanswered(self) -> NoReturn:
        """End work that is not an attempt at a service and has no recorded outcome. Only called if not `live`. Raise
        Cancelled if the run is being closed, otherwise Unanswered."""
        ...

    def starts_at(self, run_id: str, path: str) -> float | None:
        """Return the position of the start of a call if events with a lower position are outstanding. None
        otherwise."""
        ...

    def judged_at(self, run_id: str, path: str) -> float:
        """Return the position of the end of a step, or of the request for its approval. Infinite if the log has
        neither."""
        ...

    def redeemed_at(self, answer: str) -> float | None:
        """Return the position of the decision that a person's answer led to, by event id of the answer, if events with
        a lower position are outstanding. None otherwise."""
        ...

    def wrote_at(self, run_id: str, path: str) -> int | None:
        """Return the position of a step's writes, or None if the log has none."""
        ...

    def is_repeated(self, run_id: str, path: str, number: int) -> bool:
        """Return whether the log has this attempt, from the second on. Then the wait before it is over."""
        ...

    def ended_at(self, run_id: str, path: str) -> int | None:
        """Return the position of the end of a step or of a scope around it. None if the log has none."""
        ...

    def is_cut_off(self, run_id: str, path: str) -> bool:
        """Return whether the log records the step as cancelled, so that it never reached its own time limit."""
        ...
