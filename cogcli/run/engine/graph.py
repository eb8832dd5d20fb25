"""The driver of a graph of steps (docs/reference/execution.md#scheduling).

1. Ready steps start in plan order while a worker slot is free.
2. A step that is done, or skipped by condition or degrade, releases its dependents. All steps downstream of a failed or
   vetoed step are skipped.
3. Without `keep_going`, no new step starts after a failure or veto, and running calls are cancelled. Effects in flight
   end first.
4. Dependents of a pending or cancelled step never become ready.
5. No step starts after a signal.
6. A step that will never start does not delay the writes of other steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from cogcli.base.calls import Answer
from cogcli.base.errors import InternalError, RuntimeErrorBase
from cogcli.run.engine.context import Run
from cogcli.run.engine.effects import (
    AwaitedCall,
    Cancel,
    Cancelled,
    Effects,
    Next,
    QuickCall,
    QuickCalls,
    Task,
    Wake,
)
from cogcli.run.engine.outcome import RELEASING, Ending
from cogcli.run.engine.plain_invocation import find_plain_call
from cogcli.run.engine.plain_step import PlainStep, StartedStep, StepStart
from cogcli.run.engine.plan import StepPlan
from cogcli.run.engine.step_recorder import StepRecord
from cogcli.run.engine.write_order import WriteOrder


class ReadySet:
    """The ready steps of a plan, by position in plan order. It counts unmet dependencies and never scans the graph."""

    def __init__(self, plan: StepPlan) -> None:
        self._dependents = plan.dependents
        self._waiting_on = list(plan.waiting_on)
        self._ready = [index for index, count in enumerate(self._waiting_on) if not count]
        self._blocked: set[int] = set()
        self._stranded: set[int] = set()
        heapify(self._ready)

    def __bool__(self) -> bool:
        return bool(self._ready)

    def pop(self) -> int:
        """Remove and return the first ready step in plan order. Raise IndexError if there is none."""
        return heappop(self._ready)

    def release(self, index: int) -> None:
        """Mark a step as done, and add the dependents that have become ready."""
        for dependent in self._dependents[index]:
            self._waiting_on[dependent] -= 1
            if not self._waiting_on[dependent] and dependent not in self._blocked:
                heappush(self._ready, dependent)

    def block(self, index: int) -> list[int]:
        """Mark all steps downstream as never to start. Return the newly marked ones in plan order."""
        return self._mark_downstream(index, self._blocked)

    def mark_never_ready(self, index: int) -> list[int]:
        """Mark all steps downstream as never ready. Return the newly marked ones in plan order."""
        return self._mark_downstream(index, self._stranded)

    def _mark_downstream(self, index: int, known: set[int]) -> list[int]:
        found: list[int] = []
        front = [index]
        while front:
            for dependent in self._dependents[front.pop()]:
                if dependent not in known:
                    known.add(dependent)
                    found.append(dependent)
                    front.append(dependent)
        return sorted(found)


class GraphDriver(QuickCalls):
    """Runs the steps of one run. `endings` maps the position of each ended step to its ending.

    By the methods of `QuickCalls` it completes ready steps that make quick calls only, without a task for each.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._loop = run.engine.loop
        self._ready = ReadySet(run.plan)
        self._write_order = WriteOrder(run.plan.writes_after, len(run.plan.steps), run.wrote_at)
        self._tasks: dict[int, Task] = {}
        self.endings: dict[int, Ending] = {}
        self.halted = False
        self._quick: tuple[int, PlainStep] | None = None
        """The step whose quick call is being made."""
        self._next: tuple[int, StepStart] | None = None
        """The step that ended a series of quick calls because it needs a task, and its begun part."""
        self._ended: tuple[int, Ending] | None = None
        """The step that ended such a series with its own ending."""

    def drive(self) -> Effects:
        """Start and await steps until no step is running and no further step may start."""
        while True:
            if self._loop.signal is not None and not self.halted:
                yield from self._finish_without_steps()
            while self._may_start():
                yield from self._start_steps()
            wants_slot = self._wants_slot()
            if not self._tasks and not wants_slot:
                return
            task: Task | None = yield Next(slot=wants_slot)
            if task is not None:
                yield from self._handle_end(task)

    def begin(self) -> QuickCall | None:
        """Start the next ready step. If its call is quick, return the call. Otherwise set `_next` to the step, if one
        is ready. Raise the errors of the sink.
        """
        if not self._may_start():
            return None
        index, run = self._ready.pop(), self._run
        planned = run.plan.steps[index]
        call = find_plain_call(run, planned, planned.plain_key)
        if call is None or not call.speed.is_quick:
            self._next = index, call
            return None
        step = PlainStep(run, planned, call, run.path(planned.step.id), run.scope)
        if not step.begin():
            self._next = index, step.started
            return None
        self._quick = index, step
        return step.live_call()

    def end(self, answer: Answer) -> bool:
        """End the step whose call was answered. Return False if its ending has consequences for other steps."""
        index, step = self._take_quick()
        ending = step.end(answer)
        if ending.status != "done":
            self._ended = index, ending
            return False
        # A run with plain steps has no order of writes, so no other step waits for this one to write.
        self.endings[index] = ending
        self._ready.release(index)
        return True

    def _take_quick(self) -> tuple[int, PlainStep]:
        if self._quick is None:
            raise InternalError("internal", "no step has begun a quick call")
        quick, self._quick = self._quick, None
        return quick

    def _start_steps(self) -> Effects:
        """Run ready steps with quick calls to their ends, and start the next one as a task."""
        try:
            awaited: AwaitedCall | None = yield self
        except (Cancelled, RuntimeErrorBase) as error:
            if self._quick is None:
                raise
            yield from self._end_quick_call(error)
            return
        if awaited is not None:
            index, step = self._take_quick()
            yield from self._spawn_step(index, StartedStep(step, awaited.effect))
        elif self._next is not None:
            (index, start), self._next = self._next, None
            yield from self._spawn_step(index, start)
        elif self._ended is not None:
            (index, ending), self._ended = self._ended, None
            yield from self._handle_ending(index, ending)

    def _end_quick_call(self, error: Cancelled | RuntimeErrorBase) -> Effects:
        """End the step of a quick call that failed, or that was cancelled with the run before a task ran the step."""
        index, step = self._take_quick()
        if isinstance(error, Cancelled):
            self.endings[index] = step.cancel(error)
            raise error
        yield from self._spawn_step(index, step.fail(error))
        while index in self._tasks and self._tasks[index].done:  # before another step starts
            yield from self._handle_end((yield Next()))

    def _spawn_step(self, index: int, start: StepStart) -> Effects:
        """Run a step as a task, beginning from `start`."""
        planned = self._run.plan.steps[index]
        spawn = self._run.spawn_step(self._run, planned, self._write_order, start)
        self._tasks[index] = yield spawn

    def wait(self, *, until: float) -> Effects:
        """Wait for running steps to end until a monotonic time or a second signal. No new step starts."""
        yield from self._finish_without_steps()
        while self._tasks:
            task: Task | None = yield Next(until=until)
            if task is None:
                return
            yield from self._handle_end(task)

    def wind_down(self, *, force: bool) -> Effects:
        """Cancel running steps, with `force` also effects in flight. A later `drive` waits for them to end."""
        yield from self._finish_without_steps()
        for task in list(self._tasks.values()):
            yield Cancel(task, force)

    # ---------------------------------------------------------------------------------------------------------------

    @property
    def complete(self) -> bool:
        """Whether every step has ended."""
        return len(self.endings) == len(self._run.plan.steps)

    def _finish_without_steps(self) -> Effects:
        self.halted = True
        steps = range(len(self._run.plan.steps))
        yield from self._close_writes([index for index in steps if index not in self._tasks])

    def _close_writes(self, indices: Sequence[int]) -> Effects:
        """Record that these steps will not write any more, and wake the steps that waited only for them."""
        for waiting in self._write_order.close(indices):
            if waiting in self._tasks:
                yield Wake(self._tasks[waiting])

    def _may_start(self) -> bool:
        return self._loop.slot_free and self._wants_slot()

    def _wants_slot(self) -> bool:
        return bool(self._ready) and not self.halted and self._loop.signal is None

    def _handle_end(self, task: Task) -> Effects:
        index: int = task.label
        del self._tasks[index]
        if task.error is not None:
            raise task.error
        yield from self._handle_ending(index, task.result)

    def _handle_ending(self, index: int, ending: Ending) -> Effects:
        self.endings[index] = ending
        if ending.status == "done" or ending.reason in RELEASING:
            self._ready.release(index)
            yield from self._close_writes((index,))
        else:
            yield from self._close_writes((index, *self._ready.mark_never_ready(index)))
        if ending.status in ("failed", "vetoed"):
            for blocked in self._ready.block(index):
                record = StepRecord.of_step(self._run, self._run.plan.steps[blocked])
                record.finish("skipped", reason="dependency")
                self.endings[blocked] = Ending("skipped", "dependency")
            if not self._run.engine.options.keep_going:
                yield from self.wind_down(force=False)
