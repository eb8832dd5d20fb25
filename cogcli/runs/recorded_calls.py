"""The recorded outcome of a call, for the runners that answer from a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogcli.core.errors import RuntimeErrorBase
from cogcli.engine.doubt import LeftOut
from cogcli.engine.outcome import LEFT_OUT, Degraded
from cogcli.engine.tasks import Cancelled
from cogcli.events.types import row_of
from cogcli.runs.log_index import error_of

if TYPE_CHECKING:
    from cogcli.core.calls import Answer, Attempt
    from cogcli.events.envelope import Event
    from cogcli.runs.log_index import LogIndex


def recorded_answer(log: LogIndex, attempt: Attempt) -> Answer | None:
    """The recorded answer of an attempt; None where the log has no outcome of it.

    Raises the recorded error of the attempt; without one, what `error_of_ending` gives for its closed step.
    """
    result = log.result(attempt.run_id, attempt.step_id, attempt.number)
    if isinstance(result, RuntimeErrorBase):
        raise result
    closing = log.closings.get((attempt.run_id, attempt.step_id))
    if (
        result is None
        and closing is not None
        and (closing.event_type != "step.skipped" or _left_out(closing))
    ):
        raise error_of_ending(closing)
    return result


def error_of_ending(end: Event) -> Exception:
    """The exception that ends a step, or a run, as this closing event did: LeftOut, Degraded, its recorded error,
    else Cancelled."""
    if _left_out(end):
        return LeftOut(end.payload.get("detail") or "")
    if end.event_type == "step.degraded":
        return Degraded(end.payload.get("detail") or "")
    error = end.payload.get("error")
    return error_of(error) if error and row_of(end.event_type).fails else Cancelled()


def _left_out(end: Event) -> bool:
    return end.event_type == "step.skipped" and end.payload.get("reason") == LEFT_OUT
