"""How a step ends early, and the ending that a closing event records."""

from __future__ import annotations

from cogcli.base.errors import EffectInDoubtError, RuntimeErrorBase, error_from_payload
from cogcli.declarations.envelope import Event
from cogcli.run.engine.outcome import Ending, status_of
from cogcli.run.engine.step_recorder import StepRecord
from cogcli.run.engine.tasks import Cancelled


def end_early(record: StepRecord, cut: Cancelled | RuntimeErrorBase) -> Ending:
    """Close a step that failed or was cut off, and return how it ended."""
    if isinstance(cut, Cancelled):
        event, ending = record.cut_off(cut), Ending("skipped", "cancelled")
    else:
        if isinstance(cut, EffectInDoubtError):
            record.run.in_doubt = cut
        event, ending = record.fail(cut), Ending(status_of(cut), cut.code, cut)
    return ending if event is None else recorded_ending(event, ending)


def recorded_ending(event: Event, ending: Ending) -> Ending:
    """Return the ending in the closing event. On resume this is the recorded ending, even if the step ended differently
    now."""
    recorded = event.payload
    if (recorded["step_status"], recorded.get("reason")) == (ending.status, ending.reason):
        return ending
    error = error_from_payload(recorded["error"]) if recorded.get("error") else None
    return Ending(recorded["step_status"], recorded.get("reason"), error)
