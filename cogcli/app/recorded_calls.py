"""What a log says about a call to whoever answers from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogcli.core.errors import RuntimeErrorBase
from cogcli.engine.doubt import LeftOut
from cogcli.engine.step_ending import LEFT_OUT, Degraded
from cogcli.engine.tasks import Cancelled
from cogcli.episode.log_index import error_of
from cogcli.events.types import row_of

if TYPE_CHECKING:
    from cogcli.core.calls import Answer, Attempt
    from cogcli.episode.log_index import LogIndex
    from cogcli.events.envelope import Event


def recorded_answer(recording: LogIndex, attempt: Attempt) -> Answer | None:
    """What an attempt gave; None where the log does not say. Raises what it failed with, or what ended its step."""
    result = recording.result(attempt.run_id, attempt.step_id, attempt.number)
    if isinstance(result, RuntimeErrorBase):
        raise result
    closing = recording.closings.get((attempt.run_id, attempt.step_id))
    if (
        result is None
        and closing is not None
        and (closing.event_type != "step.skipped" or _left_out(closing))
    ):
        raise error_of_ending(closing)
    return result


def error_of_ending(end: Event) -> Exception:
    """How something ended that gave no answer."""
    if _left_out(end):
        return LeftOut(end.payload.get("detail") or "")
    if end.event_type == "step.degraded":
        return Degraded(end.payload.get("detail") or "")
    error = end.payload.get("error")
    return error_of(error) if error and row_of(end.event_type).fails else Cancelled()


def _left_out(end: Event) -> bool:
    return end.event_type == "step.skipped" and end.payload.get("reason") == LEFT_OUT
