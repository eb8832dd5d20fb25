"""The closed scopes of a log: steps and runs in which nothing may begin any more, whoever resumes it.

1. A closed step is over, with its items, rounds, gates and the run nested in it. So is every step of a run that ended.
2. What a full disk ended has ended, whatever was still going on.
3. A signal that was followed by `run.resumed` ended nothing, unless a step or a nested run was cut off meanwhile.
"""

from __future__ import annotations

from typing import Any, Final

from cogcli.base.step_path import StepPath
from cogcli.declarations.call_records import RunError
from cogcli.declarations.envelope import Draft, Event, draft_of
from cogcli.declarations.events import RunTerminated, row_of

FULL_DISK: Final = "env.disk"
ScopeKey = tuple[str | None, str | None]


class ClosedScopes:
    """The closed steps and ended runs of a log, and the signal that ended it, if one did."""

    def __init__(self) -> None:
        self.steps: dict[ScopeKey, Event] = {}
        """Closing events by run and step path."""
        self.runs: dict[str | None, Event] = {}
        self._parents: dict[str | None, ScopeKey] = {}
        self.aborting: Event | None = None
        """The `run.aborting` of the signal that ended the run, if one did."""
        self.cut_off = False
        """Whether that signal cut off a step or a nested run."""

    def apply(self, event: Event) -> None:
        """Note what one event, the next of the log, starts or ends."""
        kind = event.event_type
        if row_of(kind).closes:
            self.steps[event.run_id, event.step_id] = event
            self._note_cut(event.payload.get("reason") == "cancelled")
        elif kind == "run.terminated":
            self.runs[event.run_id] = event
            self._note_cut(event.payload["status"] == "aborted")
        elif kind == "run.started":
            self._parents[event.run_id] = (event.payload.get("parent_run_id"), event.step_id)
        elif kind == "run.aborting":
            self.aborting = self.aborting or event
        elif kind == "run.resumed" and not self.cut_off:
            self.aborting = None

    def _note_cut(self, cut: bool) -> None:
        self.cut_off = self.cut_off or (cut and self.aborting is not None)

    @property
    def signal(self) -> str | None:
        """The signal that ended the run, if one did."""
        return self.aborting.payload["signal"] if self.aborting else None

    def by_signal(self, end: Event) -> bool:
        """Whether a signal came before this end."""
        return self.aborting is not None and (end.seq or 0) > (self.aborting.seq or 0)

    def over(self, run_id: str | None, step_id: str | None) -> Event | None:
        """What ended this step, or what it is a part of; None where it may go on."""
        while run_id is not None:
            end = self.runs.get(run_id) or self.steps.get((run_id, step_id))
            if end is not None:
                return end
            owner = StepPath(step_id or "").owner
            if owner:
                step_id = owner
            else:
                run_id, step_id = self._parents.get(run_id, (None, None))
        return None


def find_full_disk(run_id: str, metrics: dict[str, Any] | None = None) -> Draft:
    """The last event of a run whose log found no room; `metrics` are those of the event."""
    message = "the disk was full: nothing more could be recorded"
    payload = RunTerminated(
        status="error",
        status_reason=FULL_DISK,
        outputs={},
        error=RunError(code=FULL_DISK, message=message, hint="free space, then run it again"),
        required_missing=[],
    )
    return draft_of(payload, run_id, metrics=metrics)
