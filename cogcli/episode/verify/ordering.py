"""The check of the order of events (docs/reference/episode.md#types).

Beyond the page: no event of a nested run follows its end; a write-ahead record precedes the result of a call; each step
of the root run is in a plan.
"""

from __future__ import annotations

from typing import Final

from cogcli.base.step_path import StepPath, split_round
from cogcli.declarations.checked import problem_of
from cogcli.declarations.envelope import Event, row_of
from cogcli.declarations.event_table import EVENT_TYPES, PAYLOAD_OF
from cogcli.declarations.event_type import EventType
from cogcli.declarations.quick_check import certainly_fits
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.session_events import CallWitnessed
from cogcli.declarations.shared_events import SharedActivity, SharedPlan, SharedPlanStep
from cogcli.episode.layout import EVENTS, Finding, error_finding

_AFTER_END: Final = ("runtime", "insight", "memory")
Faults = list[tuple[str, str]]
"""The code and the message of each fault of an event."""
_AFTER_ROOT: Final = ("", "/", "#", "@")
"""The possible characters after the root step in a path."""
_KEPT: Final = 500
"""Steps of a nested run that are known after its end."""
_KEPT_IN_ALL: Final = 5_000
"""Nested runs, and steps of them, that are known after their ends."""


class _ParentRun(Record):
    """The member of a start event that contains the id of a nested run's parent."""

    parent_run_id: object = None


class _EndedSteps:
    """A set of steps. Of the rounds `step#0`, `step#1`, ... that ended in this order it keeps only their number."""

    __slots__ = ("_again", "_others", "_rounds")

    def __init__(self) -> None:
        self._rounds: dict[str, int] = {}
        """By loop: so many of its first rounds have ended."""
        self._again: set[str] = set()
        """The steps among them that were removed."""
        self._others: set[str] = set()

    def __len__(self) -> int:
        return len(self._others) + sum(self._rounds.values()) - len(self._again)

    def add(self, step: str) -> bool:
        """Add a step, and return whether it was there."""
        loop, number = split_round(step)
        ended = self._rounds.get(loop, 0)
        is_known = step in self._others
        if number < 0 or number > ended:
            self._others.add(step)
        elif number < ended:
            is_known = is_known or step not in self._again
            self._again.discard(step)
        else:
            self._rounds[loop] = ended + 1
            self._others.discard(step)
        return is_known

    def discard(self, step: str) -> None:
        """Remove a step."""
        self._others.discard(step)
        loop, number = split_round(step)
        if 0 <= number < self._rounds.get(loop, 0):
            self._again.add(step)


class _Run:
    __slots__ = ("alive", "ended", "is_forgotten", "open")

    def __init__(self) -> None:
        self.alive = True
        self.open: set[str] = set()
        self.ended = _EndedSteps()
        self.is_forgotten = False
        """Whether its steps are no longer known: then an event of it is a finding by itself."""

    def forget(self) -> None:
        """Free the steps of a run that has ended."""
        self.open, self.ended, self.is_forgotten = _NO_STEPS, _NONE_ENDED, True


_NO_STEPS: Final[set[str]] = set()
_NONE_ENDED: Final = _EndedSteps()


