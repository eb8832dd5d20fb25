"""Closing a run that nobody goes on with: what its log tells stands, nothing new begins, and it ends as aborted.

It is the same engine over the same log as `resume`. Whatever would leave the log's ground (an intent, a repeat, a
question) ends the run instead, the way a signal does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from cogcli.app.recorded_calls import recorded_answer
from cogcli.engine.tasks import Cancelled
from cogcli.events.types import row_of

if TYPE_CHECKING:
    from cogcli.app.run_skill import Control
    from cogcli.app.turns import Turns
    from cogcli.core.calls import Answer, Attempt, BindingChain
    from cogcli.engine.ports import CapabilityRunner, EventSink
    from cogcli.episode.log_index import LogIndex
    from cogcli.events.envelope import Draft, Event

ABORT: Final = "ABORT"
"""What stands in the log in place of a signal's name."""


class AbortingSink:
    """Sink and runner of a run that is closed."""

    def __init__(
        self,
        sink: EventSink,
        runner: CapabilityRunner,
        recording: LogIndex,
        turns: Turns,
        control: Control,
    ) -> None:
        self._sink = sink
        self._runner = runner
        self._recording = recording
        self._turns = turns
        self._control = control

    def append(self, draft: Draft, *, durable: bool = False) -> Event:
        recorded = self._recording.told(draft)
        if recorded is not None:
            self._turns.told(recorded)
            return recorded
        if row_of(draft.event_type).begins:
            self._end()
        return self._sink.append(draft, durable=durable)

    def chain(self, capability_id: str) -> BindingChain:
        return self._runner.chain(capability_id)

    def attempt(self, attempt: Attempt) -> Answer:
        self._turns.wait(attempt)
        return recorded_answer(self._recording, attempt) or self._end()

    def close(self, grace: float) -> None:
        self._runner.close(grace)

    def _end(self) -> NoReturn:
        """End the run without grace: there is no call to wait for."""
        self._control.cancel(ABORT)
        self._control.cancel(ABORT)
        raise Cancelled
