"""What the engine is given: what performs calls, the log, and which completion comes next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

from cogcli.base.calls import Answer, Attempt, BindingChain
from cogcli.declarations.envelope import Draft, Event
from cogcli.declarations.value_types import IntuitionMode

if TYPE_CHECKING:
    from cogcli.declarations.capability_spec import Capability
    from cogcli.declarations.pack_spec import PackGate
    from cogcli.policy.budgets import Budgets
    from cogcli.policy.run_policy import RunState
    from cogcli.policy.verdict import Verdict


class EventSink(Protocol):
    """The log. Only the coordinator appends."""

    def append(self, draft: Draft, *, durable: bool = False) -> Event:
        """The event as written; once this returns it survives the process. `durable`: the machine, too."""
        ...

    def history(self) -> Iterable[Event]:
        """The log so far as it is read back, with what other processes appended to it. Of a replay the whole log."""
        ...


class CapabilityRunner(Protocol):
    """Performs calls: live services, or a recorded log."""

    def chain(self, capability_id: str) -> BindingChain:
        """The pinned chain of a capability. Raises BindingResolutionError."""
        ...

    def attempt(self, attempt: Attempt) -> Answer:
        """Make one attempt, in a worker thread. Raises RuntimeErrorBase with `left` set."""
        ...

    def close(self, grace: float) -> None:
        """Leave no socket, thread or child behind; may be called twice."""
        ...


class SnapshotWriter(Protocol):
    """Writes the document of a run while it is alive. Whoever calls it has the baton of the run."""

    def begin(self) -> None:
        """Write the first one, unless there was one."""
        ...

    def is_due(self, now: float) -> bool:
        """Whether one is to be written at this monotonic time. May be called by any thread."""
        ...

    def take(self) -> None:
        """Write one. Raises nothing."""
        ...


class CallPolicy(Protocol):
    """What decides about calls beside their safety levels: the pack of a run, or limits given on the command line."""

    budgets: Budgets
    records_allow: bool
    """Whether a call that is allowed leaves a decision in the log; if not, only one that is not."""
    name: str
    """The policy as `step.started` names it."""
    retries: int | None
    """How often one call may be repeated, by whatever of step, binding or fallback; None for any."""

    @property
    def intuition_mode(self) -> IntuitionMode | None:
        """How its rules take part in the run; None where it has none."""
        ...

    @property
    def observe(self) -> Callable[[Event], None] | None:
        """What is given each event of the run, as soon as it is in the log; None where nothing needs them."""
        ...

    def judge(
        self,
        capability: Capability,
        arguments: Mapping[str, Any],
        state: RunState,
        step: str,
        services: tuple[str, ...],
    ) -> Verdict:
        """The verdict on a call that is about to be made, through the first of these services or a fallback."""
        ...

    def tool(self, skill_id: str) -> Capability | None:
        """The contract of a nested skill that is decided about as a call, so that those in it need no entry of their
        own; None for any other skill."""
        ...

    def gate(self, name: str) -> PackGate:
        """The gate of a verdict."""
        ...

    def basis(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What of a decision about a call with these arguments `policy.decided` holds beside the verdict."""
        ...

    def explain_refusal(self, reason: str) -> str:
        """A hint for a call that was refused for this reason; empty if there is none."""
        ...

    def learn(self, capability_id: str, output: Mapping[str, Any], at: str) -> None:
        """Take up the facts that an output declares, as of this time."""
        ...


class RecordedCall(NamedTuple):
    """The outcome of a call in a log."""

    position: float
    """Its `seq`; infinite for a call that comes after the whole log."""
    answer: Callable[[], Answer]
    """Called on the coordinator at its turn, so it must not block. Raises the recorded error, or Unanswered."""


class Dispatcher(Protocol):
    """Which completion comes next in a run over a log: of all calls outstanding the one with the lowest `seq`. A new
    run has none: its coordinator takes completions as threads give them."""

    @property
    def live(self) -> bool:
        """Whether a call that the log does not have is made. If not, no thread starts and no time is waited for."""
        ...

    def recorded(self, attempt: Attempt) -> RecordedCall | None:
        """The outcome of an attempt in the log; None for one that is made live."""
        ...

    def end_unanswered(self) -> NoReturn:
        """End what the log has begun without an outcome, and which is no attempt at a service; only where it is not
        live. Raises Cancelled where the run is being closed, else Unanswered."""
        ...

    def starts_at(self, run_id: str, path: str) -> float | None:
        """The position of the start of a call, where something with a lower one is still to come; else None."""
        ...

    def judged_at(self, run_id: str, path: str) -> float:
        """The position of the end of a step, else of the request for its approval; infinite where the log has
        neither."""
        ...

    def redeemed_at(self, answer: str) -> float | None:
        """The position of the decision that a person's answer led to, by the id of the answer's event, where something
        with a lower one is still to come; else None."""
        ...

    def wrote_at(self, run_id: str, path: str) -> int | None:
        """The position of a step's writes; None where the log has none."""
        ...

    def is_repeated(self, run_id: str, path: str, number: int) -> bool:
        """Whether the log has this attempt, from the second on: then its wait is over."""
        ...

    def ended_at(self, run_id: str, path: str) -> int | None:
        """The position of the end of a step, or of what it is a part of; None where the log has none."""
        ...

    def is_cut_off(self, run_id: str, path: str) -> bool:
        """Whether a step was cancelled in the log, so that it never reached its own limit of time."""
        ...
