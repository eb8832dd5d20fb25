"""Close a step that ends early, and read the ending that a closing event records."""

from __future__ import annotations

from cogcli.base.errors import EffectInDoubtError, RuntimeErrorBase
from cogcli.declarations.call_records import error_from_payload
from cogcli.declarations.envelope import Event
from cogcli.declarations.events import StepFinished
from cogcli.run.engine.effects import Cancelled
from cogcli.run.engine.outcome import Ending, status_of
from cogcli.run.engine.step_recorder import StepRecord


def end_early(record: StepRecord, cause: Cancelled | RuntimeErrorBase) -> Ending:
    """Close a step that failed or was cancelled, and return its ending."""
    if isinstance(cause, Cancelled):
        event, ending = record.close_cancelled(cause), Ending("skipped", "cancelled")
    else:
        if isinstance(cause, EffectInDoubtError):
            record.run.in_doubt = cause
        event, ending = record.fail(cause), Ending(status_of(cause), cause.code, cause)
    return ending if event is None else ending_from_event(event, ending)


def ending_from_event(event: Event, ending: Ending) -> Ending:
    """Return the ending in the closing event. On resume this is the recorded one, even if the step ended differently
    now.
    """
    recorded = event.payload
    if (recorded["step_status"], recorded.get("reason")) == (ending.status, ending.reason):
        return ending
    closing = StepFinished.of(recorded)
    error = error_from_payload(closing.error.json) if closing.error else None
    return Ending(closing.step_status, closing.reason, error)