class OrderingCheck:
    """Checks the events of a log that cogcli wrote, in order."""

    def __init__(self) -> None:
        self._runs: dict[str | None, _Run] = {}
        self._root: str | None = None
        self._planned: set[str] | None = None
        self._last_planned = ""
        """A root step that is in a plan. Nearly always the next event has the same one."""
        self._unknown_types: set[str] = set()
        self._kept = 0

    def is_sound(self, event: Event, act: SharedActivity) -> bool:
        """Return whether an act certainly has no finding, and apply such an act. `act` is its payload.

        Nearly every act passes, and this test takes a fraction of the time of the checks that explain a fault.
        """
        kind, step = event.event_type or "", act.step_id
        row, run = EVENT_TYPES.get(kind), self._runs.get(event.run_id)
        return (
            row is not None
            and run is not None
            and step is not None
            and step == event.step_id
            and row.phase == event.phase
            and not row.plans_step
            and run.alive
            and self._runs[self._root].alive
            and not run.is_forgotten
            and (event.run_id != self._root or self._planned is None or self._is_planned(step))
            and certainly_fits(PAYLOAD_OF[kind], event.payload)
            and _apply_step(run, row, step)
        )

    def check(self, number: int, event: Event, act: SharedActivity | None) -> list[Finding]:
        """Return the findings about one event, after the events before it. `act` is the payload of an act."""
        faults = (
            self._check_order(event) + self._check_step(event, act) + self._check_payload(event)
        )
        faults += self._check_witness(event)
        found = [error_finding(code, EVENTS, number, message) for code, message in faults]
        kind = event.event_type
        if kind is not None and kind not in EVENT_TYPES and kind not in self._unknown_types:
            self._unknown_types.add(kind)
            message = f"event type `{kind:.60}` is not known here"
            found.append(Finding("event.unknown", "info", EVENTS, number, message))
        return found

    # -- runs ---------------------------------------------------------------------------------------------------------

    def _check_order(self, event: Event) -> Faults:
        phase, run = event.phase, self._runs.get(event.run_id)
        if phase == "start":
            return self._check_start(event, run)
        faults: Faults = []
        if run is None:
            faults.append(("run.unstarted", f"run {event.run_id!r:.40} has not started"))
            if not self._runs:
                self._root = event.run_id
            run = self._runs[event.run_id] = _Run()
        if phase == "terminate":
            if not run.alive:
                faults.append(("run.twice-ended", "the run has terminated before"))
            run.alive = False
            if event.run_id != self._root:
                self._end_nested(run)
            return faults
        if not (run.alive and self._runs[self._root].alive):
            faults += self._after_end(event, run)
        if phase == "plan":
            faults += self._check_plan(event)
        elif row_of(event.event_type).plans_step and self._planned is not None:
            self._planned.add(event.step_id or "")
        return faults

    def _end_nested(self, run: _Run) -> None:
        """Free the steps of a nested run, unless they are few."""
        self._kept += 1 + len(run.ended)
        if len(run.ended) > _KEPT or self._kept > _KEPT_IN_ALL:
            run.forget()

    def _after_end(self, event: Event, run: _Run) -> Faults:
        """Return the fault of an event that must not follow the end of its run, or of the root run."""
        may_follow = event.phase in _AFTER_END
        if not run.alive and not (event.run_id == self._root and may_follow):
            return [("run.after-end", f"{event.event_type} after the run has terminated")]
        if not self._runs[self._root].alive and not may_follow:
            return [("run.after-end", f"{event.event_type} after the root run has terminated")]
        return []

    def _check_start(self, event: Event, run: _Run | None) -> Faults:
        parent = read_record(_ParentRun, event.payload).parent_run_id
        if run is not None:
            return [("run.twice-started", "the run has started before")]
        faults: Faults = []
        if not self._runs:
            self._root = event.run_id
            if parent is not None:
                faults.append(("run.parent", "the first run of a log has no parent"))
        elif type(parent) is not str or parent not in self._runs:
            faults.append(("run.parent", f"parent run {parent!r:.40} has not started"))
        elif not self._runs[parent].alive:
            faults.append(("run.after-end", "a nested run starts after its parent has terminated"))
        self._runs[event.run_id] = _Run()
        return faults

    def _check_plan(self, event: Event) -> Faults:
        if event.run_id != self._root:
            return [("plan.nested", "a nested run writes no plan")]
        records = read_record(SharedPlan, event.payload).step_records
        if records is not None:
            ids = {read_record(SharedPlanStep, record).id for record in records}
            self._planned = (ids - {""}) | (self._planned or set())
        return []

    # -- steps --------------------------------------------------------------------------------------------------------

    def _check_step(self, event: Event, act: SharedActivity | None) -> Faults:
        kind = event.event_type
        if act is None or kind is None or (step := act.step_id) is None:
            return []
        faults: Faults = []
        if event.step_id != step:
            message = f"step_id is {event.step_id!r:.40}, the payload's is `{step:.40}`"
            faults.append(("step.other", message))
        run, row = self._runs[event.run_id], row_of(kind)
        if event.run_id == self._root and self._is_unplanned(step):
            faults.append(("step.unplanned", f"step `{step:.60}` is in no plan"))
        if run.is_forgotten:
            return faults
        if row.starts:
            run.open.add(step)
            run.ended.discard(step)
        elif row.closes:
            faults += self._check_finish(run, step, act)
        elif row.needs_start and step not in run.open:
            message = f"{kind} of step `{step:.60}`, which was not started"
            faults.append(("step.no-intent", message))
        return faults

    def _is_unplanned(self, step: str) -> bool:
        return self._planned is not None and not self._is_planned(step)

    def _is_planned(self, step: str) -> bool:
        """Return whether a plan has the step of the root run that a path leads through."""
        last = self._last_planned
        if last and step.startswith(last) and step[len(last) : len(last) + 1] in _AFTER_ROOT:
            return True
        root = StepPath(step).root_step
        if self._planned is None or root not in self._planned:
            return False
        self._last_planned = root
        return True

    def _check_finish(self, run: _Run, step: str, act: SharedActivity) -> Faults:
        faults: Faults = []
        if run.ended.add(step):
            faults.append(("step.twice-ended", f"step `{step:.60}` has ended before"))
        elif step not in run.open and _has_result(act):
            message = f"step `{step:.60}` has a result, but no intent before it"
            faults.append(("step.no-intent", message))
        run.open.discard(step)
        return faults

    # -- payloads -----------------------------------------------------------------------------------------------------

    def _check_payload(self, event: Event) -> Faults:
        kind = event.event_type
        if kind not in EVENT_TYPES:
            return []
        faults: Faults = []
        phase = EVENT_TYPES[kind].phase
        if phase and phase != event.phase:
            faults.append(("event.phase", f"{kind} in phase `{event.phase:.40}`"))
        problem = problem_of(kind, event.payload)
        if problem is not None:
            faults.append(("event.payload", f"{kind}: {problem}"))
        return faults

    @staticmethod
    def _check_witness(event: Event) -> Faults:
        """Return the alarm of a call that ran although no decision allowed it."""
        if event.event_type != CallWitnessed.event.name:
            return []
        seen = read_record(CallWitnessed, event.payload)
        why = "was denied" if seen.decision == "denied" else "had no decision"
        return [("call.witnessed", f"a call of `{seen.tool:.60}` {why}, but ran")]


def _apply_step(run: _Run, row: EventType, step: str) -> bool:
    """Begin or end a step of a run, and return whether that is in order."""
    if row.starts:
        run.open.add(step)
        run.ended.discard(step)
        return True
    if row.closes:
        if step not in run.open:
            return False
        # An open step has not ended: it was taken out of the others when it started.
        run.ended.add(step)
        run.open.discard(step)
        return True
    return not row.needs_start or step in run.open


def _has_result(act: SharedActivity) -> bool:
    """Return whether a step has its own result, not one of an earlier episode."""
    has_result = act.action_id is not None or act.tool is not None
    return has_result and "reused_from" not in act.json
