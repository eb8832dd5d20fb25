"""The closed scopes of a log: steps and runs in which no new event may start, even after a resume.

1. A closed step also closes its items, rounds, gates and nested run. An ended run closes all its steps.
2. A full disk ends a run for good, with everything that was still in progress.
3. If `run.resumed` follows a signal, the signal ends nothing, unless it had cancelled a step or a nested run.
"""

from __future__ import annotations

from typing import Final

from cogcli.base.step_path import StepPath
from cogcli.declarations.call_records import RunError
from cogcli.declarations.envelope import Draft, Event, draft_of, row_of
from cogcli.declarations.events import RunAborting, RunStarted, RunTerminated, StepFinished
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json

FULL_DISK: Final = "env.disk"
ScopeKey = tuple[str | None, str | None]


class ClosedScopes:
    """The closed steps and ended runs of a log, and the signal that ended the root run, if any."""

    def __init__(self) -> None:
        self.steps: dict[ScopeKey, Event] = {}
        """Closing events by run and step path."""
        self.runs: dict[str | None, Event] = {}
        self._parents: dict[str | None, ScopeKey] = {}
        self.aborting: Event | None = None
        """The `run.aborting` event of the signal that ended the run, or None."""
        self.has_cancelled = False
        """Whether that signal cancelled a step or a nested run."""

    def apply(self, event: Event) -> None:
        """Fold the next event of the log."""
        kind = event.event_type
        if row_of(kind).closes:
            self.steps[event.run_id, event.step_id] = event
            self._note_cancellation(StepFinished.of(event.payload).reason == "cancelled")
        elif kind == "run.terminated":
            self.runs[event.run_id] = event
            self._note_cancellation(RunTerminated.of(event.payload).status == "aborted")
        elif kind == "run.started":
            parent = read_record(RunStarted, event.payload).parent_run_id
            self._parents[event.run_id] = (parent, event.step_id)
        elif kind == "run.aborting":
            self.aborting = self.aborting or event
        elif kind == "run.resumed" and not self.has_cancelled:
            self.aborting = None

    def _note_cancellation(self, is_cancelled: bool) -> None:
        self.has_cancelled = self.has_cancelled or (is_cancelled and self.aborting is not None)

    @property
    def signal(self) -> str | None:
        """The name of the signal that ended the run, or None."""
        return RunAborting.of(self.aborting.payload).signal if self.aborting else None

    def follows_signal(self, end: Event) -> bool:
        """Return whether a signal precedes this closing event in the log."""
        return self.aborting is not None and (end.seq or 0) > (self.aborting.seq or 0)

    def find_end(self, run_id: str | None, step_id: str | None) -> Event | None:
        """Return the event that closed this step or an enclosing scope, or None if the step is still open."""
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


def draft_full_disk_end(run_id: str, metrics: Json | None = None) -> Draft:
    """Return the draft of the last event of a run that a full disk ended."""
    message = "the disk was full: nothing more could be recorded"
    payload = RunTerminated(
        status="error",
        status_reason=FULL_DISK,
        outputs={},
        error=RunError(code=FULL_DISK, message=message, hint="free space, then run it again"),
        required_missing=[],
    )
    return draft_of(payload, run_id, metrics=metrics)
