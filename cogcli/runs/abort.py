"""`resume --abort`: a paused or interrupted run is closed with the status `aborted` (docs/reference/episode.md#doubts).

It is the same engine over the same log as `resume`: recorded events and answers are used. Whatever would be new (the
start of a call, a repeat, a request for approval) ends the run instead, as a signal does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from cogcli.engine.tasks import Cancelled
from cogcli.events.types import row_of
from cogcli.runs.recorded_calls import recorded_answer

if TYPE_CHECKING:
    from cogcli.core.calls import Answer, Attempt, BindingChain
    from cogcli.engine.ports import CapabilityRunner, EventSink
    from cogcli.events.envelope import Draft, Event
    from cogcli.runs.log_index import LogIndex
    from cogcli.runs.results import Control
    from cogcli.runs.turns import Turns

ABORT: Final = "ABORT"
"""The `signal` of `run.aborting` where no signal came."""


class AbortingSink:
    """Event sink and capability runner of a run that is closed: answers from the log, never makes a call."""

    def __init__(
        self,
        sink: EventSink,
        runner: CapabilityRunner,
        log: LogIndex,
        turns: Turns,
        control: Control,
    ) -> None:
        self._sink = sink
        self._runner = runner
        self._log = log
        self._turns = turns
        self._control = control

    def append(self, draft: Draft, *, durable: bool = False) -> Event:
        recorded = self._log.told(draft)
        if recorded is not None:
            self._turns.mark_delivered(recorded)
            return recorded
        if row_of(draft.event_type).begins:
            self._end()
        return self._sink.append(draft, durable=durable)

    def chain(self, capability_id: str) -> BindingChain:
        return self._runner.chain(capability_id)

    def attempt(self, attempt: Attempt) -> Answer:
        self._turns.wait(attempt)
        return recorded_answer(self._log, attempt) or self._end()

    def close(self, grace: float) -> None:
        self._runner.close(grace)

    def _end(self) -> NoReturn:
        """Cancel the run. Twice, which leaves no grace: there is no call to wait for."""
        self._control.cancel(ABORT)
        self._control.cancel(ABORT)
        raise Cancelled
